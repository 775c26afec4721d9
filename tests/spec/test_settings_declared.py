# SPDX-License-Identifier: Apache-2.0
"""A setting is declared once: the model, the types of keywords and both signatures say what the table says."""

from __future__ import annotations

import inspect
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

import anonfit as af
from anonfit.criteria.objectives import ALGORITHMS
from anonfit.spec import model
from anonfit.spec.columns import COLUMN
from anonfit.spec.keywords import COLUMNS, IN_COLUMNS, ROLES, keyword_defaults
from anonfit.spec.kinds import Public, Section, Setting
from anonfit.spec.parse import public_tables, spec_of
from anonfit.spec.settings import ALL, METHOD, SECTIONS
from anonfit.tables.schema import Schema

ROOT = Path(__file__).resolve().parents[2] / "src" / "anonfit"
EVERY = [(section, setting) for section in ALL.values() for setting in section.settings]
HINTS = get_type_hints(model.Settings)


def words_of(hint: Any) -> tuple[str, ...]:
    """The words of a `Literal`, also of one that may be None."""
    if get_origin(hint) is Literal:
        return get_args(hint)
    return next((words_of(part) for part in get_args(hint) if words_of(part)), ()) if get_args(hint) else ()


@pytest.mark.parametrize("section", ALL.values(), ids=lambda section: section.name)
def test_a_section_declares_the_fields_of_its_dataclass(section: Section) -> None:
    held = {part.name for part in fields(section.holder)}
    assert set(section.names) == held - ({"model"} if section.name == "workload.targets" else set())


@pytest.mark.parametrize(("section", "setting"), EVERY, ids=lambda part: part.name)
def test_every_setting_says_what_it_means_on_one_line(section: Section, setting: Setting) -> None:
    assert setting.doc
    assert "\n" not in setting.doc
    assert "|" not in setting.doc
    assert set(setting.algorithms) <= set(ALGORITHMS)


def test_types_of_keywords_are_those_of_the_table() -> None:
    beside = {"quasi_identifiers", "k", "targets", "sensitive", "columns"}
    assert set(HINTS) | beside == set(keyword_defaults()) | set(ROLES)
    assert set(get_type_hints(model.RecodingSettings)) | {"k", "targets", "columns"} == set(
        keyword_defaults(recoding=True)
    )
    assert set(get_type_hints(model.ColumnSettings)) == set(IN_COLUMNS)


@pytest.mark.parametrize(("section", "setting"), EVERY, ids=lambda part: part.name)
def test_words_of_a_choice_are_typed_where_it_is_a_keyword_and_in_the_model(section: Section, setting: Setting) -> None:
    hint = get_type_hints(section.holder, localns={"Proposal": Any}).get(setting.name)
    if words_of(hint):
        assert words_of(hint) == setting.kind.choices
    keyword = setting.keyword or setting.name
    if section.name in SECTIONS and setting.keyword is not None and setting.kind.choices:
        assert words_of(HINTS[keyword]) == setting.kind.choices
    if section is COLUMN and setting.keyword and setting.kind.choices:
        assert words_of(get_type_hints(model.ColumnSettings)[setting.name]) == setting.kind.choices


def test_signatures_show_every_keyword_and_no_catch_all() -> None:
    for taker, recoding in ((af.anonymize, False), (af.Anonymizer, True)):
        parameters = inspect.signature(taker).parameters
        assert set(keyword_defaults(recoding=recoding)) <= set(parameters)
        assert all(each.kind != inspect.Parameter.VAR_KEYWORD for each in parameters.values())
        documented = taker.__doc__ or ""
        assert "{settings}" not in documented
        assert all(f"\n    {name}: " in documented or f"\n        {name}: " in documented for name in parameters)


@pytest.mark.parametrize("taker", [lambda **words: af.anonymize(None, k=2, **words), af.Anonymizer])
def test_unknown_keywords_are_refused_with_the_nearest_one(taker: Any) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'criterium'; did you mean 'criterion'"):
        taker(criterium="median")


def spec_with(**method: Any) -> model.Spec:
    target = {"t": {"role": "target"}} if method.get("algorithm") in ("tdr", "tree") else {}
    columns = {"a": {"role": "quasi-identifier"}, **target}
    return spec_of({"version": 1, "columns": columns, "privacy": {"k": 2}, "method": method})


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_manifest_tells_no_setting_that_is_not_public(algorithm: str) -> None:
    told = public_tables(spec_with(algorithm=algorithm), Schema())
    for name, section in SECTIONS.items():
        for setting in section.settings:
            if setting.public in (Public.NEVER, Public.HIDDEN):
                assert setting.name not in told.get(name, {})
            if setting.public == Public.ALWAYS and algorithm in setting.algorithms and setting.public_with is None:
                assert setting.name in told[name]


def test_a_setting_of_another_algorithm_is_refused() -> None:
    for setting in METHOD.settings:
        others = [name for name in ALGORITHMS if name not in setting.algorithms]
        value = {"split_on": ["a"], "start": "x.json", "weight_rule": "product", "zero_gain": True}.get(setting.name)
        changed = value or next((word for word in setting.kind.choices[1:]), 0.125)
        changed = 7 if setting.name == "max_spans" else changed
        for algorithm in others:
            with pytest.raises(af.SpecError, match=rf"method\.{setting.name} is (not )?for algorithm"):
                spec_with(algorithm=algorithm, **{setting.name: changed})


def test_no_module_but_the_declared_ones_lists_the_settings_of_the_method() -> None:
    """One more setting is to be named in few places: its field and its type, its declaration, and what uses it."""
    naming = [
        path.relative_to(ROOT).as_posix()
        for package in ("spec", "estimators", "cli")
        for path in sorted([*(ROOT / package).rglob("*.py"), *(ROOT / package).rglob("*.toml")])
        if "min_gain" in path.read_text(encoding="utf-8")
    ]
    assert naming == ["spec/check.py", "spec/model.py", "spec/settings.toml"]
    assert "min_gain" not in (ROOT / "api.py").read_text(encoding="utf-8")


def test_columns_have_the_settings_that_keywords_give_one_at_a_time() -> None:
    assert (
        set(COLUMNS.values()) | {"release", "missing"} == set(IN_COLUMNS) == set(model.ColumnSettings.__annotations__)
    )
