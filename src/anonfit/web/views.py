# SPDX-License-Identifier: Apache-2.0
"""What every page shows: the steps, the verdict, the spec and the command that repeats it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from fastapi import Request
from fastapi.responses import HTMLResponse, RedirectResponse

from anonfit.errors import AnonfitError, SpecError
from anonfit.spec.model import Spec
from anonfit.spec.parse import parse_spec
from anonfit.web.answers import page, say
from anonfit.web.editing import questions_of
from anonfit.web.jobs import Job, Jobs
from anonfit.web.workspace import SPEC, Workspace, mark, without_secrets

STEPS = ("table", "columns", "demands", "explore", "utility", "risk", "handover")
READING = ("missing_policy", "decide", "default_role")
"""Keys of `[data]` that do not change how a table is read."""
FIRST_MISSING = ["", "?", "NA"]


@dataclass(frozen=True)
class View:
    """The state of the workspace as one page sees it."""

    space: Workspace
    jobs: Jobs
    flashes: Sequence[str] = field(default_factory=tuple)

    @cached_property
    def text(self) -> str:
        """The text of the spec."""
        return self.space.read()

    @cached_property
    def tables(self) -> dict[str, Any]:
        """Its tables."""
        return self.space.read_tables()

    @property
    def shown_text(self) -> str:
        """The text of the spec without passwords."""
        return without_secrets(self.text)

    @property
    def mark(self) -> str:
        """What the text is known by."""
        return mark(self.text)

    @cached_property
    def data(self) -> dict[str, Any]:
        """How the table is read."""
        data = self.tables.get("data", {})
        return {key: value for key, value in data.items() if key not in READING} if isinstance(data, dict) else {}

    @property
    def source(self) -> str | None:
        """The table's name."""
        source = self.data.get("source")
        return source if isinstance(source, str) and source else None

    @cached_property
    def source_state(self) -> str:
        """What changes when the table does."""
        return self.space.state_of(self.source)

    @property
    def table(self) -> list[str | None]:
        """The table as it is now; runs of the same one can be held against each other."""
        return [self.source, self.source_state]

    @cached_property
    def profile(self) -> dict[str, Any] | None:
        """What was seen of the table; None if nobody looked yet."""
        return self.jobs.answered("look", {"data": self.data}, state=self.source_state) if self.source else None

    def look(self, data: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Look at the table, or at another one."""
        if data is None:
            return self.ask("look", {})
        other = View(self.space, self.jobs)
        other.__dict__["data"] = dict(data)
        return other.ask("look", {})

    def ask(self, kind: str, params: Mapping[str, Any], seconds: float = 300) -> dict[str, Any]:
        """The answer to a question about the table."""
        return self.jobs.ask(kind, {"data": self.data, **params}, state=self.source_state, seconds=seconds)

    def asked(self, kind: str, params: Mapping[str, Any]) -> dict[str, Any] | None:
        """The answer to a question that was asked before."""
        return self.jobs.answered(kind, {"data": self.data, **params}, state=self.source_state)

    @cached_property
    def questions(self) -> dict[str, str]:
        """What is to be decided."""
        return questions_of(self.tables)

    @cached_property
    def parsed(self) -> tuple[Spec | None, tuple[str, ...]]:
        """The spec, or its faults without open questions."""
        if not self.text:
            return None, ()
        try:
            self.space.contain(self.tables)
            return parse_spec(self.text, folder=self.space.root), ()
        except SpecError as error:
            opened = len(self.questions)
            return None, error.faults[1 + opened :] if opened else error.faults
        except AnonfitError as error:
            return None, (str(error),)

    @property
    def columns(self) -> dict[str, dict[str, Any]]:
        """The columns of the spec, as they are written."""
        held = self.tables.get("columns", {})
        return {name: column for name, column in held.items() if isinstance(column, dict)}

    def of_role(self, role: str) -> list[str]:
        """The names of columns of a role."""
        return [name for name, column in self.columns.items() if column.get("role") == role]

    @property
    def k(self) -> int:
        """The k that is asked for."""
        k = self.tables.get("privacy", {}).get("k", 10)
        return k if isinstance(k, int) and k > 0 else 10

    @cached_property
    def runs(self) -> list[Job]:
        """All runs, the newest first."""
        return self.jobs.all("run")

    @property
    def is_ready(self) -> bool:
        """Whether a release can be made."""
        return self.source is not None and not self.questions and self.parsed[0] is not None

    @cached_property
    def verdict(self) -> tuple[str, str, str]:
        """One line on how things stand: its kind, its words, and the step where something is to be done."""
        if self.source is None:
            return "open", say("verdict.no_table"), "table"
        for job in self.runs:
            if not job.is_over:
                stages = self.jobs.stages(job.id)
                name = stages[-1]["stage"] if stages else say("verdict.waiting")
                return "busy", say("verdict.running", number=number_of(job), stage=name), "explore"
        if self.questions:
            where = "columns" if any(place.startswith("columns.") for place in self.questions) else "demands"
            return "open", say("verdict.questions", number=len(self.questions)), where
        if self.parsed[1]:
            more = len(self.parsed[1]) - 1
            words = self.parsed[1][0] + (say("verdict.more", number=more) if more else "")
            return "bad", words, _step_of(self.parsed[1][0])
        return self._of_runs()

    def _of_runs(self) -> tuple[str, str, str]:
        same = next((job for job in self.runs if job.params.get("mark") == self.mark), None)
        if same is None:
            return "ready", say("verdict.ready"), "explore"
        if same.state == "done":
            result = self.jobs.result(same.id)
            met = result.get("verdict", {}).get("met", [])
            words = met[0] if met else say("verdict.done")
            remarks = len(result.get("verdict", {}).get("not_asked", []))
            words += say("verdict.remarks", number=remarks) if remarks else ""
            return "good", say("verdict.released", number=number_of(same), words=words), "handover"
        if same.state == "cancelled":
            return "ready", say("verdict.cancelled", number=number_of(same)), "explore"
        return "bad", say("verdict.failed", number=number_of(same), words=_message(same)), "explore"

    def steps(self, here: str) -> list[dict[str, Any]]:
        """The rail: each step, whether it is done, and how many decisions are open there."""
        of_columns = sum(place.startswith("columns.") for place in self.questions)
        opened = {"columns": of_columns, "demands": len(self.questions) - of_columns}
        done = {
            "table": self.source is not None,
            "columns": bool(self.columns) and not of_columns,
            "demands": bool(self.columns) and len(self.questions) == of_columns,
            "explore": any(job.state == "done" for job in self.runs),
        }
        return [
            {
                "name": name,
                "number": number,
                "here": name == here,
                "done": done.get(name, False),
                "open": opened.get(name, 0),
                "locked": self.source is None and name not in ("table", "risk"),
            }
            for number, name in enumerate(STEPS, 1)
        ]

    @property
    def command(self) -> str:
        """The command that repeats what the page does."""
        return f"anonfit run {SPEC} --out release"


def number_of(job: Job) -> int:
    """The number of a run."""
    return int(job.id.partition("-")[0])


def _message(job: Job) -> str:
    return str(job.error["message"]) if job.error else ""


def _step_of(fault: str) -> str:
    """The step where a fault is mended."""
    if fault.startswith("columns.") and "nothing is asked" not in fault:
        return "columns"
    return "table" if fault.startswith(("data.", "version")) else "demands"


def view_of(request: Request) -> View:
    """The state of the workspace, with what is to be told once."""
    app = request.app
    return View(app.state.jobs.space, app.state.jobs, tuple(app.state.flashes.pop(_session(request), ())))


def _session(request: Request) -> str:
    return str(getattr(request.state, "session", ""))


def flash(request: Request, words: Sequence[str]) -> None:
    """Tell something on the next page."""
    request.app.state.flashes.setdefault(_session(request), []).extend(words)


def back(request: Request, default: str = "/") -> RedirectResponse:
    """To the page that a form was on."""
    came_from = request.headers.get("hx-current-url") or request.headers.get("referer") or default
    parts = urlsplit(came_from)
    local = parts.path if parts.path.startswith("/") and not parts.path.startswith("//") else default
    return RedirectResponse(f"{local}?{parts.query}" if parts.query else local, status_code=303)


def render(view: View, step: str, template: str | None = None, **values: Any) -> HTMLResponse:
    """A page of a step."""
    kind, words, where = view.verdict
    return HTMLResponse(
        page(
            template or f"{step}.html",
            view=view,
            step=step,
            steps=view.steps(step),
            verdict={"kind": kind, "words": words, "where": where},
            **values,
        )
    )
