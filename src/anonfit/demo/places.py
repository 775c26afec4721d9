# SPDX-License-Identifier: Apache-2.0
"""The invented country of the demo population: districts, postal codes and who lives there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

KINDS = ("city", "town", "village")
BORDERS = ("", "west", "south", "east")
HOME = "Germany"


@dataclass(frozen=True, slots=True)
class District:
    """A two-digit postal district: its people in thousands, its codes, and the border it lies at."""

    prefix: str
    people: float
    town_codes: int
    village_codes: int
    border: str


class PostalCode(NamedTuple):
    """One postal code, the kind of place it is, the border it lies at and its share of the people."""

    code: str
    kind: str
    border: str
    weight: float


# Two districts begin with 0 on purpose: a reader that takes postal codes for numbers loses that digit.
DISTRICTS = (
    District("03", 180, 4, 22, "east"),
    District("07", 140, 3, 24, "east"),
    District("10", 900, 26, 4, ""),
    District("11", 320, 8, 20, ""),
    District("20", 620, 18, 6, ""),
    District("21", 160, 4, 22, ""),
    District("28", 110, 2, 20, ""),
    District("41", 540, 16, 8, "west"),
    District("42", 260, 7, 16, "west"),
    District("45", 130, 3, 20, "west"),
    District("60", 480, 14, 8, ""),
    District("63", 120, 3, 24, ""),
    District("80", 560, 16, 8, "south"),
    District("83", 150, 3, 24, "south"),
    District("88", 170, 4, 20, "south"),
)
_CITY_CODES = 14  # a district with so many town codes has one big city


def places() -> tuple[PostalCode, ...]:
    """All postal codes of the country, in code order."""
    return tuple(place for district in DISTRICTS for place in _district_places(district))


def _district_places(district: District) -> Iterator[PostalCode]:
    """Zipf-like sizes: quarters of the main town first, then ever smaller villages."""
    sizes = [1 / (rank + 4) for rank in range(district.town_codes)]
    sizes += [0.5 / (rank + 5) for rank in range(district.village_codes)]
    kind = "city" if district.town_codes >= _CITY_CODES else "town"
    step = 790 // district.village_codes
    tails = [1 + 2 * number for number in range(district.town_codes)]
    tails += [203 + step * number for number in range(district.village_codes)]
    for number, (tail, size) in enumerate(zip(tails, sizes, strict=True)):
        place_kind = kind if number < district.town_codes else "village"
        weight = district.people * size / sum(sizes)
        yield PostalCode(f"{district.prefix}{tail:03d}", place_kind, district.border, weight)


# continent -> region -> country -> how many of a thousand foreigners come from there
COUNTRIES: dict[str, dict[str, dict[str, int]]] = {
    "Europe": {
        "Western Europe": {
            HOME: 0,
            "Austria": 22,
            "Belgium": 6,
            "France": 20,
            "Netherlands": 18,
            "United Kingdom": 10,
        },
        "Southern Europe": {"Croatia": 38, "Greece": 32, "Italy": 60, "Portugal": 14, "Spain": 20},
        "Eastern Europe": {
            "Bulgaria": 36,
            "Czechia": 9,
            "Poland": 92,
            "Romania": 88,
            "Russia": 26,
            "Ukraine": 104,
        },
    },
    "Asia": {
        "Western Asia": {"Iraq": 26, "Syria": 94, "Turkey": 142},
        "Southern and Eastern Asia": {"Afghanistan": 40, "China": 15, "India": 24, "Vietnam": 11},
    },
    "Africa": {
        "Northern Africa": {"Egypt": 5, "Morocco": 9},
        "Sub-Saharan Africa": {"Eritrea": 8, "Nigeria": 10},
    },
    "Americas": {
        "Northern America": {"Canada": 2, "United States": 12},
        "Latin America": {"Brazil": 7},
    },
}
_FOREIGN_SHARE = {"city": 0.27, "town": 0.15, "village": 0.06}
_NEIGHBOURS = {
    "": (),
    "west": ("Belgium", "France", "Netherlands"),
    "south": ("Austria", "Italy"),
    "east": ("Czechia", "Poland"),
}
_NEIGHBOUR_FACTOR = 6


def nationality_weights(kind: str, border: str) -> dict[str, float]:
    """The mix of nationalities in places of one kind at one border."""
    counts = {
        name: count for regions in COUNTRIES.values() for region in regions.values() for name, count in region.items()
    }
    near = _NEIGHBOURS[border]
    foreign = {name: count * (_NEIGHBOUR_FACTOR if name in near else 1) for name, count in counts.items()}
    share = _FOREIGN_SHARE[kind] * (1.2 if near else 1.0)
    total = sum(foreign.values())
    return {name: 1 - share if name == HOME else share * count / total for name, count in foreign.items()}
