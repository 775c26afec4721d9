# SPDX-License-Identifier: Apache-2.0
"""From a made table to a published release: written, audited as written, reported, and only then given its name."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anonfit.errors import AnonfitError, AuditFailed
from anonfit.evidence import all_of_selections, audit_made, manifest_spec, public_report, require_passed
from anonfit.pipeline import Made
from anonfit.progress import Stage, silent
from anonfit.release.folder import (
    FORMAT,
    VERSION,
    check_free,
    data_name,
    file_hash,
    publish,
    workplace,
    write_private,
    write_table,
)
from anonfit.report.content import disclosed
from anonfit.report.page import report_page
from anonfit.spec_writing import spec_tables

if TYPE_CHECKING:
    from anonfit.auditing import Audit

__all__ = ["audit_made", "public_report", "publish_made", "require_passed"]

PACKAGES = ("anonfit", "polars", "numba", "numpy")


def _audit_file(made: Made, data: Path) -> Audit:
    """Audit the written file; one that cannot even be audited is not published either."""
    try:
        return audit_made(made, data)
    except AnonfitError as error:
        raise AuditFailed(f"the written file cannot be audited, so nothing is published: {error}") from None


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found


def _manifest(made: Made, report: dict[str, Any], kind: str) -> dict[str, Any]:
    import polars as pl

    k = made.spec.privacy.k
    texts = [name for name, dtype in made.table.schema.items() if dtype in (pl.String, pl.Categorical, pl.Enum)]
    return {
        "format": FORMAT,
        "version": VERSION,
        "anonfit": _versions()["anonfit"],
        "packages": _versions(),
        "engine": "memory",
        "algorithm": report["asked"]["algorithm"],
        "spec": manifest_spec(made),
        "data": {
            "file": data_name(kind),
            "rows": len(made.table),
            "columns": made.table.columns,
            "texts": texts,
        },
        "rows": {
            "released": len(made.table),
            "withheld": disclosed(made.rows.withheld, made.rows.withheld_persons, k),
            "dropped": disclosed(made.rows.dropped, made.rows.dropped_persons, k),
        },
        "audit": {"passed": report["audit"]["passed"], "findings": report["audit"]["findings"]},
    }


def _source_hash(made: Made) -> dict[str, str] | None:
    """Where the input is and its hash, if it is a file."""
    source = made.spec.data.source
    path = (made.spec.folder or Path()) / source if isinstance(source, str | Path) else None
    return {"path": str(path), "sha256": file_hash(path)} if path is not None and path.is_file() else None


def _internal(made: Made, audit: Audit, target: Path, source: dict[str, str] | None) -> str:
    """The record for the owner of the data: all of the spec, the input's hash, and the figures that are not public."""
    record = {
        "format": "anonfit internal record",
        "version": 1,
        "release": target.name,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "packages": _versions(),
        "spec": spec_tables(made.spec),
        "source": source,
        "rows": {
            "read": made.rows.read,
            "dropped": made.rows.dropped,
            "withheld": made.rows.withheld,
            "released": len(made.table),
        },
        "selections": all_of_selections(made),
        "audit": audit.to_dict(),
    }
    return json.dumps(record, indent=1, ensure_ascii=False, default=str) + "\n"


def publish_made(
    made: Made, target: Path, *, kind: str | None = None, replace: bool = False, stage: Stage = silent
) -> dict[str, Any]:
    """Write, audit and publish a release folder, and the internal record beside it; returns the public report."""
    target = Path(target).absolute()
    kind = kind or made.spec.output.format
    check_free(target, replace=replace)
    with workplace(target) as folder:
        stage("Writing data")
        data = folder / data_name(kind)
        with ThreadPoolExecutor(1) as pool:
            recoding = pool.submit(
                lambda: (folder / "recoding.json").write_text(made.recoding.to_json(), encoding="utf-8")
            )
            write_table(made.table, data, kind)
            recoding.result()
        stage("Auditing")
        with ThreadPoolExecutor(1) as pool:
            hashes = pool.submit(lambda: (file_hash(data), _source_hash(made)))
            audit = _audit_file(made, data)
            require_passed(audit)
            stage("Reporting")
            report = public_report(made, audit)
            (folder / "report.json").write_text(
                json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
            )
            (folder / "report.html").write_text(report_page(report), encoding="utf-8")
            data_hash, source_hash = hashes.result()
        internal = _internal(made, audit, target, source_hash)
        publish(folder, target, _manifest(made, report, kind), {data.name: data_hash})
        write_private(target.with_name(f"{target.name}.internal.json"), internal)
    return report
