# SPDX-License-Identifier: Apache-2.0
"""Hierarchies: the tree of a column, its builders with a preview of every level, and ARX files in and out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response
from starlette.datastructures import FormData

from anonfit.cli.taxonomies import levels_of
from anonfit.errors import AnonfitError, RequestError
from anonfit.tables.taxonomy import ROOT, Taxonomy
from anonfit.tables.taxonomy_builders import alphabetical, by_frequency, dates, from_cuts, intervals, masked
from anonfit.tables.taxonomy_files import read_taxonomy, write_taxonomy
from anonfit.web.answers import page, say
from anonfit.web.editing import number_of, put_in, table_of
from anonfit.web.pages import Form, Shown, column_of, field, needed_upload, offered_hierarchies
from anonfit.web.views import WorkspaceView, render, to
from anonfit.web.workspace import HIERARCHIES

router = APIRouter()
BUILDERS = ("intervals", "cuts", "dates", "mask", "order", "frequency", "flat")
SHOWN, DEEP = 300, 8


@router.get("/hierarchy")
def hierarchy(view: Shown, column: str, wait: bool = False) -> Response:
    """The hierarchy of a column."""
    if column not in view.columns:
        return to("/columns")
    values = (view.ask if wait else view.asked)("values", {"column": column})
    taxonomy = _of(view, column)
    return render(
        view,
        "columns",
        "hierarchy.html",
        column=column,
        values=values,
        taxonomy=taxonomy,
        file=view.columns[column].get("taxonomy"),
        tree=None if taxonomy is None else taxonomy.to_tree(),
        levels=None if taxonomy is None else _levels(taxonomy),
        unknown=_unknown(taxonomy, values),
        offered=(view.profile or {}).get("hierarchies", {}).get(column),
        builders=BUILDERS,
        usual=_usual(values),
    )


def _of(view: WorkspaceView, column: str) -> Taxonomy | None:
    """The hierarchy that the spec names."""
    name = view.columns[column].get("taxonomy")
    return read_taxonomy(view.space.inside(name), column=column) if isinstance(name, str) else None


def _unknown(taxonomy: Taxonomy | None, values: Mapping[str, Any] | None) -> list[str]:
    """The values of the table that the hierarchy does not hold."""
    import polars as pl

    from anonfit.tables.taxonomy_leaves import leaf_positions

    if taxonomy is None or values is None:
        return []
    names = [value for value, _ in values["values"]]
    if values["kind"] != "text":
        texts = pl.Series(names)
        typed = texts.str.to_date(strict=False) if values["kind"] == "date" else texts.cast(pl.Float64, strict=False)
        with suppress(AnonfitError):
            places = leaf_positions(taxonomy, typed, column="").tolist()
            return [name for name, place in zip(names, places, strict=True) if place < 0]
    return [name for name in names if name not in taxonomy.leaf_position]


def _levels(taxonomy: Taxonomy) -> list[list[tuple[str, int]]]:
    """The lowest levels: the names on each, and how many leaves each covers."""
    return [list(level.items()) for level in levels_of(taxonomy)[:DEEP]]


def _usual(values: Mapping[str, Any] | None) -> dict[str, str]:
    """What the builders begin with."""
    if values is None or not values["ends"]:
        return {"low": "0", "high": "100", "step": "5"}
    low, high = values["ends"]
    if values["kind"] == "date":
        return {"low": low[:10], "high": high[:10], "step": ""}
    first, last = float(low), float(high)
    step = next((wide for wide in (1, 5, 10, 50, 100, 500, 1000) if (last - first) / wide <= 30), (last - first) / 20)
    return {"low": f"{first // step * step:g}", "high": f"{(last // step + 1) * step:g}", "step": f"{step:g}"}


# --- building ---------------------------------------------------------------------------------------------------


def _built(view: WorkspaceView, column: str, form: FormData) -> Taxonomy:
    """The hierarchy that a builder makes of what is filled in."""
    try:
        return _made(view, column, form)
    except ValueError:
        raise RequestError(say("hierarchy.unreadable")) from None


def _made(view: WorkspaceView, column: str, form: FormData) -> Taxonomy:
    kind = field(form, "builder", "flat")
    values = view.ask("values", {"column": column})
    names = [value for value, _ in values["values"]]
    listed = _lines(form, "listed")
    if kind == "intervals":
        low, high, step = (number_of(field(form, name)) for name in ("low", "high", "step"))
        if step <= 0 or (high - low) / step > 5000:
            raise RequestError(say("hierarchy.too_fine"))
        return intervals(low, high, step=step, factor=int(number_of(field(form, "factor", "2"))))
    if kind == "cuts":
        lines = [line.replace(";", ",").split(",") for line in _lines(form, "cuts")]
        return from_cuts([[number_of(part) for part in line] for line in lines])
    if kind == "dates":
        chosen = [period for period in ("day", "month", "quarter", "year") if period in form.getlist("period")]
        first, last = (date.fromisoformat(field(form, name)[:10]) for name in ("low", "high"))
        return dates(first, last, levels=chosen or ["month", "year"])
    if kind == "mask":
        return masked([*names, *listed])
    if kind == "order":
        groups = [int(number_of(part)) for part in field(form, "groups", "5").split(",")]
        return alphabetical([*names, *listed], groups=groups)
    if kind == "frequency":
        return by_frequency(dict(values["values"]), minimum=int(number_of(field(form, "minimum"))))
    return Taxonomy.flat(list(dict.fromkeys([*names, *listed])))


def _lines(form: FormData, name: str) -> list[str]:
    return [line.strip() for line in field(form, name).splitlines() if line.strip()]


@router.post("/hierarchy/preview")
def preview(view: Shown, form: Form) -> Response:
    """What a builder would make, level by level."""
    column = column_of(view, form)
    shown: dict[str, Any] = {"levels": None, "fault": None, "unknown": []}
    try:
        taxonomy = _built(view, column, form)
    except AnonfitError as error:
        shown["fault"] = str(error)
    else:
        unknown = _unknown(taxonomy, view.ask("values", {"column": column}))
        shown |= {"levels": _levels(taxonomy), "unknown": unknown}
    return HTMLResponse(page("levels.html", column=column, **shown))


@router.post("/hierarchy/build")
def build(view: Shown, form: Form) -> Response:
    """Take what a builder makes."""
    column = column_of(view, form)
    return _save(view, column, _built(view, column, form))


@router.post("/hierarchy/use")
def use(view: Shown, form: Form) -> Response:
    """Take a file of the folder."""
    column, name = column_of(view, form), field(form, "file")
    read_taxonomy(view.space.inside(name), column=column)
    return _name(view, column, name)


@router.post("/hierarchy/use-all")
def use_all(view: Shown) -> Response:
    """Take every hierarchy that lies beside the table for the column of its name."""
    for column, file in offered_hierarchies(view).items():
        _name(view, column, file)
    return to("/columns")


@router.post("/hierarchy/upload")
def upload(view: Shown, form: Form) -> Response:
    """Take an ARX file that was sent."""
    column, name = column_of(view, form), needed_upload(view, form, HIERARCHIES)
    try:
        read_taxonomy(view.space.inside(name), column=column)
    except AnonfitError:
        view.space.inside(name).unlink()
        raise
    return _name(view, column, name)


@router.get("/hierarchy/download")
def download(view: Shown, column: str) -> Response:
    """The hierarchy as an ARX file."""
    taxonomy = _needed_hierarchy(view, column)
    place = view.space.state / "incoming" / "hierarchy.csv"
    write_taxonomy(taxonomy, place)
    body = place.read_bytes()
    place.unlink()
    headers = {"content-disposition": f'attachment; filename="{_file_name(column)}.csv"'}
    return Response(body, media_type="text/csv", headers=headers)


@router.post("/hierarchy/drop")
def drop(view: Shown, form: Form) -> Response:
    """Use no hierarchy."""
    column = column_of(view, form)
    view.space.edit(lambda document: table_of(document, ("columns", column)).pop("taxonomy", None))
    return _to(column)


def _needed_hierarchy(view: WorkspaceView, column: str) -> Taxonomy:
    taxonomy = _of(view, column) if column in view.columns else None
    if taxonomy is None:
        raise RequestError(say("hierarchy.none"))
    return taxonomy


# --- the tree ---------------------------------------------------------------------------------------------------


@router.post("/hierarchy/edit")
def edit(view: Shown, form: Form) -> Response:
    """Move, group, rename or dissolve parts of the tree."""
    column = column_of(view, form)
    tree = _needed_hierarchy(view, column).to_tree()
    chosen = [str(path) for path in form.getlist("node")]
    act, name = field(form, "act"), field(form, "name").strip()
    if act == "add":
        tree.setdefault("children", []).extend({"name": text} for text in _lines(form, "listed"))
    elif not chosen:
        raise RequestError(say("hierarchy.none_ticked"))
    elif act == "rename":
        _part(tree, chosen[0])["name"] = _needed(name)
    elif act == "dissolve":
        for path in sorted(chosen, key=_places, reverse=True):
            if path and (children := _part(tree, path).get("children")):
                place = _places(path)[-1]
                _part(tree, path.rpartition(".")[0])["children"][place : place + 1] = children
    else:
        _move(tree, chosen, field(form, "target") if act == "move" else None, name)
    _prune(tree)
    return _save(view, column, Taxonomy.from_tree(tree, column=column))


def _places(path: str) -> list[int]:
    """Where a part of the tree is: the number of the child at every step."""
    try:
        return [int(step) for step in path.split(".") if step]
    except ValueError:
        raise RequestError(say("hierarchy.gone")) from None


def _part(tree: dict[str, Any], path: str) -> dict[str, Any]:
    part = tree
    for place in _places(path):
        children = part.get("children", [])
        if not 0 <= place < len(children):
            raise RequestError(say("hierarchy.gone"))
        part = children[place]
    return part


def _move(tree: dict[str, Any], chosen: Sequence[str], target: str | None, name: str) -> None:
    """Move parts below another one, or into a new group beside the first of them."""
    if "" in chosen:
        raise RequestError(say("hierarchy.not_root"))
    top = [path for path in chosen if not any(path.startswith(f"{other}.") for other in chosen)]
    if target is not None and any(target == path or target.startswith(f"{path}.") for path in top):
        raise RequestError(say("hierarchy.into_itself"))
    parts = [_part(tree, path) for path in top]
    goal = _part(tree, target) if target is not None else None
    parents = [_part(tree, path.rpartition(".")[0]) for path in top]
    if goal is None:
        goal = {"name": _needed(name), "children": []}
        parents[0]["children"].insert(_places(top[0])[-1], goal)
    elif not goal.get("children"):
        raise RequestError(say("hierarchy.no_group"))
    for part, parent in zip(parts, parents, strict=True):
        parent["children"] = [child for child in parent["children"] if child is not part]
        goal.setdefault("children", []).append(part)


def _prune(tree: dict[str, Any]) -> None:
    """Take away groups that hold nothing any more."""
    for child in list(tree.get("children", [])):
        was_group = "children" in child
        _prune(child)
        if was_group and not child.get("children"):
            tree["children"].remove(child)


def _needed(name: str) -> str:
    if not name or name == ROOT:
        raise RequestError(say("hierarchy.needs_name"))
    return name


def _file_name(column: str) -> str:
    return "".join(sign if sign.isascii() and (sign.isalnum() or sign in "-_") else "_" for sign in column) or "column"


def _save(view: WorkspaceView, column: str, taxonomy: Taxonomy) -> Response:
    """Write the hierarchy of a column beside the spec, and name it there."""
    return _name(view, column, write_hierarchy(view, column, taxonomy))


def write_hierarchy(view: WorkspaceView, column: str, taxonomy: Taxonomy, *, prefix: str = "") -> str:
    """Write the hierarchy of a column beside the spec; the name of its file."""
    (view.space.root / HIERARCHIES).mkdir(exist_ok=True)
    name = f"{HIERARCHIES}/{prefix}{_file_name(column)}-{sorted(view.columns).index(column)}.csv"
    write_taxonomy(taxonomy, view.space.inside(name))
    return name


def _name(view: WorkspaceView, column: str, name: str) -> Response:
    """Name the file of a column's hierarchy in the spec."""
    view.space.edit(lambda document: name_hierarchy(document, column, name))
    return _to(column)


def name_hierarchy(document: Any, column: str, name: str) -> None:
    """Name the file of a column's hierarchy; what else was said of its values goes."""
    held = table_of(document, ("columns", column))
    put_in(held, "taxonomy", name)
    for key in ("domain", "order"):
        held.pop(key, None)


def _to(column: str) -> Response:
    return to(f"/hierarchy?column={quote(column)}")
