# SPDX-License-Identifier: Apache-2.0
"""What scikit-learn hands to an estimator, as tables: X as a frame of any kind or an array, and y as target columns
beside it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from anonfit.criteria.objectives import AUTO, OBJECTIVES, Objective
from anonfit.errors import DataError, RequestError, counted, did_you_mean, listed
from anonfit.tables.codebook import column_type
from anonfit.tables.frames import from_frame
from anonfit.tables.schema import Column, Role
from anonfit.workload.targets import TargetRequest, is_numeric

REMAINDERS = ("passthrough", "drop")
"""What may become of columns that are no quasi-identifiers."""


def is_frame(source: Any) -> bool:
    """Whether it is a frame of a known kind, and not an array."""
    if isinstance(source, pl.DataFrame | pl.LazyFrame):
        return True
    kind = type(source).__module__.split(".")[0]
    return (kind == "pandas" and hasattr(source, "columns")) or (kind == "pyarrow" and hasattr(source, "schema"))


def table_of(
    estimator: Any, source: Any, *, reset: bool, at_least: int = 1, spare: Collection[str] = ()
) -> pl.DataFrame:
    """The rows that an estimator is given; their columns are kept (`reset`), or held against those it was fitted
    with, of which a frame may leave the `spare` ones out.
    """
    if is_frame(source):
        if isinstance(source, pl.LazyFrame):
            source = source.collect()
        if spare and not reset:
            source = _with_spare(source, estimator.columns_in_, spare)
        validate_data(estimator, source, reset=reset, skip_check_array=True)
        table = from_frame(source)
    else:
        array = validate_data(
            estimator, source, reset=reset, dtype=None, ensure_all_finite="allow-nan", ensure_min_samples=at_least
        )
        table = pl.DataFrame([array_column(f"x{index}", array[:, index]) for index in range(array.shape[1])])
    # An array stands for the columns of a frame, and the other way round, by place; scikit-learn warns of it.
    return table if reset else pl.DataFrame(table.get_columns(), schema=list(estimator.columns_in_))


def _with_spare(source: Any, names: Sequence[str], spare: Collection[str]) -> Any:
    """A frame in which spare columns that are left out stand empty; as it is, if none is or others are too."""
    table = from_frame(source)
    absent = {name for name in names if name not in table.columns}
    if not absent or not absent <= set(spare):
        return source
    given = iter(table.get_columns())
    columns = [pl.Series(name, [None] * len(table)) if name in absent else next(given, None) for name in names]
    return pl.DataFrame([column for column in [*columns, *given] if column is not None])


def array_column(name: str, values: NDArray[Any]) -> pl.Series:
    """A column of an array; one of objects is what its values are, or their texts where they are mixed."""
    if values.dtype.kind not in "OUS":
        column = pl.Series(name, np.ascontiguousarray(values))
        return column.fill_nan(None) if column.dtype.is_float() else column
    known = [None if value is None or value != value else value for value in values.tolist()]
    try:
        return pl.Series(name, known, strict=True)
    except (TypeError, pl.exceptions.PolarsError):
        return pl.Series(name, [None if value is None else str(value) for value in known], dtype=pl.String)


def given_names(estimator: Any, names: Sequence[str], input_features: Any) -> dict[str, str]:
    """Other names for the columns an estimator was fitted with, as `get_feature_names_out` takes them."""
    check_is_fitted(estimator)
    if input_features is None:
        return {}
    given = [str(name) for name in input_features]
    known = getattr(estimator, "feature_names_in_", None)
    if known is not None and given != [str(name) for name in known]:
        raise ValueError("input_features is not equal to feature_names_in_")
    if len(given) != len(names):
        raise ValueError(
            f"input_features should have length equal to number of features ({len(names)}), got {len(given)}"
        )
    return dict(zip(names, given, strict=True))


def refuse_twice(names: Sequence[str]) -> None:
    """Features need names of their own."""
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise RequestError(f"two features would be called {twice[0]!r}; rename the column that makes the second one.")


def named_columns(given: Any) -> list[str]:
    """The columns that a parameter names; one may stand alone."""
    if given is None:
        return []
    return [given] if isinstance(given, str) else [str(name) for name in given]


def require_known(name: str, word: Any, known: Sequence[str]) -> None:
    """Refuse a word that a parameter does not know."""
    if word not in known:
        raise RequestError(f"{name} = {word!r} is not known; {did_you_mean(str(word), known)}")


@dataclass(frozen=True, slots=True)
class Targets:
    """The columns of y, and the words for them that `anonymize` takes."""

    columns: tuple[pl.Series, ...] = ()
    entries: tuple[dict[str, Any], ...] = ()
    types: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [column.name for column in self.columns]


def targets_of(
    y: Any,
    settings: Sequence[str | Mapping[str, Any]] | None,
    *,
    table: pl.DataFrame,
    criterion: str = "auto",
) -> Targets:
    """y as target columns beside a table. `settings` has one entry for each column of y, and may have others for
    quasi-identifiers of the table that are targets too.
    """
    inner, outer = _settings(settings, table.columns)
    if y is None:
        if outer:
            raise RequestError("targets says how y is used, and there is no y; give y to fit.")
        return Targets(entries=tuple(inner))
    check_consistent_length(table, y)
    columns = _columns(y)
    settings_of_y: list[dict[str, Any]] = outer or [{} for _ in columns]
    if len(settings_of_y) != len(columns):
        raise RequestError(
            f"targets has {len(settings_of_y)} entries for y, which has {counted(len(columns), 'column')}; give one "
            "for each, or none."
        )
    names = _names([column.name for column in columns], settings_of_y, table.columns)
    columns = tuple(column.alias(name) for column, name in zip(columns, names, strict=True))
    if gaps := missing_counts(columns):
        raise DataError(
            f"y has missing values ({listed(gaps)}: {counted(max(gaps.values()), 'row')}); leave those rows out of X "
            "and y, or fill them."
        )
    objective, types, entries = OBJECTIVES.get(criterion, AUTO), {}, []
    for column, entry in zip(columns, settings_of_y, strict=True):
        types[column.name] = _kind(column, entry, objective)
        entries.append({key: value for key, value in entry.items() if key != "type"} | {"column": column.name})
    return Targets(columns, (*entries, *inner), types)


def _columns(y: Any) -> tuple[pl.Series, ...]:
    """The columns of y; those that have no name get an empty one."""
    if is_frame(y):
        return tuple(from_frame(y).get_columns())
    if isinstance(y, pl.Series):
        return (y,)
    if type(y).__module__.split(".")[0] == "pandas" and hasattr(y, "to_frame"):
        name = "" if getattr(y, "name", None) is None else str(y.name)
        return (from_frame(y.to_frame("y"))["y"].alias(name),)
    array = np.asarray(y)
    if array.ndim not in (1, 2) or array.shape[-1] == 0:
        raise DataError(f"y must be a column of values or several; found an array of the shape {array.shape}.")
    columns = array[:, None] if array.ndim == 1 else array
    return tuple(array_column("", columns[:, index]) for index in range(columns.shape[1]))


def _settings(
    given: Sequence[str | Mapping[str, Any]] | None, taken: Collection[str]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The entries of targets for columns of the table, and those for columns of y."""
    entries = [given] if isinstance(given, str | Mapping) else list(given or ())
    if not all(isinstance(entry, str | Mapping) for entry in entries):
        raise RequestError('an entry of targets is a name, or settings such as {"weight": 0.5, "type": "nominal"}.')
    tables = [{"column": entry} if isinstance(entry, str) else dict(entry) for entry in entries]
    inner = [table for table in tables if table.get("column") in taken]
    return inner, [table for table in tables if table.get("column") not in taken]


