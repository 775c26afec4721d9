# SPDX-License-Identifier: Apache-2.0
"""What a report says against the folder, from docs/release-folder.md alone. Part of the independent checker: nothing of
the package.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from checker_labels import need
from checker_regions import is_label
from checker_release import Release

FEW = re.compile(r"(?:all but )?fewer than ([0-9]+)(?: persons)?")
NOT_RECOUNTED = (
    "attack", "detail", "partition", "predictions", "initial_risk", "comparison", "curve", "columns_lost", "clusters",
    "selections", "queries", "rules",
)  # fmt: skip
NOT_RECOUNTED_ALWAYS = ("attack", "detail", "initial_risk", "columns_lost")
K = re.compile(r"\bk = ([0-9]+)")
THRESHOLDS = ((0.2, 5), (0.09, 11), (0.05, 20))
ENGINES = ("memory", "duckdb", "spark")
ALWAYS = (
    "Several releases of the same table, or of tables about the same persons, put side by side.",
    "A person's several rows linked to each other by outside knowledge.",
)
FINDINGS = (
    "undeclared columns", "missing columns", "column order", "labels", "label ends", "disjoint groups", "regions",
    "row order", "released rows", "one group per row", "withheld rows", "whole groups", "withheld groups",
    "observed labels",
)  # fmt: skip


def report_of_release(release: Release, said: dict[str, Any]) -> None:
    """Everything of a report that can be recounted."""
    demands(release, said)
    words(release, said)
    findings(release, said)
    columns(release, said)
    labels(release, said)
    need(all(said.get(name) for name in NOT_RECOUNTED_ALWAYS), "the report lacks what every report has")
    guessed = [one["column"] for one in said["attack"]["inference"]]
    need(sorted(guessed) == sorted(release.having("sensitive", "target")), "the attack was not on every secret")
    for name in NOT_RECOUNTED:
        bounded(said.get(name), max(k for _, k in release.sets))
    need(len((said.get("curve") or {}).get("points") or ()) <= 20, "the report has a curve of too many points")
    need(len((said.get("rules") or {}).get("rules") or ()) <= 30, "the report has too many rules")
    answers, asked = (said.get("selections") or {}).get("answers") or (), release.spec.get("workload", {})
    need(len(answers) <= asked.get("selections", 0), "the report answers more selections than were asked")
    if release.entity is None or release.source is not None:
        figures(release, said)


def bounded(part: Any, k: int) -> None:
    """No more is told than there is to tell: nothing twice, no number that counts nothing."""
    if isinstance(part, dict):
        for value in part.values():
            bounded(value, k)
    elif isinstance(part, list):
        for key in ("column", "number", "k"):
            about = [one[key] for one in part if isinstance(one, dict) and key in one]
            need(len(set(about)) == len(about), "the report says something twice")
        for value in part:
            bounded(value, k)
    elif isinstance(part, int):
        need(abs(part) < 2**63, "the report has a number that counts nothing")
    elif isinstance(part, str) and (few := FEW.fullmatch(part)):
        need(int(few[1]) == k, "the report says another number of few persons")


def demands(release: Release, said: dict[str, Any]) -> None:
    """What was asked is what the manifest claims, of the rows that it counts."""
    asked, privacy, told = said["asked"], release.privacy, release.manifest["rows"]
    need(asked["k"] == privacy["k"], "the report says that another k was asked")
    need(asked["quasi_identifiers"] == release.having("quasi-identifier"), "the report is of other quasi-identifiers")
    need(asked["max_confidence"] == privacy.get("max_confidence", 1), "the report says that another cap was asked")
    claimed = [{k: v for k, v in one.items() if k not in ("taxonomy", "order")} for one in release.demands]
    need(asked["diversity"] == claimed, "the report says that other models were asked")
    several = [(one["columns"], one["k"]) for one in asked.get("several_quasi_identifiers", [])]
    sets = [] if privacy.get("quasi_identifiers") is None else [(list(names), k) for names, k in release.sets]
    need(several == sets, "the report says that other sets were asked")
    need(
        {key: said["rows"][key] for key in ("released", "withheld", "dropped")} == told, "the report counts other rows"
    )
    numbers = [told[key] for key in ("released", "withheld", "dropped")]
    few = any(isinstance(number, str) for number in numbers)
    need(said["rows"]["read"] == (f"{numbers[0]} or slightly more" if few else sum(numbers)), "other rows were read")
    need(asked["algorithm"] == release.manifest["algorithm"], "the report names another method")
    need(said["engine"]["name"] == release.manifest["engine"] in ENGINES, "the report names another engine")
    reason = said["engine"]["reason"]
    need(reason is None or re.fullmatch(r"the table [a-zA-Z ,'.=]{1,120}", reason), "a reason that is none")


def words(release: Release, said: dict[str, Any]) -> None:
    """The verdict is that of the demands, and no text of what was asked names another k than is claimed."""
    asked, sets, k = said["asked"], release.sets, release.privacy["k"]
    met = [
        f"The written file is {k}-anonymous: every combination of quasi-identifiers in it is shared by at least {k} "
        "persons."
    ]
    if release.privacy.get("quasi_identifiers") is not None:
        met = [
            f"The written file holds what was asked of {len(sets)} quasi-identifiers: every combination of the columns "
            "of each is shared by at least as many persons as asked of it."
        ]
    if guarded := list(dict.fromkeys(one["column"] for one in release.demands)):
        met.append(f"Every group holds what was asked of {joined(guarded)}.")
    need(said["verdict"]["met"] == met and said["verdict"]["missed"] == [], "the verdict is another")
    first = [f"k = {k}: every combination of {joined(names)} is shared by at least {k} persons." for names, k in sets]
    told = asked["sentences"][: len(sets)]
    need(all(one.startswith(begin) for one, begin in zip(told, first, strict=True)), "a sentence says another k")
    need(set(ALWAYS) <= set(said["not_covered"]), "the report leaves out what is not covered")
    known = {str(k) for _, k in sets} | {str(k)}
    named = {k for text in asked["sentences"] for k in K.findall(without_own(release, text))}
    need(named <= known, "the report names another k")


def without_own(release: Release, text: str) -> str:
    """A text without the names of columns and the reasons that the owner gave."""
    for name, column in sorted(release.spec["columns"].items(), key=lambda one: -len(one[0])):
        text = text.replace(name, "").replace(column.get("reason") or "\0", "")
    return text


def joined(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def findings(release: Release, said: dict[str, Any]) -> None:
    """All are met, those of the manifest, of names that there are, and those on k say what was asked."""
    told, sets = said["audit"]["findings"], release.privacy.get("quasi_identifiers")
    need(said["audit"]["passed"] is True, "the report says that the audit did not pass")
    need(release.manifest["audit"] == {"passed": True, "findings": told}, "findings of two kinds")
    models = {(one["model"], one["column"]) for one in release.demands}
    for one in told:
        column = (one["where"] or "").partition(" in groups of ")[0]
        known = one["name"] in FINDINGS or one["name"] in ("k", "max_confidence") or (one["name"], column) in models
        need(known and one["met"] is True, "a finding that is none, or is not met")
    asked = [(one["where"], one["asked"]) for one in told if one["name"] == "k"]
    wanted = [(None if sets is None else ", ".join(names), k) for names, k in release.sets]
    need(asked == wanted, "a finding on k says that another was asked")
    each = Counter((one["name"], (one["where"] or "").partition(" in groups of ")[0]) for one in told)
    asked_each = Counter((one["model"], one["column"]) for one in release.demands)
    need(all(each[key] == n * len(release.sets) for key, n in asked_each.items()), "a demand lacks")


def columns(release: Release, said: dict[str, Any]) -> None:
    """Every column with its role and, where one column of the file holds its labels, how many there are."""
    lines = [(one["name"], one["role"]) for one in said["columns"]]
    need(lines == [(n, c["role"]) for n, c in release.spec["columns"].items()], "the report is of other columns")
    for one in said["columns"]:
        if one["role"] == "quasi-identifier":
            held = one["name"] in release.columns
            different = len(release.groups([one["name"]], release.members)) if held else None
            need(one["different"] == different, "the report says that there are other labels")


def labels(release: Release, said: dict[str, Any]) -> None:
    """What is called a label beside the name of a column is one that the recoding can give."""
    known = {column.name: column for column in release.recoding.columns}
    told = [(one["column"], one["label"]) for one in (said.get("partition") or {}).get("held", [])]
    if release.form == "labels" and not release.observed:
        told += [(one["column"], one["frequent_label"]) for one in said.get("detail") or []]
    need(
        all(label is None or is_label(known[name], label) for name, label in told), "the report has a label of nothing"
    )


def figures(release: Release, said: dict[str, Any]) -> None:
    """The figures of the groups: of persons who may have several rows they are multiples of the largest k, rounded
    down.
    """
    found, shown, k = said["audit"], said["audit"]["sizes"], max(k for _, k in release.sets)
    names = release.having("quasi-identifier")
    sizes = sorted(release.persons(rows) for rows in release.groups(names, release.members).values())
    sizes = sizes if release.entity is None else [size // k * k for size in sizes]
    need(found["rows"] == len(release.rows), "the report counts other rows")
    need(found["quasi_identifiers"] == names, "the report is of other quasi-identifiers")
    bins(release, said["group_sizes"], sizes)
    few = None if release.privacy.get("quasi_identifiers") is None else f"fewer than {k}"
    need(shown["smallest"] in (sizes[0], few), "the report says another smallest group")
    need(shown["largest"] in (sizes[-1], few), "the report says another largest group")
    if few is not None:
        return
    need(found["k"] == sizes[0], "the report says another k")
    need(shown["groups"] == len(sizes), "the report says another number of groups")
    need([one["found"] for one in found["findings"] if one["name"] == "k"] == [sizes[0]], "a finding says another k")
    need(math.isclose(found["prosecutor"]["highest"], 1 / max(sizes[0], 1)), "the report says another risk")
    above = [(one["threshold"], one["size"], one["above"]["persons"]) for one in found["prosecutor"]["above"]]
    wanted = [(limit, size, sum(one for one in sizes if one < size)) for limit, size in THRESHOLDS]
    need(above == wanted, "the report says that others are above a threshold")


def bins(release: Release, told: list[dict[str, int]], sizes: list[int]) -> None:
    """Groups by their size; several regions may have the same representatives, of which sums of rounded sizes say
    nothing.
    """
    rounded = release.entity is not None and release.form == "representative"
    need(rounded or sum(one["persons"] for one in told) == sum(sizes), "the report counts other persons in groups")
    if release.form == "representative":
        return
    for one in told:
        inside = [size for size in sizes if one["low"] <= size <= one["high"]]
        need((one["groups"], one["persons"]) == (len(inside), sum(inside)), "the report counts other groups of a size")
    need(sum(one["groups"] for one in told) == len(sizes), "the report leaves groups out")
