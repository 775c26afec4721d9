# SPDX-License-Identifier: Apache-2.0
"""From keyword arguments to the same Spec that TOML gives. Called by the api and the estimators."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from inspect import Parameter, cleandoc, signature
from textwrap import fill
from typing import Any, TypeVar

from anonfit.errors import AnonfitError, RequestError, SpecError, did_you_mean, listed
from anonfit.spec.columns import COLUMN, QUASI_IDENTIFIERS, diversity_table
from anonfit.spec.kinds import Section, Setting, column_names
from anonfit.spec.model import VERSION, DiversitySpec, Settings, Spec, TargetSpec
from anonfit.spec.parse import spec_of
from anonfit.spec.settings import SECTIONS
from anonfit.tables.schema import Role
from anonfit.workload.targets import can_predict

KEYWORDS = {
    name: tuple(setting for setting in section.settings if setting.keyword is not None)
    for name, section in SECTIONS.items()
}
"""The settings of a section that are keywords."""

COLUMNS = {setting.keyword: setting.name for setting in COLUMN.settings if setting.keyword}
"""Keywords that give columns a setting."""
IN_COLUMNS = (*COLUMNS.values(), "release", "missing")
"""What `columns` may say of a column."""

ROLES = {
    "quasi_identifiers": Role.QUASI_IDENTIFIER,
    "targets": Role.TARGET,
    "sensitive": Role.SENSITIVE,
    "identifiers": Role.IDENTIFIER,
    "insensitive": Role.INSENSITIVE,
    "entity": Role.ENTITY,
    "count": Role.COUNT,
    "sample_weight": Role.SAMPLE_WEIGHT,
}
"""Keywords that give columns a role."""

OF_COLUMNS = {
    "identifiers": ("columns that are not released", ()),
    "insensitive": ("other columns that are released as they are", ()),
    "entity": ("the column that says whose row it is, where persons have several rows; not released", None),
    "count": ("the column that says how many persons a row stands for", None),
    "sample_weight": ("the column of sample weights, which enter criteria and figures, never k", None),
    "columns": (
        'what is declared of columns, such as `{"age": Column(type="continuous", domain=[0, 120])}`; `types`, '
        "`orders`, `domains`, `date_formats`, `taxonomies` and `splits` say the same one setting at a time",
        None,
    ),
    "release": ("raw columns that are let through although over 90 % of their values are distinct", ()),
}
"""Keywords about columns that are no setting of a section: what they mean, and their defaults."""
NOT_RECODING = ("identifiers", "insensitive", "release")
"""Those of them that `Anonymizer` has not."""

Documented = TypeVar("Documented", bound=Callable[..., Any])


# --- which keywords there are -----------------------------------------------------------------------------------


def keyword_defaults(*, recoding: bool = False) -> dict[str, Any]:
    """The keywords of `anonymize` and their defaults; or (`recoding`) those that the recoding follows from."""
    of_columns = {name: default for name, (_, default) in OF_COLUMNS.items() if not (recoding and name in NOT_RECODING)}
    settings = {
        _keyword(setting): None if setting.kind is QUASI_IDENTIFIERS else section.default(setting.name)
        for section, setting in _settings()
        if not recoding or setting.recodes
    }
    defaults = of_columns | dict.fromkeys(COLUMNS) | settings
    # scikit-learn wants to see what was given: None is nothing.
    return {name: None if recoding and default == () else _shown(default) for name, default in defaults.items()}


def _settings() -> Iterable[tuple[Section, Setting]]:
    return [(SECTIONS[name], setting) for name, settings in KEYWORDS.items() for setting in settings]


def _keyword(setting: Setting) -> str:
    return setting.keyword or setting.name


def takes_settings(*, recoding: bool = False) -> Callable[[Documented], Documented]:
    """Let the signature and the documentation of a function, or of a class, name what it takes as `**settings`."""

    def describe(taker: Documented) -> Documented:
        function: Any = taker.__init__ if isinstance(taker, type) else taker  # type: ignore[misc]
        own = list(signature(function).parameters.values())
        named = {parameter.name for parameter in own}
        more = [
            Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=_annotation(name))
            for name, default in keyword_defaults(recoding=recoding).items()
            if name not in named
        ]
        function.__signature__ = signature(function).replace(parameters=[*own[:-1], *more])
        if taker.__doc__:
            taker.__doc__ = _documented(taker.__doc__, [parameter.name for parameter in more])
        return taker

    return describe


def _shown(default: Any) -> Any:
    """A default as it is given in Python: maps and enumerations in plain words."""
    if isinstance(default, Mapping):
        return None
    return str(default) if isinstance(default, str) else default


def _annotation(name: str) -> Any:
    """The type of a keyword, as it is written."""
    annotation = Settings.__annotations__[name]
    return getattr(annotation, "__forward_arg__", annotation)


def _documented(text: str, names: Iterable[str]) -> str:
    """A docstring whose `Args:` say what each of the settings means, at the line that is {settings}."""
    meanings = {name: doc for name, (doc, _) in OF_COLUMNS.items()}
    meanings |= {_keyword(setting): setting.meaning for _, setting in _settings()}
    meanings |= {keyword: f"of columns: {_column(name).doc}" for keyword, name in COLUMNS.items()}
    lines = []
    for name in names:
        plain_text = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", meanings[name]).replace(" (below)", "")
        plain_text = plain_text.replace("`true`", "`True`").replace("`false`", "`False`")
        line = f"{name}: {plain_text[:1].upper()}{plain_text[1:]}."
        lines.append(fill(line, 118, initial_indent=" " * 4, subsequent_indent=" " * 8, break_long_words=False))
    return cleandoc(text).replace("    {settings}", "\n".join(lines))


def _column(name: str) -> Setting:
    return next(setting for setting in COLUMN.settings if setting.name == name)


def check_keywords(function: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse keywords that a function does not have, as Python does."""
    names = list(known)
    for name in given:
        if name not in names:
            raise TypeError(f"{function}() got an unexpected keyword argument '{name}'; {did_you_mean(name, names)}")


