# SPDX-License-Identifier: Apache-2.0
"""Audits a release folder: its files, its columns against their roles, its labels against the recoding, then its data.
`audit_release` is for published folders, `audit_data` for data that is in none; both go by what a spec promises."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from anonfit.auditing.api import audit, read_other
from anonfit.auditing.findings import k_finding, suppression
from anonfit.auditing.folder import RAW_ROLES, Folder, Promise, check_files, open_folder, read_promise
from anonfit.auditing.formats import check_bytes, is_text_file
from anonfit.auditing.meanings import JsonObject, LabelMeaning
from anonfit.auditing.measuring import audit_request
from anonfit.auditing.reading import open_table
from anonfit.auditing.recoding import Recoded, read_meanings, read_recoding
from anonfit.auditing.reports import Retell, check_report, not_recounted
from anonfit.auditing.request import THRESHOLDS, Attacker, OtherRelease, Request, Threshold, read_threshold
from anonfit.auditing.result import UNKNOWN_PERSONS, Audit, Finding, Share
from anonfit.errors import DataError, RecodingError, ReleaseError, refuse_fork

_MANY = 1 << 62  # rows: more than any table has


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
        other: A second release of the same source, as for `audit`.
        population: The population the data was drawn from.
        sampling_fraction: Refused: how many doubles a person has in the population does not follow from it.
        max_risk: The highest acceptable risk of the `attacker`: a number or the name of a preset.
        attacker: Whose risk `max_risk` is about.
        thresholds: The shares of persons above these are reported.
        missing: Texts that mean missing in the source, if the spec in the manifest does not say.
        rows_at_once: Read so many rows at a time, as for `audit`.
        retell: Tells a report anew from its figures, to hold its texts and its page against; anonfit.audit_release
            brings it.

    Returns:
        What was found; `passed` says whether the folder holds what it claims and what is asked of it; `verdict` says it
        in sentences.
    """
    # Longer than a function should be only because every option is named and described once.
    refuse_fork()
    opened = open_folder(Path(folder))
    promise = read_promise(opened.spec)
    asked = _asked(opened, demands, source=source, missing=missing, rows_at_once=rows_at_once)
    audited = audit_data(
        opened.data,
        spec=opened.spec,
        recoding=opened.recoding,
        columns=opened.columns,
        texts=opened.texts,
        released=opened.released,
        withheld=_stated_rows(opened.withheld, promise),
        dropped=_stated_rows(opened.dropped, promise),
        source=source,
        other=other,
        population=population,
        sampling_fraction=sampling_fraction,
        max_risk=max_risk,
        attacker=attacker,
        thresholds=(*THRESHOLDS, *thresholds),
        missing=missing,
        rows_at_once=rows_at_once,
        findings=[
            *check_files(opened),
            check_bytes(opened.data, opened.texts),
            *([_suppressed(opened, promise)] if source is None else []),
        ],
    )
    if k is not None:
        lost = audited.counted == UNKNOWN_PERSONS
        asked = (k_finding(audited.sizes, k, lost=lost, where=", ".join(audited.quasi_identifiers)), *asked)
    claims = (*audited.findings, *check_report(opened, promise, _as_published(audited), retell))
    by_caller = (f"{attacker} risk", "joint cells")
    own = tuple(replace(finding, claimed=finding.name not in by_caller) for finding in claims)
    audited = _above(audited, slice(len(THRESHOLDS), None))
    return replace(audited, findings=(*asked, *own), claims=promise.claims, not_recounted=not_recounted(opened))


def check_published(folder: Path, audit: Audit, retell: Retell) -> tuple[Finding, ...]:
    """What the audit of a folder finds beside an audit of its data, which was made already, with the source."""
    opened = open_folder(folder)
    promise = read_promise(opened.spec)
    for stated in (opened.withheld, opened.dropped):
        _stated_rows(stated, promise)
    meanings = read_meanings(JsonObject(opened.recoding, "the recoding", RecodingError), promise.date_formats)
    return (
        *_stated(lambda: audit.rows, open_table(opened.data).names, columns=opened.columns, released=opened.released),
        _suppressed(opened, promise),
        *_roles(promise, meanings),
        *_consent(promise),
        *check_report(opened, promise, audit, retell),
    )


def _as_published(audited: Audit) -> Audit:
    """An audit by the usual thresholds, without what another release or a population say: as a report has it."""
    usual = _above(audited, slice(len(THRESHOLDS)))
    marketer = audited.marketer if audited.journalist is None else audited.prosecutor.average
    return replace(usual, journalist=None, joint=None, marketer=marketer)


def _above(audited: Audit, part: slice) -> Audit:
    """An audit that tells who is above some of its thresholds only: a report goes by the usual ones."""
    rounded = audited.rounded
    risk, public = (replace(version.prosecutor, above=version.prosecutor.above[part]) for version in (audited, rounded))
    journalist = audited.journalist and replace(audited.journalist, above=audited.journalist.above[part])
    public_audit = None if rounded is audited else replace(rounded, prosecutor=public)
    return replace(audited, prosecutor=risk, journalist=journalist, _rounded=public_audit)


