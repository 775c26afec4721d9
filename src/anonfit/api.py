# SPDX-License-Identifier: Apache-2.0
"""The public functions. Every door (library, command line, page, estimators) builds a Spec and calls these."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from dataclasses import replace as replace_part
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anonfit.errors import RequestError, did_you_mean
from anonfit.metrics.comparison import read_ks
from anonfit.recoding.recoding import Recoding, Unseen
from anonfit.release.folder import check_free, copy_release
from anonfit.release.large_tables import released_table
from anonfit.release.loading import load_folder
from anonfit.release.publish import audit_made, public_report, publish_made, require_passed
from anonfit.release.result import Lazy
from anonfit.release.retelling import spec_of_manifest
from anonfit.release.run import Made, RowCounts, demands_of, extend, make, schema_of
from anonfit.runtime.progress import Stage, silent, stoppable
from anonfit.spec.faults import FRACTION
from anonfit.spec.keywords import refuse_keywords, spec_of_keywords
from anonfit.spec.model import SelectionSpec, Spec, TargetSpec
from anonfit.spec.parse import read_spec
from anonfit.tables.formats import FORMATS
from anonfit.tables.frames import like

if TYPE_CHECKING:
    import polars as pl

    from anonfit.tables.taxonomy import Taxonomy

__all__ = ["Release", "anonymize", "load", "run"]

ROWS_AT_ONCE = 1 << 17
"""Rows that are written to a database at once."""


@dataclass(frozen=True, slots=True)
class Release:
    """An anonymous table with the recoding that made it and the evidence for it.

    `data` is a frame of the kind that came in (polars for files), with a fresh index.
    """

    data: Any
    recoding: Recoding
    _report: Mapping[str, Any] | Lazy[Mapping[str, Any]]
    _made: Made
    _folder: Path | None = None
    _curve: Sequence[int] = ()

    @property
    def report(self) -> Mapping[str, Any]:
        """The public report, as it is saved with the release; measured when it is first asked for."""
        return self._report.get() if isinstance(self._report, Lazy) else self._report

    @property
    def refinements(self) -> Mapping[str, Any] | None:
        """How top-down refinement came to the recoding: for the owner of the data, never saved with the release. None
        for other releases, and for one that was loaded.
        """
        return self._made.refinements

    def __repr__(self) -> str:
        """What it is, without a row of it: a notebook or a log may show it."""
        rows, names = self._made.released, list(self.recoding.quasi_identifiers)
        if several := demands_of(self._made.spec).quasi_identifiers:
            told = "; ".join(f"k={one.k} of {', '.join(one.columns)}" for one in several)
            return f"Release({told}; rows={rows})"
        return f"Release(k={self._made.spec.privacy.k}, rows={rows}, quasi_identifiers={names})"

    def save(self, path: str | Path, *, format: str | None = None, replace: bool = False) -> Path:  # noqa: A002 - the contract's word
        """Write the release folder; the written file is audited before the folder gets its name.

        Args:
            path: The folder to make.
            format: `parquet`, `csv` or `arrow`; as in the spec if not given.
            replace: Whether a release that is already there may be replaced.

        Returns:
            The folder.
        """
        if format is not None and format not in FORMATS:
            raise RequestError(f"format = '{format}' is not known; valid: {', '.join(FORMATS)}.")
        if self._folder is not None:
            # What was loaded is passed on as it is, with its own evidence.
            if format not in (None, self._made.spec.output.format):
                raise RequestError("a loaded release keeps its format; make the release again in another one.")
            copy_release(self._folder, Path(path), replace=replace)
            return Path(path)
        publish_made(self._made, Path(path), kind=format, replace=replace, ks=self._curve)
        return Path(path)

    def to_table(self, address: str, table: str, *, replace: bool = False) -> None:
        """Write the released table to a database, in one transaction.

        Args:
            address: Such as `sqlite:release.db`, `duckdb:release.duckdb` or `postgresql://user@host/name`.
            table: The table to make.
            replace: Whether one that is already there may be replaced.
        """
        from anonfit.tables.databases import write_to_database

        write_to_database(address, table, _frames(self._made), self._made.dtypes, replace=replace)

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
            replace: Whether a release that is already there may be replaced.
            stage: Told each stage as it begins.

        Returns:
            The release of the new data.
        """
        made = self._extended(data, unseen, stage, recoding=recoding, limit=suppression_limit)
        with _used(made):
            report = publish_made(made, Path(out), replace=replace, stage=stage)
            return Release(like(data, made.table, index=False), made.recoding, report, made)

    def _extended(
        self, data: Any, unseen: str, stage: Stage = silent, *, recoding: Recoding | None, limit: float | None
    ) -> Made:
        if unseen not in ("suppress", "error"):
            raise RequestError(f"unseen = '{unseen}' is not known here; {did_you_mean(unseen, ('suppress', 'error'))}")
        taken = recoding or self.recoding
        if taken.quasi_identifiers != self.recoding.quasi_identifiers:
            raise RequestError("the recoding given is one of other quasi-identifiers than the release has.")
        steered = self._made.steered
        if self._folder is not None:
            targets = self.report["asked"].get("targets", ())
            steered = {target["column"]: target["kind"] == "number" for target in targets if target["used"]}
        elif steered is None:  # refining and trees know classes only
            steered = {target.column: False for target in self._made.spec.targets}
        spec = self._made.spec if limit is None else _limited(self._made.spec, limit)
        return extend(spec, taken, data, unseen=Unseen(unseen), steered=steered, stage=stage)


