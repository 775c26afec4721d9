# SPDX-License-Identifier: Apache-2.0
"""The step Demands and purpose: what every group must hold, against which attacker, and what the release is for."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response
from starlette.datastructures import FormData

from anonfit.auditing.request import THRESHOLDS
from anonfit.criteria.objectives import ALGORITHMS
from anonfit.errors import AnonfitError, RequestError
from anonfit.privacy.catalogue import MODELS
from anonfit.recoding.values import Values
from anonfit.tables.schema import Role
from anonfit.tables.sources import FORMATS
from anonfit.web import editing, safe_harbor
from anonfit.web.answers import page, say
from anonfit.web.editing import number_of, set_value, targets_of
from anonfit.web.hierarchy_pages import name_hierarchy, write_hierarchy
from anonfit.web.pages import Form, Shown, column_of, field, uploaded
from anonfit.web.views import WorkspaceView, flash, render, to

router = APIRouter()
SAFE_HARBOR = "hipaa-safe-harbor"
PRESETS: Mapping[str, Mapping[str, Any]] = {
    **{each.name: {"k": each.size, "source": each.source} for each in THRESHOLDS},
    "hipaa-expert": {
        "k": 11,
        "source": "45 CFR 164.514(b)(1) asks an expert for a very small risk and names no number; 11 is the smallest "
        "cell that CMS lets be shown (cell size suppression policy)",
    },
    SAFE_HARBOR: {
        "k": None,
        "source": "45 CFR 164.514(b)(2) asks for no k: what leads to a person is left out, of dates the year is kept, "
        "ages above 89 stand together, and places smaller than a state are to be decided",
    },
}
SETTINGS: Mapping[str, Callable[[str], Any]] = {
    "privacy.k": lambda text: int(number_of(text)),
    "privacy.suppression_limit": lambda text: float(number_of(text)),
    "privacy.max_confidence": number_of,
    "privacy.attack_limit": number_of,
    **dict.fromkeys(("method.algorithm", "method.criterion", "output.format", "output.values"), str),
    "data.missing_policy": str,
}
"""Settings that a form of this step sets, and what becomes of the texts of their fields."""
OPERATORS = ("=", "<>", "<", "<=", ">", ">=", "in", "is null", "is not null")
SIMPLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
NUMBER = re.compile(r"-?\d+(\.\d+)?")


@router.get("/demands")
def demands(view: Shown) -> Response:
    """What is asked, and for what."""
    if view.source is None:
        return to("/table")
    asked = [
        {"number": number, **demand} for number, demand in enumerate(_section(view, "privacy").get("diversity", []))
    ]
    sensitive = [
        {
            "name": name,
            "demands": [demand for demand in asked if demand["column"] == name],
            "waiver": view.columns[name].get("reason"),
        }
        for name in view.of_role(Role.SENSITIVE)
    ]
    return render(
        view,
        "demands",
        **{name: _section(view, name) for name in ("privacy", "workload", "method", "output")},
        presets=PRESETS,
        models=MODELS,
        seen=view.seen,
        profile=view.profile,
        sensitive=sensitive,
        targets=_targets(view),
        algorithms={name: each.criteria for name, each in ALGORITHMS.items() if not each.grows_tree},
        formats=tuple(FORMATS),
        values=list(Values),
        operators=OPERATORS,
    )


def _section(view: WorkspaceView, name: str) -> Mapping[str, Any]:
    """A table of the spec; empty if there is none."""
    section: Mapping[str, Any] = view.tables.get(name, {})
    return section


def _targets(view: WorkspaceView) -> list[str]:
    entries = _section(view, "workload").get("targets")
    return view.of_role(Role.TARGET) if entries is None else targets_of(entries)


@router.post("/demands/set")
def set_settings(view: Shown, form: Form) -> Response:
    """Set what the fields of a form say; an empty one takes the setting away."""

    def change(document: Any) -> None:
        for name, read in SETTINGS.items():
            if name not in form:
                continue
            text = field(form, name).strip()
            set_value(document, name.split("."), read(text) if text else None)
            if name == "method.algorithm":
                set_value(document, ("method", "criterion"), None)

    view.space.edit(change)
    return to("/demands")


@router.post("/demands/preset")
def preset(request: Request, view: Shown, form: Form) -> Response:
    """Take a preset: its k, or what Safe Harbor asks of the columns."""
    name = field(form, "preset")
    if name not in PRESETS:
        raise RequestError(say("demands.no_preset"))
    if name == SAFE_HARBOR:
        flash(request, _take_safe_harbor(view))
    else:
        view.space.edit(lambda document: set_value(document, ("privacy", "k"), PRESETS[name]["k"]))
    return to("/demands")


def _take_safe_harbor(view: WorkspaceView) -> list[str]:
    """Ask of all columns at once what Safe Harbor asks; what was done, in sentences."""
    view.look()
    asked = list(safe_harbor.rules(view.columns, view.seen))
    files = {}
    for rule in asked:
        if (hierarchy := safe_harbor.hierarchy_of(rule, date.today())) is not None:
            files[rule.column] = write_hierarchy(view, rule.column, hierarchy, prefix="safe-harbor-")

    def change(document: Any) -> None:
        for rule in asked:
            if rule.act == "leave_out":
                editing.set_role(document, rule.column, Role.IDENTIFIER)
            elif rule.act in safe_harbor.OPEN:
                editing.settle(document, f"columns.{rule.column}", say(f"safe_harbor.decide_{rule.act}"))
            else:
                editing.set_type(document, rule.column, "date" if rule.is_date else "continuous")
                name_hierarchy(document, rule.column, files[rule.column])

    view.space.edit(change)
    acts = dict.fromkeys(rule.act for rule in asked)
    named = {act: ", ".join(rule.column for rule in asked if rule.act == act) for act in acts}
    return [say(f"safe_harbor.{act}", names=names) for act, names in named.items()] or [say("safe_harbor.nothing")]


@router.post("/demands/ask")
def ask(view: Shown, form: Form) -> Response:
    """Ask something of a sensitive column."""
    name, model = column_of(view, form), field(form, "model")
    given = {key.partition(":")[2]: str(value) for key, value in form.items() if key.startswith(f"{model}:")}
    demand = {"column": name, "model": model, **editing.parameters_of(model, given)}
    view.space.edit(lambda document: editing.add_demand(document, demand))
    return to("/demands")


@router.post("/demands/drop")
def drop(view: Shown, form: Form) -> Response:
    """Take back what is asked of a sensitive column."""
    name, number = column_of(view, form), int(number_of(field(form, "number")))
    view.space.edit(lambda document: editing.remove_demands(document, name, number))
    return to("/demands")


@router.post("/demands/waive")
def waiver(view: Shown, form: Form) -> Response:
    """Ask nothing of a sensitive column, for a reason that is published."""
    name = column_of(view, form)
    view.space.edit(lambda document: editing.waive(document, name, field(form, "reason")))
    return to("/demands")


# --- the purpose ------------------------------------------------------------------------------------------------


@router.post("/demands/target")
def target(view: Shown, form: Form) -> Response:
    """Predict a column, or no longer."""
    name, is_new = column_of(view, form), field(form, "act") == "add"
    names = [target for target in _targets(view) if target != name or is_new]
    if is_new and name not in names:
        names.append(name)
    entries = list(_section(view, "workload").get("targets", []))
    known = dict(zip(targets_of(entries), entries, strict=True))

    def change(document: Any) -> None:
        if view.columns[name].get("role") != Role.QUASI_IDENTIFIER:
            editing.set_role(document, name, Role.TARGET if is_new else Role.INSENSITIVE)
        set_value(document, ("workload", "targets"), [known.get(target, target) for target in names] or None)

    view.space.edit(change)
    return to("/demands")


def where_of(view: WorkspaceView, form: FormData) -> str:
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
            parts.append(f"{written} {operator} {f'({literals})' if operator == 'in' else literals}")
    return " and ".join(parts)


def _literal(view: WorkspaceView, name: str, text: str) -> str:
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
        if (number := field(form, "remove")).isdigit():
            editing.remove_entries(document, "workload", "selections", lambda place, _: place == int(number))
            return
        entry: dict[str, Any] = {}
        if each := field(form, "each"):
            entry["each"] = each
        elif where := where_of(view, form):
            entry["where"] = where
        else:
            raise RequestError(say("demands.empty_selection"))
        if (weight := field(form, "weight").strip()) and number_of(weight) != 1:
            entry["weight"] = float(number_of(weight))
        editing.add_entry(document, "workload", "selections", entry)

    view.space.edit(change)
    return to("/demands")


@router.post("/demands/weights")
def set_weights(view: Shown, form: Form) -> Response:
    """Say how much each quasi-identifier matters; where all matter the same, nothing is said."""
    texts = {name: field(form, f"weight:{name}").strip() for name in view.of_role(Role.QUASI_IDENTIFIER)}
    weights = {name: float(number_of(text)) for name, text in texts.items() if text and number_of(text) != 1}
    view.space.edit(lambda document: set_value(document, ("workload", "weights"), weights or None))
    return to("/demands")


@router.post("/demands/log")
def query_log(view: Shown, form: Form) -> Response:
    """Learn from a log of queries."""
    name = uploaded(view, form) or field(form, "path")
    if name:
        view.space.inside(name)
    held = None if not name else {"path": name} | ({"dialect": dialect} if (dialect := field(form, "dialect")) else {})
    view.space.edit(lambda document: set_value(document, ("workload", "query_log"), held))
    return to("/demands")
