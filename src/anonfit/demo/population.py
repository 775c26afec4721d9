# SPDX-License-Identifier: Apache-2.0
"""A synthetic hospital population with real dependence between its columns: the table of the demo, of tests and of
benchmarks.

Its distributions are decks of integer cards, one deck for each group of people. Integers keep a table the same
everywhere: no draw depends on the last bit of a float. `hospital.toml` has the country and the diagnoses.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from functools import cache
from importlib.resources import files
from itertools import chain, product
from math import exp
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.errors import RequestError

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
Codes = NDArray[np.int64]
Deck = NDArray[np.uint16]


class PostalCode(NamedTuple):
    """One postal code, the kind of place it is, the border it lies at and its share of the people."""

    code: str
    kind: str
    border: str
    weight: float


class Diagnosis(NamedTuple):
    """One code; `ages` is how common it is at the anchor ages, `female` and `male` multiply it.

    `stay` is the mean number of days, `severity` goes from 0 (none) to 4 (often fatal), `base` and `day` are
    the cost of a case and of each of its days.
    """

    code: str
    block: str
    ages: tuple[int, ...]
    female: float
    male: float
    stay: float
    severity: int
    base: int
    day: int
    season: str = "none"
    first_age: int = 0
    last_age: int = 100


KINDS = ("city", "town", "village")
BORDERS = ("", "west", "south", "east")
HOME = "Germany"
AGE_ANCHORS = (0, 5, 15, 30, 45, 60, 75, 90)
SEASONS = ("none", "winter", "summer")
OUTCOMES = ("home", "readmitted", "transferred", "died")
SEXES = ("female", "male")
FIRST_DAY = date(2023, 1, 1)
LAST_DAY = date(2024, 12, 31)
_HELD = tomllib.loads((files("anonfit.demo") / "hospital.toml").read_text(encoding="utf-8"))
DIAGNOSES = tuple(Diagnosis(*entry) for entry in _HELD["diagnoses"])
COUNTRIES: dict[str, dict[str, dict[str, int]]] = _HELD["countries"]
_FOREIGNERS = {
    name: count for regions in COUNTRIES.values() for region in regions.values() for name, count in region.items()
}
NATIONALITIES = tuple(_FOREIGNERS)
WIDE, NARROW = 16, 12  # bits that pick a card: from one long list, and from a list that comes once per group

_PEOPLE, _CASES = _HELD["people"], _HELD["cases"]
_AGES = 101
_LONGEST_STAY = 120
AGE_BANDS: Codes = np.searchsorted(_CASES["age_bands"], np.arange(_AGES), side="right").astype(np.int64)
"""The age band of each age."""
STAY_BANDS: Codes = np.searchsorted(_CASES["stay_bands"], np.arange(_LONGEST_STAY + 1), side="right").astype(np.int64)
"""Short, middling or long, for each length of stay."""
_BANDS = len(_CASES["age_bands"]) + 1
_OUTCOME_SHAPE = (_BANDS, 5, len(_CASES["stay_bands"]) + 1, len(KINDS), len(SEXES))


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
        for chapter, blocks in _HELD["chapters"].items()
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
def _place_codes() -> Codes:
    """The kind and the border of each place. (2, place)"""
    return np.array([(KINDS.index(place.kind), BORDERS.index(place.border)) for place in places()], dtype=np.int64).T


@cache
def _diagnosis_codes() -> Codes:
    """The season, the severity, the base cost and the cost of a day of each diagnosis. (4, diagnosis)"""
    return np.array([(SEASONS.index(d.season), d.severity, d.base, d.day) for d in DIAGNOSES], dtype=np.int64).T


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
    band = AGE_BANDS[age]
    stay = deal(deck.stay, _cut(second, 28, width=NARROW), diagnosis, band)
    circumstances = (band, severities[diagnosis], STAY_BANDS[stay], kind, sex)
    outcome = deal(deck.outcome, _cut(second, 40, width=NARROW), *circumstances)
    noise = deck.cost_noise[_cut(third, 0, width=NARROW)]
    cents = _cents(diagnosis, age, stay=stay, kind=kind, noise=noise) + _cut(third, 12, width=11)
    codes = {"age": age, "sex": sex, "admission": admission, "diagnosis": diagnosis, "stay": stay, "outcome": outcome}
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


class Decks(NamedTuple):
    """All distributions; the last axis holds the cards, those before it are the groups of a row."""

    place: Deck
    nationality: Deck  # (kind of place, border, card)
    sex: Deck
    age: Deck  # (sex, home or foreign, kind of place, card)
    diagnosis: Deck  # (sex, age, card)
    admission: Deck  # (season, card)
    stay: Deck  # (diagnosis, age band, card)
    outcome: Deck  # (age band, severity, stay band, kind of place, sex, card)
    cost_noise: Codes  # per mille, right-skewed


@cache
def decks() -> Decks:
    """Every deck, shuffled by nobody: the cards lie in order of their codes."""
    return Decks(
        place=_deck([place.weight for place in places()], WIDE),
        nationality=_decks(map(_nationality, product(KINDS, BORDERS)), len(KINDS), len(BORDERS)),
        sex=_deck([0.52, 0.48], NARROW),
        age=_decks(map(_age, product(SEXES, (False, True), KINDS)), len(SEXES), 2, len(KINDS)),
        diagnosis=_decks(chain.from_iterable(map(_diagnoses, SEXES)), len(SEXES), _AGES),
        admission=_decks(map(_admission, SEASONS), len(SEASONS), width=WIDE),
        stay=_decks(_stays(), len(DIAGNOSES), _BANDS),
        outcome=_decks(map(_outcome, product(*map(range, _OUTCOME_SHAPE))), *_OUTCOME_SHAPE),
        cost_noise=_cost_noise(),
    )


def deal(deck: Deck, cards: Codes, *groups: Codes) -> Codes:
    """One card for each row, from the deck of the row's groups."""
    first, *others = *groups, cards
    index = first  # `ravel_multi_index` costs more than the whole draw
    for size, axis in zip(deck.shape[1:], others, strict=True):
        index = index * size + axis
    return deck.ravel().take(index).astype(np.int64)


