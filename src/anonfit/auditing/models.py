# SPDX-License-Identifier: Apache-2.0
"""The diversity models: what each measures of a group, and whether that is what was asked.

A model turns a spread into one figure per group; in the worst group the figure is what the table reaches. A new model
is one more function here and one more entry in MODELS, and no other module of the audit changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from anonfit.auditing.coding import BoolArray, Evidence, FloatArray, IntArray, ValueCounts, count_values
from anonfit.auditing.result import CountedFigure, Diversity
from anonfit.auditing.values import (
    Hierarchy,
    RawValues,
    Reading,
    Reads,
    ReadValues,
    ValueSpread,
    read_values,
    spread_of,
    type_of,
)

if TYPE_CHECKING:
    from anonfit.auditing.request import DiversityDemand

PERSONS_UNKNOWN = "Not checked: persons are told apart by their entities, which are only in the source."
_NO_ROWS = "Not checked: there are no rows."
_NOT_ASKED = "Nothing was asked."
_NO_CLASSES = (
    "Not checked: the target holds numbers or dates, and no classes of them are stated; give classes, equal_width or "
    "type = 'nominal'."
)
TIE = 1e-9  # figures this near to what is asked count as equal to it
Asked = Mapping[str, Any]
Measured = tuple[npt.NDArray[Any], BoolArray]  # (group) the figure, and whether it is what was asked


_MOST_WHOLE = 2**63  # of 64 bits


@dataclass(frozen=True, slots=True)
class DemandParameter:
    """A number that a demand states: from `least` (above it, if `above`) to `most`, and not `empty`: that end of the
    range every group of any table meets, so that a demand with it would be none.
    """

    least: float
    most: float | None = None
    above: bool = False
    whole: bool = False
    empty: float | None = None

    def holds(self, value: object) -> bool:
        """Whether a value is such a number."""
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return False
        if not abs(value) < (_MOST_WHOLE if isinstance(value, int) else np.inf):
            return False
        if self.empty is not None and abs(value - self.empty) <= 2 * TIE * self.empty:
            return False
        inside = value > self.least if self.above else value >= self.least
        return inside and (self.most is None or value <= self.most) and (not self.whole or value == int(value))

    def __str__(self) -> str:
        """What it may be, in words."""
        kind = "a whole number" if self.whole else "a number"
        begin = f"above {self.least:g}" if self.above or self.empty == self.least else f"of at least {self.least:g}"
        end = "" if self.most is None else f" and {'below' if self.empty == self.most else 'at most'} {self.most:g}"
        return f"{kind} {begin}{end}" + ("" if self.empty is None else f" (with {self.empty:g} nothing would be asked)")


@dataclass(frozen=True, slots=True)
class DiversityMeasure:
    """A way to say how diverse a group is."""

    parameters: Mapping[str, DemandParameter]  # the first is what the figure is held against
    worst: Literal["smallest", "largest"]  # which figure is the worst group's
    measure: Callable[[ValueSpread, ReadValues, Asked], Measured]
    good: str  # what is said of a table that holds what was asked
    bad: str
    reads: Literal["values", "distance", "numbers"] = "values"
    by_rows: bool = False  # the same whether rows or persons are counted
    words: tuple[str, ...] = ()  # settings of a demand beside its numbers, of how values are read
    flags: tuple[str, ...] = ()  # and those that are true or false

    @property
    def asked(self) -> str:
        """The parameter that the figure is held against."""
        return next(iter(self.parameters))


def _distinct(spread: ValueSpread, _values: ReadValues, asked: Asked) -> Measured:
    """The number of different values."""
    return spread.distinct, spread.distinct >= asked["l"]


def _entropy(spread: ValueSpread, _values: ReadValues, asked: Asked) -> Measured:
    """The l that the entropy reaches: as many values, all as frequent, have the same entropy."""
    entropy = np.log(spread.total) - spread.sums(spread.count * np.log(spread.count)) / spread.total
    return np.exp(entropy), entropy >= np.log(asked["l"]) - TIE


def _recursive(spread: ValueSpread, _values: ReadValues, asked: Asked) -> Measured:
    """The c that is just too small: the most frequent value by all from the l-th on; infinite without an l-th."""
    counts = spread.count[np.lexsort((-spread.count, spread.group))]
    before = np.append(0, np.cumsum(counts))
    end = np.append(spread.begin[1:], len(counts))
    rest = before[end] - before[np.minimum(spread.begin + int(min(asked["l"], len(counts) + 1)) - 1, end)]
    most = counts[spread.begin]
    figures = np.where(rest > 0, most / np.maximum(rest, 1), np.inf)
    return figures, most < asked["c"] * rest


def _closeness(spread: ValueSpread, values: ReadValues, asked: Asked) -> Measured:
    """The distance between the group's values and the whole table's, by the ground that the values stand on."""
    if values.hierarchy is not None:
        figures = _hierarchical(spread, values.hierarchy)
    elif values.distance == "ordered":
        figures = _ordered(spread)
    else:  # what the group's values have too much is what all others lack, so only values in the group count
        figures = spread.sums(np.maximum(spread.share - spread.table_share[spread.value], 0))
    return figures, figures <= asked["t"] + TIE


def _confidence(spread: ValueSpread, _values: ReadValues, asked: Asked) -> Measured:
    """The share of the most frequent value, held against the only parameter."""
    figures = spread.most(spread.count) / spread.total
    (limit,) = asked.values()
    return figures, figures <= limit + TIE


def _likeness(spread: ValueSpread, _values: ReadValues, asked: Asked) -> Measured:
    """The largest relative gain of a value's share; infinite where no beta would allow it (enhanced likeness)."""
    known = spread.table_share[spread.value]
    gain = spread.share / known - 1
    if asked["enhanced"]:
        gain = np.where(gain <= -np.log(known) + TIE, gain, np.inf)
    figures = spread.most(gain)
    return figures, figures <= asked["beta"] + TIE


