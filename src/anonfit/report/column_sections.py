# SPDX-License-Identifier: Apache-2.0
"""The parts of a report's page on what columns lost by two measures, and on clusters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anonfit.report.markup import Column, Markup, paragraph, section, table, together
from anonfit.report.wording import percent

__all__ = ["clusters_part", "columns_compared_part", "columns_part", "exploration_section"]


def columns_part(found: Mapping[str, Any]) -> Markup:
    """What columns lost."""
    words = (
        "The certainty penalty (NCP) is the share of a column that the average label covers. The second figure is the "
        "share of all pairs of persons (of records, where persons have several) whom the column alone does not tell "
        "apart: its discernibility as a share. "
        "Labels that overlap tell persons apart although each says little, so the two may disagree. The weighted sum "
        f"of the discernibilities (WDM) is {found['weighted_discernibility']:,.0f}."
    )
    rows = [
        (line["column"], f"{line['weight']:.2f}", percent(line["ncp"]), percent(line["together"]))
        for line in found["columns"]
    ]
    heads = ("Weight", "NCP", "Pairs not told apart")
    columns = [Column("Column", "name"), *(Column(head, "number") for head in heads)]
    return together([paragraph(words), table("Loss of every column; less is better.", columns, rows)])


def columns_compared_part(found: Mapping[str, Any]) -> Markup:
    """What columns lost in blind regions and in those for the purpose."""
    rows = [
        (
            line["column"],
            f"{line['weight']:.2f}",
            *(percent(line["ncp"][name]) for name in ("blind", "purpose")),
            *(percent(line["together"][name]) for name in ("blind", "purpose")),
            {"ncp": "only NCP is better", "wdm": "only pairs are better", None: ""}[line["disagree"]],
        )
        for line in found["columns"]
    ]
    heads = ("Weight", "NCP, blind", "NCP, purpose", "Pairs, blind", "Pairs, purpose")
    columns = [Column("Column", "name"), *(Column(head, "number") for head in heads), Column("Where they disagree")]
    return table("Loss of every column, by NCP and by the pairs that it does not tell apart.", columns, rows)


def clusters_part(found: Mapping[str, Any]) -> Markup:
    """Clusters of the original and of the release."""
    words = (
        f"{found['rows']:,} records were put into {found['clusters']} clusters twice: by their raw values, and by what "
        "the release tells of them. Their agreement (adjusted Rand index) is "
        f"{found['agreement']:.2f}: 1 if both are the same, 0 if they agree as by chance. Both are judged by the raw "
        "values: what is left within clusters, and what lies between them, as shares of all variance."
    )
    rows = [
        (name, percent(found[key]["within"]), percent(found[key]["between"]))
        for name, key in (("Of the raw values", "original"), ("Of the release", "release"))
    ]
    columns = [Column("Clusters", "name"), Column("Within", "number"), Column("Between", "number")]
    return together([paragraph(words), table("Clusters.", columns, rows)])


def exploration_section(report: Mapping[str, Any]) -> Markup:
    """The ways to weigh columns that no other one betters: for the owner of the data only."""
    found = report["exploration"]
    kept = [line for line in found["candidates"] if line["on_front"]]
    words = (
        f"{len(found['candidates']):,} ways were tried, of which {len(kept):,} are not bettered by another. Published "
        f"is, {found['rule']}. Each can be made again by its settings; all are in the internal record."
    )
    rows = [
        (
            f"{line['number']}{' (published)' if line['number'] == found['published'] else ''}",
            _way(line),
            *(f"{line['figures'][name]:,.4g}" for name in found["figures"]),
        )
        for line in kept
    ]
    heads = [Column(title, "number") for title in found["figures"].values()]
    columns = [Column("Number", "name"), Column("Way", "text"), *heads]
    return section("Ways that were tried", paragraph(words), table("Ways.", columns, rows), name="exploration")


def _way(line: Mapping[str, Any]) -> str:
    method = line["method"]
    weights = ", ".join(f"{name} {weight:g}" for name, weight in line["weights"].items())
    rule = f", {method['weight_rule']}" if method["criterion"] == "weighted" else ""
    alpha = f" with alpha {method['alpha']:g}" if method["weight_rule"] == "blend" else ""
    return f"{method['criterion']}{rule}{alpha}, seed {method['seed']}{f': {weights}' if weights else ''}"
