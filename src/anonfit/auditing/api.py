# SPDX-License-Identifier: Apache-2.0
"""`audit`: the audit of any table, with demands in plain words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from anonfit.auditing.meanings import LabelMeaning, read_meaning
from anonfit.auditing.measuring import audit_request
from anonfit.auditing.recoding import RegionGrid, RegionTree, read_region_grid, read_region_tree
from anonfit.auditing.released import Regions
from anonfit.auditing.request import (
    THRESHOLDS,
    Attacker,
    OtherRelease,
    Request,
    Threshold,
    column_sets,
    read_demand,
    read_sensitive,
    read_targets,
    read_threshold,
)
from anonfit.auditing.result import Audit
from anonfit.errors import DataError


def audit(
    data: object,
    *,
    quasi_identifiers: Sequence[str],
    sensitive: Sequence[str] | Mapping[str, object] = (),
    k: int | None = None,
    entity: str | None = None,
    count: str | None = None,
    columns: Mapping[str, Mapping[str, Any]] | None = None,
    quasi_identifier_sets: Sequence[object] | None = None,
    diversity: Sequence[Mapping[str, Any]] = (),
    targets: Sequence[object] = (),
    max_confidence: float | None = None,
    max_risk: str | float | None = None,
    attacker: Attacker = "prosecutor",
    thresholds: Sequence[str | float | Threshold] = THRESHOLDS,
    source: object = None,
    withheld: int | range | None = None,
    other: object = None,
    population: object = None,
    sampling_fraction: float | None = None,
    order: Literal["sorted"] | None = None,
    expected_columns: Sequence[str] | None = None,
    regions: Regions = "any",
    nodes: Mapping[str, Any] | None = None,
    parts: Mapping[str, Any] | None = None,
    representatives: bool = False,
    missing: Sequence[str] = ("",),
    rows_at_once: int | None = None,
) -> Audit:
    """Recount a file or frame and say what it really protects.

    Args:
        data: A path of a format that anonfit reads, or a polars, pandas or Arrow frame; of any tool.
        quasi_identifiers: What an attacker may know. A column `age` may stand as `age_lower` and `age_upper`.
        sensitive: Raw columns whose diversity is measured; or a mapping from each to a demand, such as
            {"diagnosis": {"model": "entropy-l", "l": 3}}, or to a list of demands.
        k: The persons asked of the smallest group.
        entity: The column, of the data or of the source, whose different values are the persons.
        count: The column with the number of persons a row stands for.
        columns: What the labels of each quasi-identifier mean, as in the columns of recoding.json. Without it, labels
            are compared for equality; with a source their meaning is guessed from it.
        quasi_identifier_sets: Several quasi-identifiers, each a list of columns or a mapping with `columns` and `k`.
        diversity: The same demands as a list: {"column": "diagnosis", "model": "distinct-l", "l": 3}. Beside the
            parameters of its model (docs/spec.md), a demand may say of its column: `type`, `order` (the words, lowest
            first), `date_format`, `taxonomy` (nested mappings with `name` and `children`), `distance` (t-closeness).
        targets: Raw columns that groups must not make too certain: names, or mappings with `column` and `classes`
            (thresholds), `equal_width` (their number) or `type`: numbers without classes need the type "nominal".
        max_confidence: The largest share of a group that may have one value or class of a target.
        max_risk: The highest acceptable risk of the `attacker`: a number or the name of a preset.
        attacker: Whose risk `max_risk` is about.
        thresholds: The shares of persons above these are reported.
        source: The raw rows the data was made from.
        withheld: How many of them may be absent; None only reports them.
        other: A second release of the same source: a release folder, a frame or path with the same columns, or a
            mapping with `data`, `quasi_identifiers` and `columns`.
        population: The population the data was drawn from, with the same labels or raw.
        sampling_fraction: Refused: how many doubles a person has in the population does not follow from it.
        order: "sorted" asks that the order of the rows tells nothing.
        expected_columns: The columns the file must have, and no others.
        regions: "domain" or "observed" ask of the labels what these settings of a spec promise.
        nodes: The tree of regions, as "nodes" of recoding.json: every group must be one of its regions, unless regions
            are "observed". It counts `columns` in their order, so these must be all quasi-identifiers.
        parts: The parts of every column, as "parts" of recoding.json, in place of a tree.
        representatives: Numbers, dates and words of an order stand for regions: each must follow from one of `nodes` or
            `parts`.
        missing: Texts that mean missing, in every table.
        rows_at_once: Read so many rows at a time, for tables that do not fit in memory (data and source may then be
            lazy frames). What is found is the same; entities, another release, a population and labels whose meaning is
            to be guessed need the whole table.

    Returns:
        What was found; `passed` says whether every demand is met: one that could not be checked is not.

    Example:
        >>> import polars as pl
        >>> frame = pl.DataFrame({"age": ["[20, 40)"] * 3 + ["≥ 40"] * 2, "diagnosis": list("aabcc")})
        >>> result = audit(frame, quasi_identifiers=["age"], sensitive=["diagnosis"], k=3)
        >>> result.k, result.passed
        (2, False)
    """
    # Longer than a function should be only because every option is named and described once.
    if isinstance(quasi_identifiers, str):
        raise DataError("The quasi-identifiers are a list of columns.")
    names, demands = read_sensitive(sensitive)
    meanings = None if columns is None else {name: read_meaning(name, entry) for name, entry in columns.items()}
    return audit_request(
        Request(
            data=data,
            quasi_identifiers=tuple(quasi_identifiers),
            sensitive=names,
            k=k,
            entity=entity,
            count=count,
            meanings=meanings,
            sets=column_sets(quasi_identifier_sets or (), k),
            diversity=(*demands, *(read_demand(entry) for entry in diversity)),
            targets=() if max_confidence is None else read_targets(targets, max_confidence),
            max_risk=None if max_risk is None else read_threshold(max_risk),
            attacker=attacker,
            thresholds=tuple(read_threshold(threshold) for threshold in thresholds),
            source=source,
            withheld=withheld,
            other=None if other is None else read_other(other, tuple(quasi_identifiers), meanings=meanings),
            population=population,
            sampling_fraction=sampling_fraction,
            order=order,
            expected_columns=None if expected_columns is None else tuple(expected_columns),
            regions=regions,
            tree=None if regions == "observed" else _regions(nodes, parts, quasi_identifiers, meanings),
            representatives=representatives,
            missing=tuple(missing),
            rows_at_once=rows_at_once,
        )
    )


def _regions(
    nodes: Mapping[str, Any] | None,
    parts: Mapping[str, Any] | None,
    quasi_identifiers: Sequence[str],
    meanings: Mapping[str, LabelMeaning] | None,
) -> RegionTree | RegionGrid | None:
    """The regions over all quasi-identifiers, of a tree or of parts."""
    if nodes is None and parts is None:
        return None
    if nodes is not None and parts is not None:
        raise DataError("Regions are those of a tree or of parts of columns; give one of them.")
    if meanings is None or set(meanings) != set(quasi_identifiers):
        raise DataError("A tree of regions needs the meaning of every quasi-identifier, and of no other column.")
    return read_region_tree(nodes, meanings) if parts is None else read_region_grid(parts, meanings)


def read_other(
    other: object, quasi_identifiers: tuple[str, ...], *, meanings: Mapping[str, LabelMeaning] | None
) -> OtherRelease:
    """A second release: its folder, its data and meaning, or data of the same columns and meaning."""
    if isinstance(other, (str, Path)) and Path(other).is_dir():
        from anonfit.auditing.release_folder import other_release

        return other_release(Path(other))
    if not isinstance(other, Mapping):
        return OtherRelease(other, quasi_identifiers, meanings)
    if "data" not in other:
        raise DataError("The other release is a mapping without 'data'.")
    columns = other.get("columns")
    if columns is not None:
        meanings = {name: read_meaning(name, entry) for name, entry in columns.items()}
    return OtherRelease(other["data"], tuple(other.get("quasi_identifiers", quasi_identifiers)), meanings)
