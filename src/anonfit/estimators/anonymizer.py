# SPDX-License-Identifier: Apache-2.0
"""Anonymizing inside a pipeline: regions are learned from the training rows for the target, and any rows are recoded
by them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import polars as pl
import sklearn
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from anonfit.api import anonymize
from anonfit.errors import DataError, RequestError, listed
from anonfit.estimators import inputs
from anonfit.estimators.features import (
    Encoding,
    Numbers,
    feature_column,
    parts_of_nodes,
    side_by_side,
    suited_encoding,
)
from anonfit.estimators.inputs import is_frame, named_columns, require_known, table_of
from anonfit.estimators.reading import RawReader
from anonfit.recoding.recoding import Recoding
from anonfit.recoding.values import Unseen, Values, recoded_columns, region_values
from anonfit.spec.keywords import check_keywords, keyword_defaults, takes_settings
from anonfit.spec.kinds import is_whole
from anonfit.spec.model import ColumnSettings, RecodingSettings
from anonfit.tables.frames import like
from anonfit.tables.reading import ReadOptions, read_table

if TYPE_CHECKING:
    from numpy.typing import NDArray

OUTPUTS = (*Encoding, Values.LABELS, Values.BOUNDS)
OWN = ("k", "quasi_identifiers", "targets", "columns")
SETTINGS = {name: default for name, default in keyword_defaults(recoding=True).items() if name not in OWN}
"""Parameters that are settings of `anonymize`, and their defaults."""
AS_IN_ANONYMIZE = (*SETTINGS, "sensitive", "columns")
"""Parameters that mean what they mean for `anonymize`, and are handed on."""


@takes_settings(recoding=True)
class Anonymizer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Learns regions of at least k persons from training rows, for the target y, and recodes any rows by them.

    What `transform` gives is working data, not a release: it is row for row, and nothing is withheld. The columns
    `entity`, `count` and `sample_weight` are not in it.

    Args:
        k: How many training persons must share every region.
        quasi_identifiers: The columns of X that are generalized; all that have no other part, if not given.
        output: `ends`, `expected`, `both` or `smooth`: numbers, as of `RegionEncoder`; `labels` or `bounds`: a frame,
            as of a release.
        remainder: What becomes of the other columns of X: `passthrough` or `drop`.
        targets: Where there is something to say of y, one entry for each of its columns: a name, or settings as in a
            spec (`weight`, `classes`, `equal_width`, `scale`) and `type`, which is `nominal` for classes and
            `continuous` for numbers. Entries that name a quasi-identifier make it a target too.
        sensitive: Columns of X that nobody should learn of a person, as for `anonymize`.
        columns: As for `anonymize`, as are all that follow.
        {settings}

    Attributes:
        recoding_: The recoding, which can be saved and applied to any rows. No row of X or y is kept.

    Example:
        >>> import polars as pl
        >>> people = pl.DataFrame({"age": [21, 22, 41, 42]})
        >>> Anonymizer(k=2, output="labels").fit_transform(people)["age"].to_list()
        ['< 30', '< 30', '≥ 30', '≥ 30']
    """

    criterion: str
    entity: str | None
    count: str | None
    sample_weight: str | None
    types: Mapping[str, str] | None
    missing: Sequence[str]

    def __init__(
        self,
        k: int = 10,
        quasi_identifiers: Sequence[str] | None = None,
        *,
        output: str = "ends",
        remainder: str = "passthrough",
        targets: Sequence[str | Mapping[str, Any]] | None = None,
        sensitive: Mapping[str, Any] | None = None,
        columns: Mapping[str, ColumnSettings] | None = None,
        **settings: Unpack[RecodingSettings],
    ) -> None:
        check_keywords("Anonymizer", settings, SETTINGS)
        self.k = k
        self.quasi_identifiers = quasi_identifiers
        self.output = output
        self.remainder = remainder
        self.targets = targets
        self.sensitive = sensitive
        self.columns = columns
        for name, default in SETTINGS.items():
            setattr(self, name, settings.get(name, default))

    @classmethod
    def before(cls, learner: Any, **settings: Any) -> Pipeline:
        """A pipeline that learns regions, makes features of them that suit a learner, and teaches it.

        Args:
            learner: A classifier or regressor of scikit-learn: linear ones are given `smooth` features, scaled, all
                others `expected` ones.
            settings: Parameters of the anonymizer but `output`.

        Returns:
            The pipeline, not fitted.

        Example:
            >>> from sklearn.linear_model import LogisticRegression
            >>> list(Anonymizer.before(LogisticRegression(), k=2).named_steps)
            ['anonymizer', 'standardscaler', 'logisticregression']
        """
        if "output" in settings:
            raise RequestError(
                "Anonymizer.before chooses the output that suits the learner; leave output out, or write "
                "make_pipeline(Anonymizer(output=…), …)."
            )
        encoding = suited_encoding(learner)
        scaler = [StandardScaler()] if encoding == Encoding.SMOOTH else []
        return make_pipeline(cls(output=encoding.value, **settings), *scaler, learner)

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
        require_known("remainder", self.remainder, inputs.REMAINDERS)
        at_least = int(self.k) if is_whole(self.k) and self.count is None else 1
        table = table_of(self, X, reset=True, at_least=at_least)
        targets = inputs.targets_of(y, self.targets, table=table, criterion=self.criterion)
        release = anonymize(table.with_columns(targets.columns), **_words_for_anonymize(self, table, targets))
        self.recoding_: Recoding = release.recoding
        self.columns_in_ = tuple(table.columns)
        self._raw = _raw_columns(self, table)
        inputs.refuse_twice(list(self.get_feature_names_out()))
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
        table = table_of(self, X, reset=False, spare=set(self.columns_in_) - needed)
        # Texts that mean a missing value are missing, as they were when the regions were found.
        clean = frozenset(self.recoding_.quasi_identifiers)
        table = read_table(table, ReadOptions(missing=tuple(self.missing), clean=clean))
        nodes = self.recoding_.nodes(self.recoding_.cells(table, unseen=Unseen.ANCESTOR))
        if self.output in list(Encoding):
            return self._features(table, nodes)
        recoded = recoded_columns(self.recoding_, nodes, Values(self.output))
        kept = [name for name in self.columns_in_ if name in recoded or name in self._raw]
        return _framed(self, X, pl.DataFrame([part for name in kept for part in recoded.get(name, [table[name]])]))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """The names of the columns of the output.

        Args:
            input_features: Names for the columns of an array.

        Returns:
            One name for each.
        """
        check_is_fitted(self, "recoding_")
        names = inputs.given_names(self, self.columns_in_, input_features)
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