def _disclosure(spread: ValueSpread, _values: ReadValues, asked: Asked) -> Measured:
    """The largest change of a value's share, as a logarithm; infinite if a value of the table is not in the group."""
    changes = np.abs(np.log(spread.share / spread.table_share[spread.value]))
    figures = np.where(spread.distinct < np.count_nonzero(spread.table), np.inf, spread.most(changes))
    return figures, figures < asked["delta"] + TIE


def _deviation(spread: ValueSpread, values: ReadValues, asked: Asked) -> Measured:
    """The sum of squared deviations from the group's mean or, as the variance, their mean; missing ones left out."""
    numbers = values.numbers[spread.value]
    weights = np.where(np.isnan(numbers), 0.0, spread.count)
    numbers = np.nan_to_num(numbers)
    known = np.maximum(spread.sums(weights), 1)
    away = numbers - (spread.sums(weights * numbers) / known)[spread.group]
    rest = spread.sums(weights * away)  # not quite zero: the mean is rounded
    squares = np.maximum(spread.sums(weights * away**2) - rest**2 / known, 0.0)
    ((name, least),) = asked.items()
    figures = squares / known if name == "variance" else squares
    return figures, figures >= least * (1 - TIE)


MODELS: Mapping[str, DiversityMeasure] = {
    "distinct-l": DiversityMeasure(
        {"l": DemandParameter(1, empty=1)},
        "smallest",
        _distinct,
        "Every group holds as many different values as asked.",
        "Some groups hold fewer different values than asked.",
        by_rows=True,
    ),
    "entropy-l": DiversityMeasure(
        {"l": DemandParameter(1, empty=1)},
        "smallest",
        _entropy,
        "The values of every group are as evenly spread as asked.",
        "The values of some groups are less evenly spread than asked.",
    ),
    "recursive-cl": DiversityMeasure(
        {"c": DemandParameter(0, above=True), "l": DemandParameter(1, whole=True, empty=1)},
        "largest",
        _recursive,
        "In no group the most frequent value outweighs the rarer ones more than allowed.",
        "In some groups the most frequent value outweighs the rarer ones more than allowed.",
    ),
    "t-closeness": DiversityMeasure(
        {"t": DemandParameter(0, 1, empty=1)},
        "largest",
        _closeness,
        "The values of every group are distributed as closely to the whole table's as asked.",
        "The values of some groups are distributed less closely to the whole table's than asked.",
        reads="distance",
        words=("distance",),
    ),
    "alpha-k": DiversityMeasure(
        {"alpha": DemandParameter(0, 1, above=True, empty=1)},
        "largest",
        _confidence,
        "No value has a larger share of a group than allowed.",
        "In some groups a value has a larger share than allowed.",
    ),
    "beta-likeness": DiversityMeasure(
        {"beta": DemandParameter(0)},
        "largest",
        _likeness,
        "No group makes a value more likely than allowed.",
        "Some groups make a value more likely than allowed.",
        flags=("enhanced",),
    ),
    "delta-disclosure": DiversityMeasure(
        {"delta": DemandParameter(0)},
        "largest",
        _disclosure,
        "Every value has about the share in every group that it has in the whole table.",
        "Some groups lack a value of the table, or its share there differs more than allowed.",
    ),
    "squared-error": DiversityMeasure(
        {"error": DemandParameter(0, empty=0)},
        "smallest",
        _deviation,
        "The numbers of every group differ as much as asked.",
        "The numbers of some groups differ less than asked.",
        reads="numbers",
    ),
    "variance": DiversityMeasure(
        {"variance": DemandParameter(0, empty=0)},
        "smallest",
        _deviation,
        "The numbers of every group vary as much as asked.",
        "The numbers of some groups vary less than asked.",
        reads="numbers",
    ),
}

