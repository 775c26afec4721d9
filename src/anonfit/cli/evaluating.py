# SPDX-License-Identifier: Apache-2.0
"""`anonfit evaluate` and `anonfit compare`: what releases are worth, on the screen, as a page, or as JSON."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anonfit.cli.showing import console, print_json, results, stages, table
from anonfit.errors import RequestError

if TYPE_CHECKING:
    from anonfit.evaluation.comparing import Comparison
    from anonfit.evaluation.jobs import Progress
    from anonfit.evaluation.result import Evaluation
    from anonfit.metrics.registry import Metric
    from anonfit.spec.model import Spec


def _disagreements(evaluation: Evaluation) -> str | None:
    """Where the two measures of columns disagree about a method and the blind one, in words; None if nowhere."""
    rows = evaluation.disagreements().to_dicts()
    if not rows:
        return None
    cases = dict.fromkeys(f"{row['method']}, k = {row['k']}: {row['column']}" for row in rows)
    shown = "; ".join(list(cases)[:8]) + ("; …" if len(cases) > 8 else "")
    return (
        f"Certainty penalty and weighted discernibility disagree whether a column lost less than in median in "
        f"{len(cases)} case(s): {shown}."
    )


@contextmanager
def _bar(*, as_json: bool) -> Iterator[Progress]:
    """A bar on a terminal, a line for every tenth elsewhere, nothing with JSON."""
    screen = console()
    if as_json:
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


def evaluate_spec(
    path: Path,
    *,
    settings: Sequence[str],
    model: Mapping[str, Any],
    out: Path | None,
    options: Mapping[str, Any],
    as_json: bool,
) -> None:
    """Evaluate the releases of a spec."""
    from anonfit.spec.parse import read_spec

    spec = read_spec(path, settings)
    try:
        with _bar(as_json=as_json) as progress:
            from anonfit.evaluation.grid import evaluate

            evaluation = evaluate(spec, models=_models(spec, model), store=out, progress=progress, **options)
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


def _models(spec: Spec, given: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The models that the words describe: of the target that is named, or of each."""
    if not any(given.values()):
        return []
    targets = [given["target"]] if given["target"] else [target.column for target in spec.targets]
    if not targets:
        raise RequestError("the spec has no target, so there is nothing to predict: name one by --target.")
    return [{"target": name, "using": given["using"] or None, "where": given["where"]} for name in targets]


def _as_json(evaluation: Evaluation, out: Path | None) -> dict[str, Any]:
    return {
        "protocol": evaluation.protocol,
        "folds": evaluation.folds,
        "summary": [_plain(row) for row in evaluation.summary().to_dicts()],
        "figures": [_plain(row) for row in _figures(evaluation)],
        "disagreements": [_plain(row) for row in evaluation.disagreements().to_dicts()],
        "unmet": [
            {"method": cell.method, "k": cell.k, "fold": cell.fold, "why": cell.why} for cell in evaluation.unmet
        ],
        "folder": None if out is None else str(out),
    }


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row without numbers that JSON does not have."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in row.items()
    }


def _figures(evaluation: Evaluation) -> list[dict[str, Any]]:
    """The mean of each figure over folds."""
    import polars as pl

    keys = ["method", "k", "figure", "target"]
    means: list[dict[str, Any]] = (
        evaluation.figures.group_by(keys, maintain_order=True).agg(pl.col("value").mean()).to_dicts()
    )
    return means


