# SPDX-License-Identifier: Apache-2.0
"""The steps Explore, Utility, Risk and Hand over: runs, what they are worth and protect, and what is handed on."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import log10
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import tomlkit
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from anonfit.errors import RequestError
from anonfit.release.folder import records_of
from anonfit.report.pictures import tiling_figure
from anonfit.spec.parse import parse_spec
from anonfit.tables.schema import Role
from anonfit.tables.taxonomy import ROOT
from anonfit.web import together
from anonfit.web.answers import say
from anonfit.web.editing import number_of, put, set_value
from anonfit.web.jobs import RELEASE, Job
from anonfit.web.pages import Form, Shown, field, parts_of, uploaded
from anonfit.web.rest import zip_of
from anonfit.web.security import REPORT_POLICY
from anonfit.web.views import WorkspaceView, back, flash, render, to
from anonfit.web.workspace import RUNS, SPEC, mark

router = APIRouter()
TRIED = (5, 10, 25, 50)
METHODS: Mapping[str, Mapping[str, str | None]] = {
    "purpose": {"algorithm": "mondrian", "criterion": None},
    "blind": {"algorithm": "mondrian", "criterion": "median"},
    "refined": {"algorithm": "tdr", "criterion": None},
}
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome", "msedge")


# --- 4. Explore -------------------------------------------------------------------------------------------------


@router.get("/explore")
def explore(view: Shown, a: str = "", b: str = "") -> Response:
    """All runs, and risk against utility."""
    runs = [_shown(view, job) for job in view.runs]
    compared = view.jobs.all("compare")
    auditing = together.ask(view)
    chosen = next((job for job in compared if job.params.get("runs") == [a, b]), None) if a and b else None
    done = {job.id: job for job in view.runs if job.state == "done"}
    return render(
        view,
        "explore",
        runs=runs,
        busy=auditing or any(not job.is_over for job in (*view.runs, *compared)),
        auditing=auditing,
        broken=together.broken(view),
        unchecked=together.unchecked(view),
        map=risk_map([run for run in runs if run["result"]]),
        compared=_shown(view, chosen),
        sides=[_side(view, done[run]) for run in (a, b) if chosen is not None and run in done],
        pair=(a, b),
        tried=TRIED,
    )


def _shown(view: WorkspaceView, job: Job | None) -> Any:
    """What templates show of a job, if there is one."""
    if job is None:
        return None
    stages = view.jobs.stages(job.id)
    return {
        **{name: getattr(job, name) for name in ("id", "number", "state", "is_over")},
        "title": job.params.get("title", ""),
        "error": job.error["message"] if job.error else None,
        "stage": stages[-1]["stage"] if stages else None,
        "stages": len(stages),
        "seconds": None if job.started is None or job.ended is None else job.ended - job.started,
        "result": view.jobs.result(job.id) if job.state == "done" else None,
        "k": job.params.get("k"),
        "mine": job.params.get("mark") == view.mark,
        "handed": bool(job.params.get("handed")),
    }


def _side(view: WorkspaceView, job: Job) -> dict[str, Any]:
    """What stands of a run beside another one."""
    detail = _read_json(view, job, "report.json").get("detail") or []
    return {**_shown(view, job), "detail": {each["column"]: kept_of(each) for each in detail}}


def kept_of(detail: Mapping[str, Any]) -> Any:
    """The part of a column's detail that is left: of one whose only label is that of all values, nothing is."""
    return 0.0 if detail["labels"] == 1 and detail["frequent_label"] == ROOT else detail["kept"]


@router.post("/explore/run")
def run(view: Shown) -> Response:
    """Make a release of the spec as it stands."""
    _start(view, view.text, title="")
    return to("/explore")


def _start(view: WorkspaceView, text: str, *, title: str) -> Job:
    """Start the run of a spec; one with faults or open questions is refused before."""
    if view.questions:
        raise RequestError(say("verdict.questions", number=len(view.questions)))
    k = parse_spec(text, folder=view.space.root).privacy.k
    view.space.contain(view.tables)
    together.make_way(view)
    return view.jobs.submit("run", {"mark": mark(text), "title": title, "k": k, "table": view.table}, spec=text)


