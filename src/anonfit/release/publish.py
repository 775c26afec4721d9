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
from anonfit.release.evidence import (
    audit_made,
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
from anonfit.release.result import Made
from anonfit.release.retelling import retold, spec_of_manifest
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


def _audit_file(made: Made, data: Path) -> Audit:
    """Audit the written file, its values and its bytes; one that cannot even be audited is not published either."""
    from anonfit.auditing.file_bytes import check_bytes

    try:
        with ThreadPoolExecutor(1) as pool:
            content = pool.submit(check_bytes, data, _texts(made))
            audit = audit_made(made, data)
            return replaced(audit, findings=(*audit.findings, content.result()))
    except AnonfitError as error:
        raise AuditFailed(f"the written file cannot be audited, so nothing is published: {error}") from None


def _write(made: Made, data: Path, kind: str) -> None:
    """The released table as a file: what is one already is moved there."""
    if made.stored is not None and made.stored.kind == kind and made.stored.path.exists():
        try:
            os.link(made.stored.path, data)
            return
        except OSError:  # on another disk, or one that knows no links
            pass
        try:
            shutil.copyfile(made.stored.path, data)
        except OSError as error:
            raise ReleaseError(f"the data file could not be written ({error.strerror}): is the disk full?") from None
    else:
        write_table(made.table, data, kind)


def _prepare_comparison(made: Made, stage: Stage) -> None:
    """What was refined top-down is compared with blind regions, whose kernels the run did not need before."""
    spec = made.spec
    if spec.method.capabilities.refines and not (made.extends or spec.privacy.quasi_identifiers):
        prepare(stage, models=spec.privacy.has_models, ahead=False)


def package_versions() -> dict[str, str]:
    """The versions of the packages that a release depends on."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found


def _texts(made: Made) -> list[str]:
    """The released columns that hold texts."""
    import polars as pl

    kinds = pl.String | pl.Categorical | pl.Enum
    return [name for name, dtype in made.dtypes.items() if isinstance(dtype, kinds)]


def _manifest(made: Made, report: dict[str, Any], kind: str) -> dict[str, Any]:
    rule, counts = public_rule(made), made.rows
    return {
        "format": FORMAT,
        "version": VERSION,
        "anonfit": package_versions()["anonfit"],
        "packages": package_versions(),
        "engine": made.engine,
        "algorithm": report["asked"]["algorithm"],
        "spec": manifest_spec(made),
        "data": {
            "file": data_name(kind),
            "rows": made.released,
            "columns": list(made.dtypes),
            "texts": _texts(made),
        },
        "rows": {
            "released": made.released,
            "withheld": rule.rows(counts.withheld, counts.withheld_persons),
            "dropped": rule.rows(counts.dropped, counts.dropped_persons),
        },
        "audit": {"passed": report["audit"]["passed"], "findings": report["audit"]["findings"]},
    }


def source_hash(spec: Spec) -> dict[str, str] | None:
    """Where the input is and its hash, if it is a file."""
    source = spec.data.source
    path = (spec.folder or Path()) / source if isinstance(source, str | Path) else None
    return {"path": str(path), "sha256": file_hash(path)} if path is not None and path.is_file() else None


def _internal(made: Made, audit: Audit, target: Path, source: dict[str, str] | None, report: Mapping[str, Any]) -> str:
    """The record for the owner of the data: all of the spec, the input's hash, and the figures that are not public;
    `report` is the internal one.
    """
    record = {
        "format": RECORD,
        "version": 1,
        "release": target.name,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "packages": package_versions(),
        "spec": spec_tables(made.spec),
        "source": source,
        "rows": {
            "read": made.rows.read,
            "dropped": made.rows.dropped,
            "withheld": made.rows.withheld,
            "released": made.released,
        },
        **{name: report[name] for name in INTERNAL},
        **({} if made.refinements is None else {"refinements": made.refinements}),
        **({} if made.learned is None else {"learned_weights": asdict(made.learned)}),
        **({} if made.exploration is None else {"exploration": made.exploration}),
        "audit": audit.to_dict(),
    }
    return json.dumps(record, indent=1, ensure_ascii=False, default=str) + "\n"


def publish_made(
    made: Made,
    target: Path,
    *,
    kind: FormatName | None = None,
    replace: bool = False,
    ks: Sequence[int] = (),
    stage: Stage = silent,
) -> dict[str, Any]:
    """Write, audit and publish a release folder, and the internal record and report beside it; returns the public
    report. `ks` asks for a curve over these k in it.
    """
    refuse_fork()
    target = Path(target).absolute()
    kind = kind or made.spec.output.format
    made = replaced(made, spec=replaced(made.spec, output=replaced(made.spec.output, format=kind)))
    check_free(target, replace=replace)
    with workplace(target) as place:
        folder = place / "release"
        folder.mkdir()
        stage("Writing data")
        data = folder / data_name(kind)
        # Hashing needs a core for a while, and writing leaves one free.
        with ThreadPoolExecutor(1) as pool:
            recoding = pool.submit(lambda: write_new(folder / "recoding.json", made.recoding.to_json()))
            source = pool.submit(source_hash, made.spec)
            _write(made, data, kind)
            recoding.result()
            stage("Auditing")
            written = pool.submit(file_hash, data)
            audit = _audit_file(made, data)
            require_passed(audit)
            _prepare_comparison(made, stage)
            stage("Reporting")
            report, owners = both_reports(made, audit, ks=ks)
            owners["exploration"] = made.exploration
            write_new(folder / "report.json", json.dumps(report, indent=1, ensure_ascii=False) + "\n")
            write_new(folder / "report.html", report_page(report))
            data_hash, input_hash = written.result(), source.result()
        internal = _internal(made, audit, target, input_hash, owners)
        publish(
            folder,
            target,
            _manifest(made, report, kind),
            load=partial(_audited_by_others, audit=audit),
            records={"internal.json": internal, "internal.html": internal_page(owners)},
            hashes={data.name: data_hash},
            replace=replace,
        )
    return report


def _audited_by_others(folder: Path, *, audit: Audit) -> None:
    """Load and audit what was written, as others will; its rows were read by the audit of the data."""
    from anonfit.auditing.release_folder import check_published

    try:
        loaded = load_folder(folder, rows=False)
        spec_of_manifest(loaded.manifest["spec"], loaded.recoding)
        found = check_published(folder, audit, retold)
    except AnonfitError as error:
        raise AuditFailed(f"what was written cannot be loaded, so nothing is published: {error}") from None
    require_passed(replaced(audit, findings=found))