def _raw_columns(anonymizer: Anonymizer, table: pl.DataFrame) -> tuple[str, ...]:
    """The columns that are passed on as they are."""
    if anonymizer.remainder == "drop":
        return ()
    others = {*anonymizer.recoding_.quasi_identifiers, *_unreleased(anonymizer)}
    raw = [name for name in table.columns if name not in others]
    if anonymizer.output in list(Encoding):
        for name in raw:
            RawReader(name).require_numbers(table)
    return tuple(raw)


def _framed(anonymizer: Anonymizer, source: Any, recoded: pl.DataFrame) -> Any:
    """Recoded rows as the kind of frame that is asked for, or that came in; an array as one of objects."""
    config = getattr(anonymizer, "_sklearn_output_config", {})
    wanted = config.get("transform") or sklearn.get_config()["transform_output"]
    if wanted == "polars":
        return recoded
    if wanted == "pandas":
        frame = recoded.to_pandas()
        if hasattr(source, "index") and is_frame(source):
            frame.index = source.index
        return frame
    return like(source, recoded) if is_frame(source) else np.array(recoded.rows(), dtype=object)


# --- the keyword arguments with which `anonymize` makes the same recoding ----------------------------------------


def _unreleased(anonymizer: Anonymizer) -> list[str]:
    """The columns that say how rows count, and are no part of the output."""
    named = (anonymizer.entity, anonymizer.count, anonymizer.sample_weight)
    return [str(name) for name in named if name is not None]


def _quasi_identifiers(anonymizer: Anonymizer, table: pl.DataFrame) -> list[str]:
    """The columns that are generalized: those that are named, or all that have no other part."""
    if anonymizer.quasi_identifiers is None:
        others = {*named_columns(anonymizer.sensitive), *_unreleased(anonymizer)}
        return [name for name in table.columns if name not in others]
    named = named_columns(anonymizer.quasi_identifiers)
    absent = [name for name in named if name not in table.columns]
    if absent:
        raise DataError(f"X has no column {listed(absent)}, which quasi_identifiers names.")
    return named


def _words_for_anonymize(anonymizer: Anonymizer, table: pl.DataFrame, targets: inputs.Targets) -> dict[str, Any]:
    """The keyword arguments with which `anonymize` makes the recoding."""
    given = {name: getattr(anonymizer, name) for name in AS_IN_ANONYMIZE}
    words = {name: word for name, word in given.items() if word is not None}
    named, sensitive = _quasi_identifiers(anonymizer, table), named_columns(anonymizer.sensitive)
    roles = {*named, *sensitive, *_unreleased(anonymizer)}
    words["quasi_identifiers"] = named
    words["k"] = anonymizer.k
    words["insensitive"] = [name for name in table.columns if name not in roles]
    # Nothing of the table is released here, so raw columns with many values and cuts at values give nothing away.
    words["release"] = [*words["insensitive"], *sensitive, *targets.names]
    words["consent"] = words.get("cut_points") == "value"
    words["targets"] = [entry["column"] if len(entry) == 1 else entry for entry in targets.entries]
    words["types"] = {**(anonymizer.types or {}), **targets.types}
    return words
