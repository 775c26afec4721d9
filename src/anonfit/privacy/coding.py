# SPDX-License-Identifier: Apache-2.0
"""From a raw column to the sensitive column that models judge and the code of each row; and models asked about all
groups of a table at once, block by block, so that memory stays bounded whatever the number of groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.errors import DataError, TaxonomyError, counted
from anonfit.privacy.models import DiversityModel, SensitiveColumn
from anonfit.tables.codebook import code_column, column_type, typed
from anonfit.tables.scales import LARGEST_NUMBER, FixedPoint, fixed_point
from anonfit.tables.schema import ADVICE, Codes, Column, ColumnType, Domain, OrderedDomain, Role, name_positions
from anonfit.tables.taxonomy import Taxonomy
from anonfit.tables.taxonomy_leaves import advice_of, leaf_positions

ON_A_SCALE = (ColumnType.CONTINUOUS, ColumnType.DATE)


def sensitive_column(
    series: pl.Series,
    weights: NDArray[np.int64],
    *,
    type: ColumnType | None = None,  # noqa: A002 - the setting's name in a spec
    order: tuple[str, ...] = (),
    taxonomy: Taxonomy | None = None,
    date_format: str | None = None,
    entities: NDArray[np.uint32] | None = None,
) -> tuple[SensitiveColumn, NDArray[np.uint32]]:
    """Code a column that is released raw by the values that occur in it.

    Args:
        series: The values; null and NaN are missing, which is code 0.
        weights: The persons of each row.
        type: What is declared of the column; from the data if not given.
        order: The words of an ordinal column, lowest first.
        taxonomy: A tree over the values: codes then follow its leaves.
        date_format: How dates that are texts are written.
        entities: The person of each row, where persons have several: each is then counted once for a value, and
            `weights` not at all.

    Returns:
        The column, and the code of each row.

    Example:
        >>> import polars as pl
        >>> column, codes = sensitive_column(pl.Series("d", ["flu", None, "cold"]), np.ones(3, np.int64))
        >>> codes.tolist(), column.whole.tolist()
        ([2, 0, 1], [1, 1, 1])
    """
    _refuse_complex(series)
    values = typed(Column(series.name, Role.SENSITIVE, type, date_format=date_format), series)
    kind = column_type(Column(series.name, Role.SENSITIVE, type), values.dtype)
    domain, by_value = _code_by_value(values, kind)
    gap = int(values.null_count() > 0)
    distinct, used = _distinct(values, by_value)
    positions = _positions(distinct[gap:], kind, order, taxonomy)
    places = np.argsort(positions, kind="stable")
    arranged = used[gap:][places]  # the codes by value, in the order they shall have
    lookup = np.zeros(int(used.max(initial=0)) + 1, np.uint32)
    lookup[arranged] = np.arange(gap, len(used))
    codes = lookup[by_value]
    whole = persons_by_code(codes, len(used), weights=weights, entities=entities)
    numbers, scale, rounding = _numbers(values.name, domain, arranged, whole)
    column = SensitiveColumn(
        name=series.name,
        size=len(used),
        has_missing=bool(gap),
        whole=whole,
        numbers=numbers,
        scale=scale,
        taxonomy=taxonomy,
        ordered=_follows_order(kind, taxonomy, arranged),
        leaves=None if taxonomy is None else np.append(np.full(gap, -1), positions[places]),
        rounding=rounding,
    )
    return column, codes


def persons_by_code(
    codes: NDArray[np.uint32] | NDArray[np.int64],
    size: int,
    *,
    weights: NDArray[np.int64] | None = None,
    entities: NDArray[np.uint32] | None = None,
) -> NDArray[np.int64]:
    """How many persons have each code: rows by their weights, or different entities. (size,)"""
    if entities is not None:
        pairs = np.unique(codes.astype(np.int64) << 32 | entities)
        return np.bincount(pairs >> 32, minlength=size)
    if weights is None:
        return np.bincount(codes, minlength=size)
    persons = np.zeros(size, np.int64)
    np.add.at(persons, codes, weights)  # bincount would add floats
    return persons


def _refuse_complex(values: pl.Series) -> None:
    """Refuse a column whose values cannot be compared."""
    dtype = values.dtype
    if dtype.is_nested() or dtype in (pl.Binary, pl.Object, pl.Duration):
        raise DataError(
            f"column '{values.name}' is of type {dtype}, whose values are neither classes nor numbers; a "
            "sensitive column or a target needs plain values, so convert it."
        )


def _code_by_value(values: pl.Series, kind: ColumnType) -> tuple[Domain, Codes]:
    """Codes that follow the values themselves: numbers and dates by size, all others by their text."""
    plain = kind if kind in ON_A_SCALE else ColumnType.NOMINAL
    column = Column(values.name, Role.SENSITIVE, plain)
    # No value is too rare to be told apart here: k = 0.
    coded = code_column(column, values, persons=lambda _, count: np.zeros(count, np.int64), k=0)
    return coded.domain, coded.codes


def _distinct(values: pl.Series, codes: Codes) -> tuple[pl.Series, NDArray[np.int64]]:
    """One value of each code in use, and these codes."""
    used = np.flatnonzero(np.bincount(codes))
    rows = np.zeros(int(used.max(initial=0)) + 1, np.int64)
    rows[codes] = np.arange(len(codes))
    return values.gather(rows[used]), used


def _positions(
    distinct: pl.Series, kind: ColumnType, order: tuple[str, ...], taxonomy: Taxonomy | None
) -> NDArray[np.int64]:
    """Where each value, given in its natural order, stands in the declared one."""
    error: type[DataError | TaxonomyError]
    advice = ADVICE
    if taxonomy is not None:
        positions = leaf_positions(taxonomy, distinct, column=distinct.name)
        where, error, advice = "taxonomy", TaxonomyError, advice_of(taxonomy, distinct)
    elif kind == ColumnType.ORDINAL:
        positions = name_positions(order, distinct)
        where, error = "order", DataError
    else:
        return np.arange(len(distinct))
    unknown = int((positions < 0).sum())
    if unknown:
        # Nobody should learn the values of a sensitive column, so they are counted, not named.
        raise error(
            f"column '{distinct.name}': {unknown} of its "
            f"{counted(len(distinct), 'distinct value')} {'is' if unknown == 1 else 'are'} not in its {where}; "
            f"{advice}."
        )
    return positions.astype(np.int64)


def _follows_order(kind: ColumnType, taxonomy: Taxonomy | None, arranged: NDArray[np.int64]) -> bool:
    """Whether codes rise with the values: a taxonomy may put its leaves in another order."""
    if kind in ON_A_SCALE:
        return bool((np.diff(arranged) > 0).all())
    return kind == ColumnType.ORDINAL and taxonomy is None


def _numbers(
    name: str, domain: Domain, arranged: NDArray[np.int64], whole: NDArray[np.int64]
) -> tuple[NDArray[np.int64] | None, FixedPoint | None, float]:
    """The values of a column of numbers in fixed point, in the order of their codes, and how far they are off."""
    if not isinstance(domain, OrderedDomain) or domain.type != ColumnType.CONTINUOUS:
        return None, None, 0.0
    gap = int(domain.has_missing)
    values = domain.values.astype(np.float64) / 10 ** (getattr(domain.dtype, "scale", 0) or 0)
    if not len(values):
        return np.zeros(gap, np.int64), FixedPoint(0.0, 1.0), 0.0
    if max(-values[0], values[-1]) > LARGEST_NUMBER:
        raise DataError(f"column '{name}': some numbers are too large to be squared; divide them.")
    scale = fixed_point(float(values[0]), float(values[-1]), persons=int(whole.sum()))
    numbers = scale.quantize(values[arranged - gap])
    rounding = float(np.abs(scale.restore(numbers) - values[arranged - gap]).max())
    return np.append(np.zeros(gap, np.int64), numbers), scale, rounding


CELLS = 1 << 21
"""Pairs of a group and a value that are counted at a time: 16 MB, and a model needs a few times as much."""

ROWS = 1 << 20
"""Rows that are counted at a time, unless a single group has more."""


def groups_allowed(
    models: Sequence[DiversityModel],
    groups: NDArray[np.int64],
    codes: Mapping[str, NDArray[np.uint32]],
    *,
    count: int,
    weights: NDArray[np.int64] | None = None,
    entities: NDArray[np.uint32] | None = None,
) -> NDArray[np.bool_]:
    """Which groups of rows all models allow.

    Args:
        models: The models, each with the column of this very table: its whole is what groups are compared with.
        groups: The group of each row.
        codes: For every column of a model, by name, the code of each row.
        count: The number of groups.
        weights: The persons of each row; one if not given.
        entities: The person of each row, where persons have several: each is then counted once for a value in a
            group, and `weights` not at all.

    Returns:
        One answer per group; a group of nobody reveals nothing and is allowed.
    """
    allowed = np.ones(count, np.bool_)
    columns = {model.column.name: model.column for model in models}
    order = np.argsort(groups, kind="stable") if columns else np.zeros(0, np.int64)
    ends = np.cumsum(np.bincount(groups, minlength=count))
    for name, column in columns.items():
        asked = [model for model in models if model.column.name == name]
        for block, rows in _blocks(column, order, ends):
            # cells: the pair of a group of the block and a value, for each of the block's rows.
            cells = np.searchsorted(block, groups[rows]) * column.size + codes[name][rows]
            counts = persons_by_code(
                cells,
                len(block) * column.size,
                weights=None if weights is None else weights[rows],
                entities=None if entities is None else entities[rows],
            ).reshape(len(block), column.size)
            for model in asked:
                allowed[block] &= model.allows(counts)
    return allowed


def _blocks(
    column: SensitiveColumn, order: NDArray[np.int64], ends: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Groups that have rows, as many at a time as may be counted together, and their rows.

    order: the rows, by group; ends: where the rows of each group end in it.
    """
    filled = np.flatnonzero(np.diff(ends, prepend=0))
    stops = ends[filled]
    most = max(CELLS // max(column.size, 1), 1)
    first = start = 0
    while first < len(filled):
        within_rows = int(np.searchsorted(stops, start + ROWS, side="right"))
        after = max(min(first + most, within_rows), first + 1)
        end = int(stops[after - 1])
        yield filled[first:after], order[start:end]
        first, start = after, end
