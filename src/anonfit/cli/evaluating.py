# SPDX-License-Identifier: Apache-2.0
"""`anonfit evaluate` and `anonfit compare`: what releases are worth, on the screen, as a page, or as JSON."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from anonfit.cli.options import Json, Replace, Settings, names_of, whole_numbers
from anonfit.cli.showing import console, is_log, is_quiet, print_json, results, say, stages, table
from anonfit.errors import RequestError, counted

if TYPE_CHECKING:
    from anonfit.evaluation.comparing import Comparison
    from anonfit.evaluation.jobs import Progress
    from anonfit.evaluation.result import Evaluation
    from anonfit.metrics.registry import Metric


@contextmanager
def _bar(*, as_json: bool) -> Iterator[Progress]:
    """A bar on a terminal, a line for every tenth elsewhere, nothing with JSON or where quiet is asked for; in a log,
    what is done is a stage.
    """
    screen = console()
    if is_log():
        with stages(as_json=as_json) as stage:
            yield lambda done, all_, name: stage(f"{done} of {all_} done{f' ({name})' if name else ''}")
    elif as_json or is_quiet():
        yield lambda _done, _all, _name: None
    elif screen.is_terminal:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
        with Progress(*columns, console=screen, transient=True) as bar:
            task = bar.add_task("", total=None)
            yield lambda done, all_, name: bar.update(task, completed=done, total=all_, description=name)
    else:
        shown: set[int] = set()

        def line(done: int, all_: int, name: str) -> None:
            part = 10 * done // max(all_, 1)
            if part not in shown:
                shown.add(part)
                screen.print(f"{done} of {all_} done{f' ({name})' if name else ''} …")

        yield line


def evaluate(
    spec: Annotated[Path, Argument(help="The spec; its targets are what is predicted.")],
    k: Annotated[str | None, Option(help="The demands: 5,10,50. The spec's if not given.")] = None,
    methods: Annotated[
        str | None,
        Option(
            help="What is compared: spec, median, infogain, infogain-subset-denoised, lsd, selection, tdr, tree, and "
            "the baselines original and removed; with the extra toolkit: toolkit-forest, toolkit-boosting "
            "(ai-privacy-toolkit by its guides). spec,median,original,removed if not given."
        ),
    ] = None,
    learners: Annotated[
        str | None,
        Option(
            help="tree, naive-bayes, random-forest, linear-svm, logistic-regression, gradient-boosting; "
            "linear-regression, tree-regression, forest-regression, boosting-regression; id3; with the extra weka: "
            "j48, weka-naive-bayes, weka-random-forest, smo, weka-linear-regression, m5p. Those of scikit-learn if "
            "not given."
        ),
    ] = None,
    folds: Annotated[int, Option(help="Parts of the rows that are tested on in turn.", min=2)] = 10,
    protocol: Annotated[
        str,
        Option(
            help="holdout (test rows are recoded by what was learned from the others), raw-test (they stay raw), or "
            "combined (all are recoded together: leaks test labels, for repeating a paper only)."
        ),
    ] = "holdout",
    target: Annotated[str | None, Option(help="Predict this column only.")] = None,
    using: Annotated[str | None, Option(help="Learn from these columns only: a,b,c.")] = None,
    where: Annotated[str | None, Option(help="Models for these rows only, such as 'age >= 50'.")] = None,
    encoding: Annotated[
        str, Option(help="How regions become numbers: ends, expected, both, smooth, or what is suited to each learner.")
    ] = "suited",
    seed: Annotated[int, Option(help="Another seed, other folds.", min=0)] = 0,
    workers: Annotated[int | None, Option(help="Processes; one for each core if not given.", min=1)] = None,
    out: Annotated[
        Path | None, Option(help="Folder for the results; the same command goes on with what is in it.")
    ] = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Measure how useful releases are for the models they are for.

    Models are taught with released rows and tested on other rows, for every method, k and learner.
    """
    from anonfit.spec.parse import read_spec

    given: dict[str, Any] = {
        "methods": names_of(methods),
        "ks": whole_numbers("k", k),
        "learners": names_of(learners),
        "workers": workers,
    }
    asked = read_spec(spec, settings or ())
    models: list[dict[str, Any]] = []
    if target or names_of(using) or where:
        if not (targets := [target] if target else [each.column for each in asked.targets]):
            raise RequestError("the spec has no target, so there is nothing to predict: name one by --target.")
        models = [{"target": name, "using": names_of(using) or None, "where": where} for name in targets]
    try:
        with _bar(as_json=as_json) as progress:
            from anonfit.evaluation import grid

            evaluation = grid.evaluate(
                asked,
                models=models,
                folds=folds,
                protocol=protocol,
                encoding=encoding,
                seed=seed,
                store=out,
                progress=progress,
                **{name: value for name, value in given.items() if value},
            )
    except KeyboardInterrupt:
        kept = f"what was found is kept in {out}; the same command goes on from there." if out else "nothing was kept."
        console().print(f"interrupted; {kept}", soft_wrap=True)
        raise SystemExit(130) from None  # the message is out already
    if out is not None:
        evaluation.save(out)
    if as_json:
        print_json(_as_json(evaluation, out))
    else:
        _show(evaluation, out)