MAX_CONFIDENCE = DiversityMeasure(
    {"max_confidence": DemandParameter(0, 1, above=True)},
    "largest",
    _confidence,
    "No group makes a value of the target more certain than allowed.",
    "Some groups make a value of the target more certain than allowed.",
)


def _ordered(spread: ValueSpread) -> FloatArray:
    """The area between the two cumulated distributions.

    The group's is a staircase: from one of its values to the next it stays at one height, and the table's rises. So
    the area over a step is found from running sums of the table's, parted where the table's passes the height.
    """
    steps = len(spread.table) - 1
    if steps < 1:
        return np.zeros(len(spread.begin))
    table = np.cumsum(spread.table_share)[:-1]  # (value) all but the last, where both are 1
    area = np.append(0.0, np.cumsum(table))
    cumulated = np.append(0, np.cumsum(spread.count))
    height = (cumulated[1:] - cumulated[spread.begin][spread.group]) / spread.total[spread.group]
    last = np.append(spread.begin[1:], len(spread.group)) - 1
    after = np.append(spread.value[1:], 0)
    after[last] = steps
    start = np.minimum(spread.value, steps)
    passed = np.clip(np.searchsorted(table, height, "right"), start, after)
    below = height * (passed - start) - (area[passed] - area[start])
    above = (area[after] - area[passed]) - height * (after - passed)
    before = area[spread.value[spread.begin]]  # where the group's is still 0
    distances: FloatArray = np.maximum(spread.sums(below + above) + before, 0) / steps  # rounding may leave less than 0
    return distances


def _hierarchical(spread: ValueSpread, hierarchy: Hierarchy) -> FloatArray:
    """What is moved between the children of a node costs by the node's height (Li, Li, Venkatasubramanian 2007).

    Of a node's children, some have more persons of the group than by the table and some fewer; the smaller sum is
    moved between them. Both sums differ by what the node itself has more, so children that no person of the group is
    below need not be looked at.
    """
    distances, share = np.zeros(len(spread.begin)), spread.share
    wanted = np.zeros(len(hierarchy.heights))  # (node) the share of the whole table that is below it
    for level in hierarchy.nodes:
        there = level >= 0
        wanted += np.bincount(level[there], weights=spread.table_share[there], minlength=len(wanted))
    for level, below in zip(hierarchy.nodes[-2::-1], hierarchy.nodes[:0:-1], strict=True):
        pairs = np.flatnonzero(below[spread.value] >= 0)
        if not len(pairs):
            continue
        group, node, child = spread.group[pairs], level[spread.value[pairs]], below[spread.value[pairs]]
        first = np.flatnonzero((np.diff(group, prepend=-1) != 0) | (np.diff(child, prepend=-1) != 0))
        held = np.add.reduceat(share[pairs], first)
        more = np.maximum(held - wanted[child[first]], 0)
        group, node = group[first], node[first]
        first = np.flatnonzero((np.diff(group, prepend=-1) != 0) | (np.diff(node, prepend=-1) != 0))
        group, node = group[first], node[first]
        more = np.add.reduceat(more, first)
        fewer = more - (np.add.reduceat(held, first) - wanted[node])
        cost = hierarchy.heights[node] / hierarchy.heights[0] * np.maximum(np.minimum(more, fewer), 0)
        distances += np.bincount(group, weights=cost, minlength=len(distances))
    return distances


