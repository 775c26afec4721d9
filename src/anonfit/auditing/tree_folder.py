# SPDX-License-Identifier: Apache-2.0
"""What the audit of a model found, and the folder of a published tree: whether its files are those of its manifest, its
model is the one that the manifest describes, the training rows hold what it claims, and audit.json, tree.txt and
tree.svg tell just that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from anonfit.auditing.folder import Promise, check_makers, files_as_stated, json_of, read_promise
from anonfit.auditing.labels import read_label
from anonfit.auditing.meanings import JsonObject, LabelMeaning
from anonfit.auditing.measuring import audit_request
from anonfit.auditing.model_trees import MODEL, SavedTree, saved_tree_of
from anonfit.auditing.reading import open_table, require_columns
from anonfit.auditing.report_shape import Derived, Json, Retell, alike, as_recounted, as_retold, entries, read_report
from anonfit.auditing.request import THRESHOLDS, Request, check_request, read_demand, read_targets
from anonfit.auditing.result import PERSONS, Audit, Finding, Share, plain
from anonfit.errors import ReleaseError

RetellTree = Retell
"""The same of a tree's folder and its audit.json, with the texts of the drawings."""

FORMAT = "anonfit tree release"
REPORT = "audit.json"
DRAWINGS = ("tree.txt", "tree.svg", "report.html")
_MANIFEST = ("format", "version", "anonfit", "packages", "engine", "algorithm", "spec", "audit", "files", "created")
_SECTIONS = {"format", "version", "asked", "told", "rows", "tree", "attacker", "spans", "not_covered", "audit"}
NOT_COUNTED = "Not checked: only the rows that the tree was taught with say it."


@dataclass(frozen=True, slots=True)
class ClassExposure:
    """The individuals whose class an attacker can tell with a confidence: so large a part of their span has it."""

    confidence: float
    persons: Share


@dataclass(frozen=True, slots=True)
class Span:
    """One span: how many individuals have it, in which leaves they can be, and their class where that is public."""

    persons: int = field(metadata=PERSONS)
    leaves: tuple[int, ...]
    of_class: str | None = None


@dataclass(frozen=True, slots=True)
class OneTree:
    """A tree of a forest by itself."""

    leaves: int
    spans: int
    smallest: int | None = field(metadata=PERSONS)
    persons_below_k: Share | None
    certain: Share | None  # whose class the tree makes certain


@dataclass(frozen=True, slots=True)
class TreeAudit:
    """How anonymous the release of a model is. The groups of `spans` are its spans: persons nobody can tell apart by
    the model and public values. `passed` is about what was asked; the figures are there in any case.
    """

    kind: Literal["tree", "forest", "model"]
    public: tuple[str, ...]
    private: tuple[str, ...]
    target: str | None
    class_is_public: bool
    outcomes: int  # leaves, of all trees; of another model, the outcomes that were met
    spans: Audit
    exposed: tuple[ClassExposure, ...]  # none where the class is public or not given
    trees: tuple[OneTree, ...]
    of_spans: tuple[Span, ...]  # of a single tree

    @property
    def k(self) -> int | None:
        """The individuals in the smallest span: the model is k-anonymous for this k (Definition 7)."""
        return self.spans.k

    @property
    def below_k(self) -> Share | None:
        """The individuals in spans of fewer than k; None where no k was asked."""
        return self.spans.sizes.persons_below_k

    @property
    def certain(self) -> Share | None:
        """The individuals whose class is certain: all of their span have the same."""
        return next((exposure.persons for exposure in self.exposed if exposure.confidence == 1), None)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Every demand, and whether it is met."""
        return self.spans.findings

    @property
    def passed(self) -> bool | None:
        """Whether every demand is met; one that could not be checked is not. None: nothing was asked."""
        return self.spans.passed

    @property
    def missed(self) -> tuple[Finding, ...]:
        """Demands that are not met, or could not be checked."""
        return self.spans.missed

    @property
    def verdict(self) -> tuple[str, ...]:
        """In sentences: what was asked and met or missed, and what the folder of a tree claims of itself."""
        return self.spans.verdict

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the figures should know."""
        return self.spans.notes

    def to_dict(self) -> dict[str, Any]:
        """Everything, JSON-ready: for the owner of the data."""
        return {"passed": self.passed, "k": self.k, **plain(self), "spans": self.spans.to_dict()}

    def public_figures(self, k: int) -> dict[str, Any]:
        """The same without any figure about fewer than k individuals, or all but fewer than k."""
        spans = self.spans.public(k)
        return {"passed": self.passed, "k": spans["k"], **plain(self, k), "spans": spans}


