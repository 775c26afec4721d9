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
from anonfit.spec.parse import parse_spec
from anonfit.web.answers import page, say
from anonfit.web.editing import questions_of
from anonfit.web.jobs import Job, Jobs
from anonfit.web.workspace import Workspace, mark, without_secrets

STEPS = ("table", "columns", "demands", "explore", "utility", "risk", "handover")
READING = ("missing_policy", "decide", "default_role")
"""Keys of `[data]` that do not change how a table is read."""
FIRST_MISSING = ["", "?", "NA"]


@dataclass(frozen=True)
class WorkspaceView:
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

    @cached_property
    def seen(self) -> dict[str, dict[str, Any]]:
        """What was seen of each column, as far as somebody looked."""
        return {column["name"]: column for column in (self.profile or {}).get("columns", ())}

    def look(self, data: Mapping[str, Any] | None = None, *, anew: bool = False) -> dict[str, Any]:
        """Look at the table, or at another one."""
        data = self.data if data is None else dict(data)
        state = self.space.state_of(data.get("source"))
        return self.jobs.ask("look", {"data": data}, state=state, seconds=300, anew=anew)

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
    def faults(self) -> tuple[str, ...]:
        """The faults of the spec, without open questions."""
        try:
            self.space.contain(self.tables)
            if self.text:
                parse_spec(self.text, folder=self.space.root)
        except SpecError as error:
            return error.faults[1 + len(self.questions) :] if self.questions else error.faults
        except AnonfitError as error:
            return (str(error),)
        return ()

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
        return self.source is not None and not self.questions and not self.faults

    @cached_property
    def verdict(self) -> tuple[str, str, str]:
        """One line on how things stand: its kind, its words, and the step where something is to be done."""
        if self.source is None:
            return "open", say("verdict.no_table"), "table"
        if busy := [job for job in self.runs if not job.is_over]:
            job = min(busy, key=lambda job: (job.state != "running", job.number))
            stages = self.jobs.stages(job.id)
            name = stages[-1]["stage"] if stages else say("verdict.waiting")
            words = say("verdict.running", number=job.number, stage=name)
            return "busy", words + (say("verdict.behind", number=len(busy) - 1) if busy[1:] else ""), "explore"
        if self.questions:
            where = "columns" if any(place.startswith("columns.") for place in self.questions) else "demands"
            return "open", say("verdict.questions", number=len(self.questions)), where
        if self.faults:
            first, more = self.faults[0], len(self.faults) - 1
            return "bad", first + (say("verdict.more", number=more) if more else ""), _step_of(first)
        return self._of_runs()

    def _of_runs(self) -> tuple[str, str, str]:
        same = next((job for job in self.runs if job.params.get("mark") == self.mark), None)
        if same is None:
            others = any(job.state == "done" for job in self.runs)
            return "ready", say("verdict.ready_again") if others else say("verdict.ready"), "explore"
        if same.state == "done":
            verdict = self.jobs.result(same.id).get("verdict", {})
            met, remarks = verdict.get("met", []), len(verdict.get("not_asked", []))
            words = met[0] if met else say("verdict.done")
            words += say("verdict.remarks", number=remarks) if remarks else ""
            return "good", say("verdict.released", number=same.number, words=words), "handover"
        if same.state == "cancelled":
            return "ready", say("verdict.cancelled", number=same.number), "explore"
        words = str(same.error["message"]) if same.error else ""
        is_asked = same.error is not None and same.error["kind"] == "Infeasible"
        return "bad", say("verdict.failed", number=same.number, words=words), "demands" if is_asked else "explore"

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


def _step_of(fault: str) -> str:
    """The step where a fault is mended."""
    if fault.startswith("columns.") and "nothing is asked" not in fault:
        return "columns"
    return "table" if fault.startswith(("data.", "version")) else "demands"


def view_of(request: Request) -> WorkspaceView:
    """The state of the workspace, with what is to be told once."""
    state = request.app.state
    return WorkspaceView(state.jobs.space, state.jobs, tuple(state.flashes.pop(_session(request), ())))


def _session(request: Request) -> str:
    return str(getattr(request.state, "session", ""))


def flash(request: Request, words: Sequence[str]) -> None:
    """Tell something on the next page."""
    request.app.state.flashes.setdefault(_session(request), []).extend(words)


def to(path: str) -> RedirectResponse:
    """To another page, after a form was taken."""
    return RedirectResponse(path, status_code=303)


def back(request: Request, default: str = "/") -> RedirectResponse:
    """To the page that a form was on."""
    parts = urlsplit(request.headers.get("hx-current-url") or request.headers.get("referer") or default)
    local = parts.path if parts.path.startswith("/") and not parts.path.startswith("//") else default
    return to(f"{local}?{parts.query}" if parts.query else local)


def render(view: WorkspaceView, step: str, template: str | None = None, /, **values: Any) -> HTMLResponse:
    """A page of a step."""
    verdict = dict(zip(("kind", "words", "where"), view.verdict, strict=True))
    name = template or f"{step}.html"
    return HTMLResponse(page(name, view=view, step=step, steps=view.steps(step), verdict=verdict, **values))
