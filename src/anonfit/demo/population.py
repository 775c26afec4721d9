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
from itertools import product
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

_AGES = 101
_LONGEST_STAY = 120


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
        diagnosis=_decks(map(_diagnosis, product(SEXES, range(_AGES))), len(SEXES), _AGES),
        admission=_decks(map(_admission, SEASONS), len(SEASONS), width=WIDE),
        stay=_decks(map(_stay, product(DIAGNOSES, range(_BANDS))), len(DIAGNOSES), _BANDS),
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


_FOREIGN_SHARE = {"city": 0.27, "town": 0.15, "village": 0.06}
_NEIGHBOURS = {
    "": (),
    "west": ("Belgium", "France", "Netherlands"),
    "south": ("Austria", "Italy"),
    "east": ("Czechia", "Poland"),
}
_NEIGHBOUR_FACTOR = 6


def _nationality(group: tuple[str, str]) -> list[float]:
    """The mix of nationalities in places of one kind at one border."""
    kind, border = group
    near = _NEIGHBOURS[border]
    foreign = {name: count * (_NEIGHBOUR_FACTOR if name in near else 1) for name, count in _FOREIGNERS.items()}
    share = _FOREIGN_SHARE[kind] * (1.2 if near else 1.0)
    total = sum(foreign.values())
    return [1 - share if name == HOME else share * count / total for name, count in foreign.items()]


_PYRAMID = (0, 1, 2, 5, 12, 18, 25, 30, 35, 42, 50, 60, 70, 78, 84, 90, 96, 100)
_PATIENTS = {
    "female": (360, 60, 36, 24, 22, 42, 90, 128, 112, 56, 62, 84, 112, 138, 134, 92, 28, 6),
    "male": (380, 70, 44, 30, 24, 34, 38, 42, 46, 56, 84, 122, 142, 144, 110, 54, 10, 2),
}
_YOUNGER = {"city": (1.2, 0.85), "town": (1.0, 1.0), "village": (0.8, 1.2)}  # factors at age 0 and 100
_FOREIGN = (1.7, 0.25)


def _age(group: tuple[str, bool, str]) -> NDArray[np.float64]:
    """Inpatients: newborns, women giving birth, then ever more old people until they grow few."""
    sex, foreign, kind = group
    tilt = _along((0, 100), _YOUNGER[kind])
    if foreign:
        tilt = tilt * _along((0, 100), _FOREIGN)
    return _along(_PYRAMID, _PATIENTS[sex]) * tilt


def _diagnosis(group: tuple[str, int]) -> list[float]:
    sex, age = group
    return [_frequency(diagnosis, sex, age=age) for diagnosis in DIAGNOSES]


def _frequency(diagnosis: Diagnosis, sex: str, *, age: int) -> float:
    if not diagnosis.first_age <= age <= diagnosis.last_age:
        return 0.0
    factor = diagnosis.female if sex == "female" else diagnosis.male
    return factor * float(_along(AGE_ANCHORS, diagnosis.ages)[age])


_WEEKDAYS = {"none": (118, 112, 106, 104, 92, 52, 56), "winter": (112, 104, 102, 100, 98, 82, 86)}
_MONTHS = {  # January to December
    "none": (102, 100, 104, 98, 100, 98, 94, 92, 100, 104, 104, 84),
    "winter": (170, 178, 148, 104, 82, 62, 52, 52, 70, 92, 112, 146),
    "summer": (80, 80, 88, 100, 116, 126, 130, 124, 108, 96, 84, 76),
}


def _admission(season: str) -> list[float]:
    """Planned cases come early in the week; what a season brings comes on any day."""
    weekdays = _WEEKDAYS.get(season, _WEEKDAYS["winter"])
    days = [FIRST_DAY + timedelta(number) for number in range((LAST_DAY - FIRST_DAY).days + 1)]
    return [float(weekdays[day.weekday()] * _MONTHS[season][day.month - 1]) for day in days]


_BAND_STARTS = (1, 18, 36, 46, 55, 64, 72, 78, 85)
_BANDS = len(_BAND_STARTS) + 1
_STAY_STARTS = (4, 10)
_LONGER = (1.0, 0.7, 0.8, 0.85, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4)  # stay by age band


@cache
def age_bands() -> Codes:
    """The age band of each age."""
    return np.searchsorted(_BAND_STARTS, np.arange(_AGES), side="right").astype(np.int64)


@cache
def stay_bands() -> Codes:
    """Short, middling or long, for each length of stay."""
    return np.searchsorted(_STAY_STARTS, np.arange(_LONGEST_STAY + 1), side="right").astype(np.int64)


def _stay(group: tuple[Diagnosis, int]) -> list[float]:
    """A negative binomial of shape 2, by its recursion: right-skewed, as stays are."""
    diagnosis, band = group
    mean = diagnosis.stay * _LONGER[band]
    weights = [1.0]
    for day in range(_LONGEST_STAY):
        weights.append(weights[-1] * (day + 2) / (day + 1) * mean / (mean + 2))
    return weights


_OUTCOME_SHAPE = (_BANDS, 5, len(_STAY_STARTS) + 1, len(KINDS), len(SEXES))
# factors of being readmitted, transferred or dead, against going home, with 1 for an easy case
_BY_AGE = (
    (0.12, 0.1, 0.02),
    (0.12, 0.06, 0.01),
    (0.22, 0.06, 0.02),
    (0.4, 0.1, 0.05),
    (0.7, 0.2, 0.1),
    (1.0, 0.35, 0.15),
    (1.3, 0.7, 0.25),
    (1.4, 1.4, 0.4),
    (1.3, 2.6, 0.8),
    (1.1, 4.4, 1.3),
)
_BY_SEVERITY = ((0.5, 0.5, 0.02), (0.9, 0.8, 0.1), (1.3, 1.0, 0.5), (1.7, 1.4, 1.2), (1.8, 1.8, 2.6))
_BY_STAY = ((0.8, 0.7, 1.1), (1.0, 1.0, 0.8), (1.2, 1.6, 1.1))
_BY_KIND = ((0.6, 1.1, 0.9), (1.0, 1.0, 1.0), (2.2, 0.8, 1.1))  # villages lack doctors: people come back
_BY_SEX = ((0.9, 1.3, 0.9), (1.1, 0.8, 1.1))  # old women live alone: they go on to care


def _outcome(group: tuple[int, ...]) -> NDArray[np.float64]:
    band, severity, stay, kind, sex = group
    factors = (_BY_AGE[band], _BY_SEVERITY[severity], _BY_STAY[stay], _BY_KIND[kind], _BY_SEX[sex])
    return np.concatenate(([1.0], np.prod(np.array(factors), axis=0)))


def _cost_noise() -> Codes:
    """Quantiles of a lognormal, rounded to per mille so that every machine has the same."""
    normal = NormalDist(sigma=0.35)
    middles = ((card + 0.5) / (1 << NARROW) for card in range(1 << NARROW))
    return np.array([round(1000 * exp(normal.inv_cdf(middle))) for middle in middles], dtype=np.int64)