@router.post("/explore/try")
def try_many(request: Request, view: Shown, form: Form) -> Response:
    """Try several k and methods; what a method cannot do for this spec is left out, and told."""
    ks = [int(number_of(part)) for part in (field(form, "ks") or "5,10,25,50").split(",")]
    left_out = []
    for method in form.getlist("method") or list(METHODS):
        for k in ks[:12]:
            try:
                _start(view, _varied(view, k, str(method)), title=say(f"explore.method_{method}"))
            except RequestError as error:
                left_out.append(say("explore.left_out", method=say(f"explore.method_{method}"), why=str(error)))
                break
    flash(request, left_out)
    return to("/explore")


def _varied(view: WorkspaceView, k: int, method: str) -> str:
    """The spec with another k and method."""
    if method not in METHODS:
        raise RequestError(say("explore.no_method"))
    document = tomlkit.parse(put(view.text, ("privacy", "k"), k))
    for key, value in METHODS[method].items():
        set_value(document, ("method", key), value)
    return tomlkit.dumps(document)


@router.post("/explore/cancel")
def cancel(request: Request, view: Shown, form: Form) -> Response:
    """End a run, or several."""
    names = [str(name) for name in form.getlist("id")]
    for name in names:
        view.jobs.cancel(name)
    for name in names:
        view.jobs.wait(name, 3)
    return back(request, "/explore")


@router.post("/explore/remove")
def remove(request: Request, view: Shown, form: Form) -> Response:
    """Forget a run and all that it made."""
    view.jobs.remove(field(form, "id"))
    return back(request, "/explore")


@router.post("/explore/take")
def take(view: Shown, form: Form) -> Response:
    """Make the spec of a run the spec of the page."""
    view.space.write((view.jobs.folder(field(form, "id")) / SPEC).read_text(encoding="utf-8"))
    return to("/explore")


@router.post("/explore/compare")
def compare(view: Shown, form: Form) -> Response:
    """Two runs side by side, audited together."""
    runs = [str(run) for run in form.getlist("id")]
    if len(runs) != 2 or runs[0] == runs[1] or any(view.jobs.get(run).state != "done" for run in runs):
        raise RequestError(say("explore.two"))
    if not any(job.params.get("runs") == runs and job.error is None for job in view.jobs.all("compare")):
        view.jobs.submit("compare", {"runs": runs, "title": "compare"})
    return to(f"/explore?a={runs[0]}&b={runs[1]}")


# --- 5. Utility, 6. Risk ----------------------------------------------------------------------------------------


def _chosen(view: WorkspaceView, run: str) -> tuple[Job | None, dict[str, Any]]:
    """The run that a page is about, and what such pages show of it: the one named, else that of the spec as it
    stands, else the newest.
    """
    done = [job for job in view.runs if job.state == "done"]
    fitting = sorted(done, key=lambda job: (job.id != run, job.params.get("mark") != view.mark))
    job = fitting[0] if fitting else None
    report = None if job is None else _read_json(view, job, "report.json")
    return job, {"job": _shown(view, job), "done": done, "report": report}


def _read_json(view: WorkspaceView, job: Job, name: str) -> dict[str, Any]:
    """A file of a run's release."""
    content: dict[str, Any] = json.loads((view.jobs.folder(job.id) / RELEASE / name).read_text(encoding="utf-8"))
    return content


@router.get("/utility")
def utility(view: Shown, run: str = "", records: bool = False, seed: int = 0) -> Response:
    """What a run is worth."""
    job, shown = _chosen(view, run)
    report, regions, rows, measured = shown["report"], None, None, None
    if job is not None:
        measured = next((each for each in view.jobs.all("evaluate") if each.params.get("of") == job.id), None)
        rows = view.ask("rows", {"run": job.id, "seed": seed}) if records else None
        if tiling := report.get("partition"):
            regions = tiling_figure(tiling, report["asked"]["k"])
    return render(
        view,
        "utility",
        **shown,
        regions=regions,
        rows=rows,
        seed=seed,
        kept_of=kept_of,
        evaluation=_shown(view, measured),
    )


