# SPDX-License-Identifier: Apache-2.0
"""From a spec to a published tree: grown, written, audited as written, drawn, and only then given its name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from dataclasses import replace as replaced
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anonfit.algorithms.trees.making import classes_of_target, make_tree, target_column, tested_columns
from anonfit.algorithms.trees.released import ReleasedTree, read_model, release_tree
from anonfit.engines.contract import InMemory
from anonfit.errors import AnonfitError, AuditFailed, DataError, ReleaseError, SpecError
from anonfit.privacy.disclosure import Disclosure
from anonfit.release.bind import complete_names, reading_of, source_of, tree_of
from anonfit.release.draft import RowCounts
from anonfit.release.engine import engine_for, opened, refuse_unsupported, spill_place
from anonfit.release.folder import (
    check_free,
    expected_tree_report,
    publish,
    read_manifest,
    spec_of_manifest,
    tree_pages,
)
from anonfit.release.publish import internal_record, manifest_begin, require_passed, source_hash
from anonfit.report.content import read_content
from anonfit.report.trees import asked_of_tree, tree_content
from anonfit.runtime.files import file_hash, spill_folder, workplace, write_new
from anonfit.runtime.process import Stage, silent
from anonfit.runtime.strict_json import Damaged, JsonPart, parse_json, read_text
from anonfit.spec.columns import diversity_table
from anonfit.spec.model import Spec
from anonfit.spec.parse import public_tables
from anonfit.spec.settings import SECTIONS
from anonfit.tables.scales import CutPoints
from anonfit.tables.schema import Schema

if TYPE_CHECKING:
    import polars as pl

    from anonfit.auditing.tree_folder import TreeAudit

FORMAT = "anonfit tree release"
MODEL, AUDIT = "model.json", "audit.json"


@dataclass(frozen=True, slots=True)
class TreeDraft:
    """A tree before it is published, and what it was made from."""

    spec: Spec
    schema: Schema
    tree: ReleasedTree
    rows: RowCounts
    source: pl.DataFrame = field(repr=False)
    """The training rows, with the class that each was taken to have: a name, or an interval of numbers."""
    times: str | None = None
    """The column that says how often each row is there; None: once."""
    engine: str = "memory"
    """The engine that counted the rows."""


def make_tree_of(spec: Spec, *, stage: Stage = silent) -> TreeDraft:
    """Grow the tree of a spec from its table."""
    import polars as pl

    asked = tree_of(spec)
    if asked is None:
        raise SpecError([f"method.algorithm = '{spec.method.algorithm}' makes a table; for a tree use 'tree'."])
    _refuse_of_tables(spec)
    source = source_of(spec)
    name, _ = engine_for(spec, source)
    refuse_unsupported(spec, name)
    schema, options = reading_of(spec, source)
    with ExitStack() as stack:
        folder = Path() if name == "memory" else stack.enter_context(spill_folder(spill_place(spec)))
        stage("Reading")
        engine = stack.enter_context(opened(name, spec, schema, source, options, folder, purpose="learn from"))
        if engine.rows == 0:
            raise DataError("every row has a missing value, and data.missing_policy is 'drop'; nothing is left.")
        built, _ = make_tree(engine, schema, asked, stage=stage)
        if isinstance(engine, InMemory):
            frame, times = engine.frame, None
        else:  # the different rows, and the column of how often each is there
            names = complete_names(spec, schema)
            times = "times" + max(names, key=len)  # longer than any name that is there
            frame = engine.scan.group_by(names).len(times).collect(engine="streaming")
        dropped = engine.read - engine.rows
        rows = RowCounts(engine.read, dropped, 0, dropped_persons=engine.persons_left_out)
    released = release_tree(built.tree, spec.output.populations)
    column = target_column(schema, asked)
    classes = classes_of_target(asked.target, column, frame[column.name])
    taught = frame.with_columns(pl.Series(released.target, classes.names).gather(classes.of_row))
    return TreeDraft(spec, schema, released, rows, taught, times, name)


def _refuse_of_tables(spec: Spec) -> None:
    """Refuse settings of a released table, which a tree that is published itself does not have."""
    tables = {"privacy": ("suppression_limit",), "workload": ("rules", "query_log", "clusters"), "method": ("seed",)}
    tables["output"] = ("format", "values", "regions", "order", "delimiter", "decimal", "bom", "intervals", "table")
    if spec.method.cut_points != CutPoints.VALUE:  # these need it
        tables["output"] += ("consent",)
    faults = [
        f"{section}.{name} is of a released table, and a tree is published in place of one; remove it."
        for section, names in tables.items()
        for name in names
        if SECTIONS[section].is_changed(getattr(spec, section), name)
    ]
    faults += [
        f"columns.{name}.release lets a column stand in a table as it is, and a tree is published in place of one; "
        "remove it."
        for name, column in spec.columns.items()
        if column.release
    ]
    if faults:
        raise SpecError(faults)


def audit_tree_draft(draft: TreeDraft, model: Path) -> TreeAudit:
    """Audit the written model against what was asked and the rows it was made from."""
    from anonfit.auditing.trees import audit_tree

    spec, target = draft.spec, draft.tree.target
    public = [column.name for column in draft.schema.quasi_identifiers]
    private = [column.name for column in tested_columns(draft.schema, target) if column.name not in public]
    known = [target] if spec.privacy.class_is_public else []
    try:
        return audit_tree(
            model,
            draft.source,
            public=[*public, *known],
            private=[*private, *({target} - set(known))],
            target=target,
            k=spec.privacy.k,
            diversity=[diversity_table(demand) for demand in spec.privacy.diversity],
            max_confidence=spec.privacy.max_confidence if spec.privacy.max_confidence < 1 else None,
            times=draft.times,
            missing=(),
        )
    except AnonfitError as error:
        raise AuditFailed(f"the written tree cannot be audited, so nothing is published: {error}") from None


def publish_tree(draft: TreeDraft, target: Path, *, replace: bool = False, stage: Stage = silent) -> dict[str, Any]:
    """Write, audit and publish the folder of a tree, and the internal record beside it; returns the public audit."""
    target = Path(target).absolute()
    check_free(target, replace=replace)
    with workplace(target) as place:
        folder = place / "release"
        folder.mkdir()
        stage("Writing the tree")
        model = folder / MODEL
        write_new(model, draft.tree.to_model_json())
        stage("Auditing")
        audit = audit_tree_draft(draft, model)
        require_passed(audit, "tree")
        stage("Drawing")
        written = read_model(model)  # what is drawn is what was written
        k, rows, tables = draft.spec.privacy.k, draft.rows, public_tables(draft.spec, draft.schema)
        asked = asked_of_tree(draft.tree, tables, [diversity_table(demand) for demand in draft.spec.privacy.diversity])
        dropped = Disclosure(k).rows(rows.dropped, rows.dropped_persons)
        public_rows = {"read": read_content(rows.read, rows.released, dropped), "dropped": dropped}
        figures = audit.public_figures(k)
        report = tree_content(written, asked=asked, rows=public_rows, audit=figures)
        write_new(folder / AUDIT, json.dumps(report, indent=1, ensure_ascii=False) + "\n")
        hashes = {name: file_hash(folder / name) for name in (MODEL, AUDIT)}
        manifest = {
            **manifest_begin(FORMAT, draft.engine, "tree"),
            "spec": tables | {"output": {"populations": str(draft.tree.populations)}},
            "audit": {"passed": figures["passed"], "k": figures["k"], "findings": figures["spans"]["findings"]},
            "files": hashes,
        }
        for name, text in tree_pages(written, json.loads(json.dumps(report)), manifest).items():
            write_new(folder / name, text)
        internal = {"rows": {"read": rows.read, "dropped": rows.dropped}, "audit": audit.to_dict()}
        records = {"internal.json": internal_record(target, draft.spec, source_hash(draft.spec), internal)}
        by_others = partial(_audited_by_others, audit=audit, rows=rows.read)
        publish(folder, target, manifest, audit=by_others, records=records, replace=replace)
    return report


def _audited_by_others(folder: Path, *, audit: TreeAudit, rows: int) -> None:
    """Load and audit what was written, as others will; its training rows were read by the audit of the tree."""
    from anonfit.auditing.tree_folder import check_tree_folder, open_tree_folder

    load_tree_folder(folder)
    findings = check_tree_folder(open_tree_folder(folder), audit, rows, expected_tree_report)
    require_passed(replaced(audit, spans=replaced(audit.spans, findings=tuple(findings))), "tree")


def load_tree_folder(path: Path) -> tuple[ReleasedTree, Mapping[str, Any] | None]:
    """The tree of a folder that is whole and unchanged, and its public audit; or of a model file by itself."""
    if not path.is_dir():
        return read_model(path), None
    manifest, tree = read_manifest(path, FORMAT), read_model(path / MODEL)
    spec_of_manifest(manifest["spec"], tree.tiling)
    try:
        audit = JsonPart(parse_json(read_text(path / AUDIT, "audit", ReleaseError, megabytes=64))).plain()
    except Damaged as error:
        raise ReleaseError(f"{path / AUDIT} is damaged: {error}; make the tree again.") from None
    return tree, audit
