# SPDX-License-Identifier: Apache-2.0
"""From TOML, or the tables it holds, to a Spec: every fault is found and all are reported together."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from anonfit.errors import RequestError, SpecError, listed
from anonfit.recoding.values import Values
from anonfit.runtime.strict_json import Damaged, JsonPart, read_text
from anonfit.spec.application import WEIGHT_RULES, check_application
from anonfit.spec.columns import read_column
from anonfit.spec.diversity import check_diversity, read_diversity
from anonfit.spec.engine import read_engine
from anonfit.spec.faults import ABOVE_ZERO, AT_LEAST_ZERO, FRACTION, SHARE, Faults
from anonfit.spec.model import (
    VERSION,
    DataSpec,
    MethodSpec,
    OutputSpec,
    PrivacySpec,
    SelectionSpec,
    Spec,
)
from anonfit.spec.refining import NONE, check_refining, read_criterion, read_quasi_identifiers, read_start
from anonfit.spec.trees import POPULATIONS, VARIANTS, check_tree, read_max_spans, read_pruning
from anonfit.spec.workload import check_workload, read_workload
from anonfit.tables.formats import FORMATS
from anonfit.tables.scales import CutPoints
from anonfit.tables.schema import Role

__all__ = ["parse_spec", "public_spec", "read_spec", "spec_of", "with_settings"]

PUBLIC = ("version", "data", "columns", "privacy", "output")
PUBLIC_TOO = ("workload", "method", "decisions")
HIDDEN = {"data": ("source", "table", "query"), "workload": ("query_log",), "method": ("start",)}
"""Settings that lead to other files: nobody who reads a release is led to them."""
MOST_SELECTIONS = 1_000_000
DEEPEST_SETTING = 10
"""Names in the key of a setting."""
SECTIONS = ("version", "decisions", "data", "columns", "privacy", "workload", "method", "engine", "output")
CRITERIA = ("auto", "median", "infogain", "lsd", "selection", "weighted", "clustering", "explore")


def _data(table: dict[str, Any], faults: Faults) -> DataSpec:
    faults.unknown(
        table, ("source", "missing", "missing_policy", "default_role", "delimiter", "header", "table", "query"), "data"
    )
    role = faults.choice(table, "default_role", "data", Role, None)
    if role is not None and role != Role.INSENSITIVE:
        faults.add(
            f"data.default_role = '{role}': only 'insensitive' can be a default; name the columns of every other role."
        )
        role = None
    delimiter = faults.kind(table, "delimiter", "data", str, "one character", None)
    if delimiter is not None and (len(delimiter) != 1 or not delimiter.isascii() or delimiter in '\0\r\n"'):
        faults.add(f"data.delimiter must be one ASCII character, no quote and no line end; found {delimiter!r}.")
        delimiter = None
    return DataSpec(
        source=table.get("source"),
        missing=faults.texts(table, "missing", "data", ("",)),
        missing_policy=faults.choice(table, "missing_policy", "data", ("category", "drop", "error"), "category"),
        default_role=Role(role) if role else None,
        delimiter=delimiter,
        header=faults.kind(table, "header", "data", bool, "true or false", None),
        table=faults.kind(table, "table", "data", str, "the name of a table", None),
        query=faults.kind(table, "query", "data", str, "a query", None),
    )


def _privacy(table: dict[str, Any], faults: Faults) -> PrivacySpec:
    faults.unknown(table, [setting.name for setting in fields(PrivacySpec)], "privacy")
    if "k" not in table:
        faults.add(
            "privacy.k is missing: how many persons must share every released combination? 10 is a common start."
        )
    k = faults.kind(table, "k", "privacy", int, "a whole number", 1)
    if k < 1:
        faults.add(f"privacy.k must be at least 1; found {k}.")
    limit = faults.kind(
        table, "suppression_limit", "privacy", (int, float), "a fraction of the records such as 0.05", 0.0
    )
    if not FRACTION.have(limit):
        faults.add(f"privacy.suppression_limit is a fraction between 0 and 1; found {limit} (write 0.05 for 5 %).")
        limit = 0.0
    return PrivacySpec(
        k=max(k, 1),
        suppression_limit=float(limit),
        max_confidence=faults.number(table, "max_confidence", "privacy", SHARE, 1.0),
        diversity=read_diversity(table.get("diversity", ()), faults),
        quasi_identifiers=read_quasi_identifiers(table.get("quasi_identifiers", NONE), faults),
        attack_limit=faults.number(table, "attack_limit", "privacy", FRACTION, 1.0),
        class_is_public=faults.kind(table, "class_is_public", "privacy", bool, "true or false", False),
    )


def _method(table: dict[str, Any], faults: Faults) -> MethodSpec:
    faults.unknown(table, [setting.name for setting in fields(MethodSpec)], "method")
    algorithm = faults.choice(table, "algorithm", "method", ("mondrian", "tdr", "tree"), "mondrian")
    budget = faults.number(table, "time_budget", "method", ABOVE_ZERO, 0.0)
    return MethodSpec(
        algorithm=algorithm,
        criterion=read_criterion(table, algorithm, CRITERIA, faults),
        cut_points=CutPoints(faults.choice(table, "cut_points", "method", CutPoints, "simplest")),
        seed=faults.kind(table, "seed", "method", int, "a whole number", 0),
        candidates=faults.choice(table, "candidates", "method", ("boundary", "all"), "boundary"),
        split_on=faults.texts(table, "split_on", "method", ()),
        weight_rule=faults.choice(table, "weight_rule", "method", WEIGHT_RULES, None),
        alpha=faults.number(table, "alpha", "method", FRACTION, 0.5),
        beta=faults.number(table, "beta", "method", FRACTION, 0.25),
        gamma=faults.number(table, "gamma", "method", FRACTION, 0.25),
        min_gain=faults.number(table, "min_gain", "method", AT_LEAST_ZERO, 0.0),
        average=faults.choice(table, "average", "method", ("containing", "all"), "containing"),
        suppression=faults.choice(table, "suppression", "method", ("all", "best_gain"), "all"),
        zero_gain=faults.kind(table, "zero_gain", "method", bool, "true or false", False),
        time_budget=budget or None,
        variant=faults.choice(table, "variant", "method", VARIANTS, "c45"),
        pruning=read_pruning(table, faults),
        max_spans=read_max_spans(table, faults),
        start=read_start(table, faults),
    )


def _output(table: dict[str, Any], faults: Faults) -> OutputSpec:
    faults.unknown(table, [setting.name for setting in fields(OutputSpec)], "output")
    return OutputSpec(
        format=faults.choice(table, "format", "output", tuple(FORMATS), "parquet"),
        values=Values(faults.choice(table, "values", "output", Values, "labels")),
        regions=faults.choice(table, "regions", "output", ("domain", "observed"), "domain"),
        order=faults.choice(table, "order", "output", ("sorted", "original"), "sorted"),
        consent=faults.kind(table, "consent", "output", bool, "true or false", False),
        populations=faults.choice(table, "populations", "output", POPULATIONS, "exact"),
    )


def spec_of(tables: Mapping[str, Any], *, folder: Path | None = None) -> Spec:
    """The spec of nested tables, as TOML gives them; all faults are reported in one error."""
    faults = Faults()
    top = faults.table(tables, "")
    faults.unknown(top, SECTIONS, "")
    version = top.get("version")
    if version != VERSION:
        faults.add(
            f"version must be {VERSION}; found {version!r}."
            if "version" in top
            else f"version is missing: write version = {VERSION} first."
        )
    columns = {}
    method = top.get("method", {})
    is_tree = isinstance(method, Mapping) and method.get("algorithm") == "tree"
    for name, table in faults.table(top.get("columns", {}), "columns").items():
        column = read_column(name, faults.table(table, f"columns.{name}"), faults, is_tree=is_tree)
        if column is not None:
            columns[name] = column
        else:
            faults.unread.add(name)
    spec = Spec(
        columns=columns,
        privacy=_privacy(faults.table(top.get("privacy", {}), "privacy"), faults),
        data=_data(faults.table(top.get("data", {}), "data"), faults),
        method=_method(faults.table(top.get("method", {}), "method"), faults),
        engine=read_engine(faults.table(top.get("engine", {}), "engine"), faults),
        output=_output(faults.table(top.get("output", {}), "output"), faults),
        workload=read_workload(faults.table(top.get("workload", {}), "workload"), faults),
        decisions=faults.choice(top, "decisions", "spec", ("accepted",), None),
        folder=folder,
    )
    _check_roles(spec, faults)
    _check_consent(spec, faults)
    check_diversity(spec, faults)
    check_workload(spec, faults)
    check_application(spec, faults)
    check_refining(spec, faults)
    check_tree(spec, faults)
    for name in ("hand_over", "sample"):
        if spec.method.algorithm != "mondrian" and getattr(spec.engine, name) is not None:
            faults.add(f"engine.{name} is not for method.algorithm = '{spec.method.algorithm}'; leave it out.")
    if faults.open or faults.found:
        raise SpecError([*_open(faults.open), *faults.found])
    return spec


def _open(questions: Mapping[str, str]) -> list[str]:
    """The questions that a spec leaves open, below a sentence that says what to do about them."""
    if not questions:
        return []
    told = f"{len(questions)} decisions are" if len(questions) > 1 else "1 decision is"
    return [
        f"{told} open in the spec: settle each of these, and remove its line 'decide = …'.",
        *(f"{where or 'the whole spec'}: {question}" for where, question in questions.items()),
    ]


GIVES_AWAY = {
    ("output", "regions", "observed"): "releases the smallest and largest value that records of each group really have",
    ("output", "order", "original"): "lets anyone who has the input's order tell which row is whose",
    ("method", "cut_points", "value"): "puts cuts at values of records, which the release then tells",
}
"""What needs consent, and why."""


def _check_consent(spec: Spec, faults: Faults) -> None:
    """Refuse what gives away values or places of records, unless that is meant; and consent to nothing."""
    asked = [(key, gives) for key, gives in GIVES_AWAY.items() if getattr(getattr(spec, key[0]), key[1]) == key[2]]
    for (section, key, word), gives_away in asked if not spec.output.consent else ():
        faults.add(f"{section}.{key} = '{word}' {gives_away}; write consent = true in [output] if that is meant.")
    if spec.output.consent and not asked and not faults.within("output") and not faults.within("method"):
        words = ", ".join(f"{section}.{key} = '{word}'" for section, key, word in GIVES_AWAY)
        faults.add(f"output.consent = true, and nothing needs it: it is for {words}; remove it.")


def _check_roles(spec: Spec, faults: Faults) -> None:
    """Faults between columns."""
    if not spec.of_role(Role.QUASI_IDENTIFIER) and not faults.found:
        faults.add(
            "no column is a quasi-identifier: name those that someone could know of a person, or nothing is protected."
        )
    for role in (Role.ENTITY, Role.COUNT, Role.SAMPLE_WEIGHT):
        names = spec.of_role(role)
        if len(names) > 1:
            faults.add(f"only one column can be '{role}'; found {listed(names)}.")
    if spec.of_role(Role.ENTITY) and spec.of_role(Role.COUNT):
        faults.add(
            "a table has an entity column or a count column, not both: a row is a person's, or stands for several."
        )


def public_spec(tables: Mapping[str, Any]) -> Spec:
    """The spec of a release's manifest, whose tables `spec_writing.public_tables` made.

    Its selections are only counted there, so each is one that says nothing; what a distance is measured on stands
    with the demand instead of the column; and the usual weight rule is told whether there are weights or not.
    """
    try:
        return _public_spec(JsonPart(tables, "spec").table(PUBLIC, PUBLIC_TOO))
    except Damaged as error:
        raise SpecError([f"{error}; the manifest is damaged."]) from None


def _public_spec(sections: dict[str, JsonPart]) -> Spec:
    for name, hidden in HIDDEN.items():
        if name in sections and (told := [key for key in hidden if key in sections[name].named()]):
            raise sections[name].refused(f"has {listed(told)}, which no manifest tells")
    tables = {name: part.value for name, part in sections.items()}
    privacy, workload, method = (
        dict(sections[name].plain()) if name in sections else {} for name in ("privacy", "workload", "method")
    )
    if method.get("weight_rule") == "first":
        del method["weight_rule"]
    columns = {name: _public_column(part) for name, part in sections["columns"].named().items()}
    demands = JsonPart(privacy.get("diversity", []), "spec.privacy.diversity")
    privacy["diversity"] = [_to_column(demand, columns) for demand in demands.items()]
    selections = JsonPart(workload.pop("selections", 0), "spec.workload.selections").whole(0, MOST_SELECTIONS)
    by_selection = selections > 0 and method.get("criterion") == "selection"
    if by_selection:
        del method["criterion"]
    parts = {"columns": columns, "privacy": privacy, "workload": workload, "method": method}
    if method.get("cut_points") == "value":  # earlier releases of this kind say nothing of consent, and are out already
        parts["output"] = {**tables.get("output", {}), "consent": True}
    spec = spec_of({**tables, **parts})
    return replace(
        spec,
        workload=replace(spec.workload, selections=(SelectionSpec(),) * selections),
        method=replace(spec.method, criterion="selection") if by_selection else spec.method,
    )


def _public_column(part: JsonPart) -> dict[str, Any]:
    found = part.table(("role",), ("type", "split", "date_format", "release", "order", "diversity", "reason"))
    return {name: entry.value for name, entry in found.items()}


def _to_column(demand: JsonPart, columns: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """A demand without the taxonomy or order of its column, which is given them."""
    found = demand.named()
    column = columns.get(found["column"].text() if "column" in found else "", {})
    if "taxonomy" in found:
        column["taxonomy"] = found.pop("taxonomy").plain()
    if "order" in found:
        column |= {"type": "ordinal", "order": found.pop("order").texts()}
    return {name: part.value for name, part in found.items()}


def parse_spec(text: str, *, folder: Path | None = None) -> Spec:
    """The spec of a TOML text."""
    return spec_of(parse_toml(text, "the spec"), folder=folder)


def parse_toml(text: str, what: str) -> dict[str, Any]:
    """The tables of a TOML text; `what` is what a message calls it."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        fault = str(error)
    except RecursionError:
        fault = "it is nested too deeply"
    except ValueError:  # what TOML allows and Python cannot hold, such as a number of thousands of digits
        fault = "it holds a number or date that is beyond all bounds"
    raise SpecError([f"{what} is not TOML: {fault}."])


