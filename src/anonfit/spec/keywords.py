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
from anonfit.spec.kinds import column_names
from anonfit.spec.model import VERSION, DiversitySpec, Settings, Spec, TargetSpec
from anonfit.spec.parse import spec_of
from anonfit.spec.settings import SECTIONS
from anonfit.tables.schema import Role
from anonfit.workload.targets import can_predict

KEYWORDS = {
    setting.keyword or setting.name: (section, setting)
    for section in SECTIONS.values()
    for setting in section.settings
    if setting.keyword is not None
}
"""The settings of sections that are keywords, by these."""

COLUMNS = {setting.keyword: setting.name for setting in COLUMN.settings if setting.keyword}
"""Keywords that give columns a setting."""
IN_COLUMNS = (*COLUMNS.values(), "release", "missing")  # what `columns` may say of a column

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
NOT_RECODING = ("identifiers", "insensitive", "release")  # those of them that `Anonymizer` has not

Documented = TypeVar("Documented", bound=Callable[..., Any])


# --- which keywords there are -----------------------------------------------------------------------------------


def keyword_defaults(*, recoding: bool = False) -> dict[str, Any]:
    """The keywords of `anonymize` and their defaults; or (`recoding`) those that the recoding follows from."""
    of_columns = {name: default for name, (_, default) in OF_COLUMNS.items() if not (recoding and name in NOT_RECODING)}
    settings = {
        name: None if setting.kind is QUASI_IDENTIFIERS else section.default(setting.name)
        for name, (section, setting) in KEYWORDS.items()
        if not recoding or setting.recodes
    }
    defaults = of_columns | dict.fromkeys(COLUMNS) | settings
    # scikit-learn wants to see what was given: None is nothing. Enumerations are plain words.
    nothing = {
        name for name, default in defaults.items() if isinstance(default, Mapping) or (recoding and default == ())
    }
    words = {name: str(default) if isinstance(default, str) else default for name, default in defaults.items()}
    return words | dict.fromkeys(nothing)


def takes_settings(*, recoding: bool = False) -> Callable[[Documented], Documented]:
    """Let the signature and the documentation of a function, or of a class, name what it takes as `**settings`."""
    meanings = {name: doc for name, (doc, _) in OF_COLUMNS.items()}
    meanings |= {name: setting.meaning for name, (_, setting) in KEYWORDS.items()}
    meanings |= {setting.keyword: f"of columns: {setting.doc}" for setting in COLUMN.settings if setting.keyword}

    def describe(taker: Documented) -> Documented:
        function: Any = taker.__init__ if isinstance(taker, type) else taker  # type: ignore[misc]
        own = list(signature(function).parameters.values())
        named = {parameter.name for parameter in own}
        annotations = {name: getattr(word, "__forward_arg__", word) for name, word in Settings.__annotations__.items()}
        more = [
            Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotations[name])
            for name, default in keyword_defaults(recoding=recoding).items()
            if name not in named
        ]
        function.__signature__ = signature(function).replace(parameters=[*own[:-1], *more])
        if taker.__doc__:  # at the line that is {settings}, say what each of them means
            lines = []
            for name in (parameter.name for parameter in more):
                plain_text = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", meanings[name]).replace(" (below)", "")
                plain_text = plain_text.replace("`true`", "`True`").replace("`false`", "`False`")
                line = f"{name}: {plain_text[:1].upper()}{plain_text[1:]}."
                lines.append(fill(line, 118, initial_indent=" " * 4, subsequent_indent=" " * 8, break_long_words=False))
            taker.__doc__ = cleandoc(taker.__doc__).replace("    {settings}", "\n".join(lines))
        return taker

    return describe