def _as_json(evaluation: Evaluation, out: Path | None) -> dict[str, Any]:
    return {
        "protocol": evaluation.protocol,
        "folds": evaluation.folds,
        "regions": evaluation.regions,
        "summary": _plain(evaluation.summary().to_dicts()),
        "leads": _plain(evaluation.leads().to_dicts()),
        "figures": _plain(_figures(evaluation)),
        "disagreements": _plain(evaluation.disagreements().to_dicts()),
        "unmet": [asdict(cell) for cell in evaluation.unmet],
        "folder": None if out is None else str(out),
    }


def _plain(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows without numbers that JSON does not have."""

    def plain(value: Any) -> Any:
        return None if isinstance(value, float) and not math.isfinite(value) else value

    return [{name: plain(value) for name, value in row.items()} for row in rows]


def _figures(evaluation: Evaluation) -> list[dict[str, Any]]:
    """The mean of each figure over folds."""
    import polars as pl

    groups = evaluation.figures.group_by("method", "k", "figure", "target", maintain_order=True)
    return groups.agg(pl.col("value").mean()).to_dicts()


def _show(evaluation: Evaluation, out: Path | None) -> None:
    import polars as pl

    from anonfit.evaluation.result import MEASURES
    from anonfit.metrics.registry import metrics_of

    screen = results()
    summary = evaluation.summary()
    for model in summary["model"].unique(maintain_order=True).to_list():
        for (measure,), of_measure in summary.filter(pl.col("model") == model).group_by("measure", maintain_order=True):
            say((f"{model}: {MEASURES[str(measure)]}", "bold"))
            screen.print(_table(of_measure.to_dicts()))
            screen.print()
    leads = evaluation.leads()
    for (model, measure), led in leads.group_by("model", "measure", maintain_order=True) if len(leads) else ():
        say((f"{model}: lead over ai-privacy-toolkit, {MEASURES[str(measure)].split(',')[0]}", "bold"))
        screen.print(_leads_table(led.to_dicts()))
        screen.print()
    figures = _figures(evaluation)
    answers = metrics_of("evaluate", "selections", "queries")
    names = {metric.name for metric in answers}
    if asked := [row for row in figures if row["figure"] in names]:
        say(("Selections and queries, answered from the release", "bold"))
        screen.print(_figures_table(asked, answers))
        screen.print()
    # Where releases are judged by models, the losses of columns are shown beside clusters only.
    if not len(evaluation.frame) or any(row["figure"] == "cluster_agreement" for row in figures):
        losses = [metric for metric in metrics_of("evaluate", "regions", "clusters") if metric.words]
        say(("Columns and clusters; less is better, but for agreement", "bold"))
        screen.print(_figures_table(figures, losses))
        screen.print()
    _show_notes(evaluation, out)


def _show_notes(evaluation: Evaluation, out: Path | None) -> None:
    """What must be known of the tables, and where there is more."""
    from anonfit.evaluation.result import BOXES

    say(
        f"Mean of {evaluation.folds} folds ± deviation; differences marked * are beyond chance (paired t-test, "
        "corrected for folds that share rows, 5 %). AUC and Brier scores are in the files of --out."
    )
    if evaluation.regions == "observed":
        say(BOXES)
    if "id3" in evaluation.frame["learner"] and "original" in evaluation.methods:
        say(
            "id3 takes every number for a name of its own, so it learns little from raw ones: where a table has such, "
            "its differences to original say little. j48 divides numbers."
        )
    if evaluation.protocol == "combined":
        words = "The protocol 'combined' lets class-guided methods see test labels: do not quote it as utility."
        say((words, "yellow"))
    if rows := evaluation.disagreements().to_dicts():
        cases = dict.fromkeys(f"{row['method']}, k = {row['k']}: {row['column']}" for row in rows)
        say(
            "Certainty penalty and weighted discernibility disagree whether a column lost less than in median in "
            f"{counted(len(cases), 'case')}: {'; '.join(list(cases)[:8])}{'; …' if len(cases) > 8 else ''}."
        )
    for why in dict.fromkeys(cell.why for cell in evaluation.unmet):
        cells = []
        for (method, k), folds in Counter(
            (cell.method, cell.k) for cell in evaluation.unmet if cell.why == why
        ).items():
            at = "" if k is None else f", k = {k}"
            cells.append(f"{method}{at}{'' if folds == evaluation.folds else f', {folds} of {evaluation.folds} folds'}")
        say((f"not measured ({'; '.join(cells)}): {why}", "yellow"))
    if out is not None:
        say(f"read next: {out / 'evaluation.html'}")
        say(f"all measures: {out / 'results.csv'}, {out / 'summary.csv'}, {out / 'figures.csv'}")


def _leads_table(rows: Sequence[Mapping[str, Any]]) -> Any:
    """A line for each method and k, under the name of the learner: how far it is ahead of the better guide, the
    standard error over folds, the corrected chance, and the groups of both.
    """
    from anonfit.evaluation.result import number, scale_of

    head = ["", "k", "lead", "error", "p", "groups", "its groups", "guide"]
    lines: list[list[Any]] = []
    for learner in dict.fromkeys(row["learner"] for row in rows):
        lines.append([learner, *[""] * (len(head) - 1)])
        for row in rows:
            if row["learner"] == learner:
                scale = scale_of(row["measure"])
                told = f"{scale * row['lead']:+,.2f}", f"± {number(row['error'], scale)}", f"{row['adjusted_p']:.3f}"
                groups = f"{row['groups']:,.0f}", f"{row['guide_groups']:,.0f}"
                lines.append([f"  {row['method']}", row["k"], *told, *groups, row["guide"].removeprefix("toolkit-")])
    return table(head, lines, numbers=range(1, len(head) - 1))


def _figures_table(rows: Sequence[Mapping[str, Any]], metrics: Sequence[Metric]) -> Any:
    """A line for each method and k, a column for each metric that was measured."""
    cells = {(row["method"], row["k"], row["figure"]): row["value"] for row in rows}
    measured = {figure for _, _, figure in cells}
    shown = [metric for metric in metrics if metric.name in measured]
    lines = [
        [method, k, *(_figure(metric.name, cells.get((method, k, metric.name))) for metric in shown)]
        for method, k in dict.fromkeys((method, k) for method, k, _ in cells)
    ]
    return table(["", "k", *(metric.words for metric in shown)], lines, numbers=range(1, len(shown) + 2))


def _figure(name: str, value: float | None) -> str:
    if value is None:
        return ""
    if name == "weighted_discernibility":
        return f"{value:,.0f}"
    if name.endswith("imprecision"):
        return f"{value:,.1f}"
    return f"{100 * value:.1f} %" if name.startswith("query_") else f"{value:.3f}"


def _table(rows: Sequence[Mapping[str, Any]]) -> Any:
    """A line for each method and k, under the name of the learner."""
    compared = [name for name in ("original", "removed", "median") if f"less_{name}" in rows[0]]
    head = ["", "k", "test", "", "training", *(f"to {name}" for name in compared)]
    lines: list[list[Any]] = []
    for learner in dict.fromkeys(row["learner"] for row in rows):
        lines.append([learner, *[""] * (len(head) - 1)])
        lines += [_line(row, compared) for row in rows if row["learner"] == learner]
    shown = table(head, lines, numbers=range(1, len(head)))
    shown.columns[0].no_wrap = True
    shown.columns[0].min_width = max(len(str(line[0])) for line in lines)
    return shown


def _line(row: Mapping[str, Any], compared: Sequence[str]) -> list[Any]:
    from anonfit.evaluation.result import difference, number, scale_of

    scale = scale_of(row["measure"])
    return [
        f"  {row['method']}",
        "" if row["k"] is None else row["k"],
        number(row["test"], scale),
        f"± {number(row['deviation'], scale)}",
        number(row["train"], scale),
        *(difference(row, name, scale) for name in compared),
    ]


def compare(
    releases: Annotated[list[Path], Argument(help="Two release folders or more.")],
    source: Annotated[
        Path | None,
        Option(help="The raw table they were made from: every two are audited together, as audit --with."),
    ] = None,
    out: Annotated[Path | None, Option(help="A page to write, such as compare.html.")] = None,
    replace: Replace = False,
    as_json: Json = False,
) -> None:
    """Put releases side by side: demands, risk, utility."""
    from anonfit.evaluation import comparing
    from anonfit.report.page import check_page

    if out is not None:
        check_page(out, replace=replace)
    if source is not None and not source.exists() and not any(sign in str(source) for sign in "*?["):
        raise RequestError(f"{source}: there is no such file to audit the releases with.")
    with stages(as_json=as_json) as stage:
        comparison = comparing.compare(*releases, source=source, stage=stage)
    if out is not None:
        comparison.save(out, replace=replace)
    if as_json:
        print_json(comparison.to_dict() | ({"page": str(out)} if out is not None else {}))
    else:
        _show_comparison(comparison)
        if out is not None:
            say(f"\nread next: {out}")


def _show_comparison(comparison: Comparison) -> None:
    from anonfit.evaluation.comparing_page import PAIR_HEAD, pair_line, sections

    for text in comparison.differences:
        say((text, "yellow"))
    names = [str(release["name"]) for release in comparison.releases]
    tables = [(section.title, names, section.lines) for section in sections(comparison.to_dict())]
    if comparison.pairs:
        tables.append(("Two releases together", list(PAIR_HEAD), tuple(map(pair_line, comparison.pairs))))
    for title, head, lines in tables:
        say((f"\n{title}", "bold"))
        rows = [(label, *texts) for label, texts in lines]
        results().print(table(("", *head), rows, numbers=range(1, len(head) + 1)))
    for pair in comparison.pairs:
        for fault in pair["faults"]:
            say((f"{' with '.join(pair['releases'])}: {fault}", "red"))
