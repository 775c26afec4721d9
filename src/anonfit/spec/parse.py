# SPDX-License-Identifier: Apache-2.0
"""From TOML, or the tables it holds, to a Spec, where every fault is found and all are reported together; and back to
tables, whole for the owner of the data and by an allow-list for everybody else.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from anonfit.errors import RequestError, SpecError, listed
from anonfit.privacy.catalogue import MODELS
from anonfit.runtime.strict_json import Damaged, JsonPart, read_text
from anonfit.spec import model
from anonfit.spec.check import check_algorithm, check_application, check_workload
from anonfit.spec.columns import COLUMN, check_diversity, distance_of, read_column
from anonfit.spec.kinds import Faults, Given, Public, Section, Setting, read_section
from anonfit.spec.model import VERSION, ColumnSpec, ProposedSpec, SelectionSpec, Spec
from anonfit.spec.settings import SECTIONS, TARGET
from anonfit.tables.schema import Column, ColumnType, Role, Schema
from anonfit.tables.sources import FORMATS, is_database, shown_address

PUBLIC = ("version", "data", "columns", "privacy", "output")
PUBLIC_TOO = ("workload", "method", "decisions", "report")
MOST_SELECTIONS = 1_000_000
DEEPEST_SETTING = 10  # names in the key of a setting
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
    parts = {
        name: section.holder(**read_section(section, faults.table(top.get(name, {}), name), faults))
        for name, section in SECTIONS.items()
    }
    decisions = Given(top, "decisions", "spec", None, faults).choice(("accepted",))
    spec = Spec(columns=columns, **parts, decisions=decisions, folder=folder)
    _check_roles(spec, faults)
    _check_consent(spec, faults)
    _check_layout(spec, faults)
    _check_engine(spec.engine, faults)
    check_diversity(spec, faults)
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
        columns[name] = read_column(name, faults.table(table, f"columns.{name}"), faults, is_tree=is_tree)
    faults.unread |= {name for name, column in columns.items() if column is None}
    return {name: column for name, column in columns.items() if column is not None}


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


def _check_layout(spec: Spec, faults: Faults) -> None:
    """How fields are written is of text files, and one sign cannot be two."""
    output = spec.output
    given = [name for name in ("delimiter", "decimal", "bom") if SECTIONS["output"].is_changed(output, name)]
    if output.format in FORMATS and not FORMATS[output.format].is_text:
        for name in given:
            faults.add(f'output.{name} is of CSV files only; remove it, or write format = "csv" in [output].')
    elif output.delimiter == output.decimal:
        faults.add(
            f'output.delimiter and output.decimal are both {output.decimal!r}; with decimal = "," the usual '
            'delimiter is ";".'
        )


def _check_engine(engine: model.EngineSpec, faults: Faults) -> None:
    """Refuse settings that the engine does not use."""
    if engine.name == "spark" and engine.memory is not None:
        faults.add("engine.memory is not for engine.name = 'spark': its memory is set by Spark's own settings.")
    for name in ("memory", "spill", "hand_over", "sample") if engine.name == "memory" else ():
        if getattr(engine, name) is not None:
            faults.add(f"engine.{name} is not for engine.name = 'memory', which holds all rows; leave it out.")


def refuse_open(spec: Spec) -> None:
    """Refuse a proposal whose questions are not settled, as a file with such questions is refused."""
    if isinstance(spec, ProposedSpec) and spec.questions:
        raise SpecError(open_questions(spec.questions))


def parse_spec(text: str, *, folder: Path | None = None) -> Spec:
    """The spec of a TOML text."""
    return spec_of(parse_toml(text, "the spec"), folder=folder)


def parse_toml(text: str, what: str) -> dict[str, Any]:
    """The tables of a TOML text; `what` is what a message calls it."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        fault = str(error)
        place = re.search(r"at line (\d+)", fault)
        if place and "\\" in text.splitlines()[int(place[1]) - 1]:
            fault += "; a backslash in double quotes begins a sign: write / in paths, or put them in single quotes"
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


# --- back to tables, and what everybody may know of them --------------------------------------------------------

DECLARED = ("role", "type", "split", "date_format")
"""What a schema says of a column; its domain, order and taxonomy stand in the recoding."""


def spec_tables(spec: Spec) -> dict[str, Any]:
    """All of a spec as nested tables, defaults left out. A frame as the source has no place in it."""
    parts = {name: section.tables(getattr(spec, name)) for name, section in SECTIONS.items()}
    source = parts["data"].pop("source", None)
    if isinstance(source, str | Path):
        address = str(source)
        parts["data"] = {"source": shown_address(address) if is_database(address) else address, **parts["data"]}
    if "to" in parts["output"]:
        parts["output"]["to"] = shown_address(parts["output"]["to"])
    parts["columns"] = {name: COLUMN.tables(column) for name, column in spec.columns.items()}
    return _in_order(spec, parts)