def check_keywords(function: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse keywords that a function does not have, as Python does."""
    names = list(known)
    for name in given:
        if name not in names:
            raise TypeError(f"{function}() got an unexpected keyword argument '{name}'; {did_you_mean(name, names)}")


# --- to a spec --------------------------------------------------------------------------------------------------


def spec_of_keywords(data: Any, words: Mapping[str, Any]) -> Spec:
    """The spec, checked as a whole, of a source (a path or a frame) and the keyword arguments of `anonymize`."""
    try:
        words = {name: plain(word) for name, word in words.items() if name != "data"}
    except RecursionError:
        raise RequestError("what was given is nested too deeply; a taxonomy has at most 200 levels.") from None
    tables: dict[str, Any] = {name: {} for name in SECTIONS}
    for name, (section, setting) in KEYWORDS.items():
        if words.get(name) is not None:
            tables[section.name][setting.name] = setting.kind.of_keyword(words[name])
    tables["data"]["source"] = data
    targets = tables["workload"].pop("targets", [])
    if targets:
        tables["workload"]["targets"] = targets
    columns = _columns(words, targets)
    demands, waivers = _sensitive(words.get("sensitive"))
    for name, waiver in waivers.items():
        columns[name] |= waiver
    tables |= {"version": VERSION, "columns": columns}
    tables["privacy"]["diversity"] = demands
    return _with_models(spec_of(tables), words.get("targets"))


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
    keys = {f"{section.name}.{setting.name}": name for name, (section, setting) in KEYWORDS.items()}
    keys |= {"privacy.diversity": "sensitive"}
    longest_first = sorted(map(re.escape, keys), key=len, reverse=True)
    text = re.sub(rf"(?<![\w.])({'|'.join(longest_first)})(?![\w.]*\w)", lambda match: keys[match[1]], text)
    of_columns = "|".join(setting.name for setting in COLUMN.settings)
    text = re.sub(rf"(?<![\w.])columns\.([^\s.']+)\.({of_columns})\b", r"columns['\1']: \2", text)
    text = re.sub(r"^columns\.([^'\n]+?):", r"column '\1':", text, flags=re.M)
    text = text.replace("write release = true for it", "name it in release")
    text = re.sub(rf" in \[(?:{'|'.join(SECTIONS)})\]", "", text)
    return re.sub(r"= (true|false)\b", lambda match: f"= {match[1].capitalize()}", text)


def refuse_keywords(words: Mapping[str, Any], function: Callable[..., Any]) -> None:
    """Refuse keywords beside a whole spec: it says all that they could, and they would change nothing."""

    def is_usual(word: Any, usual: Any) -> bool:  # where that can be said at all
        return word is usual or (type(word) is type(usual) and bool(word == usual))

    parameters = signature(function).parameters
    if given := [name for name, word in words.items() if not is_usual(word, parameters[name].default)]:
        raise RequestError(
            f"a spec was given, which says all that is asked, and beside it {listed(given)}: put them into the spec "
            "(in Python by dataclasses.replace), or leave them out."
        )


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
    models = [
        target.get("model") if isinstance(target, Mapping) else getattr(target, "model", None)
        for target in targets_given
    ]
    if spec.workload.targets is None or not any(model is not None for model in models):
        return spec
    targets = tuple(replace(target, model=model) for target, model in zip(spec.workload.targets, models, strict=True))
    for target in targets:
        model = target.model
        if model is not None and not can_predict(model):
            kind = f"the class {model.__name__}" if isinstance(model, type) else f"a {type(model).__name__}"
            raise RequestError(
                f"targets: the model of '{target.column}' must be a fitted model, an object with predict or "
                f"predict_proba; found {kind}."
            )
    if spec.workload.denoise is True and None not in models:
        raise RequestError(
            f"denoise fits models of the targets, and {listed(target.column for target in targets)} has a model that "
            "is given; remove one of the two."
        )
    return replace(spec, workload=replace(spec.workload, targets=targets))


def _sensitive(given: Any) -> tuple[list[Any], dict[str, dict[str, Any]]]:
    """The diversity that is asked of sensitive columns; and what is declared of those of which nothing is asked for a
    reason that is given.
    """
    demands, waivers = [], {}
    for key, asked in (given if isinstance(given, Mapping) else dict.fromkeys(column_names(given))).items():
        name, entries = str(key), [asked] if isinstance(asked, str | Mapping | DiversitySpec) else list(asked or ())
        if not entries:
            raise RequestError(
                f"sensitive: nothing is asked of '{name}', so everybody in a group may have the same value: write what "
                f"is asked, such as sensitive={{'{name}': {{'model': 'entropy-l', 'l': 2}}}}, or why nothing is: "
                f"{{'{name}': {{'model': 'none', 'reason': '…'}}}}."
            )
        for entry in entries:
            table = diversity_table(entry) if isinstance(entry, DiversitySpec) else entry
            if not isinstance(table, Mapping):
                raise RequestError(
                    f"sensitive: what is asked of '{name}' must be such as {{'model': 'entropy-l', 'l': 3}}, or a list "
                    f"of such; found {entry!r}."
                )
            if table.get("column", name) != name:
                raise RequestError(f"sensitive: what is asked of '{name}' names the column '{table['column']}'.")
            if table.get("model") != "none":
                demands.append({**table, "column": name})
            elif unknown := [str(key) for key in table if key not in ("column", "model", "reason")]:
                raise RequestError(f"sensitive: 'model': 'none' has a 'reason' only; found {listed(unknown)}.")
            else:
                waivers[name] = {"diversity": "none", "reason": table.get("reason", "")}
    return demands, waivers


def _columns(words: Mapping[str, Any], targets: Iterable[Any]) -> dict[str, dict[str, Any]]:
    """The roles of columns, and what else is declared of them."""
    columns: dict[str, dict[str, Any]] = {}
    quasi_identifiers = column_names(words.get("quasi_identifiers"))
    predicted = [target.get("column") if isinstance(target, dict) else target for target in targets]
    # A quasi-identifier that is also a target stays one: its raw value drives cuts, and is not released. A target
    # without a column is refused when the spec is read.
    only_targets = [name for name in predicted if isinstance(name, str) and name not in quasi_identifiers]
    for key, role in ROLES.items():
        names = only_targets if role == Role.TARGET else column_names(words.get(key))
        for name in names:
            if names.count(name) > 1:
                more = "; one entry says all of a target" if role == Role.TARGET else ""
                raise RequestError(f"{key} names the column '{name}' twice{more}.")
            if name in columns:
                raise RequestError(f"column '{name}' is given two roles: '{columns[name]['role']}' and '{role}'.")
            columns[name] = {"role": str(role)}
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
