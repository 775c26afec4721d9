# SPDX-License-Identifier: Apache-2.0
"""What is doubtful about a table's values, in a sentence each: numbers that are codes for missing, dates of several
formats, texts among numbers, and what leads to a person in columns that are to be released. For whoever owns the table:
`init` writes them into the spec, `run` into the internal record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from anonfit.tables.number_signs import Signs
from anonfit.tables.profile_names import words_of
from anonfit.tables.profile_values import DATE_PATTERNS, ColumnProfile, profile_column

CODES = (
    -9,
    -99,
    -999,
    -9999,
    -8,
    -88,
    -888,
    -7,
    -77,
    -1,
    99,
    999,
    9999,
    99999,
    98,
    998,
    9998,
    97,
    997,
    88,
    888,
    77,
    777,
)
"""Numbers that surveys and clinics write for a missing value."""
LEAST = 5
"""Rows that a code has at least."""
MOST_ROWS = 50_000
"""Rows of a table that are looked at; evenly spaced."""
FEW_WORDS = 5
LEADING = {
    "e-mail addresses": "lead to a person",
    "web addresses": "may lead to a person",
    "network addresses": "lead to a person",
    "random identifiers": "may be keys of persons elsewhere",
    "bank accounts": "lead to a person",
    "social security numbers": "lead to a person",
    "national identity numbers": "lead to a person",
    "telephone numbers": "lead to a person",
    "names of people": "name persons",
    "street addresses": "lead to a household",
    "free text": "may name anybody",
}
PLACES = frozenset(["lat", "latitude", "lon", "lng", "longitude", "breitengrad", "längengrad", "laengengrad"])


@dataclass(frozen=True, slots=True)
class Suspicion:
    """What is doubtful about a column, and what to write if it is so."""

    column: str
    text: str
    codes: tuple[str, ...] = ()
    """Values that may mean missing."""
    is_of_values: bool = True
    """Whether it is about single values, and not about what the column is, by which its role is proposed."""

    @property
    def sentence(self) -> str:
        """What is said of the table."""
        return f"column '{self.column}': {self.text}"


def suspicions_of(frame: pl.DataFrame, released: Iterable[str]) -> list[Suspicion]:
    """What is doubtful about columns of a table that are to be released, by rows evenly spaced."""
    names = list(released)
    rows = frame.select(names).gather_every(max(1, len(frame) // MOST_ROWS))
    return [found for name in names for found in column_suspicions(rows[name], profile_column(rows[name]))]


def column_suspicions(column: pl.Series, profile: ColumnProfile) -> Iterator[Suspicion]:
    """What is doubtful about a column."""
    name = column.name
    if codes := missing_codes(column):
        texts = ", ".join(f'"{code}"' for code in codes)
        what = "they stand" if len(codes) > 1 else "it stands"
        yield Suspicion(
            name, f"{' and '.join(codes)} may mean missing: {what} apart; if so, write missing = [{texts}].", codes
        )
    if profile.shape in LEADING:
        yield Suspicion(
            name, f"its values look like {profile.shape}, which {LEADING[profile.shape]}.", is_of_values=False
        )
    if column.dtype.is_float() and PLACES & set(words_of(name)):
        yield Suspicion(
            name, "its numbers look like coordinates, which lead to a household; round them, or leave it out."
        )
    if column.dtype == pl.String:
        yield from _of_texts(name, column.drop_nulls().unique())


def missing_codes(column: pl.Series) -> tuple[str, ...]:
    """Numbers of a column that stand apart from all others and are ones that are written for missing values."""
    if not column.dtype.is_numeric() or isinstance(column.dtype, pl.Decimal):
        return ()
    table = column.drop_nulls().alias("value").value_counts(name="rows")
    counts: Mapping[float, int] = {float(value): rows for value, rows in table.iter_rows()}
    seen = [code for code in CODES if counts.get(code, 0) >= LEAST]
    others = np.array(sorted(value for value in counts if value not in CODES and value == value), np.float64)
    if not seen or len(others) < LEAST:
        return ()
    gap = max(1.0, float(np.median(np.diff(others))))
    far = 3 * gap if len(others) > 20 else 8 * gap
    low, high = others[0], others[-1]
    found = [code for code in seen if (code < 0 <= low) or (code > 0 and code - high > far and code > 1.05 * high)]
    return tuple(str(code) for code in sorted(found))


def _of_texts(name: str, values: pl.Series) -> Iterator[Suspicion]:
    """What is doubtful about texts."""
    values = values.filter(values.str.strip_chars() != "")
    if len(values) < 2:
        return
    fitting = [values.str.contains(pattern) for pattern in DATE_PATTERNS.values()]
    most = max(int(fits.sum()) for fits in fitting)
    any_date = pl.select(pl.any_horizontal(fitting)).to_series()
    if 0 < most < len(values) and int(any_date.sum()) >= 0.95 * len(values):
        yield Suspicion(
            name, "its dates are of several formats, or some are none, so they are names; write them in one format."
        )
        return
    numbers = values.str.contains(r"^[-+]?\d+([.,]\d+)?$")
    words = values.filter(~numbers)
    if 0 < len(words) <= FEW_WORDS and int(numbers.sum()) >= max(LEAST, 4 * len(words)):
        yield Suspicion(
            name,
            f"it has numbers and {len(words)} word(s), so all of it is names; if the words mean missing, list them "
            "under missing.",
        )
        return
    grouped = (Signs(",", "."), Signs(".", ","), Signs(",", " "))
    if values.str.contains(r"\d[., ]\d{3}").any() and any(
        bool(values.str.contains(signs.grouped).all()) for signs in grouped
    ):
        yield Suspicion(name, "its texts are numbers with thousands signs; write them as numbers, or data.thousands.")
