# SPDX-License-Identifier: Apache-2.0
"""Edits keep a spec whole: comments stay with what they are of, and a role takes with it what goes only with it."""

from __future__ import annotations

import polars as pl
import pytest
import tomlkit
from web_doors import SPEC, Door

from anonfit.errors import RequestError
from anonfit.spec.parse import parse_spec
from anonfit.tables.profile import proposal_toml, propose
from anonfit.tables.schema import Role
from anonfit.web.editing import (
    add_demand,
    number_of,
    put,
    questions_of,
    remove_demands,
    set_role,
    set_type,
    set_value,
    settle,
    waive,
)

COMMENTED = SPEC.replace("[columns.age]", "# Its name points to an age.\n[columns.age]").replace(
    "[columns.sex]", "# domain = [0, 120]\n\n# Others may know it.\n[columns.sex]"
)


def edited(change, text: str = COMMENTED) -> str:
    document = tomlkit.parse(text)
    change(document)
    return tomlkit.dumps(document)


def test_a_new_key_stands_before_the_comments_of_what_follows() -> None:
    text = edited(lambda document: set_value(document, ("columns", "age", "taxonomy"), "age.csv"))
    assert (
        'role = "quasi-identifier"\ntaxonomy = "age.csv"\n# domain = [0, 120]\n\n# Others may know it.\n[columns.sex]'
        in text
    )


def test_what_is_not_touched_stays_as_it_is_written() -> None:
    text = edited(lambda document: set_value(document, ("privacy", "k"), 7))
    assert text == COMMENTED.replace("k = 5", "k = 7")
    assert edited(lambda document: set_value(document, ("privacy", "k"), 5)) == COMMENTED


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("column", ["age", "illness", "name"])
def test_any_column_can_get_any_role_and_the_spec_has_no_new_fault_of_that_column(role: Role, column: str) -> None:
    def change(document) -> None:
        set_value(document, ("columns", "age", "domain"), [0, 120])
        set_role(document, column, role, {"model": "distinct-l", "l": 2})

    text = edited(change)
    assert tomlkit.parse(text)["columns"][column]["role"] == role
    if column != "illness" or role != Role.SENSITIVE:
        parse_spec(text)  # every combination here is a spec that can be run


def test_a_role_takes_demands_and_targets_with_it() -> None:
    def change(document) -> None:
        waive(document, "illness", "made up")
        add_demand(document, {"column": "illness", "model": "entropy-l", "l": 2.0})
        set_value(document, ("workload", "targets"), ["illness", "sex"])

    text = edited(change)
    assert "reason" not in text
    after = edited(lambda document: set_role(document, "illness", "insensitive"), text)
    assert "diversity" not in after
    assert tomlkit.parse(after)["workload"]["targets"] == ["sex"]
    again = edited(lambda document: set_role(document, "illness", "target"), after)
    assert tomlkit.parse(again)["workload"]["targets"] == ["sex", "illness"]


def test_one_demand_of_several_is_taken_away() -> None:
    def change(document) -> None:
        add_demand(document, {"column": "illness", "model": "entropy-l", "l": 2.0})
        add_demand(document, {"column": "illness", "model": "distinct-l", "l": 2})
        remove_demands(document, "illness", 0)

    assert [demand["model"] for demand in tomlkit.parse(edited(change))["privacy"]["diversity"]] == ["distinct-l"]


def test_a_demand_takes_its_comment_with_it() -> None:
    frame = pl.DataFrame(
        {"age": [*range(60)] * 5, "income": [*range(50)] * 6, "diagnosis": ["flu", "gout", "mumps"] * 100}
    )
    proposed = proposal_toml(propose(frame, k=5), source="a.csv", taxonomies={})
    assert proposed.count("# Without this") == 2
    text = edited(lambda document: remove_demands(document, "diagnosis"), proposed)
    assert [demand["column"] for demand in tomlkit.parse(text)["privacy"]["diversity"]] == ["income"]
    assert [line for line in text.splitlines() if "# Without this" in line] == [
        "# Without this a group may all have the same income."
    ]


def test_questions_are_settled_and_opened_again() -> None:
    asked = COMMENTED.replace("[columns.age]", '[columns.age]\ndecide = "Is it?"').replace(
        "[privacy]", '[privacy]\ndecide = "Enough?"'
    )
    assert questions_of(tomlkit.parse(asked)) == {"columns.age": "Is it?", "privacy": "Enough?"}
    settled = edited(lambda document: [settle(document, "columns.age"), settle(document, "privacy")], asked)
    assert settled == COMMENTED
    assert questions_of(tomlkit.parse(edited(lambda document: settle(document, "columns.age", "Again?")))) == {
        "columns.age": "Again?"
    }


@pytest.mark.parametrize("wrong", ["", "ten", "nan", "inf", "1e99", "0x10"])
def test_what_is_no_number_is_refused(wrong: str) -> None:
    with pytest.raises(RequestError, match="a number is expected"):
        number_of(wrong)


def test_wrong_words_are_refused() -> None:
    for change in (
        lambda document: set_role(document, "age", "boss"),
        lambda document: set_type(document, "age", "word"),
        lambda document: add_demand(document, {"column": "illness", "model": "z"}),
        lambda document: waive(document, "illness", " "),
        lambda document: set_value(document, ("version", "x"), 1),
    ):
        with pytest.raises(RequestError):
            edited(change)
    with pytest.raises(RequestError, match="not TOML"):
        put("a = ", ("x",), 1)


def test_changes_can_be_undone_and_old_windows_do_not_overwrite_new_ones(door: Door) -> None:
    space = door.jobs.space
    (door.folder / "spec.toml").write_text(SPEC)
    space.edit(lambda document: set_value(document, ("privacy", "k"), 7))
    space.edit(lambda document: set_value(document, ("privacy", "k"), 8))
    assert "changed in another window" in door.post("/spec", text="version = 1", seen="0" * 16).text
    assert space.undo()
    assert space.undo()
    assert door.spec == SPEC
    assert not space.undo()
