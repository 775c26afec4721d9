# SPDX-License-Identifier: Apache-2.0
"""The genetic algorithm of Iyengar (KDD 2002): the opponent of top-down refinement in TKDE 2007.

A chromosome says where every column is divided: a bit for each place between two numbers, and for each inner node of a
taxonomy a bit that refines it, which counts where all nodes above it are refined. Rows in groups of fewer than k are
suppressed, and the metric charges them as wholly lost. As in his paper a steady state (Whitley's Genitor) is bred: two
parents drawn by rank, one child, which takes the place of the worst if it is better. His population and 18 hours are
not repeated: the number of chromosomes that are looked at is fixed, so that the search ends, and ends alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.runtime.compiling import kernel
from anonfit.tables.taxonomy import Taxonomy

Metric: TypeAlias = Literal["LM", "CM"]
Codes: TypeAlias = NDArray[np.int64]
Bits: TypeAlias = NDArray[np.bool_]
Numbers: TypeAlias = NDArray[np.float64]

POPULATION = 100
CHROMOSOMES = 4000
"""How many are looked at, unless another number is asked for."""
BIAS = 1.6
"""How much likelier than a middling one the best chromosome is to be a parent (Genitor)."""
SUPPRESSED = "*"


@dataclass(frozen=True, slots=True)
class Axis:
    """A column in codes, and how bits divide it.

    Going down from the whole column, row v of `paths` names the bits that are asked on the way to code v, and `places`
    the part that v lies in where that bit says no; the last bit of a chromosome always says no. In a column of numbers,
    each bit stands for a cut and there are no paths.
    """

    name: str
    values: Sequence[Any]
    taxonomy: Taxonomy | None
    bits: int
    paths: Codes  # (code, depth)
    places: Codes  # (code, depth)
    losses: Numbers  # of the parts of a taxonomy, by node; of numbers, the values in shares of their range

    @classmethod
    def of_numbers(cls, values: pl.Series) -> Axis:
        """A column of numbers."""
        known = values.unique().sort().to_list()
        scale = np.array(known, np.float64)
        losses = (scale - scale[0]) / max(float(scale[-1] - scale[0]), 1e-12)
        nothing = np.zeros((0, 0), np.int64)
        return cls(values.name, known, None, len(known) - 1, nothing, nothing, losses)

    @classmethod
    def of_names(cls, name: str, taxonomy: Taxonomy) -> Axis:
        """A column of names with a taxonomy."""
        nodes = len(taxonomy.first_leaf)
        children = [list(taxonomy.children(node)) for node in range(nodes)]
        inner = {node: bit for bit, node in enumerate(node for node in range(nodes) if children[node])}
        size = len(taxonomy.leaves)
        chains = []
        for leaf in range(size):
            chain = [0]
            while children[chain[-1]]:
                chain.append(
                    next(c for c in children[chain[-1]] if taxonomy.first_leaf[c] <= leaf <= taxonomy.last_leaf[c])
                )
            chains.append(chain)
        depth = max(len(chain) for chain in chains)
        paths = np.full((size, depth), -1, np.int64)
        places = np.zeros((size, depth), np.int64)
        for leaf, chain in enumerate(chains):
            paths[leaf, : len(chain)] = [inner.get(node, -1) for node in chain]
            places[leaf] = chain + [chain[-1]] * (depth - len(chain))
        leaves = np.array([taxonomy.last_leaf[node] - taxonomy.first_leaf[node] for node in range(nodes)], np.float64)
        return cls(name, list(taxonomy.leaves), taxonomy, len(inner), paths, places, leaves / max(size - 1, 1))

    @property
    def parts(self) -> int:
        """A number above that of every part."""
        return len(self.losses)

    def codes(self, values: pl.Series) -> Codes:
        """The code of each value; a number that was not there is the next one below it."""
        if self.taxonomy is None:
            places = np.searchsorted(np.array(self.values, np.float64), values.to_numpy(), side="right") - 1
            return np.maximum(places, 0).astype(np.int64)
        return np.array([self.taxonomy.leaf_position[value] for value in values.to_list()], np.int64)

    def loss(self, first: int, last: int) -> float:
        """What a part of these codes has lost."""
        if self.taxonomy is None:
            return float(self.losses[last] - self.losses[first])
        return (last - first) / max(len(self.values) - 1, 1)

    def divided(self, bits: Bits) -> tuple[Codes, Numbers]:
        """The part of each code, and what a row with that code has lost: the share of the other values it may be."""
        if self.taxonomy is None:
            part = np.concatenate([[0], np.cumsum(bits)])
            first = np.flatnonzero(np.concatenate([[True], bits]))
            last = np.concatenate([first[1:] - 1, [len(part) - 1]])
            return part, (self.losses[last] - self.losses[first])[part]
        refined = np.append(bits, False)
        place = self.places[np.arange(len(self.places)), (~refined[self.paths]).argmax(axis=1)]
        return place, self.losses[place]


@dataclass
class GeneticSearch:
    """Learns parts of every column from rows, and recodes any rows by them."""

    metric: Metric
    k: int
    taxonomies: Mapping[str, Any]
    seed: int = 0
    chromosomes: int = CHROMOSOMES
    cost: float = field(default=0.0, init=False)
    """The metric of what was found: wrong rows of all rows (CM), or what a value has lost on average (LM)."""
    suppressed: float = field(default=0.0, init=False)
    """The share of rows that are suppressed."""
    _axes: list[Axis] = field(default_factory=list, init=False, repr=False)
    _best: Bits = field(default_factory=lambda: np.zeros(0, bool), init=False, repr=False)
    _kept: Bits = field(default_factory=lambda: np.zeros(0, bool), init=False, repr=False)

    def fit(self, frame: pl.DataFrame, labels: pl.Series) -> GeneticSearch:
        """Breed chromosomes; the best one is kept."""
        self._axes = [self.axis(frame[name]) for name in frame.columns]
        rows = _Rows.of(self._axes, frame, labels, self.k)
        rng = np.random.default_rng(self.seed)
        pool = [self._drawn(rng) for _ in range(POPULATION - 1)] + [np.zeros(self._size, bool)]
        costs = [rows.cost(self._axes, one, self.metric) for one in pool]
        order = sorted(range(len(pool)), key=lambda place: costs[place])
        pool, costs = [pool[place] for place in order], [costs[place] for place in order]
        seen = {one.tobytes() for one in pool}
        for _ in range(self.chromosomes - POPULATION):
            child = self._changed(self._crossed(pool[_ranked(rng)], pool[_ranked(rng)], rng), rng)
            name = child.tobytes()
            if name in seen:
                continue
            seen.add(name)
            cost = rows.cost(self._axes, child, self.metric)
            if cost < costs[-1]:
                place = int(np.searchsorted(costs, cost))
                pool.insert(place, child)
                costs.insert(place, cost)
                pool.pop()
                costs.pop()
        self._best = pool[0]
        self._kept = rows.kept(self._axes, self._best)
        self.suppressed = 1 - float(self._kept.mean())
        per = len(frame) * (1 if self.metric == "CM" else len(self._axes))
        self.cost = costs[0] / per
        return self

    def apply(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Recode rows: the name of each value's part."""
        columns = []
        for axis, bits in zip(self._axes, self._divided(self._best), strict=True):
            part = axis.divided(bits)[0][axis.codes(frame[axis.name])]
            columns.append(pl.Series(axis.name, [f"part {place}" for place in part.tolist()]))
        return pl.DataFrame(columns)

    def released(self, frame: pl.DataFrame) -> pl.DataFrame:
        """What the rows it was taught with become: recoded, and nothing told of those that are suppressed."""
        kept = pl.Series(self._kept)
        recoded = self.apply(frame)
        return recoded.select(
            pl.when(kept).then(pl.col(name)).otherwise(pl.lit(SUPPRESSED)).alias(name) for name in recoded.columns
        )

    def axis(self, values: pl.Series) -> Axis:
        """A column in codes."""
        tree = self.taxonomies.get(values.name)
        return Axis.of_numbers(values) if tree is None else Axis.of_names(values.name, Taxonomy.from_tree(tree))

    @property
    def _size(self) -> int:
        return sum(axis.bits for axis in self._axes)

    def _divided(self, bits: Bits) -> list[Bits]:
        """The bits of each column."""
        return np.split(bits, np.cumsum([axis.bits for axis in self._axes])[:-1])

    def _drawn(self, rng: np.random.Generator) -> Bits:
        """A chromosome that leaves about half of the columns whole, and divides others more or less."""
        parts = []
        for axis in self._axes:
            share = rng.choice([0.0, rng.random()])
            if axis.taxonomy is None:
                share *= min(8 / max(axis.bits, 1), 1.0)
            parts.append(rng.random(axis.bits) < share)
        return np.concatenate(parts)

    def _crossed(self, first: Bits, second: Bits, rng: np.random.Generator) -> Bits:
        """A child: each column of one parent or the other, or its beginning of one and its end of the other."""
        parts = []
        for one, other in zip(self._divided(first), self._divided(second), strict=True):
            if rng.random() < 0.5:
                one, other = other, one
            cut = int(rng.integers(0, len(one) + 1)) if rng.random() < 0.25 else len(one)
            parts.append(np.concatenate([one[:cut], other[cut:]]))
        return np.concatenate(parts)

    def _changed(self, bits: Bits, rng: np.random.Generator) -> Bits:
        """A few bits the other way, each column as likely to be changed as another; cuts of numbers may also move."""
        parts = self._divided(bits)
        for _ in range(int(rng.integers(0, 3))):
            number = int(rng.integers(0, len(parts)))
            part = parts[number].copy()
            if not len(part):
                continue
            cuts = np.flatnonzero(part)
            if self._axes[number].taxonomy is None and len(cuts) and rng.random() < 0.7:
                cut = int(rng.choice(cuts))
                part[cut] = False
                if rng.random() < 0.7:  # else it is gone, and two intervals are one
                    part[int(np.clip(cut + rng.integers(-5, 6), 0, len(part) - 1))] = True
            else:
                part[int(rng.integers(0, len(part)))] ^= True
            parts[number] = part
        return np.concatenate(parts)


