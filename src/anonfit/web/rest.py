# SPDX-License-Identifier: Apache-2.0
"""The REST door, `/api/v1`: jobs and audits for pipelines, with the errors of every other door in the same words."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, File, Form, Query, Request, UploadFile
from fastapi import Path as InPath
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from anonfit.errors import RequestError
from anonfit.spec.parse import parse_spec, parse_toml
from anonfit.web.editing import put
from anonfit.web.jobs import RELEASE, SENT, Job, Jobs, NoSuchJob, State
from anonfit.web.workspace import PIECE, RUNS, SPEC, replace_text

KINDS = ("run", "audit", "evaluate", "compare")
"""Kinds of jobs that pipelines see; the page's own questions are not among them."""
POLL = 0.2
LONGEST_STREAM = 6 * 3600.0


class Fault(BaseModel):
    """What went wrong."""

    kind: str
    message: str
    faults: list[str]


class Refusal(BaseModel):
    """An error, as every door writes it in JSON."""

    error: Fault


class StageTold(BaseModel):
    """A stage, and when it began."""

    stage: str
    at: float


class JobShown(BaseModel):
    """A job."""

    id: str
    kind: str
    state: State
    created: float
    started: float | None
    ended: float | None
    stages: list[StageTold]
    verdict: dict[str, Any] | list[str] | None = Field(description="What was met, missed and not asked, in sentences.")
    passed: bool | None = None
    error: Fault | None
    release: str | None = Field(description="Where the ZIP of the public folder is.")


ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": Refusal, "description": words}
    for status, words in {
        400: "The request was wrong.",
        401: "The bearer token is missing or wrong.",
        403: "The Host or Origin is not our own.",
        404: "There is no such job.",
        405: "The method is not for this address.",
        409: "The job is not in the right state for this.",
        413: "The request is too large.",
        422: "The spec or its files cannot be used.",
        503: "Too many jobs wait.",
    }.items()
}
router = APIRouter(prefix="/api/v1", responses=ERRORS)
JobId = Annotated[str, InPath(pattern=r"^[0-9]{4,9}-[0-9a-f]{8}$", description="The job's id.")]


class NotReady(RequestError):
    """A job that is not in the right state for what is asked."""


def jobs_of(request: Request) -> Jobs:
    """The jobs of the server."""
    jobs: Jobs = request.app.state.jobs
    return jobs


HeldJobs = Annotated[Jobs, Depends(jobs_of)]


def shown(jobs: Jobs, job: Job) -> JobShown:
    """A job as the REST door tells it."""
    result = jobs.result(job.id) if job.state == "done" else {}
    return JobShown.model_validate(
        {
            **{name: getattr(job, name) for name in ("id", "kind", "state", "created", "started", "ended", "error")},
            "stages": jobs.stages(job.id),
            "verdict": result.get("verdict"),
            "passed": result.get("passed"),
            "release": f"/api/v1/jobs/{job.id}/release" if job.kind == "run" and job.state == "done" else None,
        }
    )


def _of_pipelines(jobs: Jobs, job_id: str) -> Job:
    job = jobs.get(job_id)
    if job.kind not in KINDS:
        raise NoSuchJob("there is no such job.")
    return job


@router.post("/jobs", status_code=201, operation_id="start_job")
def start_job(
    jobs: HeldJobs,
    spec: Annotated[UploadFile | str, Form(description="The text of a spec, or its file.")],
    data: Annotated[UploadFile | None, File(description="The table, in place of the spec's own source.")] = None,
) -> JobShown:
    """Make a release by a spec. The table is sent along, or is a file of the folder that the server was started in."""
    try:
        text = spec if isinstance(spec, str) else spec.file.read().decode("utf-8")
    except UnicodeDecodeError:
        raise RequestError("the spec is not UTF-8 text.") from None
    parse_toml(text, "the spec")
    with _filled(jobs, "run") as (job_id, folder):
        if data is not None and data.filename:
            sent = jobs.space.upload(data.filename, data.file, folder=f"{RUNS}/{job_id}/{SENT}")
            text = put(text, ("data", "source"), sent)
        tables = parse_toml(text, "the spec")
        jobs.space.contain(tables)
        parse_spec(text, folder=jobs.space.root)
        replace_text(folder / SPEC, text)
        source = str(tables["data"]["source"])
        jobs.note(job_id, table=[source, jobs.space.state_of(source)])
    return shown(jobs, jobs.start(job_id))


@contextmanager
def _filled(jobs: Jobs, kind: str) -> Iterator[tuple[str, Path]]:
    """A new job and its folder, to be filled before it is started; a failure takes it away."""
    job_id, folder = jobs.make(kind, {"title": "REST"})
    try:
        yield job_id, folder
    except BaseException:
        jobs.cancel(job_id)
        jobs.remove(job_id)
        raise


