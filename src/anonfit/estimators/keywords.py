# SPDX-License-Identifier: Apache-2.0
"""The keyword arguments with which an Anonymizer calls `anonymize`, so that both make the same recoding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from anonfit.errors import DataError, listed
from anonfit.estimators.targets import Targets

if TYPE_CHECKING:
    import polars as pl

    from anonfit.estimators.anonymizer import Anonymizer

__all__ = ["unreleased", "words_for_anonymize"]

AS_IN_ANONYMIZE = (
    "taxonomies",
    "types",
    "orders",
    "domains",
    "splits",
    "date_formats",
    "missing",
    "missing_policy",
    "entity",
    "count",
    "sample_weight",
    "sensitive",
    "algorithm",
    "requirements",
    "criterion",
    "candidates",
    "split_on",
    "weights",
    "weights_from",
    "features",
    "selected_by",
    "weight_rule",
    "alpha",
    "beta",
    "gamma",
    "min_gain",
    "denoise",
    "selections",
    "cut_points",
    "average",
    "suppression",
    "zero_gain",
    "time_budget",
    "start",
    "variant",
    "pruning",
    "max_spans",
    "max_confidence",
    "seed",
)
"""Parameters that mean what they mean for `anonymize`, and are handed on."""


def _names(given: Any) -> list[str]:
    """The columns that a parameter names; one may stand alone."""
    if given is None:
        return []
    return [given] if isinstance(given, str) else [str(name) for name in given]


def unreleased(anonymizer: Anonymizer) -> list[str]:
    """The columns that say how rows count, and are no part of the output."""
    named = (anonymizer.entity, anonymizer.count, anonymizer.sample_weight)
    return [str(name) for name in named if name is not None]


def _quasi_identifiers(anonymizer: Anonymizer, table: pl.DataFrame) -> list[str]:
    """The columns that are generalized: those that are named, or all that have no other part."""
    if anonymizer.quasi_identifiers is None:
        others = {*_names(anonymizer.sensitive), *unreleased(anonymizer)}
        return [name for name in table.columns if name not in others]
    named = _names(anonymizer.quasi_identifiers)
    absent = [name for name in named if name not in table.columns]
    if absent:
        raise DataError(f"X has no column {listed(absent)}, which quasi_identifiers names.")
    return named


def words_for_anonymize(anonymizer: Anonymizer, table: pl.DataFrame, targets: Targets) -> dict[str, Any]:
    """The keyword arguments with which `anonymize` makes the recoding."""
    given = {name: getattr(anonymizer, name) for name in AS_IN_ANONYMIZE}
    words = {name: word for name, word in given.items() if word is not None}
    named, sensitive = _quasi_identifiers(anonymizer, table), _names(anonymizer.sensitive)
    roles = {*named, *sensitive, *unreleased(anonymizer)}
    words["quasi_identifiers"] = named
    words["k"] = anonymizer.k
    words["insensitive"] = [name for name in table.columns if name not in roles]
    # Nothing of the table is released here, so raw columns with many values and cuts at values give nothing away.
    words["release"] = [*words["insensitive"], *sensitive, *targets.names]
    words["consent"] = words.get("cut_points") == "value"
    words["targets"] = [entry["column"] if len(entry) == 1 else entry for entry in targets.entries]
    words["types"] = {**(anonymizer.types or {}), **targets.types}
    return words
