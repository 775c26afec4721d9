# SPDX-License-Identifier: Apache-2.0
"""Writing, auditing and publishing a release; what its manifest must tell again."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from dataclasses import replace as replaced
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anonfit.engines.rows import write_table
from anonfit.errors import AnonfitError, AuditFailed, ReleaseError, refuse_fork
from anonfit.release.audits import expected_report, spec_of_manifest
from anonfit.release.evidence import (
    audit_draft,
    both_reports,
    manifest_spec,
    public_rule,
    require_passed,
)
from anonfit.release.folder import (
    FORMAT,
    RECORD,
    VERSION,
    check_free,
    data_name,
    load_folder,
    publish,
)
from anonfit.release.result import Draft
from anonfit.release.warmup import prepare
from anonfit.report.page import internal_page, report_page
from anonfit.runtime.files import file_hash, workplace, write_new
from anonfit.runtime.progress import Stage, silent
from anonfit.spec.model import Spec
from anonfit.spec.write import spec_tables
from anonfit.tables.formats import FormatName

if TYPE_CHECKING:
    from anonfit.auditing.result import Audit

PACKAGES = ("anonfit", "polars", "numba", "numpy")
INTERNAL = ("selections", "initial_risk", "attack", "predictions", "comparison", "curve", "queries", "rules")
"""What the internal record tells without the disclosure rule."""


def _audit_file(draft: Draft, data: Path) -> Audit:
    """Audit the written file, its values and its bytes; one that cannot even be audited is not published either."""
    from anonfit.auditing.formats import check_bytes

    try:
        with ThreadPoolExecutor(1) as pool:
            content = pool.submit(check_bytes, data, _texts(draft))
            audit = audit_draft(draft, data)
            return replaced(audit, findings=(*audit.findings, content.result()))
    except AnonfitError as error:
        raise AuditFailed(f"the written file cannot be audited, so nothing is published: {error}") from None


def _write(draft: Draft, data: Path, kind: str) -> None:
    """The released table as a file; where it is one already, that is linked or copied."""
    if draft.stored is not None and draft.stored.kind == kind and draft.stored.path.exists():
        try:
            os.link(draft.stored.path, data)
            return
        except OSError:  # on another disk, or one that knows no links
            pass
        try:
            shutil.copyfile(draft.stored.path, data)
        except OSError as error:
            raise ReleaseError(f"the data file could not be written ({error.strerror}): is the disk full?") from None
    else:
        write_table(draft.table, data, kind)


def _prepare_comparison(draft: Draft, stage: Stage) -> None:
    """What was refined top-down is compared with blind regions, whose kernels the run did not need before."""
    spec = draft.spec
    if spec.method.capabilities.refines and not (draft.extends or spec.privacy.quasi_identifiers):
        prepare(stage, models=spec.privacy.has_models, ahead=False)


def package_versions() -> dict[str, str]:
    """The versions of the packages that a release depends on."""
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "unknown"
    return versions


def _texts(draft: Draft) -> list[str]:
    """The released columns that hold texts."""
    import polars as pl

    kinds = pl.String | pl.Categorical | pl.Enum
    return [name for name, dtype in draft.dtypes.items() if isinstance(dtype, kinds)]


def _manifest(draft: Draft, report: dict[str, Any], kind: str) -> dict[str, Any]:
    rule, counts, versions = public_rule(draft), draft.rows, package_versions()
    return {
        "format": FORMAT,
        "version": VERSION,
        "anonfit": versions["anonfit"],
        "packages": versions,
        "created": today(),
        "engine": draft.engine,
        "algorithm": report["asked"]["algorithm"],
        "spec": manifest_spec(draft),
        "data": {
            "file": data_name(kind),
            "rows": draft.released,
            "columns": list(draft.dtypes),
            "texts": _texts(draft),
        },
        "rows": {
            "released": draft.released,
            "withheld": rule.rows(counts.withheld, counts.withheld_persons),
            "dropped": rule.rows(counts.dropped, counts.dropped_persons),
        },
        "audit": {"passed": report["audit"]["passed"], "findings": report["audit"]["findings"]},
    }


def today() -> str:
    """The day, in UTC; builds that are to be repeated byte for byte set it by SOURCE_DATE_EPOCH."""
    stated = os.environ.get("SOURCE_DATE_EPOCH", "")
    moment = datetime.fromtimestamp(int(stated), UTC) if stated.isdecimal() else datetime.now(UTC)
    return moment.date().isoformat()


def source_hash(spec: Spec) -> dict[str, str] | None:
    """Where the input is and its hash, if it is a file."""
    source = spec.data.source
    path = (spec.folder or Path()) / source if isinstance(source, str | Path) else None
    return {"path": str(path), "sha256": file_hash(path)} if path is not None and path.is_file() else None


def internal_record(target: Path, spec: Spec, source: Mapping[str, str] | None, figures: Mapping[str, Any]) -> str:
    """The record for the owner of the data: all of the spec, the input's hash, and figures that are not public."""
    record = {
        "format": RECORD,
        "version": 1,
        "release": target.name,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "packages": package_versions(),
        "spec": spec_tables(spec),
        "source": source,
        **figures,
    }
    return json.dumps(record, indent=1, ensure_ascii=False, default=str) + "\n"


