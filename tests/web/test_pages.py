# SPDX-License-Identifier: Apache-2.0
"""Every step does what it shows, and everything it does is an edit of the spec."""

from __future__ import annotations

import html
import json
import os
import re
import sqlite3
import time
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from web_doors import OWN, SPEC, Door, people

import anonfit.web
from anonfit.tables.taxonomy_files import read_taxonomy
from anonfit.web.answers import say, texts
from anonfit.web.demand_pages import PRESETS
from anonfit.web.jobs import GONE, Jobs
from anonfit.web.run_pages import group_bars, kept_of, steps_of

HOME = Path(anonfit.web.__file__).parent


@pytest.fixture(scope="module")
def spec_of(shared: Door):
    """A page whose table was looked at; its spec is put back before every test."""
    shared.post("/table/choose", source="people.csv")
    proposed = shared.spec

    def reset(text: str = SPEC) -> Door:
        (shared.folder / "spec.toml").write_text(text)
        return shared

    reset.proposed = proposed  # type: ignore[attr-defined]
    return reset


def read(door: Door) -> dict:
    return tomllib.loads(door.spec)


def test_every_text_that_is_shown_is_there_and_none_is_idle() -> None:
    sources = [path.read_text() for path in (*HOME.rglob("*.html"), *HOME.glob("*.py"))]
    used = {name for text in sources for name in re.findall(r"say\(\s*f?[\"']([a-z_.\-]+)[\"']", text)}
    begun = tuple({name for text in sources for name in re.findall(r"[\"']([a-z_]+\.[a-z_]*)[\"'] ~", text)})
    begun += ("explore.method_", "reading.", "safe_harbor.", "table.here", "table.others")
    whole = {name for name in used if not name.endswith((".", "_"))}
    assert whole <= set(texts())
    shown = [name for name in texts() if name.removesuffix("_one") not in whole and not name.startswith(begun)]
    assert shown == []


def test_one_is_told_in_words_of_its_own() -> None:
    assert say("verdict.questions", number=2).startswith("2 decisions are open")
    assert say("verdict.questions", number=1).startswith("One decision is open")
    assert say("runs.number", number=1) == "Run 1"


def test_a_table_is_taken_and_everything_is_proposed(spec_of) -> None:
    proposed = tomllib.loads(spec_of.proposed)
    assert proposed["data"]["source"] == "people.csv"
    assert proposed["output"]["format"] == "csv"
    assert {name: column["role"] for name, column in proposed["columns"].items()} == {
        "name": "identifier",
        "age": "quasi-identifier",
        "sex": "quasi-identifier",
        "illness": "sensitive",
    }
    door = spec_of(spec_of.proposed)
    assert "decisions are open" in door.page.get("/explore").text
    assert re.search(r'<button class="big" disabled', door.page.get("/explore").text)
    assert "decisions are open" in door.post("/explore/run").text
    assert door.jobs.all("run") == []


def test_roles_types_and_many_columns_at_once(spec_of) -> None:
    door = spec_of()
    door.post("/columns/role", column="sex", role="insensitive")
    door.post("/columns/type", column="age", type="continuous")
    assert read(door)["columns"]["sex"]["role"] == "insensitive"
    assert read(door)["columns"]["age"]["type"] == "continuous"
    door.post("/columns/many", column=["age", "sex"], role="quasi-identifier", type="nominal", settle="yes")
    assert {read(door)["columns"][name]["type"] for name in ("age", "sex")} == {"nominal"}
    assert "is not known" in door.post("/columns/role", column="age", role="boss").text
    assert "no such column" in door.post("/columns/role", column="none", role="target").text


def test_a_column_that_becomes_sensitive_is_asked_something(spec_of) -> None:
    door = spec_of()
    door.post("/columns/role", column="sex", role="sensitive")
    assert [demand["column"] for demand in read(door)["privacy"]["diversity"]] == ["sex"]


