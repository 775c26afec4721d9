# SPDX-License-Identifier: Apache-2.0
"""A synthetic hospital population with real dependence between its columns.

The table of the demo, of tests and of benchmarks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anonfit.demo.population_decks import (
    FIRST_DAY,
    LAST_DAY,
    NARROW,
    NATIONALITIES,
    OUTCOMES,
    SEXES,
    WIDE,
    Codes,
    age_bands,
    deal,
    decks,
    stay_bands,
)
from anonfit.demo.population_diagnoses import CHAPTERS, DIAGNOSES, SEASONS
from anonfit.demo.population_places import BORDERS, COUNTRIES, HOME, KINDS, places
from anonfit.errors import RequestError

if TYPE_CHECKING:
    import polars as pl

__all__ = ["FIRST_DAY", "HOSPITAL_ROLES", "LAST_DAY", "OUTCOMES", "hospital", "hospital_taxonomies"]

HOSPITAL_ROLES: Mapping[str, str] = {
    "patient_id": "identifier",
    "age": "quasi-identifier",
    "sex": "quasi-identifier",
    "postcode": "quasi-identifier",
    "nationality": "quasi-identifier",
    "admission": "quasi-identifier",
    "diagnosis": "sensitive",
    "length_of_stay": "quasi-identifier",
    "outcome": "target",
    "cost": "sensitive",
}

_BATCH = 1 << 18  # rows made at once: the decks and a batch stay in the processor's cache
_WORDS = 3  # raw 64-bit words of a row; NumPy promises the raw stream for ever, but not its distributions
_MISSING = 655  # of 65,536: about 1 %

Words = NDArray[np.uint64]


def hospital(rows: int, seed: int = 0) -> pl.DataFrame:
    """A table of hospital cases, one person a row; a longer table of the same seed begins with the same rows.

    Args:
        rows: How many rows, at least 1.
        seed: Another seed gives other people of the same population.

    Returns:
        A polars frame with the columns of `HOSPITAL_ROLES`.

    >>> hospital(3).columns[:3]
    ['patient_id', 'age', 'sex']
    """
    import polars as pl

    if rows < 1:
        raise RequestError(f"The population needs at least 1 row, but {rows} were asked for: give a larger number.")
    bits = np.random.PCG64(seed)
    batches = []
    for start in range(0, rows, _BATCH):
        size = min(_BATCH, rows - start)
        words = np.asarray(bits.random_raw(size * _WORDS), dtype=np.uint64).reshape(size, _WORDS)
        batches.append(_batch(words, start))
    return pl.concat(batches, rechunk=True)


def hospital_taxonomies() -> dict[str, dict[str, Any]]:
    """Nested trees over every value that `hospital` can draw, for postcode, nationality and diagnosis."""
    codes = {block: [d.code for d in DIAGNOSES if d.block == block] for block in (d.block for d in DIAGNOSES)}
    chapters = {
        chapter: {f"{block} {title}": codes[block] for block, title in blocks.items()}
        for chapter, blocks in CHAPTERS.items()
    }
    return {
        "postcode": _prefix_tree("", [place.code for place in places()]),
        "nationality": _tree("*", COUNTRIES),
        "diagnosis": _tree("*", chapters),
    }


def _tree(name: str, below: object = None) -> dict[str, Any]:
    """A node over a mapping of nodes or a list of leaves; anything else below makes it a leaf."""
    if isinstance(below, Mapping):
        return {"name": name, "children": [_tree(child, part) for child, part in below.items()]}
    if isinstance(below, list):
        return {"name": name, "children": [_tree(leaf) for leaf in below]}
    return {"name": name}


def _prefix_tree(prefix: str, codes: list[str]) -> dict[str, Any]:
    """The codes below a prefix, one digit more each level, down to three digits."""
    if len(prefix) == 3:
        return _tree(f"{prefix}**", codes)
    longer = sorted({code[: len(prefix) + 1] for code in codes})
    children = [_prefix_tree(head, [code for code in codes if code.startswith(head)]) for head in longer]
    return {"name": prefix + "*" * (5 - len(prefix)) if prefix else "*", "children": children}


@cache
def _place_codes() -> tuple[Codes, Codes]:
    """The kind and the border of each place."""
    kinds = [KINDS.index(place.kind) for place in places()]
    borders = [BORDERS.index(place.border) for place in places()]
    return np.array(kinds, dtype=np.int64), np.array(borders, dtype=np.int64)


@cache
def _diagnosis_codes() -> tuple[Codes, Codes, Codes, Codes]:
    """The season, the severity, the base cost and the cost of a day of each diagnosis."""
    seasons = [SEASONS.index(d.season) for d in DIAGNOSES]
    rows = [seasons, [d.severity for d in DIAGNOSES], [d.base for d in DIAGNOSES], [d.day for d in DIAGNOSES]]
    season, severity, base, day = np.array(rows, dtype=np.int64)
    return season, severity, base, day


def _batch(words: Words, start: int) -> pl.DataFrame:
    """Rows `start`, `start + 1`, …: a cause is drawn before what depends on it."""
    deck = decks()
    kinds, borders = _place_codes()
    seasons, severities, _, _ = _diagnosis_codes()
    first, second, third = words.T

    place = deal(deck.place, _cut(first, 0, width=WIDE))
    kind = kinds[place]
    nationality = deal(deck.nationality, _cut(first, 16, width=NARROW), kind, borders[place])
    sex = deal(deck.sex, _cut(first, 28, width=NARROW))
    foreign = (nationality != NATIONALITIES.index(HOME)).astype(np.int64)
    age = deal(deck.age, _cut(first, 40, width=NARROW), sex, foreign, kind)
    diagnosis = deal(deck.diagnosis, _cut(second, 0, width=NARROW), sex, age)
    admission = deal(deck.admission, _cut(second, 12, width=WIDE), seasons[diagnosis])
    band = age_bands()[age]
    stay = deal(deck.stay, _cut(second, 28, width=NARROW), diagnosis, band)
    circumstances = (band, severities[diagnosis], stay_bands()[stay], kind, sex)
    outcome = deal(deck.outcome, _cut(second, 40, width=NARROW), *circumstances)
    noise = deck.cost_noise[_cut(third, 0, width=NARROW)]
    cents = _cents(diagnosis, age, stay=stay, kind=kind, noise=noise) + _cut(third, 12, width=11)
    codes = {
        "age": age,
        "sex": sex,
        "admission": admission,
        "diagnosis": diagnosis,
        "stay": stay,
        "outcome": outcome,
    }
    codes["postcode"] = np.where(_cut(third, 23, width=16) < _MISSING, len(kinds), place)
    codes["nationality"] = np.where(_cut(third, 39, width=16) < _MISSING, len(NATIONALITIES), nationality)
    return _frame(codes, cents, start=start)


def _cut(words: Words, shift: int, *, width: int) -> Codes:
    """Some bits of each word, as non-negative integers."""
    return ((words >> np.uint64(shift)) & np.uint64((1 << width) - 1)).astype(np.int64)


def _cents(diagnosis: Codes, age: Codes, *, stay: Codes, kind: Codes, noise: Codes) -> Codes:
    """The cost in cents, in integers; the old and the very young cost more, and so do city hospitals."""
    _, _, base, day = _diagnosis_codes()
    by_age: Codes = 1000 + 6 * np.abs(np.arange(101, dtype=np.int64) - 30)
    by_kind: Codes = np.array((112, 100, 94), dtype=np.int64)
    cents: Codes = (base[diagnosis] + day[diagnosis] * stay) * by_age[age] // 1000 * by_kind[kind]
    return cents * noise // 1000


def _frame(codes: Mapping[str, Codes], cents: Codes, *, start: int) -> pl.DataFrame:
    """Codes become values; the code after the last name is a missing value."""
    import polars as pl

    def named(column: str, names: Iterable[str]) -> pl.Series:
        return pl.Series([*names, None], dtype=pl.String).gather(codes[column])

    numbers = pl.int_range(start, start + len(cents)).cast(pl.String).str.zfill(7)
    epoch_day = (FIRST_DAY - date(1970, 1, 1)).days
    return pl.DataFrame(
        {
            "patient_id": pl.select(pl.concat_str(pl.lit("P"), numbers)).to_series(),
            "age": codes["age"],
            "sex": named("sex", SEXES),
            "postcode": named("postcode", (place.code for place in places())),
            "nationality": named("nationality", NATIONALITIES),
            "admission": pl.Series((codes["admission"] + epoch_day).astype(np.int32)).cast(pl.Date),
            "diagnosis": named("diagnosis", (d.code for d in DIAGNOSES)),
            "length_of_stay": codes["stay"],
            "outcome": named("outcome", OUTCOMES),
            "cost": cents / 100,
        }
    )
