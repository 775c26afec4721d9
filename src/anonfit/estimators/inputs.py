# SPDX-License-Identifier: Apache-2.0
"""What scikit-learn hands to an estimator, as tables: frames of any kind, and arrays with columns x0, x1, …"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from anonfit.errors import RequestError, did_you_mean
from anonfit.tables.frames import from_frame

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "REMAINDERS",
    "array_column",
    "given_names",
    "is_frame",
    "refuse_twice",
    "require_known",
    "table_of",
]

REMAINDERS = ("passthrough", "drop")
"""What may become of columns that are no quasi-identifiers."""


def is_frame(source: Any) -> bool:
    """Whether it is a frame of a known kind, and not an array."""
    import polars as pl

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
    import polars as pl

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
    import polars as pl

    table = from_frame(source)
    absent = {name for name in names if name not in table.columns}
    if not absent or not absent <= set(spare):
        return source
    given = iter(table.get_columns())
    found = [pl.Series(name, [None] * len(table)) if name in absent else next(given, None) for name in names]
    return pl.DataFrame([column for column in [*found, *given] if column is not None])


def array_column(name: str, values: NDArray[Any]) -> pl.Series:
    """A column of an array; one of objects is what its values are, or their texts where they are mixed."""
    import polars as pl

    if values.dtype.kind not in "OUS":
        found = pl.Series(name, np.ascontiguousarray(values))
        return found.fill_nan(None) if found.dtype.is_float() else found
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


def require_known(name: str, word: Any, known: Sequence[str]) -> None:
    """Refuse a word that a parameter does not know."""
    if word not in known:
        raise RequestError(f"{name} = {word!r} is not known; {did_you_mean(str(word), known)}")