def test_demands_presets_waivers_and_settings(spec_of) -> None:
    door = spec_of()
    door.post("/demands/preset", preset="ema-0070")
    assert read(door)["privacy"]["k"] == PRESETS["ema-0070"]["k"] == 11
    door.post("/demands/ask", column="illness", model="t-closeness", **{"t-closeness:t": "0,4"})
    assert read(door)["privacy"]["diversity"] == [{"column": "illness", "model": "t-closeness", "t": 0.4}]
    door.post("/demands/drop", column="illness", number="0")
    assert "everybody in a group may have the same value" in door.page.get("/demands").text.lower().replace(
        "Everybody", "everybody"
    )
    door.post("/demands/waive", column="illness", reason="for a test")
    assert read(door)["columns"]["illness"]["reason"] == "for a test"
    door.post("/demands/set", **{"privacy.suppression_limit": "0.05", "output.format": "parquet"})
    assert (read(door)["privacy"]["suppression_limit"], read(door)["output"]["format"]) == (0.05, "parquet")
    assert "a number is expected" in door.post("/demands/set", **{"privacy.k": "many"}).text


def test_selections_are_built_counted_and_shown_as_sql(spec_of) -> None:
    door = spec_of()
    fields = {"column": ["age", "sex", ""], "operator": [">=", "in", "="], "value": ["50", "f", ""]}
    seen = door.page.post("/demands/selection/preview", data=fields, headers={"origin": OWN}).text
    rows = [line.split(",") for line in people().splitlines()[1:]]
    number = sum(int(row[1]) >= 50 and row[2] == "f" for row in rows)
    assert f"{number} of 400 rows" in seen
    assert "age &gt;= 50 and sex in (&#39;f&#39;)" in seen
    door.post("/demands/selection", weight="2", **fields)
    assert read(door)["workload"]["selections"] == [{"where": "age >= 50 and sex in ('f')", "weight": 2.0}]
    door.post("/demands/selection", remove="0")
    assert "selections" not in read(door).get("workload", {})
    wrong = door.page.post("/demands/selection/preview", data={"where": "drop table x"}, headers={"origin": OWN})
    assert 'class="bad"' in wrong.text


def test_targets_and_weights(spec_of) -> None:
    door = spec_of()
    door.post("/demands/target", column="illness", act="add")
    assert read(door)["columns"]["illness"]["role"] == "target"
    door.post("/demands/weights", **{"weight:age": "3", "weight:sex": "1"})
    assert read(door)["workload"]["weights"] == {"age": 3.0}
    door.post("/demands/target", column="illness", act="remove")
    assert "targets" not in read(door)["workload"]


BUILT = {
    "intervals": {"low": "0", "high": "100", "step": "10", "factor": "2"},
    "cuts": {"cuts": "30, 50, 70\n50"},
    "order": {"groups": "4, 2"},
    "mask": {},
    "frequency": {"minimum": "20"},
    "flat": {"listed": "91\n92"},
}


@pytest.mark.parametrize("builder", BUILT)
def test_hierarchies_are_built_with_a_preview_and_named_in_the_spec(spec_of, builder: str) -> None:
    door = spec_of()
    fields = {"column": "age", "builder": builder, **BUILT[builder]}
    seen = door.page.post("/hierarchy/preview", data=fields, headers={"origin": OWN}).text
    assert "All values of the table are in it." in seen
    door.post("/hierarchy/build", **fields)
    taxonomy = read_taxonomy(door.folder / read(door)["columns"]["age"]["taxonomy"])
    assert taxonomy.height >= 1
    packed = door.page.get("/hierarchy/download?column=age")
    assert len(packed.text.splitlines()) == len(taxonomy.leaves)


