# SPDX-License-Identifier: Apache-2.0
"""Anonymizing inside a pipeline: regions are learned from the training rows for the target, and any rows are recoded
by them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import sklearn
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from anonfit.api import anonymize
from anonfit.estimators.features import Encoding, Numbers, side_by_side
from anonfit.estimators.inputs import REMAINDERS, given_names, is_frame, refuse_twice, require_known, table_of
from anonfit.estimators.keywords import unreleased, words_for_anonymize
from anonfit.estimators.reading import RawReader
from anonfit.estimators.recoded import feature_column, parts_of_nodes
from anonfit.estimators.targets import targets_of
from anonfit.recoding.recoding import Recoding, Unseen
from anonfit.recoding.values import Values, recoded_columns, region_values
from anonfit.spec.faults import is_whole
from anonfit.tables.frames import like
from anonfit.tables.reading import ReadOptions, read_table
from anonfit.tables.taxonomy import Taxonomy

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

__all__ = ["Anonymizer"]

OUTPUTS = (*Encoding, Values.LABELS, Values.BOUNDS)


class Anonymizer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Learns regions of at least k persons from training rows, for the target y, and recodes any rows by them.

    What `transform` gives is working data, not a release: it is row for row, and nothing is withheld.

    Args:
        k: How many training persons must share every region.
        quasi_identifiers: The columns of X that are generalized; all that have no other part, if not given.
        output: `ends` or `expected`: numbers, as of `RegionEncoder`; `labels` or `bounds`: a frame, as of a release.
        remainder: What becomes of the other columns of X: `passthrough` or `drop`.
        targets: Where there is something to say of y, one entry for each of its columns: a name, or settings as in a
            spec (`weight`, `classes`, `equal_width`, `scale`) and `type`, which is `nominal` for classes and
            `continuous` for numbers. Entries that name a quasi-identifier make it a target too.
        sensitive: Columns of X that nobody should learn of a person, as for `anonymize`.
        entity: The column of X that says whose row it is; not in the output.
        count: The column of X that says how many persons a row stands for; not in the output.
        sample_weight: The column of X that has the sample weights; not in the output.
        taxonomies: As for `anonymize`, as are all that follow.
        types: See `anonymize`.
        orders: See `anonymize`.
        domains: See `anonymize`.
        splits: See `anonymize`.
        date_formats: See `anonymize`.
        missing: Texts that mean a missing value.
        missing_policy: `category`, `drop` or `error`: what becomes of training rows with a missing quasi-identifier.
        algorithm: `mondrian` or `tdr`.
        requirements: For `tdr`, several quasi-identifiers.
        criterion: `auto`, `median`, `infogain`, `lsd`, `selection`, `weighted`, `clustering` or `explore`; of `tdr`
            `score` or `infogain`.
        candidates: `boundary` or `all`.
        split_on: The only columns that are split.
        weights: How much each quasi-identifier matters.
        weights_from: `accuracy`, to find weights.
        features: Columns that are learned or clustered from.
        selected_by: Columns that rows are selected by.
        weight_rule: `first`, `product`, `blend`, `naive`, `probabilistic` or `combined`.
        alpha: How much weights count in a blend; see `anonymize`.
        beta: See `anonymize`.
        gamma: See `anonymize`.
        min_gain: The least gain for which a region is divided.
        denoise: Whether regions are found for predictions of y instead of y itself.
        selections: Rows that recipients will ask for.
        cut_points: `simplest` or `value`.
        average: For `tdr`; see `anonymize`.
        suppression: For `tdr`; see `anonymize`.
        zero_gain: For `tdr`; see `anonymize`.
        time_budget: For `tdr` and `explore`; see `anonymize`.
        start: For `tdr`; see `anonymize`.
        variant: For `tree`; see `anonymize`.
        pruning: For `tree`; see `anonymize`.
        max_spans: For `tree`; see `anonymize`.
        max_confidence: How sure a region may make anybody of a target.
        seed: The seed of what is random.

    Attributes:
        recoding_: The recoding, which can be saved and applied to any rows. No row of X or y is kept.

    Example:
        >>> import polars as pl
        >>> people = pl.DataFrame({"age": [21, 22, 41, 42]})
        >>> Anonymizer(k=2, output="labels").fit_transform(people)["age"].to_list()
        ['< 30', '< 30', '≥ 30', '≥ 30']
    """

    def __init__(
        self,
        k: int = 10,
        quasi_identifiers: Sequence[str] | None = None,
        *,
        output: str = "ends",
        remainder: str = "passthrough",
        targets: Sequence[str | Mapping[str, Any]] | None = None,
        sensitive: Mapping[str, Any] | None = None,
        entity: str | None = None,
        count: str | None = None,
        sample_weight: str | None = None,
        taxonomies: Mapping[str, Taxonomy | str | Path | Mapping[str, Any]] | None = None,
        types: Mapping[str, str] | None = None,
        orders: Mapping[str, Sequence[str]] | None = None,
        domains: Mapping[str, Sequence[Any]] | None = None,
        splits: Mapping[str, str] | None = None,
        date_formats: Mapping[str, str] | None = None,
        missing: Sequence[str] = ("",),
        missing_policy: str = "category",
        algorithm: str = "mondrian",
        requirements: Sequence[Sequence[str] | Mapping[str, Any]] | None = None,
        criterion: str = "auto",
        candidates: str = "boundary",
        split_on: Sequence[str] | None = None,
        weights: Mapping[str, float] | None = None,
        weights_from: str | None = None,
        features: Sequence[str] | None = None,
        selected_by: Sequence[str] | None = None,
        weight_rule: str | None = None,
        alpha: float = 0.5,
        beta: float = 0.25,
        gamma: float = 0.25,
        min_gain: float = 0.0,
        denoise: bool = False,
        selections: Sequence[Mapping[str, Any]] | None = None,
        cut_points: str = "simplest",
        average: str = "containing",
        suppression: str = "all",
        zero_gain: bool = False,
        time_budget: float | None = None,
        start: Any = None,
        variant: str = "c45",
        pruning: float | None = None,
        max_spans: int = 1_000_000,
        max_confidence: float = 1.0,
        seed: int = 0,
    ) -> None:
        self.k = k
        self.quasi_identifiers = quasi_identifiers
        self.output = output
        self.remainder = remainder
        self.targets = targets
        self.sensitive = sensitive
        self.entity = entity
        self.count = count
        self.sample_weight = sample_weight
        self.taxonomies = taxonomies
        self.types = types
        self.orders = orders
        self.domains = domains
        self.splits = splits
        self.date_formats = date_formats
        self.missing = missing
        self.missing_policy = missing_policy
        self.algorithm = algorithm
        self.requirements = requirements
        self.criterion = criterion
        self.candidates = candidates
        self.split_on = split_on
        self.weights = weights
        self.weights_from = weights_from
        self.features = features
        self.selected_by = selected_by
        self.weight_rule = weight_rule
        self.alpha = alpha
        self.beta = beta
        self.gamma = gamma
        self.min_gain = min_gain
        self.denoise = denoise
        self.selections = selections
        self.cut_points = cut_points
        self.average = average
        self.suppression = suppression
        self.zero_gain = zero_gain
        self.time_budget = time_budget
        self.start = start
        self.variant = variant
        self.pruning = pruning
        self.max_spans = max_spans
        self.max_confidence = max_confidence
        self.seed = seed

    def __sklearn_tags__(self) -> Any:
        """A table of people has texts and missing values; y is the purpose, and may be left out."""
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = True
        tags.target_tags.required = False
        tags.target_tags.one_d_labels = False
        tags.target_tags.two_d_labels = True
        if self.output not in list(Encoding):
            tags.transformer_tags.preserves_dtype = []
        return tags

    def fit(self, X: Any, y: Any = None) -> Anonymizer:  # noqa: N803 - scikit-learn's name
        """Learn the regions.

        Args:
            X: The training rows: a polars, pandas or Arrow frame, or an array.
            y: What recipients will predict: classes or numbers, one column or several. Without it regions are
                found blind.

        Returns:
            The anonymizer.
        """
        require_known("output", self.output, OUTPUTS)
        require_known("remainder", self.remainder, REMAINDERS)
        at_least = int(self.k) if is_whole(self.k) and self.count is None else 1
        table = table_of(self, X, reset=True, at_least=at_least)
        targets = targets_of(y, self.targets, table=table, criterion=self.criterion)
        release = anonymize(table.with_columns(targets.columns), **words_for_anonymize(self, table, targets))
        self.recoding_: Recoding = release.recoding
        self.columns_in_ = tuple(table.columns)
        self._raw = _raw_columns(self, table)
        refuse_twice(list(self.get_feature_names_out()))
        return self

    def transform(self, X: Any) -> Any:  # noqa: N803 - scikit-learn's name
        """Recode rows, row for row, by the regions of the training rows. A value that was not there in training
        leaves its row in the smallest region that does not depend on it.

        Args:
            X: The columns that the anonymizer was fitted with. A frame may leave out those that are neither
                generalized nor passed on.

        Returns:
            The features as an array, or a frame of the kind that came in; or what `set_output` asks for.
        """
        check_is_fitted(self)
        needed = {*self.recoding_.quasi_identifiers, *self._raw}
        table = _as_read(self, table_of(self, X, reset=False, spare=set(self.columns_in_) - needed))
        nodes = self.recoding_.nodes(self.recoding_.cells(table, unseen=Unseen.ANCESTOR))
        if self.output in list(Encoding):
            return self._features(table, nodes)
        return _framed(self, X, self._recoded(table, nodes))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """The names of the columns of the output.

        Args:
            input_features: Names for the columns of an array.

        Returns:
            One name for each.
        """
        check_is_fitted(self, "recoding_")
        names = given_names(self, self.columns_in_, input_features)
        blocks = {name: [names.get(name, name)] for name in self._raw}
        root = np.zeros(1, np.int32)
        written = {} if self.output in list(Encoding) else region_values(self.recoding_, root, Values(self.output))
        for column in self.recoding_.columns:
            name = names.get(column.name, column.name)
            if self.output in list(Encoding):
                blocks[column.name] = feature_column(column).features(Encoding(self.output), name)
            else:
                parts = [part.name.removeprefix(column.name) for part in written[column.name]]
                blocks[column.name] = [f"{name}{part}" for part in parts]
        return np.array([part for name in self.columns_in_ for part in blocks.get(name, [])], dtype=object)

    def _features(self, table: pl.DataFrame, nodes: NDArray[np.int32]) -> Numbers:
        """The features of rows that end in these nodes."""
        used = np.flatnonzero(np.bincount(nodes, minlength=1)).astype(np.int32)
        place = np.zeros(int(used.max(initial=0)) + 1, np.int64)
        place[used] = np.arange(len(used))
        rows = place.take(nodes)
        encoding = Encoding(self.output)
        blocks = {name: RawReader(name).numbers(table, encoding) for name in self._raw}
        for index, column in enumerate(self.recoding_.columns):
            parts, which = parts_of_nodes(self.recoding_, used, index)
            blocks[column.name] = feature_column(column).numbers(parts, encoding)[which].take(rows, axis=0)
        return side_by_side([blocks[name] for name in self.columns_in_ if name in blocks], len(table))

    def _recoded(self, table: pl.DataFrame, nodes: NDArray[np.int32]) -> pl.DataFrame:
        """The columns of rows that end in these nodes, as a release would have them."""
        import polars as pl

        recoded = recoded_columns(self.recoding_, nodes, Values(self.output))
        kept = [name for name in self.columns_in_ if name in recoded or name in self._raw]
        return pl.DataFrame([column for name in kept for column in recoded.get(name, [table[name]])])


