# SPDX-License-Identifier: Apache-2.0
"""The doors of the audit: `audit` for any table, with demands in plain words; `audit_release` for published folders and
`audit_data` for data that is in none, which go by what a spec promises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from anonfit.auditing import folder as folders
from anonfit.auditing.findings import k_finding
from anonfit.auditing.folder import Folder
from anonfit.auditing.formats import check_bytes
from anonfit.auditing.joint import locate_other
from anonfit.auditing.meanings import LabelMeaning, read_meaning
from anonfit.auditing.measuring import audit_request
from anonfit.auditing.placing import in_best_reading
from anonfit.auditing.promised import promised_request
from anonfit.auditing.reading import open_table
from anonfit.auditing.recoding import RegionGrid, RegionTree, read_region_grid, read_region_tree
from anonfit.auditing.released import Regions
from anonfit.auditing.report_shape import Retell, listed_objects
from anonfit.auditing.reports import check_report, not_recounted
from anonfit.auditing.request import (
    THRESHOLDS,
    Attacker,
    Request,
    Threshold,
    check_request,
    column_sets,
    read_demand,
    read_sensitive,
    read_targets,
    read_threshold,
)
from anonfit.auditing.result import JOINT, UNKNOWN_PERSONS, Audit, Finding
from anonfit.errors import DataError, did_you_mean, refuse_fork

_OF_OTHER = ("data", "quasi_identifiers", "columns", "entity", "count", "missing")


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
            mapping with `data` and, where they differ, `quasi_identifiers`, `columns`, `entity`, `count` and `missing`.
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
        _with_other(
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
                population=population,
                sampling_fraction=sampling_fraction,
                order=order,
                expected_columns=None if expected_columns is None else tuple(expected_columns),
                regions=regions,
                tree=None if regions == "observed" else _regions(nodes, parts, quasi_identifiers, meanings),
                representatives=representatives,
                missing=tuple(missing),
                rows_at_once=rows_at_once,
            ),
            other,
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


def audit_release(
    folder: str | Path,
    *,
    k: int | None = None,
    demands: Mapping[str, Any] | None = None,
    source: object = None,
    other: object = None,
    population: object = None,
    sampling_fraction: float | None = None,
    max_risk: str | float | None = None,
    attacker: Attacker = "prosecutor",
    thresholds: Sequence[str | float | Threshold] = THRESHOLDS,
    missing: Sequence[str] | None = None,
    layout: Mapping[str, Any] | None = None,
    rows_at_once: int | None = None,
    retell: Retell | None = None,
) -> Audit:
    """Audit a release folder: whether it holds what it claims in its own manifest, recoding and report and, apart from
    that, what is asked of it here.

    Args:
        folder: The release folder.
        k: The persons asked of the smallest group of all quasi-identifiers together, whatever the release claims.
        demands: What is asked of the data file, with the words of `audit`; it goes by the columns that are named here.
        source: The raw rows it was made from; without it, what the file says is all that can be checked.
        other, population, sampling_fraction, max_risk, attacker, thresholds, rows_at_once: As for `audit`.
        missing: Texts that mean missing in the source, if the spec in the manifest does not say.
        layout: What was said of a text file that is the source: `encoding`, and `skip_rows`, the lines left out.
        retell: Tells a report anew from its figures, to hold its texts and its page against; anonfit.audit_release
            brings it.

    Returns:
        What was found; `passed` says whether the folder holds what it claims and what is asked of it; `verdict` says it
        in sentences.
    """
    # Longer than a function should be only because every option is named and described once.
    refuse_fork()
    opened = folders.open_folder(Path(folder))
    promise = folders.read_promise(opened.spec)
    asked = _asked(opened, demands, source=source, missing=missing, rows_at_once=rows_at_once)
    audited = audit_data(
        opened.table,
        spec=opened.spec,
        recoding=opened.recoding,
        columns=opened.columns,
        texts=opened.texts,
        released=opened.released,
        withheld=folders.stated_rows(opened.withheld, promise),
        dropped=folders.stated_rows(opened.dropped, promise),
        source=source,
        other=other,
        population=population,
        sampling_fraction=sampling_fraction,
        max_risk=max_risk,
        attacker=attacker,
        thresholds=(*THRESHOLDS, *thresholds),
        missing=missing,
        layout=layout,
        rows_at_once=rows_at_once,
        findings=[
            *folders.files_as_stated(opened.path, opened.files, opened.needed),
            check_bytes(opened.data, opened.texts, opened.form),
            *([folders.suppression_finding(opened, promise)] if source is None else []),
        ],
    )
    if k is not None:
        lost = audited.counted == UNKNOWN_PERSONS
        asked = (k_finding(audited.sizes, k, lost=lost, where=", ".join(audited.quasi_identifiers)), *asked)
    # A report goes by the usual thresholds, and knows nothing of another release or a population.
    marketer = audited.marketer if audited.journalist is None else audited.prosecutor.average
    published = replace(_above(audited, slice(len(THRESHOLDS))), journalist=None, joint=None, marketer=marketer)
    claims = (*audited.findings, *check_report(opened, promise, published, retell))
    by_caller = (f"{attacker} risk", JOINT)
    own = tuple(replace(finding, claimed=finding.name not in by_caller) for finding in claims)
    audited = _above(audited, slice(len(THRESHOLDS), None))
    return replace(audited, findings=(*asked, *own), claims=promise.claims, not_recounted=not_recounted(opened))


def _above(audited: Audit, part: slice) -> Audit:
    """An audit that tells who is above some of its thresholds only."""
    rounded = audited.rounded
    risk, public = (replace(version.prosecutor, above=version.prosecutor.above[part]) for version in (audited, rounded))
    journalist = audited.journalist and replace(audited.journalist, above=audited.journalist.above[part])
    public_audit = None if rounded is audited else replace(rounded, prosecutor=public)
    return replace(audited, prosecutor=risk, journalist=journalist, _rounded=public_audit)


def _asked(opened: Folder, demands: Mapping[str, Any] | None, *, source: object, **words: Any) -> tuple[Finding, ...]:
    """What is asked of the data file by who audits the release: an audit of its own."""
    if not demands:
        return ()
    names, columns = demands.get("quasi_identifiers", ()), listed_objects(opened.recoding.get("columns"))
    known: dict[str, Any] = {"columns": {entry["name"]: entry for entry in columns if entry.get("name") in names}}
    known["rows_at_once"] = words["rows_at_once"]
    if words["missing"] is not None:
        known["missing"] = words["missing"]
    if demands.get("entity"):
        known |= {"source": source, "rows_at_once": None}
    return audit(opened.table, **{**known, **demands}).findings


def audit_data(
    data: object,
    *,
    spec: Mapping[str, Any],
    recoding: Mapping[str, Any],
    columns: Sequence[str] | None = None,
    texts: Sequence[str] = (),
    released: Sequence[int] = (),
    withheld: int | range | None = None,
    dropped: int | range | None = None,
    source: object = None,
    other: object = None,
    population: object = None,
    sampling_fraction: float | None = None,
    max_risk: str | float | None = None,
    attacker: Attacker = "prosecutor",
    thresholds: Sequence[str | float | Threshold] = THRESHOLDS,
    missing: Sequence[str] | None = None,
    layout: Mapping[str, Any] | None = None,
    rows_at_once: int | None = None,
    findings: Sequence[Finding] = (),
) -> Audit:
    """Audit written data against a spec and a recoding, given as the mappings of manifest.json and recoding.json.

    `columns` is the order of columns that was promised, `texts` are those that hold texts even if these look like
    numbers, `released` are numbers of rows that were promised. A spec that calls other columns quasi-identifiers than
    the recoding does has no regions to be held against.
    """
    # Longer than a function should be only because every option is named and passed on.
    request = promised_request(
        data, spec=spec, recoding=recoding, columns=columns, texts=texts, source=source, missing=missing
    )
    table = open_table(data)
    stated = folders.as_stated(table.height, table.names, columns=columns, released=released)
    request = replace(
        request,
        max_risk=None if max_risk is None else read_threshold(max_risk),
        attacker=attacker,
        thresholds=tuple(read_threshold(threshold) for threshold in thresholds),
        withheld=None if source is None else withheld,
        dropped=None if source is None else dropped,
        population=population,
        sampling_fraction=sampling_fraction,
        layout=layout or {},
        rows_at_once=rows_at_once,
        findings=(*findings, *stated, *request.findings),
    )
    return in_best_reading(_with_other(request, other, missing), audit_request, _misread)


def _misread(audited: Audit) -> int:
    """How many findings are against a way to read the source; what only its caller asked of it says nothing of that."""
    return sum(not finding.name.endswith((" risk", JOINT)) for finding in audited.missed)


def _with_other(request: Request, other: object, missing: Sequence[str] | None = None) -> Request:
    """The request with a second release that is to be held against the first, if there is one."""
    if other is None:
        return request
    if request.source is None:
        raise DataError("Comparing two releases needs the source: only its rows say who is in both labels.")
    check_request(request)
    second = replace(_other_request(other, request, missing), layout=request.layout)
    request = replace(request, beside=second.quasi_identifiers)
    return replace(request, other=locate_other(request, replace(second, beside=request.quasi_identifiers)))


def _other_request(other: object, request: Request, missing: Sequence[str] | None) -> Request:
    """A second release: its folder, its data and meaning, or data of the same columns and meaning."""
    if isinstance(other, (str, Path)) and Path(other).is_dir():
        opened = folders.open_folder(Path(other))
        words: dict[str, Any] = {"spec": opened.spec, "recoding": opened.recoding, "texts": opened.texts}
        return promised_request(opened.table, source=request.source, missing=missing, **words)
    given: Mapping[str, Any] = other if isinstance(other, Mapping) else {"data": other}
    if "data" not in given:
        raise DataError("The other release is a mapping without 'data'.")
    for key in given:
        if key not in _OF_OTHER:
            raise DataError(f"The other release has no setting '{key}': {did_you_mean(str(key), _OF_OTHER)}")
    columns, meanings = given.get("columns"), request.meanings
    if columns is not None:
        meanings = {name: read_meaning(name, entry) for name, entry in columns.items()}
    names = tuple(given.get("quasi_identifiers", request.quasi_identifiers))
    return Request(
        data=given["data"],
        quasi_identifiers=names,
        entity=given.get("entity"),
        count=given.get("count"),
        meanings=meanings,
        source=request.source,
        missing=tuple(given.get("missing", request.missing)),
        codes=request.codes,
        keys=None if request.keys is None else names,
        is_release=request.is_release,
    )
