# SPDX-License-Identifier: Apache-2.0
"""The public functions. Every door (library, command line, page, estimators) builds a Spec and calls these."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from dataclasses import replace as replace_part
from html import escape
from pathlib import Path
from typing import Any, Literal, Unpack, overload

from anonfit.algorithms.trees.released import ReleasedTree
from anonfit.errors import RequestError, did_you_mean, printable
from anonfit.metrics.curve import read_ks
from anonfit.recoding.recoding import Recoding
from anonfit.recoding.values import Unseen
from anonfit.release.bind import demands_of, schema_of, source_of
from anonfit.release.draft import Draft, Lazy, RowCounts
from anonfit.release.evidence import audit_draft, both_reports
from anonfit.release.folder import check_free, copy_release, load_folder, spec_of_manifest
from anonfit.release.publish import DatabaseTable, deliver, publish_draft, require_passed, target_of
from anonfit.release.run import extend, make
from anonfit.release.trees import MODEL, load_tree_folder, make_tree_of, publish_tree
from anonfit.report.trees import drawn_svg
from anonfit.runtime.process import Stage, silent, stoppable
from anonfit.spec import keywords
from anonfit.spec.kinds import FRACTION
from anonfit.spec.model import ColumnSettings, OutputSpec, Settings, Spec, TargetSpec
from anonfit.spec.parse import read_spec, read_tree_spec, refuse_open
from anonfit.tables.databases import named_source
from anonfit.tables.frames import like
from anonfit.tables.sources import FORMATS, FormatName, is_database

__all__ = ["Release", "TreeRelease", "anonymize", "load", "load_table", "load_tree", "run", "run_tree"]


@dataclass(frozen=True, slots=True)
class Release:
    """An anonymous table with the recoding that made it and the evidence for it.

    `data` is a frame of the kind that came in (polars for files), with a fresh index.
    """

    data: Any
    recoding: Recoding
    _report: Mapping[str, Any] | Lazy[Mapping[str, Any]]
    _draft: Draft
    _folder: Path | None = None
    _curve: Sequence[int] = ()
    _target: DatabaseTable | None = None

    @property
    def report(self) -> Mapping[str, Any]:
        """The public report, as it is saved with the release; measured when it is first asked for."""
        return self._report.get() if isinstance(self._report, Lazy) else self._report

    @property
    def refinements(self) -> Mapping[str, Any] | None:
        """How top-down refinement came to the recoding: for the owner of the data, never saved with the release. None
        for other releases, and for one that was loaded.
        """
        return self._draft.refinements

    @property
    def notices(self) -> tuple[str, ...]:
        """What was guessed when the source was read, and what is doubtful about its values: for the owner of the data,
        never saved with the release. Empty for a release that was loaded.
        """
        return self._draft.notices

    def __repr__(self) -> str:
        """What it is, without a row of it: a notebook or a log may show it."""
        rows, names = self._draft.released, list(self.recoding.quasi_identifiers)
        if several := self._several("="):
            return f"Release({several}; rows={rows})"
        return f"Release(k={self._draft.spec.privacy.k}, rows={rows}, quasi_identifiers={names})"

    def _several(self, equals: str) -> str:
        """What is asked of several quasi-identifiers; empty where there is one."""
        demands = demands_of(self._draft.spec).quasi_identifiers
        return "; ".join(f"k{equals}{demand.k} of {', '.join(demand.columns)}" for demand in demands)

    def _repr_html_(self) -> str:
        """What it is, as a table for a notebook, without a row of it."""
        spec = self._draft.spec
        generalized = dict.fromkeys(self.recoding.quasi_identifiers, "generalized")
        raw = {column.name: "as it is" for column in self._draft.schema.released_raw}
        roles = {column.name: str(column.role) for column in self._draft.schema.columns}
        demands = [self._several(" = ") or f"k = {spec.privacy.k}"]
        demands += [f"{demand.model} of {demand.column}" for demand in spec.privacy.diversity]
        lines = [(name, roles.get(name, ""), how) for name, how in (generalized | raw).items()]
        return _html_table(
            f"Release of {self._draft.released:,} rows: {', '.join(demands)}", ("column", "role", "released"), lines
        )

    def save(self, path: str | Path, *, format: FormatName | None = None, replace: bool = False) -> Path:  # noqa: A002 - the contract's word
        """Write the release folder; the written file is audited before the folder gets its name.

        Args:
            path: The folder to make.
            format: One of those that a spec may name, such as `csv`; as in the spec if not given.
            replace: Whether a release that is already there may be replaced.

        Returns:
            The folder.
        """
        if format is not None and format not in FORMATS:
            usual_first = sorted(FORMATS, key=lambda name: name != OutputSpec().format)
            raise RequestError(f"format = '{format}' is not known; valid: {', '.join(usual_first)}.")
        if self._folder is not None:
            # What was loaded is passed on as it is, with its own evidence.
            if format not in (None, self._draft.spec.output.format):
                raise RequestError("a loaded release keeps its format; make the release again in another one.")
            copy_release(self._folder, Path(path), replace=replace)
            return Path(path)
        publish_draft(self._draft, Path(path), kind=format, replace=replace, ks=self._curve)
        return Path(path)

    @property
    def written_to(self) -> dict[str, str]:
        """The table of a database that it was written to when it was made, without anything secret."""
        return {} if self._target is None else {"written_to": self._target.shown}

    def to_table(self, address: str, table: str, *, replace: bool = False) -> None:
        """Write the released table to a database, in one transaction.

        Args:
            address: Such as `sqlite:release.db`, `postgresql://user@host/name` or `env:NAME`.
            table: The table to make.
            replace: Whether one that is already there may be replaced.
        """
        target = target_of(address, table)
        if is_database(self._draft.spec.data.source):
            target.refuse_source(source_of(self._draft.spec))
        deliver(self._draft, target, replace=replace)

    def extend(
        self,
        data: Any,
        *,
        unseen: str = "suppress",
        recoding: Recoding | None = None,
        suppression_limit: float | None = None,
    ) -> Release:
        """A release of new data by the same recoding: audited, with regions below the demand withheld.

        Args:
            data: A path or frame with the columns of the original table.
            unseen: `suppress` withholds rows with a category that the recoding does not know; `error` refuses them.
            recoding: An edited recoding of the same quasi-identifiers, in place of the release's own.
            suppression_limit: The share of the new rows that may be withheld; that of this release if not given.

        Returns:
            Another release.
        """
        return _released(self._extended(data, unseen, recoding=recoding, limit=suppression_limit), data)

    def publish_extension(
        self,
        data: Any,
        out: str | Path,
        *,
        unseen: str = "suppress",
        recoding: Recoding | None = None,
        suppression_limit: float | None = None,
        to: str | None = None,
        replace: bool = False,
        stage: Stage = silent,
    ) -> Release:
        """As `extend`, and written as a release folder at once.

        Args:
            data: A path or frame with the columns of the original table.
            out: The folder to make.
            unseen: As for `extend`.
            recoding: As for `extend`.
            suppression_limit: As for `extend`.
            to: The table of a database that is also to hold it, such as `postgresql://user@host/name#table`.
            replace: Whether a release that is already there may be replaced.
            stage: Told each stage as it begins.

        Returns:
            The release of the new data.
        """
        check_free(Path(out).absolute(), replace=replace)
        target = None if to is None else DatabaseTable.checked(to, source=named_source(data), replace=replace)
        draft = self._extended(data, unseen, stage, recoding=recoding, limit=suppression_limit)
        with _used(draft):
            report = publish_draft(draft, Path(out), replace=replace, stage=stage)
            deliver(draft, target, replace=replace, published=Path(out), stage=stage)
            return Release(like(data, draft.table, index=False), draft.recoding, report, draft, _target=target)

    def _extended(
        self, data: Any, unseen: str, stage: Stage = silent, *, recoding: Recoding | None, limit: float | None
    ) -> Draft:
        if unseen not in ("suppress", "error"):
            raise RequestError(f"unseen = '{unseen}' is not known here; {did_you_mean(unseen, ('suppress', 'error'))}")
        taken = recoding or self.recoding
        if taken.quasi_identifiers != self.recoding.quasi_identifiers:
            raise RequestError("the recoding given is one of other quasi-identifiers than the release has.")
        steered = self._draft.steered
        if self._folder is not None:
            targets = self.report["asked"].get("targets", ())
            steered = {target["column"]: target["kind"] == "number" for target in targets if target["used"]}
        elif steered is None:  # refining and trees know classes only
            steered = {target.column: False for target in self._draft.spec.targets}
        spec = self._draft.spec
        if limit is not None:
            if not FRACTION.have(limit):
                raise RequestError(f"suppression_limit must be {FRACTION.says} (0.05 is 5 %); found {limit!r}.")
            spec = replace_part(spec, privacy=replace_part(spec.privacy, suppression_limit=float(limit)))
        return extend(spec, taken, named_source(data), unseen=Unseen(unseen), steered=steered, stage=stage)


@dataclass(frozen=True, slots=True)
class TreeRelease:
    """A published tree and the public audit of it."""

    tree: ReleasedTree
    audit: Mapping[str, Any]
    """Empty where a model was loaded by itself."""
    folder: Path

    def _repr_html_(self) -> str:
        """The drawing that is published with it, for a notebook."""
        return drawn_svg(self.tree)


def _released(draft: Draft, source: Any) -> Release:
    """A release whose table has been audited as it stands in memory."""
    with _used(draft):
        audit = audit_draft(draft, draft.released_table)
        require_passed(audit)
        report: Lazy[Mapping[str, Any]] = Lazy(lambda: both_reports(draft, audit)[0])
        # Rows that are not held here may be others tomorrow, and what is limited in the report is measured for it.
        if draft.scan is not None or draft.spec.privacy.attack_limit < 1:
            report.get()
        return Release(_data(draft, source), draft.recoding, report, draft)


@contextmanager
def _used(draft: Draft) -> Iterator[None]:
    """Remove what is stored of a table after a failure: the error, which a notebook keeps, would keep it."""
    try:
        yield
    except BaseException:
        draft.discard()
        raise


def _data(draft: Draft, source: Any) -> Any:
    """The released table as a frame of the kind that came in; a large one as a lazy frame of its file."""
    return draft.released_table if draft.is_large else like(source, draft.table, index=False)


def _html_table(title: str, head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A small table; names are of others, and are shown, never obeyed."""

    def cells(texts: Sequence[str], tag: str) -> str:
        return "".join(f'<{tag} style="text-align: left">{escape(printable(text))}</{tag}>' for text in texts)

    rows = "".join(f"<tr>{cells(line, 'td')}</tr>" for line in lines)
    caption = f'<caption style="text-align: left; white-space: nowrap"><b>{escape(printable(title))}</b></caption>'
    return f"<table>{caption}<thead><tr>{cells(head, 'th')}</tr></thead><tbody>{rows}</tbody></table>"


