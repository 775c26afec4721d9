# SPDX-License-Identifier: Apache-2.0
"""The steps Table and Columns, and the spec beside every page."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import tomlkit
from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, Response
from starlette.datastructures import FormData, UploadFile

from anonfit.errors import AnonfitError, RequestError
from anonfit.spec.kinds import Setting
from anonfit.spec.parse import parse_toml
from anonfit.spec.settings import SECTIONS
from anonfit.tables.schema import ColumnType, Role
from anonfit.tables.sources import FORMATS, divided, format_of, is_database
from anonfit.web.answers import page, say, texts
from anonfit.web.editing import UNTYPED, set_role, set_type, set_value, settle
from anonfit.web.views import FIRST_MISSING, WorkspaceView, back, flash, render, to, view_of
from anonfit.web.workspace import UPLOADS

router = APIRouter()
NOT_READING = ("source", "table", "query", "missing_policy", "default_role")
READING_SETTINGS = [setting for setting in SECTIONS["data"].settings if setting.name not in NOT_READING]
"""The settings that say how a table is read, as they are declared."""
PAGE_OF_COLUMNS = 400


async def form_of(request: Request) -> AsyncIterator[FormData]:
    """The fields of a form; what is larger than a piece is on the disk already, and goes with the request."""
    async with request.form(max_files=4, max_fields=4000) as form:
        yield form


Shown = Annotated[WorkspaceView, Depends(view_of)]
Form = Annotated[FormData, Depends(form_of)]


def field(form: FormData, name: str, default: str = "") -> str:
    """A text of a form."""
    value = form.get(name, default)
    return value if isinstance(value, str) else default


def parts_of(text: str) -> list[str]:
    """Texts that are written as a,b,c."""
    return [part.strip() for part in text.split(",") if part.strip()]


def column_of(view: WorkspaceView, form: FormData) -> str:
    """The column that a form is about."""
    return known_column(view, field(form, "column"))


def known_column(view: WorkspaceView, name: str) -> str:
    """A name, if it is one of the spec's columns."""
    if name not in view.columns:
        raise RequestError(say("columns.unknown"))
    return name


def uploaded(view: WorkspaceView, form: FormData, folder: str = UPLOADS) -> str:
    """The name under which the file of a form is kept; empty if none was sent."""
    sent = form.get("file")
    if not isinstance(sent, UploadFile) or not sent.filename:
        return ""
    return view.space.upload(sent.filename, sent.file, folder=folder)


def needed_upload(view: WorkspaceView, form: FormData, folder: str = UPLOADS) -> str:
    """As `uploaded`; refused if no file was sent."""
    if name := uploaded(view, form, folder):
        return name
    raise RequestError(say("table.no_file"))


@router.get("/")
def first(request: Request) -> Response:
    """To the step where something is to be done; what is to be told is told there."""
    view = WorkspaceView(request.app.state.jobs.space, request.app.state.jobs)
    return to(f"/{view.verdict[2] if view.source else 'table'}")


# --- 1. Table ---------------------------------------------------------------------------------------------------


@router.get("/table")
def table(view: Shown, wait: bool = False, how: bool = False) -> Response:
    """Choose a table and see how it is read; tables that look like hierarchies stand apart."""
    fault = None
    try:
        profile = view.look() if wait and view.source else view.profile
    except AnonfitError as error:  # the table is gone, say: another one can be taken here
        profile, fault = None, str(error)
    files = [
        {"name": name, "bytes": held, "is_hierarchy": any(word in name.lower() for word in ("hierarch", "taxonom"))}
        for name, held in view.space.tables()
    ]
    controls = [
        {
            "name": setting.name,
            "label": texts().get(f"reading.{setting.name}", setting.name.replace("_", " ")),
            "help": setting.doc.replace("`", ""),
            "value": _typed(view.data.get(setting.name)),
            "choices": ["true", "false"] if setting.name == "header" else None,
        }
        for setting in READING_SETTINGS
    ]
    return render(
        view,
        "table",
        profile=profile,
        fault=fault,
        suspicions=_suspicions(view, profile),
        files=files,
        databases=view.space.databases(),
        controls=controls,
        is_told=how or any(control["value"] for control in controls if control["name"] != "missing"),
    )