@dataclass(frozen=True, slots=True)
class TreeFolder:
    """The parts of a tree's folder that an audit goes by."""

    path: Path
    manifest: Json
    files: Mapping[str, str]
    promise: Promise
    saved: SavedTree
    class_is_public: bool
    populations: str
    diversity: tuple[Json, ...]

    @property
    def public(self) -> tuple[str, ...]:
        """The columns that an attacker may know, but for the class."""
        return self.promise.having("quasi-identifier")

    @property
    def private(self) -> tuple[str, ...]:
        """The columns that nobody else knows and the tree may test."""
        return tuple(name for name in self.promise.having("sensitive", "insensitive") if name != self.saved.target)

    @property
    def drawings(self) -> tuple[str, ...]:
        """What the folder tells people; trees of earlier versions have no README.txt."""
        return (*DRAWINGS, *(("README.txt",) if "README.txt" in self.files else ()))

    @property
    def words(self) -> dict[str, Any]:
        """What is claimed, as an audit is asked."""
        target, confidence = self.saved.target, self.promise.max_confidence
        return {
            "public": [*self.public, *([target] if self.class_is_public else [])],
            "private": [*self.private, *([] if self.class_is_public else [target])],
            "target": target,
            "k": self.promise.k,
            "diversity": [dict(demand) for demand in self.diversity],
            "max_confidence": confidence if confidence < 1 else None,
        }

    @property
    def claims(self) -> tuple[str, ...]:
        """What is claimed, in words."""
        known = ", ".join(self.words["public"])
        named = (f"k = {self.promise.k} of spans by {known}", *self.promise.claims[1:])
        return (*named, f"{self.populations} populations of {self.saved.target}")


def is_tree_folder(model: object) -> bool:
    """Whether a path is the folder of a published tree."""
    if not isinstance(model, (str, Path)) or not (Path(model) / "manifest.json").is_file():
        return False
    return json_of(Path(model), "manifest.json").get("format") == FORMAT


def open_tree_folder(folder: Path) -> TreeFolder:
    """Read manifest.json and model.json; what they say is checked to be of the right kind."""
    manifest = JsonObject(json_of(folder, "manifest.json"), f"the manifest of '{folder.name}'", ReleaseError)
    if manifest.known(_MANIFEST).get("version", int) != 1:
        raise ReleaseError(f"The tree '{folder.name}' is of a version this audit does not know: use a newer anonfit.")
    check_makers(manifest)
    spec, files = manifest.part("spec"), manifest.part("files")
    output, privacy = spec.part("output").known(("populations",)), spec.part("privacy")
    if (folder / MODEL).is_symlink() or manifest.entries.get("algorithm") != "tree":
        raise ReleaseError(f"'{folder.name}' is no folder of a tree: its model or its method is another.")
    saved, promise = saved_tree_of(folder / MODEL), read_promise({**spec.entries, "output": {}})
    assert saved is not None
    if promise.suppression_limit or promise.attack_limit < 1:
        raise ReleaseError(f"The manifest of '{folder.name}' claims what is of tables, and nobody holds a tree to it.")
    return TreeFolder(
        folder,
        manifest.entries,
        {name: files.get(name, str).lower() for name in files.entries},
        promise,
        saved,
        privacy.get("class_is_public", bool, False),
        output.word("populations", ("exact", "relative", "majority")),
        tuple(demand.entries for demand in privacy.parts("diversity", ())),
    )


