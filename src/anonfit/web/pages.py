# SPDX-License-Identifier: Apache-2.0
"""The steps Table and Columns, and the spec beside every page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import RedirectResponse, Response
from starlette.datastructures import FormData, UploadFile

from anonfit.errors import RequestError
from anonfit.spec.kinds import Setting
from anonfit.spec.parse import parse_toml
from anonfit.spec.settings import SECTIONS
from anonfit.tables.schema import ColumnType, Role
from anonfit.tables.sources import is_database
from anonfit.web.answers import say, texts
from anonfit.web.editing import set_role, set_type, set_value, settle, table_of
from anonfit.web.views import FIRST_MISSING, View, back, flash, render, view_of

router = APIRouter()
NOT_READING = ("source", "table", "query", "missing_policy", "default_role")
PAGE_OF_COLUMNS = 400


async def form_of(request: Request) -> AsyncIterator[FormData]:
    """The fields of a form; what is larger than a piece is on the disk already, and goes with the request."""
    async with request.form(max_files=4, max_fields=4000) as form:
        yield form


Shown = Annotated[View, Depends(view_of)]
Form = Annotated[FormData, Depends(form_of)]


def field(form: FormData, name: str, default: str = "") -> str:
    """A text of a form."""
    value = form.get(name, default)
    return value if isinstance(value, str) else default


@router.get("/")
def first(request: Request) -> Response:
    """To the step where something is to be done; what is to be told is told there."""
    view = View(request.app.state.jobs.space, request.app.state.jobs)
    return RedirectResponse(f"/{view.verdict[2] if view.source else 'table'}", status_code=303)


# --- 1. Table ---------------------------------------------------------------------------------------------------


@router.get("/table")
def table(view: Shown, wait: bool = False) -> Response:
    """Choose a table and see how it is read."""
    profile = view.profile
    if profile is None and wait and view.source:
        profile = view.look()
    return render(view, "table", profile=profile, files=_files(view), controls=_controls(view))


def _files(view: View) -> list[dict[str, Any]]:
    """The tables of the folder; those that look like hierarchies stand apart."""
    named = [(name, bytes_, name.lower()) for name, bytes_ in view.space.tables()]
    words = ("hierarch", "taxonom")
    return [
        {"name": name, "bytes": held, "is_hierarchy": any(word in low for word in words)} for name, held, low in named
    ]


def _controls(view: View) -> list[dict[str, Any]]:
    """The settings that say how a table is read, as they are declared."""
    found = []
    for setting in SECTIONS["data"].settings:
        if setting.name in NOT_READING:
            continue
        value = view.data.get(setting.name)
        found.append(
            {
                "name": setting.name,
                "label": texts().get(f"reading.{setting.name}", setting.name.replace("_", " ")),
                "help": setting.doc.replace("`", ""),
                "value": ", ".join(value) if isinstance(value, list) else "" if value is None else _text(value),
                "choices": ["true", "false"] if setting.name == "header" else None,
            }
        )
    return found


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else {"\t": "\\t"}.get(str(value), str(value))


@router.post("/table/upload")
def upload(request: Request, view: Shown, form: Form) -> Response:
    """Take a table that was dropped or chosen, and look at it."""
    sent = form.get("file")
    if not isinstance(sent, UploadFile) or not sent.filename:
        raise RequestError(say("table.no_file"))
    return _take(request, view, {"source": view.space.upload(sent.filename, sent.file)})


@router.post("/table/choose")
def choose(request: Request, view: Shown, form: Form) -> Response:
    """Take a file of the folder, or a table of a database."""
    data = {"source": field(form, "source").strip()}
    if is_database(data["source"]) and (name := field(form, "table").strip()):
        data["table"] = name
    return _take(request, view, data)


def _take(request: Request, view: View, data: Mapping[str, Any]) -> Response:
    """Propose a spec for a table; the one that is there can be had back by Undo."""
    view.space.contain({"data": data})
    given = {**data, "missing": FIRST_MISSING}
    _propose(view, given)
    flash(
        request, [say("table.taken", name=data["source"].rpartition("/")[2])] if not is_database(data["source"]) else []
    )
    return RedirectResponse("/table", status_code=303)


def _propose(view: View, data: Mapping[str, Any]) -> None:
    """Write the spec that is proposed for a table."""
    text = view.look(data)["spec"]
    view.space.write(text)

    def change(document: Any) -> None:
        for key, value in data.items():
            set_value(document, ("data", key), value)

    view.space.edit(change)


@router.post("/table/remove")
def remove(view: Shown, form: Form) -> Response:
    """Remove an upload."""
    view.space.remove_upload(field(form, "source"))
    return RedirectResponse("/table", status_code=303)


@router.post("/table/reading")
def reading(view: Shown, form: Form) -> Response:
    """Read the table in another way; where it then has other columns, everything is proposed anew."""
    data = dict(view.data)
    for setting in SECTIONS["data"].settings:
        if setting.name in NOT_READING or setting.name not in form:
            continue
        value = _given(setting, field(form, setting.name))
        if value is None:
            data.pop(setting.name, None)
        else:
            data[setting.name] = value
    _reread(view, data)
    return RedirectResponse("/table", status_code=303)


def _given(setting: Setting, text: str) -> Any:
    """What somebody typed into a control, as TOML has it."""
    if setting.name == "missing":
        return [part.strip() for part in text.split(",")]
    words = text.strip()
    if not words:
        return "\t" if text == "\t" else None
    if words in ("true", "false"):
        return words == "true"
    return int(words) if words.isdigit() and setting.name != "delimiter" else {"\\t": "\t"}.get(words, words)


def _reread(view: View, data: Mapping[str, Any]) -> None:
    seen = view.look(data)
    if [column["name"] for column in seen["columns"]] != list(view.columns):
        _propose(view, data)
        return

    def change(document: Any) -> None:
        table = table_of(document, ("data",))
        for key in [key for key in table if key in view.data and key not in data]:
            del table[key]
        for key, value in data.items():
            set_value(document, ("data", key), value)

    view.space.edit(change)


@router.post("/table/suspicion")
def suspicion(view: Shown, form: Form) -> Response:
    """Answer a suspicion: it is what it looks like."""
    number = field(form, "number")
    held = (view.profile or {}).get("suspicions", [])
    if not number.isdigit() or int(number) >= len(held):
        raise RequestError(say("table.gone"))
    found = held[int(number)]
    for key, value in found["edit"].items():
        if key == "missing":
            known = list(view.data.get("missing", [""]))
            _reread(view, {**view.data, "missing": [*known, *(text for text in value if text not in known)]})
        elif key == "type":
            view.space.edit(lambda document, value=value: set_type(document, found["column"], value))  # type: ignore[misc]
        else:
            place = ("columns", found["column"], key)
            view.space.edit(lambda document, value=value, place=place: set_value(document, place, value))  # type: ignore[misc]
    return RedirectResponse("/table", status_code=303)


# --- 2. Columns -------------------------------------------------------------------------------------------------


@router.get("/columns")
def columns(
    view: Shown, wait: bool = False, find: str = "", role: str = "", combine: bool = False, start: int = 0
) -> Response:
    """Every column: its role, its type, its shape, and what is to be decided of it."""
    if view.source is None:
        return RedirectResponse("/table", status_code=303)
    profile = view.profile
    if profile is None and wait:
        profile = view.look()
    seen = {column["name"]: column for column in profile["columns"]} if profile else {}
    rows = [
        {
            "name": name,
            "number": number,
            **held,
            "seen": seen.get(name),
            "question": view.questions.get(f"columns.{name}"),
        }
        for number, (name, held) in enumerate(view.columns.items())
        if find.lower() in name.lower() and _has(held, role, f"columns.{name}" in view.questions)
    ]
    asked = {"columns": view.of_role(Role.QUASI_IDENTIFIER), "k": view.k}
    combined = view.asked("combinations", asked)
    if combined is None and combine and asked["columns"]:
        combined = view.ask("combinations", asked)
    return render(
        view,
        "columns",
        profile=profile,
        rows=rows[max(start, 0) : max(start, 0) + PAGE_OF_COLUMNS],
        found=len(rows),
        find=find,
        role=role,
        roles=list(Role),
        types=list(ColumnType),
        combined=combined,
        offered=offered_hierarchies(view),
        counts={each: len(view.of_role(each)) for each in Role},
    )


def offered_hierarchies(view: View) -> dict[str, str]:
    """Files beside the table for quasi-identifiers that have no hierarchy yet."""
    found = (view.profile or {}).get("hierarchies", {})
    open_ones = [name for name in view.of_role(Role.QUASI_IDENTIFIER) if "taxonomy" not in view.columns[name]]
    return {name: found[name]["file"] for name in open_ones if name in found}


def _has(column: Mapping[str, Any], role: str, is_open: bool) -> bool:
    return is_open if role == "open" else not role or column.get("role") == role


def usual_demand(view: View, name: str) -> dict[str, Any]:
    """What is asked of a column that becomes sensitive: names half as mixed as the table, numbers not far from it."""
    seen = next((column for column in (view.profile or {}).get("columns", ()) if column["name"] == name), None)
    if seen is not None and seen["type"] != "nominal":
        return {"model": "t-closeness", "t": 0.3}
    half = ((seen["effective"] if seen else 2.0) + 1) / 2
    mixed = next((level for level in (3.0, 2.0, 1.5, 1.2, 1.1) if level <= half), None)
    return {"model": "distinct-l", "l": 2} if mixed is None else {"model": "entropy-l", "l": mixed}


@router.post("/columns/role")
def change_role(request: Request, view: Shown, form: Form) -> Response:
    """Give a column another role."""
    name, role = _known(view, field(form, "column")), field(form, "role")
    view.space.edit(lambda document: set_role(document, name, role, usual_demand(view, name)))
    return back(request, "/columns")


@router.post("/columns/type")
def change_type(request: Request, view: Shown, form: Form) -> Response:
    """Give a column another type."""
    name = _known(view, field(form, "column"))
    view.space.edit(lambda document: set_type(document, name, field(form, "type")))
    return back(request, "/columns")


@router.post("/columns/many")
def change_many(request: Request, view: Shown, form: Form) -> Response:
    """Change all columns that are ticked at once."""
    names = [_known(view, str(name)) for name in form.getlist("column")]
    role, given, settled = field(form, "role"), field(form, "type"), field(form, "settle")
    if not names:
        raise RequestError(say("columns.none_ticked"))

    def change(document: Any) -> None:
        for name in names:
            if role:
                set_role(document, name, role, usual_demand(view, name))
            if given and document["columns"][name].get("role") not in (
                "identifier",
                "entity",
                "count",
                "sample-weight",
            ):
                set_type(document, name, given)
            if settled:
                settle(document, f"columns.{name}")

    view.space.edit(change)
    return back(request, "/columns")


@router.post("/decide")
def decide(request: Request, view: Shown, form: Form) -> Response:
    """Tick, or untick, what is to be decided."""
    place = field(form, "place")
    if field(form, "decided") == "yes":
        view.space.edit(lambda document: settle(document, place))
    else:
        name = place.removeprefix("columns.")
        seen = {column["name"]: column["decision"] for column in (view.profile or {}).get("columns", ())}
        question = seen.get(name) or say("decide.again")
        view.space.edit(lambda document: settle(document, place, question))
    return back(request, "/columns")


def _known(view: View, name: str) -> str:
    if name not in view.columns:
        raise RequestError(say("columns.unknown"))
    return name


# --- the spec ---------------------------------------------------------------------------------------------------


@router.post("/spec")
def write_spec(request: Request, view: Shown, form: Form) -> Response:
    """Take a text of the spec that was edited by hand."""
    text = field(form, "text").replace("\r\n", "\n")
    if "…@" in text or "=…" in text:
        raise RequestError(say("spec.hidden"))
    view.space.contain(parse_toml(text, "the spec"))
    view.space.write(text, seen=field(form, "seen"))
    return back(request)


@router.post("/spec/undo")
def undo(request: Request, view: Shown) -> Response:
    """Take back the last change of the spec."""
    if not view.space.undo():
        raise RequestError(say("spec.nothing_to_undo"))
    return back(request)


@router.get("/spec.toml")
def download_spec(view: Shown) -> Response:
    """The spec as a file."""
    headers = {"content-disposition": 'attachment; filename="spec.toml"'}
    return Response(view.text, media_type="application/toml", headers=headers)


@router.post("/ticket")
def ticket(request: Request) -> Response:
    """A one-time link for another browser."""
    link = f"{request.url.scheme}://{request.url.netloc}/?token={request.app.state.keys.ticket()}"
    flash(request, [say("page.another", link=link)])
    return back(request)