def _limited(spec: Spec, limit: float) -> Spec:
    """A spec with another limit on the rows that may be withheld."""
    if not FRACTION.have(limit):
        raise RequestError(f"suppression_limit must be {FRACTION.says} (0.05 is 5 %); found {limit!r}.")
    return replace_part(spec, privacy=replace_part(spec.privacy, suppression_limit=float(limit)))


def _released(made: Made, source: Any) -> Release:
    """A release whose table has been audited as it stands in memory."""
    with _used(made):
        audit = audit_made(made, released_table(made))
        require_passed(audit)
        report: Lazy[Mapping[str, Any]] = Lazy(lambda: public_report(made, audit))
        # Rows that are not held here may be others tomorrow, and what is limited in the report is measured for it.
        if made.scan is not None or made.spec.privacy.attack_limit < 1:
            report.get()
        return Release(_data(made, source), made.recoding, report, made)


@contextmanager
def _used(made: Made) -> Iterator[None]:
    """Remove what is stored of a table after a failure: the error, which a notebook keeps, would keep it."""
    try:
        yield
    except BaseException:
        made.discard()
        raise


def _frames(made: Made) -> Iterator[pl.DataFrame]:
    """The released table, some rows at a time."""
    if made.stored is None or not made.is_large:
        return made.table.iter_slices(ROWS_AT_ONCE)
    return made.stored.scan().collect_batches(chunk_size=ROWS_AT_ONCE, maintain_order=True)


def _data(made: Made, source: Any) -> Any:
    """The released table as a frame of the kind that came in; a large one as a lazy frame of its file."""
    return released_table(made) if made.is_large else like(source, made.table, index=False)


