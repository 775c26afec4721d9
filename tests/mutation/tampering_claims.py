# SPDX-License-Identifier: Apache-2.0
"""Kinds of tampering with what is said: manifest, recoding and report."""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

from planted import Planted
from tampering import After, harmless, kind, never, pick, recoded

Edit = Callable[[Planted, random.Random], Any]

# --- the manifest -------------------------------------------------------------------------------------------------


def edit(name: str, change: Edit, *, enter: Callable[[Any], Any] = kind) -> None:
    """Enter a kind that edits the manifest or the recoding and nothing else."""

    def plant(p: Planted, rng: random.Random) -> None:
        before = json.dumps([p.manifest, p.recoding])
        change(p, rng)
        if json.dumps([p.manifest, p.recoding]) == before:
            never("nothing changes")

    plant.__name__ = name
    enter(plant)


def put(*path: Any, value: Any) -> Edit:
    """Set an entry of the manifest."""

    def change(p: Planted, _: random.Random) -> None:
        at = p.manifest
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = value

    return change


def names(p: Planted) -> list[str]:
    """The quasi-identifiers."""
    return [column["name"] for column in p.recoding["columns"]]


def sizes(p: Planted) -> Any:
    """The numbers of rows of the groups."""
    return p.data.group_by(p.keys).len()["len"]


def role_of_a_raw_column(p: Planted, rng: random.Random) -> None:
    p.spec["columns"][pick(rng, p.raw)]["role"] = "identifier"


def role_of_a_quasi_identifier(p: Planted, rng: random.Random) -> None:
    p.spec["columns"][pick(rng, names(p))]["role"] = rng.choice(["insensitive", "target", "identifier"])


def set_that_leaves_a_column_out(p: Planted, rng: random.Random) -> None:
    if len(names(p)) < 2:
        never("one quasi-identifier")
    p.spec["privacy"]["quasi_identifiers"] = [{"columns": names(p)[1:], "k": p.spec["privacy"]["k"]}]


def number_raised(*path: str) -> Edit:
    def change(p: Planted, _: random.Random) -> None:
        at = p.manifest
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = at[path[-1]] + 1 if isinstance(at[path[-1]], int) else never("not told")
        p.counts = False

    return change


def demand(p: Planted, rng: random.Random, **one: Any) -> None:
    column = pick(rng, [n for n, c in p.spec["columns"].items() if c["role"] == "sensitive"])
    p.spec["privacy"].setdefault("diversity", []).append({"column": column, **one})


def limit_of_nothing(p: Planted, _: random.Random) -> None:
    if not isinstance(p.manifest["rows"]["withheld"], int) or not p.manifest["rows"]["withheld"]:
        never("nothing withheld")
    p.spec["privacy"]["suppression_limit"] = 0.0


def lower_k(p: Planted) -> None:
    p.spec["privacy"]["k"] = max(1, p.spec["privacy"]["k"] - 1)
    said = json.loads((p.path / "report.json").read_text("utf-8"))
    said["asked"]["k"] = p.spec["privacy"]["k"]
    p.write_json("report.json", said)


def payload_in_the_texts(p: Planted, _: random.Random) -> None:
    p.manifest["data"]["texts"].append("Anna is ill")
    p.counts = False