def test_a_tree_is_edited_and_taken_from_arx(spec_of) -> None:
    door = spec_of()
    sent = {"file": ("sex.csv", b"f;human;*\nm;human;*\nx;other;*\n")}
    door.page.post("/hierarchy/upload", data={"column": "sex"}, files=sent, headers={"origin": OWN})
    assert "All values of the table are in it." in door.page.get("/hierarchy?column=sex&wait=1").text

    def tree() -> dict:
        return read_taxonomy(door.folder / read(door)["columns"]["sex"]["taxonomy"]).to_tree()

    door.post("/hierarchy/edit", column="sex", act="group", node=["0.0", "1.0"], name="both")
    assert [part["name"] for part in tree()["children"]] == ["human"]
    door.post("/hierarchy/edit", column="sex", act="dissolve", node=["0"])
    assert sorted(part["name"] for part in tree()["children"]) == ["both", "m"]
    door.post(
        "/hierarchy/edit",
        column="sex",
        act="move",
        node="1",
        target="0" if tree()["children"][0]["name"] == "both" else "",
    )
    door.post("/hierarchy/edit", column="sex", act="rename", node="0", name="all of them")
    assert "all of them" in json.dumps(tree())
    told = door.post("/hierarchy/edit", column="sex", act="move", node="0", target="0").text
    assert "into itself" in told
    bad = door.page.post(
        "/hierarchy/upload", data={"column": "sex"}, files={"file": ("a.csv", b"f;*\nf;g;*\n")}, headers={"origin": OWN}
    )
    assert bad.status_code == 200
    door.post("/hierarchy/drop", column="sex")
    assert "taxonomy" not in read(door)["columns"]["sex"]


def test_runs_are_tried_shown_compared_and_handed_over(spec_of) -> None:
    door = spec_of()
    told = door.post("/explore/try", ks="5, 20", method=["purpose", "blind"])
    assert told.status_code == 200
    runs = door.jobs.all("run")
    assert len(runs) == 4
    assert {door.jobs.wait(job.id, 120).state for job in runs} == {"done"}
    page = door.page.get("/explore").text
    assert page.count("<circle") == 4
    ids = [job.id for job in runs if "k = 5\n" in (door.jobs.folder(job.id) / "spec.toml").read_text()][:2]
    door.post("/explore/compare", id=ids)
    door.jobs.wait(door.jobs.all("compare")[0].id, 60)
    compared = door.page.get(f"/explore?a={ids[0]}&b={ids[1]}").text
    assert "Both together" in compared
    assert compared.count("Detail kept of age") == 1
    assert len(re.findall(r'<th scope="col" colspan="2">Run \d', compared)) == 2
    for path in ("utility?records=1", "risk?records=1", "handover"):
        shown = door.page.get(f"/{path}{'&' if '?' in path else '?'}run={ids[0]}")
        assert shown.status_code == 200
        assert "What" in shown.text
    for path in ("table", "columns", "demands", "explore", "utility", "risk", "handover"):
        assert '<details class="help">' in door.page.get(f"/{path}").text, path
    report = door.page.get(f"/runs/{ids[0]}/report.html")
    assert "sandbox" in report.headers["content-security-policy"]
    assert "script-src" not in report.headers["content-security-policy"]
    door.post("/explore/take", id=ids[0])
    assert door.spec == (door.jobs.folder(ids[0]) / "spec.toml").read_text()
    door.post("/explore/remove", id=ids[1])
    assert len(door.jobs.all("run")) == 3


def test_pages_are_about_the_run_of_the_spec_as_it_stands(door: Door) -> None:
    (door.folder / "spec.toml").write_text(SPEC)
    door.post("/explore/run")
    door.post("/explore/try", ks="7", method=["blind"])
    assert {door.jobs.wait(job.id, 120).state for job in door.jobs.all("run")} == {"done"}
    for path in ("utility", "risk", "handover"):
        shown = door.page.get(f"/{path}").text
        assert re.search(r"selected>Run 1\n? *<|selected>Run 1<", shown), path
    assert "The spec beside makes the same bytes" in door.page.get("/handover").text
    other = door.page.get(f"/handover?run={door.jobs.all('run')[0].id}").text
    assert "whose spec is not the one beside" in other
    assert "The spec beside makes the same bytes" not in other
    assert "Nobody is found with a probability above 0.2" in other
    shown = door.page.get("/risk").text
    assert re.search(
        r"raw table</span> <strong>100.00 %</strong>.*raw table</span> <strong>at most 100.00 %", shown, re.S
    )
    assert shown.count("raw table</span>") == shown.count("release</span>") == 4
    (door.folder / "spec.toml").write_text(SPEC.replace("k = 5", "k = 6"))
    assert "Of this spec there is no run yet, of others there are" in door.page.get("/explore").text


