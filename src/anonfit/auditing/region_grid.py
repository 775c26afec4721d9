# SPDX-License-Identifier: Apache-2.0
"""The parts in a recoding.json of version 2 ("parts"), read with code of the audit's own.

Every column is divided by itself: its list has, for each of its cells, the number of the part it is in. Cells with the
same number are released as one value; -1 is the number of those that are not disclosed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from anonfit.auditing.axes import Run, joined
from anonfit.auditing.meanings import Meaning
from anonfit.auditing.region_cells import cell_count, cut_count
from anonfit.errors import RecodingError

__all__ = ["RegionGrid", "read_region_grid"]


@dataclass(frozen=True, slots=True)
class RegionGrid:
    """For every column, its parts: the runs of cells of each."""

    parts: Mapping[str, frozenset[tuple[Run, ...]]]
    fits: bool  # False: some column has other cells than its list


def read_region_grid(parts: object, meanings: Mapping[str, Meaning]) -> RegionGrid:
    """The parts of columns, given in the order in which the recoding has them."""
    if not isinstance(parts, Mapping) or list(parts) != list(meanings):
        raise _damaged("they are not those of its columns, in their order")
    fits = True
    found = {}
    for name, meaning in meanings.items():
        numbers = parts[name]
        if not isinstance(numbers, (list, tuple)) or set(map(type, numbers)) - {int} or min(numbers, default=-1) < -1:
            raise _damaged(f"those of column '{name}' are no list of whole numbers from -1 on")
        fits &= len(numbers) == cell_count(meaning)
        found[name] = frozenset(tuple(joined(runs)) for runs in _runs(numbers).values())
        if meaning.type != "nominal" and meaning.tree is None and any(len(runs) > 1 for runs in found[name]):
            raise _damaged(f"those of column '{name}' are not runs of its cells")
        if cut_count(meaning) and len(numbers) == cell_count(meaning):
            present = numbers[bool(meaning.missing) :]
            if any(one == next_one for one, next_one in pairwise(present)):
                raise _damaged(f"column '{name}' has cuts that part no regions")
    return RegionGrid(found, fits)


def _runs(numbers: list[int] | tuple[int, ...]) -> dict[int, list[Run]]:
    """The cells of each part."""
    found: dict[int, list[Run]] = {}
    for cell, number in enumerate(numbers):
        found.setdefault(number, []).append((cell, cell))
    return found


def _damaged(fault: str) -> RecodingError:
    return RecodingError(f"The parts of columns in the recoding are damaged: {fault}.")
