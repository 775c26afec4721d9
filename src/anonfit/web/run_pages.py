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
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.datastructures import UploadFile

from anonfit.errors import RequestError
from anonfit.release.folder import records_of
from anonfit.report.pictures import tiling_figure
from anonfit.spec.parse import parse_spec
from anonfit.tables.schema import Role
from anonfit.web import together
from anonfit.web.answers import say
from anonfit.web.editing import number_of as typed_number
from anonfit.web.editing import put, set_value
from anonfit.web.jobs import RELEASE, Job
from anonfit.web.pages import Form, Shown, field
from anonfit.web.rest import zip_of
from anonfit.web.security import REPORT_POLICY
from anonfit.web.views import View, back, flash, number_of, render
from anonfit.web.workspace import RUNS, SPEC, mark

router = APIRouter()
TRIED = (5, 10, 25, 50)
METHODS: Mapping[str, Mapping[str, str | None]] = {
    "purpose": {"algorithm": "mondrian", "criterion": "auto"},
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
    return render(
        view,
        "explore",
        runs=runs,
        busy=auditing or any(not job.is_over for job in (*view.runs, *compared)),
        auditing=auditing,
        broken=together.broken(view),
        map=risk_map([run for run in runs if run["result"]]),
        compared=None if chosen is None else _shown(view, chosen),
        pair=(a, b),
        tried=TRIED,
    )


def _shown(view: View, job: Job) -> dict[str, Any]:
    """A job for a list."""
    stages = view.jobs.stages(job.id)
    return {
        "id": job.id,
        "number": number_of(job),
        "state": job.state,
        "title": job.params.get("title", ""),
        "error": job.error["message"] if job.error else None,
        "stage": stages[-1]["stage"] if stages else None,
        "stages": len(stages),
        "seconds": None if job.started is None or job.ended is None else job.ended - job.started,
        "result": view.jobs.result(job.id) if job.state == "done" else None,
        "mine": job.params.get("mark") == view.mark,
        "is_over": job.is_over,
        "handed": bool(job.params.get("handed")),
    }


@router.post("/explore/run")
def run(view: Shown) -> Response:
    """Make a release of the spec as it stands."""
    _start(view, view.text, title="")
    return RedirectResponse("/explore", status_code=303)


def _start(view: View, text: str, *, title: str) -> Job:
    """Start the run of a spec; one with faults or open questions is refused before."""
    if view.questions:
        raise RequestError(say("verdict.questions", number=len(view.questions)))
    parse_spec(text, folder=view.space.root)
    view.space.contain(view.tables)
    together.make_way(view)
    return view.jobs.submit("run", {"mark": mark(text), "title": title, "table": view.table}, spec=text)


@router.post("/explore/try")
def try_many(request: Request, view: Shown, form: Form) -> Response:
    """Try several k and methods; what a method cannot do for this spec is left out, and told."""
    ks = [int(typed_number(part, whole=True)) for part in (field(form, "ks") or "5,10,25,50").split(",")]
    left_out = []
    for method in form.getlist("method") or list(METHODS):
        for k in ks[:12]:
            try:
                _start(view, _varied(view, k, str(method)), title=say(f"explore.method_{method}"))
            except RequestError as error:
                left_out.append(say("explore.left_out", method=say(f"explore.method_{method}"), why=str(error)))
                break
    flash(request, left_out)
    return RedirectResponse("/explore", status_code=303)


def _varied(view: View, k: int, method: str) -> str:
    """The spec with another k and method."""
    if method not in METHODS:
        raise RequestError(say("explore.no_method"))
    document = tomlkit.parse(put(view.text, ("privacy", "k"), k))
    for key, value in METHODS[method].items():
        set_value(document, ("method", key), value)
    return tomlkit.dumps(document)


@router.post("/explore/cancel")
def cancel(request: Request, view: Shown, form: Form) -> Response:
    """End a run."""
    view.jobs.cancel(field(form, "id"))
    view.jobs.wait(field(form, "id"), 3)
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
    return RedirectResponse("/explore", status_code=303)


@router.post("/explore/compare")
def compare(view: Shown, form: Form) -> Response:
    """Two runs side by side, audited together."""
    runs = [str(each) for each in form.getlist("id")]
    if len(runs) != 2 or runs[0] == runs[1]:
        raise RequestError(say("explore.two"))
    for each in runs:
        if view.jobs.get(each).state != "done":
            raise RequestError(say("explore.two"))
    if not any(job.params.get("runs") == runs for job in view.jobs.all("compare")):
        view.jobs.submit("compare", {"runs": runs, "title": "compare"})
    return RedirectResponse(f"/explore?a={runs[0]}&b={runs[1]}", status_code=303)


# --- 5. Utility, 6. Risk ----------------------------------------------------------------------------------------


def _chosen(view: View, run: str) -> Job | None:
    """The run that a page is about: the one named, or the newest that is done."""
    done = [job for job in view.runs if job.state == "done"]
    return next((job for job in done if job.id == run), done[0] if done else None)


def report_of(view: View, job: Job) -> dict[str, Any]:
    """The public report of a run."""
    path = view.jobs.folder(job.id) / RELEASE / "report.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


@router.get("/utility")
def utility(view: Shown, run: str = "", records: bool = False, seed: int = 0) -> Response:
    """What a run is worth."""
    job = _chosen(view, run)
    rows, params = None, {"run": job.id if job else "", "seed": seed}
    if job is not None and records:
        rows = view.ask("rows", params)
    measured = next((each for each in view.jobs.all("evaluate") if job and each.params.get("of") == job.id), None)
    report = None if job is None else report_of(view, job)
    tiling = None if report is None else report.get("partition")
    return render(
        view,
        "utility",
        job=None if job is None else _shown(view, job),
        done=[each for each in view.runs if each.state == "done"],
        report=report,
        regions=None if report is None or not tiling else tiling_figure(tiling, report["asked"]["k"]),
        rows=rows,
        seed=seed,
        evaluation=None if measured is None else _shown(view, measured),
    )


@router.post("/utility/evaluate")
def evaluate(view: Shown, form: Form) -> Response:
    """Teach models with releases of a run's spec."""
    job = view.jobs.get(field(form, "id"))
    text = (view.jobs.folder(job.id) / SPEC).read_text(encoding="utf-8")
    view.jobs.submit("evaluate", {"of": job.id, "title": "evaluate"}, spec=text)
    return RedirectResponse(f"/utility?run={job.id}", status_code=303)


@router.get("/risk")
def risk(view: Shown, run: str = "", records: bool = False, audit: str = "") -> Response:
    """What a run protects, and what the raw table did not; or what a file from elsewhere protects."""
    job = _chosen(view, run)
    asked = {"columns": view.of_role(Role.QUASI_IDENTIFIER), "k": view.k}
    alone = view.asked("records", asked)
    if alone is None and records and view.source and asked["columns"]:
        alone = view.ask("records", asked)
    audits = view.jobs.all("audit")
    foreign = next((each for each in audits if each.id == audit), audits[0] if audits else None)
    report = None if job is None else report_of(view, job)
    return render(
        view,
        "risk",
        job=None if job is None else _shown(view, job),
        done=[each for each in view.runs if each.state == "done"],
        report=report,
        alone=alone,
        records=records,
        sizes=None if report is None else group_bars(report["group_sizes"]),
        foreign=None if foreign is None else _shown(view, foreign),
        files=view.space.tables(),
    )


@router.post("/risk/audit")
def audit(view: Shown, form: Form) -> Response:
    """Audit a file from elsewhere."""
    sent = form.get("file")
    name = field(form, "source")
    if isinstance(sent, UploadFile) and sent.filename:
        name = view.space.upload(sent.filename, sent.file)
    view.space.inside(name)
    k = field(form, "k").strip()
    params = {
        "source": name,
        "quasi_identifiers": [part.strip() for part in field(form, "quasi_identifiers").split(",") if part.strip()],
        "sensitive": [part.strip() for part in field(form, "sensitive").split(",") if part.strip()],
        "k": int(typed_number(k, whole=True)) if k else None,
        "title": name.rpartition("/")[2],
    }
    job = view.jobs.submit("audit", params)
    view.jobs.wait(job.id, 2)
    return RedirectResponse(f"/risk?audit={job.id}#foreign", status_code=303)


# --- 7. Hand over -----------------------------------------------------------------------------------------------


@router.get("/handover")
def handover(request: Request, view: Shown, run: str = "") -> Response:
    """What is handed on, and what stays."""
    job = _chosen(view, run)
    return render(
        view,
        "handover",
        job=None if job is None else _shown(view, job),
        done=[each for each in view.runs if each.state == "done"],
        report=None if job is None else report_of(view, job),
        hashes={} if job is None else _hashes(view, job),
        broken=[] if job is None else [each for each in together.broken(view) if job.id in each.ids and each.handed],
        is_current=job is not None and job.params.get("mark") == view.mark,
        has_browser=_browser() is not None,
        address=str(request.base_url).rstrip("/"),
    )


def _hashes(view: View, job: Job) -> dict[str, str]:
    """The hashes of the files that are handed on."""
    manifest = json.loads((view.jobs.folder(job.id) / RELEASE / "manifest.json").read_text(encoding="utf-8"))
    return dict(manifest["files"])


def _done(view: View, job_id: str) -> Path:
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
        words = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-pdf-header-footer",
            f"--user-data-dir={folder}/user",
        ]
        with suppress(subprocess.SubprocessError, OSError):
            subprocess.run(  # noqa: S603 - a browser of this machine, on a page of ours that holds no script
                [browser, *words, f"--print-to-pdf={target}", source.as_uri()],
                timeout=60,
                check=True,
                capture_output=True,
            )
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
    ticks = [(_across(risk), f"{100 * risk:g} %") for risk in (0.002, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)]
    return {
        "points": points,
        "across": ticks,
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
        persons, groups = _number(entry["persons"]), _number(entry["groups"])
        if persons is not None:
            low, high = entry["low"], entry["high"]
            name = str(low) if low == high else f"{low}–{high}" if high is not None else f"≥ {low}"
            bars.append({"name": name, "low": low, "persons": int(persons), "groups": int(groups or 0)})
    return bars
