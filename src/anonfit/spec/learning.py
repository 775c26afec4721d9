# SPDX-License-Identifier: Apache-2.0
"""A spec with what its query log teaches: put in when a release is made, or written to a file that people can read and
edit, with the evidence for every line.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from anonfit.errors import RequestError, SpecError
from anonfit.spec.model import QueryLogSpec, SelectionSpec, Spec, WeightRule
from anonfit.spec.parse import parse_spec, spec_tables
from anonfit.spec.write import to_toml, toml_value
from anonfit.tables.schema import Column
from anonfit.tables.sources import is_database
from anonfit.workload.logs.learning import LearnedWorkload, LogRequest, columns_of, learn
from anonfit.workload.logs.merging import RawRows
from anonfit.workload.logs.tallies import Ask, Uses, read_log

RULE: WeightRule = "product"
"""How learned weights enter the choice of splits: what is used half as often gets half the care, not none."""
MOST_REASONS = 20
TABLE = re.compile(r"^\s*\[\[?\s*([^\]\s]+)\s*\]\]?\s*(#.*)?$")


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of a log and how many queries ask it."""

    ask: Ask
    times: int


def _request(log: QueryLogSpec, folder: Path | None) -> LogRequest:
    """A log of a spec, with paths that start at the spec's folder."""
    paths = tuple((folder or Path()) / path for path in log.path)
    return LogRequest(paths, log.dialect, log.table, log.selections, log.minterms)


def learn_from_log(spec: Spec, log: QueryLogSpec, columns: Sequence[Column], rows: RawRows) -> LearnedWorkload:
    """What a log, whose paths start at the spec's folder, teaches about the use of a table."""
    if not spec.method.capabilities.splits:
        raise RequestError(
            f"algorithm = '{spec.method.algorithm}' uses neither selections nor weights, so a log teaches it nothing."
        )
    is_capped = spec.privacy.max_confidence < 1
    return learn(_request(log, spec.folder), columns, rows, k=spec.privacy.k, is_capped=is_capped)


def with_learned(spec: Spec, log: QueryLogSpec, learned: LearnedWorkload) -> Spec:
    """The spec with what was learned beside what it says itself; a weight that it gives stays."""
    selections = tuple(
        SelectionSpec(where=selection.where, weight=selection.weight) for selection in learned.selections
    )
    weights = {weighted.column: weighted.weight for weighted in learned.weights} | dict(spec.workload.weights)
    objective = spec.method.objective
    is_free = spec.method.weight_rule is None and not (objective.is_blind or objective.uses_features)
    rule = RULE if is_free and learned.weights and not spec.workload.weights else spec.method.weight_rule
    return replace(
        spec,
        workload=replace(
            spec.workload,
            selections=(*spec.workload.selections, *selections),
            weights=weights,
            query_log=QueryLogSpec(log.path, log.dialect, log.table, learn=False),
        ),
        method=replace(spec.method, weight_rule=rule),
    )


def with_query_log(spec: Spec, columns: Sequence[Column], rows: RawRows) -> tuple[Spec, tuple[Asked, ...]]:
    """The spec with what its log, if it has one, teaches, and the log's questions, those of most queries first."""
    log = spec.workload.query_log
    if log is None:
        return spec, ()
    if log.learn:
        learned = learn_from_log(spec, log, columns, rows)
        tally, spec = learned.tally, with_learned(spec, log, learned)
    else:
        is_capped = spec.privacy.max_confidence < 1
        known = columns_of(columns, rows.without_rows(), table=log.table, is_capped=is_capped)
        request = _request(log, spec.folder)
        tally = read_log(request.paths, known, dialect=request.dialect)
    ranked = sorted(tally.asks.items(), key=lambda item: (-item[1], repr(item[0])))
    return spec, tuple(Asked(ask, times) for ask, times in ranked)


# --- written for people -----------------------------------------------------------------------------------------


def learned_text(spec: Spec, log: QueryLogSpec, learned: LearnedWorkload, *, original: str | None, folder: Path) -> str:
    """A copy of a spec for `folder`, from which its paths can be followed, with a workload that says what was learned
    and why. `original` is the text of the spec's file, kept but for the workload; None: it is written anew.
    """
    is_moved = (spec.folder or Path()).resolve() != folder.resolve()
    if is_moved and is_database(spec.data.source):
        raise RequestError("the address of a database is not copied; write the learned spec into the spec's folder.")
    wanted = _moved(with_learned(spec, log, learned), folder)
    section = "\n".join(_workload(spec, wanted, learned))
    nothing: dict[str, Any] = {"targets": None, "denoise": False, "selections": (), "weights": {}, "query_log": None}
    plain = replace(wanted, workload=replace(wanted.workload, **nothing))
    texts = [to_toml(plain).rstrip("\n") + "\n\n" + section]
    if original is not None and not is_moved:
        texts.insert(0, _without_workload(original, wanted) + section)
    return next((text for text in texts if _says(text, wanted)), to_toml(wanted))


def _says(text: str, wanted: Spec) -> bool:
    """Whether a text is a spec that says what is wanted."""
    try:
        return spec_tables(parse_spec(text)) == spec_tables(replace(wanted, folder=None))
    except SpecError:
        return False


