# SPDX-License-Identifier: Apache-2.0
"""What the columns of a released table mean where no recoding says it: learned from the labels themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from anonfit.auditing import LabelMeaning, LabelTree, LabelType, ValueSet, read_label
from anonfit.errors import DataError, RequestError, did_you_mean
from anonfit.estimators.features import FeatureColumn, LeafColumn, LineColumn, closed_ends
from anonfit.estimators.reading import (
    BoundsReader,
    LabelReader,
    bounds_names,
    distinct_texts,
    places_of,
)
from anonfit.estimators.recoded import on_line, tree_of
from anonfit.tables.taxonomy import Taxonomy
from anonfit.tables.taxonomy_files import read_taxonomy

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Declared", "declared", "learn_bounds", "learn_labels"]

_INTERVAL = re.compile(r"\[.*, .*[)\]]|[<≥] .*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Declared:
    """What is told of columns that no recoding tells."""

    types: Mapping[str, LabelType] = field(default_factory=dict)
    orders: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    taxonomies: Mapping[str, Taxonomy] = field(default_factory=dict)

    def meaning(self, name: str) -> LabelMeaning | None:
        """How a column's labels are read, None if nothing is told."""
        if name in self.taxonomies:
            return LabelMeaning(name, "nominal", tree=tree_of(self.taxonomies[name]))
        if name in self.orders:
            return LabelMeaning(name, "ordinal", order=self.orders[name])
        return LabelMeaning(name, self.types[name]) if name in self.types else None


def declared(
    types: Mapping[str, str] | None, orders: Mapping[str, Sequence[str]] | None, taxonomies: Mapping[str, Any] | None
) -> Declared:
    """The arguments of the encoder, checked."""
    kinds: dict[str, LabelType] = {}
    for name, word in (types or {}).items():
        if word not in get_args(LabelType):
            raise RequestError(f"types: '{word}' of column '{name}'; {did_you_mean(str(word), get_args(LabelType))}")
        if word == "ordinal" and name not in (orders or {}):
            raise RequestError(f"types: column '{name}' is ordinal; give its words in orders, lowest first.")
        kinds[name] = word  # type: ignore[assignment]
    return Declared(
        kinds,
        {name: tuple(map(str, words)) for name, words in (orders or {}).items()},
        {name: _taxonomy(name, found) for name, found in (taxonomies or {}).items()},
    )


def _taxonomy(name: str, found: Any) -> Taxonomy:
    if isinstance(found, Taxonomy):
        return found
    return Taxonomy.from_tree(found, column=name) if isinstance(found, Mapping) else read_taxonomy(Path(found))


# --- labels -----------------------------------------------------------------------------------------------------


def learn_labels(values: pl.Series, told: Declared) -> LabelReader:
    """How the labels of a column are read, by what is told of it or by what they are."""
    texts, _ = distinct_texts(values)
    meaning = told.meaning(values.name) or _guess(values.name, texts)
    labels = [found for text in texts if (found := read_label(text, meaning)) is not None]
    if meaning.type == "nominal" and meaning.tree is None:
        meaning = replace(meaning, tree=_flat(labels))
    # A label that leaves missing out is needed only where values are missing.
    has_missing = any(label.missing != label.everything for label in labels if label.missing or label.everything)
    return LabelReader(meaning, _column(meaning, labels, has_missing))


def _guess(name: str, texts: Iterable[str | None]) -> LabelMeaning:
    """The kind of column that has such labels."""
    known = [text for text in texts if text is not None]
    for kind in ("continuous", "date"):
        meaning = LabelMeaning(name, kind)
        labels = [read_label(text, meaning) for text in known]
        if None not in labels and any(_is_told_by(label, kind) for label in labels if label is not None):
            return meaning
    if any(_INTERVAL.fullmatch(text.removeprefix("missing or ")) for text in known):
        raise DataError(
            f"column '{name}' has intervals of words, and nothing says how they follow each other; give the "
            "release's recoding, or the column's words in orders, or its taxonomy in taxonomies."
        )
    return LabelMeaning(name, "nominal")


def _is_told_by(label: ValueSet, kind: str) -> bool:
    """Whether a label shows that its column is ordered: a number alone may be a name, such as a postcode."""
    return any(kind == "date" or found.lower != found.upper for found in label.intervals)


def _flat(labels: Iterable[ValueSet]) -> LabelTree:
    """The names that labels have, each a leaf."""
    names = tuple(sorted({name for label in labels for name in label.names}))
    return LabelTree(names, {name: (place, place) for place, name in enumerate(names)})


def _column(meaning: LabelMeaning, labels: Sequence[ValueSet], has_missing: bool) -> FeatureColumn:
    if meaning.type == "nominal":
        assert meaning.tree is not None
        return LeafColumn(meaning.name, has_missing, meaning.tree.leaves)
    if meaning.type == "ordinal":
        return LineColumn(meaning.name, has_missing, 0.0, len(meaning.order) - 1.0)
    intervals = [found for label in labels for found in label.intervals]
    ends = [end for found in intervals for end in (found.lower, found.upper) if end is not None]
    return _line(meaning, ends, has_missing, is_closed=any(found.closed for found in intervals))


def _line(meaning: LabelMeaning, ends: Iterable[Decimal], has_missing: bool, *, is_closed: bool) -> LineColumn:
    """An ordered column with these ends of intervals; a closed interval shows that its outermost ends are closed."""
    is_date = meaning.type == "date"
    places = np.unique([on_line(end, is_date=is_date) for end in ends])
    domain = (float(places[0]), float(places[-1])) if is_closed else (None, None)
    return LineColumn(meaning.name, has_missing, *closed_ends(places, domain, is_date=is_date))


# --- bounds -----------------------------------------------------------------------------------------------------


def learn_bounds(table: pl.DataFrame, name: str, told: Declared) -> BoundsReader:
    """How the bounds of a column are read."""
    lower, upper, missing = bounds_names(name)
    inputs = (lower, upper, missing) if missing in table.columns else (lower, upper)
    meaning = told.meaning(name) or _guess_bounds(name, [table[lower], table[upper]])
    if meaning.type == "ordinal":
        column = LineColumn(name, len(inputs) > 2, 0.0, len(meaning.order) - 1.0)
        return BoundsReader(meaning, column, inputs)
    known = np.ones(len(table), bool) if len(inputs) < 3 else (table[missing] != "only").fill_null(True).to_numpy()
    lows, highs = (places_of(table[part], meaning)[known] for part in (lower, upper))
    found = np.unique(np.concatenate([lows, highs]))
    cuts = found[~np.isnan(found)]
    # A side that is nowhere open is the end of a declared domain.
    low = float(cuts[0]) if len(cuts) and not np.isnan(lows).any() else None
    high = float(cuts[-1]) if len(cuts) and not np.isnan(highs).any() else None
    ends = closed_ends(cuts, (low, high), is_date=meaning.type == "date")
    return BoundsReader(meaning, LineColumn(name, len(inputs) > 2, *ends), inputs)


def _guess_bounds(name: str, ends: Sequence[pl.Series]) -> LabelMeaning:
    """The kind of column that has such bounds."""
    import polars as pl

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