# --- to a spec --------------------------------------------------------------------------------------------------


def spec_of_keywords(data: Any, words: Mapping[str, Any]) -> Spec:
    """The spec, checked as a whole, of a source (a path or a frame) and the keyword arguments of `anonymize`."""
    words = {name: plain(word) for name, word in words.items() if name != "data"}
    tables: dict[str, Any] = {
        section: {
            setting.name: setting.kind.of_keyword(words[_keyword(setting)])
            for setting in settings
            if words.get(_keyword(setting)) is not None
        }
        for section, settings in KEYWORDS.items()
    }
    tables["data"]["source"] = data
    targets = tables["workload"].pop("targets", [])
    if targets:
        tables["workload"]["targets"] = targets
    tables["columns"] = _columns(words, targets)
    tables["privacy"]["diversity"] = _demands(words.get("sensitive"))
    return _with_models(spec_of({"version": VERSION, **tables}), words.get("targets"))


@contextmanager
def speaking_keywords() -> Iterator[None]:
    """Have faults speak of keywords, as who calls from Python gives them, and not of the keys of a file."""
    try:
        yield
    except AnonfitError as error:
        error.args = (in_keywords(str(error)),)
        if isinstance(error, SpecError):
            error.faults = tuple(map(in_keywords, error.faults))
        raise


def in_keywords(text: str) -> str:
    """A message with keywords in place of keys: `k` for `privacy.k`, `columns['age']: type` for `columns.age.type`."""
    keys = {f"{section.name}.{setting.name}": _keyword(setting) for section, setting in _settings()}
    keys |= {"privacy.diversity": "sensitive"}
    longest_first = sorted(map(re.escape, keys), key=len, reverse=True)
    text = re.sub(rf"(?<![\w.])({'|'.join(longest_first)})(?![\w.]*\w)", lambda match: keys[match[1]], text)
    of_columns = "|".join(setting.name for setting in COLUMN.settings)
    text = re.sub(rf"(?<![\w.])columns\.([^\s.']+)\.({of_columns})\b", r"columns['\1']: \2", text)
    text = text.replace("write release = true for it", "name it in release")
    text = re.sub(rf" in \[(?:{'|'.join(KEYWORDS)})\]", "", text)
    return re.sub(r"= (true|false)\b", lambda match: f"= {match[1].capitalize()}", text)