@keywords.takes_settings()
def anonymize(
    data: Any,
    *,
    quasi_identifiers: Sequence[str] = (),
    k: int | None = None,
    targets: Sequence[str | Mapping[str, Any] | TargetSpec] = (),
    sensitive: Mapping[str, Mapping[str, Any] | Sequence[Mapping[str, Any]]] | None = None,
    columns: Mapping[str, ColumnSettings] | None = None,
    threads: int | None = None,
    **settings: Unpack[Settings],
) -> Release:
    """Make an anonymous release of a table about people.

    Args:
        data: A path, a polars, pandas or Arrow frame, the address of a database (`sqlite:people.db#table`,
            `postgresql://user@host/name#table`), or a whole `Spec` (then nothing else is given).
        quasi_identifiers: Columns that someone could know of a person; they are generalized.
        k: How many persons must share every released combination of them.
        targets: Columns the recipient will predict: names, or tables such as `{"column": "cost", "weight": 0.5}`.
            They are released as they are, and a quasi-identifier among them generalized.
        sensitive: Columns nobody should learn of a person; released as they are. With the diversity that is asked:
            `{"diagnosis": {"model": "entropy-l", "l": 3}}`, or a list of such for a column; or with the reason why
            nothing is asked, which is published: `{"diagnosis": {"model": "none", "reason": "…"}}`.
        columns: What is declared of columns beside their roles, such as
            `{"age": af.Column(type="continuous", domain=[0, 120])}`.
        threads: How many threads to use; all cores if not given.
        {settings}

    Returns:
        The release: `.data`, `.recoding`, `.report`, `.save(path)`.

    Example:
        >>> import anonfit as af
        >>> import polars as pl
        >>> people = pl.DataFrame({"age": [21, 22, 41, 42], "income": [1, 2, 3, 3]})
        >>> af.anonymize(people, quasi_identifiers=["age"], k=2, targets=["income"]).data["age"].to_list()
        ['< 30', '< 30', '≥ 30', '≥ 30']
    """
    keywords.check_keywords("anonymize", settings, keywords.keyword_defaults())
    given = {"quasi_identifiers": quasi_identifiers, "k": k, "targets": targets, "sensitive": sensitive}
    words: dict[str, Any] = {**given, "columns": columns, **settings}
    if isinstance(data, Spec):
        keywords.refuse_keywords(words, anonymize)
        return _released(make(data, threads=threads, stopping=stoppable), data.data.source)
    if k is None:
        raise RequestError(
            "k is missing: how many persons must share every released combination? 10 is a common start."
        )
    with keywords.speaking_keywords():
        spec = keywords.spec_of_keywords(str(data) if isinstance(data, str | Path) else data, words)
        draft = make(spec, threads=threads, stopping=stoppable)
    return _released(draft, spec.data.source)