def _suspicions(view: WorkspaceView, profile: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """What looks odd and was not answered with No, each with what it is known by."""
    told = [{**each, "key": json.dumps([view.source, each])} for each in (profile or {}).get("suspicions", ())]
    return [each for each in told if each["key"] not in view.space.dismissed()]


def _typed(value: Any) -> str:
    """A setting as somebody would type it into a control."""
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case list():
            return ", ".join(value)
    return str(value).replace("\t", "\\t")


@router.post("/table/upload")
def upload(request: Request, view: Shown, form: Form) -> Response:
    """Take a table that was dropped or chosen, and look at it."""
    return _take(request, view, {"source": needed_upload(view, form)})


@router.post("/table/choose")
def choose(request: Request, view: Shown, form: Form) -> Response:
    """Take a file of the folder, or a table of a database."""
    data = {"source": field(form, "source").strip()}
    if is_database(data["source"]) and (name := field(form, "listed") or field(form, "table").strip()):
        data = {"source": divided(data["source"])[0], "table": name}
    return _take(request, view, data)


@router.post("/table/database")
def database(view: Shown, form: Form) -> Response:
    """The tables of a database, to choose one of them; they are asked for anew every time."""
    names, fault = [], None
    source = field(form, "source").strip()
    try:
        if not is_database(source):
            raise RequestError(say("table.no_database"))
        data = {"source": divided(source)[0]}
        view.space.contain({"data": data})
        names = view.jobs.ask("tables", {"data": data}, state="", seconds=60, anew=True)["tables"]
    except AnonfitError as error:
        fault = str(error)
    return HTMLResponse(page("tables.html", names=names, fault=fault))


def _take(request: Request, view: WorkspaceView, data: Mapping[str, Any]) -> Response:
    """Propose a spec for a table; the one that is there can be had back by Undo."""
    view.space.contain({"data": data})
    _propose(view, {**data, "missing": FIRST_MISSING})
    if not is_database(data["source"]):
        flash(request, [say("table.taken", name=data["source"].rpartition("/")[2])])
    return to("/table")


def _propose(view: WorkspaceView, data: Mapping[str, Any]) -> None:
    """Write the spec that is proposed for a table; its release is a file of the same kind, where that can be."""
    document = tomlkit.parse(view.look(data, anew=is_database(data["source"]))["spec"])
    for key, value in data.items():
        set_value(document, ("data", key), value)
    if not is_database(data["source"]) and (kind := format_of(Path(data["source"])).name) in FORMATS:
        set_value(document, ("output", "format"), kind)
    view.space.write(tomlkit.dumps(document))


def _set_data(view: WorkspaceView, data: Mapping[str, Any]) -> None:
    """Write how the table is read; None takes a setting away."""

    def change(document: Any) -> None:
        for key, value in data.items():
            set_value(document, ("data", key), value)

    view.space.edit(change)


@router.post("/table/remove")
def remove(view: Shown, form: Form) -> Response:
    """Remove an upload."""
    view.space.remove_upload(field(form, "source"))
    return to("/table")


@router.post("/table/reading")
def reading(view: Shown, form: Form) -> Response:
    """Read the table in another way; where it then has other columns, everything is proposed anew."""
    given = {
        setting.name: _given(setting, field(form, setting.name)) for setting in READING_SETTINGS if setting.name in form
    }
    _reread(view, {key: value for key, value in {**view.data, **given}.items() if value is not None})
    return to("/table?how=1")


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


def _reread(view: WorkspaceView, data: Mapping[str, Any]) -> None:
    if [column["name"] for column in view.look(data)["columns"]] != list(view.columns):
        _propose(view, data)
    else:
        _set_data(view, {**dict.fromkeys(view.data), **data})


@router.post("/table/suspicion")
def suspicion(view: Shown, form: Form) -> Response:
    """Answer a suspicion: it is what it looks like, or it is not."""
    key = field(form, "about")
    held = next((each for each in _suspicions(view, view.profile) if each["key"] == key), None)
    if held is None:
        raise RequestError(say("table.gone"))
    column, edit = held["column"], held["edit"]
    is_so = field(form, "answer") != "no"
    if is_so and "missing" in edit:
        known = view.data.get("missing", [""])
        _reread(view, {**view.data, "missing": list(dict.fromkeys([*known, *edit["missing"]]))})
    elif is_so and "decimal" in edit:
        _reread(view, {**view.data, **edit})
    else:
        view.space.dismiss(key)
    if is_so and "type" in edit:
        view.space.edit(lambda document: set_type(document, column, edit["type"]))
    elif is_so and "date_format" in edit:
        place = ("columns", column, "date_format")
        view.space.edit(lambda document: set_value(document, place, edit["date_format"]))
    return to("/table")


# --- 2. Columns -------------------------------------------------------------------------------------------------


@router.get("/columns")
def columns(
    view: Shown, wait: bool = False, find: str = "", role: str = "", combine: bool = False, start: int = 0
) -> Response:
    """Every column: its role, its type, its shape, and what is to be decided of it."""
    if view.source is None:
        return to("/table")
    try:
        profile = view.look() if wait else view.profile
    except AnonfitError:
        return to("/table?wait=1")
    rows = [
        {
            "name": name,
            "number": number,
            **held,
            "seen": view.seen.get(name),
            "question": view.questions.get(f"columns.{name}"),
        }
        for number, (name, held) in enumerate(view.columns.items())
        if find.lower() in name.lower()
        and (f"columns.{name}" in view.questions if role == "open" else role in ("", held.get("role")))
    ]
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
        **_uniqueness(view, combine=combine),
        offered=offered_hierarchies(view),
        counts={each: len(view.of_role(each)) for each in Role},
    )


