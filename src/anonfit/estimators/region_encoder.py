# SPDX-License-Identifier: Apache-2.0
"""Learning from regions: a release's regions as numbers that any learner takes, by the columns that were seen when it
was fitted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import polars as pl
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from anonfit.auditing.labels import ValueSet, read_label
from anonfit.auditing.meanings import LabelMeaning, LabelTree, LabelType
from anonfit.errors import DataError, RequestError, did_you_mean
from anonfit.estimators import features, reading
from anonfit.estimators.features import Encoding, FeatureColumn, LeafColumn, LineColumn, Numbers, feature_column
from anonfit.estimators.inputs import REMAINDERS, given_names, refuse_twice, require_known, table_of
from anonfit.estimators.reading import BoundsReader, LabelReader, RawReader, Reader, bounds_names, distinct_texts
from anonfit.recoding.recoding import Recoding
from anonfit.tables.taxonomy import Taxonomy
from anonfit.tables.taxonomy_files import read_taxonomy

if TYPE_CHECKING:
    from numpy.typing import NDArray

_INTERVAL = re.compile(r"\[.*, .*[)\]]|[<≥] .*", re.DOTALL)


Meanings = Mapping[str, LabelMeaning]
"""What is declared of columns that no recoding describes."""


def declared_meanings(
    types: Mapping[str, str] | None, orders: Mapping[str, Sequence[str]] | None, taxonomies: Mapping[str, Any] | None
) -> Meanings:
    """How labels of columns are read by the arguments of the encoder; those that are wrong are refused."""
    meanings: dict[str, LabelMeaning] = {}
    for name, word in (types or {}).items():
        if word not in get_args(LabelType):
            raise RequestError(f"types: '{word}' of column '{name}'; {did_you_mean(str(word), get_args(LabelType))}")
        if word == "ordinal" and name not in (orders or {}):
            raise RequestError(f"types: column '{name}' is ordinal; give its words in orders, lowest first.")
        meanings[name] = LabelMeaning(name, word)  # type: ignore[arg-type]
    for name, words in (orders or {}).items():
        meanings[name] = LabelMeaning(name, "ordinal", order=tuple(map(str, words)))
    for name, taxonomy in (taxonomies or {}).items():
        if isinstance(taxonomy, Mapping):
            taxonomy = Taxonomy.from_tree(taxonomy, column=name)
        elif not isinstance(taxonomy, Taxonomy):
            taxonomy = read_taxonomy(Path(taxonomy))
        meanings[name] = LabelMeaning(name, "nominal", tree=features.tree_of(taxonomy))
    return meanings


# --- labels -----------------------------------------------------------------------------------------------------


def learn_labels(values: pl.Series, declared: Meanings) -> LabelReader:
    """How the labels of a column are read, by what is declared of it or by what they are."""
    texts, _ = distinct_texts(values)
    meaning = declared.get(values.name) or _guess(values.name, texts)
    labels = [label for text in texts if (label := read_label(text, meaning)) is not None]
    if meaning.type == "nominal" and meaning.tree is None:
        names = tuple(sorted({name for label in labels for name in label.names}))
        meaning = replace(meaning, tree=LabelTree(names, {name: (place, place) for place, name in enumerate(names)}))
    # A label that leaves missing out is needed only where values are missing.
    has_missing = any(label.missing != label.everything for label in labels if label.missing or label.everything)
    return LabelReader(meaning, _column(meaning, labels, has_missing))


def _guess(name: str, texts: Iterable[str | None]) -> LabelMeaning:
    """The kind of column that has such labels."""
    known = [text for text in texts if text is not None]
    for meaning in (
        LabelMeaning(name, "continuous"),
        LabelMeaning(name, "continuous", scale="whole", closed=True),
        LabelMeaning(name, "date"),
    ):
        labels = [label for text in known if (label := read_label(text, meaning)) is not None]
        intervals = [interval for label in labels for interval in label.intervals]
        # A number alone does not show an order: it may be a name, such as a postcode.
        is_ordered = any(meaning.type == "date" or interval.lower != interval.upper for interval in intervals)
        if len(labels) == len(known) and is_ordered:
            return meaning
    if any(_INTERVAL.fullmatch(text.removeprefix("missing or ")) for text in known):
        raise DataError(
            f"column '{name}' has intervals of words, and nothing says how they follow each other; give the "
            "release's recoding, or the column's words in orders, or its taxonomy in taxonomies."
        )
    return LabelMeaning(name, "nominal")


def _column(meaning: LabelMeaning, labels: Sequence[ValueSet], has_missing: bool) -> FeatureColumn:
    if meaning.type == "nominal":
        assert meaning.tree is not None
        return LeafColumn(meaning.name, has_missing, meaning.tree.leaves)
    if meaning.type == "ordinal":
        return features.rank_column(meaning.name, has_missing, meaning.order)
    intervals = [interval for label in labels for interval in label.intervals]
    ends = [end for interval in intervals for end in (interval.lower, interval.upper) if end is not None]
    # A closed interval shows that the outermost ends are closed, but a single value stands beside open ones, too.
    is_closed = any(interval.closed for interval in intervals) and len(ends) == 2 * len(intervals)
    is_date = meaning.type == "date"
    places = np.unique([features.on_line(end, is_date=is_date) for end in ends])
    domain = (float(places[0]), float(places[-1])) if is_closed else (None, None)
    inner = places[1:-1] if is_closed else places
    return LineColumn(
        meaning.name, has_missing, *features.closed_ends(places, domain, is_date=is_date), features.bends_of(inner)
    )


# --- bounds -----------------------------------------------------------------------------------------------------


def learn_bounds(table: pl.DataFrame, name: str, declared: Meanings) -> BoundsReader:
    """How the bounds of a column are read."""
    lower, upper, missing = bounds_names(name)
    inputs = (lower, upper, missing) if missing in table.columns else (lower, upper)
    meaning = declared.get(name) or _guess_bounds(name, [table[lower], table[upper]])
    if meaning.type == "ordinal":
        return BoundsReader(meaning, features.rank_column(name, len(inputs) > 2, meaning.order), inputs)
    known = np.ones(len(table), bool) if len(inputs) < 3 else (table[missing] != "only").fill_null(True).to_numpy()
    lows, highs = (reading.places_of(table[part], meaning)[known] for part in (lower, upper))
    places = np.unique(np.concatenate([lows, highs]))
    cuts = places[~np.isnan(places)]
    # A side that is nowhere open is the end of a declared domain.
    low = float(cuts[0]) if len(cuts) and not np.isnan(lows).any() else None
    high = float(cuts[-1]) if len(cuts) and not np.isnan(highs).any() else None
    ends = features.closed_ends(cuts, (low, high), is_date=meaning.type == "date")
    inner = cuts[(cuts > ends[0]) & (cuts < ends[1])]
    return BoundsReader(meaning, LineColumn(name, len(inputs) > 2, *ends, features.bends_of(inner)), inputs)


def _guess_bounds(name: str, ends: Sequence[pl.Series]) -> LabelMeaning:
    """The kind of column that has such bounds."""
    dtypes = {end.dtype for end in ends}
    if all(dtype.is_numeric() or dtype == pl.Null for dtype in dtypes):
        return LabelMeaning(name, "continuous")
    texts = [text for end in ends for text in distinct_texts(end)[0] if text is not None]
    for kind in ("continuous", "date"):
        meaning = LabelMeaning(name, kind)
        if all(meaning.scalar(text) is not None for text in texts):
            return meaning
    raise DataError(
        f"column '{name}' has words as bounds, and nothing says how they follow each other; give the release's "
        "recoding, or the column's words in orders."
    )


class RegionEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turns the generalized values of a release into numbers.

    Args:
        encoding: `ends`, two features for each column: the lower and the upper end of an interval, or the first and
            last position among the leaves; or `expected`: what is expected if values are spread evenly over the
            region, that is the middle of an interval and each name's share; or `both`; or `smooth`: both, and how
            far values are above some cuts on average, for linear models.
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
            readers = _learned(table, declared_meanings(self.types, self.orders, self.taxonomies))
        else:
            readers = _recoded(table, self.recoding)
        self.readers_: tuple[Reader, ...] = tuple(
            reader for reader in readers if self.remainder == "passthrough" or not isinstance(reader, RawReader)
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
        return features.side_by_side([reader.numbers(table, encoding) for reader in self.readers_], len(table))

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
    """The columns that are bounds of one of these names, and of which one."""
    return {part: name for name in names if name not in table.columns for part in bounds_names(name)}


def _readers(
    table: pl.DataFrame,
    bounds: Mapping[str, str],
    of_bounds: Callable[[str], BoundsReader],
    of_column: Callable[[str], Reader],
) -> Iterator[Reader]:
    """The readers of a table in the order of its columns, one for the bounds of a name."""
    done: set[str] = set()
    for column in table.columns:
        name = bounds.get(column)
        if name is None:
            yield of_column(column)
        elif name not in done:
            done.add(name)
            yield of_bounds(name)


def _learned(table: pl.DataFrame, declared: Meanings) -> Iterator[Reader]:
    """The readers of a table without a recoding, found from its labels."""

    def of_column(name: str) -> Reader:
        is_plain = reading.is_raw(table[name].dtype) and name not in declared
        return RawReader(name) if is_plain else learn_labels(table[name], declared)

    lower = [name.removesuffix("_lower") for name in table.columns if name.endswith("_lower")]
    bounds = _bounds_of(table, [name for name in lower if bounds_names(name)[1] in table.columns])
    return _readers(table, bounds, lambda name: learn_bounds(table, name, declared), of_column)


def _recoded(table: pl.DataFrame, recoding: Recoding) -> Iterator[Reader]:
    """The readers of a table whose recoding is known."""
    known = {column.name: column for column in recoding.columns}
    ordered = [name for name in known if isinstance(feature_column(known[name]), LineColumn)]
    bounds = {part: name for part, name in _bounds_of(table, ordered).items() if part not in known}

    def of_bounds(name: str) -> BoundsReader:
        parts = bounds_names(name)[: 3 if known[name].has_missing else 2]
        absent = [part for part in parts if part not in table.columns]
        if absent:
            raise DataError(f"the bounds of '{name}' need the column '{absent[0]}', which the table has not.")
        return BoundsReader(features.meaning_of(known[name]), feature_column(known[name]), parts)

    def of_column(name: str) -> Reader:
        if name not in known:
            return RawReader(name)
        return LabelReader(features.meaning_of(known[name]), feature_column(known[name]))

    readers = list(_readers(table, bounds, of_bounds, of_column))
    if all(isinstance(reader, RawReader) for reader in readers):
        raise DataError("the table has none of the columns of the recoding; give the release that it belongs to.")
    return iter(readers)
