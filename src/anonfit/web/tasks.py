# SPDX-License-Identifier: Apache-2.0
"""What jobs do, in processes of their own: every task calls the functions that other doors call, and gives plain
data. `python -m anonfit.web.tasks` waits for one job, does it, and writes what came of it as its last act; it ends with
the server that started it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import polars as pl

from anonfit.api import load_table, run
from anonfit.auditing.api import audit
from anonfit.cli.showing import error_facts
from anonfit.errors import RequestError
from anonfit.release.bind import source_of
from anonfit.release.folder import audit_release
from anonfit.release.run import read_source
from anonfit.runtime.process import Stage
from anonfit.spec.model import Spec
from anonfit.spec.parse import parse_spec, parse_toml
from anonfit.tables.databases import table_names
from anonfit.tables.schema import Column, Role
from anonfit.tables.sources import read_address, require_file
from anonfit.web.jobs import JOB, RELEASE, RESULT, STAGES
from anonfit.web.looking import combinations_of, frequent_values, histogram, look, read_data, records_of, values_of
from anonfit.web.workspace import RUNS, SPEC, Workspace, replace_text
from anonfit.workload.parsing import parse_predicate
from anonfit.workload.predicates import kinds_of
from anonfit.workload.truth import holds


@dataclass(frozen=True, slots=True)
class Task:
    """What a task is given: where it works, what is asked, and whom it tells its stages."""

    space: Workspace
    folder: Path
    params: Mapping[str, Any]
    stage: Stage

    def spec(self, job_id: str | None = None) -> Spec:
        """The job's own spec, or that of an earlier job, whose paths stay inside of the workspace."""
        folder = self.folder if job_id is None else self.space.inside(f"{RUNS}/{job_id}")
        text = (folder / SPEC).read_text(encoding="utf-8")
        self.space.contain(parse_toml(text, "the spec"))
        return parse_spec(text, folder=self.space.root)

    def data(self) -> dict[str, Any]:
        """How the table is read that a question is about."""
        given = dict(self.params["data"])
        self.space.contain({"data": given})
        return given

    def rows(self) -> pl.DataFrame:
        """The rows of that table."""
        return read_data(self.space.root, self.data())

    def release(self, job_id: str) -> Path:
        """The release of an earlier job."""
        return self.space.inside(f"{RUNS}/{job_id}/{RELEASE}")


def _run(task: Task) -> dict[str, Any]:
    """Make and publish a release, as `anonfit run` does; what a list of runs shows of its public report."""
    report = run(task.spec(), task.folder / RELEASE, stage=task.stage).report
    audit, asked, lost = report["audit"], report["asked"], report.get("columns_lost") or {}
    targets = (report.get("comparison") or {}).get("targets") or []
    return {
        "k": asked["k"],
        "algorithm": asked["algorithm"],
        "released": report["rows"]["released"],
        "groups": audit["sizes"]["groups"],
        "smallest": audit["sizes"]["smallest"],
        "highest": audit["prosecutor"]["highest"],
        "average": audit["prosecutor"]["average"],
        "detail": None if lost.get("gcp") is None else round(1 - lost["gcp"], 4),
        "targets": [
            {name: target.get(name) for name in ("column", "measure", "purpose", "whole")} for target in targets
        ],
        "verdict": report["verdict"],
    }


def _records(task: Task) -> dict[str, Any]:
    """The raw table's own risk: who is alone, and why."""
    frame, columns = task.rows(), list(task.params["columns"])
    risks = _risks(audit(frame, quasi_identifiers=columns).to_dict())
    return {**records_of(frame, columns, int(task.params["k"])), "audit": risks}