def _show(evaluation: Evaluation, out: Path | None) -> None:
    from rich.text import Text

    from anonfit.evaluation.evaluating_page import MEASURES
    from anonfit.metrics.registry import metrics_of

    screen = results()
    summary = evaluation.summary()
    for model in summary["model"].unique(maintain_order=True).to_list():
        rows = [row for row in summary.to_dicts() if row["model"] == model]
        for measure in dict.fromkeys(row["measure"] for row in rows):
            screen.print(Text(f"{model}: {MEASURES[measure]}", style="bold"), soft_wrap=True)
            screen.print(_table([row for row in rows if row["measure"] == measure]))
            screen.print()
    figures = _figures(evaluation)
    answers = metrics_of("evaluate", "selections", "queries")
    names = {metric.name for metric in answers}
    if asked := [row for row in figures if row["figure"] in names]:
        screen.print(Text("Selections and queries, answered from the release", style="bold"))
        screen.print(_figures_table(asked, answers))
        screen.print()
    # Where releases are judged by models, the losses of columns are shown beside clusters only.
    if not len(evaluation.frame) or any(row["figure"] == "cluster_agreement" for row in figures):
        losses = [metric for metric in metrics_of("evaluate", "regions", "clusters") if metric.words]
        screen.print(Text("Columns and clusters; less is better, but for agreement", style="bold"))
        screen.print(_figures_table(figures, losses))
        screen.print()
    screen.print(
        f"Mean of {evaluation.folds} folds ± deviation; differences marked * are beyond chance (paired t-test, "
        "corrected for folds that share rows, 5 %).",
        soft_wrap=True,
    )
    if evaluation.protocol == "combined":
        screen.print(
            Text(
                "The protocol 'combined' lets class-guided methods see test labels: do not quote it as utility.",
                style="yellow",
            )
        )
    if line := _disagreements(evaluation):
        screen.print(Text(line), soft_wrap=True)
    for why in dict.fromkeys(cell.why for cell in evaluation.unmet):
        folds = Counter((cell.method, cell.k) for cell in evaluation.unmet if cell.why == why)
        cells = (_cell(*cell, number, evaluation.folds) for cell, number in folds.items())
        screen.print(Text(f"not measured ({'; '.join(cells)}): {why}", style="yellow"), soft_wrap=True)
    if out is not None:
        screen.print(Text(f"read next: {out / 'evaluation.html'}"), soft_wrap=True)
        screen.print(
            Text(f"all measures: {out / 'results.csv'}, {out / 'summary.csv'}, {out / 'figures.csv'}"), soft_wrap=True
        )


def _cell(method: str, k: int | None, number: int, folds: int) -> str:
    """A method and k, and in how many folds, if not in all."""
    at = "" if k is None else f", k = {k}"
    return f"{method}{at}{'' if number == folds else f', {number} of {folds} folds'}"


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
    from anonfit.evaluation.evaluating_page import difference, number

    scale = 100.0 if row["measure"] == "accuracy" else 1.0
    return [
        f"  {row['method']}",
        "" if row["k"] is None else row["k"],
        number(row["test"], scale),
        f"± {number(row['deviation'], scale)}",
        number(row["train"], scale),
        *(difference(row, name, scale) for name in compared),
    ]


def compare_releases(
    releases: Sequence[Path], *, source: Path | None, out: Path | None, replace: bool, as_json: bool
) -> None:
    """Compare release folders."""
    from anonfit.evaluation.comparing import compare
    from anonfit.report.page import check_page

    if out is not None:
        check_page(out, replace=replace)
    if source is not None and not source.exists() and not any(sign in str(source) for sign in "*?["):
        raise RequestError(f"{source}: there is no such file to audit the releases with.")
    with stages(as_json=as_json) as stage:
        comparison = compare(*releases, source=source, stage=stage)
    if out is not None:
        comparison.save(out, replace=replace)
    if as_json:
        print_json(comparison.to_dict() | ({"page": str(out)} if out is not None else {}))
        return
    _show_comparison(comparison, out)


def _show_comparison(comparison: Comparison, out: Path | None) -> None:
    from rich.text import Text

    from anonfit.evaluation.comparing_page import PAIR_HEAD, pair_line, sections

    screen = results()
    for text in comparison.differences:
        screen.print(Text(text, style="yellow"), soft_wrap=True)
    names = [str(release["name"]) for release in comparison.releases]
    for section in sections(comparison.to_dict()):
        screen.print(Text(f"\n{section.title}", style="bold"))
        rows = [(label, *texts) for label, texts in section.lines]
        screen.print(table(("", *names), rows, numbers=range(1, len(names) + 1)))
    if comparison.pairs:
        screen.print(Text("\nTwo releases together", style="bold"))
        lines = [pair_line(pair) for pair in comparison.pairs]
        rows = [(label, *texts) for label, texts in lines]
        screen.print(table(("", *PAIR_HEAD), rows, numbers=range(1, 1 + len(PAIR_HEAD))))
        for pair in comparison.pairs:
            for fault in pair["faults"]:
                screen.print(Text(f"{' with '.join(pair['releases'])}: {fault}", style="red"), soft_wrap=True)
    if out is not None:
        screen.print(Text(f"\nread next: {out}"), soft_wrap=True)