def _in_order(spec: Spec, parts: dict[str, Any]) -> dict[str, Any]:
    """The tables of a spec that say something, in their usual order."""
    parts |= {"version": VERSION, "decisions": spec.decisions}
    return {name: parts[name] for name in TOP if parts[name]}


def public_tables(spec: Spec, schema: Schema, *, types: Mapping[str, ColumnType] | None = None) -> dict[str, Any]:
    """What everybody may know of a spec, as tables for the manifest, which `public_spec` reads: roles, types and
    demands; not where the data is, nor the files of taxonomies, nor what is selected. `types` are those that the data
    gave to columns without a declared one, so that every demand can say by which distance it is measured.
    """
    shown = replace(spec, method=replace(spec.method, weight_rule=spec.method.weight_rule or "first"))
    public: dict[str, Any] = {
        name: {
            setting.name: setting.kind.write(getattr(getattr(shown, name), setting.name))
            for setting in section.settings
            if _is_public(setting, section, shown)
        }
        for name, section in SECTIONS.items()
    }
    by_name = {column.name: column for column in schema.columns}
    public["privacy"]["diversity"] = [
        _public_demand(demand, by_name[demand.column], (types or {}).get(demand.column))
        for demand in spec.privacy.diversity
    ]
    public["workload"] = _public_workload(public["workload"], spec.workload)
    public["columns"] = {
        column.name: _public_column(column, spec.columns.get(column.name)) for column in schema.columns
    }
    return _in_order(spec, public)


def _public_column(column: Column, declared: ColumnSpec | None) -> dict[str, Any]:
    """What a schema says of a column, which values mean missing in it, and why nothing is asked of a sensitive one."""
    public: dict[str, Any] = {key: str(getattr(column, key)) for key in DECLARED if getattr(column, key) is not None}
    if column.release:
        public["release"] = True
    if declared is not None and declared.missing:
        public["missing"] = list(declared.missing)
    if declared is not None and declared.title is not None:
        public["title"] = declared.title
    if declared is not None and declared.diversity is not None:
        public |= {"diversity": declared.diversity, "reason": declared.reason}
    return public


def _is_public(setting: Setting, section: Section, spec: Spec) -> bool:
    held = getattr(spec, section.name)
    if section.name == "method" and spec.method.algorithm not in (setting.public_with or setting.algorithms):
        return False
    if setting.public == Public.NEEDED:
        name, *words = setting.needs
        return getattr(held, name) in words
    if setting.public == Public.CHANGED:
        return section.is_changed(held, setting.name)
    return setting.public == Public.ALWAYS


def _public_demand(demand: model.DiversitySpec, column: Column, data_type: ColumnType | None) -> dict[str, Any]:
    """A demand with the taxonomy or order that it is measured by, which stands nowhere else in a release."""
    allowed = {parameter.name for parameter in MODELS[demand.model].parameters}
    public: dict[str, Any] = {"column": demand.column, "model": demand.model}
    public |= {name: value for name, value in demand.parameters.items() if name in allowed}
    if demand.model != "t-closeness":
        return public
    distance = distance_of(demand, type=column.type or data_type, has_taxonomy=column.taxonomy is not None)
    if distance is not None:
        public["distance"] = distance
    if distance == "hierarchical" and column.taxonomy is not None:
        public["taxonomy"] = column.taxonomy.to_tree()
    if distance == "ordered" and column.order:
        public["order"] = list(column.order)
    return public


def _public_workload(shown: dict[str, Any], workload: model.WorkloadSpec) -> dict[str, Any]:
    """What is told of a workload in another way than a spec has it: selections are counted, targets told whole."""
    public = {name: shown.pop(name) for name in ("denoise", "selections", "weights")}
    public["selections"] = len(workload.selections)
    if shown.pop("targets", None) is not None:
        public["targets"] = [
            TARGET.tables(target) | {"weight": target.weight, "scale": target.scale}
            for target in workload.targets or ()
        ]
    return public | shown


def public_spec(tables: Mapping[str, Any]) -> Spec:
    """The spec of a release's manifest, whose tables `public_tables` made.

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
    public = [setting.name for setting in COLUMN.settings if setting.public != Public.NEVER and setting.name != "role"]
    columns = {
        name: {key: entry.value for key, entry in part.table(("role",), (*public, "order")).items()}
        for name, part in sections["columns"].named().items()
    }
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


def _to_column(demand: JsonPart, columns: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """A demand without the taxonomy or order of its column, which is given them."""
    entries = demand.named()
    column = columns.get(entries["column"].text() if "column" in entries else "", {})
    if "taxonomy" in entries:
        column["taxonomy"] = entries.pop("taxonomy").plain()
    if "order" in entries:
        column |= {"type": "ordinal", "order": entries.pop("order").texts()}
    return {name: part.value for name, part in entries.items()}
