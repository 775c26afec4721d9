# SPDX-License-Identifier: Apache-2.0
"""A release folder on disk: its manifest and recoding, whether its files are those that the manifest was written for,
and what the spec in the manifest promises of the data. Nothing in a spec is skipped: a setting that the audit does not
know could be a demand that it does not check."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from anonfit.auditing.file_bytes import ReadForm
from anonfit.auditing.findings import suppression
from anonfit.auditing.formats import FORMATS, read_form
from anonfit.auditing.meanings import TYPES, JsonObject, LabelMeaning, laid_out, object_of, text_of
from anonfit.auditing.models import MODELS
from anonfit.auditing.reading import released_file
from anonfit.auditing.request import DiversityDemand, SetDemand, demand_settings, read_demand, read_target, read_targets
from anonfit.auditing.result import Finding, Share
from anonfit.errors import ReleaseError, listed

_ENGINE = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_FEWER = re.compile(r"fewer than (\d{1,18})", re.ASCII)
_VERSION = re.compile(r"unknown|\d{1,8}(\.\d{1,8}){0,4}(\.?[a-z]{1,4}\d{1,8}){0,3}(\+[a-z0-9.]{1,24})?", re.ASCII)
_DAY = re.compile(r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])", re.ASCII)
_DATA = tuple(f"data.{name}" for name in FORMATS)
_BESIDE = ("recoding.json", "report.json", "report.html")
NOTES = ("README.txt", "codebook.csv")
"""Files that releases of earlier versions do not have."""
_MANIFEST = (
    *("format", "version", "anonfit", "packages", "engine", "algorithm", "spec", "data", "rows", "audit", "files"),
    "created",
)
_MANY = 1 << 62  # rows: more than any table has


@dataclass(frozen=True, slots=True)
class Folder:
    """The parts of a release folder that an audit goes by."""

    path: Path
    data: Path
    spec: Mapping[str, Any]
    recoding: Mapping[str, Any]
    columns: tuple[str, ...]  # that the file has, as stated
    texts: tuple[str, ...]  # those of them that hold texts, as stated
    released: tuple[int, ...]  # its rows, as stated more than once
    withheld: int | range  # rows of the source that were withheld, as stated; of few persons, the numbers they may be
    dropped: int | range  # and dropped for missing values
    files: Mapping[str, str]  # name -> hash
    manifest: Mapping[str, Any]
    form: ReadForm

    @property
    def table(self) -> object:
        """The data file, to be read as the manifest says."""
        return released_file(self.data, self.texts, self.form)

    @property
    def needed(self) -> list[str]:
        """The files of a release but for the manifest."""
        return [self.data.name, *_BESIDE, *(name for name in NOTES if name in self.files)]


def open_folder(folder: Path) -> Folder:
    """Read manifest.json and recoding.json; what they say is checked to be of the right kind."""
    manifest = JsonObject(json_of(folder, "manifest.json"), f"the manifest of '{folder.name}'", ReleaseError)
    if manifest.entries.get("format") == "anonfit tree release":
        raise ReleaseError(f"'{folder.name}' holds a tree, not a table; anonfit.audit_tree(folder, data) audits it.")
    if manifest.entries.get("format") != "anonfit release":
        raise ReleaseError(f"The manifest of '{folder.name}' is not that of an anonfit release.")
    if manifest.get("version", int) != 1:
        raise ReleaseError(
            f"The release '{folder.name}' is of a version this audit does not know: use a newer anonfit."
        )
    manifest.known(_MANIFEST)
    check_makers(manifest)
    data, rows, files = manifest.part("data"), manifest.part("rows"), manifest.part("files")
    if any(Path(name).name != name or "\0" in name for name in files.entries):
        raise ReleaseError("The manifest lists a file that is not in the folder.")
    name = data.known(("file", "rows", "columns", "texts")).get("file", str)
    if name not in _DATA or not (folder / name).is_file() or (folder / name).is_symlink():
        raise ReleaseError(f"The data file that the manifest of '{folder.name}' names is not in the folder.")
    output, columns, texts = manifest.part("spec").part("output", {}), data.texts("columns"), data.texts("texts", ())
    if name != f"data.{output.entries.get('format', name[5:])}" or [
        column for column in columns if column in texts
    ] != list(texts):
        raise ReleaseError(f"The manifest of '{folder.name}' tells a format or columns that its data file has not.")
    return Folder(
        folder,
        folder / name,
        spec=manifest.get("spec", dict),
        recoding=json_of(folder, "recoding.json"),
        columns=columns,
        texts=texts,
        released=(rows.get("released", int), data.get("rows", int)),
        withheld=_few_or_exact(rows.known(("released", "withheld", "dropped")), "withheld"),
        dropped=_few_or_exact(rows, "dropped"),
        files={name: files.get(name, str) for name in files.entries},
        manifest=manifest.entries,
        form=read_form(output, manifest.part("spec").part("columns", {})),
    )


def check_makers(manifest: JsonObject) -> None:
    """What made a release is told by versions and an engine's name; that of the method is held against the report."""
    engine = manifest.get("engine", str, None)
    if engine is not None and not _ENGINE.fullmatch(engine):
        raise ReleaseError(f"'engine' in {manifest.label} is not a word that a setting may be.")
    packages = manifest.part("packages", {}).known(("anonfit", "polars", "numba", "numpy"))
    made_by = [manifest.entries.get("anonfit", "unknown"), *packages.entries.values()]
    if not all(isinstance(version, str) and _VERSION.fullmatch(version) for version in made_by):
        raise ReleaseError(f"{manifest.label} tells the version of a package that is none.")
    if not _DAY.fullmatch(manifest.get("created", str, "1970-01-01")):
        raise ReleaseError(f"{manifest.label} tells no day on which the release was made.")