def measure_demands(
    demands: Sequence[DiversityDemand], raw: RawValues, *, counts: ValueCounts, evidence: Evidence
) -> list[Diversity]:
    """Every demand on one column; those that read its values otherwise than as counted count anew, once a way."""
    spread = cache(lambda *way: _spread(way, raw, counts=counts, evidence=evidence))
    measured = []
    for demand in demands:
        reason = _reason(demand, raw, evidence)
        if reason is not None:
            measured.append(unmeasured(demand, reason))
        else:
            read = spread(demand.measure.reads, demand.reading)
            measured.append(_measured(demand, *read, evidence=evidence))
    return measured


def groups_that_miss(demand: DiversityDemand, raw: RawValues, *, evidence: Evidence) -> IntArray:
    """The groups that are not as a demand on a column asks."""
    if _reason(demand, raw, evidence) is not None:
        return np.empty(0, np.int64)
    counts = count_values(evidence.persons, evidence.grouping, raw.column, sizes=evidence.sizes)
    spread, values = _spread((demand.measure.reads, demand.reading), raw, counts=counts, evidence=evidence)
    return spread.groups[~demand.measure.measure(spread, values, demand.parameters)[1]]


def _reason(demand: DiversityDemand, raw: RawValues, evidence: Evidence) -> str | None:
    """Why a demand cannot be checked; None if it can."""
    if not len(raw.series):
        return _NO_ROWS
    if evidence.persons_unknown and not demand.measure.by_rows:
        return PERSONS_UNKNOWN
    reading = demand.reading
    if demand.model == "max_confidence" and reading.classes is None and reading.equal_width is None:
        return _NO_CLASSES if type_of(raw, reading) in ("continuous", "date") else None
    return None


def _spread(
    key: tuple[Reads, Reading], raw: RawValues, *, counts: ValueCounts, evidence: Evidence
) -> tuple[ValueSpread, ReadValues]:
    """The spread of a column's values, read in one way."""
    column, values = read_values(raw, key[1], reads=key[0])
    if column is not raw.column:
        counts = count_values(evidence.persons, evidence.grouping, column, sizes=evidence.sizes)
    return spread_of(evidence.persons, column, counts=counts), values


def _measured(demand: DiversityDemand, spread: ValueSpread, values: ReadValues, *, evidence: Evidence) -> Diversity:
    """The worst group's figure, and whether all groups are as asked."""
    model = demand.measure
    figures, met = model.measure(spread, values, demand.parameters)
    worst = int(np.argmin(figures) if model.worst == "smallest" else np.argmax(figures))
    figure = CountedFigure(figures[worst].item(), int(evidence.sizes[spread.groups[worst]]))
    if not demand.is_asked:
        return replace(unmeasured(demand, _NOT_ASKED), found=figure)
    good = bool(met.all())
    diversity = replace(unmeasured(demand, model.good if good else model.bad), found=figure, met=good)
    if model.reads != "distance":
        return diversity
    return replace(diversity, settings=diversity.settings | {"distance": values.distance})


def unmeasured(demand: DiversityDemand, sentence: str) -> Diversity:
    """A demand that nothing was found about."""
    reading = demand.reading
    settings = {name: value for name, value in demand.parameters.items() if name != demand.measure.asked}
    if reading.classes is not None:
        settings["classes"] = [float(begin) for begin in reading.classes]
    if reading.equal_width is not None:
        settings["equal_width"] = reading.equal_width
    return Diversity(demand.column, demand.model, None, demand.asked, None, sentence, settings, demand.measure.by_rows)