def anonymize(
    data: Any,
    *,
    quasi_identifiers: Sequence[str] = (),
    k: int | None = None,
    targets: Sequence[str | Mapping[str, Any] | TargetSpec] = (),
    sensitive: Mapping[str, Mapping[str, Any] | Sequence[Mapping[str, Any]]] | None = None,
    identifiers: Sequence[str] = (),
    insensitive: Sequence[str] = (),
    entity: str | None = None,
    count: str | None = None,
    sample_weight: str | None = None,
    default_role: str | None = None,
    taxonomies: Mapping[str, Taxonomy | str | Path | Mapping[str, Any]] | None = None,
    types: Mapping[str, str] | None = None,
    orders: Mapping[str, Sequence[str]] | None = None,
    domains: Mapping[str, Sequence[Any]] | None = None,
    splits: Mapping[str, str] | None = None,
    date_formats: Mapping[str, str] | None = None,
    release: Sequence[str] = (),
    suppression_limit: float = 0.0,
    max_confidence: float = 1.0,
    attack_limit: float = 1.0,
    selections: Sequence[str | Mapping[str, Any] | SelectionSpec] = (),
    weights: Mapping[str, float] | None = None,
    weights_from: str | None = None,
    features: Sequence[str] = (),
    selected_by: Sequence[str] = (),
    clusters: int = 5,
    query_log: str | Path | Sequence[str | Path] | Mapping[str, Any] | None = None,
    rules: bool = False,
    denoise: bool = False,
    algorithm: str = "mondrian",
    requirements: Sequence[Sequence[str] | Mapping[str, Any]] | None = None,
    criterion: str = "auto",
    candidates: str = "boundary",
    split_on: Sequence[str] = (),
    weight_rule: str | None = None,
    alpha: float = 0.5,
    beta: float = 0.25,
    gamma: float = 0.25,
    min_gain: float = 0.0,
    cut_points: str = "simplest",
    average: str = "containing",
    suppression: str = "all",
    zero_gain: bool = False,
    time_budget: float | None = None,
    variant: str = "c45",
    pruning: float | None = None,
    max_spans: int = 1_000_000,
    start: Recoding | str | Path | None = None,
    seed: int = 0,
    table: str | None = None,
    query: str | None = None,
    missing: Sequence[str] = ("",),
    missing_policy: str = "category",
    values: str = "labels",
    order: str = "sorted",
    regions: str = "domain",
    consent: bool = False,
    engine: str = "auto",
    memory: str | None = None,
    spill: str | None = None,
    sample: int | None = None,
    threads: int | None = None,
) -> Release:
    """Make an anonymous release of a table about people.

    Args:
        data: A path, a polars, pandas or Arrow frame, the address of a database (`sqlite:people.db`,
            `duckdb:people.duckdb`, `postgresql://user@host/name`), or a whole `Spec` (then nothing else is given).
        quasi_identifiers: Columns that someone could know of a person; they are generalized.
        k: How many persons must share every released combination of them.
        targets: Columns the recipient will predict: names, or tables such as `{"column": "cost", "weight": 0.5}`.
            They are released as they are, and a quasi-identifier among them generalized.
        sensitive: Columns nobody should learn of a person; released as they are. With the diversity that is asked:
            `{"diagnosis": {"model": "entropy-l", "l": 3}}`, or a list of such for a column; or with the reason why
            nothing is asked, which is published: `{"diagnosis": {"model": "none", "reason": "…"}}`.
        identifiers: Columns that are not released.
        insensitive: Other columns that are released as they are.
        entity: The column that says whose row it is, where persons have several rows; not released.
        count: The column that says how many persons a row stands for.
        sample_weight: The column of sample weights.
        default_role: `insensitive` gives that role to all columns that have none; otherwise each needs one.
        taxonomies: For nominal quasi-identifiers, and sensitive columns under t-closeness: a `Taxonomy`, a file or a
            nested tree.
        types: `continuous`, `ordinal`, `nominal` or `date`, where the data does not say.
        orders: The values of ordinal columns, lowest first.
        domains: `[lowest, highest]` of ordered columns, or the names of nominal ones.
        splits: `multiway`, `binary` or `subset` for nominal columns.
        date_formats: How dates that are texts are written.
        release: Raw columns that may be released although nearly all their values are distinct.
        suppression_limit: The share of the records that may be withheld, also by `extend`.
        max_confidence: The largest share that one class of a target may have in a group.
        attack_limit: The largest share of the persons of whose sensitive values a model learned from the release may
            be sure; more is not published.
        selections: Rows the recipient will ask for: predicates such as `"age >= 50"`, or tables such as
            `{"each": "country"}`.
        weights: How much quasi-identifiers matter.
        weights_from: `accuracy`: weights are found from how well each column alone predicts the targets.
        features: Columns that recipients will learn or cluster from; without weights they matter, others do not.
        selected_by: Columns that recipients will select rows by; likewise.
        clusters: How many clusters recipients will look for.
        query_log: Files of SQL statements that recipients ran: what they select and use is learned from them, and the
            report judges by them. Or a table such as `{"path": "queries.sql", "dialect": "postgres", "learn": False}`.
        rules: Whether the report has the association rules that the release shows.
        denoise: Whether splits are judged by a model's predictions of the targets instead of their raw values.
        algorithm: `mondrian`; `tdr` (top-down refinement: every column by itself, for the classes of one target); or
            `tree` (the table that a k-anonymous decision tree for one target stands for).
        requirements: For `tdr`, several quasi-identifiers: each a list of columns, or such as
            `{"columns": ["age", "sex"], "k": 20}`. All columns are one if not given.
        criterion: `auto` (follows the workload), `median`, `infogain`, `lsd`, `selection`, `weighted`, `clustering` or
            `explore` (the use is not known); of `tdr` `score` or `infogain`.
        candidates: `boundary` or `all`: where information gain looks for cuts.
        split_on: The quasi-identifiers that may be split; all if not given.
        weight_rule: `first`, `product`, `blend`, `naive`, `probabilistic` or `combined`: how weights enter the choice.
            If not given, `first`, and `product` for weights that a query log teaches.
        alpha: The share of the weight in a blend, or of the gain where all is combined.
        beta: Where all is combined, the share of weight times width.
        gamma: Where all is combined, the share of the rows that stay together, which is taken away.
        min_gain: A split that gains less is not made.
        cut_points: `simplest`, or `value` (needs `consent`).
        average: For `tdr`: anonymity loss is the mean over the quasi-identifiers `containing` a column, or over `all`.
        suppression: For `tdr`: `all` suppressed values may be disclosed, or of each column the one of `best_gain`.
        zero_gain: For `tdr`: whether refinements that tell nothing of the target are made, after all others.
        time_budget: For `tdr` and `explore`: the seconds after which it stops, with what was reached until then.
        variant: For `tree`: `c45` (gain ratio, cuts of numbers, pruning) or `id3` (gain, names only).
        pruning: For `tree`: the confidence of pruning, 0 for none; as the variant has it if not given.
        max_spans: For `tree`: the most spans that a tree may have.
        start: For `tdr`: the recoding that refining begins with (or its file), in place of one part a column.
        seed: For what is drawn at random.
        table: The table of a database, if `data` is the address of one.
        query: A query in its place.
        missing: Texts that mean a missing value.
        missing_policy: `category`, `drop` or `error`.
        values: `labels`, `bounds` or `representative`.
        order: `sorted`, or `original` (needs `consent`).
        regions: `domain`, or `observed` (needs `consent`).
        consent: Whether what `observed`, `original` and `value` give away is accepted.
        engine: `memory`, `duckdb` for tables that do not fit in memory, `spark`, or `auto`.
        memory: How much of it the engine may use, such as `2GB`.
        spill: The folder in which the engine puts what does not fit.
        sample: Of very large tables, grow the upper levels on about so many rows.
        threads: How many threads to use; all cores if not given.

    Returns:
        The release: `.data`, `.recoding`, `.report`, `.save(path)`.

    Example:
        >>> import anonfit as af
        >>> import polars as pl
        >>> people = pl.DataFrame({"age": [21, 22, 41, 42], "income": [1, 2, 3, 3]})
        >>> af.anonymize(people, quasi_identifiers=["age"], k=2, targets=["income"]).data["age"].to_list()
        ['< 30', '< 30', '≥ 30', '≥ 30']
    """
    words = locals()
    if isinstance(data, Spec):
        refuse_keywords(words, anonymize)
        spec = data
    else:
        if k is None:
            raise RequestError(
                "k is missing: how many persons must share every released combination? 10 is a common start."
            )
        if isinstance(data, str | Path):
            data = str(data)
        spec = spec_of_keywords(data, words)
    made = make(spec, threads=threads, stopping=stoppable)
    return _released(made, spec.data.source)


