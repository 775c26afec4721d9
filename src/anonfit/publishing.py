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
from anonfit.pipeline import Made
from anonfit.progress import Stage, silent
from anonfit.recoding.values import Values
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
from anonfit.report.content import Facts, disclosed, report_content
from anonfit.report.page import report_page
from anonfit.spec_writing import public_tables, spec_tables
from anonfit.tables.schema import Role

if TYPE_CHECKING:
    from anonfit.auditing import Audit

__all__ = ["audit_made", "public_report", "publish_made"]

PACKAGES = ("anonfit", "polars", "numba", "numpy")


def audit_made(made: Made, data: Any) -> Audit:
    """Audit the released table, as a file or a frame, against what was asked and the rows it was made from."""
    from anonfit.auditing import audit

    spec, schema = made.spec, made.schema
    written = json.loads(made.recoding.to_json())
    with_labels = spec.output.values != Values.REPRESENTATIVE
    return audit(
        data,
        quasi_identifiers=made.recoding.quasi_identifiers,
        sensitive=[column.name for column in schema.of_role(Role.SENSITIVE)],
        k=spec.privacy.k,
        entity=next((column.name for column in schema.of_role(Role.ENTITY)), None),
        count=next((column.name for column in schema.of_role(Role.COUNT)), None),
        columns=_meanings(made, written["columns"]),
        nodes=written["nodes"] if with_labels and spec.output.regions == "domain" else None,
        source=made.source,
        withheld=made.rows.withheld - made.rows.unknown if made.source is not None else None,
        order="sorted" if spec.output.order == "sorted" else None,
        expected_columns=made.table.columns,
        regions="observed" if spec.output.regions == "observed" else ("domain" if with_labels else "any"),
        missing=spec.data.missing,
    )


def _audit_file(made: Made, data: Path) -> Audit:
    """Audit the written file; one that cannot even be audited is not published either."""
    try:
        return audit_made(made, data)
    except AnonfitError as error:
        raise AuditFailed(f"the written file cannot be audited, so nothing is published: {error}") from None


def _meanings(made: Made, columns: list[dict[str, Any]]) -> dict[str, Any]:
    """What labels mean, as the columns of recoding.json say; representatives of ordered columns are no labels."""
    if made.spec.output.values == Values.REPRESENTATIVE:
        columns = [column for column in columns if "taxonomy" in column]
    if made.spec.output.regions == "observed":
        columns = [{key: value for key, value in column.items() if key != "cuts"} for column in columns]
    return {column["name"]: column for column in columns}


def public_report(made: Made, audit: Audit) -> dict[str, Any]:
    """The report that anybody may read."""
    spec = made.spec
    settings = {
        "quasi_identifiers": list(made.recoding.quasi_identifiers),
        "algorithm": "Median Mondrian",
        "values": str(spec.output.values),
        "regions": spec.output.regions,
        "order": spec.output.order,
    }
    facts = Facts(
        schema=made.schema,
        recoding=made.recoding,
        table=made.table,
        k=spec.privacy.k,
        read=made.rows.read,
        dropped=disclosed(made.rows.dropped, made.rows.dropped_persons, spec.privacy.k),
        withheld=disclosed(made.rows.withheld, made.rows.withheld_persons, spec.privacy.k),
        audit=audit.public(spec.privacy.k),
        settings=settings,
    )
    return report_content(facts)


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
        "spec": public_tables(made.spec, made.schema),
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
        "audit": audit.to_dict(),
    }
    return json.dumps(record, indent=1, ensure_ascii=False, default=str) + "\n"


def require_passed(audit: Audit) -> None:
    """Nothing is published that the audit did not accept."""
    if not audit.passed:
        faults = "; ".join(finding.sentence for finding in audit.findings if finding.met is False)
        raise AuditFailed(
            f"the audit of the written file found that it does not hold what was asked, so nothing is published: "
            f"{faults}"
        )


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