def _asked(opened: Folder, demands: Mapping[str, Any] | None, *, source: object, **words: Any) -> tuple[Finding, ...]:
    """What is asked of the data file by who audits the release: an audit of its own."""
    if not demands:
        return ()
    names = demands.get("quasi_identifiers", ())
    columns = {name: entry for entry in _entries(opened.recoding) if (name := entry.get("name")) in names}
    lost = {"missing": words["missing"]} if words["missing"] is not None else {}
    source = source if demands.get("entity") else None
    rows_at_once = None if demands.get("entity") else words["rows_at_once"]
    known: Any = {"source": source, "columns": columns, "rows_at_once": rows_at_once, **lost}
    return audit(opened.data, **{**known, **demands}).findings


def _entries(recoding: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The columns of recoding.json, which is read in earnest elsewhere."""
    columns = recoding.get("columns")
    return [entry for entry in columns if isinstance(entry, Mapping)] if isinstance(columns, list) else []


def _stated_rows(stated: int | range, promise: Promise) -> int | range:
    """The rows of the source that may be withheld or dropped, as the manifest tells: those of few persons are not told,
    and a person may have many rows.
    """
    if isinstance(stated, int):
        return stated
    if stated.stop != promise.least:
        raise ReleaseError(
            f"The manifest tells rows that are withheld or dropped as 'fewer than {stated.stop}': figures of few "
            f"persons are told as 'fewer than {promise.least}'."
        )
    return stated if promise.only("entity") is None else range(stated.start, _MANY)


def _suppressed(opened: Folder, promise: Promise) -> Finding:
    """The rows that the manifest says were withheld, at least, against those that may be."""
    least = opened.withheld if isinstance(opened.withheld, int) else opened.withheld.start
    return suppression(Share(least, least + opened.released[0]), promise.suppression_limit)


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
    rows_at_once: int | None = None,
    findings: Sequence[Finding] = (),
) -> Audit:
    """Audit written data against a spec and a recoding, given as the mappings of manifest.json and recoding.json.

    `columns` is the order of columns that was promised, `texts` are those that hold texts even if these look like
    numbers, `released` are numbers of rows that were promised.
    """
    # Longer than a function should be only because every option is named and passed on.
    promise = read_promise(spec)
    recoded = read_recoding(recoding, promise.date_formats)
    promise = replace(promise, **_with_texts(promise, texts))
    lost = promise.missing if missing is None else tuple(missing)
    names = open_table(data, missing=("",)).names
    asked = _request(data, promise, recoded, names=names, columns=columns)
    noticed = [*findings, *_stated(lambda: open_table(data).height(), names, columns=columns, released=released)]
    noticed += [*_roles(promise, recoded.meanings), *_consent(promise), *_beyond(promise, source)]
    request = replace(
        asked,
        entity=None if source is None else asked.entity,
        entities_lost=source is None and asked.entity is not None,
        max_risk=None if max_risk is None else read_threshold(max_risk),
        attacker=attacker,
        thresholds=tuple(read_threshold(threshold) for threshold in thresholds),
        source=source,
        withheld=None if source is None else withheld,
        dropped=None if source is None else dropped,
        suppression_limit=promise.suppression_limit if source is not None else None,
        other=None if other is None else read_other(other, asked.quasi_identifiers, meanings=asked.meanings),
        population=population,
        sampling_fraction=sampling_fraction,
        missing=lost,
        codes=promise.codes,
        rows_at_once=rows_at_once,
        findings=tuple(noticed),
    )
    if not is_text_file(source):
        return audit_request(request)
    # Blanks around the texts of a text file may have been taken for a part of them, lines for none, and points for
    # thousands, or not.
    readings = (request, replace(request, stripped=True), replace(request, care="."), replace(request, care=","))
    audits: list[Audit | DataError] = []
    for reading in readings:
        audits.append(_tried(reading))
        if isinstance(audits[-1], Audit) and audits[-1].passed:
            return audits[-1]
    found = next((one for one in audits if isinstance(one, Audit)), audits[0])
    if isinstance(found, DataError):
        raise found
    return found


def _tried(request: Request) -> Audit | DataError:
    """The audit by one way to read the source, or why it cannot be read so."""
    try:
        return audit_request(request)
    except DataError as error:
        return error


def _with_texts(promise: Promise, texts: Sequence[str]) -> dict[str, Any]:
    """The demands of a spec, those on columns of texts knowing that these are names."""
    return {
        name: tuple(demand.with_type("nominal" if demand.column in texts else None, None) for demand in demands)
        for name, demands in (("diversity", promise.diversity), ("targets", promise.targets))
    }


def _request(
    data: object, promise: Promise, recoded: Recoded, *, names: Sequence[str], columns: Sequence[str] | None
) -> Request:
    """What a spec promises of a file with these columns; one that calls other columns quasi-identifiers than the
    recoding does has no regions to be held against.
    """
    quasi_identifiers = promise.having("quasi-identifier")
    return Request(
        data=data,
        quasi_identifiers=quasi_identifiers,
        sensitive=tuple(name for name in promise.having("sensitive") if name in names),
        k=promise.k,
        entity=promise.only("entity"),
        count=promise.only("count"),
        meanings=_meanings(promise, recoded),
        sets=promise.sets,
        diversity=promise.diversity,
        targets=promise.targets,
        order="sorted" if promise.order == "sorted" else None,
        expected_columns=_expected(promise, recoded, columns),
        regions=promise.regions,
        tree=recoded.tree if set(quasi_identifiers) == set(recoded.meanings) else None,
        representatives=promise.values == "representative",
        drops_missing=promise.drops_missing,
        complete=promise.complete,
        leaves_out_unknown=True,
        keys=(*quasi_identifiers, *promise.tested),
        is_release=True,
    )


def other_release(folder: Path) -> OtherRelease:
    """A release folder as the second release of an audit."""
    opened = open_folder(folder)
    promise = read_promise(opened.spec)
    recoded = read_recoding(opened.recoding, promise.date_formats)
    left_out = {"drops_missing": promise.drops_missing, "complete": promise.complete, "leaves_out_unknown": True}
    meanings, tree = _meanings(promise, recoded), recoded.tree if promise.values == "representative" else None
    return OtherRelease(opened.data, promise.having("quasi-identifier"), meanings, left_out, tree)


def _meanings(promise: Promise, recoded: Recoded) -> dict[str, LabelMeaning]:
    """The meaning of every quasi-identifier."""
    for name in promise.having("quasi-identifier"):
        if name not in recoded.meanings:
            raise RecodingError(f"The recoding says nothing of the quasi-identifier '{name}'.")
    return {name: recoded.meanings[name] for name in promise.having("quasi-identifier")}


def _expected(promise: Promise, recoded: Recoded, columns: Sequence[str] | None) -> tuple[str, ...]:
    """The columns that the roles put into a file, in the stated order; with bounds, two or three for one."""
    wanted: list[str] = []
    for name, role in promise.roles.items():
        meaning = recoded.meanings.get(name) if role == "quasi-identifier" else None
        if meaning is not None and promise.values == "bounds" and not meaning.is_named:
            ends = ("lower", "upper", "missing") if meaning.missing else ("lower", "upper")
            wanted.extend(f"{name}_{end}" for end in ends)
        elif role == "quasi-identifier" or role in RAW_ROLES:
            wanted.append(name)
    order = {name: place for place, name in enumerate(columns or ())}
    return tuple(sorted(wanted, key=lambda name: order.get(name, len(order))))


def _stated(
    height: Callable[[], int], names: Sequence[str], *, columns: Sequence[str] | None, released: Sequence[int]
) -> list[Finding]:
    """The file has the columns and the number of rows that were stated."""
    findings = []
    if columns is not None:
        same = list(columns) == list(names)
        sentence = "The file has the stated columns." if same else "The file has other columns than stated."
        findings.append(Finding("stated columns", list(columns), list(names), same, sentence))
    if released:
        rows = height()
        same = all(number == rows for number in released)
        sentence = (
            "The file has the stated number of rows." if same else "The file has another number of rows than stated."
        )
        findings.append(Finding("stated rows", released[0], rows, same, sentence))
    return findings


def _roles(promise: Promise, meanings: Mapping[str, LabelMeaning]) -> list[Finding]:
    """The columns of the recoding are those that the spec calls quasi-identifiers."""
    asked, called = list(meanings), list(promise.having("quasi-identifier"))
    same = set(asked) == set(called)
    sentence = (
        "The quasi-identifiers are the columns of the recoding."
        if same
        else "The recoding has other columns than those that are called quasi-identifiers."
    )
    return [Finding("quasi-identifiers", asked, called, same, sentence)]


def _consent(promise: Promise) -> list[Finding]:
    """What gives away more than regions was consented to."""
    given = [word for word in (promise.order, promise.regions) if word in ("original", "observed")]
    if not given:
        return []
    sentence = (
        "What the order of rows or observed labels give away was consented to."
        if promise.consent
        else "The order of rows or observed labels give away more than regions, and nobody consented to that."
    )
    return [Finding("consent", True, promise.consent, promise.consent, sentence, ", ".join(given))]


def _beyond(promise: Promise, source: object) -> list[Finding]:
    """What the spec promises but this audit has not the means to check."""
    findings = []
    entity = promise.only("entity")
    if entity is not None and source is None:
        sentence = "Persons were counted as rows: their entities are only in the source."
        findings.append(Finding("entities", entity, None, None, sentence))
    if promise.attack_limit < 1:
        # It was held when the file was published; a demand that no audit can check would fail every one.
        sentence = (
            "What a model learns across groups was limited when this was published; an audit does not measure it."
        )
        findings.append(Finding("attack_limit", None, None, None, sentence))
    return findings