def _uniqueness(view: WorkspaceView, *, combine: bool) -> dict[str, Any]:
    """Who is unique by each quasi-identifier, and by several together, if that was asked; what tells most is first."""
    names = view.of_role(Role.QUASI_IDENTIFIER)
    seen = [(name, view.seen[name]) for name in names if name in view.seen]
    alone = [{"columns": [name], "unique": one["unique_share"], "separation": one["separation"]} for name, one in seen]
    found = (view.ask if combine and names else view.asked)("combinations", {"columns": names, "k": view.k}) or {}
    return {
        "alone": sorted(alone, key=lambda each: (-round(each["unique"], 3), -each["separation"])),
        "combined": sorted(
            (each for each in found.get("combinations", ()) if len(each["columns"]) > 1),
            key=lambda each: (-each["unique"], -each["below_k"]),
        ),
        "left_out": found.get("left_out", ()),
    }


def offered_hierarchies(view: WorkspaceView) -> dict[str, str]:
    """Files beside the table for quasi-identifiers that have no hierarchy yet."""
    found = (view.profile or {}).get("hierarchies", {})
    open_ones = [name for name in view.of_role(Role.QUASI_IDENTIFIER) if "taxonomy" not in view.columns[name]]
    return {name: found[name]["file"] for name in open_ones if name in found}


def usual_demand(view: WorkspaceView, name: str) -> dict[str, Any]:
    """What is asked of a column that becomes sensitive: names half as mixed as the table, numbers not far from it."""
    seen = view.seen.get(name)
    if seen is not None and seen["type"] != "nominal":
        return {"model": "t-closeness", "t": 0.3}
    half = ((seen["effective"] if seen else 2.0) + 1) / 2
    mixed = next((level for level in (3.0, 2.0, 1.5, 1.2, 1.1) if level <= half), None)
    return {"model": "distinct-l", "l": 2} if mixed is None else {"model": "entropy-l", "l": mixed}


@router.post("/columns/role")
def change_role(request: Request, view: Shown, form: Form) -> Response:
    """Give a column another role."""
    name, role = column_of(view, form), field(form, "role")
    view.space.edit(lambda document: set_role(document, name, role, usual_demand(view, name)))
    return back(request, "/columns")


@router.post("/columns/type")
def change_type(request: Request, view: Shown, form: Form) -> Response:
    """Give a column another type."""
    name = column_of(view, form)
    view.space.edit(lambda document: set_type(document, name, field(form, "type")))
    return back(request, "/columns")


@router.post("/columns/many")
def change_many(request: Request, view: Shown, form: Form) -> Response:
    """Change all columns that are ticked at once."""
    names = [known_column(view, str(name)) for name in form.getlist("column")]
    role, given, settled = field(form, "role"), field(form, "type"), field(form, "settle")
    if not names:
        raise RequestError(say("columns.none_ticked"))

    def change(document: Any) -> None:
        for name in names:
            if role:
                set_role(document, name, role, usual_demand(view, name))
            if given and document["columns"][name].get("role") not in UNTYPED:
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
        seen = view.seen.get(place.removeprefix("columns."), {})
        question = seen.get("decision") or say("decide.again")
        view.space.edit(lambda document: settle(document, place, question))
    return back(request, "/columns")


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
