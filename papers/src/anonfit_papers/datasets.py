# SPDX-License-Identifier: Apache-2.0
"""The files of the papers' experiments: where they are, and how those of the UCI archive are fetched.

No file is part of the package. A fetched file is kept only if its content is the known one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from anonfit.errors import DataError, RequestError
from anonfit.runtime.files import whole_file
from anonfit.runtime.process import Stage, silent

ARCHIVE = "https://archive.ics.uci.edu/ml/machine-learning-databases"
"""The archive; another address with the same folders can be given in its place."""
SECONDS = 60
LARGEST = 100_000_000
"""Bytes of a file; the largest one known here has four million."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file: where it stands in the data folder, where below the archive's address, and what it holds."""

    path: str
    address: str | None
    sha256: str


ADULT = (
    Source("uci/adult.data", "adult/adult.data", "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d"),
    Source("uci/adult.test", "adult/adult.test", "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05"),
)
CRX = (
    Source(
        "uci/crx.data", "credit-screening/crx.data", "fff49bc186cbddb3ace7371d40d9fbbb3af4f126019c13ff3f562249b1454f4d"
    ),
)
GERMAN = (
    Source(
        "uci/german.data",
        "statlog/german/german.data",
        "b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871",
    ),
)
CMC = (Source("uci/cmc.data", "cmc/cmc.data", "ad2a49da55df24b061a994ecc4d90c856aba35acd05138851aa251c4f06303c9"),)
ACS = (
    Source(
        "acs/acs2018_1yr_persons_10states.csv.gz",
        None,
        "639ba1bcf845c68d5fc1f9e347ce16120c0337f329183ec4b3f5296af087485f",
    ),
)
FETCHED = (*ADULT, *CMC, *CRX, *GERMAN)
"""What the archive has. The sample of the American Community Survey was put together from files of the Census Bureau,
and is not in it; Adult stands in for it.
"""


def is_there(folder: Path, sources: Sequence[Source]) -> bool:
    """Whether a folder has all of these files."""
    return all((folder / source.path).is_file() for source in sources)


def require(folder: Path, sources: Sequence[Source], *, what: str) -> None:
    """Refuse a folder that lacks one of these files.

    Args:
        folder: The data folder.
        sources: The files.
        what: Who needs them, for the message.
    """
    absent = [source for source in sources if not (folder / source.path).is_file()]
    if absent:
        advice = "ask for it by --fetch, or name another folder by --data" if absent[0].address else "put it there"
        raise DataError(f"{what} needs {absent[0].path}, which is not in the data folder {folder}: {advice}.")


def fetch(
    folder: Path, sources: Sequence[Source] = FETCHED, *, archive: str = ARCHIVE, stage: Stage = silent
) -> list[Path]:
    """Fetch the files that a folder lacks.

    Args:
        folder: The data folder; made if it is not there.
        sources: The files.
        archive: The address they stand below, `https://` or `http://`.
        stage: Told each file as it is asked for.

    Returns:
        The files that were fetched.
    """
    if not archive.startswith(("https://", "http://")):
        raise RequestError(f"The address of the archive is '{archive}': it must begin with https:// or http://.")
    fetched = []
    for source in sources:
        path = folder / source.path
        if path.is_file() or source.address is None:
            continue
        address = f"{archive.rstrip('/')}/{source.address}"
        stage(f"Fetching {address}")
        content = _content(address)
        digest = hashlib.sha256(content).hexdigest()
        if digest != source.sha256:
            raise DataError(
                f"{address} gave {len(content):,} bytes that are not the known file (SHA-256 {digest[:12]}…, expected "
                f"{source.sha256[:12]}…): nothing was kept. Fetch {path.name} from another copy and put it at {path}."
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as new:
            new.write_bytes(content)
        fetched.append(path)
    return fetched


def _content(address: str) -> bytes:
    try:
        with urlopen(address, timeout=SECONDS) as answer:  # noqa: S310 - only http and https get here
            content: bytes = answer.read(LARGEST + 1)
    except (URLError, HTTPException, TimeoutError, OSError) as error:
        reason = getattr(error, "reason", None) or type(error).__name__
        raise DataError(
            f"{address} could not be fetched ({reason}): try again, name another address by --archive, or put the "
            "files into the data folder."
        ) from None
    if len(content) > LARGEST:
        raise DataError(f"{address} gave more than {LARGEST:,} bytes, which no known file has: nothing was kept.")
    return content
