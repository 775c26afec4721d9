# SPDX-License-Identifier: Apache-2.0
"""The sections of a report's page on the queries of a log and on association rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anonfit.report.markup import Column, Markup, paragraph, section, table, together
from anonfit.report.wording import percent, value_text

__all__ = ["queries_part", "rules_section"]

SHOWN = 200
"""Queries that the internal page shows; all are in the internal record."""


def queries_part(found: Mapping[str, Any]) -> Markup:
    """How the queries of a log are answered: together in public, each for the owner of the data."""
    if "queries" in found:
        return _all_queries(found)
    if not found["told"]:
        return paragraph(
            f"{value_text(found['asked'])} different question(s) of a query log were asked of the release; how well it "
            "answers them cannot be told."
        )
    words = (
        f"A query log has {found['asked']:,} different question(s). Of {found['told']:,} it can be told how well the "
        "release answers them, all together: a recipient gets every row of the groups that may hold what is meant, and "
        "estimates a count by the share of each group that lies in what is asked for. What is told follows from the "
        f"rows that were not meant, in multiples of {found['multiples_of']:,} (rounded down) for each."
    )
    error = found["count_error"]
    row = (
        value_text(found["imprecision"]),
        percent(found["precision"]),
        "" if error is None else percent(error),
    )
    heads = ("Rows not meant", "Precision", "Relative error of counts")
    columns = [Column(head, "number") for head in heads]
    return together([paragraph(words), table("Queries of the log, together.", columns, [row])])


def _all_queries(found: Mapping[str, Any]) -> Markup:
    rows = [
        (
            line["where"] or "all rows",
            ", ".join(line["groups"]),
            value_text(line["times"]),
            value_text(line["true"]),
            value_text(line["answered"]),
            value_text(round(line["expected"])),
            percent(line["precision"]),
            "; ".join(f"{one['of']} {_error(one['error'])}" for one in line["errors"]),
        )
        for line in found["queries"][:SHOWN]
    ]
    columns = [
        Column("Selected", "name"),
        Column("By group"),
        *(Column(head, "number") for head in ("Times", "Meant", "Answered", "Expected", "Precision")),
        Column("Relative errors"),
    ]
    words = (
        "Meant are the rows that a query selects, answered those of every group that may hold one of them, expected "
        "the estimate of their number if values are spread evenly over each group. Relative errors are of what is "
        "estimated that way, over all groups of a query."
    )
    left = f"{found['left_out']:,} further questions, asked less often, were not judged." if found["left_out"] else ""
    parts = [paragraph(words), table("Queries of the log.", columns, rows)]
    return together([*parts, *([paragraph(left, "soft")] if left else [])])


def _error(value: float | None) -> str:
    return "–" if value is None else percent(value)


def rules_section(report: Mapping[str, Any]) -> Markup:
    """Association rules of the release, and which of them hold in the raw rows."""
    found = report["rules"]
    words = (
        "Association rules that are found in the release itself: of the rows with all of the first, so many have the "
        "second. Anybody can find them; the last column says whether the same holds in the raw rows, where enough "
        "persons are for and against it to tell."
    )
    if not found["rules"]:
        return section("Rules that the release tells", paragraph("No rule was found."), name="rules")
    rows = [
        (
            " and ".join(line["given"]),
            line["then"],
            percent(line["support"]),
            percent(line["confidence"]),
            value_text(line["lift"]),
            {True: "yes", False: "no", None: "not told"}[line["holds"]],
        )
        for line in found["rules"]
    ]
    columns = [
        Column("Given", "text"),
        Column("Then", "text"),
        *(Column(head, "number") for head in ("Support", "Confidence", "Lift")),
        Column("Holds in the raw rows"),
    ]
    caption = f"{found['found']:,} rules, of which {found['hold']:,} hold in the raw rows."
    return section("Rules that the release tells", paragraph(words), table(caption, columns, rows), name="rules")
