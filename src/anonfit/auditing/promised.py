# SPDX-License-Identifier: Apache-2.0
"""What a release promises, by its spec and its recoding, as the request of an audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from anonfit.auditing import folder as folders
from anonfit.auditing.folder import Promise
from anonfit.auditing.meanings import LabelMeaning
from anonfit.auditing.reading import open_table
from anonfit.auditing.recoding import read_recoding
from anonfit.auditing.request import Request
from anonfit.auditing.result import Finding
from anonfit.errors import RecodingError


def promised_request(
    data: object,
    *,
    spec: Mapping[str, Any],
    recoding: Mapping[str, Any],
    columns: Sequence[str] | None = None,
    texts: Sequence[str] = (),
    source: object = None,
    missing: Sequence[str] | None = None,
) -> Request:
    """What is asked of data by a spec and a recoding, given as the mappings of manifest.json and recoding.json;
    `columns`, `texts` and `missing` are as for `audit_data` and `audit_release`.
    """
    promise = folders.read_promise(spec)
    recoded, tree = read_recoding(recoding, promise.date_formats)
    names, meanings = open_table(data, missing=("",)).names, _meanings(promise, recoded)
    entity, quasi_identifiers = promise.only("entity"), promise.having("quasi-identifier")
    diversity, targets = (
        tuple(demand.with_type("nominal" if demand.column in texts else None, None) for demand in demands)
        for demands in (promise.diversity, promise.targets)
    )
    return Request(
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
        source=source,
        suppression_limit=None if source is None else promise.suppression_limit,
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
        keys=(*quasi_identifiers, *(promise.having("sensitive", "insensitive") if promise.tests_raw_columns else ())),
        is_release=True,
        findings=(*folders.promised_findings(promise, recoded), *_beyond(promise, source)),
    )


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
