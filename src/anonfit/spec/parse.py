# SPDX-License-Identifier: Apache-2.0
"""From TOML, or the tables it holds, to a Spec: every fault is found and all are reported together."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from anonfit.errors import RequestError, SpecError, listed
from anonfit.runtime.strict_json import Damaged, JsonPart, read_text
from anonfit.spec.check import check_algorithm, check_application, check_workload
from anonfit.spec.columns import COLUMN, distance_of, read_column, without_role
from anonfit.spec.kinds import Faults, Given, Public, read_section
from anonfit.spec.model import VERSION, ColumnSpec, DiversitySpec, ProposedSpec, SelectionSpec, Spec
from anonfit.spec.settings import SECTIONS
from anonfit.tables.schema import ColumnType, Role

PUBLIC = ("version", "data", "columns", "privacy", "output")
PUBLIC_TOO = ("workload", "method", "decisions", "report")
MOST_SELECTIONS = 1_000_000
DEEPEST_SETTING = 10
"""Names in the key of a setting."""
TOP = ("version", "decisions", "data", "columns", "privacy", "workload", "method", "engine", "output", "report")


def spec_of(tables: Mapping[str, Any], *, folder: Path | None = None) -> Spec:
    """The spec of nested tables, as TOML gives them; all faults are reported in one error."""
    faults = Faults()
    top = faults.table(tables, "")
    faults.unknown(top, TOP, "")
    version = top.get("version")
    if version != VERSION:
        faults.add(
            f"version must be {VERSION}; found {version!r}."
            if "version" in top
            else f"version is missing: write version = {VERSION} first."
        )
    columns = _read_columns(top, faults)
    parts = {name: _read(name, faults.table(top.get(name, {}), name), faults) for name in SECTIONS}
    decisions = Given(top, "decisions", "spec", None, faults).choice(("accepted",))
    spec = Spec(columns=columns, **parts, decisions=decisions, folder=folder)
    _check_roles(spec, faults)
    _check_consent(spec, faults)
    _check_diversity(spec, faults)
    check_workload(spec, faults)
    check_application(spec, faults)
    check_algorithm(spec, faults)
    if faults.open or faults.sentences:
        raise SpecError([*open_questions(faults.open), *faults.sentences])
    return spec


def _read_columns(top: Mapping[str, Any], faults: Faults) -> dict[str, ColumnSpec]:
    columns = {}
    method = top.get("method", {})
    is_tree = isinstance(method, Mapping) and method.get("algorithm") == "tree"
    for name, table in faults.table(top.get("columns", {}), "columns").items():
        column = read_column(name, faults.table(table, f"columns.{name}"), faults, is_tree=is_tree)
        if column is not None:
            columns[name] = column
        else:
            faults.unread.add(name)
    return columns


def _read(name: str, table: dict[str, Any], faults: Faults) -> Any:
    """A section that is one table."""
    section = SECTIONS[name]
    if name == "engine":
        _refuse_unused(table, faults)
    return section.holder(**read_section(section, table, faults))


def _refuse_unused(table: Mapping[str, Any], faults: Faults) -> None:
    """Refuse settings that the engine does not use."""
    if table.get("name") == "spark" and "memory" in table:
        faults.add("engine.memory is not for engine.name = 'spark': its memory is set by Spark's own settings.")
    if table.get("name") == "memory":
        for name in ("memory", "spill", "hand_over", "sample"):
            if name in table:
                faults.add(f"engine.{name} is not for engine.name = 'memory', which holds all rows; leave it out.")


def open_questions(questions: Mapping[str, str]) -> list[str]:
    """The questions that a spec leaves open, below a sentence that says what to do about them."""
    if not questions:
        return []
    open_now = f"{len(questions)} decisions are" if len(questions) > 1 else "1 decision is"
    return [
        f"{open_now} open in the spec: settle each of these, and remove its line 'decide = …'.",
        *(f"{where or 'the whole spec'}: {question}" for where, question in questions.items()),
    ]


def _check_roles(spec: Spec, faults: Faults) -> None:
    """Faults between columns."""
    if not spec.of_role(Role.QUASI_IDENTIFIER) and not faults.sentences:
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


def _check_diversity(spec: Spec, faults: Faults) -> None:
    """Faults between the demands and the columns they are of."""
    for demand in spec.privacy.diversity:
        column = spec.columns.get(demand.column)
        if column is not None and column.role == Role.SENSITIVE:
            _check_closeness(demand, column, faults)
        elif demand.column not in faults.unread and not _is_class(demand, spec):
            faults.add(_not_sensitive(demand, column, spec))
    if not faults.within("privacy.diversity") and not spec.method.capabilities.grows_tree:
        for name in spec.of_role(Role.SENSITIVE):
            _check_used(name, spec, faults)
        for name, fault in unasked(spec).items():
            if f"columns.{name}" not in faults.open and not faults.within(f"columns.{name}:"):
                faults.add(fault)
    if spec.privacy.attack_limit < 1 and not spec.of_role(Role.SENSITIVE) and not faults.unread:
        faults.add("privacy.attack_limit is of sensitive columns, and there is none: give a column that role.")


def refuse_open(spec: Spec) -> None:
    """Refuse a proposal whose questions are not settled, as a file with such questions is refused."""
    if isinstance(spec, ProposedSpec) and spec.questions:
        raise SpecError(open_questions(spec.questions))


def unasked(spec: Spec) -> dict[str, str]:
    """A fault for each sensitive column that has neither a demand nor a waiver, or both."""
    asked = {demand.column for demand in spec.privacy.diversity}
    faults = {}
    for name in spec.of_role(Role.SENSITIVE):
        is_waived = spec.columns[name].diversity is not None
        if is_waived and name in asked:
            faults[name] = f"columns.{name}: diversity = 'none', and [[privacy.diversity]] asks for some; remove one."
        elif not is_waived and name not in asked:
            faults[name] = (
                f"columns.{name} is sensitive and nothing is asked of it, so everybody in a group may have the same "
                f'value: ask for a model in [[privacy.diversity]] (model = "entropy-l" and l = 2 are a common start), '
                f'or write diversity = "none" and a reason = "…" in [columns.{name}].'
            )
    return faults


def _is_class(demand: DiversitySpec, spec: Spec) -> bool:
    """Whether a demand is of the class that a tree tells."""
    return spec.method.capabilities.grows_tree and demand.column in {target.column for target in spec.targets}


def _not_sensitive(demand: DiversitySpec, column: ColumnSpec | None, spec: Spec) -> str:
    place = f"privacy.diversity asks {demand.model} of '{demand.column}'"
    if column is None:
        return f"privacy.diversity asks {demand.model} of {without_role(demand.column, Role.SENSITIVE, spec)}"
    if column.role == Role.TARGET:
        return (
            f"{place}, whose role is 'target': a column cannot be both protected and predicted; give it the role "
            "'sensitive', or cap what groups reveal of targets with privacy.max_confidence."
        )
    return f"{place}, whose role is '{column.role}': diversity is of columns whose role is 'sensitive'."


def _check_closeness(demand: DiversitySpec, column: ColumnSpec, faults: Faults) -> None:
    """A distance needs what it is measured on."""
    if demand.model != "t-closeness":
        return
    where = f"privacy.diversity of '{demand.column}'"
    distance = distance_of(demand, type=column.type, has_taxonomy=column.taxonomy is not None)
    if distance == "hierarchical" and column.taxonomy is None:
        faults.add(f"{where}: the hierarchical distance needs a taxonomy in [columns.{demand.column}].")
    if distance == "ordered" and column.type == ColumnType.ORDINAL and not column.order:
        faults.add(
            f"{where}: the ordered distance of an ordinal column needs order = [lowest, …, highest] in "
            f"[columns.{demand.column}]."
        )
    if distance == "ordered" and column.type == ColumnType.NOMINAL:
        faults.add(
            f"{where}: the ordered distance needs an order, and its type is 'nominal'; use the distance 'equal', or "
            "type = 'ordinal' with order = [lowest, …, highest]."
        )


def _check_used(name: str, spec: Spec, faults: Faults) -> None:
    """The taxonomy or order of a sensitive column is there for a distance only."""
    column = spec.columns[name]
    distances = {
        distance_of(demand, type=column.type, has_taxonomy=column.taxonomy is not None)
        for demand in spec.privacy.diversity
        if demand.column == name and demand.model == "t-closeness"
    }
    for key, distance in (("taxonomy", "hierarchical"), ("order", "ordered")):
        if getattr(column, key) and distance not in distances:
            faults.add(
                f"columns.{name}: the {key} of a sensitive column is for t-closeness with the {distance} distance "
                f"only; ask for that in [[privacy.diversity]], or remove {key}."
            )


def public_spec(tables: Mapping[str, Any]) -> Spec:
    """The spec of a release's manifest, whose tables `write.public_tables` made.

    Its selections are only counted there, so each is one that says nothing; what a distance is measured on stands
    with the demand instead of the column; and the usual weight rule is told whether there are weights or not.
    """
    try:
        return _public_spec(JsonPart(tables, "spec").table(PUBLIC, PUBLIC_TOO))
    except Damaged as error:
        raise SpecError([f"{error}; the manifest is damaged."]) from None


def _public_spec(sections: dict[str, JsonPart]) -> Spec:
    for name, section in SECTIONS.items():
        hidden = [setting.name for setting in section.settings if setting.public == Public.HIDDEN]
        if name in sections and (leading := [key for key in hidden if key in sections[name].named()]):
            raise sections[name].refused(f"has {listed(leading)}, which no manifest tells")
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
    public = [setting.name for setting in COLUMN.settings if setting.public != Public.NEVER and setting.name != "role"]
    return {name: entry.value for name, entry in part.table(("role",), (*public, "order")).items()}


def _to_column(demand: JsonPart, columns: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """A demand without the taxonomy or order of its column, which is given them."""
    entries = demand.named()
    column = columns.get(entries["column"].text() if "column" in entries else "", {})
    if "taxonomy" in entries:
        column["taxonomy"] = entries.pop("taxonomy").plain()
    if "order" in entries:
        column |= {"type": "ordinal", "order": entries.pop("order").texts()}
    return {name: part.value for name, part in entries.items()}


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
    result: dict[str, Any] = dict(tables)
    for setting in settings:
        key, equals, text = setting.partition("=")
        names = _names_of(key)
        if not equals or not names:
            raise RequestError(f"--set {setting!r:.100}: write a key and a value, for example --set privacy.k=20.")
        if len(names) > DEEPEST_SETTING:
            raise RequestError(f"--set {setting!r:.100}: no setting is that deep.")
        result = _put(result, names, _value_of(text), setting)
    return result


def _value_of(text: str) -> Any:
    """A value as TOML reads it, if the text is one value and nothing more; else the text."""
    try:
        table = parse_toml(f"value = {text}", "the value")
    except SpecError:
        return text
    return table["value"] if list(table) == ["value"] else text


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
        table: Any = parse_toml(f"{key} = 0", "the key")
    except SpecError:
        return []
    names = []
    while isinstance(table, dict):
        if len(table) != 1:
            return []
        names.append(next(iter(table)))
        table = table[names[-1]]
    return names


def read_tree_spec(path: str | Path, settings: Iterable[str] = ()) -> Spec:
    """The spec of a file that asks for a tree, unless it names another algorithm."""
    tables = with_settings(read_tables(path), settings)
    method = tables.get("method", {})
    if isinstance(method, Mapping):
        tables["method"] = {"algorithm": "tree", **method}
    return spec_of(tables, folder=Path(path).resolve().parent)


def read_spec(path: str | Path, settings: Iterable[str] = ()) -> Spec:
    """The spec of a file, with settings of the command line put in."""
    return spec_of(with_settings(read_tables(path), settings), folder=Path(path).resolve().parent)