PRIVACY = ("spec", "privacy")
edit("k_beyond_every_group", lambda p, _: put(*PRIVACY, "k", value=10**6)(p, _))
edit("k_of_zero", put(*PRIVACY, "k", value=0))
edit("k_that_is_a_text", put(*PRIVACY, "k", value="5"))
edit("k_that_is_no_whole_number", put(*PRIVACY, "k", value=1.5))
edit("k_one_beyond_the_smallest_group", lambda p, _: put(*PRIVACY, "k", value=5 * int(sizes(p).min()) + 1)(p, _))
edit("k_lowered", lambda p, _: lower_k(p), enter=harmless)
edit("sets_of_no_columns", put(*PRIVACY, "quasi_identifiers", value=[{"columns": [], "k": 50}]))
edit("no_sets", put(*PRIVACY, "quasi_identifiers", value=[]))
edit("set_of_an_unknown_column", put(*PRIVACY, "quasi_identifiers", value=[{"columns": ["nowhere"], "k": 2}]))
edit("set_that_leaves_a_column_out", set_that_leaves_a_column_out)
edit("role_of_a_quasi_identifier_changed", role_of_a_quasi_identifier)
edit("role_of_a_raw_column_changed", role_of_a_raw_column)
edit("column_declared_that_is_not_released", put("spec", "columns", "more", value={"role": "insensitive"}))
edit("released_rows_raised", number_raised("rows", "released"))
edit("rows_of_the_data_raised", number_raised("data", "rows"))
edit("withheld_rows_raised", number_raised("rows", "withheld"))
edit("dropped_rows_raised", number_raised("rows", "dropped"))
edit("withheld_rows_not_told", put("rows", "withheld", value="fewer than 1000000"))
edit("withheld_rows_that_are_a_text", put("rows", "withheld", value="some"))
edit("limit_below_what_is_withheld", limit_of_nothing)
edit("limit_that_is_none", put(*PRIVACY, "suppression_limit", value=7))
edit("audit_that_did_not_pass", put("audit", "passed", value=False))
edit("payload_in_the_manifest", put("notes", value="secret"))
edit("original_order_without_consent", lambda p, _: p.spec["output"].update(order="original", consent=False))
edit("observed_regions_without_consent", lambda p, _: p.spec["output"].update(regions="observed", consent=False))
edit("unknown_regions", put("spec", "output", "regions", value="any"))
edit("unknown_values", put("spec", "output", "values", value="any"))
edit("another_version", put("version", value=7))
edit("another_format", put("format", value="a release of another tool"))
edit("no_recoded_column", put("spec", "columns", value={}))
edit("demand_that_is_missed", lambda p, rng: demand(p, rng, model="distinct-l", l=10**4))
edit("demand_of_an_unknown_model", lambda p, rng: demand(p, rng, model="l-diversity", l=2))
edit("demand_without_its_parameter", lambda p, rng: demand(p, rng, model="entropy-l"))
edit("demand_on_an_unknown_column", lambda p, rng: demand(p, rng, column="nowhere", model="distinct-l", l=2))
edit("demand_that_is_met", lambda p, rng: demand(p, rng, model="beta-likeness", beta=1e9), enter=harmless)
edit("demand_that_asks_nothing", lambda p, rng: demand(p, rng, model="distinct-l", l=1))
edit("demands_removed", put(*PRIVACY, "diversity", value=[]), enter=harmless)
edit("confidence_that_is_none", put(*PRIVACY, "max_confidence", value=0))
edit("payload_in_a_split", lambda p, rng: p.spec["columns"][pick(rng, names(p))].update(split="Anna is ill"))
edit("payload_in_the_texts", payload_in_the_texts)
edit("payload_in_a_version", put("packages", "numpy", value="1.Anna-is-ill"))
edit("day_that_is_none", put("created", value="9999-99-99"))
edit(
    "format_of_another_file",
    lambda p, _: p.spec["output"].update(format={"csv": "arrow"}.get(p.file.suffix[1:], "csv")),
)


# --- the recoding -------------------------------------------------------------------------------------------------


def has_cuts(column: dict[str, Any]) -> bool:
    return bool(column.get("cuts"))


