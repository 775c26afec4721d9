# SPDX-License-Identifier: Apache-2.0
"""Addresses of databases and of tables in them: `postgresql://user@host/name#table`, `sqlite:people.db#table`, or
`env:NAME`, an environment variable that holds one. An address may hold a password, so it is shown nowhere: not in
errors, not in logs, not in what is written.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from anonfit.errors import DataError, RequestError, SpecError

FILES = ("duckdb", "sqlite")
SERVERS = ("postgresql", "mysql", "mariadb", "mssql")
KINDS = (*FILES, *SERVERS)
ALIASES = {"postgres": "postgresql", "sqlserver": "mssql"}
VARIABLE = "env"
SECRETS = ("password", "passwd", "pwd", "sslpassword")
"""What else of an address is a password."""
_TABLE = re.compile(r"#([^#@/?]+)$")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a database is, and perhaps one of its tables."""

    kind: str
    place: str = field(repr=False)  # of a file its path, of a server the whole URL
    table: str | None = None

    @property
    def is_file(self) -> bool:
        """Whether the database is a file."""
        return self.kind in FILES


def is_database(source: object) -> bool:
    """Whether a source is the address of a database."""
    return isinstance(source, str) and source.startswith(tuple(f"{kind}:" for kind in (*KINDS, *ALIASES, VARIABLE)))


def shown_address(source: str) -> str:
    """An address without anything secret: the kind of database, of a file its name, and the table."""
    address, table = divided(source)
    kind, _, rest = address.partition(":")
    shown = rest if kind == VARIABLE else Path(rest).name if kind in FILES else "…"
    return f"{kind}:{shown}" + (f"#{table}" if table else "")


def divided(source: str) -> tuple[str, str | None]:
    """An address without its table, and the table; a `#` inside of a password or of a file's name begins none."""
    found = _TABLE.search(source)
    kind, _, rest = source.partition(":")
    if found is None or (kind in FILES and Path(rest.removeprefix("//")).is_file()):
        return source, None
    return source[: found.start()], unquote(found[1])


def has_password(source: str) -> bool:
    """Whether an address, of a database or of anything else, tells a password."""
    if "://" not in source:
        return False
    try:
        parts = urlsplit(source)
        # One with signs that belong to an address may not be seen as a password.
        hidden = parts.password is None and "@" in source and ":" in source.partition("://")[2].rpartition("@")[0]
        return parts.password is not None or hidden or any(key in SECRETS for key, _ in parse_qsl(parts.query))
    except ValueError:
        return True


def without_password(source: str) -> str:
    """An address as it may be written down: a password is left to the driver (`PGPASSWORD`, `~/.pgpass`)."""
    if not has_password(source):
        return source
    kind, _, rest = source.partition("://")
    user, _, place = rest.rpartition("@")
    place = re.sub(rf"([?&])({'|'.join(SECRETS)})=[^&#]*&?", r"\1", place)
    return f"{kind}://{user.partition(':')[0]}{'@' if user else ''}{place}"


def refuse_shown_password(words: list[str]) -> None:
    """Refuse a password in the words of a command: everybody on a machine can read its list of processes."""
    for word in words:
        address = word.partition("=")[2].strip("'\" ") if word.startswith(("data.", "output.", "--")) else word
        if has_password(address):
            raise RequestError(
                "the address on the command line holds a password, which the list of processes shows to everybody; "
                "put the address into an environment variable and write env:NAME, or leave the password to "
                "PGPASSWORD or ~/.pgpass."
            )


def read_address(source: str, *, folder: Path, key: str = "data.source") -> Address:
    """What an address says; a relative path starts at a folder. `key` is the setting that errors name."""
    text, table = divided(source)
    if text.startswith(f"{VARIABLE}:"):
        name = text.partition(":")[2]
        held = os.environ.get(name, "")
        if not is_database(held) or held.startswith(f"{VARIABLE}:"):
            raise SpecError(
                [f"{key}: the environment variable {name} holds no address of a database ({', '.join(KINDS)})."]
            )
        found = read_address(held, folder=folder, key=key)
        return Address(found.kind, found.place, table or found.table)
    kind, _, rest = text.partition(":")
    if kind in FILES:
        return Address(kind, str(folder / rest.removeprefix("//")), table)
    if kind in ALIASES:
        kind, text = ALIASES[kind], f"{ALIASES[kind]}:{rest}"
    _check_server(text, kind, key)
    return Address(kind, text, table)


def _check_server(text: str, kind: str, key: str) -> None:
    """Refuse an address that names no server, without repeating it."""
    try:
        parts = urlsplit(text)
        has_host = bool(parts.hostname) or "host=" in text or "unix_socket=" in text
        has_name = kind == "postgresql" or bool(parts.path.strip("/"))
        _ = parts.port
    except ValueError:
        has_host = has_name = False
    if not (has_host and has_name):
        raise SpecError([f"{key}: the address of a server is such as {kind}://user@host/database."])


def require_file(address: Address) -> None:
    """Refuse the address of a file that is not there."""
    if address.is_file and not Path(address.place).is_file():
        raise DataError(f"{Path(address.place).name}: there is no such {address.kind} file.")
