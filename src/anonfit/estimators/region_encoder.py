# SPDX-License-Identifier: Apache-2.0
"""Learning from regions: released labels or bounds become the numeric features that a learner needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from anonfit.errors import DataError, RequestError
from anonfit.estimators.features import Encoding, LineColumn, Numbers, side_by_side
from anonfit.estimators.inputs import REMAINDERS, given_names, refuse_twice, require_known, table_of
from anonfit.estimators.learned import Declared, declared, learn_bounds, learn_labels
from anonfit.estimators.reading import BoundsReader, LabelReader, RawReader, Reader, bounds_names, is_raw
from anonfit.estimators.recoded import feature_column, meaning_of
from anonfit.recoding.columns import RecodedColumn
from anonfit.recoding.recoding import Recoding

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

__all__ = ["RegionEncoder"]


class RegionEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turns the generalized values of a release into numbers.

    Args:
        encoding: `ends`, two features for each column: the lower and the upper end of an interval, or the first and
            last position among the leaves; or `expected`: what is expected if values are spread evenly over the
            region, that is the middle of an interval and each name's share.
        recoding: The recoding of the release, the best source of what labels mean. Without it the labels
            themselves are read.
        types: `continuous`, `date`, `ordinal` or `nominal` for columns without a recoding whose labels do not say.
        orders: The words of ordinal columns without a recoding, lowest first.
        taxonomies: The taxonomies of nominal columns without a recoding.
        remainder: What becomes of columns of numbers that are not generalized: `passthrough` or `drop`.

    Example:
        >>> import polars as pl
        >>> released = pl.DataFrame({"age": ["< 30", "[30, 40)", "≥ 40"]})
        >>> RegionEncoder().fit_transform(released).tolist()
        [[20.0, 30.0], [30.0, 40.0], [40.0, 50.0]]
    """

    def __init__(
        self,
        encoding: str = "ends",
        recoding: Recoding | None = None,
        *,
        types: Mapping[str, str] | None = None,
        orders: Mapping[str, Sequence[str]] | None = None,
        taxonomies: Mapping[str, Any] | None = None,
        remainder: str = "passthrough",
    ) -> None:
        self.encoding = encoding
        self.recoding = recoding
        self.types = types
        self.orders = orders
        self.taxonomies = taxonomies
        self.remainder = remainder

    def __sklearn_tags__(self) -> Any:
        """Labels are texts, and an empty cell is a missing value."""
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = True
        return tags

    def fit(self, X: Any, y: Any = None) -> RegionEncoder:  # noqa: N803, ARG002 - scikit-learn's names
        """Learn what the columns mean and where their open ends are closed.

        Args:
            X: Rows of a release: a polars, pandas or Arrow frame, or an array.
            y: Not used; there for pipelines.

        Returns:
            The encoder.
        """
        _check_words(self)
        table = table_of(self, X, reset=True)
        if self.recoding is None:
            found = list(_learned(table, declared(self.types, self.orders, self.taxonomies)))
        else:
            found = list(_recoded(table, self.recoding))
        self.readers_: tuple[Reader, ...] = tuple(
            reader for reader in found if self.remainder == "passthrough" or not isinstance(reader, RawReader)
        )
        for reader in self.readers_:
            if isinstance(reader, RawReader):
                reader.require_numbers(table)
        self.columns_in_ = tuple(table.columns)
        refuse_twice(list(self.get_feature_names_out()))
        return self

    def transform(self, X: Any) -> Numbers:  # noqa: N803 - scikit-learn's name
        """The features of rows of a release, or of rows that its recoding was applied to.

        Args:
            X: The columns that the encoder was fitted with.

        Returns:
            An array with one row for each row of `X`, or what `set_output` asks for.
        """
        check_is_fitted(self)
        table = table_of(self, X, reset=False)
        encoding = Encoding(self.encoding)
        return side_by_side([reader.numbers(table, encoding) for reader in self.readers_], len(table))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """The names of the features.

        Args:
            input_features: Names for the columns of an array.

        Returns:
            `age_lower`, `age_upper` and `age_missing`, or `age`, `country=FR` and `country_missing`.
        """
        check_is_fitted(self, "readers_")
        names = given_names(self, self.columns_in_, input_features)
        encoding = Encoding(self.encoding)
        return np.array([name for reader in self.readers_ for name in reader.features(encoding, names)], dtype=object)


def _check_words(encoder: RegionEncoder) -> None:
    """Refuse settings that are not known, and those that a recoding makes pointless."""
    require_known("encoding", encoder.encoding, tuple(Encoding))
    require_known("remainder", encoder.remainder, REMAINDERS)
    if encoder.recoding is None:
        return
    if not isinstance(encoder.recoding, Recoding):
        raise RequestError(
            f"recoding must be a Recoding, such as release.recoding; found {type(encoder.recoding).__name__}."
        )
    for name in ("types", "orders", "taxonomies"):
        if getattr(encoder, name):
            raise RequestError(f"{name} is for columns without a recoding; the recoding says what its columns are.")


def _bounds_of(table: pl.DataFrame, names: Iterable[str]) -> dict[str, str]:
    """Whose bounds the columns of a table are, of these columns that may have some."""
    found = [name for name in names if name not in table.columns]
    return {part: name for name in found for part in bounds_names(name) if part in table.columns}


def _learned(table: pl.DataFrame, told: Declared) -> Iterator[Reader]:
    """The readers of a table whose labels must speak for themselves, in the order of its columns."""
    lower = [name.removesuffix("_lower") for name in table.columns if name.endswith("_lower")]
    bounds = _bounds_of(table, [name for name in lower if bounds_names(name)[1] in table.columns])
    done: set[str] = set()
    for name in table.columns:
        if name in bounds:
            if bounds[name] not in done:
                yield learn_bounds(table, bounds[name], told)
            done.add(bounds[name])
        elif is_raw(table[name].dtype) and told.meaning(name) is None:
            yield RawReader(name)
        else:
            yield learn_labels(table[name], told)


def _recoded(table: pl.DataFrame, recoding: Recoding) -> Iterator[Reader]:
    """The readers of a table of which a recoding says what it means, in the order of its columns."""
    known = {column.name: column for column in recoding.columns}
    bounds = _bounds_of(table, [name for name in known if isinstance(feature_column(known[name]), LineColumn)])
    if not any(name in known or name in bounds for name in table.columns):
        raise DataError("the table has none of the columns of the recoding; give the release that it belongs to.")
    done: set[str] = set()
    for name in table.columns:
        if name in known:
            yield LabelReader(meaning_of(known[name]), feature_column(known[name]))
        elif name in bounds:
            if bounds[name] not in done:
                yield _bounds_reader(table, known[bounds[name]])
            done.add(bounds[name])
        else:
            yield RawReader(name)


def _bounds_reader(table: pl.DataFrame, column: RecodedColumn) -> BoundsReader:
    names = bounds_names(column.name)[: 3 if column.has_missing else 2]
    absent = [name for name in names if name not in table.columns]
    if absent:
        raise DataError(f"the bounds of '{column.name}' need the column '{absent[0]}', which the table has not.")
    return BoundsReader(meaning_of(column), feature_column(column), names)