def _internal_figures(draft: Draft, audit: Audit, report: Mapping[str, Any]) -> dict[str, Any]:
    """What the internal record tells of a table; `report` is the internal one."""
    rows = draft.rows
    return {
        "rows": {
            "read": rows.read,
            "dropped": rows.dropped,
            "withheld": rows.withheld,
            "released": draft.released,
        },
        **{name: report[name] for name in INTERNAL},
        **({"notices": list(draft.notices)} if draft.notices else {}),
        "distributions": report.get("distributions"),
        **({} if draft.refinements is None else {"refinements": draft.refinements}),
        **({} if draft.learned is None else {"learned_weights": asdict(draft.learned)}),
        **({} if draft.exploration is None else {"exploration": draft.exploration}),
        "audit": audit.to_dict(),
    }


def publish_draft(
    draft: Draft,
    target: Path,
    *,
    kind: FormatName | None = None,
    replace: bool = False,
    ks: Sequence[int] = (),
    stage: Stage = silent,
) -> dict[str, Any]:
    """Write, audit and publish a folder, with internal files beside it; returns the public report (with a curve over
    `ks`).
    """
    refuse_fork()
    target = Path(target).absolute()
    kind = kind or draft.spec.output.format
    draft = replaced(draft, spec=replaced(draft.spec, output=replaced(draft.spec.output, format=kind)))
    check_free(target, replace=replace)
    with workplace(target) as place:
        folder = place / "release"
        folder.mkdir()
        stage("Writing data")
        data = folder / data_name(kind)
        # Hashing needs a core for a while, and writing leaves one free.
        with ThreadPoolExecutor(1) as pool:
            recoding = pool.submit(lambda: write_new(folder / "recoding.json", draft.recoding.to_json()))
            source = pool.submit(source_hash, draft.spec)
            _write(draft, data, kind)
            recoding.result()
            stage("Auditing")
            written = pool.submit(file_hash, data)
            audit = _audit_file(draft, data)
            require_passed(audit)
            _prepare_comparison(draft, stage)
            stage("Reporting")
            report, owners = both_reports(draft, audit, ks=ks)
            owners["exploration"] = draft.exploration
            write_new(folder / "report.json", json.dumps(report, indent=1, ensure_ascii=False) + "\n")
            data_hash, input_hash = written.result(), source.result()
            known = {name: file_hash(folder / name) for name in ("recoding.json", "report.json")}
            manifest = _manifest(draft, report, kind) | {"files": {data.name: data_hash, **known}}
            write_new(folder / "report.html", report_page(report, manifest))
        internal = internal_record(target, draft.spec, input_hash, _internal_figures(draft, audit, owners))
        publish(
            folder,
            target,
            manifest,
            load=partial(_audited_by_others, audit=audit),
            records={"internal.json": internal, "internal.html": internal_page(owners, manifest, input_hash)},
            hashes=manifest["files"],
            replace=replace,
        )
    return report


def _audited_by_others(folder: Path, *, audit: Audit) -> None:
    """Load and audit what was written, as others will; its rows were read by the audit of the data."""
    from anonfit.auditing.release_folder import check_published

    try:
        loaded = load_folder(folder, rows=False)
        spec_of_manifest(loaded.manifest["spec"], loaded.recoding)
        findings = check_published(folder, audit, expected_report)
    except AnonfitError as error:
        raise AuditFailed(f"what was written cannot be loaded, so nothing is published: {error}") from None
    require_passed(replaced(audit, findings=findings))