def _raw_columns(anonymizer: Anonymizer, table: pl.DataFrame) -> tuple[str, ...]:
    """The columns that are passed on as they are."""
    if anonymizer.remainder == "drop":
        return ()
    others = {*anonymizer.recoding_.quasi_identifiers, *unreleased(anonymizer)}
    found = [name for name in table.columns if name not in others]
    if anonymizer.output in list(Encoding):
        for name in found:
            RawReader(name).require_numbers(table)
    return tuple(found)


def _as_read(anonymizer: Anonymizer, table: pl.DataFrame) -> pl.DataFrame:
    """Rows in which texts that mean a missing value are missing, as they were when the regions were found."""
    clean = frozenset(anonymizer.recoding_.quasi_identifiers)
    return read_table(table, ReadOptions(missing=tuple(anonymizer.missing), clean=clean))


def _framed(anonymizer: Anonymizer, source: Any, found: pl.DataFrame) -> Any:
    """Recoded rows as the kind of frame that is asked for, or that came in; an array as one of objects."""
    config = getattr(anonymizer, "_sklearn_output_config", {})
    wanted = config.get("transform") or sklearn.get_config()["transform_output"]
    if wanted == "polars":
        return found
    if wanted == "pandas":
        frame = found.to_pandas()
        if hasattr(source, "index") and is_frame(source):
            frame.index = source.index
        return frame
    return like(source, found) if is_frame(source) else np.array(found.rows(), dtype=object)