def json_of(folder: Path, name: str) -> dict[str, Any]:
    """The object of a JSON file that is in a folder itself."""
    try:
        if (folder / name).is_symlink():
            raise ValueError("leads out of the folder")
        return object_of(text_of(folder / name))
    except (OSError, ValueError):
        raise ReleaseError(f"'{folder.name}' is no release folder: its {name} is missing or cannot be read.") from None


def _few_or_exact(rows: JsonObject, name: str) -> int | range:
    """A stated number of rows; where they are only said to be few, the numbers that they may be."""
    stated = rows.entries.get(name, 0)
    if type(stated) is int and 0 <= stated < _MANY:
        return stated
    match = _FEWER.fullmatch(str(stated))
    if match is None:
        raise ReleaseError(f"The manifest's number of {name} rows is neither a number nor 'fewer than' one.")
    return range(1, int(match[1]))


def files_as_stated(folder: Path, files: Mapping[str, str], needed: Sequence[str]) -> list[Finding]:
    """A folder holds the files that it needs, with their hashes and in their layout, and no others, listed or not."""
    changed = [name for name in needed if not _is_unchanged(folder / name, files.get(name))]
    there = {path.name for path in folder.iterdir()} | set(files)
    others = sorted(there - {*needed, "manifest.json"})
    otherwise = [name for name in (*needed, "manifest.json") if name.endswith(".json") and not laid_out(folder / name)]
    good, bad = "Files are as the manifest says.", "Files are missing, or not those that the manifest was written for."
    first = Finding("files", [], changed, not changed, bad if changed else good)
    good, bad = "The folder holds no other files.", "The folder or its manifest has files that are none of a release."
    second = Finding("other files", [], others, not others, bad if others else good)
    good, bad = "JSON files have the layout of a release.", "JSON files are written otherwise than those of a release."
    return [first, second, Finding("layout", [], otherwise, not otherwise, bad if otherwise else good)]


def _is_unchanged(path: Path, digest: str | None) -> bool:
    if not path.is_file() or path.is_symlink():
        return False
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest() == digest


RAW_ROLES = ("target", "sensitive", "insensitive", "count", "sample-weight")
_ROLES = ("identifier", "quasi-identifier", "entity", *RAW_ROLES)
_SECTIONS = ("version", "decisions", "data", "columns", "privacy", "method", "engine", "output", "workload", "report")
_COLUMN = (
    *("role", "type", "order", "domain", "date_format", "taxonomy", "split", "release", "diversity", "reason"),
    *("missing", "title"),
)
_LONGEST_REASON = 1000
_LIMITS = {"suppression_limit": 0.0, "max_confidence": 1.0, "attack_limit": 1.0}
_METHOD = (
    *("algorithm", "criterion", "cut_points", "candidates", "split_on", "weight_rule", "alpha", "beta", "gamma"),
    *("min_gain", "average", "suppression", "zero_gain", "variant", "pruning"),
)
_OUTPUT = ("format", "values", "regions", "intervals", "order", "consent", "delimiter", "decimal", "bom")
_WORKLOAD = ("targets", "denoise", "selections", "weights", "features", "selected_by", "weights_from", "clusters")


