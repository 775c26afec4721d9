# SPDX-License-Identifier: Apache-2.0
"""Top-down refinement from a request to a published, audited folder, for one quasi-identifier and for several."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from label_reader import LabelReader

import anonfit as af
from anonfit.algorithms import top_down
from anonfit.auditing.api import audit_release
from anonfit.errors import AnonfitError, AuditFailed, DataError, Infeasible, RequestError, SpecError
from anonfit.recoding.recoding import Recoding
from anonfit.release.evidence import audit_draft
from anonfit.release.publish import require_passed
from anonfit.release.run import make
from anonfit.spec.parse import parse_spec, spec_of
from anonfit.spec.write import to_toml
from strategies import tries
from waivers import waived

SCHOOLS = {
    "name": "any",
    "children": [
        {"name": "lower", "children": [{"name": "l1"}, {"name": "l2"}]},
        {"name": "upper", "children": [{"name": "u1"}, {"name": "u2"}]},
    ],
}
NAMES = ["age", "town", "school", "hours"]
SEVERAL = [{"columns": ["age", "town"], "k": 20}, ["age", "school"], ["hours", "town"], {"columns": ["town"], "k": 5}]


@cache
def people(rows: int = 900, seed: int = 0) -> pl.DataFrame:
    """Persons whose outcome depends on all of age, town and school; an illness that depends on nothing."""
    rng = np.random.default_rng(seed)
    age, town = rng.integers(18, 80, rows), rng.choice(list("abcdef"), rows, p=[0.3, 0.2, 0.2, 0.1, 0.1, 0.1])
    school = rng.choice(["l1", "l2", "u1", "u2"], rows)
    noise = rng.normal(0, 0.6, rows)
    told = (age > 45) + 1.2 * (town == "a") + np.char.startswith(school, "u") + noise > 1.5
    return pl.DataFrame(
        {
            "age": age,
            "town": town,
            "school": school,
            "hours": rng.integers(1, 60, rows),
            "illness": rng.choice(["flu", "cold", "cut"], rows),
            "outcome": np.where(told, "yes", "no"),
        }
    )


def released(frame: pl.DataFrame | None = None, **words: Any) -> af.Release:
    asked = {"k": 10, "targets": ["outcome"], "taxonomies": {"school": SCHOOLS}, "algorithm": "tdr", **words}
    asked.setdefault("sensitive", waived("illness"))
    return af.anonymize(people() if frame is None else frame, quasi_identifiers=NAMES, **asked)


def smallest(frame: pl.DataFrame, columns: list[str]) -> int:
    return int(frame.group_by(columns).len()["len"].min())  # type: ignore[arg-type]


def test_all_three_operations_in_one_run() -> None:
    found = released()
    assert smallest(found.data, NAMES) >= 10
    assert {"a"} < set(found.data["town"].unique())
    assert set(found.data["school"].unique()) >= {"lower", "upper"} or "u1" in found.data["school"].unique()
    assert any(label.startswith("≥") for label in found.data["age"].unique())
    assert found.report["asked"]["algorithm"].startswith("top-down refinement")
    assert found.report["audit"]["passed"]
    # The town of a record that is not disclosed is one of those that are not.
    disclosed = set(found.data["town"].unique()) & set("abcdef")
    rest = ", ".join(sorted(set("abcdef") - disclosed))
    assert set(found.data["town"].unique()) - disclosed == {f"{{{rest}}}"}


def test_a_value_is_released_as_the_same_value_everywhere() -> None:
    frame = people()
    found = released(order="original", consent=True)
    for name in NAMES:
        pairs = set(zip(frame[name].to_list(), found.data[name].to_list(), strict=True))
        assert len(pairs) == frame[name].n_unique()


def test_labels_hold_the_values_they_stand_for() -> None:
    frame = people()
    found = released(order="original", consent=True)
    columns = json.loads(found.recoding.to_json())["columns"]
    for entry in columns:
        reader = LabelReader(entry)
        name = entry["name"]
        assert all(map(reader.holds, found.data[name].to_list(), frame[name].to_list()))


def test_the_steps_are_told_to_the_owner_alone(tmp_path: Path) -> None:
    found = released()
    steps = found.refinements
    assert steps is not None
    assert steps["steps"][0]["column"] in NAMES
    assert steps["steps"][-1]["anonymity"] == steps["anonymity"] == [smallest(found.data, NAMES)]
    assert not steps["stopped"]
    assert all(step["score"] == pytest.approx(step["gain"] / (step["loss"] + 1)) for step in steps["steps"])
    found.save(tmp_path / "release")
    record = json.loads((tmp_path / "release.internal.json").read_text())
    assert record["refinements"] == json.loads(json.dumps(steps))
    for file in (tmp_path / "release").glob("*.json"):
        assert "refinements" not in json.loads(file.read_text())
    assert af.load(tmp_path / "release").refinements is None


# --- several quasi-identifiers ----------------------------------------------------------------------------------


def test_every_quasi_identifier_holds_its_own_k() -> None:
    found = released(requirements=SEVERAL)
    asked = [(["age", "town"], 20), (["age", "school"], 10), (["hours", "town"], 10), (["town"], 5)]
    assert smallest(found.data, NAMES) < 10  # together they are finer than any of them allows alone
    measured = found.report["audit"]["sets"]
    for (columns, k), one in zip(asked, measured, strict=True):
        assert smallest(found.data, columns) >= k
        assert (list(one["columns"]), one["k"]) == (columns, k)
        assert one["sizes"]["smallest"] == smallest(found.data, columns)
    several = found.report["asked"]["several_quasi_identifiers"]
    assert [one["follows_from"] for one in several] == [None, None, None, 0]
    assert any("follows from what is asked of age and town" in text for text in found.report["asked"]["sentences"])
    assert any("several quasi-identifiers" in text for text in found.report["not_covered"])


def test_models_hold_in_the_groups_of_each(tmp_path: Path) -> None:
    words: dict[str, Any] = {"sensitive": {"illness": {"model": "entropy-l", "l": 2.9}}}
    without, found = released(requirements=SEVERAL), released(requirements=SEVERAL, **words)
    assert found.refinements is not None
    assert without.refinements is not None
    assert len(found.refinements["steps"]) < len(without.refinements["steps"])
    for columns in (["age", "town"], ["age", "school"], ["hours", "town"]):
        for _, group in found.data.group_by(columns):
            shares = group["illness"].value_counts()["count"].to_numpy() / len(group)
            assert float(np.exp(-(shares * np.log(shares)).sum())) >= 2.9 - 1e-9
    wheres = [one["where"] for one in found.report["audit"]["findings"] if one["name"] == "entropy-l"]
    assert wheres == [
        f"illness in groups of {', '.join(one)}"
        for one in (["age", "town"], ["age", "school"], ["hours", "town"], ["town"])
    ]
    found.save(tmp_path / "release")
    assert audit_release(tmp_path / "release", source=people()).passed


def test_a_saved_release_recodes_to_the_released_rows(tmp_path: Path) -> None:
    found = released(requirements=SEVERAL)
    found.save(tmp_path / "release")
    loaded = af.load(tmp_path / "release")
    again = loaded.recoding.apply(people())
    assert Counter(again.select(found.data.columns).rows()) == Counter(found.data.rows())
    assert loaded.recoding.to_json() == found.recoding.to_json()
    assert audit_release(tmp_path / "release", source=people()).passed


def test_new_rows_are_released_where_every_quasi_identifier_holds(tmp_path: Path) -> None:
    released(requirements=SEVERAL).save(tmp_path / "release")
    new = people(300, seed=5)
    extended = af.load(tmp_path / "release").extend(new, suppression_limit=1.0)
    for columns, k in ((["age", "town"], 20), (["age", "school"], 10), (["hours", "town"], 10)):
        assert smallest(extended.data, columns) >= k
    assert 0 < extended.report["rows"]["released"] < 300
    with pytest.raises(Infeasible, match="5 persons or more"):
        af.load(tmp_path / "release").extend(people(3, seed=6))


def test_an_edited_recoding_is_applied_and_checked(tmp_path: Path) -> None:
    found = released()
    tables = json.loads(found.recoding.to_json())
    tables["parts"]["town"] = [-1] * len(tables["parts"]["town"])
    edited = Recoding.from_json(json.dumps(tables))
    again = found.extend(people(), recoding=edited, suppression_limit=1.0)
    assert set(again.data["town"].unique()) == {"*"}
    assert len(again.data) == len(people())
    tables["parts"]["town"] = list(range(len(tables["parts"]["town"])))  # too fine: small groups are withheld
    finer = found.extend(people(), recoding=Recoding.from_json(json.dumps(tables)), suppression_limit=1.0)
    assert smallest(finer.data, NAMES) >= 10
    assert len(finer.data) < len(people())
    other = af.anonymize(people().select("age", "outcome"), quasi_identifiers=["age"], k=5, targets=["outcome"])
    with pytest.raises(RequestError, match="other quasi-identifiers"):
        found.extend(people(), recoding=other.recoding)


# --- planted faults ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("several", [False, True])
def test_a_group_below_its_k_is_found_in_its_quasi_identifier(several: bool) -> None:
    made = make(spec_of(_tables(several)), source=people())
    require_passed(audit_draft(made, made.table))
    columns = ["hours", "town"] if several else NAMES
    sizes = made.table.group_by(columns).len().sort("len")
    least = sizes.row(0, named=True)
    inside = pl.all_horizontal(pl.col(name) == least[name] for name in columns)
    short = pl.concat([made.table.filter(~inside), made.table.filter(inside).head(3)]).sort(made.table.columns)
    audit = audit_draft(made, short)
    missed = [finding.where for finding in audit.missed if finding.name == "k"]
    assert ("hours, town" in missed) if several else (missed == [None])
    with pytest.raises(AuditFailed):
        require_passed(audit)


def test_a_label_that_is_no_part_of_its_column_is_found() -> None:
    made = make(spec_of(_tables(False)), source=people())
    finer = made.table.with_columns(
        town=pl.when(pl.col("town").cast(pl.String) == "a").then(pl.lit("a")).otherwise(pl.lit("{b, c}"))
    )
    audit = audit_draft(made, finer)
    assert "regions" in [finding.name for finding in audit.missed]
    whole = made.table.with_columns(age=pl.lit("*"))
    assert "regions" in [finding.name for finding in audit_draft(made, whole).missed]


def _tables(several: bool) -> dict[str, Any]:
    columns: dict[str, Any] = {name: {"role": "quasi-identifier"} for name in NAMES}
    columns["school"]["taxonomy"] = SCHOOLS
    columns |= {
        "illness": {"role": "sensitive", "diversity": "none", "reason": "made-up people"},
        "outcome": {"role": "target"},
    }
    sets = [one if isinstance(one, dict) else {"columns": one} for one in SEVERAL]
    privacy = {"k": 10} | ({"quasi_identifiers": sets} if several else {})
    return {"version": 1, "columns": columns, "privacy": privacy, "method": {"algorithm": "tdr"}}


# --- stopping ----------------------------------------------------------------------------------------------------


def test_time_that_is_over_gives_what_was_reached() -> None:
    found = released(time_budget=1e-9)
    assert found.refinements is not None
    assert found.refinements["steps"] == []
    assert found.refinements["stopped"]
    assert found.report["audit"]["passed"]
    assert all(found.data[name].unique().to_list() == ["*"] for name in NAMES)


def test_an_interrupt_gives_what_was_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    refine = top_down.refine

    def interrupted(*given: Any, progress: Any, **words: Any) -> Any:
        def told(step: Any) -> None:
            nonlocal calls
            calls += 1
            if calls == 2:
                os.kill(os.getpid(), signal.SIGINT)
            progress(step)

        return refine(*given, progress=told, **words)

    monkeypatch.setattr(top_down, "refine", interrupted)
    # Processes that a shell starts in the background ignore interrupts.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        found = released()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert found.refinements is not None
    assert len(found.refinements["steps"]) == 2
    assert found.refinements["stopped"]
    assert found.report["audit"]["passed"]


# --- what is asked -----------------------------------------------------------------------------------------------


def test_k_above_the_rows_is_refused() -> None:
    with pytest.raises(Infeasible):
        released(requirements=[{"columns": NAMES, "k": 901}])


@pytest.mark.parametrize(
    ("requirements", "told"),
    [
        ([["age", "town", "school"]], "'hours' is in none of them"),
        ([["age", "town"]], "'school', 'hours' are in none of them"),
        ([[*NAMES, "outcome"]], "names 'outcome'"),
        ([[*NAMES, "twon"]], "did you mean 'town'"),
        ([], "is empty"),
        ([NAMES, []], "has no columns"),
        ([[*NAMES, "age"]], "names a column twice"),
        ([{"columns": NAMES, "k": 0}], "at least 1"),
        ([{"columns": NAMES, "kk": 2}], "kk is not a setting"),
    ],
)
def test_quasi_identifiers_that_cannot_be_are_refused(requirements: list[Any], told: str) -> None:
    with pytest.raises(SpecError, match=told):
        released(requirements=requirements)


@pytest.mark.parametrize("requirements", ["age", ["age", "town"], [NAMES, "age"]])
def test_a_name_is_no_quasi_identifier(requirements: Any) -> None:
    with pytest.raises(RequestError, match=r"each a list of columns such as \['age', 'sex'\]; found 'age'"):
        released(requirements=requirements)


@pytest.mark.parametrize(
    ("requirements", "told"), [(5, "found int"), ([NAMES, 5], "found int"), ([NAMES, None], "NoneType")]
)
def test_what_is_no_list_is_no_quasi_identifier(requirements: Any, told: str) -> None:
    with pytest.raises(RequestError, match=told):
        released(requirements=requirements)


def test_any_collection_names_quasi_identifiers() -> None:
    found = released(
        requirements=(one for one in [("age", "town"), dict.fromkeys(["school"]).keys(), frozenset(["hours"])])
    )
    assert [list(one["columns"]) for one in found.report["audit"]["sets"]] == [["age", "town"], ["school"], ["hours"]]


def test_observed_regions_are_of_one_quasi_identifier() -> None:
    with pytest.raises(SpecError, match="several quasi-identifiers do not protect"):
        released(requirements=SEVERAL, regions="observed", consent=True)
    found = released(regions="observed", consent=True)
    assert found.report["audit"]["passed"]
    assert smallest(found.data, NAMES) >= 10


def test_a_target_of_too_many_classes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(top_down, "CELLS", 100)
    with pytest.raises(DataError, match="'outcome' has 2 classes and column 'age' 62 values, too many"):
        released()


def test_a_branch_without_records_does_not_end_refining() -> None:
    tree = {"name": "any", "children": [SCHOOLS | {"name": "schools"}, {"name": "none"}]}
    found = released(taxonomies={"school": tree}, requirements=[["school"], ["age", "town", "hours"]])
    assert set(found.data["school"].unique()) == {"l1", "l2", "u1", "u2"}


def test_a_spec_reads_back_to_itself() -> None:
    tables = _tables(True)
    tables["method"] |= {"average": "all", "suppression": "best_gain", "zero_gain": True, "time_budget": 2.5}
    spec = spec_of(tables)
    assert parse_spec(to_toml(spec)) == spec
    assert [one.k for one in spec.privacy.quasi_identifiers] == [20, None, None, 5]


@pytest.mark.parametrize(
    "words", [{"average": "all"}, {"suppression": "best_gain"}, {"zero_gain": True}, {"criterion": "infogain"}]
)
def test_every_reading_gives_a_release_that_holds(words: dict[str, Any]) -> None:
    found = released(requirements=SEVERAL, **words)
    assert found.report["audit"]["passed"]
    assert smallest(found.data, ["hours", "town"]) >= 10


@pytest.mark.parametrize("values", ["bounds", "representative"])
def test_values_are_written_as_asked(values: str) -> None:
    assert released(values=values).report["audit"]["passed"]


def test_sample_weights_count_in_gains_and_not_in_k() -> None:
    # By weight the classes are 9 to 1 on one side and 1 to 9 on the other; by rows they are the same on both.
    frame = pl.DataFrame({"age": [20, 20, 60, 60] * 5, "outcome": ["no", "yes"] * 10, "weight": [9, 1, 1, 9] * 5})
    words: dict[str, Any] = {"quasi_identifiers": ["age"], "targets": ["outcome"], "algorithm": "tdr", "k": 10}
    plain = af.anonymize(frame, insensitive=["weight"], **words)
    weighed = af.anonymize(frame, sample_weight="weight", **words)
    assert plain.refinements is not None
    assert weighed.refinements is not None
    assert plain.refinements["steps"] == []
    (step,) = weighed.refinements["steps"]
    assert step["gain"] == pytest.approx(1 + 0.9 * np.log2(0.9) + 0.1 * np.log2(0.1))
    assert (step["loss"], weighed.refinements["anonymity"]) == (10, [10])


@st.composite
def tables(draw: st.DrawFn) -> tuple[pl.DataFrame, list[Any]]:
    """A small table with missing values, and quasi-identifiers over its columns."""
    rows = draw(st.integers(4, 25))

    def column(values: Any) -> list[Any]:
        return draw(st.lists(st.none() | values, min_size=rows, max_size=rows))

    frame = pl.DataFrame(
        {
            "age": pl.Series(column(st.integers(0, 9)), dtype=pl.Int64),
            "town": pl.Series(column(st.sampled_from("abc")), dtype=pl.String),
            "school": pl.Series(column(st.sampled_from(["l1", "l2", "u1"])), dtype=pl.String),
            "outcome": draw(st.lists(st.sampled_from("xy"), min_size=rows, max_size=rows)),
        }
    )
    sets = draw(st.lists(st.sets(st.sampled_from(["age", "town", "school"]), min_size=1), min_size=1, max_size=3))
    rest = {"age", "town", "school"} - set().union(*sets)
    asked = [sorted(one) for one in sets] + ([sorted(rest)] if rest else [])
    return frame, [{"columns": one, "k": draw(st.integers(1, 4))} for one in asked]


@given(tables())
@tries(40)
def test_any_table_keeps_every_k(drawn: tuple[pl.DataFrame, list[Any]]) -> None:
    frame, asked = drawn
    try:
        found = af.anonymize(
            frame,
            quasi_identifiers=["age", "town", "school"],
            k=2,
            targets=["outcome"],
            taxonomies={"school": SCHOOLS},
            types={"age": "continuous", "town": "nominal"},
            algorithm="tdr",
            requirements=asked,
        )
    except AnonfitError:
        assume(False)
    assert len(found.data) == len(frame)
    for one in asked:
        assert smallest(found.data, one["columns"]) >= one["k"]
    again = Recoding.from_json(found.recoding.to_json()).apply(frame)
    assert Counter(again.rows()) == Counter(found.data.rows())


def test_the_estimator_makes_the_same_recoding() -> None:
    frame = people()
    asked: dict[str, Any] = {"algorithm": "tdr", "requirements": SEVERAL, "taxonomies": {"school": SCHOOLS}}
    found = af.Anonymizer(k=10, quasi_identifiers=NAMES, output="labels", **asked).fit(
        frame.select(NAMES), frame["outcome"]
    )
    assert found.recoding_.to_json() == released(requirements=SEVERAL).recoding.to_json()
    new = people(200, seed=8).select(NAMES)
    assert found.transform(new).rows() == found.recoding_.apply(new).rows()
    ends = af.Anonymizer(k=10, quasi_identifiers=NAMES, **asked).fit(frame.select(NAMES), frame["outcome"])
    assert ends.transform(new).shape == (200, 2 * len(NAMES))


@pytest.mark.parametrize("is_fine", [True, False])
def test_the_picture_of_two_columns_counts_the_released_rows(is_fine: bool) -> None:
    sets = [["age"], ["hours"], ["town", "school"]] if is_fine else [NAMES]
    frame = people().with_columns(outcome=pl.when(pl.col("hours") > 30).then(pl.lit("yes")).otherwise("outcome"))
    found = released(frame, requirements=sets)
    picture = found.report["partition"]
    across, up = picture["across"], picture["up"]
    rows = found.data.filter(
        pl.all_horizontal(pl.col(one["column"]).cast(pl.String) == one["label"] for one in picture["held"])
    )

    def label(axis: dict[str, Any], low: int, high: int) -> str:
        below, above = axis["edges"][low], axis["edges"][high]
        if below is None:
            return "*" if above is None else f"< {above}"
        return f"≥ {below}" if above is None else f"[{below}, {above})"

    counted = {
        (label(across, left, right), label(up, bottom, top)): persons
        for left, right, bottom, top, persons in picture["rectangles"]
    }
    names = [across["column"], up["column"]]
    wanted = {row[:2]: row[2] for row in rows.group_by(names).len().rows()}
    told = {key: persons for key, persons in counted.items() if persons}
    assert told.items() <= wanted.items()
    assert picture["cut_short"] == (None in counted.values()) == is_fine
    if not picture["cut_short"]:
        assert told == wanted
    assert len(counted) <= 240
