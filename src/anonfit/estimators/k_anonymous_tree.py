# SPDX-License-Identifier: Apache-2.0
"""A decision tree that may be released: nobody learns from it more of a training person than of k - 1 others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from anonfit.algorithms.trees.building import Growing, Training, build_tree, code_columns
from anonfit.algorithms.trees.growing import Variant, demand_of
from anonfit.algorithms.trees.released import CONFIDENCES, Exposure, exposure_of
from anonfit.algorithms.trees.tree import DecisionTree
from anonfit.errors import DataError, RequestError, counted, did_you_mean, listed
from anonfit.estimators.inputs import missing_counts, named_columns, require_known, table_of
from anonfit.release.bind import schema_of
from anonfit.spec.keywords import spec_of_keywords
from anonfit.spec.kinds import FRACTION, is_whole
from anonfit.spec.model import ColumnSettings, VariantName
from anonfit.tables.reading import ReadOptions, read_table
from anonfit.tables.scales import CutPoints
from anonfit.tables.schema import Schema
from anonfit.tables.taxonomy import Taxonomy

if TYPE_CHECKING:
    from numpy.typing import NDArray


class MissingValues(DataError, ValueError):
    """Rows with missing values, which trees do not model; scikit-learn expects a ValueError."""


class KAnonymousTreeClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A decision tree that is k-anonymous with respect to its training rows: of every person the release of the tree
    tells no more than of k - 1 others who have the same span.

    Args:
        k: How many training persons must share every span.
        public: The columns of X that somebody may know of a person; all that are not private, if not given.
        private: The columns of X that nobody but the data owner knows. Every column is public or private. A name that
            one person alone has, or of a public column fewer than k, is not told, unless it is declared.
        variant: `c45` (gain ratio, cuts of numbers, pruning) or `id3` (gain, nominal columns only, no pruning).
        class_is_public: Whether somebody may know y of a person.
        entropy_l: At least the entropy of so many equally frequent classes is in every span; 1 asks for nothing.
        max_confidence: The highest share that a class may have in a span.
        pruning: The confidence of error-based pruning, up to 0.5; 0: the tree is not pruned; None: 0.25 for `c45`, and
            no pruning for `id3`.
        columns: As for `anonymize`, as are all that follow.
        taxonomies: See `anonymize`. With a taxonomy a column is divided at a depth that breaches no span.
        types: See `anonymize`.
        orders: See `anonymize`.
        domains: See `anonymize`.
        date_formats: See `anonymize`.
        missing: Texts that mean a missing value. Rows with one are refused.
        cut_points: `simplest` or `value`; the latter where no number or date is private.
        max_spans: The most spans that are kept while growing.

    Attributes:
        tree_: The tree: nodes, bins, spans. No row of X or y is kept.
        classes_: The classes.

    Example:
        >>> import polars as pl
        >>> people = pl.DataFrame({"age": [21, 22, 23, 41, 42, 43]})
        >>> tree = KAnonymousTreeClassifier(k=3).fit(people, ["no", "no", "no", "yes", "yes", "yes"])
        >>> tree.predict(pl.DataFrame({"age": [20, 50]})).tolist(), tree.tree_.k
        (['no', 'yes'], 3)
    """

    def __init__(
        self,
        k: int = 10,
        public: Sequence[str] | None = None,
        private: Sequence[str] | None = None,
        *,
        variant: VariantName = "c45",
        class_is_public: bool = False,
        entropy_l: float = 1.0,
        max_confidence: float = 1.0,
        pruning: float | None = None,
        columns: Mapping[str, ColumnSettings] | None = None,
        taxonomies: Mapping[str, Taxonomy | str | Path | Mapping[str, Any]] | None = None,
        types: Mapping[str, str] | None = None,
        orders: Mapping[str, Sequence[str]] | None = None,
        domains: Mapping[str, Sequence[Any]] | None = None,
        date_formats: Mapping[str, str] | None = None,
        missing: Sequence[str] = ("",),
        cut_points: Literal["simplest", "value"] = "simplest",
        max_spans: int = 1_000_000,
    ) -> None:
        self.k = k
        self.public = public
        self.private = private
        self.variant = variant
        self.class_is_public = class_is_public
        self.entropy_l = entropy_l
        self.max_confidence = max_confidence
        self.pruning = pruning
        self.columns = columns
        self.taxonomies = taxonomies
        self.types = types
        self.orders = orders
        self.domains = domains
        self.date_formats = date_formats
        self.missing = missing
        self.cut_points = cut_points
        self.max_spans = max_spans

    def __sklearn_tags__(self) -> Any:
        """A table of people has texts."""
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    def fit(self, X: Any, y: Any) -> KAnonymousTreeClassifier:  # noqa: N803 - scikit-learn's name
        """Grow the tree.

        Args:
            X: The training rows: a polars, pandas or Arrow frame, or an array.
            y: The class of each row. Its name, if it has one that no column of X has, is that of the class; else it is
                `class`.

        Returns:
            The classifier.
        """
        demand, growing = demand_of(self.k, self.entropy_l, self.max_confidence), _growing(self)
        table = table_of(self, X, reset=True, at_least=demand.k)
        target = _target(y, table.columns)
        labels = _labels(y, table)
        public = _public(self, table.columns)
        schema = _schema(self, table, demand.k)
        self.classes_, places = np.unique(labels, return_inverse=True)
        rows = _complete(self, table)
        coded = code_columns(schema.columns, rows, public=public, k=demand.k, growing=growing)
        training = Training(
            [values.domain for values in coded],
            [values.codes for values in coded],
            places.astype(np.int32),
            public,
            target,
            self.classes_.tolist(),
            self.class_is_public,
        )
        self.tree_: DecisionTree = build_tree(training, demand=demand, growing=growing).tree
        self.columns_in_ = tuple(table.columns)
        return self

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803 - scikit-learn's name
        """The class of the largest bin of each row's leaf.

        Args:
            X: The columns that the tree was grown from. A value that was not there in training leaves its row at the
                node that asks for it.

        Returns:
            One class for each row.
        """
        nodes = self._nodes(X)
        classes: NDArray[Any] = self.classes_[self.tree_.majority[nodes]]
        return classes

    def predict_proba(self, X: Any) -> NDArray[np.float64]:  # noqa: N803 - scikit-learn's name
        """The shares of classes in each row's leaf.

        Args:
            X: The columns that the tree was grown from.

        Returns:
            (row, class)
        """
        nodes = self._nodes(X)
        shares: NDArray[np.float64] = self.tree_.shares[nodes]
        return shares

    def exposure(self, confidences: Sequence[float] = CONFIDENCES) -> Exposure | None:
        """How many training persons' class the released tree gives away; None where the class is public.

        Args:
            confidences: Shares of the likeliest class, for each of which persons are counted.

        Returns:
            The numbers of persons whose class is certain, and as likely as that.
        """
        check_is_fitted(self)
        return exposure_of(self.tree_.spans, confidences)

    def _nodes(self, rows: Any) -> NDArray[np.int32]:
        check_is_fitted(self)
        return self.tree_.nodes_of(_complete(self, table_of(self, rows, reset=False)))