def training_rows(folder: TreeFolder, data: object) -> pl.DataFrame:
    """The rows that the tree was taught with: without those left out for a missing value, numbers in classes."""
    promise, target = folder.promise, folder.saved.target
    names = [*folder.public, *folder.private, target]
    table = open_table(data, missing=promise.missing, columns=names, codes=promise.codes)
    require_columns(table, names, purpose="of the tree")
    frame = table.frame(list(dict.fromkeys(names)))
    frame = frame.drop_nulls(names) if promise.drops_missing else frame
    listed = entries(folder.manifest["spec"].get("workload")).get("targets") or []
    of_class = [entry for entry in listed if isinstance(entry, Mapping) and entry.get("column") == target]
    edges = [float(end) for entry in of_class for end in entry.get("classes") or ()]  # none where it has names
    if not edges:
        return frame
    numbers = frame[target].cast(pl.Float64, strict=False).to_numpy()
    classes = np.searchsorted(np.array(edges), numbers, side="right")
    known: dict[int, Any] = {}  # the classes of the tree by the place of their numbers between the edges
    for name in folder.saved.classes:
        read = read_label(str(name), LabelMeaning(target, "continuous"))
        if read is not None and read.intervals:
            lower = read.intervals[0].lower
            known[0 if lower is None else int(np.searchsorted(edges, float(lower), side="right"))] = name
    names_of = pl.Series(target, [known.get(place, f"another class, {place}") for place in range(len(edges) + 1)])
    return frame.with_columns(names_of.gather(classes.tolist()).alias(target))


def check_tree_folder(
    folder: TreeFolder, audit: TreeAudit | None, rows: int | None, retell: RetellTree | None
) -> list[Finding]:
    """All findings on the folder itself; `audit` is that of its training `rows`, where these were given."""
    report = read_report(folder.path / REPORT, "anonfit tree audit")
    files = files_as_stated(folder.path, folder.files, (MODEL, *folder.drawings, REPORT))
    findings = [*files, _of_model(folder)]
    is_whole = report is not None and set(report) == _SECTIONS
    if report is None or not is_whole or not all(isinstance(report[name], Mapping) for name in ("audit", "rows")):
        bad = "The audit that was written is not one of anonfit, or has sections that are none."
        return [*findings, Finding("report", "as recounted", "another", met=False, sentence=bad)]
    return [*findings, _of_figures(folder, audit, rows, report), *_of_texts(folder, report, retell)]


def _of_model(folder: TreeFolder) -> Finding:
    """The model reads the columns that the manifest calls quasi-identifiers as public ones, and tells what it says."""
    saved = folder.saved
    claimed = (folder.public, (*folder.public, *folder.private), folder.class_is_public, folder.populations)
    same = (saved.public, saved.tree.names, saved.class_is_public, saved.populations) == claimed
    same = same and folder.promise.roles.get(saved.target) in ("target", "sensitive", "insensitive")
    good = "The model is the one that the manifest describes."
    bad = "The model has other public or private columns, or tells another kind of populations, than the manifest says."
    return as_recounted("model", same, good, bad)


