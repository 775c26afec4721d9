# SPDX-License-Identifier: Apache-2.0
"""The sections of a report's page on what the release is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from anonfit.report.markup import (
    Head,
    Markup,
    Report,
    Section,
    curve_lines,
    figure,
    key,
    number_text,
    paragraph,
    percent,
    share_in_words,
    shortened,
    stack,
    table,
    tiling_figure,
    together,
    value_text,
)

LONGEST = 60
"""Letters of a label."""
COLUMN_METRICS = {"ncp": "NCP", "together": "Pairs not told apart"}
"""How metrics of columns are headed; others by their names, as words."""
MOST_CURVES = 6
SPANS = (
    ("s0", "at most 5 % of all fit the label"),
    ("s1", "to 25 %"),
    ("s2", "to 50 %"),
    ("s3", "more"),
    ("s4", "everybody: nothing is told"),
)


def _detail(report: Report) -> list[Markup]:
    """How much detail each column kept, as a picture."""
    weights = report["asked"]["weights"]
    columns = "Column|name; How precise labels are|picture; Kept|number; Labels|number; Most frequent label|text"
    rows = [
        (
            line["column"] + (f" (weight {weights[line['column']]:g})" if line["column"] in weights else ""),
            _precision(line),
            percent(line["kept"]),
            value_text(line["labels"]),
            shortened(line["frequent_label"], LONGEST),
        )
        for line in report["detail"]
    ]
    words = (
        "A label rules out everybody who does not fit it. The picture shows how large a share of all persons fit the "
        "label that persons have; “kept” is how many a label rules out on average, against how many the value itself "
        "would (for numbers and dates: all others). Both are found from the release itself."
    )
    return [
        paragraph(words if report["audit"]["counted"] != "entities" else words.replace("persons", "records")),
        key(SPANS),
        table("Quasi-identifiers.", columns, rows),
        *([columns_part(report["columns_lost"])] if report.get("columns_lost") else []),
    ]


def _precision(line: Mapping[str, Any]) -> Markup:
    counted = "persons" if "persons_by_span" in line else "records"
    numbers = [entry[counted] for entry in line[f"{counted}_by_span"]]
    shares = [(f"s{index}", number / (sum(numbers) or 1)) for index, number in enumerate(numbers)]
    words = "; ".join(
        f"{percent(share)} {name}" for (_, share), (_, name) in zip(shares, SPANS, strict=True) if share > 0
    )
    return stack(shares, f"{line['column']}: {words}")


def _partition(report: Report) -> list[Markup]:
    """The regions over two columns."""
    return [tiling_figure(report["partition"], report["asked"]["k"])] if report["partition"] else []


def _workload(report: Report) -> list[Markup]:
    """What the release is worth for each part of what it is for."""
    parts = {"selections": _selections, "queries": queries_part, "clusters": clusters_part}
    predicted = [_predictions(report)] if report["predictions"] else []
    return predicted + [part(report[name]) for name, part in parts.items() if report.get(name)]


def _predictions(report: Report) -> Markup:
    rows = []
    for line in report["predictions"]:
        error = line.get("typical_error")
        error_text = "" if error is None else f"{number_text(error['regions'])} (before: {number_text(error['table'])})"
        rows.append(
            (
                line["column"],
                line["measure"],
                share_in_words(line["table"]),
                share_in_words(line["regions"]),
                error_text,
            )
        )
    columns = "Target|name; Measure; From the whole table|number; From the group|number"
    if any(row[4] for row in rows):
        columns += "; Typical error from the group|number"
    words = (
        "Every record's target is predicted from the other records, of its group or of the whole table: by their most "
        "frequent class, or by their mean. Regions that were made for a target have seen it, which flatters them; the "
        "comparison on held-out records below does not."
    )
    if not report["comparison"]:
        words = words.partition(" Regions that")[0]
    caption = "Targets, predicted record by record from the others."
    return together([paragraph(words), table(caption, columns, [row[: columns.count(";") + 1] for row in rows])])


def _selections(selections: Mapping[str, Any]) -> Markup:
    """How well selections are answered: by number in public, all of it for the owner of the data."""
    if "selections" in selections:
        return _all_selections(selections)
    if not selections["answers"]:
        asked = value_text(selections["asked"])
        return paragraph(
            f"{asked} selection(s) asked for; how well they are answered was not measured, or cannot be told."
        )
    words = (
        "A recipient who asks for the rows of a selection gets all rows of every group that may hold such a row. "
        "Imprecision counts the rows that were not asked for, precision is the share of those that were. Both are told "
        "only where enough persons are asked for and left out, and in multiples of "
        f"{selections['multiples_of']:,} (rounded down)."
    )
    rows = [
        (
            value_text(line["number"]),
            "not told" if line["imprecision"] is None else value_text(line["imprecision"]),
            share_in_words(line["precision"]),
            "" if line["recall"] is None else percent(line["recall"]),
        )
        for line in selections["answers"]
    ]
    columns = "Selection|name; Imprecision|number; Precision|number; Recall|number"
    return together([paragraph(words), table("Selections, by number.", columns, rows)])


def _all_selections(selections: Mapping[str, Any]) -> Markup:
    rows = [
        (
            line["name"],
            value_text(line["true"]),
            value_text(line["answered"]),
            percent(line["precision"]),
            percent(line["recall"]),
        )
        for line in selections["selections"][:200]
    ]
    columns = "Selection|name; Asked for|number; Answered|number; Precision|number; Recall|number"
    caption = "Selections. Answered are all rows of every group that may hold a row that is asked for."
    more = len(selections["selections"]) - len(rows)
    note = f"{more:,} more are in the internal record." if more > 0 else ""
    warnings = [paragraph(text, "soft") for text in (*selections["warnings"][:20], note) if text]
    return together([table(caption, columns, rows), *warnings])


def _comparison(report: Report) -> list[Markup]:
    """Blind against made for the purpose."""
    comparison = report["comparison"] or {}
    if not any(comparison.get(name) for name in ("targets", "selections", "columns")):
        return []
    drawn = " All were drawn at random from the table." if comparison["sampled"] else ""
    judged = (
        f" Both then predict {comparison['held_out_rows']:,} other records, which had no part in making them."
        if comparison["targets"]
        else ""
    )
    words = (
        f"Regions were made twice of {comparison['known_rows']:,} records at the same k: blind, and for the purpose."
        f"{judged}{drawn} Fewer records make coarser regions, so the release itself is likely to do better than this."
    )
    parts: list[Markup] = [paragraph(words)]
    if comparison["targets"]:
        rows = [_compared(line) for line in comparison["targets"]]
        columns = (
            "Target|name; Measure; Without regions|number; Blind|number; For the purpose|number; Gain in points|number"
        )
        parts.append(table("Targets of held-out records (± two standard errors).", columns, rows))
    if comparison["selections"]:
        blind, purpose = (comparison["selections"][name]["precision"] for name in ("blind", "purpose"))
        words = f"{comparison['selections']['asked']:,} asked for"
        columns = "Selections|name; Blind|number; For the purpose|number"
        caption = "Precision of the answers, of all selections together of which may be told."
        parts.append(table(caption, columns, [(words, share_in_words(blind), share_in_words(purpose))]))
    if comparison.get("columns"):
        parts.append(columns_compared_part(comparison["columns"]))
    return parts


def _compared(line: Mapping[str, Any]) -> tuple[str, ...]:
    gain = f"{line['different']} differ" if isinstance(line["different"], str) else "not told"
    if line["gain"] is not None:
        noise = "" if line["noise"] is None else f" ± {100 * line['noise']:.1f}"
        gain = f"{100 * line['gain']:+.1f}{noise}"
    return (
        line["column"],
        line["measure"],
        *(share_in_words(line[name]) for name in ("whole", "blind", "purpose")),
        gain,
    )


def _curve(report: Report) -> list[Markup]:
    """Risk against utility over k."""
    curve = report["curve"]
    if not curve:
        return []
    points = curve["points"]
    names = list(dict.fromkeys(target["column"] for point in points for target in point["targets"]))
    rows = [_point(point, names) for point in points]
    heads = [*names, "Precision of selections", "Detail kept", "Highest risk", "Average risk"]
    used = [index for index in range(len(heads)) if any(row[index + 1] for row in rows)]
    columns = [Head(heads[index], "number") for index in used]
    cells = [(row[0], *(row[index + 1] or "none" for index in used)) for row in rows]
    pictures = [_curve_of(points, name) for name in names[:MOST_CURVES]] or [_curve_of(points, None)]
    words = (
        f"Regions of other k, made of {curve['known_rows']:,} records and judged by {curve['held_out_rows']:,} others. "
        "The highest risk is what k allows."
    )
    return [
        paragraph(words),
        Markup(f'<div class="pair">{together(pictures)}</div>'),
        table("Risk and utility over k.", "k|name", cells, more=columns),
    ]


def _point(point: Mapping[str, Any], names: list[str]) -> tuple[str, ...]:
    values = {target["column"]: target["value"] for target in point["targets"]}
    rest = [point["precision"], point["kept"], point["highest_risk"], point["average_risk"]]
    shares = [*(values.get(name) for name in names), *rest]
    return (str(point["k"]), *("" if share is None else percent(share) for share in shares))


def _curve_of(points: Sequence[Mapping[str, Any]], name: str | None) -> Markup:
    """The curve of a target, with the detail that is kept; of that alone where there is no target."""
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


SHOWN = 200
"""Queries that the internal page shows; all are in the internal record."""


def queries_part(log: Mapping[str, Any]) -> Markup:
    """How the queries of a log are answered: together in public, each for the owner of the data."""
    if "queries" in log:
        return _all_queries(log)
    if not log["told"]:
        return paragraph(
            f"{value_text(log['asked'])} different question(s) of a query log were asked of the release; how well it "
            "answers them cannot be told."
        )
    words = (
        f"A query log has {log['asked']:,} different question(s). Of {log['told']:,} it can be told how well the "
        "release answers them, all together: a recipient gets every row of the groups that may hold what is meant, and "
        "estimates a count by the share of each group that lies in what is asked for. What is told follows from the "
        f"rows that were not meant, in multiples of {log['multiples_of']:,} (rounded down) for each."
    )
    error = log["count_error"]
    row = (
        value_text(log["imprecision"]),
        percent(log["precision"]),
        "" if error is None else percent(error),
    )
    columns = "Rows not meant|number; Precision|number; Relative error of counts|number"
    return together([paragraph(words), table("Queries of the log, together.", columns, [row])])


def _all_queries(log: Mapping[str, Any]) -> Markup:
    rows = [
        (
            line["where"] or "all rows",
            ", ".join(line["groups"]),
            value_text(line["times"]),
            value_text(line["true"]),
            value_text(line["answered"]),
            value_text(round(line["expected"])),
            percent(line["precision"]),
            "; ".join(f"{estimate['of']} {_error(estimate['error'])}" for estimate in line["errors"]),
        )
        for line in log["queries"][:SHOWN]
    ]
    columns = (
        "Selected|name; By group; Times|number; Meant|number; Answered|number; Expected|number; "
        "Precision|number; Relative errors"
    )
    words = (
        "Meant are the rows that a query selects, answered those of every group that may hold one of them, expected "
        "the estimate of their number if values are spread evenly over each group. Relative errors are of what is "
        "estimated that way, over all groups of a query."
    )
    parts = [paragraph(words), table("Queries of the log.", columns, rows)]
    if log["left_out"]:
        parts.append(paragraph(f"{log['left_out']:,} further questions, asked less often, were not judged.", "soft"))
    return together(parts)


def _error(value: float | None) -> str:
    return "–" if value is None else percent(value)


def _rules(report: Report) -> list[Markup]:
    """Association rules of the release, and which of them hold in the raw rows."""
    mined = report.get("rules")
    if not mined:
        return []
    words = (
        "Association rules that are found in the release itself: of the rows with all of the first, so many have the "
        "second. Anybody can find them; the last column says whether the same holds in the raw rows, where enough "
        "persons are for and against it to tell."
    )
    if not mined["rules"]:
        return [paragraph("No rule was found.")]
    rows = [
        (
            " and ".join(line["given"]),
            line["then"],
            percent(line["support"]),
            percent(line["confidence"]),
            value_text(line["lift"]),
            {True: "yes", False: "no", None: "not told"}[line["holds"]],
        )
        for line in mined["rules"]
    ]
    columns = "Given|text; Then|text; Support|number; Confidence|number; Lift|number; Holds in the raw rows"
    caption = f"{mined['found']:,} rules, of which {mined['hold']:,} hold in the raw rows."
    return [paragraph(words), table(caption, columns, rows)]


def columns_part(losses: Mapping[str, Any]) -> Markup:
    """What columns lost."""
    words = (
        "The certainty penalty (NCP) is the share of a column that the average label covers. The second figure is the "
        "share of all pairs of persons (of records, where persons have several) whom the column alone does not tell "
        "apart: its discernibility as a share. "
        "Labels that overlap tell persons apart although each says little, so the two may disagree. The weighted sum "
        f"of the discernibilities (WDM) is {losses['weighted_discernibility']:,.0f}."
    )
    shown = [name for name in losses["columns"][0] if name not in ("column", "weight", "squares")]
    rows = [
        (line["column"], f"{line['weight']:.2f}", *(percent(line[name]) for name in shown))
        for line in losses["columns"]
    ]
    heads = [Head(COLUMN_METRICS.get(name, name.replace("_", " ").capitalize()), "number") for name in shown]
    caption = "Loss of every column; less is better."
    return together([paragraph(words), table(caption, "Column|name; Weight|number", rows, more=heads)])


def columns_compared_part(losses: Mapping[str, Any]) -> Markup:
    """What columns lost in blind regions and in those for the purpose."""
    rows = [
        (
            line["column"],
            f"{line['weight']:.2f}",
            *(percent(line["ncp"][name]) for name in ("blind", "purpose")),
            *(percent(line["together"][name]) for name in ("blind", "purpose")),
            {"ncp": "only NCP is better", "wdm": "only pairs are better", None: ""}[line["disagree"]],
        )
        for line in losses["columns"]
    ]
    columns = (
        "Column|name; Weight|number; NCP, blind|number; NCP, purpose|number; Pairs, blind|number; "
        "Pairs, purpose|number; Where they disagree"
    )
    return table("Loss of every column, by NCP and by the pairs that it does not tell apart.", columns, rows)


def clusters_part(clusters: Mapping[str, Any]) -> Markup:
    """Clusters of the original and of the release."""
    words = (
        f"{clusters['rows']:,} records were put into {clusters['clusters']} clusters twice: by their raw values, and "
        "by what the release tells of them. Their agreement (adjusted Rand index) is "
        f"{clusters['agreement']:.2f}: 1 if both are the same, 0 if they agree as by chance. Both are judged by the "
        "raw values: what is left within clusters, and what lies between them, as shares of all variance."
    )
    rows = [
        (name, percent(clusters[key]["within"]), percent(clusters[key]["between"]))
        for name, key in (("Of the raw values", "original"), ("Of the release", "release"))
    ]
    columns = "Clusters|name; Within|number; Between|number"
    return together([paragraph(words), table("Clusters.", columns, rows)])


def _exploration(report: Report) -> list[Markup]:
    """The ways to weigh columns that no other one betters: for the owner of the data only."""
    exploration = report.get("exploration")
    if not exploration:
        return []
    kept = [line for line in exploration["candidates"] if line["on_front"]]
    words = (
        f"{len(exploration['candidates']):,} ways were tried, of which {len(kept):,} are not bettered by another. "
        f"Published is, {exploration['rule']}. Each can be made again by its settings; all are in the internal record."
    )
    rows = [
        (
            f"{line['number']}{' (published)' if line['number'] == exploration['published'] else ''}",
            _way(line),
            *(f"{line['figures'][name]:,.4g}" for name in exploration["figures"]),
        )
        for line in kept
    ]
    heads = [Head(title, "number") for title in exploration["figures"].values()]
    ways = table("Ways.", "Number|name; Way|text", rows, more=heads)
    return [paragraph(words), ways]


def _way(line: Mapping[str, Any]) -> str:
    method = line["method"]
    weights = ", ".join(f"{name} {weight:g}" for name, weight in line["weights"].items())
    rule = f", {method['weight_rule']}" if method["criterion"] == "weighted" else ""
    alpha = f" with alpha {method['alpha']:g}" if method["weight_rule"] == "blend" else ""
    return f"{method['criterion']}{rule}{alpha}, seed {method['seed']}{f': {weights}' if weights else ''}"


UTILITY: Sequence[Section] = (
    ("detail", "How much detail each column kept", _detail),
    ("partition", "The regions of two columns", _partition),
    ("workload", "Utility for the workload", _workload),
    ("comparison", "Blind against made for the purpose", _comparison),
    ("rules", "Rules that the release tells", _rules),
    ("exploration", "Ways that were tried", _exploration),
    ("curve", "Risk and utility over k", _curve),
)