def _names(own: Sequence[str], settings: Sequence[Mapping[str, Any]], taken: Collection[str]) -> list[str]:
    """A name for each target that no other column has: the one in its settings, its own, or `target`."""
    names: list[str] = []
    for name, entry in zip(own, settings, strict=True):
        wanted = str(entry.get("column") or name or "target")
        candidates = chain([wanted], (f"{wanted}_{number}" for number in count(2)))
        names.append(next(free for free in candidates if free not in taken and free not in names))
    return names


def missing_counts(columns: Iterable[pl.Series]) -> dict[str, int]:
    """How many values of each column are missing or NaN, of those columns that have such."""
    gaps = {
        column.name: column.null_count() + (int(column.is_nan().sum()) if column.dtype.is_float() else 0)
        for column in columns
    }
    return {name: count for name, count in gaps.items() if count}


def _kind(column: pl.Series, entry: Mapping[str, Any], objective: Objective) -> str:
    """The type of a target column: what its entry declares, or what `anonymize` would take it for."""
    if entry.get("type"):
        return str(entry["type"])
    declared = Column(column.name, Role.TARGET)
    if entry.get("classes") or entry.get("equal_width") or is_numeric(TargetRequest(""), declared, column, objective):
        return str(column_type(declared, column.dtype))
    return "nominal"