@overload
def run(
    spec: Spec | str | Path,
    out: str | Path,
    *,
    publish: Literal["table"] = "table",
    settings: Iterable[str] = (),
    curve: Sequence[int] = (),
    replace: bool = False,
    stage: Stage = silent,
) -> Release: ...


@overload
def run(
    spec: Spec | str | Path,
    out: str | Path,
    *,
    publish: Literal["tree"],
    settings: Iterable[str] = (),
    replace: bool = False,
    stage: Stage = silent,
) -> TreeRelease: ...


def run(
    spec: Spec | str | Path,
    out: str | Path,
    *,
    publish: Literal["table", "tree"] = "table",
    settings: Iterable[str] = (),
    curve: Sequence[int] = (),
    replace: bool = False,
    stage: Stage = silent,
) -> Release | TreeRelease:
    """Make a release of a spec and publish it as a folder.

    Args:
        spec: A `Spec` or the path of a spec file.
        out: The folder to make.
        publish: `table`; or `tree`, a k-anonymous decision tree instead of a table. A spec file that names no algorithm
            is then taken to ask for one.
        settings: Settings such as `privacy.k=20` that stand above the file's.
        curve: Other k of which the report of a table is to say what they would be worth.
        replace: Whether a release that is already there may be replaced.
        stage: Told each stage as it begins.

    Returns:
        The release, or the tree and its audit.
    """
    if publish not in ("table", "tree"):
        raise RequestError(f"publish = '{publish}' is not known; {did_you_mean(str(publish), ('table', 'tree'))}")
    if publish == "tree" and curve:
        raise RequestError("curve is for the report of a table; leave it out, or publish the table.")
    if not isinstance(spec, Spec):
        spec = (read_spec if publish == "table" else read_tree_spec)(spec, settings)
    folder = Path(out)
    check_free(folder.absolute(), replace=replace)
    if publish == "tree":
        refuse_open(spec)
        if spec.output.to is not None:
            raise RequestError("output.to is for a released table, and a tree is none; leave it out.")
        tree = make_tree_of(spec, stage=stage)
        return TreeRelease(tree.tree, publish_tree(tree, folder, replace=replace, stage=stage), folder)
    ks = read_ks(curve) if curve else ()
    target = DatabaseTable.of_spec(spec, replace=replace)
    draft = make(spec, stage=stage, stopping=stoppable)
    with _used(draft):
        report = publish_draft(draft, folder, replace=replace, ks=ks, stage=stage)
        deliver(draft, target, replace=replace, published=folder, stage=stage)
        return Release(_data(draft, spec.data.source), draft.recoding, report, draft, _curve=ks, _target=target)


