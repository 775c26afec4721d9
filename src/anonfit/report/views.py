# SPDX-License-Identifier: Apache-2.0
"""What templates show of a report that is more than a figure by itself: lines of tables, and pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from anonfit.report.content import PRESETS
from anonfit.report.pictures import bars, curve_lines, figure, paired_bars, stack
from anonfit.report.words import joined, percent, share_in_words, share_text, value_text

Json = Mapping[str, Any]
HOLDS = {True: "holds", False: "does not hold", None: "could not be checked"}
COLUMN_METRICS = {"ncp": "NCP", "together": "Pairs not told apart"}
MOST_CURVES = 6
SPANS = (
    ("s0", "at most 5 % of all fit the label"),
    ("s1", "to 25 %"),
    ("s2", "to 50 %"),
    ("s3", "more"),
    ("s4", "everybody: nothing is told"),
)
OF_ALL_TOGETHER = (
    "Each quasi-identifier alone holds what was asked of it. The figures here are about someone who knows all of them "
    "together, of whom nothing was asked."
)
ATTACKERS = {
    "prosecutor": "knows that the person is in the file",
    "journalist": "knows that the person is in the population",
}


def extent(report: Json) -> list[tuple[str, str]]:
    """What was asked of the smallest groups and what was found, and how much was released by what. With several
    quasi-identifiers nothing on groups of all of them: it would be about another attacker.
    """
    audit, asked = report["audit"], report["asked"]
    facts = [("Records released", value_text(report["rows"]["released"])), ("Made by", asked["algorithm"])]
    if audit["sets"]:
        smallest = [
            (f"Smallest group of {joined(one['columns'])}", value_text(one["sizes"]["smallest"]), one["k"])
            for one in audit["sets"]
        ]
        return [*((name, f"{found} (asked: {k:,})") for name, found, k in smallest), *facts]
    return [
        ("Asked: persons per group", f"{asked['k']:,}"),
        ("Found: smallest group", value_text(audit["sizes"]["smallest"])),
        ("Groups", value_text(audit["sizes"]["groups"])),
        ("Highest risk", share_text(audit["prosecutor"]["highest"])),
        *facts,
    ]


def headline(report: Json) -> dict[str, str]:
    """In one sentence: whether what was asked holds, and how many usual thresholds are missed."""
    if not report["audit"]["passed"]:
        return {"kind": "bad", "words": "What was asked does not hold, or could not be checked."}
    thresholds = report["audit"]["prosecutor"]["above"]
    missed = [line for line in thresholds if line["above"]["persons"] != 0]
    if not missed:
        return {"kind": "good", "words": "What was asked holds, and no usual threshold is missed."}
    words = f"What was asked holds; {len(missed)} of {len(thresholds)} usual thresholds are missed."
    return {"kind": "fair", "words": words}


def findings(audit: Json) -> list[tuple[str, str]]:
    """One line per check, with the columns that failed it; diversity has a table of its own."""
    elsewhere = {measured["model"] for measured in audit.get("diversity", ())}
    checks: dict[tuple[str, Any, Any], list[Json]] = {}
    for finding in audit.get("findings", ()):
        if finding["name"] not in elsewhere:
            # Of several quasi-identifiers each has a line.
            which = finding["where"] if finding["name"] == "k" else None
            checks.setdefault((finding["sentence"], finding["met"], which), []).append(finding)
    rows = []
    for (sentence, met, which), group in checks.items():
        figures = f"asked {value_text(group[0]['asked'])}, found {value_text(group[0]['found'])}"
        if met is True and group[0]["name"] != "k":
            figures = ""
        names_places = which is not None or met is not True
        places = [str(finding["where"]) for finding in group if finding.get("where")] if names_places else []
        rows.append((sentence, "; ".join(part for part in (HOLDS[met], figures, ", ".join(places)) if part)))
    return rows


def attackers(audit: Json) -> list[tuple[str, ...]]:
    """A line for each attacker whose risk was measured."""
    rows = [
        (name, knows, share_text(risk["highest"]), share_text(risk["average"]))
        for name, knows in ATTACKERS.items()
        if (risk := audit.get(name))
    ]
    return [*rows, ("marketer", "links everybody at once", "", share_text(audit["marketer"]))]


def size(entry: Json) -> str:
    """The sizes of a bin of groups."""
    return f"{entry['low']:,}" if entry["low"] == entry["high"] else f"{entry['low']:,} to {entry['high']:,}"


def size_bars(bins: Sequence[Json], words: str) -> Markup:
    """The share of all persons by the size of their group."""
    total = sum(entry["persons"] for entry in bins) or 1
    lines = [(size(entry), entry["persons"] / total, percent(entry["persons"] / total)) for entry in bins]
    return bars(lines, f"Share of all persons by the size of their group. {words}")


def precision(line: Json) -> Markup:
    """How large a share of all fit the labels of a column, as a bar."""
    counted = "persons" if "persons_by_span" in line else "records"
    numbers = [entry[counted] for entry in line[f"{counted}_by_span"]]
    shares = [(f"s{index}", number / (sum(numbers) or 1)) for index, number in enumerate(numbers)]
    words = "; ".join(
        f"{percent(share)} {name}" for (_, share), (_, name) in zip(shares, SPANS, strict=True) if share > 0
    )
    return stack(shares, f"{line['column']}: {words}")


def gain(line: Json) -> str:
    """How much better than blind, in points."""
    if line["gain"] is None:
        return f"{line['different']} differ" if isinstance(line["different"], str) else "not told"
    noise = "" if line["noise"] is None else f" ± {100 * line['noise']:.1f}"
    return f"{100 * line['gain']:+.1f}{noise}"


def _targets(curve: Json) -> list[str]:
    return list(dict.fromkeys(target["column"] for point in curve["points"] for target in point["targets"]))


def curve_table(curve: Json) -> dict[str, Any]:
    """The heads of the figures that were measured over k, and a row for each k."""
    names = _targets(curve)
    rest = {
        "Precision of selections": "precision",
        "Detail kept": "kept",
        "Highest risk": "highest_risk",
        "Average risk": "average_risk",
    }
    rows = []
    for point in curve["points"]:
        values = {target["column"]: target["value"] for target in point["targets"]}
        rows.append([*(values.get(name) for name in names), *(point[name] for name in rest.values())])
    heads = [*names, *rest]
    used = [index for index in range(len(heads)) if any(row[index] is not None for row in rows)]
    cells = [["none" if row[index] is None else percent(row[index]) for index in used] for row in rows]
    numbers = [str(point["k"]) for point in curve["points"]]
    return {
        "heads": [heads[index] for index in used],
        "rows": [[k, *row] for k, row in zip(numbers, cells, strict=True)],
    }


def curves(curve: Json) -> list[Markup]:
    """A picture for each target, with the detail that is kept; of that alone where there is no target."""
    names: list[str | None] = [*_targets(curve)[:MOST_CURVES]]
    return [_curve(curve["points"], name) for name in names or [None]]


def _curve(points: Sequence[Json], name: str | None) -> Markup:
    kept = [point["kept"] for point in points]
    lines, caption = [kept], "Detail kept"
    if name is not None:
        values = [{target["column"]: target["value"] for target in point["targets"]}.get(name) for point in points]
        lines, caption = [values, kept], f"{name} (line) and detail kept (dashed)"
    words = ", ".join(
        f"k = {point['k']}: {share_in_words(value)}" for point, value in zip(points, lines[0], strict=True)
    )
    places = [(f"{point['k']:,}", f"{100 * point['highest_risk']:.3g} %") for point in points]
    drawn = curve_lines(places, lines, ("k", "risk"), f"{caption} by k. {words}")
    return figure(drawn, f"{caption} by k, with the highest risk that k allows.")


def ways(exploration: Json) -> list[tuple[str, ...]]:
    """The ways to weigh columns that no other one betters: for the owner of the data only."""
    return [
        (
            f"{line['number']}{' (published)' if line['number'] == exploration['published'] else ''}",
            _way(line),
            *(f"{line['figures'][name]:,.4g}" for name in exploration["figures"]),
        )
        for line in exploration["candidates"]
        if line["on_front"]
    ]


def _way(line: Json) -> str:
    method = line["method"]
    weights = ", ".join(f"{name} {weight:g}" for name, weight in line["weights"].items())
    rule = f", {method['weight_rule']}" if method["criterion"] == "weighted" else ""
    alpha = f" with alpha {method['alpha']:g}" if method["weight_rule"] == "blend" else ""
    return f"{method['criterion']}{rule}{alpha}, seed {method['seed']}{f': {weights}' if weights else ''}"


def lost(losses: Json) -> dict[str, Any]:
    """The heads of the metrics of columns, those without a title by their names as words, and a row for each column."""
    names = [name for name in losses["columns"][0] if name not in ("column", "weight", "squares")]
    return {
        "heads": [COLUMN_METRICS.get(name, name.replace("_", " ").capitalize()) for name in names],
        "rows": [
            (line["column"], f"{line['weight']:.2f}", *(percent(line[name]) for name in names))
            for line in losses["columns"]
        ],
    }


def distribution(line: Json) -> Markup:
    """How the values of a column are distributed, before and after."""
    lines = [(bar["label"], bar["before"], bar["after"]) for bar in line["bars"]]
    words = "; ".join(
        f"{name}: {percent(before)}" + ("" if after is None else f", after {percent(after)}")
        for name, before, after in lines
    )
    return figure(paired_bars(lines, f"{line['column']}. {words}"), line["column"])


FILTERS = {
    view.__name__: view
    for view in (findings, attackers, size, precision, gain, curve_table, curves, ways, lost, distribution)
}
GLOBALS = {"size_bars": size_bars, "spans": SPANS, "presets": PRESETS, "of_all_together": OF_ALL_TOGETHER}