def _of_figures(folder: TreeFolder, audit: TreeAudit | None, rows: int | None, report: Json) -> Finding:
    """audit.json tells what was counted, and the manifest the same."""
    stated, k = report["audit"], folder.promise.k
    summary = {"passed": True, "k": stated.get("k"), "findings": entries(stated.get("spans")).get("findings")}
    same = alike(folder.manifest.get("audit"), summary) and stated.get("passed") is True
    if audit is None:
        sentence = NOT_COUNTED if same else "The manifest and the audit that was written tell other findings."
        return Finding("report figures", "as recounted", None, None if same else False, sentence)
    left = (rows or 0) - audit.spans.rows
    of_rows: Any = {"read": rows, "dropped": left}
    if 0 < left < k:
        of_rows = {"read": f"{audit.spans.rows} or slightly more", "dropped": f"fewer than {k}"}
    same = same and alike(stated, audit.public_figures(k)) and report["rows"] == of_rows
    good = "The audit that was written tells the figures of the tree."
    bad = "The audit that was written, or the manifest, tells other figures than were counted."
    return as_recounted("report figures", same, good, bad)


def _of_texts(folder: TreeFolder, report: Json, retell: RetellTree | None) -> list[Finding]:
    """All that follows from model, manifest and figures is what they give, and the drawings are those of the tree."""
    derived: dict[str, Derived] = {
        "report texts": (
            (),
            "The sentences of the audit follow from the tree.",
            "The audit that was written says something else.",
        ),
        "drawings": (
            folder.drawings,
            "The drawings and pages are those of the tree.",
            "tree.txt, tree.svg, report.html or README.txt are no drawings or pages of the tree.",
        ),
    }
    code = "draws a tree and tells its audit anew"
    return as_retold(folder.path, folder.manifest, report, retell, derived, code=code, what="it")


def _unknown(demands: Sequence[tuple[str, Any, str | None]]) -> tuple[Finding, ...]:
    """Demands, each with what is asked of what, of which nothing is known without the training rows."""
    return tuple(Finding(name, asked, None, None, NOT_COUNTED, where) for name, asked, where in demands)


def uncounted(folder: TreeFolder) -> TreeAudit:
    """The audit of a tree without its training rows: no figures, and nothing that is known to be met."""
    words, promise, target = folder.words, folder.promise, folder.saved.target
    asked: list[tuple[str, Any, str | None]] = [("k", promise.k, None)]
    asked += [(demand["model"], demand["column"], demand["column"]) for demand in folder.diversity]
    asked += [("max_confidence", promise.max_confidence, target)] if promise.max_confidence < 1 else []
    nobody = pl.DataFrame({"span": []})
    spans = replace(
        audit_request(Request(nobody, ("span",), k=promise.k, thresholds=THRESHOLDS, missing=())),
        findings=_unknown(asked),
        notes=("Nothing was counted: the rows that the tree was taught with were not given.",),
    )
    return TreeAudit(
        kind="tree",
        public=tuple(words["public"]),
        private=tuple(words["private"]),
        target=target,
        class_is_public=folder.class_is_public,
        outcomes=len(folder.saved.tree.leaves),
        spans=spans,
        exposed=(),
        trees=(),
        of_spans=(),
    )


def not_counted(asked: Mapping[str, Any], target: str) -> tuple[Finding, ...]:
    """What the caller asks of a tree whose training rows are not given: of nothing it is known whether it is met."""
    check_request(Request(pl.DataFrame({"span": []}), ("span",), k=asked.get("k")))
    limits: list[tuple[str, Any, str | None]] = [("k", asked["k"], None)] if "k" in asked else []
    if "max_confidence" in asked:
        read_targets([target], asked["max_confidence"])
        limits.append(("max_confidence", asked["max_confidence"], target))
    models = [read_demand(entry) for entry in asked.get("diversity", ())]
    limits += [(demand.model, demand.column, demand.column) for demand in models]
    return _unknown(limits)


def claimed(
    audited: TreeAudit, folder: TreeFolder, findings: Sequence[Finding], asked: Sequence[Finding] = ()
) -> TreeAudit:
    """An audit whose findings are marked as claims of the folder, as are `findings`; what was `asked` comes first."""
    own = tuple(replace(finding, claimed=True) for finding in (*audited.spans.findings, *findings))
    return replace(audited, spans=replace(audited.spans, findings=(*asked, *own), claims=folder.claims))