@dataclass(frozen=True, slots=True)
class Promise:
    """What a spec promises of a data file."""

    roles: Mapping[str, str]
    types: Mapping[str, str | None]
    date_formats: Mapping[str, str | None]
    codes: Mapping[str, tuple[str, ...]]  # values that mean missing in single columns
    missing: tuple[str, ...]
    drops_missing: bool
    tests_raw_columns: bool  # made by a tree, which may test them and had to know their missing values
    suppression_limit: float
    max_confidence: float
    attack_limit: float
    k: int
    sets: tuple[SetDemand, ...]
    diversity: tuple[DiversityDemand, ...]
    targets: tuple[DiversityDemand, ...]
    values: Literal["labels", "bounds", "representative"]
    regions: Literal["domain", "observed"]
    order: Literal["sorted", "original"]
    consent: bool

    def having(self, *roles: str) -> tuple[str, ...]:
        """The columns that have one of these roles."""
        return tuple(name for name, role in self.roles.items() if role in roles)

    @property
    def complete(self) -> tuple[str, ...]:
        """The raw columns that rows with a missing value were left out for, if any were."""
        return self.having("sensitive", "insensitive", "target") if self.tests_raw_columns else ()

    @property
    def least(self) -> int:
        """The persons that a public figure of raw data covers: the largest k."""
        return max([self.k, *(demand.k or self.k for demand in self.sets)])

    @property
    def claims(self) -> tuple[str, ...]:
        """What is promised of the groups, in words."""
        sets = self.sets or (SetDemand(self.having("quasi-identifier"), self.k),)
        count, entity = self.only("count"), self.only("entity")
        persons = f" (persons told apart by '{entity}')" if entity else ""
        persons = f" (persons as '{count}' counts them)" if count else persons
        claims = [f"k = {demand.k} of {', '.join(demand.columns)}{persons}" for demand in sets]
        for demand in self.diversity:
            parameters = ", ".join(f"{name} = {value:g}" for name, value in demand.parameters.items())
            claims.append(f"{demand.model} ({parameters}) of {demand.column}")
        targets = ", ".join(demand.column for demand in self.targets)
        claims += [f"max_confidence {self.max_confidence:g} of {targets}"] if targets else []
        sensitive = ", ".join(self.having("sensitive"))
        claims += [f"attack_limit {self.attack_limit:g} of {sensitive}"] if self.attack_limit < 1 else []
        claims += [f"at most {self.suppression_limit:.4g} of the rows withheld"] if self.suppression_limit else []
        return tuple(claims)

    def only(self, role: str) -> str | None:
        """The column of a role that at most one column has."""
        return next(iter(self.having(role)), None)


def read_promise(spec: object) -> Promise:
    """The promises of a spec, given as the mapping in manifest.json."""
    if not isinstance(spec, Mapping):
        raise ReleaseError("The spec of the manifest is not an object.")
    settings = JsonObject(spec, "the spec of the manifest", ReleaseError).known(_SECTIONS)
    settings.word("decisions", ("accepted",), None)
    if settings.get("version", int, 1) != 1:
        raise ReleaseError("The spec of the manifest is of a version this audit does not know: use a newer anonfit.")
    given = settings.part("columns")
    columns = {str(name): given.part(name).known(_COLUMN) for name in given.entries}
    for name, column in columns.items():
        _check_column(name, column)
    for role in ("entity", "count"):
        if sum(column.entries.get("role") == role for column in columns.values()) > 1:
            raise ReleaseError(f"The spec of the manifest has two columns with the role '{role}'.")
    method, privacy = settings.part("method", {}), settings.part("privacy")
    diversity, targets = _diversity(privacy), _targets(privacy, settings.part("workload", {}), columns)
    _check_unjudged(settings, columns)
    data = settings.part("data", {}).known(("missing", "missing_policy", "default_role"))
    data.word("default_role", _ROLES, None)  # it gave columns their roles when the file was made; here all have one
    policy = data.word("missing_policy", ("category", "drop", "error"), "category")
    roles = {name: column.word("role", _ROLES) for name, column in columns.items()}
    output = settings.part("output", {}).known(_OUTPUT)
    read_form(output, given)
    output.word("intervals", ("half-open", "closed"), "half-open")
    output.word("format", tuple(FORMATS), "parquet")
    return Promise(
        roles,
        {name: column.word("type", TYPES, None) for name, column in columns.items()},
        {name: column.date_format() for name, column in columns.items()},
        {name: column.missing_texts(()) for name, column in columns.items() if "missing" in column.entries},
        missing=data.missing_texts(("",)),
        drops_missing=policy == "drop",
        tests_raw_columns=method.entries.get("algorithm") == "tree",
        diversity=tuple(_declared(demand, columns) for demand in diversity),
        targets=tuple(_declared(demand, columns) for demand in targets),
        **_demands(privacy, [name for name, role in roles.items() if role == "quasi-identifier"]),
        values=output.word("values", ("labels", "bounds", "representative"), "labels"),
        regions=output.word("regions", ("domain", "observed"), "domain"),
        order=output.word("order", ("sorted", "original"), "sorted"),
        consent=output.get("consent", bool, False),
    )