def read_tables(path: str | Path) -> dict[str, Any]:
    """The tables of a spec file, not yet checked."""
    return parse_toml(read_text(Path(path), "spec file", RequestError, megabytes=16), str(path))


def with_settings(tables: Mapping[str, Any], settings: Iterable[str]) -> dict[str, Any]:
    """Tables with settings such as `privacy.k=20` put in; values are read as TOML, and as texts where they are none."""
    found: dict[str, Any] = dict(tables)
    for setting in settings:
        key, equals, text = setting.partition("=")
        names = _names_of(key)
        if not equals or not names:
            raise RequestError(f"--set {setting!r:.100}: write a key and a value, for example --set privacy.k=20.")
        if len(names) > DEEPEST_SETTING:
            raise RequestError(f"--set {setting!r:.100}: no setting is that deep.")
        found = _put(found, names, _value_of(text), setting)
    return found


def _value_of(text: str) -> Any:
    """A value as TOML reads it, if the text is one value and nothing more; else the text."""
    try:
        found = parse_toml(f"value = {text}", "the value")
    except SpecError:
        return text
    return found["value"] if list(found) == ["value"] else text


def _put(place: Any, names: list[str], value: Any, setting: str, at: str = "") -> Any:
    """A copy of a table, or of a list whose entries are named by their number from 0, with a value put in."""
    if not names:
        return value
    name, rest = names[0], names[1:]
    inside = f"{at}.{name}" if at else name
    if isinstance(place, list):
        if not name.isdecimal() or len(name) > 9 or int(name) >= len(place):
            raise RequestError(f"--set {setting!r}: {at} is a list of {len(place)}; its entries are {at}.0 and so on.")
        number = int(name)
        return [*place[:number], _put(place[number], rest, value, setting, inside), *place[number + 1 :]]
    if not isinstance(place, Mapping):
        raise RequestError(f"--set {setting!r}: {at} is not a table.")
    return {**place, name: _put(place.get(name, {}), rest, value, setting, inside)}


def _names_of(key: str) -> list[str]:
    """The names of a dotted key, as TOML reads it: those in quotes may hold dots. None if it is no key."""
    try:
        found: Any = parse_toml(f"{key} = 0", "the key")
    except SpecError:
        return []
    names = []
    while isinstance(found, dict):
        if len(found) != 1:
            return []
        names.append(next(iter(found)))
        found = found[names[-1]]
    return names


def read_spec(path: str | Path, settings: Iterable[str] = ()) -> Spec:
    """The spec of a file, with settings of the command line put in."""
    folder = Path(path).resolve().parent
    spec = spec_of(with_settings(read_tables(path), settings), folder=folder)
    return replace(spec, folder=folder)