def _moved(spec: Spec, folder: Path) -> Spec:
    """A spec whose relative paths start at another folder."""

    def path(given: Any) -> Any:
        is_path = isinstance(given, str | Path) and "://" not in str(given)
        if not is_path or Path(given).is_absolute() or (spec.folder or Path()).resolve() == folder.resolve():
            return given
        return os.path.relpath((spec.folder or Path()) / given, folder)

    log = spec.workload.query_log
    moved = None if log is None else replace(log, path=tuple(map(path, log.path)))
    return replace(
        spec,
        data=replace(spec.data, source=path(spec.data.source)),
        columns={name: replace(column, taxonomy=path(column.taxonomy)) for name, column in spec.columns.items()},
        workload=replace(spec.workload, query_log=moved),
        engine=replace(spec.engine, spill=path(spec.engine.spill)),
    )


def _without_workload(text: str, wanted: Spec) -> str:
    """The text of a spec without its workload, and with the rule by which learned weights are used."""
    lines, is_kept, below_method = [], True, None
    for line in text.splitlines():
        if heading := TABLE.match(line):
            is_kept = heading.group(1).split(".")[0].strip("\"'") != "workload"
        if is_kept:
            lines.append(line)
            if heading and heading.group(1) == "method" and below_method is None:
                below_method = len(lines)
    if wanted.method.weight_rule == RULE and not any(line.split("=")[0].strip() == "weight_rule" for line in lines):
        rule = f'weight_rule = "{RULE}"  # learned weights: what is used half as often gets half the care'
        if below_method is None:
            lines += ["", "[method]", rule]
        else:
            lines.insert(below_method, rule)
    return "\n".join(lines).rstrip("\n") + "\n\n"


def _workload(spec: Spec, wanted: Spec, learned: LearnedWorkload) -> Iterator[str]:
    """The lines of the workload."""
    tables: Mapping[str, Any] = spec_tables(wanted).get("workload", {})
    yield from (f"# {line}" for line in _summary(learned))
    yield "[workload]"
    for name, value in tables.items():
        if name not in ("selections", "weights", "query_log"):
            yield f"{name} = {toml_value(value)}"
    yield from _selections(spec, wanted, learned)
    if wanted.workload.weights:
        yield from ("", "[workload.weights]")
        yield "# The share of each quasi-identifier in all uses: a query counts once for what it selects by and once"
        yield "# for what it shows, groups by or joins by."
        uses = {weighted.column: weighted.uses for weighted in learned.weights}
        for name, weight in wanted.workload.weights.items():
            why = "as the spec said" if name in spec.workload.weights else _used(uses.get(name, Uses()))
            yield f"{toml_value({name: weight})[2:-2]}  # {why}"
    yield from ("", "[workload.query_log]")
    yield "# The release is judged by these queries. What they teach stands above, so it is not learned again."
    yield from (f"{name} = {toml_value(value)}" for name, value in tables["query_log"].items())
    yield ""


def _selections(spec: Spec, wanted: Spec, learned: LearnedWorkload) -> Iterator[str]:
    """The lines of the selections: first those of the spec, then those that were learned."""
    given = len(spec.workload.selections)
    for place, selection in enumerate(wanted.workload.selections):
        yield from ("", "[[workload.selections]]")
        if place < given:
            yield "# as the spec said"
        else:
            source = learned.selections[place - given]
            evidence = queries(source.own)
            if learned.is_minterms:
                evidence = f"a part that {queries(source.times)} ask for, alone or with others"
            elif source.alike:
                others = f"the others for nearly the same rows ({source.alike:,} other selections)"
                evidence = f"{queries(source.times)}: {source.own:,} ask exactly this, {others}"
            yield f"# {evidence}"
        key, text = ("where", selection.where) if selection.where is not None else ("each", selection.each)
        yield f"{key} = {toml_value(text)}"
        yield f"weight = {selection.weight!r}"


def _used(uses: Uses) -> str:
    ways = {"selected by": uses.filtered, "shown": uses.shown, "grouped by": uses.grouped, "joined by": uses.joined}
    parts = [f"{way} in {queries(times)}" for way, times in ways.items() if times]
    return ", ".join(parts) or "in no query"


def queries(number: int) -> str:
    """A number of queries in words."""
    return f"{number:,} {'query' if number == 1 else 'queries'}"


def _summary(learned: LearnedWorkload) -> Iterator[str]:
    """What is known of the log as a whole."""
    tally = learned.tally
    yield f"Learned from a log of {tally.statements:,} statements: {queries(tally.queries)}, {tally.others:,} that ask"
    yield f"nothing, {tally.unread:,} that could not be read. {queries(tally.selecting)} select rows in a way that can"
    yield f"be used; the {len(learned.selections):,} selections below are what most of them ask for."
    if learned.few:
        yield f"{learned.few:,} further selections ask for fewer than k persons and were left out."
    for reason, times in tally.unusable.most_common(MOST_REASONS):
        yield f"Not usable in {queries(times)}: a condition {as_clause(reason)}."


def as_clause(reason: str) -> str:
    """Why a condition could not be used, as it is said of it."""
    return f"in which {reason}" if reason.startswith("'") else f"that {reason}"