@router.post("/utility/evaluate")
def evaluate(view: Shown, form: Form) -> Response:
    """Teach models with releases of a run's spec."""
    job = view.jobs.get(field(form, "id"))
    text = (view.jobs.folder(job.id) / SPEC).read_text(encoding="utf-8")
    view.jobs.submit("evaluate", {"of": job.id, "title": "evaluate"}, spec=text)
    return to(f"/utility?run={job.id}")


@router.get("/risk")
def risk(view: Shown, run: str = "", records: bool = False, audit: str = "") -> Response:
    """What a run protects, and what the raw table did not; or what a file from elsewhere protects."""
    job, shown = _chosen(view, run)
    asked = {"columns": view.of_role(Role.QUASI_IDENTIFIER), "k": view.k}
    audits = view.jobs.all("audit")
    foreign = next((each for each in audits if each.id == audit), audits[0] if audits else None)
    return render(
        view,
        "risk",
        **shown,
        alone=(view.ask if records and view.source and asked["columns"] else view.asked)("records", asked),
        records=records,
        raw=_raw_risk(view, job),
        group_bars=group_bars,
        steps_of=steps_of,
        foreign=_shown(view, foreign),
        files=view.space.tables(),
    )


def _raw_risk(view: WorkspaceView, job: Job | None) -> dict[str, float | None]:
    """The risk of the raw table that a run was made of, by the owner's record."""
    records = {} if job is None else records_of(view.jobs.folder(job.id) / RELEASE)
    path = next((path for path in records.values() if path.suffix == ".json"), None)
    initial = {} if path is None else json.loads(path.read_text(encoding="utf-8")).get("initial_risk") or {}
    smallest = initial.get("smallest")
    return {"highest": 1 / smallest if isinstance(smallest, int) else None, "average": _number(initial.get("average"))}


@router.post("/risk/audit")
def audit(view: Shown, form: Form) -> Response:
    """Audit a file from elsewhere."""
    name = uploaded(view, form) or field(form, "source")
    view.space.inside(name)
    k = field(form, "k").strip()
    params = {
        "source": name,
        **{key: parts_of(field(form, key)) for key in ("quasi_identifiers", "sensitive")},
        "k": int(number_of(k)) if k else None,
        "title": name.rpartition("/")[2],
    }
    job = view.jobs.submit("audit", params)
    view.jobs.wait(job.id, 2)
    return to(f"/risk?audit={job.id}#foreign")


# --- 7. Hand over -----------------------------------------------------------------------------------------------


@router.get("/handover")
def handover(request: Request, view: Shown, run: str = "") -> Response:
    """What is handed on, and what stays."""
    job, shown = _chosen(view, run)
    return render(
        view,
        "handover",
        **shown,
        hashes={} if job is None else _read_json(view, job, "manifest.json")["files"],
        broken=[pair for pair in together.broken(view) if job is not None and job.id in pair.ids and pair.handed],
        is_current=job is not None and job.params.get("mark") == view.mark,
        has_browser=_browser() is not None,
        address=str(request.base_url).rstrip("/"),
    )


def _done(view: WorkspaceView, job_id: str) -> Path:
    job = view.jobs.get(job_id)
    if job.kind != "run" or job.state != "done":
        raise RequestError(say("handover.not_done"))
    return view.space.inside(f"{RUNS}/{job_id}/{RELEASE}")


@router.get("/runs/{job_id}/release.zip")
def release_zip(view: Shown, job_id: str) -> Response:
    """The public folder; from now on the run counts as handed over."""
    place = _done(view, job_id)
    view.jobs.note(job_id, handed=True)
    return zip_of(place, f"release-{job_id.partition('-')[0]}.zip")


@router.get("/runs/{job_id}/report.html")
def report(view: Shown, job_id: str) -> Response:
    """The public report."""
    return _written(_done(view, job_id) / "report.html")


@router.get("/runs/{job_id}/record.html")
def record(view: Shown, job_id: str) -> Response:
    """The owner's record."""
    return _written(next(path for path in records_of(_done(view, job_id)).values() if path.suffix == ".html"))


@router.get("/runs/{job_id}/compare.html")
def comparison(view: Shown, job_id: str) -> Response:
    """Releases side by side."""
    return _written(view.jobs.folder(job_id) / "compare.html")