def refuse_keywords(words: Mapping[str, Any], function: Callable[..., Any]) -> None:
    """Refuse keywords beside a whole spec: it says all that they could, and they would change nothing."""
    usual = {name: parameter.default for name, parameter in signature(function).parameters.items()}
    if given := [name for name, word in words.items() if not _is_equal(word, usual[name])]:
        raise RequestError(
            f"a spec was given, which says all that is asked, and beside it {listed(given)}: put them into the spec "
            "(in Python by dataclasses.replace), or leave them out."
        )


def _is_equal(word: Any, other: Any) -> bool:
    """Whether two words are the same, where that can be said at all."""
    return word is other or (type(word) is type(other) and bool(word == other))


def plain(word: Any) -> Any:
    """A word with numbers and truth values of NumPy as Python has them, also inside of lists and tables."""
    if isinstance(word, Mapping):
        return {key: plain(value) for key, value in word.items()}
    if isinstance(word, list | tuple):
        return [plain(value) for value in word]
    if hasattr(word, "tolist") and getattr(getattr(word, "dtype", None), "kind", "") in tuple("biufU"):
        return word.tolist()
    return word


def _with_models(spec: Spec, given: Any) -> Spec:
    """The spec with the fitted models of its targets: no text can hold them."""
    targets_given = [given] if isinstance(given, str | Mapping | TargetSpec) else given or ()
    models = [_model(target) for target in targets_given]
    if spec.workload.targets is None or not any(model is not None for model in models):
        return spec
    targets = tuple(replace(target, model=model) for target, model in zip(spec.workload.targets, models, strict=True))
    for target in targets:
        if target.model is not None and not can_predict(target.model):
            raise RequestError(
                f"targets: the model of '{target.column}' must be a fitted model, an object with predict or "
                f"predict_proba; found {_named(target.model)}."
            )
    if spec.workload.denoise is True and None not in models:
        raise RequestError(
            f"denoise fits models of the targets, and {listed(target.column for target in targets)} has a model that "
            "is given; remove one of the two."
        )
    return replace(spec, workload=replace(spec.workload, targets=targets))


def _named(model: Any) -> str:
    return f"the class {model.__name__}" if isinstance(model, type) else f"a {type(model).__name__}"


def _model(given: Any) -> Any:
    if isinstance(given, TargetSpec):
        return given.model
    return given.get("model") if isinstance(given, Mapping) else None


def _demands(sensitive: Any) -> list[Any]:
    """The diversity that is asked of sensitive columns: of each some, or none for a reason that is given."""
    demands = []
    for name, asked in _asked_of(sensitive).items():
        if not asked:
            raise RequestError(
                f"sensitive: nothing is asked of '{name}', so everybody in a group may have the same value: write what "
                f"is asked, such as sensitive={{'{name}': {{'model': 'entropy-l', 'l': 2}}}}, or why nothing is: "
                f"{{'{name}': {{'model': 'none', 'reason': '…'}}}}."
            )
        for demand in asked:
            table = diversity_table(demand) if isinstance(demand, DiversitySpec) else demand
            if not isinstance(table, Mapping):
                raise RequestError(
                    f"sensitive: what is asked of '{name}' must be such as {{'model': 'entropy-l', 'l': 3}}, or a list "
                    f"of such; found {demand!r}."
                )
            if table.get("column", name) != name:
                raise RequestError(f"sensitive: what is asked of '{name}' names the column '{table['column']}'.")
            if not _is_waiver(table):
                demands.append({**table, "column": name})
    return demands


def _asked_of(sensitive: Any) -> dict[str, list[Any]]:
    """For each sensitive column what is asked of it; names alone ask for nothing."""
    given = sensitive if isinstance(sensitive, Mapping) else dict.fromkeys(column_names(sensitive))
    return {
        str(name): [asked] if isinstance(asked, str | Mapping | DiversitySpec) else list(asked or ())
        for name, asked in given.items()
    }