def run(
    spec: Spec | str | Path,
    out: str | Path,
    *,
    settings: Iterable[str] = (),
    curve: Sequence[int] = (),
    replace: bool = False,
    stage: Stage = silent,
) -> Release:
    """Make a release of a spec and publish it as a folder.

    Args:
        spec: A `Spec` or the path of a spec file.
        out: The folder to make.
        settings: Settings such as `privacy.k=20` that stand above the file's.
        curve: Other k of which the report is to say what they would be worth.
        replace: Whether a release that is already there may be replaced.
        stage: Told each stage as it begins.

    Returns:
        The release.
    """
    if not isinstance(spec, Spec):
        spec = read_spec(spec, settings)
    check_free(Path(out).absolute(), replace=replace)
    ks = read_ks(curve) if curve else ()
    made = make(spec, stage=stage, stopping=stoppable)
    with _used(made):
        report = publish_made(made, Path(out), replace=replace, ks=ks, stage=stage)
        return Release(_data(made, spec.data.source), made.recoding, report, made, _curve=ks)


def load(path: str | Path) -> Release:
    """Read a release folder; one that is cut short or changed is refused.

    Args:
        path: The folder.

    Returns:
        The release, with its data as a polars frame.
    """
    loaded = load_folder(Path(path))
    spec = spec_of_manifest(loaded.manifest["spec"], loaded.recoding)
    rows = RowCounts(len(loaded.table), 0, 0)
    made = Made(spec, schema_of(spec, list(spec.columns)), loaded.table, loaded.recoding, rows)
    return Release(loaded.table, loaded.recoding, loaded.report, made, Path(path).absolute())
