# SPDX-License-Identifier: Apache-2.0
"""The audits of folders as everybody has them, and what a published folder must say: its texts written anew from its
manifest and its report. Audits compare with these texts but may not import the code that writes them: it is lent to
them here.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from anonfit.algorithms.trees.released import read_model
from anonfit.auditing import release_folder, trees
from anonfit.engines.catalogue import ENGINES
from anonfit.errors import ReleaseError, SpecError, listed
from anonfit.recoding.columns import NominalCells, OrdinalCells
from anonfit.recoding.recoding import Recoding
from anonfit.recoding.storage import read_recoding
from anonfit.release.bind import schema_of, workload_of
from anonfit.release.engine import REASONS
from anonfit.release.evidence import (
    UNKNOWN_USE,
    asked_of,
)
from anonfit.release.table import drawn_content
from anonfit.report.asking import GIVEN_MODEL, Aim
from anonfit.report.content import following
from anonfit.report.page import report_page, tree_page
from anonfit.report.trees import asked_of_tree, drawn_svg, drawn_text, tree_content
from anonfit.runtime.strict_json import Damaged, JsonPart
from anonfit.spec.model import Spec
from anonfit.spec.parse import public_spec
from anonfit.tables.schema import Role
from anonfit.workload.targets import TargetRequest, Workload

Json = Mapping[str, Any]


def expected_report(folder: Path, manifest: Json, report: Json) -> tuple[Json, str]:
    """A report with all that follows from its other parts and from the folder written anew, and its page."""
    recoding = read_recoding(folder / "recoding.json")
    spec = spec_of_manifest(manifest["spec"], recoding)
    schema = schema_of(spec, list(spec.columns))
    workload = _workload(spec, report["asked"])
    content: dict[str, Any] = {
        **report,
        "asked": asked_of(
            spec,
            schema,
            recoding.quasi_identifiers,
            demands=manifest["spec"]["privacy"]["diversity"],
            workload=workload,
            aims=[_aim(target, report["asked"], spec) for target in workload.targets],
            tried=_tried(report["asked"]["sentences"]),
        ),
        "engine": _engine(manifest, report["engine"]),
    }
    if drawn := report.get("measured_on"):
        content["measured_on"] = drawn_content(drawn["rows"], drawn["of"])
    content |= following(content, schema, recoding.columns)
    return content, report_page(content, manifest)


def expected_tree_report(folder: Path, manifest: Json, report: Json) -> tuple[Json, dict[str, str]]:
    """A tree's audit.json with all that follows from its other parts written anew, and its drawings by file name."""
    tree, tables = read_model(folder / "model.json"), manifest["spec"]
    asked = asked_of_tree(
        tree,
        k=tables["privacy"]["k"],
        diversity=[
            _demand(*both) for both in zip(report["asked"]["diversity"], tables["privacy"]["diversity"], strict=True)
        ],
        max_confidence=tables["privacy"]["max_confidence"],
        variant=tables["method"]["variant"],
        cut_points=tables["method"]["cut_points"],
    )
    content = tree_content(tree, asked=asked, rows=report["rows"], audit=report["audit"])
    drawing = drawn_svg(tree)
    pages = {"tree.txt": drawn_text(tree), "tree.svg": drawing, "report.html": tree_page(content, manifest, drawing)}
    return content, pages


def _demand(reported: Json, claimed: Json) -> dict[str, Any]:
    """A demand as it is claimed; a manifest also says by what distance it is measured, where that was not asked."""
    beside = {"distance", "taxonomy", "order"} - set(reported)
    return {name: value for name, value in claimed.items() if name not in beside}


def _workload(spec: Spec, asked: Json) -> Workload:
    """What a release is for; weights that were found from the rows stand in the report alone."""
    workload = workload_of(spec)
    weights = {name: float(weight) for name, weight in asked["weights"].items()}
    return replace(workload, weights=weights) if workload.weights_from else workload


def _aim(target: TargetRequest, asked: Json, spec: Spec) -> Aim:
    """A target; what it was taken for follows from the rows, so the report is believed that."""
    reported = next(entry for entry in asked["targets"] if entry["column"] == target.column)
    if any(f"{target.column} ({GIVEN_MODEL}" in sentence for sentence in asked["sentences"]):
        target = replace(target, model=GIVEN_MODEL)
    return Aim(
        target,
        is_number=reported["kind"] == "number",
        is_generalized=spec.columns[target.column].role == Role.QUASI_IDENTIFIER,
        is_used=reported["used"] is True,
    )


def _tried(sentences: list[str]) -> int | None:
    """How many ways to weigh columns were tried, where the use is not known."""
    matches = (re.match(rf"{UNKNOWN_USE}(\d{{1,9}}) ", sentence) for sentence in sentences)
    return next((int(match[1]) for match in matches if match), None)


def _engine(manifest: Json, reported: Json) -> dict[str, Any]:
    """The engine, and why it was this one."""
    name = manifest["engine"] if manifest["engine"] in ENGINES else None
    return {"name": name, "reason": reported["reason"] if reported["reason"] in REASONS else None}


def spec_of_manifest(tables: Json, recoding: Recoding) -> Spec:
    """The spec of a release: the public one of its manifest, with what the recoding knows of the columns."""
    try:
        spec = public_spec(_with_recoding(tables, recoding))
    except (Damaged, SpecError) as error:
        raise ReleaseError(f"the manifest does not describe the release: {error}") from None
    if lost := set(spec.of_role(Role.QUASI_IDENTIFIER)) - set(recoding.quasi_identifiers):
        raise ReleaseError(f"the recoding says nothing of {listed(sorted(lost))}; make the release again.")
    return spec


def _with_recoding(given: Json, recoding: Recoding) -> dict[str, Any]:
    """The tables of the public spec, with what the recoding knows of the columns."""
    tables: dict[str, Any] = copy.deepcopy(dict(given))
    declared = JsonPart(tables, "spec").named().get("columns", JsonPart({}, "spec.columns")).named()
    for column in recoding.columns:
        if column.name not in declared:
            raise Damaged(f"its spec has no column '{column.name}', which the recoding has.")
        settings = declared[column.name].plain()
        settings.pop("split", None)
        if isinstance(column, OrdinalCells):
            settings |= {"type": "ordinal", "order": list(column.order)}
        elif isinstance(column, NominalCells):
            settings.setdefault("type", str(column.type))
    return tables


Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def _lent(audit: Callable[Arguments, Result], **code: Callable[..., Any]) -> Callable[Arguments, Result]:
    """The same audit, with code that it may not import."""

    @wraps(audit)
    def lent(*args: Arguments.args, **keywords: Arguments.kwargs) -> Result:
        return audit(*args, **{**code, **keywords})  # type: ignore[arg-type]

    return lent


audit_release = _lent(release_folder.audit_release, retell=expected_report)
audit_tree = _lent(trees.audit_tree, retell=expected_tree_report)