def _is_waiver(demand: Any) -> bool:
    """Whether an entry says that nothing is asked."""
    return isinstance(demand, Mapping) and demand.get("model") == "none"


def _waiver(asked: Iterable[Any]) -> dict[str, Any]:
    """What is declared of a sensitive column of which nothing is asked."""
    waiver: dict[str, Any] = {}
    for entry in asked:
        if _is_waiver(entry):
            if unknown := [str(key) for key in entry if key not in ("column", "model", "reason")]:
                raise RequestError(f"sensitive: 'model': 'none' has a 'reason' only; found {listed(unknown)}.")
            waiver = {"diversity": "none", "reason": entry.get("reason", "")}
    return waiver


def _columns(words: Mapping[str, Any], targets: Iterable[Any]) -> dict[str, dict[str, Any]]:
    """The roles of columns, and what else is declared of them."""
    columns: dict[str, dict[str, Any]] = {}
    quasi_identifiers = column_names(words.get("quasi_identifiers"))
    for key, role in ROLES.items():
        names = _target_columns(targets, quasi_identifiers) if role == Role.TARGET else column_names(words.get(key))
        for name in names:
            if names.count(name) > 1:
                more = "; one entry says all of a target" if role == Role.TARGET else ""
                raise RequestError(f"{key} names the column '{name}' twice{more}.")
            if name in columns:
                raise RequestError(f"column '{name}' is given two roles: '{columns[name]['role']}' and '{role}'.")
            columns[name] = {"role": str(role)}
    for name, asked in _asked_of(words.get("sensitive")).items():
        columns[name] |= _waiver(asked)
    for name, setting, value, keyword in _declared(words):
        if name not in columns and words.get("default_role") is None:
            raise RequestError(f"{keyword} names the column '{name}', which has no role; add it to quasi_identifiers.")
        column = columns.setdefault(name, {"role": words.get("default_role")})
        if setting in column:
            raise RequestError(
                f"the {setting} of column '{name}' is given twice, by {keyword} and by the keyword of that setting; "
                "remove one."
            )
        column[setting] = value
    for name in column_names(words.get("release")):
        columns.setdefault(name, {"role": str(Role.INSENSITIVE)})["release"] = True
    return columns


def _declared(words: Mapping[str, Any]) -> Iterable[tuple[str, str, Any, str]]:
    """Everything declared of columns, as column, setting, value, and the keyword that says it."""
    for keyword, setting in COLUMNS.items():
        for name, value in (words.get(keyword) or {}).items():
            yield str(name), setting, value, keyword
    columns = words.get("columns") or {}
    if not isinstance(columns, Mapping):
        raise RequestError(
            'columns maps names to what is declared of them, such as {"age": af.Column(type="continuous")}; found '
            f"{type(columns).__name__}."
        )
    for name, settings in columns.items():
        if not isinstance(settings, Mapping):
            raise RequestError(
                f"columns: what is declared of '{name}' must be such as af.Column(type='continuous'); found "
                f"{type(settings).__name__}."
            )
        for setting, value in settings.items():
            if setting == "role":
                raise RequestError(
                    f"columns: the role of '{name}' is given by a keyword such as quasi_identifiers, sensitive or "
                    "identifiers, not here."
                )
            if setting not in IN_COLUMNS:
                raise RequestError(
                    f"columns: '{setting}' of '{name}' is not known; {did_you_mean(str(setting), IN_COLUMNS)}"
                )
            if setting == "release" and str(name) in column_names(words.get("release")):
                raise RequestError(
                    f"the release of column '{name}' is given twice, by columns and by release; remove one."
                )
            if value is not None:
                yield str(name), setting, value, "columns"


def _target_columns(targets: Iterable[Any], quasi_identifiers: Iterable[str]) -> list[str]:
    """The columns that are given the role of a target; a table without a column is refused when the spec is read.

    A quasi-identifier that is also a target stays one: its raw value drives cuts, and is not released.
    """
    names = [target.get("column") if isinstance(target, dict) else target for target in targets]
    return [name for name in names if isinstance(name, str) and name not in quasi_identifiers]
