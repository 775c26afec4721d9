# SPDX-License-Identifier: Apache-2.0
"""The release folder: written whole, given its name last, and loaded again; and its audits as everybody has them. What
a folder must say is written anew from its manifest and its report: audits compare with these texts but may not import
the code that writes them, so it is lent to them here.
"""

from __future__ import annotations

import copy
import json
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from dataclasses import replace as replaced
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from anonfit.algorithms.trees.released import ReleasedTree, read_model
from anonfit.auditing import api, trees
from anonfit.engines.contract import ENGINES
from anonfit.errors import AnonfitError, AuditFailed, ReleaseError, SpecError, listed, refuse_fork
from anonfit.recoding.columns import NominalCells, OrdinalCells
from anonfit.recoding.recoding import Recoding
from anonfit.recoding.storage import read_recoding
from anonfit.release.bind import schema_of, workload_of
from anonfit.release.draft import drawn_content
from anonfit.release.engine import REASONS
from anonfit.release.request import GIVEN_MODEL, UNKNOWN_USE, Aim, ReleaseRequest, asked_content
from anonfit.report.content import following
from anonfit.report.notes import CODEBOOK, README, codebook_text, readme_text, tree_readme_text
from anonfit.report.page import report_page, tree_page
from anonfit.report.trees import asked_of_tree, drawn_svg, drawn_text, tree_content
from anonfit.report.words import Json
from anonfit.runtime.files import file_hash, give_names, sync, taken, workplace, write_new
from anonfit.runtime.strict_json import Damaged, JsonPart, parse_json, read_text
from anonfit.spec.model import Spec
from anonfit.spec.parse import public_spec
from anonfit.tables.layout import OF_RELEASES
from anonfit.tables.schema import Role
from anonfit.tables.sources import FORMATS, FileForm, format_of
from anonfit.workload.targets import TargetRequest

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a release folder holds."""

    table: pl.DataFrame
    recoding: Recoding
    report: Json
    manifest: Json


def _form_of(manifest: Json) -> FileForm:
    """How the data file is laid out, as its manifest says."""
    try:
        output = JsonPart(manifest["spec"], "spec").named()["output"].named()
        return FileForm(
            output["delimiter"].word((",", ";", "\t", "|")) if "delimiter" in output else ",",
            output["decimal"].word((".", ",")) if "decimal" in output else ".",
            bom=output["bom"].flag() if "bom" in output else False,
        )
    except (Damaged, KeyError) as error:
        raise ReleaseError(f"the manifest does not say how the data file is laid out: {error}") from None


def _table(folder: Path, manifest: Json, rows: int | None) -> pl.DataFrame:
    import polars as pl

    stated, form = manifest["data"], _form_of(manifest)
    path = folder / stated["file"]
    try:
        scan = format_of(path).scan
        if scan is None:
            # Types are inferred of what was no text: texts stay texts even where all look like numbers.
            table = pl.scan_csv(
                path,
                separator=form.delimiter,
                decimal_comma=form.decimal == ",",
                # polars leaves quotes in a header doubled
                with_column_names=lambda names: [name.replace('""', '"') for name in names],
                schema_overrides=dict.fromkeys(stated["texts"], pl.String),
                infer_schema_length=rows,
                n_rows=rows,
                glob=False,
            ).collect()
        else:
            scanned = scan(path, OF_RELEASES)
            table = scanned.head(rows).collect() if rows is not None else scanned.collect()
    except (pl.exceptions.PolarsError, OSError):
        raise ReleaseError(f"{path} cannot be read; make the release again.") from None
    if table.columns != stated["columns"] or len(table) != (stated["rows"] if rows is None else rows):
        raise ReleaseError(f"{path} has other columns or rows than the manifest says; make the release again.")
    return table


def _report(folder: Path) -> Json:
    """The report; what others go by in it is of the right kind."""
    path = folder / "report.json"
    try:
        report = JsonPart(parse_json(read_text(path, "report", ReleaseError, megabytes=64)))
        entries = report.named()
        if entries.get("format", JsonPart(None)).value != "anonfit report":
            raise report.refused("is no report of a release")
        asked = entries["asked"].named() if "asked" in entries else {}
        for target in asked["targets"].items() if "targets" in asked else ():
            entry = target.table(("column", "kind", "used"), target.named())
            entry["column"].text(), entry["kind"].text(), entry["used"].flag()
    except Damaged as error:
        raise ReleaseError(f"{path} is damaged: {error}; make the release again.") from None
    return report.plain()


def load_folder(folder: Path, *, rows: bool = True, recoding: Recoding | None = None) -> Loaded:
    """Data, recoding, report and manifest of a release folder; without `rows` only the columns of the data. `recoding`
    is the folder's, where it was read already.
    """
    manifest = read_manifest(folder)
    recoding = recoding or read_recoding(folder / "recoding.json")
    return Loaded(_table(folder, manifest, None if rows else 0), recoding, _report(folder), manifest)


FORMAT = "anonfit release"
VERSION = 1
KINDS = (FORMAT, "anonfit tree release")
MANIFEST = "manifest.json"
RECORD = "anonfit internal record"
INTERNAL = ("internal.json", "internal.html")
"""The endings of the internal records beside a release, for the owner of the data."""
PAGE = "internal report</title>"
ENTRIES = ("format", "version", "anonfit", "packages", "engine", "algorithm", "spec", "audit", "files", "created")
"""What every manifest has."""
NOTES = (README, CODEBOOK)
FILES = ("recoding.json", "report.json", "report.html", *NOTES)
TREE_FILES = ("model.json", "tree.txt", "tree.svg", "audit.json", "report.html", README)


def records_of(target: Path) -> dict[str, Path]:
    """Where the internal records of a release are."""
    return {ending: target.with_name(f"{target.name}.{ending}") for ending in INTERNAL}


def check_free(target: Path, *, replace: bool) -> None:
    """Refuse a place where something else is; a release and its records may be replaced if that is asked."""
    if not target.parent.is_dir():
        raise ReleaseError(f"{target.parent}: there is no such folder to write the release into.")
    for place in (target, *records_of(target).values()):
        if not (place.exists() or place.is_symlink()):
            continue
        if not replace:
            raise ReleaseError(taken(place))
        if place.is_symlink() or not _is_ours(place, is_release=place == target):
            what = "a release" if place == target else "an internal record of one"
            raise ReleaseError(f"{place} is not {what}, so it is not replaced; choose another place.")


def _is_ours(place: Path, *, is_release: bool) -> bool:
    """Whether a folder has a manifest as we write them, or a file begins as our records."""
    try:
        if is_release:
            return json.loads((place / MANIFEST).read_text(encoding="utf-8"))["format"] in KINDS
        with place.open(encoding="utf-8") as file:
            return (f'"format": "{RECORD}"' if place.suffix == ".json" else PAGE) in file.read(1 << 10)
    except (OSError, ValueError, TypeError, KeyError):
        return False


def not_loaded(error: AnonfitError) -> AuditFailed:
    """What is said of a release that others could not load."""
    return AuditFailed(f"what was written cannot be loaded, so nothing is published: {error}")


def publish(
    folder: Path,
    target: Path,
    manifest: Json,
    *,
    audit: Callable[[Path], object],
    records: Mapping[str, str],
    replace: bool = False,
) -> None:
    """Write the manifest of a release in a working folder, with the hashes of all files (it has some), load and audit
    it as others will, and give it and its internal records their names.
    """
    known = manifest["files"]
    files = {path.name: known.get(path.name) or file_hash(path) for path in sorted(folder.iterdir())}
    text = json.dumps({**manifest, "files": files}, indent=1, ensure_ascii=False) + "\n"
    write_new(folder / MANIFEST, text)
    try:
        audit(folder)
    except AuditFailed:
        raise
    except AnonfitError as error:
        raise not_loaded(error) from None
    for ending, record in records.items():
        write_new(folder.with_name(ending), record)
    _give_name(folder, target, replace=replace)


def _give_name(folder: Path, target: Path, *, replace: bool) -> None:
    """Make a finished folder the release; the records of one that it replaces go with that one."""
    for path in folder.iterdir():
        path.chmod(0o644)
        sync(path)
    folder.chmod(0o755)  # the folder around it is private
    sync(folder)
    check_free(target, replace=replace)
    give_names(folder.parent, records_of(target) | {folder.name: target}, replace=replace)


def copy_release(source: Path, target: Path, *, replace: bool) -> None:
    """A whole and unchanged release at another place."""
    target = target.absolute()
    read_manifest(source)
    check_free(target, replace=replace)
    with workplace(target) as place:
        folder = place / "release"
        folder.mkdir()
        for path in source.iterdir():
            shutil.copyfile(path, folder / path.name)
        read_manifest(folder)
        _give_name(folder, target, replace=replace)


def read_manifest(folder: Path, expected: str = FORMAT) -> dict[str, Any]:
    """The manifest of a release of the expected format, whose files are all there and unchanged."""
    refuse_fork()
    if not folder.is_dir():
        raise ReleaseError(f"{folder}: there is no such release folder.")
    path = folder / MANIFEST
    if not path.is_file():
        raise ReleaseError(
            f"{folder} is not a release: it has no {MANIFEST}; it may have been cut short while it was written."
        )
    for entry in folder.iterdir():  # a link would lead out of the release, a pipe would never end
        if entry.is_symlink() or not entry.is_file():
            raise ReleaseError(f"{entry} is not a file of the release itself, but a folder, link or device.")
    try:
        manifest = parse_json(read_text(path, "manifest", ReleaseError, megabytes=64))
        entries = JsonPart(manifest).named()
        kind, version = (entries.get(name, JsonPart(None)).value for name in ("format", "version"))
        if kind != expected or version != VERSION or type(version) is not int:
            raise ReleaseError(
                f"{folder} has format {kind!r:.40} version {version!r:.20}; here anonfit reads '{expected}' "
                f"version {VERSION}."
            )
        files = {name: part.text() for name, part in _described(JsonPart(manifest), expected)["files"].named().items()}
    except Damaged as error:
        raise ReleaseError(f"{path} is damaged: {error}; make the release again.") from None
    _check_files(folder, files)
    return manifest  # type: ignore[no-any-return]


def _described(manifest: JsonPart, expected: str) -> dict[str, JsonPart]:
    """The entries of a manifest, all of them known and of the right kind."""
    of_table = ("data", "rows") if expected == FORMAT else ()
    parts = manifest.table((*ENTRIES, *of_table))
    for name in ("anonfit", "engine", "algorithm", "created"):
        parts[name].text()
    for name in ("packages", "spec", "audit", "files", *of_table):
        parts[name].plain()
    files = TREE_FILES
    if expected == FORMAT:
        data = parts["data"].table(("file", "rows", "columns", "texts"))
        files = (data["file"].word([f"data.{kind}" for kind in FORMATS]), *FILES)
        data["rows"].whole(0, 2**63 - 1)
        if not set(data["texts"].texts()) <= set(data["columns"].texts()):
            raise data["texts"].refused("names columns that the data has not")
    # Earlier versions made some releases without notes.
    parts["files"].table([name for name in files if name not in NOTES], [name for name in files if name in NOTES])
    return parts


def _check_files(folder: Path, files: dict[str, str]) -> None:
    """The files of a folder are those of its manifest, unchanged."""
    present = {entry.name for entry in folder.iterdir()} - {MANIFEST}
    if present != set(files):
        differing = ", ".join(sorted(present ^ set(files)))
        raise ReleaseError(
            f"{folder}: the files are not those of the manifest ({differing}); the release was changed after it "
            "was made."
        )
    for name, expected in files.items():
        if file_hash(folder / name) != expected:
            raise ReleaseError(
                f"{folder / name} was changed after the release was made: its hash is not the manifest's."
            )


# --- what a folder must say, and its audits ---------------------------------------------------------------------


def expected_report(
    folder: Path, manifest: Json, report: Json, recoding: Recoding | None = None
) -> tuple[Json, dict[str, str]]:
    """A report with all that follows from its other parts and from the folder written anew, and its pages by name;
    `recoding` is the folder's, where it was read already.
    """
    recoding = recoding or read_recoding(folder / "recoding.json")
    spec = spec_of_manifest(manifest["spec"], recoding)
    schema = schema_of(spec, list(spec.columns))
    reported, workload = report["asked"], workload_of(spec)
    if workload.weights_from:  # weights that were found from the rows stand in the report alone
        weights = {name: float(weight) for name, weight in reported["weights"].items()}
        workload = replaced(workload, weights=weights)
    tried = [re.match(rf"{UNKNOWN_USE}(\d{{1,9}}) ", sentence) for sentence in reported["sentences"]]
    request = ReleaseRequest(
        spec,
        schema,
        recoding.quasi_identifiers,
        demands=manifest["spec"]["privacy"]["diversity"],
        workload=workload,
        aims=[_aim(target, reported, spec) for target in workload.targets],
        tried=next((int(match[1]) for match in tried if match), None),
    )
    name, reason = manifest["engine"], report["engine"]["reason"]
    engine = {"name": name if name in ENGINES else None, "reason": reason if reason in REASONS else None}
    content: dict[str, Any] = {**report, "asked": asked_content(request), "engine": engine}
    if drawn := report.get("measured_on"):
        content["measured_on"] = drawn_content(drawn["rows"], drawn["of"])
    content |= following(content, schema, recoding.columns)
    return content, pages_of(content, manifest, recoding)


def pages_of(report: Json, manifest: Json, recoding: Recoding) -> dict[str, str]:
    """What people read of a release, by file name."""
    opened = FORMATS[Path(manifest["data"]["file"]).suffix.removeprefix(".")].opened(_form_of(manifest))
    return {
        "report.html": report_page(report, manifest),
        README: readme_text(report, manifest, opened),
        CODEBOOK: codebook_text(report, manifest, recoding.columns),
    }


def expected_tree_report(folder: Path, manifest: Json, report: Json) -> tuple[Json, dict[str, str]]:
    """A tree's audit.json with all that follows from its other parts written anew, and its drawings by file name."""
    tree, tables = read_model(folder / "model.json"), manifest["spec"]
    spec_of_manifest(tables, tree.tiling)  # whatever stands there is what a spec may say
    demands = []
    for reported, claimed in zip(report["asked"]["diversity"], tables["privacy"]["diversity"], strict=True):
        # A manifest also says by what distance a demand is measured, where that was not asked.
        beside = {"distance", "taxonomy", "order"} - set(reported)
        demands.append({name: value for name, value in claimed.items() if name not in beside})
    asked = asked_of_tree(tree, tables, demands)
    content = tree_content(tree, asked=asked, rows=report["rows"], audit=report["audit"])
    return content, tree_pages(tree, content, manifest)


def tree_pages(tree: ReleasedTree, report: Json, manifest: Json) -> dict[str, str]:
    """What people read of a published tree, by file name."""
    drawing = drawn_svg(tree)
    return {
        "tree.txt": drawn_text(tree),
        "tree.svg": drawing,
        "report.html": tree_page(report, manifest, drawing),
        README: tree_readme_text(report, manifest),
    }


def _aim(target: TargetRequest, asked: Json, spec: Spec) -> Aim:
    """A target; what it was taken for follows from the rows, so the report is believed that."""
    reported = next(entry for entry in asked["targets"] if entry["column"] == target.column)
    if any(f"{target.column} ({GIVEN_MODEL}" in sentence for sentence in asked["sentences"]):
        target = replaced(target, model=GIVEN_MODEL)
    return Aim(
        target,
        is_number=reported["kind"] == "number",
        is_generalized=spec.columns[target.column].role == Role.QUASI_IDENTIFIER,
        is_used=reported["used"] is True,
    )


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


audit_release = _lent(api.audit_release, retell=expected_report)
audit_tree = _lent(trees.audit_tree, retell=expected_tree_report)