def _decks(groups: Iterable[Sequence[float] | NDArray[np.float64]], *shape: int, width: int = NARROW) -> Deck:
    return np.stack([_deck(weights, width) for weights in groups]).reshape(*shape, 1 << width)


def _deck(weights: Sequence[float] | NDArray[np.float64], width: int) -> Deck:
    """2^width cards shared out by weight: none without weight, and the largest takes up the rounding."""
    share = np.asarray(weights, dtype=np.float64)
    cards = np.floor(share / share.sum() * (1 << width) + 0.5).astype(np.int64)
    cards[np.argmax(cards)] += (1 << width) - cards.sum()
    return np.repeat(np.arange(len(share)), cards).astype(np.uint16)


def _along(anchors: Sequence[float], weights: Sequence[float]) -> NDArray[np.float64]:
    """Weights at every age, straight lines between the anchor ages."""
    return np.interp(np.arange(_AGES), anchors, weights)


_CITY_CODES = 14  # a district with so many town codes has one big city


@cache
def places() -> tuple[PostalCode, ...]:
    """All postal codes of the country, in code order."""
    return tuple(place for district in _HELD["districts"] for place in _district_places(*district))


def _district_places(prefix: str, people: float, towns: int, villages: int, border: str) -> Iterator[PostalCode]:
    """Zipf-like sizes: quarters of the main town first, then ever smaller villages."""
    sizes = [1 / (rank + 4) for rank in range(towns)] + [0.5 / (rank + 5) for rank in range(villages)]
    tails = [1 + 2 * number for number in range(towns)]
    tails += [203 + 790 // villages * number for number in range(villages)]
    for number, (tail, size) in enumerate(zip(tails, sizes, strict=True)):
        town = "city" if towns >= _CITY_CODES else "town"
        weight = people * size / sum(sizes)
        yield PostalCode(f"{prefix}{tail:03d}", town if number < towns else "village", border, weight)


def _nationality(group: tuple[str, str]) -> list[float]:
    """The mix of nationalities in places of one kind at one border."""
    kind, border = group
    near = _PEOPLE["neighbours"][border]
    foreign = {
        name: count * (_PEOPLE["neighbour_factor"] if name in near else 1) for name, count in _FOREIGNERS.items()
    }
    share = _PEOPLE["foreign_share"][kind] * (1.2 if near else 1.0)
    total = sum(foreign.values())
    return [1 - share if name == HOME else share * count / total for name, count in foreign.items()]


def _age(group: tuple[str, bool, str]) -> NDArray[np.float64]:
    """Inpatients: newborns, women giving birth, then ever more old people until they grow few."""
    sex, foreign, kind = group
    tilt = _along((0, 100), _PEOPLE["younger"][kind])
    if foreign:
        tilt = tilt * _along((0, 100), _PEOPLE["younger"]["foreign"])
    return _along(_PEOPLE["pyramid"], _PEOPLE["patients"][sex]) * tilt


def _diagnoses(sex: str) -> NDArray[np.float64]:
    """How frequent each diagnosis is at each age. (age, diagnosis)"""
    ages = np.arange(_AGES)
    weights = [
        np.where(
            (each.first_age <= ages) & (ages <= each.last_age),
            getattr(each, sex) * _along(AGE_ANCHORS, each.ages),
            0.0,
        )
        for each in DIAGNOSES
    ]
    return np.stack(weights, axis=1)


def _admission(season: str) -> list[float]:
    """Planned cases come early in the week; what a season brings comes on any day."""
    weekdays = _CASES["planned_weekdays" if season == "none" else "weekdays"]
    days = [FIRST_DAY + timedelta(number) for number in range((LAST_DAY - FIRST_DAY).days + 1)]
    return [float(weekdays[day.weekday()] * _CASES["months"][season][day.month - 1]) for day in days]


def _stays() -> NDArray[np.float64]:
    """Negative binomials of shape 2, by their recursion: right-skewed, as stays are. (diagnosis and band, day)"""
    mean = np.array([diagnosis.stay * _CASES["longer"][band] for diagnosis, band in product(DIAGNOSES, range(_BANDS))])
    weights = [np.ones(len(mean))]
    for day in range(_LONGEST_STAY):
        weights.append(weights[-1] * (day + 2) / (day + 1) * mean / (mean + 2))
    return np.stack(weights, axis=1)


def _outcome(group: tuple[int, ...]) -> NDArray[np.float64]:
    band, severity, stay, kind, sex = group
    by = _HELD["outcomes"]
    factors = (by["age"][band], by["severity"][severity], by["stay"][stay], by["kind"][kind], by["sex"][sex])
    return np.concatenate(([1.0], np.prod(np.array(factors), axis=0)))


def _cost_noise() -> Codes:
    """Quantiles of a lognormal, rounded to per mille so that every machine has the same."""
    normal = NormalDist(sigma=0.35)
    middles = ((card + 0.5) / (1 << NARROW) for card in range(1 << NARROW))
    return np.array([round(1000 * exp(normal.inv_cdf(middle))) for middle in middles], dtype=np.int64)
