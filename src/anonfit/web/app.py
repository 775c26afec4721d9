# SPDX-License-Identifier: Apache-2.0
"""The application: pages and REST door over one workspace, behind the guard; every error becomes one text."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from anyio.to_thread import current_default_thread_limiter
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from anonfit.cli.showing import error_facts
from anonfit.errors import AnonfitError
from anonfit.web import demand_pages, hierarchy_pages, pages, rest, run_pages
from anonfit.web.answers import page
from anonfit.web.jobs import Jobs, NoSuchJob, TooBusy, failure
from anonfit.web.security import App, Guard, Keys
from anonfit.web.views import back, flash
from anonfit.web.workspace import Conflict

STATUS: Sequence[tuple[type[Exception], int]] = (
    (NoSuchJob, 404),
    (rest.NotReady, 409),
    (Conflict, 409),
    (TooBusy, 503),
    (AnonfitError, 422),
)
THREADS = 200
"""Requests at work at once: those that wait for a question's answer must not keep pages from the others."""


def application(jobs: Jobs, keys: Keys, *, hosts: Sequence[str], scheme: str = "http", port: int = 0) -> App:
    """The application for the jobs of a workspace, under these names of its host."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        current_default_thread_limiter().total_tokens = THREADS
        yield
        jobs.close()

    app = FastAPI(
        title="anonfit",
        version="1",
        description="Anonymous releases of tables about people. Every request needs the bearer token.",
        openapi_url="/api/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        servers=[{"url": "/"}],
    )
    app.state.jobs, app.state.keys, app.state.flashes = jobs, keys, {}
    app.include_router(rest.router)
    for part in (pages, hierarchy_pages, demand_pages, run_pages):
        app.include_router(part.router, include_in_schema=False)
    app.mount("/static", StaticFiles(packages=[("anonfit.web", "static")]))
    handlers = {AnonfitError: _own_error, HTTPException: _http, RequestValidationError: _invalid, Exception: _own_error}
    for kind, handler in handlers.items():
        app.add_exception_handler(kind, handler)
    _add_security(app)
    return Guard(
        app,
        keys=keys,
        hosts=frozenset(host.lower() for host in hosts),
        scheme=scheme,
        cookie=f"anonfit-{port}",
        largest=jobs.limits.upload,
    )


def _add_security(app: FastAPI) -> None:
    """Say in the OpenAPI document that requests bear a token."""
    made = app.openapi

    def document() -> dict[str, Any]:
        held = made()
        held.setdefault("components", {})["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
        held["security"] = [{"bearer": []}]
        return held

    app.openapi = document  # type: ignore[method-assign]


def _answer(request: Request, status: int, facts: dict[str, Any]) -> Response:
    if request.url.path.startswith("/api/"):
        return JSONResponse({"error": facts}, status)
    if request.method == "POST":
        flash(request, facts["faults"])
        return back(request)
    return HTMLResponse(page("refused.html", words="\n".join(facts["faults"])), status)


async def _own_error(request: Request, error: Exception) -> Response:
    status = next((number for kind, number in STATUS if isinstance(error, kind)), 500)
    return _answer(request, status, error_facts(error))


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _answer(request, error.status_code, failure("Http", str(error.detail)))


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    faults = [f"{'.'.join(str(part) for part in fault['loc'])}: {fault['msg']}." for fault in error.errors()]
    return _answer(request, 422, {"kind": "RequestError", "message": "\n".join(faults), "faults": faults})