def _ranked(rng: np.random.Generator) -> int:
    """A place in the population, the better the likelier, as Genitor draws it."""
    drawn = (BIAS - np.sqrt(BIAS * BIAS - 4 * (BIAS - 1) * rng.random())) / (2 * (BIAS - 1))
    return min(int(POPULATION * drawn), POPULATION - 1)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows in codes, those that are alike as one, and what their chromosomes cost."""

    codes: Codes  # (different row, column)
    counts: Codes  # (different row, class)
    which: Codes  # (row,): its different row
    k: int

    @classmethod
    def of(cls, axes: Sequence[Axis], frame: pl.DataFrame, labels: pl.Series, k: int) -> _Rows:
        codes = np.stack([axis.codes(frame[axis.name]) for axis in axes], axis=1)
        classes = labels.rank("dense").to_numpy().astype(np.int64) - 1
        different, which = np.unique(codes, axis=0, return_inverse=True)
        counts = np.zeros((len(different), int(classes.max()) + 1), np.int64)
        np.add.at(counts, (which.ravel(), classes), 1)
        return cls(different, counts, which.ravel(), k)

    def _parts(self, axes: Sequence[Axis], bits: Bits) -> tuple[Codes, Numbers, Codes]:
        """For each column and code the part and the loss, and how many parts there may be."""
        size = int(self.codes.max()) + 1
        maps, losses = np.zeros((len(axes), size), np.int64), np.zeros((len(axes), size))
        split = np.split(bits, np.cumsum([axis.bits for axis in axes])[:-1])
        for number, (axis, own) in enumerate(zip(axes, split, strict=True)):
            part, loss = axis.divided(own)
            maps[number, : len(part)], losses[number, : len(part)] = part[:size], loss[:size]
        return maps, losses, np.array([axis.parts for axis in axes], np.int64)

    def cost(self, axes: Sequence[Axis], bits: Bits, metric: Metric) -> float:
        """The sum of the metric over all rows; of chromosomes with equally many wrong rows, the loss decides."""
        maps, losses, sizes = self._parts(axes, bits)
        groups = _grouped(self.codes, maps, sizes)
        wrong, loss = _charged(groups, self.codes, self.counts, losses, self.k)
        return loss if metric == "LM" else wrong + loss / 1e9

    def kept(self, axes: Sequence[Axis], bits: Bits) -> Bits:
        """Which rows are in groups of at least k."""
        maps, _, sizes = self._parts(axes, bits)
        groups = _grouped(self.codes, maps, sizes)
        persons = np.bincount(groups, self.counts.sum(axis=1))
        kept: Bits = (persons[groups] >= self.k)[self.which]
        return kept


@kernel
def _grouped(codes: Codes, maps: Codes, sizes: Codes) -> Codes:
    """The number of each row's group."""
    rows, columns = codes.shape
    room = 1
    while room < 2 * rows:
        room *= 2
    keys = np.full(room, -1, np.int64)
    numbers = np.empty(room, np.int64)
    groups = np.empty(rows, np.int64)
    known = 0
    for row in range(rows):
        key = 0
        for column in range(columns):
            key = key * sizes[column] + maps[column, codes[row, column]]
        slot = (key * 0x9E3779B97F4A7C1 >> 17) & (room - 1)
        while keys[slot] != -1 and keys[slot] != key:
            slot = (slot + 1) & (room - 1)
        if keys[slot] == -1:
            keys[slot] = key
            numbers[slot] = known
            known += 1
        groups[row] = numbers[slot]
    return groups


