# SPDX-License-Identifier: Apache-2.0
"""The step Demands and purpose: what every group must hold, against which attacker, and what the release is for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import tomlkit
from fastapi import APIRouter
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.datastructures import FormData, UploadFile

from anonfit.auditing.request import THRESHOLDS
from anonfit.criteria.objectives import ALGORITHMS
from anonfit.errors import AnonfitError, RequestError
from anonfit.privacy.catalogue import MODELS
from anonfit.recoding.values import Values
from anonfit.tables.schema import Role
from anonfit.tables.sources import FORMATS
from anonfit.web.answers import page, say
from anonfit.web.editing import (
    add_demand,
    demands_of,
    number_of,
    parameters_of,
    remove_demands,
    set_role,
    set_value,
    table_of,
    waive,
)
from anonfit.web.pages import Form, Shown, field
from anonfit.web.views import View, render

router = APIRouter()
PRESETS: Mapping[str, Mapping[str, Any]] = {
    **{each.name: {"k": each.size, "source": each.source} for each in THRESHOLDS},
    "cms": {"k": 11, "source": "CMS cell size suppression policy: no cell of 1 to 10 persons (HIPAA limited data)"},
}
SETTINGS: Mapping[str, str] = {
    "privacy.k": "whole",
    "privacy.suppression_limit": "number",
    "privacy.max_confidence": "number",
    "privacy.attack_limit": "number",
    "method.algorithm": "text",
    "method.criterion": "text",
    "output.format": "text",
    "output.values": "text",
    "data.missing_policy": "text",
}
"""Settings that a form of this step sets, and what they hold."""
OPERATORS = ("=", "<>", "<", "<=", ">", ">=", "in", "is null", "is not null")
SIMPLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
NUMBER = re.compile(r"-?\d+(\.\d+)?")


@router.get("/demands")
def demands(view: Shown) -> Response:
    """What is asked, and for what."""
    if view.source is None:
        return RedirectResponse("/table", status_code=303)
    privacy, workload = view.tables.get("privacy", {}), view.tables.get("workload", {})
    seen = {column["name"]: column for column in (view.profile or {}).get("columns", ())}
    return render(
        view,
        "demands",
        privacy=privacy,
        workload=workload,
        method=view.tables.get("method", {}),
        output=view.tables.get("output", {}),
        presets=PRESETS,
        models=MODELS,
        seen=seen,
        profile=view.profile,
        sensitive=[_sensitive(view, name) for name in view.of_role(Role.SENSITIVE)],
        targets=_targets(view),
        algorithms={name: each.criteria for name, each in ALGORITHMS.items() if not each.grows_tree},
        formats=tuple(FORMATS),
        values=list(Values),
        operators=OPERATORS,
    )


def _sensitive(view: View, name: str) -> dict[str, Any]:
    """A sensitive column, with what is asked of it."""
    asked = [
        {"number": number, **demand}
        for number, demand in enumerate(demands_of(view.tables))
        if demand["column"] == name
    ]
    return {"name": name, "demands": asked, "waiver": view.columns[name].get("reason")}


def _targets(view: View) -> list[str]:
    listed = view.tables.get("workload", {}).get("targets")
    if listed is None:
        return view.of_role(Role.TARGET)
    return [entry if isinstance(entry, str) else str(entry.get("column")) for entry in listed]


@router.post("/demands/set")
def set_settings(view: Shown, form: Form) -> Response:
    """Set what the fields of a form say; an empty one takes the setting away."""

    def change(document: Any) -> None:
        for name, kind in SETTINGS.items():
            if name not in form:
                continue
            text = field(form, name).strip()
            value = None if not text else text if kind == "text" else number_of(text, whole=kind == "whole")
            if name == "privacy.suppression_limit" and value is not None:
                value = float(value)
            set_value(document, name.split("."), value)
            if name == "method.algorithm":
                set_value(document, ("method", "criterion"), None)

    view.space.edit(change)
    return _to()


@router.post("/demands/preset")
def preset(view: Shown, form: Form) -> Response:
    """Take the k of a preset."""
    name = field(form, "preset")
    if name not in PRESETS:
        raise RequestError(say("demands.no_preset"))
    view.space.edit(lambda document: set_value(document, ("privacy", "k"), PRESETS[name]["k"]))
    return _to()


@router.post("/demands/ask")
def ask(view: Shown, form: Form) -> Response:
    """Ask something of a sensitive column."""
    name, model = _column(view, form), field(form, "model")
    given = {key.partition(":")[2]: str(value) for key, value in form.items() if key.startswith(f"{model}:")}
    demand = {"column": name, "model": model, **parameters_of(model, given)}
    view.space.edit(lambda document: add_demand(document, demand))
    return _to()


@router.post("/demands/drop")
def drop(view: Shown, form: Form) -> Response:
    """Take back what is asked of a sensitive column."""
    name, number = _column(view, form), int(number_of(field(form, "number"), whole=True))
    view.space.edit(lambda document: remove_demands(document, name, number))
    return _to()


@router.post("/demands/waive")
def waiver(view: Shown, form: Form) -> Response:
    """Ask nothing of a sensitive column, for a reason that is published."""
    name = _column(view, form)
    view.space.edit(lambda document: waive(document, name, field(form, "reason")))
    return _to()


# --- the purpose ------------------------------------------------------------------------------------------------


@router.post("/demands/target")
def target(view: Shown, form: Form) -> Response:
    """Predict a column, or no longer."""
    name = _column(view, form)
    listed, is_new = _targets(view), field(form, "act") == "add"

    def change(document: Any) -> None:
        is_known = view.columns[name].get("role") == Role.QUASI_IDENTIFIER
        if is_new and not is_known:
            set_role(document, name, Role.TARGET)
        wanted = (
            [*listed, name] if is_new and name not in listed else [each for each in listed if each != name or is_new]
        )
        if not is_new and not is_known:
            set_role(document, name, Role.INSENSITIVE)
        held = {entry if isinstance(entry, str) else entry["column"]: entry for entry in _entries(view)}
        set_value(document, ("workload", "targets"), [held.get(each, each) for each in wanted] or None)

    view.space.edit(change)
    return _to()


def _entries(view: View) -> list[Any]:
    return list(view.tables.get("workload", {}).get("targets", []))


def where_of(view: View, form: FormData) -> str:
    """The condition that was built by clicking, as SQL."""
    if text := field(form, "where").strip():
        return text
    parts = []
    rows = zip(form.getlist("column"), form.getlist("operator"), form.getlist("value"), strict=False)
    for name, operator, value in ((str(a), str(b), str(c).strip()) for a, b, c in rows):
        if not name:
            continue
        if name not in view.columns or operator not in OPERATORS:
            raise RequestError(say("columns.unknown"))
        written = name if SIMPLE.fullmatch(name) else '"' + name.replace('"', '""') + '"'
        if operator.startswith("is"):
            parts.append(f"{written} {operator}")
        elif value:
            texts = [part.strip() for part in value.split(",")] if operator == "in" else [value]
            literals = ", ".join(_literal(view, name, text) for text in texts)
            parts.append(
                f"{written} {operator} ({literals})" if operator == "in" else f"{written} {operator} {literals}"
            )
    return " and ".join(parts)


def _literal(view: View, name: str, text: str) -> str:
    is_name = view.columns[name].get("type") in ("nominal", "ordinal", "date")
    return text if NUMBER.fullmatch(text) and not is_name else "'" + text.replace("'", "''") + "'"


@router.post("/demands/selection/preview")
def preview(view: Shown, form: Form) -> Response:
    """The condition as SQL, and how many rows it selects now."""
    where, counted, fault = "", None, None
    try:
        where = where_of(view, form)
        counted = view.ask("count", {"where": where}, seconds=30) if where else None
    except AnonfitError as error:
        fault = str(error)
    return HTMLResponse(page("selection.html", where=where, counted=counted, fault=fault))


@router.post("/demands/selection")
def selection(view: Shown, form: Form) -> Response:
    """Add a selection, or take one away."""

    def change(document: Any) -> None:
        workload = table_of(document, ("workload",))
        if (number := field(form, "remove")).isdigit():
            held = workload.get("selections", [])
            if int(number) < len(held):
                del held[int(number)]
            if not held:
                workload.pop("selections", None)
            return
        entry = tomlkit.table()
        if each := field(form, "each"):
            entry["each"] = each
        elif where := where_of(view, form):
            entry["where"] = where
        else:
            raise RequestError(say("demands.empty_selection"))
        if (weight := field(form, "weight").strip()) and number_of(weight) != 1:
            entry["weight"] = float(number_of(weight))
        if "selections" not in workload:
            workload["selections"] = tomlkit.aot()
        workload["selections"].append(entry)

    view.space.edit(change)
    return _to()


@router.post("/demands/weights")
def weights(view: Shown, form: Form) -> Response:
    """Say how much each quasi-identifier matters; where all matter the same, nothing is said."""
    given = {}
    for name in view.of_role(Role.QUASI_IDENTIFIER):
        if text := field(form, f"weight:{name}").strip():
            given[name] = float(number_of(text))
    told = {name: weight for name, weight in given.items() if weight != 1}
    view.space.edit(lambda document: set_value(document, ("workload", "weights"), told or None))
    return _to()


@router.post("/demands/log")
def query_log(view: Shown, form: Form) -> Response:
    """Learn from a log of queries."""
    sent = form.get("file")
    name = field(form, "path")
    if isinstance(sent, UploadFile) and sent.filename:
        name = view.space.upload(sent.filename, sent.file)
    if name:
        view.space.inside(name)
    held = None if not name else {"path": name} | ({"dialect": dialect} if (dialect := field(form, "dialect")) else {})
    view.space.edit(lambda document: set_value(document, ("workload", "query_log"), held))
    return _to()


def _column(view: View, form: FormData) -> str:
    name = field(form, "column")
    if name not in view.columns:
        raise RequestError(say("columns.unknown"))
    return name


def _to() -> Response:
    return RedirectResponse("/demands", status_code=303)
