# SPDX-License-Identifier: Apache-2.0
"""The distributions of the demo population as decks of integer cards, one deck for each group of people.

Dealt by `population`. Integers keep a table the same everywhere: no draw depends on the last bit of a float.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from functools import cache
from itertools import product
from math import exp
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anonfit.demo.population_diagnoses import AGE_ANCHORS, DIAGNOSES, SEASONS, Diagnosis
from anonfit.demo.population_places import BORDERS, COUNTRIES, KINDS, nationality_weights, places

__all__ = [
    "FIRST_DAY",
    "LAST_DAY",
    "NARROW",
    "NATIONALITIES",
    "OUTCOMES",
    "SEXES",
    "WIDE",
    "Codes",
    "Decks",
    "age_bands",
    "deal",
    "decks",
    "stay_bands",
]

FIRST_DAY = date(2023, 1, 1)
LAST_DAY = date(2024, 12, 31)
OUTCOMES = ("home", "readmitted", "transferred", "died")
SEXES = ("female", "male")
NATIONALITIES = tuple(name for regions in COUNTRIES.values() for region in regions.values() for name in region)
WIDE, NARROW = 16, 12  # bits that pick a card: from one long list, and from a list that comes once per group

_AGES = 101
_LONGEST_STAY = 120

Codes = NDArray[np.int64]
Deck = NDArray[np.uint16]


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
    index = _cells(deck.shape, *groups, cards)
    return deck.ravel().take(index).astype(np.int64)


def _cells(shape: Sequence[int], *axes: Codes) -> Codes:
    """The flat position of each row's cell; `ravel_multi_index` costs more than the whole draw."""
    index = axes[0]
    for size, axis in zip(shape[1:], axes[1:], strict=True):
        index = index * size + axis
    return index


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


def _nationality(group: tuple[str, str]) -> list[float]:
    weights = nationality_weights(*group)
    return [weights[name] for name in NATIONALITIES]


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