def run_tree(
    spec: Spec | str | Path,
    out: str | Path,
    *,
    settings: Iterable[str] = (),
    replace: bool = False,
    stage: Stage = silent,
) -> TreeRelease:
    """Grow the k-anonymous decision tree of a spec and publish it as a folder: `run(…, publish="tree")`."""
    return run(spec, out, publish="tree", settings=settings, replace=replace, stage=stage)


def load(path: str | Path) -> Release | TreeRelease:
    """Read a release folder, of a table or of a tree; one that is cut short or changed is refused.

    Args:
        path: The folder, or the model.json of a tree by itself.

    Returns:
        The release, with its data as a polars frame; or the tree, which predicts, with its audit.
    """
    place = Path(path)
    if not place.is_dir() or not (place / MODEL).is_file():
        return load_table(place) if place.name != MODEL else TreeRelease(load_tree(place), {}, place)
    tree, audit = load_tree_folder(place)
    return TreeRelease(tree, audit or {}, place)


def load_table(path: str | Path) -> Release:
    """Read the release folder of a table; that of a tree is refused."""
    loaded = load_folder(Path(path))
    spec = spec_of_manifest(loaded.manifest["spec"], loaded.recoding)
    rows = RowCounts(len(loaded.table), 0, 0)
    draft = Draft(spec, schema_of(spec, list(spec.columns)), loaded.table, loaded.recoding, rows)
    return Release(loaded.table, loaded.recoding, loaded.report, draft, Path(path).absolute())


def load_tree(path: str | Path) -> ReleasedTree:
    """Read a published tree, of its folder or of its model.json by itself; what is cut short or changed is refused."""
    return load_tree_folder(Path(path))[0]