def _growing(classifier: KAnonymousTreeClassifier) -> Growing:
    require_known("variant", classifier.variant, [str(word) for word in Variant])
    require_known("cut_points", classifier.cut_points, [str(word) for word in CutPoints])
    pruning, spans = classifier.pruning, classifier.max_spans
    if not isinstance(classifier.class_is_public, bool | np.bool_):
        raise RequestError(f"class_is_public must be True or False; found {classifier.class_is_public!r}.")
    if pruning is not None and (not FRACTION.have(pruning) or pruning > 0.5):
        raise RequestError(f"pruning must be a number of at least 0 and at most 0.5, or None; found {pruning!r}.")
    if not is_whole(spans) or spans < 1:
        raise RequestError(f"max_spans must be a whole number of at least 1; found {spans!r}.")
    variant = Variant(classifier.variant)
    usual = 0.25 if variant == Variant.C45 else 0.0
    confidence = float(usual if pruning is None else pruning) or None
    # A private value that one person alone has is never named, though the paper's model would let it be.
    named = min(int(classifier.k), 2)
    return Growing(variant, confidence, int(spans), CutPoints(classifier.cut_points), least_named=named)


def _public(classifier: KAnonymousTreeClassifier, columns: Sequence[str]) -> list[str]:
    """The public columns: those that are named, or else all that are not private."""
    private = named_columns(classifier.private)
    rest = [name for name in columns if name not in private]
    public = rest if classifier.public is None else named_columns(classifier.public)
    for name in [*public, *private]:
        if name not in columns:
            raise RequestError(f"X has no column '{name}'; {did_you_mean(name, columns)}")
    both = [name for name in public if name in private]
    if both:
        raise RequestError(f"the column {listed(both)} is named public and private; it is one of the two.")
    neither = [name for name in columns if name not in {*public, *private}]
    if neither:
        raise RequestError(
            f"{counted(len(neither), 'column is', 'columns are')} neither public nor private: {listed(neither)}; name "
            "each in one of the two, or leave public out: then all that are not private are public."
        )
    return public


def _schema(classifier: KAnonymousTreeClassifier, table: pl.DataFrame, k: int) -> Schema:
    """What is declared of the columns."""
    named = ("columns", "taxonomies", "types", "orders", "domains", "date_formats")
    words = {name: getattr(classifier, name) for name in named}
    words |= {"quasi_identifiers": table.columns, "k": k}
    return schema_of(spec_of_keywords(None, words), table.columns)


def _target(y: Any, columns: Sequence[str]) -> str:
    """The name of the class; no column may have it, since a model knows both by name."""
    name = str(getattr(y, "name", None) or "class")
    target = "class" if name in columns else name
    while target in columns:
        target += "_"
    return target


def _labels(y: Any, table: pl.DataFrame) -> NDArray[Any]:
    """The classes of rows as an array."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")  # the sentence scikit-learn asks for
    labels: NDArray[Any] = column_or_1d(np.asarray(y), warn=True)
    check_consistent_length(table, labels)
    gaps = [label is None or label != label for label in labels.tolist()] if labels.dtype.kind in "Of" else []
    if any(gaps):
        raise MissingValues(f"y has {counted(sum(gaps), 'missing value')}, or NaN; leave those rows out of X and y.")
    check_classification_targets(labels)
    if labels.dtype.kind not in "OUTbiuf":
        raise RequestError(f"y holds {labels.dtype.name}, and classes are texts, numbers or booleans; make it texts.")
    return labels


def _complete(classifier: KAnonymousTreeClassifier, table: pl.DataFrame) -> pl.DataFrame:
    """Rows without a missing value, or a text that means one; others are refused."""
    rows = read_table(table, ReadOptions(missing=tuple(classifier.missing), clean=frozenset(table.columns)))
    if gaps := missing_counts(rows):
        raise MissingValues(
            f"X has missing values, or NaN ({listed(gaps)}: up to {counted(max(gaps.values()), 'row')}): what a "
            "missing value tells of a person is not modelled for trees; leave those rows out, or fill them."
        )
    return rows
