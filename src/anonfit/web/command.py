# SPDX-License-Identifier: Apache-2.0
"""The verb `web` of the command line: its words; `serving` is loaded when it is used."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


def _bytes(option: str, text: str) -> int:
    """A size such as 4GB, in bytes."""
    from anonfit.errors import RequestError

    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]i?|)b?", text.strip().lower())
    if match is None or float(match[1]) <= 0:
        raise RequestError(f"--{option} is a size such as 4GB; found '{text}'.")
    return int(float(match[1]) * UNITS[match[2]])


def web(
    folder: Annotated[
        Path, typer.Argument(help="The folder with the tables; the spec and all runs are kept in it.")
    ] = Path(),
    port: Annotated[int | None, typer.Option(help="The port; one near 8420 if not given.", min=0, max=65535)] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the address only.")] = False,
    host: Annotated[
        str, typer.Option(help="Another address than this machine's own; needs a token file and TLS files.")
    ] = "127.0.0.1",
    token_file: Annotated[Path | None, typer.Option(help="A file with the bearer token of the REST door.")] = None,
    tls_certificate: Annotated[Path | None, typer.Option(help="The certificate, as PEM.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Its key, as PEM.")] = None,
    memory: Annotated[str, typer.Option(help="How much memory one job may take, such as 4GB.")] = "",
    time: Annotated[float, typer.Option(help="How many seconds one job may take.", min=1)] = 14_400,
    upload: Annotated[str, typer.Option(help="How large what is sent may be.")] = "8GB",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")] = False,
) -> None:
    """Open the page in the browser, and the REST door for pipelines.

    Prints one line, the address with a token that opens one browser once. Everything stays on this machine and in the
    folder; whatever the page does is an edit of the folder's spec.toml.
    """
    from anonfit.web.serving import Place, serve

    place = Place(host, port, token_file, tls_certificate, tls_key)
    serve(
        folder,
        place,
        browser=not no_browser,
        as_json=as_json,
        memory=_bytes("memory", memory) if memory else None,
        seconds=time,
        upload=_bytes("upload", upload),
    )