def test_several_runs_are_told_in_their_order_and_cancelled_at_once(door: Door, monkeypatch) -> None:
    monkeypatch.setattr(Jobs, "_has_room", lambda *_: False)
    (door.folder / "spec.toml").write_text(SPEC)
    door.post("/explore/try", ks="5,7", method=["purpose", "blind"])
    page = door.page.get("/explore").text
    assert "Run 1 is at work" in page
    assert "Behind it wait 3 more" in page
    assert page.count('data-head="k">7</td>') == 2
    assert "Cancel all 4" in page
    # What looks again and again holds nothing: links and forms inside would fetch a part of the page only.
    assert '<div id="runs" hx-target="#whole" hx-select="#whole"' in page
    assert re.search(r'<div [^>]*hx-trigger="every 700ms"[^>]*></div>', page)
    told = door.post("/explore/cancel", id=[job.id for job in door.jobs.all("run")])
    assert "Cancel all" not in told.text
    assert {job.state for job in door.jobs.all("run")} == {"cancelled"}


def test_of_a_column_whose_only_label_is_that_of_all_nothing_is_kept() -> None:
    assert kept_of({"labels": 1, "frequent_label": "*", "kept": 1.0}) == 0
    assert kept_of({"labels": 1, "frequent_label": "f", "kept": 1.0}) == 1
    assert kept_of({"labels": 2, "frequent_label": "*", "kept": 0.4}) == 0.4


def test_group_sizes_are_told_exactly_wherever_the_threshold_is_dragged() -> None:
    persons = [{"low": 12, "high": 19, "groups": 2, "persons": {"persons": 30, "share": 0.5}}]
    bars = group_bars([*persons, {"low": 20, "high": None, "groups": "fewer than 5", "persons": 30}])
    assert [(bar["low"], bar["persons"], bar["groups"]) for bar in bars] == [(12, 30, 2), (20, 30, 0)]
    assert steps_of(bars, 10) == [2, 3, 5, 10, 11, 12, 20]


def test_every_step_has_help_before_there_is_any_run(door: Door) -> None:
    (door.folder / "spec.toml").write_text(SPEC)
    for path in ("table", "columns", "demands", "explore", "utility", "risk", "handover"):
        assert '<details class="help">' in door.page.get(f"/{path}").text, path


def test_runs_that_break_k_together_are_told_without_being_asked(door: Door) -> None:
    (door.folder / "spec.toml").write_text(SPEC)
    door.post("/explore/try", ks="5,7", method=["purpose", "blind"])
    assert {door.jobs.wait(job.id, 120).state for job in door.jobs.all("run")} == {"done"}
    assert "Looking at whether two of these runs" in door.page.get("/explore").text
    asked = door.jobs.all("together")
    assert door.jobs.wait(asked[0].id, 120).state == "done"
    pairs = door.jobs.result(asked[0].id)["pairs"]
    assert len(pairs) == 6
    breaking = [each["runs"] for each in pairs if each["holds"] is False]
    assert breaking
    page = door.page.get("/explore").text
    assert f"{len(breaking)} pairs of runs break k together" in page
    assert "were both handed over" not in page
    assert len(door.jobs.all("together")) == 1  # what is known is not asked again
    one, other = breaking[0]
    assert door.page.get(f"/runs/{one}/release.zip").status_code == 200
    assert "do not hand over the other" in door.page.get(f"/handover?run={other}").text
    door.page.get(f"/runs/{other}/release.zip")
    assert "were both handed over" in door.page.get("/explore").text
    door.post("/explore/remove", id=other)
    assert "were both handed over" not in door.page.get("/explore").text