def _risks(audit: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of an audit that the page shows."""
    names = ("rows", "persons", "sizes", "prosecutor", "journalist", "marketer", "passed", "verdict", "k")
    return {name: audit.get(name) for name in (*names, "diversity", "raw_columns", "notes")}


def _count(task: Task) -> dict[str, Any]:
    """How many rows a selection selects."""
    frame = task.rows()
    kinds = kinds_of([Column(name, Role.INSENSITIVE) for name in frame.columns], frame)
    predicate = parse_predicate(str(task.params["where"]), kinds)
    return {"rows": int(holds(predicate, frame).sum()), "of": frame.height}


def _tables(task: Task) -> dict[str, Any]:
    """The tables of a database."""
    source = str(task.data()["source"])
    address = read_address(source, folder=task.space.root)
    require_file(address)
    return {"tables": table_names(address)}


def _rows(task: Task) -> dict[str, Any]:
    """Raw rows beside what the release says of them, those of a group together."""
    spec = task.spec(str(task.params["run"]))
    recoding = load_table(task.release(str(task.params["run"]))).recoding
    frame = read_source(spec, source_of(spec))[1]
    names = list(recoding.quasi_identifiers)
    recoded = recoding.apply(frame.select(names), unseen="suppress")
    groups = recoded.select(pl.struct(names).rank("dense").alias("group"))["group"].to_numpy()
    first = np.random.default_rng(int(task.params.get("seed", 0))).permutation(np.unique(groups))[:6]
    chosen = np.concatenate([np.flatnonzero(groups == group)[:10] for group in np.sort(first)])
    return {
        "columns": names,
        "before": _texts(frame.select(names)[chosen]),
        "after": _texts(recoded[chosen]),
        "groups": np.unique(groups[chosen], return_inverse=True)[1].tolist(),
        "distributions": [_distribution(frame[name], recoded[name]) for name in names],
    }


def _texts(frame: pl.DataFrame) -> list[list[str | None]]:
    return [[None if value is None else str(value)[:60] for value in row] for row in frame.iter_rows()]


def _distribution(before: pl.Series, after: pl.Series) -> dict[str, Any]:
    """The frequent values of a column before and after."""
    counts = after.drop_nulls().cast(pl.String).value_counts(sort=True, name="rows")
    bars = frequent_values(counts, len(after))
    return {"column": before.name, "before": histogram(before), "after": bars, "labels": counts.height}


def _audit(task: Task) -> dict[str, Any]:
    """Audit any file, or a release folder, of the workspace."""
    task.stage("Auditing")
    place = task.space.inside(str(task.params["source"]))
    asked = {name: task.params[name] for name in ("k", "max_risk") if task.params.get(name)}
    if place.is_dir():
        return _risks(audit_release(place, **asked).to_dict())
    names = list(task.params.get("quasi_identifiers") or ())
    if not names:
        raise RequestError("which columns may an attacker know? Name them as quasi-identifiers.")
    found = audit(place, quasi_identifiers=names, sensitive=list(task.params.get("sensitive") or ()), **asked)
    return _risks(found.to_dict()) | {"quasi_identifiers": names}


def _compare(task: Task) -> dict[str, Any]:
    """Releases side by side, and every two of them together against their table."""
    from anonfit.evaluation.comparing import compare

    runs = [str(run) for run in task.params["runs"]]
    source = source_of(task.spec(runs[0]))
    names = [run.partition("-")[0] for run in runs]
    found = compare(*(task.release(run) for run in runs), source=source, names=names, stage=task.stage)
    (task.folder / "compare.html").write_text(found.to_html(), encoding="utf-8")
    return found.to_dict()


def _together(task: Task) -> dict[str, Any]:
    """Which of some pairs of releases of one table break k together."""
    from anonfit.evaluation.comparing import Side, together

    pairs = []
    for runs in task.params["pairs"]:
        specs = [task.spec(run) for run in runs]
        places = [(run.partition("-")[0], task.release(run)) for run in runs]
        sides = [Side(*place, spec.privacy.k) for place, spec in zip(places, specs, strict=True)]
        pair: dict[str, Any] = {"holds": None, "k": min(side.k for side in sides), "joint": None}
        try:
            pair = together(sides, source_of(specs[0]), task.stage)[0]
        except RequestError as error:
            pair["faults"] = [str(error)]
        share, fault = (pair["joint"] or {}).get("persons_below_k"), " ".join(pair["faults"])
        pairs.append({"runs": runs, "k": pair["k"], "holds": pair["holds"], "share": share, "fault": fault})
    return {"pairs": pairs}


def _evaluate(task: Task) -> dict[str, Any]:
    """How well models do that are taught with releases."""
    from anonfit.evaluation.grid import evaluate

    task.stage("Evaluating")
    found = evaluate(
        task.spec(),
        learners=("tree", "logistic-regression"),
        folds=5,
        progress=lambda done, jobs, name: task.stage(f"{done} of {jobs}: {name}"),
    )
    return {"summary": json.loads(found.summary().write_json()), "folds": found.folds}


TASKS: Mapping[str, Callable[[Task], dict[str, Any]]] = {
    "run": _run,
    "look": lambda task: look(task.space.root, task.data()),
    "values": lambda task: values_of(task.rows(), str(task.params["column"])),
    "combinations": lambda task: combinations_of(task.rows(), task.params["columns"], int(task.params["k"])),
    "records": _records,
    "count": _count,
    "tables": _tables,
    "rows": _rows,
    "audit": _audit,
    "compare": _compare,
    "together": _together,
    "evaluate": _evaluate,
}


# --- the process --------------------------------------------------------------------------------------------------


def _end_with_server() -> None:
    """Read what never comes: when the server is gone, so is its end of the pipe."""
    sys.stdin.read()
    os.killpg(os.getpid(), signal.SIGKILL)


def _work(order: dict[str, str]) -> None:
    folder = Path(order["folder"])
    job = json.loads((folder / JOB).read_text(encoding="utf-8"))
    handle = os.open(folder / STAGES, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def stage(name: str) -> None:
        os.write(handle, json.dumps({"stage": name, "at": time.time()}).encode() + b"\n")

    outcome: dict[str, Any] = {"error": None, "result": None}
    try:
        task = Task(Workspace(Path(order["root"])), folder, job["params"], stage)
        outcome["result"] = TASKS[job["kind"]](task)
    except SystemExit:
        raise
    except BaseException as error:  # a panic of polars is no Exception
        outcome["error"] = error_facts(error)
    replace_text(folder / RESULT, json.dumps({**outcome, "ended": time.time()}, default=str))


def main() -> None:
    """Wait for a job and do it."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's interrupt is for the server
    line = sys.stdin.readline()
    if not line:
        return
    Thread(target=_end_with_server, daemon=True).start()
    _work(json.loads(line))
    sys.stdout.flush()
    os._exit(0)  # threads of libraries are not waited for


if __name__ == "__main__":
    main()
