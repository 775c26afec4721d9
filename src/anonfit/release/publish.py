# SPDX-License-Identifier: Apache-2.0
"""Writing, auditing and publishing a release, as a folder and then, if that is asked, in a database."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from dataclasses import replace as replaced
from datetime import UTC, datetime
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anonfit.engines.memory.write import write_table
from anonfit.errors import AnonfitError, AuditFailed, ReleaseError, SpecError, refuse_fork
from anonfit.recoding.recoding import Recoding
from anonfit.recoding.storage import read_recoding
from anonfit.release import folder as folders
from anonfit.release.bind import source_of, workload_of
from anonfit.release.draft import Draft
from anonfit.release.engine import prepare
from anonfit.release.evidence import audit_draft, both_reports, measure_draft, public_rule
from anonfit.release.folder import pages_of
from anonfit.release.request import manifest_spec
from anonfit.report.page import internal_page
from anonfit.runtime.files import file_hash, sync, workplace, write_new
from anonfit.runtime.process import Stage, silent
from anonfit.spec.model import Spec
from anonfit.spec.parse import spec_tables
from anonfit.tables.databases import DatabaseSource
from anonfit.tables.sources import KINDS, PLAIN, Address, FormatName, is_database, read_address

if TYPE_CHECKING:
    from anonfit.auditing.result import Audit
    from anonfit.auditing.tree_folder import TreeAudit

PACKAGES = ("anonfit", "polars", "numba", "numpy")
MOST_BESIDE = 1 << 22
"""Rows of which a report is measured while they are audited."""
INTERNAL = ("selections", "initial_risk", "attack", "predictions", "comparison", "curve", "queries", "rules")
"""What the internal record tells without the disclosure rule."""


def require_passed(audit: Audit | TreeAudit, written: str = "file") -> None:
    """Nothing is published that the audit did not accept; `written` says what it read."""
    if not audit.passed:
        faults = "; ".join(dict.fromkeys(finding.sentence for finding in audit.missed))
        raise AuditFailed(
            f"the audit of the written {written} found that it does not hold what was asked, so nothing is published: "
            f"{faults}"
        )


def _audit_file(draft: Draft, data: Path) -> Audit:
    """Audit the written file, its values and its bytes; one that cannot even be audited is not published either."""
    from anonfit.auditing.file_bytes import ReadForm
    from anonfit.auditing.formats import check_bytes
    from anonfit.auditing.reading import released_file

    try:
        with ThreadPoolExecutor(1) as pool:
            form = ReadForm(**asdict(draft.spec.form))
            content = pool.submit(check_bytes, data, _texts(draft), form)
            if draft.released > MOST_BESIDE:
                content.result()
            audit = audit_draft(draft, released_file(data, _texts(draft), form))
            return replaced(audit, findings=(*audit.findings, content.result()))
    except AnonfitError as error:
        raise AuditFailed(f"the written file cannot be audited, so nothing is published: {error}") from None


def _write(draft: Draft, data: Path, kind: str) -> None:
    """The released table as a file; where it is one already, that is linked or copied."""
    form, stored = draft.spec.form, draft.stored
    if form == PLAIN and stored is not None and stored.kind == kind and stored.path.exists():
        try:
            os.link(stored.path, data)
            return
        except OSError:  # on another disk, or one that knows no links
            pass
        try:
            shutil.copyfile(stored.path, data)
        except OSError as error:
            raise ReleaseError(f"the data file could not be written ({error.strerror}): is the disk full?") from None
    else:
        write_table(draft.released_table, data, kind, form)


@cache
def package_versions() -> Mapping[str, str]:
    """The versions of the packages that a release depends on."""
    return {name: version(name) for name in PACKAGES}


def _texts(draft: Draft) -> list[str]:
    """The released columns that hold texts."""
    import polars as pl

    kinds = pl.String | pl.Categorical | pl.Enum
    return [name for name, dtype in draft.dtypes.items() if isinstance(dtype, kinds)]


def manifest_begin(kind: str, engine: str, algorithm: str) -> dict[str, Any]:
    """What every manifest begins with: what it is of, and when and by what it was made."""
    # The day is in UTC; builds that are to be repeated byte for byte set it by SOURCE_DATE_EPOCH.
    stated = os.environ.get("SOURCE_DATE_EPOCH", "")
    moment = datetime.fromtimestamp(int(stated), UTC) if stated.isdecimal() else datetime.now(UTC)
    versions = package_versions()
    return {
        "format": kind,
        "version": folders.VERSION,
        "anonfit": versions["anonfit"],
        "packages": versions,
        "created": moment.date().isoformat(),
        "engine": engine,
        "algorithm": algorithm,
    }


def _manifest(draft: Draft, report: dict[str, Any], kind: str) -> dict[str, Any]:
    rule, counts = public_rule(draft), draft.rows
    return {
        **manifest_begin(folders.FORMAT, draft.engine, report["asked"]["algorithm"]),
        "spec": manifest_spec(draft),
        "data": {"file": f"data.{kind}", "rows": draft.released, "columns": list(draft.dtypes), "texts": _texts(draft)},
        "rows": {
            "released": draft.released,
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


def internal_record(target: Path, spec: Spec, source: Mapping[str, str] | None, figures: Mapping[str, Any]) -> str:
    """The record for the owner of the data: all of the spec, the input's hash, and figures that are not public."""
    record = {
        "format": folders.RECORD,
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
        "rows": {"read": rows.read, "dropped": rows.dropped, "withheld": rows.withheld, "released": draft.released},
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
    spec = replaced(draft.spec, output=draft.spec.output.of_format(kind))
    draft = replaced(draft, spec=spec)
    folders.check_free(target, replace=replace)
    with workplace(target) as place:
        folder = place / "release"
        folder.mkdir()
        stage("Writing data")
        data = folder / f"data.{kind}"
        # Hashing needs a core for a while, and writing leaves one free.
        with ThreadPoolExecutor(2) as pool:
            recoding = pool.submit(_written_recoding, draft.recoding, folder / "recoding.json")
            measured = pool.submit(measure_draft, draft, ks=ks) if _measures_early(draft) else None
            source = pool.submit(source_hash, draft.spec)
            _write(draft, data, kind)
            stage("Auditing")
            written = pool.submit(_stored_hash, data)
            audit = _audit_file(draft, data)
            require_passed(audit)
            if spec.method.capabilities.refines and not (draft.extends or spec.privacy.quasi_identifiers):
                # It is compared with blind regions, whose kernels the run did not need before.
                prepare(stage, models=spec.privacy.has_models, ahead=False)
            stage("Reporting")
            report, owners = both_reports(draft, audit, None if measured is None else measured.result(), ks=ks)
            owners["exploration"] = draft.exploration
            write_new(folder / "report.json", json.dumps(report, indent=1, ensure_ascii=False) + "\n")
            data_hash, input_hash = written.result(), source.result()
            loaded = recoding.result()
            known = {name: file_hash(folder / name) for name in ("recoding.json", "report.json")}
            manifest = _manifest(draft, report, kind) | {"files": {data.name: data_hash, **known}}
            for name, text in pages_of(report, manifest, draft.recoding).items():
                write_new(folder / name, text)
        internal = internal_record(target, draft.spec, input_hash, _internal_figures(draft, audit, owners))
        folders.publish(
            folder,
            target,
            manifest,
            audit=partial(_audited_by_others, audit=audit, recoding=loaded),
            records={"internal.json": internal, "internal.html": internal_page(owners, manifest, input_hash)},
            replace=replace,
        )
    return report


def _measures_early(draft: Draft) -> bool:
    """Whether a report is measured while the file is audited: only of rows in memory, and not of many; not by models
    of others, which may change what all threads share; not where kernels must be compiled first.
    """
    given = any(target.model is not None for target in workload_of(draft.spec).targets)
    in_memory = draft.scan is None and draft.released <= MOST_BESIDE
    return in_memory and not (given or draft.spec.method.capabilities.refines)


def _stored_hash(data: Path) -> str:
    """The hash of a written file, which is then on the disk: both can be waited for beside all else."""
    sync(data)
    return file_hash(data)


def _written_recoding(recoding: Recoding, path: Path) -> Recoding:
    """Write a recoding, and read it as others will: that takes a while, and can be done beside all else."""
    write_new(path, recoding.to_json())
    try:
        return read_recoding(path)
    except AnonfitError as error:
        raise folders.not_loaded(error) from None


def _audited_by_others(folder: Path, *, audit: Audit, recoding: Recoding) -> None:
    """Load and audit what was written, as others will; its rows were read by the audit of the data, and its recoding
    when it was written.
    """
    from anonfit.auditing.reports import check_published

    with ThreadPoolExecutor(1) as pool:  # hashing needs a core for a while, and leaves the other free
        loading = pool.submit(folders.load_folder, folder, rows=False, recoding=recoding)
        findings = check_published(folder, audit, partial(folders.expected_report, recoding=recoding))
        loading.result()
    require_passed(replaced(audit, findings=findings))


# --- the released table in a database: looked at before any work is done, written after the folder is published --

ROWS_AT_ONCE = 1 << 17
"""Rows that are read at once."""


@dataclass(frozen=True, slots=True)
class DatabaseTable:
    """A table of a database that is to hold a release."""

    address: Address
    table: str

    @property
    def shown(self) -> str:
        """How it may be called: of a server only the kind."""
        name = Path(self.address.place).name if self.address.is_file else "…"
        return f"{self.address.kind}:{name}#{self.table}"

    @classmethod
    def checked(
        cls, to: str, table: str | None = None, *, source: Any = None, folder: Path = Path(), replace: bool
    ) -> DatabaseTable:
        """The table that an address names, alone or with a name; refused if it cannot be written or is the source."""
        from anonfit.tables.database_writing import check_target

        target = target_of(to, table, folder=folder)
        target.refuse_source(source)
        check_target(target.address, target.table, replace=replace)
        return target

    @classmethod
    def of_spec(cls, spec: Spec, *, replace: bool) -> DatabaseTable | None:
        """The table that a spec names, if it does."""
        output = spec.output
        if output.to is None:
            if output.table is not None:
                raise SpecError(["output.table is a table of a database: name that by output.to."])
            return None
        folder = spec.folder or Path()
        return cls.checked(output.to, output.table, source=source_of(spec), folder=folder, replace=replace)

    def refuse_source(self, source: Any) -> None:
        """Refuse to write a release over the rows that it is made of: they would be lost."""
        from anonfit.tables.database_writing import may_be_read

        if isinstance(source, DatabaseSource) and may_be_read(source, self.address, self.table):
            raise ReleaseError(
                f"the {self.address.kind} table '{self.table}' is what the release is made of, and would be lost; "
                "choose another name."
            )


def target_of(to: str, table: str | None = None, *, folder: Path = Path()) -> DatabaseTable:
    """The table that an address names, alone or with a name; a relative path starts at a folder."""
    if not is_database(to):
        raise ReleaseError(f"a table is written to a database; its address begins with one of {', '.join(KINDS)}.")
    address = read_address(to, folder=folder, key="output.to")
    if (address.table is None) == (table is None):
        raise SpecError(["output.to is a database, so one of output.table and #table after the address names a table."])
    return DatabaseTable(address, table or address.table or "")


def deliver(
    draft: Draft, target: DatabaseTable | None, *, replace: bool, published: Path | None = None, stage: Stage = silent
) -> None:
    """Write a released table to its place in a database, if it has one; `published` is its folder, if it has that."""
    if target is None:
        return
    from anonfit.tables.database_writing import write_to_database

    stage("Writing to the database")
    if draft.stored is None or not draft.is_large:
        frames = draft.table.iter_slices(ROWS_AT_ONCE)
    else:
        frames = draft.stored.scan().collect_batches(chunk_size=ROWS_AT_ONCE, maintain_order=True)
    try:
        write_to_database(target.address, target.table, frames, draft.dtypes, replace=replace)
    except ReleaseError as error:
        if published is None:
            raise
        raise ReleaseError(f"{published} is published, but {error}") from None
