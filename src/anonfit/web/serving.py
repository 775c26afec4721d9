# SPDX-License-Identifier: Apache-2.0
"""`anonfit web`: its words; starts the server, prints its one line, opens the browser, and ends all jobs with it."""

from __future__ import annotations

import ipaddress
import json
import os
import re
import socket
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from anonfit.cli.options import Json
from anonfit.errors import MissingPackage, RequestError
from anonfit.runtime.files import fcntl
from anonfit.runtime.process import available_memory

DEFAULT_PORT = 8420
SWEPT = 30.0
"""Days after which an upload that no spec uses is removed."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a server listens, and who may ask."""

    host: str = "127.0.0.1"
    port: int | None = None
    token_file: Path | None = None
    certificate: Path | None = None
    key: Path | None = None

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        with suppress(ValueError):
            return ipaddress.ip_address(self.host).is_loopback
        return self.host == "localhost"

    @property
    def scheme(self) -> str:
        """Of its address."""
        return "https" if self.certificate is not None else "http"

    @property
    def name(self) -> str:
        """The host as addresses have it."""
        return f"[{self.host}]" if ":" in self.host else self.host

    def checked(self) -> Place:
        """The place, if it may be served at."""
        if not self.is_local and (self.token_file is None or self.certificate is None or self.key is None):
            raise RequestError(
                f"--host {self.host} can be reached from other machines: give --token-file, --tls-certificate and "
                "--tls-key, or leave it out."
            )
        if self.host in ("0.0.0.0", "::", ""):  # noqa: S104 - refused
            raise RequestError("--host names the one address that people will type, not all of them.")
        if (self.certificate is None) != (self.key is None):
            raise RequestError("--tls-certificate and --tls-key go together; give both, or none.")
        return self


def serve(
    folder: Path, place: Place, *, browser: bool, as_json: bool, memory: int | None, seconds: float, upload: int
) -> None:
    """Serve the page of a folder until it is interrupted."""
    place.checked()
    try:
        import fastapi  # noqa: F401
        import uvicorn

        from anonfit.web.app import application
        from anonfit.web.jobs import Jobs, Limits
        from anonfit.web.security import Keys
        from anonfit.web.workspace import Workspace, replace_text
    except ModuleNotFoundError as error:
        raise MissingPackage(str(error.name), "web", "anonfit web") from None
    space = Workspace.of(folder)
    lock = _alone(space.state / "lock")
    keys = Keys() if place.token_file is None else Keys(bearer=_token(place.token_file))
    replace_text(space.state / "token", keys.bearer + "\n")
    tempfile.tempdir = str(space.state / "incoming")  # what is sent is put aside here, not in a shared place
    space.sweep(SWEPT)
    sockets, port = _socket(place)
    memory, at_once = memory or int(available_memory() * 0.8), max(1, (os.cpu_count() or 1) // 2)
    jobs = Jobs(space, Limits(memory=memory, seconds=seconds, at_once=at_once, upload=upload))
    app = application(jobs, keys, hosts=_names(place, port), scheme=place.scheme, port=port)
    address = f"{place.scheme}://{place.name}:{port}/?token={keys.ticket()}"
    token = str(space.state / "token")
    sys.stdout.write((json.dumps({"address": address, "token_file": token}) if as_json else address) + "\n")
    sys.stdout.flush()
    if browser:
        import webbrowser

        webbrowser.open(address)
    config = uvicorn.Config(
        app,
        log_level="critical",
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=1,
        ssl_certfile=place.certificate,
        ssl_keyfile=place.key,
    )
    try:
        uvicorn.Server(config).run(sockets=list(sockets))
    finally:
        jobs.close()
        os.close(lock)


def _socket(place: Place) -> tuple[Sequence[socket.socket], int]:
    """A socket that listens: at the port asked for, or near the usual one."""
    family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
    ports = [place.port] if place.port is not None else [*range(DEFAULT_PORT, DEFAULT_PORT + 20), 0]
    for port in ports:
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((place.host, port))
            listening.listen(2048)  # before the address is told: who comes at once waits, and is not refused
        except OSError as error:
            listening.close()
            if port == ports[-1]:
                raise RequestError(f"--port {port} of {place.host} cannot be used: {error.strerror}.") from None
            continue
        return [listening], int(listening.getsockname()[1])
    raise AssertionError


def _names(place: Place, port: int) -> list[str]:
    """What a browser may call the server."""
    hosts = ["127.0.0.1", "localhost", "[::1]"] if place.is_local else []
    usual = 443 if place.scheme == "https" else 80
    return [name for host in {place.name, *hosts} for name in (f"{host}:{port}", *([host] if port == usual else []))]


def _token(path: Path) -> str:
    """A bearer token that is kept in a file of its own."""
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        raise RequestError(f"--token-file {path} cannot be read.") from None
    if len(token) < 20 or not token.isascii() or not token.isprintable():
        raise RequestError(
            f"--token-file {path}: a token has at least 20 plain characters; make one with openssl rand -hex 32."
        )
    return token


def _alone(path: Path) -> int:
    """Hold a folder for one server."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    if fcntl is not None:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            raise RequestError(
                f"another anonfit web is at work in {path.parent.parent}; use its window, or end it first."
            ) from None
    os.set_inheritable(handle, False)
    return handle


UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


def _bytes(option: str, text: str) -> int:
    """A size such as 4GB, in bytes."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]i?|)b?", text.strip().lower())
    if match is None or float(match[1]) <= 0:
        raise RequestError(f"--{option} is a size such as 4GB; found '{text}'.")
    return int(float(match[1]) * UNITS[match[2]])


def web(
    folder: Annotated[
        Path, Argument(help="The folder with the tables; the spec and all runs are kept in it.")
    ] = Path(),
    port: Annotated[int | None, Option(help="The port; one near 8420 if not given.", min=0, max=65535)] = None,
    no_browser: Annotated[bool, Option("--no-browser", help="Print the address only.")] = False,
    host: Annotated[
        str, Option(help="Another address than this machine's own; needs a token file and TLS files.")
    ] = "127.0.0.1",
    token_file: Annotated[Path | None, Option(help="A file with the bearer token of the REST door.")] = None,
    tls_certificate: Annotated[Path | None, Option(help="The certificate, as PEM.")] = None,
    tls_key: Annotated[Path | None, Option(help="Its key, as PEM.")] = None,
    memory: Annotated[str, Option(help="How much memory one job may take, such as 4GB.")] = "",
    time: Annotated[float, Option(help="How many seconds one job may take.", min=1)] = 14_400,
    upload: Annotated[str, Option(help="How large what is sent may be.")] = "8GB",
    as_json: Json = False,
) -> None:
    """Open the page in the browser, and the REST door for pipelines.

    Prints one line, the address with a token that opens one browser once. Everything stays on this machine and in the
    folder; whatever the page does is an edit of the folder's spec.toml.
    """
    place = Place(host, port, token_file, tls_certificate, tls_key)
    most, largest = _bytes("memory", memory) if memory else None, _bytes("upload", upload)
    serve(folder, place, browser=not no_browser, as_json=as_json, memory=most, seconds=time, upload=largest)