def _written(path: Path) -> Response:
    """A page that anonfit wrote as a file: nothing of it may run."""
    if not path.is_file():
        raise RequestError(say("handover.not_done"))
    return HTMLResponse(
        path.read_bytes(),
        headers={"content-security-policy": REPORT_POLICY, "cross-origin-opener-policy": "unsafe-none"},
    )


def _browser() -> str | None:
    return next((found for name in BROWSERS if (found := shutil.which(name))), None)


@router.get("/runs/{job_id}/report.pdf")
def report_pdf(view: Shown, job_id: str) -> Response:
    """The report as PDF, printed by a browser of this machine."""
    browser, source = _browser(), _done(view, job_id) / "report.html"
    if browser is None:
        raise RequestError(say("handover.no_browser"))
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        target = Path(folder) / "report.pdf"
        words = ["headless", "no-sandbox", "disable-gpu", "no-pdf-header-footer", f"user-data-dir={folder}/user"]
        command = [browser, *(f"--{word}" for word in (*words, f"print-to-pdf={target}")), source.as_uri()]
        with suppress(subprocess.SubprocessError, OSError):
            # A browser of this machine, on a page of ours that holds no script.
            subprocess.run(command, timeout=60, check=True, capture_output=True)  # noqa: S603
        if not target.is_file():
            raise RequestError(say("handover.no_browser"))
        body = target.read_bytes()
    headers = {"content-disposition": f'attachment; filename="report-{job_id.partition("-")[0]}.pdf"'}
    return Response(body, media_type="application/pdf", headers=headers)


# --- where things stand in pictures, which the templates draw ------------------------------------------------------

WIDTH, HEIGHT, LEFT, BOTTOM = 640, 320, 56, 40
LEAST = 0.002
"""The lowest risk that the picture has room for."""


def _number(value: Any) -> float | None:
    if isinstance(value, Mapping):
        value = value.get("value", value.get("share"))
    return float(value) if isinstance(value, int | float) else None


def risk_map(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A point for each run: across the highest risk (by powers of ten), as thresholds are; up the detail kept."""
    points = []
    for run in runs:
        risk, detail = _number(run["result"].get("highest")), _number(run["result"].get("detail"))
        if risk is not None and detail is not None:
            points.append({"run": run, "risk": risk, "detail": detail, "x": _across(risk), "y": _up(detail)})
    return {
        "points": points,
        "across": [(_across(risk), f"{100 * risk:g} %") for risk in (LEAST, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)],
        "up": [(_up(share), f"{100 * share:.0f} %") for share in (0, 0.25, 0.5, 0.75, 1)],
        "thresholds": [(_across(risk), name) for risk, name in ((0.05, "0.05"), (0.09, "EMA 0.09"), (0.2, "0.2"))],
        "width": WIDTH,
        "height": HEIGHT,
        "left": LEFT,
        "bottom": HEIGHT - BOTTOM,
    }


def _across(risk: float) -> float:
    share = (log10(max(risk, LEAST)) - log10(LEAST)) / -log10(LEAST)
    return round(LEFT + share * (WIDTH - LEFT - 24), 1)


def _up(detail: float) -> float:
    return round(HEIGHT - BOTTOM - min(max(detail, 0.0), 1.0) * (HEIGHT - BOTTOM - 30), 1)


def group_bars(sizes: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Bars of group sizes, as a public report has them."""
    bars = []
    for entry in sizes:
        low, high = entry["low"], entry["high"]
        name = str(low) if low == high else f"{low}–{high}" if high is not None else f"≥ {low}"
        counts = (entry["persons"], entry["groups"])
        persons, groups = (count.get("persons") if isinstance(count, Mapping) else count for count in counts)
        if isinstance(persons, int):
            bars.append({"name": name, "low": low, "persons": persons, "groups": groups if type(groups) is int else 0})
    return bars


def steps_of(bars: Sequence[Mapping[str, Any]], k: int) -> list[int]:
    """The smallest groups that one may ask for such that the bars tell exactly who lies below."""
    lows = [int(bar["low"]) for bar in bars]
    return sorted({*lows, *(size for size in (2, 3, 5, 11, 20, k) if size <= min(lows))})
