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
from anonfit.auditing.folder import Folder, Promise
from anonfit.auditing.formats import check_bytes
from anonfit.auditing.meanings import LabelMeaning, read_meaning
from anonfit.auditing.measuring import audit_request
from anonfit.auditing.reading import is_text_file, open_table
from anonfit.auditing.recoding import RegionGrid, RegionTree, read_recoding, read_region_grid, read_region_tree
from anonfit.auditing.released import Regions
from anonfit.auditing.report_shape import Retell, listed_objects
from anonfit.auditing.reports import check_report, not_recounted
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
from anonfit.auditing.result import JOINT, UNKNOWN_PERSONS, Audit, Finding
from anonfit.errors import DataError, RecodingError, refuse_fork

_WAYS_TO_READ: tuple[dict[str, Any], ...] = ({}, {"stripped": True}, {"care": "."}, {"care": ","})


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
    promise = folders.read_promise(spec)
    recoded, tree = read_recoding(recoding, promise.date_formats)
    names, meanings = open_table(data, missing=("",)).names, _meanings(promise, recoded)
    entity, quasi_identifiers = promise.only("entity"), promise.having("quasi-identifier")
    diversity, targets = (
        tuple(demand.with_type("nominal" if demand.column in texts else None, None) for demand in demands)
        for demands in (promise.diversity, promise.targets)
    )
    noticed = [
        *findings,
        *folders.as_stated(lambda: open_table(data).height(), names, columns=columns, released=released),
    ]
    noticed += [*folders.promised_findings(promise, recoded), *_beyond(promise, source)]
    request = Request(
        data=data,
        quasi_identifiers=quasi_identifiers,
        sensitive=tuple(name for name in promise.having("sensitive") if name in names),
        k=promise.k,
        entity=None if source is None else entity,
        entities_lost=source is None and entity is not None,
        count=promise.only("count"),
        meanings=meanings,
        sets=promise.sets,
        diversity=diversity,
        targets=targets,
        max_risk=None if max_risk is None else read_threshold(max_risk),
        attacker=attacker,
        thresholds=tuple(read_threshold(threshold) for threshold in thresholds),
        source=source,
        withheld=None if source is None else withheld,
        dropped=None if source is None else dropped,
        suppression_limit=None if source is None else promise.suppression_limit,
        other=None if other is None else read_other(other, quasi_identifiers, meanings=meanings),
        population=population,
        sampling_fraction=sampling_fraction,
        order="sorted" if promise.order == "sorted" else None,
        expected_columns=_expected(promise, recoded, columns),
        regions=promise.regions,
        tree=tree if set(quasi_identifiers) == set(recoded) else None,
        representatives=promise.values == "representative",
        drops_missing=promise.drops_missing,
        complete=promise.complete,
        leaves_out_unknown=True,
        missing=promise.missing if missing is None else tuple(missing),
        codes=promise.codes,
        layout=layout or {},
        keys=(*quasi_identifiers, *(promise.having("sensitive", "insensitive") if promise.tests_raw_columns else ())),
        is_release=True,
        rows_at_once=rows_at_once,
        findings=tuple(noticed),
    )
    if not is_text_file(source):
        return audit_request(request)
    # Blanks around the texts of a text file may have been taken for a part of them, lines for none, and points for
    # thousands, or not.
    audits: list[Audit] = []
    faults: list[DataError] = []
    for way in _WAYS_TO_READ:
        try:
            audits.append(audit_request(replace(request, **way)))
        except DataError as error:
            faults.append(error)
            continue
        if not _misread(audits[-1]):
            return audits[-1]
    if not audits:
        raise faults[0]
    return min(audits, key=_misread)


def _misread(audited: Audit) -> int:
    """How many findings are against a way to read the source; what only its caller asked of it says nothing of that."""
    return sum(not finding.name.endswith((" risk", JOINT)) for finding in audited.missed)


def read_other(
    other: object, quasi_identifiers: tuple[str, ...], *, meanings: Mapping[str, LabelMeaning] | None
) -> OtherRelease:
    """A second release: its folder, its data and meaning, or data of the same columns and meaning."""
    if isinstance(other, (str, Path)) and Path(other).is_dir():
        opened = folders.open_folder(Path(other))
        promise = folders.read_promise(opened.spec)
        recoded, tree = read_recoding(opened.recoding, promise.date_formats)
        left_out = {"drops_missing": promise.drops_missing, "complete": promise.complete, "leaves_out_unknown": True}
        names = promise.having("quasi-identifier")
        regions = tree if promise.values == "representative" else None
        return OtherRelease(opened.table, names, _meanings(promise, recoded), left_out, regions)
    if not isinstance(other, Mapping):
        return OtherRelease(other, quasi_identifiers, meanings)
    if "data" not in other:
        raise DataError("The other release is a mapping without 'data'.")
    columns = other.get("columns")
    if columns is not None:
        meanings = {name: read_meaning(name, entry) for name, entry in columns.items()}
    return OtherRelease(other["data"], tuple(other.get("quasi_identifiers", quasi_identifiers)), meanings)


def _meanings(promise: Promise, recoded: Mapping[str, LabelMeaning]) -> dict[str, LabelMeaning]:
    """The meaning of every quasi-identifier."""
    for name in promise.having("quasi-identifier"):
        if name not in recoded:
            raise RecodingError(f"The recoding says nothing of the quasi-identifier '{name}'.")
    return {name: recoded[name] for name in promise.having("quasi-identifier")}


def _expected(promise: Promise, recoded: Mapping[str, LabelMeaning], columns: Sequence[str] | None) -> tuple[str, ...]:
    """The columns that the roles put into a file, in the stated order; with bounds, two or three for one."""
    wanted: list[str] = []
    for name, role in promise.roles.items():
        meaning = recoded.get(name) if role == "quasi-identifier" else None
        if meaning is not None and promise.values == "bounds" and not meaning.is_named:
            wanted += [f"{name}_lower", f"{name}_upper", *([f"{name}_missing"] if meaning.missing else [])]
        elif role == "quasi-identifier" or role in folders.RAW_ROLES:
            wanted.append(name)
    order = {name: place for place, name in enumerate(columns or ())}
    return tuple(sorted(wanted, key=lambda name: order.get(name, len(order))))


def _beyond(promise: Promise, source: object) -> list[Finding]:
    """What the spec promises but this audit has not the means to check."""
    findings = []
    if source is None and (entity := promise.only("entity")) is not None:
        sentence = "Persons were counted as rows: their entities are only in the source."
        findings.append(Finding("entities", entity, None, None, sentence))
    if promise.attack_limit < 1:  # it was held when the file was published: asked of every audit, each would fail
        sentence = (
            "What a model learns across groups was limited when this was published; an audit does not measure it."
        )
        findings.append(Finding("attack_limit", None, None, None, sentence))
    return findings