def test_runs_that_were_not_held_against_each_other_because_the_server_ended_are_so_later(door: Door) -> None:
    (door.folder / "spec.toml").write_text(SPEC)
    door.post("/explore/try", ks="5,7", method=["purpose"])
    for job in door.jobs.all("run"):
        door.jobs.wait(job.id, 120)
    door.page.get("/explore")
    asked = door.jobs.wait(door.jobs.all("together")[0].id, 120)
    door.jobs._put(replace(asked, state="failed", error=GONE))
    assert "Looking at whether two of these runs" in door.page.get("/explore").text
    again = door.jobs.wait(door.jobs.all("together")[0].id, 120)
    assert (again.id != asked.id, again.state) == (True, "done")
    door.jobs._put(replace(again, state="failed", error={**GONE, "kind": "MemoryLimit", "message": "too much"}))
    assert "could not be checked: too much" in door.page.get("/explore").text


def test_runs_that_cannot_be_held_against_each_other_are_told(door: Door) -> None:
    (door.folder / "spec.toml").write_text(SPEC)
    door.post("/explore/try", ks="5,7", method=["purpose"])
    runs = [door.jobs.wait(job.id, 120) for job in door.jobs.all("run")]
    (door.folder / "people.csv").write_text(people().replace("age", "years", 1))
    for job in runs:
        params = {**job.params, "table": [job.params["table"][0], door.jobs.space.state_of("people.csv")]}
        door.jobs._put(replace(job, params=params))  # as if the table were still the same
    door.page.get("/explore")
    asked = door.jobs.wait(door.jobs.all("together")[0].id, 120)
    assert [pair["holds"] for pair in door.jobs.result(asked.id)["pairs"]] == [None]
    assert "together break k could not be checked: " in door.page.get("/explore").text


def test_a_run_comes_before_the_unasked_audit_of_others(door: Door) -> None:
    (door.folder / "spec.toml").write_text(SPEC)
    door.post("/explore/try", ks="5,7", method=["purpose"])
    for job in door.jobs.all("run"):
        door.jobs.wait(job.id, 120)
    door.page.get("/explore")
    door.post("/explore/run")
    door.jobs.wait(door.jobs.all("together")[0].id, 60)
    assert door.jobs.wait(door.jobs.all("run")[0].id, 120).state == "done"
    door.page.get("/explore")
    for job in door.jobs.all("together"):
        assert door.jobs.wait(job.id, 120).state in ("done", "cancelled")
    found = [door.jobs.result(job.id)["pairs"] for job in door.jobs.all("together") if job.state == "done"]
    assert sum(len(pairs) for pairs in found) == 3


def test_uploads_are_removed_by_a_click_and_by_age(door: Door) -> None:
    sent = {"file": ("people.csv", people(60).encode())}
    shown = door.page.post("/table/upload", files=sent, headers={"origin": OWN})
    assert "60 rows" in shown.text
    assert read(door)["data"]["source"] == "uploads/people.csv"
    space = door.jobs.space
    old = door.folder / "uploads" / "old.csv"
    old.write_text("a\n1\n")
    for path in (old, door.folder / "uploads" / "people.csv"):
        os.utime(path, (time.time() - 40 * 86400,) * 2)
    assert space.sweep(30) == 1
    assert not old.exists()
    door.post("/table/remove", source="uploads/people.csv")
    assert list((door.folder / "uploads").iterdir()) == []
    assert "only uploads can be removed" in door.post("/table/remove", source="people.csv").text
    assert (door.folder / "people.csv").exists()


def test_a_file_from_elsewhere_is_audited(spec_of) -> None:
    door = spec_of()
    door.post("/risk/audit", source="people.csv", quasi_identifiers="age, sex", sensitive="illness", k="3")
    job = door.jobs.wait(door.jobs.all("audit")[0].id, 60)
    assert job.state == "done"
    shown = door.page.get("/risk").text
    assert "k = 3 of age, sex (found" in shown
    assert 'id="foreign-threshold"' in shown
    assert "Persons above thresholds in use" in shown