def nodes_below(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for child in node.get("children", ()):
        yield child
        yield from nodes_below(child)


def has_tree(column: dict[str, Any]) -> bool:
    return "taxonomy" in column


def cut_moved(p: Planted, rng: random.Random) -> None:
    column = recoded(p, rng, lambda one: has_cuts(one) and one["scale"] == "number")
    place = rng.randrange(len(column["cuts"]))
    column["cuts"][place] += 2**-16 if abs(column["cuts"][place]) < 2**30 else 1000.0


def cut_added(p: Planted, rng: random.Random) -> None:
    column = recoded(p, rng, lambda one: one.get("scale") == "number" and "cuts" in one and one["domain"] is None)
    column["cuts"].append((column["cuts"] or [0])[-1] + 12345)


def cut_removed(p: Planted, rng: random.Random) -> None:
    column = recoded(p, rng, has_cuts)
    column["cuts"].pop(rng.randrange(len(column["cuts"])))


def cuts_reversed(p: Planted, rng: random.Random) -> None:
    recoded(p, rng, has_cuts)["cuts"].reverse()


def domain_changed(p: Planted, rng: random.Random) -> None:
    column = recoded(p, rng, lambda one: one.get("scale") in ("number", "whole") and one.get("domain"))
    column["domain"][1] += 12345


def leaf_renamed(p: Planted, rng: random.Random) -> None:
    column = recoded(p, rng, lambda one: has_tree(one) and one["type"] == "nominal")
    pick(rng, [n for n in nodes_below(column["taxonomy"]) if not n.get("children")])["name"] += "x"


def leaves_exchanged(p: Planted, rng: random.Random) -> None:
    column = recoded(p, rng, lambda one: has_tree(one) and one["type"] == "nominal")
    leaves = [n for n in nodes_below(column["taxonomy"]) if not n.get("children")]
    if len(leaves) < 2:
        never("one leaf")
    one, two = rng.sample(leaves, 2)
    one["name"], two["name"] = two["name"], one["name"]


def payload_in_a_node(p: Planted, rng: random.Random) -> None:
    pick(rng, nodes_below(recoded(p, rng, has_tree)["taxonomy"]))["note"] = "secret"


def leaf_twice(p: Planted, rng: random.Random) -> None:
    children = recoded(p, rng, has_tree)["taxonomy"]["children"]
    children.append(dict(children[0]))


def order_changed(p: Planted, rng: random.Random) -> None:
    recoded(p, rng, lambda one: "order" in one)["order"].reverse()


def word_twice(p: Planted, rng: random.Random) -> None:
    order = recoded(p, rng, lambda one: "order" in one)["order"]
    order[1] = order[0]


def missing_denied(p: Planted, rng: random.Random) -> None:
    column = recoded(p, rng, lambda one: True)
    column["missing"] = not column["missing"]


def columns_turned_round(p: Planted, rng: random.Random) -> None:
    p.recoding["columns"].reverse()


def column_taken_away(p: Planted, rng: random.Random) -> None:
    p.recoding["columns"].pop()


def payload_in_the_recoding(p: Planted, rng: random.Random) -> None:
    p.recoding["notes"] = "secret"


def payload_in_a_column(p: Planted, rng: random.Random) -> None:
    pick(rng, p.recoding["columns"])["notes"] = "secret"


def tree_of(p: Planted) -> dict[str, Any]:
    return p.recoding["nodes"] if "nodes" in p.recoding else never("no tree")


def start_moved(p: Planted, rng: random.Random) -> None:
    nodes = tree_of(p)
    place = pick(rng, [i for i, start in enumerate(nodes["start"]) if start > 0])
    nodes["start"][place] += rng.choice([-1, 1])


def split_by_another_column(p: Planted, rng: random.Random) -> None:
    nodes = tree_of(p)
    place = pick(rng, [i for i, column in enumerate(nodes["column"]) if column >= 0])
    nodes["column"][place] = (nodes["column"][place] + 1) % len(p.recoding["columns"])


def set_changed(p: Planted, rng: random.Random) -> None:
    some = pick(rng, [one for one in tree_of(p)["sets"] if len(one) > 1])
    some.pop()


def tree_cut_short(p: Planted, rng: random.Random) -> None:
    nodes = tree_of(p)
    for key in ("column", "children", "start", *(["set"] if nodes["set"] else [])):
        nodes[key].pop()


def cells_joined(p: Planted, rng: random.Random) -> None:
    numbers = pick(rng, [n for n in p.recoding.get("parts", {}).values() if len(set(n)) > 1], "part")
    place = pick(rng, [i for i in range(1, len(numbers)) if numbers[i] != numbers[i - 1]])
    numbers[place] = numbers[place - 1]


def parts_of_another_length(p: Planted, rng: random.Random) -> None:
    pick(rng, p.recoding.get("parts", {}).values(), "part").append(0)


for change in (
    cut_moved, cut_added, cut_removed, cuts_reversed, domain_changed, leaf_renamed, leaves_exchanged, payload_in_a_node,
    leaf_twice, order_changed, word_twice, missing_denied, columns_turned_round, column_taken_away,
    payload_in_the_recoding, payload_in_a_column, start_moved, split_by_another_column, set_changed, tree_cut_short,
    cells_joined, parts_of_another_length,
):  # fmt: skip
    edit(change.__name__, change, enter=harmless if change in (order_changed, start_moved, leaves_exchanged) else kind)


def finding_on_k(said: dict[str, Any]) -> dict[str, Any]:
    return next(one for one in said["audit"]["findings"] if one["name"] == "k")


# --- the report ---------------------------------------------------------------------------------------------------


def report(name: str, change: Callable[[dict[str, Any]], Any]) -> None:
    """Enter a kind that edits report.json."""

    def plant(p: Planted, rng: random.Random) -> After:
        said = json.loads((p.path / "report.json").read_text("utf-8"))
        before = json.dumps(said)
        change(said)
        if json.dumps(said) == before:
            never("nothing changes")
        return lambda: p.write_json("report.json", said)

    plant.__name__ = name
    kind(plant)


report("report_that_says_another_k_was_asked", lambda said: said["asked"].update(k=500))
report("report_that_says_another_k_was_found", lambda said: said["audit"].update(k=500))
report("report_that_says_another_smallest_group", lambda said: said["audit"]["sizes"].update(smallest=500))
report("report_that_counts_other_rows", lambda said: said["rows"].update(released=10**6))
report("report_that_says_nothing_was_withheld", lambda said: said["rows"].update(withheld=0))
report("report_that_says_the_audit_failed", lambda said: said["audit"].update(passed=False))
report("report_without_its_audit", lambda said: said.pop("audit"))
report("report_of_another_format", lambda said: said.update(format="another"))
report("report_whose_verdict_says_another_k", lambda said: said["verdict"].update(met=["The file is 500-anonymous."]))
report(
    "report_whose_sentences_say_another_k", lambda said: said["asked"]["sentences"].append("k = 500: nobody is found.")
)
report("report_whose_finding_says_another_k", lambda said: finding_on_k(said).update(asked=500, found=500))
report("report_with_a_finding_of_another_model", lambda said: said["audit"]["findings"].append(
    {**finding_on_k(said), "name": "t-closeness", "where": "nowhere"}
))  # fmt: skip
report("report_without_a_finding_on_k", lambda said: said["audit"]["findings"].remove(finding_on_k(said)))
report(
    "report_of_another_demand", lambda said: said["asked"]["diversity"].append({"column": "x", "model": "t-closeness"})
)
report("report_of_another_parameter", lambda said: said["asked"]["diversity"][0].update(l=20, t=0.001, c=0.1, alpha=0.01)
       if said["asked"]["diversity"] else never("no demand"))  # fmt: skip
report("report_that_says_all_are_in_one_group", lambda said: said.update(group_sizes=[{
    "low": said["audit"]["persons"], "high": said["audit"]["persons"], "groups": 1, "persons": said["audit"]["persons"],
}]) if said["audit"]["counted"] != "entities" and len(said["group_sizes"]) > 1 and said["asked"]["values"] != "representative"
       else never("nothing to recount"))  # fmt: skip
report("report_without_thresholds", lambda said: said["audit"]["prosecutor"].update(above=[])
       if said["audit"]["counted"] != "entities" and not said["audit"]["sets"] else never("nothing to recount"))  # fmt: skip
report("report_that_covers_everything", lambda said: said.update(not_covered=[]))
report("report_without_columns", lambda said: said.update(columns=[]))
report("report_of_another_role", lambda said: said["columns"][0].update(role="insensitive-looking"))
report("report_of_other_labels", lambda said: next(
    one for one in said["columns"] if one["role"] == "quasi-identifier").update(different=10**6))  # fmt: skip
report("report_of_an_engine_that_is_none", lambda said: said["engine"].update(reason="Mr Smith is ill"))
report("report_with_a_column_many_times", lambda said: said.update(detail=[
    {**said["detail"][0], "kept": age / 100} for age in range(50)]))  # fmt: skip
report("report_with_a_long_curve", lambda said: said.update(curve={
    "points": [{"k": age, "highest_risk": 0.1} for age in range(20, 60)]}))  # fmt: skip
report("report_of_answers_to_nothing", lambda said: said.update(selections={
    "asked": 0, "answers": [{"number": 10**6 + place, "imprecision": 7} for place in range(2000)]}))  # fmt: skip
report("report_of_a_number_that_counts_nothing", lambda said: said["initial_risk"].update(smallest=10**30))
report("report_of_few_that_are_others", lambda said: said["initial_risk"].update(smallest="fewer than 19800203"))
report("report_without_an_attack", lambda said: said.update(attack=None))
report("report_of_an_attack_on_nothing", lambda said: said["attack"].update(inference=[])
       if said["attack"]["inference"] else never("no secret"))  # fmt: skip
report("report_of_another_method", lambda said: said["asked"].update(algorithm="magic"))
report("report_of_more_rows_than_were_read", lambda said: said["rows"].update(read=10**9))


@kind
def report_that_is_no_json(p: Planted, rng: random.Random) -> After:
    return lambda: (p.path / "report.json").write_text("{") and None


def written_otherwise(name: str, write: Callable[[str], str]) -> None:
    """Enter a kind that writes one JSON file of the folder otherwise, and the hash that the page tells of it."""

    def plant(p: Planted, rng: random.Random) -> After:
        def after() -> None:
            file = p.path / rng.choice(["recoding.json", "report.json"])
            old = file.read_text("utf-8")
            file.write_text(write(old), "utf-8")
            one, two = (hashlib.sha256(text.encode()).hexdigest() for text in (old, write(old)))
            page = p.path / "report.html"
            page.write_text(page.read_text("utf-8").replace(one, two), "utf-8")

        return after

    plant.__name__ = name
    kind(plant)


written_otherwise(
    "json_with_other_white_space", lambda text: json.dumps(json.loads(text), ensure_ascii=False, indent=3)
)
written_otherwise("json_with_spaces_at_its_end", lambda text: text.replace("}\n", "}\n \t \n"))
written_otherwise("json_with_a_letter_escaped", lambda text: text.replace('"format"', '"f\\u006frmat"'))
written_otherwise("json_with_a_number_of_more_digits", lambda text: re.sub(r'("version": \d)', r"\1.000", text))


@kind
def page_with_the_hash_of_another_file(p: Planted, rng: random.Random) -> After:
    def after() -> None:
        page = p.path / "report.html"
        text = page.read_text("utf-8")
        told = re.findall(r"\b[0-9a-f]{64}\b", text)
        page.write_text(text.replace(rng.choice(told), hashlib.sha256(b"other").hexdigest()), "utf-8")

    return after
