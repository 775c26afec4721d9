# SPDX-License-Identifier: Apache-2.0
"""Every error anonfit raises on purpose.

AnonfitError
├── RequestError             the request was wrong (exit status 2)
│   ├── SpecError            one or more faults of a spec, reported together
│   ├── DataError            a file, column or value that cannot be used
│   ├── TaxonomyError        a taxonomy that is not a tree over its column's values
│   ├── RecodingError        a recoding that cannot be read or applied
│   ├── ReleaseError         a folder that is not a valid release, or cannot be written
│   ├── EngineError          an engine that cannot do its work
│   │   └── TooManyGroups    more groups of rows than fit in memory
│   └── MissingPackage       an optional package is needed
└── DemandError              the request was right but the demand is not met (exit status 1)
    ├── Infeasible           no release can meet the demand on this table
    └── AuditFailed          the written file does not hold what was asked; nothing is published

Each message is one sentence or a few: what, where, what was found, what to do. No message holds a
record's values; only values of a domain (a taxonomy, an order) are named, because they must be mended there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

__all__ = [
    "AnonfitError",
    "AuditFailed",
    "DataError",
    "DemandError",
    "EngineError",
    "Infeasible",
    "MissingPackage",
    "RecodingError",
    "ReleaseError",
    "RequestError",
    "SpecError",
    "TaxonomyError",
    "TooManyGroups",
    "counted",
    "did_you_mean",
    "listed",
    "printable",
    "refuse_fork",
    "refuse_patterns",
]

_worked_in: int | None = None
"""The process that worked first."""
_ENDLESS = re.compile(r"\S{1000,}")


def _bounded(message: str) -> str:
    """A message in which an endless name, such as a file may hold, is cut short."""
    return _ENDLESS.sub(lambda match: match[0][:200] + "…", message)


class AnonfitError(Exception):
    """Base of all errors raised on purpose."""

    exit_status = 2

    def __init__(self, message: str = "") -> None:
        super().__init__(_bounded(message))


class RequestError(AnonfitError):
    """The request was wrong: spec, file or value."""


class SpecError(RequestError):
    """One or more faults of a spec, reported together."""

    def __init__(self, faults: Sequence[str]) -> None:
        self.faults = tuple(map(_bounded, faults))
        super().__init__("\n".join(self.faults))


class DataError(RequestError):
    """A file, column or value that cannot be used."""


class TaxonomyError(RequestError):
    """A taxonomy that is not a tree over its column's values."""


class RecodingError(RequestError):
    """A recoding that cannot be read or applied."""


class ReleaseError(RequestError):
    """A folder that is not a valid release, or cannot be written."""


class EngineError(RequestError):
    """An engine that cannot do its work: too little memory, a full disk, a source that cannot be read."""


class TooManyGroups(EngineError):
    """Groups of rows that an engine was to count, and that do not fit in memory."""


class MissingPackage(RequestError):
    """An optional package is needed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs the package {package}: install it with pip install 'anonfit[{extra}]'.")


class DemandError(AnonfitError):
    """The request was right but the demand is not met."""

    exit_status = 1


class Infeasible(DemandError):
    """No release can meet the demand on this table."""


class AuditFailed(DemandError):
    """The written file does not hold what was asked; nothing is published."""


OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
"""Control characters, signs that turn the direction of a text, and halves of signs."""
LONGEST_NAME, MOST_NAMES, MANY_NAMES = 60, 40, 10_000
"""Signs of a name, and names, that a message shows; and names that are compared with an unknown one, at most."""


def printable(text: str) -> str:
    """A text in which all that a terminal or a page would obey and not show is written out, such as \\x1b."""
    return OBEYED.sub(lambda match: ascii(match.group())[1:-1], text)


def refuse_fork() -> None:
    """Refuse to work in a fork of a process that has worked already: the threads of polars, which a fork does not have,
    would be waited for without end.
    """
    global _worked_in
    _worked_in = _worked_in or os.getpid()
    if _worked_in != os.getpid():
        raise EngineError(
            "anonfit was used before this process was forked, and its threads are not here; start processes by "
            "multiprocessing's 'spawn' or 'forkserver'."
        )


def counted(number: int | str, singular: str, plural: str = "") -> str:
    """A number of things, such as `1 value` or `3 values`; or of so many as may be told, such as `fewer than 5`."""
    told = number if isinstance(number, str) else f"{number:,}"
    return f"{told} {singular if number == 1 else plural or f'{singular}s'}"


def did_you_mean(word: str, valid: Iterable[str]) -> str:
    """The tail of a message about an unknown word: the nearest valid one, or all of them."""
    options = list(valid)
    # Of very many words only those are compared that begin alike and are about as long.
    like = options if len(options) <= MANY_NAMES else [name for name in options if _may_be_meant(name, word)]
    near = [name for name in options if name.casefold() == word.casefold()]
    near = near or get_close_matches(word, like[:MANY_NAMES], n=1, cutoff=0.6)
    if near:
        return f"did you mean '{_short(near[0])}'?"
    rest = f" and {len(options) - MOST_NAMES} more" if len(options) > MOST_NAMES else ""
    return f"valid: {', '.join(map(_short, options[:MOST_NAMES]))}{rest}."


def _may_be_meant(name: str, word: str) -> bool:
    return name[:1] == word[:1] and abs(len(name) - len(word)) <= 2


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…"


def listed(values: Iterable[object], limit: int = 5) -> str:
    """Some values for a message: at most `limit`, quoted, with the number of the others."""
    shown = [repr(_short(str(value))) for value in values]
    rest = len(shown) - limit
    return ", ".join(shown[:limit]) + (f" and {rest} more" if rest > 0 else "")


def refuse_patterns(names: Iterable[str]) -> None:
    """Refuse names of columns that polars takes for a pattern of names: others would be read in their place."""
    patterns = [name for name in names if name == "*" or (name.startswith("^") and name.endswith("$"))]
    if patterns:
        raise DataError(
            f"column names stand for other columns: {listed(patterns)}; rename them, since '*' and names from '^' to "
            "'$' are patterns of names."
        )