def _check_column(name: str, column: JsonObject) -> None:
    """Settings of a column that nothing else is held against. The name of one that is not released stands nowhere else:
    it is a line of text.
    """
    column.word("split", ("multiway", "binary", "subset"), None)
    if column.entries.get("date_format") is not None and column.entries.get("type") not in ("date", None):
        raise ReleaseError(f"{column.label} has a form of dates, and is none of dates.")
    if column.entries.get("role") in ("identifier", "entity") and not _is_line(name):
        raise ReleaseError("The spec of the manifest has a column that is not released, whose name is no line of text.")
    reason = column.get("reason", str, None)
    if reason is not None and not (len(reason) <= _LONGEST_REASON and _is_line(" ".join(reason.split()), len(reason))):
        raise ReleaseError(f"'reason' in {column.label} is longer than a reason.")


def _is_line(text: str, longest: int = 200) -> bool:
    return 0 < len(text) <= longest and text.isprintable()


def _check_unjudged(spec: JsonObject, columns: Mapping[str, JsonObject]) -> None:
    """How the file was made and what it is for is not for the audit to judge: plain settings, and columns with numbers;
    and what heads the report is lines of text, in the owner's words.
    """
    spec.part("engine", {}).plain(("name",), ())
    spec.part("method", {}).plain(_METHOD, columns)
    workload = spec.part("workload", {}).known(_WORKLOAD)
    workload.part("weights", {}).plain(columns, ())
    workload.get("selections", int, 0)
    for column, _ in map(read_target, workload.get("targets", list, [])):
        if column not in columns:
            raise ReleaseError(f"The spec of the manifest has the target '{column}', which is none of its columns.")
    rest = {name: value for name, value in workload.entries.items() if name not in ("weights", "targets")}
    JsonObject(rest, workload.label, ReleaseError).plain(_WORKLOAD, columns)
    report = spec.part("report", {}).known(("title", "table_name", "contact"))
    lines = [(name, report.get(name, str)) for name in report.entries]
    lines += [("title", column.get("title", str)) for column in columns.values() if "title" in column.entries]
    for name, line in lines:
        if not _is_line(line):
            raise ReleaseError(f"'{name}' in the spec of the manifest is no line of text.")


def _demands(privacy: JsonObject, quasi_identifiers: Sequence[str]) -> dict[str, Any]:
    privacy.known((*_LIMITS, "k", "diversity", "quasi_identifiers", "class_is_public"))
    privacy.get("class_is_public", bool, False)
    limits = {name: privacy.get(name, float, unlimited) for name, unlimited in _LIMITS.items()}
    k = privacy.get("k", int)
    for name in ("suppression_limit", "attack_limit"):
        if not 0 <= limits[name] <= 1:
            raise ReleaseError(f"'{name}' in the spec of the manifest is no fraction.")
    given = [entry.known(("columns", "k")) for entry in privacy.parts("quasi_identifiers", ())]
    sets = tuple(SetDemand(entry.texts("columns"), entry.get("k", int, k)) for entry in given)
    if "quasi_identifiers" in privacy.entries and not sets:
        raise ReleaseError("The spec of the manifest asks for several quasi-identifiers and names none.")
    for demand in sets:
        columns = set(demand.columns)
        if not columns or not columns <= set(quasi_identifiers) or len(columns) < len(demand.columns):
            raise ReleaseError(
                "A set of quasi-identifiers in the spec of the manifest is empty, names a column twice or one that is "
                "none: what it claims of groups means nothing."
            )
    left = [name for name in quasi_identifiers if sets and all(name not in demand.columns for demand in sets)]
    if left:
        raise ReleaseError(
            f"The spec of the manifest claims nothing of these quasi-identifiers: {listed(left)}. They are in none of "
            "its sets of quasi-identifiers."
        )
    return {"k": k, "sets": sets, **limits}