@kernel
def _charged(groups: Codes, codes: Codes, counts: Codes, losses: Numbers, k: int) -> tuple[float, float]:
    """How many rows are suppressed or not of their group's most frequent class, and what all rows have lost."""
    rows, columns = codes.shape
    classes = counts.shape[1]
    held = np.zeros((groups.max() + 1, classes), np.int64)
    lost = np.zeros(groups.max() + 1)
    for row in range(rows):
        persons = 0
        for label in range(classes):
            held[groups[row], label] += counts[row, label]
            persons += counts[row, label]
        own = 0.0
        for column in range(columns):
            own += losses[column, codes[row, column]]
        lost[groups[row]] += persons * own
    wrong, loss = 0.0, 0.0
    for group in range(len(held)):
        persons = held[group].sum()
        if persons < k:
            wrong += persons
            loss += persons * columns
        else:
            wrong += persons - held[group].max()
            loss += lost[group]
    return wrong, loss


def cost_of_parts(
    metric: Metric, taxonomies: Mapping[str, Any], frame: pl.DataFrame, recoded: pl.DataFrame, labels: pl.Series
) -> float:
    """What parts that were found in another way, and suppress nothing, cost by a metric.

    Args:
        metric: The metric.
        taxonomies: By column.
        frame: The rows.
        recoded: The name of the part of each value. A part is taken to be what its rows have: if it holds more, it has
            lost more.
        labels: The classes.
    """
    if metric == "CM":
        counts = recoded.with_columns(labels.alias("class of the row")).group_by(pl.all()).len()
        largest = counts.group_by(recoded.columns).agg(pl.col("len").max())["len"].sum()
        return 1 - float(largest) / len(frame)
    search = GeneticSearch(metric, 1, taxonomies)
    lost = 0.0
    for name in frame.columns:
        axis = search.axis(frame[name])
        ends = pl.DataFrame({"code": axis.codes(frame[name]), "part": recoded[name].cast(pl.String)})
        for first, last, rows in (
            (
                ends.group_by("part").agg(
                    pl.col("code").min().alias("first"), pl.col("code").max().alias("last"), pl.len()
                )
            )
            .select("first", "last", "len")
            .iter_rows()
        ):
            lost += rows * axis.loss(first, last)
    return lost / (len(frame) * frame.width)