@router.get("/jobs", operation_id="list_jobs")
def list_jobs(jobs: HeldJobs) -> list[JobShown]:
    """All jobs, the newest first."""
    return [shown(jobs, job) for job in jobs.all(*KINDS)]


@router.get("/jobs/{job_id}", operation_id="get_job")
def get_job(jobs: HeldJobs, job_id: JobId) -> JobShown:
    """A job: its state, its stages and the verdict."""
    return shown(jobs, _of_pipelines(jobs, job_id))


@router.delete("/jobs/{job_id}", operation_id="cancel_job")
def cancel_job(jobs: HeldJobs, job_id: JobId) -> JobShown:
    """Cancel a job; it ends within two seconds. One that is over stays as it is."""
    job = _of_pipelines(jobs, job_id)
    if not job.is_over:
        jobs.cancel(job_id)
        job = jobs.wait(job_id, 3)
    return shown(jobs, job)


@router.get(
    "/jobs/{job_id}/events",
    operation_id="watch_job",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}, "description": "Stages, then the end."}},
)
def watch_job(jobs: HeldJobs, job_id: JobId) -> StreamingResponse:
    """What happens to a job, as server-sent events: `stage` for each stage, and `end` with the job."""
    _of_pipelines(jobs, job_id)
    return StreamingResponse(_events(jobs, job_id), media_type="text/event-stream")


def _events(jobs: Jobs, job_id: str) -> Iterator[str]:
    sent, until = 0, time.monotonic() + LONGEST_STREAM
    while time.monotonic() < until:
        job = jobs.get(job_id)
        stages = jobs.stages(job_id)
        for stage in stages[sent:]:
            yield f"event: stage\ndata: {json.dumps(stage)}\n\n"
        sent = len(stages)
        if job.is_over:
            yield f"event: end\ndata: {shown(jobs, job).model_dump_json()}\n\n"
            return
        jobs.wait(job_id, POLL)


@router.get(
    "/jobs/{job_id}/release",
    operation_id="get_release",
    response_class=StreamingResponse,
    responses={200: {"content": {"application/zip": {}}, "description": "The public folder."}},
)
def get_release(jobs: HeldJobs, job_id: JobId) -> StreamingResponse:
    """The public folder of a release as a ZIP; the owner's record is not in it."""
    job = _of_pipelines(jobs, job_id)
    if job.kind != "run" or job.state != "done":
        raise NotReady(f"this job has no release: it is {job.state}.")
    return zip_of(jobs.folder(job_id) / RELEASE, f"release-{job_id.partition('-')[0]}.zip")


def zip_of(folder: Path, name: str) -> StreamingResponse:
    """A folder as a ZIP that depends on nothing but its files, read from the disk piece by piece."""
    target = tempfile.TemporaryFile()  # noqa: SIM115 - closed when it is sent
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.iterdir()):
            entry = zipfile.ZipInfo(f"release/{path.name}", (1980, 1, 1, 0, 0, 0))
            entry.external_attr, entry.compress_type = 0o644 << 16, zipfile.ZIP_DEFLATED
            with path.open("rb") as source, archive.open(entry, "w", force_zip64=True) as packed:
                shutil.copyfileobj(source, packed, PIECE)
    size = target.tell()
    target.seek(0)

    def pieces() -> Iterator[bytes]:
        with target:
            while piece := target.read(PIECE):
                yield piece

    headers = {"content-disposition": f'attachment; filename="{name}"', "content-length": str(size)}
    return StreamingResponse(pieces(), media_type="application/zip", headers=headers)


@router.post("/audits", status_code=201, operation_id="start_audit")
def start_audit(
    jobs: HeldJobs,
    data: Annotated[UploadFile, File(description="The file to audit.")],
    quasi_identifiers: Annotated[list[str], Form(description="Columns that an attacker may know.", min_length=1)],
    sensitive: Annotated[list[str], Form(description="Sensitive columns.")] = [],  # noqa: B006 - FastAPI copies it
    k: Annotated[int | None, Form(ge=1, le=1_000_000_000, description="The k that must hold.")] = None,
    max_risk: Annotated[float | None, Form(gt=0, le=1, description="The highest acceptable risk.")] = None,
    wait: Annotated[float, Query(ge=0, le=60, description="Seconds to wait for the end.")] = 0,
) -> JobShown:
    """Audit any file: what it protects, and whether it holds what is asked."""
    asked = {"quasi_identifiers": quasi_identifiers, "sensitive": sensitive, "k": k, "max_risk": max_risk}
    with _filled(jobs, "audit") as (job_id, _):
        source = jobs.space.upload(data.filename or "", data.file, folder=f"{RUNS}/{job_id}/{SENT}")
        jobs.note(job_id, source=source, **asked)
    jobs.start(job_id)
    return shown(jobs, jobs.wait(job_id, wait))