def _diversity(privacy: JsonObject) -> list[DiversityDemand]:
    """The demands on sensitive columns."""
    entries = privacy.parts("diversity", ())
    for entry in entries:
        model = entry.entries.get("model")
        if isinstance(model, str) and model in MODELS:
            entry.known(demand_settings(model))
    return [read_demand(entry.entries) for entry in entries]


def _targets(
    privacy: JsonObject, workload: JsonObject, columns: Mapping[str, JsonObject]
) -> tuple[DiversityDemand, ...]:
    """The demands on targets, if what groups tell of them is limited: those of the workload, and all of that role."""
    most = privacy.get("max_confidence", float, 1.0)
    if most == 1:
        return ()
    targets = workload.get("targets", list, [])
    named = [target.get("column") if isinstance(target, Mapping) else target for target in targets]
    every = [name for name, column in columns.items() if column.entries.get("role") == "target"]
    return read_targets([*targets, *(name for name in every if name not in named)], most)


def _declared(demand: DiversityDemand, columns: Mapping[str, JsonObject]) -> DiversityDemand:
    """A demand with what the spec declares of its column."""
    if demand.column not in columns:
        raise ReleaseError(
            f"The spec of the manifest asks something of '{demand.column}', which is none of its columns."
        )
    column = columns[demand.column]
    return demand.with_type(column.word("type", TYPES, None), column.get("date_format", str, None))


def stated_rows(stated: int | range, promise: Promise) -> int | range:
    """The rows that may be withheld or dropped: where few are only said to be so, a person may have many rows."""
    if isinstance(stated, int):
        return stated
    if stated.stop != promise.least:
        raise ReleaseError(
            f"The manifest tells rows that are withheld or dropped as 'fewer than {stated.stop}': figures of few "
            f"persons are told as 'fewer than {promise.least}'."
        )
    return stated if promise.only("entity") is None else range(stated.start, _MANY)


def suppression_finding(opened: Folder, promise: Promise) -> Finding:
    """The rows that the manifest says were withheld, at least, against those that may be."""
    least = opened.withheld if isinstance(opened.withheld, int) else opened.withheld.start
    return suppression(Share(least, least + opened.released[0]), promise.suppression_limit)


def as_stated(
    height: Callable[[], int], names: Sequence[str], *, columns: Sequence[str] | None, released: Sequence[int]
) -> list[Finding]:
    """The file has the columns and the number of rows that were stated."""
    findings = []
    if columns is not None:
        same = list(columns) == list(names)
        sentence = f"The file has {'the stated columns' if same else 'other columns than stated'}."
        findings.append(Finding("stated columns", list(columns), list(names), same, sentence))
    if released:
        rows = height()
        same = all(number == rows for number in released)
        sentence = f"The file has {'the stated number of rows' if same else 'another number of rows than stated'}."
        findings.append(Finding("stated rows", released[0], rows, same, sentence))
    return findings


def promised_findings(promise: Promise, meanings: Mapping[str, LabelMeaning]) -> list[Finding]:
    """The columns of the recoding are those that the spec calls quasi-identifiers, of the types that it says, and what
    gives away more than regions was consented to.
    """
    asked, called = list(meanings), list(promise.having("quasi-identifier"))
    same = set(asked) == set(called)
    sentence = "The quasi-identifiers are the columns of the recoding."
    if not same:
        sentence = "The recoding has other columns than those that are called quasi-identifiers."
    elif any(promise.types[name] not in (None, meaning.type) for name, meaning in meanings.items()):
        same, sentence = False, "The recoding has columns of other types than the manifest says."
    findings = [Finding("quasi-identifiers", asked, called, same, sentence)]
    given = [word for word in (promise.order, promise.regions) if word in ("original", "observed")]
    if given:
        sentence = "What the order of rows or observed labels give away was consented to."
        if not promise.consent:
            sentence = "The order of rows or observed labels give away more than regions, and nobody consented to that."
        findings.append(Finding("consent", True, promise.consent, promise.consent, sentence, ", ".join(given)))
    return findings