def test_what_looks_odd_is_answered_with_yes_or_no(door: Door) -> None:
    rows = [f"{line},{-9 if row % 9 == 0 else 1 + row % 5}" for row, line in enumerate(people().splitlines()[1:])]
    (door.folder / "odd.csv").write_text("name,age,sex,illness,visits\n" + "\n".join(rows) + "\n")
    shown = door.post("/table/choose", source="odd.csv").text

    def abouts(text: str) -> list[str]:
        return [html.unescape(about) for about in re.findall(r'name="about" value="([^"]+)"', text)]

    missing = next(about for about in abouts(shown) if "sentinel" in about)
    before = door.spec
    told = door.post("/table/suspicion", about=missing, answer="no").text
    assert missing not in abouts(told)
    assert door.spec == before
    assert "is not there any more" in door.post("/table/suspicion", about=missing, answer="yes").text
    (door.folder / ".anonfit-web" / "dismissed").unlink()
    door.post("/table/suspicion", about=missing, answer="yes")
    assert "-9" in read(door)["data"]["missing"]
    codes = next(about for about in abouts(door.page.get("/table").text) if '"codes"' in about and '"visits"' in about)
    told = door.post("/table/suspicion", about=codes, answer="yes").text
    assert read(door)["columns"]["visits"]["type"] == "nominal"
    assert codes not in abouts(told)


def test_a_table_that_is_gone_is_told_where_another_one_can_be_taken(door: Door) -> None:
    sent = {"file": ("sent.csv", people(60).encode())}
    door.page.post("/table/upload", files=sent, headers={"origin": OWN})
    door.post("/table/remove", source="uploads/sent.csv")
    for path in ("/table?wait=1", "/columns?wait=1"):
        shown = door.page.get(path).text
        assert "The table of the spec cannot be read" in shown
        assert "Take it: people.csv" in shown


def test_a_table_of_a_database_is_chosen_from_a_list(door: Door) -> None:
    rows = [line.split(",") for line in people(80).splitlines()[1:]]
    with sqlite3.connect(door.folder / "people.db") as database:
        database.execute("create table persons (name text, age int, sex text, illness text)")
        database.executemany("insert into persons values (?, ?, ?, ?)", rows)
        database.execute("create view old as select * from persons where age > 60")
        database.execute('create table "<b>\'odd" (a int)')
    database.close()
    assert '<option value="sqlite:people.db">' in door.page.get("/table").text
    listed = door.post("/table/database", source="sqlite:people.db").text
    assert "It has 3 tables and views." in listed
    assert [name for name in ("persons", "old") if f'aria-label="Take it: {name}"' in listed] == ["persons", "old"]
    assert "&lt;b&gt;&#39;odd" in listed
    assert "<b>" not in listed
    shown = door.post("/table/choose", source="sqlite:people.db", listed="persons", table="").text
    assert "80 rows, 4 columns" in shown
    assert (read(door)["data"]["source"], read(door)["data"]["table"]) == ("sqlite:people.db", "persons")
    for source, told in (
        ("people.csv", "this is not the address of a database"),
        ("sqlite:none.db", "there is no such sqlite file"),
        ("sqlite:../people.db", "leads out of the folder"),
        ("postgresql://me:hidden@127.0.0.1:1/none", "cannot be read"),
    ):
        answer = door.post("/table/database", source=source).text
        assert told in answer
        assert "hidden" not in answer
    with sqlite3.connect(door.folder / "people.db") as database:
        database.execute("delete from persons where age > 40")
    database.close()
    assert "Looking at the table" in door.page.get("/table").text  # what was seen of it counts no more


def test_another_way_of_reading_is_one_change_that_is_undone_at_once(door: Door) -> None:
    door.post("/table/choose", source="people.csv")
    before = door.spec
    assert "1 columns" in door.post("/table/reading", delimiter="|").text
    door.post("/spec/undo")
    assert door.spec == before


def test_answers_are_remembered_for_the_same_table_only(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    door.post("/table/choose", source="people.csv")
    asked = []
    monkeypatch.setattr(Jobs, "submit", lambda *words, **more: asked.append(words))
    assert door.page.get("/columns").status_code == 200
    assert asked == []
    (door.folder / "people.csv").write_text(people(50))
    assert "Looking at the table" in door.page.get("/columns").text
