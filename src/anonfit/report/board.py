# SPDX-License-Identifier: Apache-2.0
"""What a data steward hands to a review board: method, variables, threshold, risk before and after, and utility, in
sentences that can be copied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from anonfit.report.markup import joined, number_text, percent, share_text, value_text

Report = Mapping[str, Any]


def board_content(report: Report) -> list[dict[str, Any]]:
    """Paragraphs, each with its title; `report` has all other figures."""
    paragraphs = [
        ("Method", _method(report)),
        ("Variables", _variables(report)),
        ("Initial risk", _initial(report)),
        ("Threshold", _threshold(report)),
        ("Residual risk", _residual(report)),
        ("Utility", _utility(report)),
        ("Limits", _limits(report)),
    ]
    return [{"title": title, "sentences": sentences} for title, sentences in paragraphs if sentences]


def _method(report: Report) -> list[str]:
    asked, rows = report["asked"], report["rows"]
    found = [
        f"The table was anonymized with anonfit by {asked['algorithm']}, {_generalization(asked)}",
        *(sentence for sentence in asked["sentences"] if not sentence.startswith("Splits were chosen")),
        f"{value_text(rows['released'])} records were released; {_withheld(rows)}.",
    ]
    if asked.get("order") == "sorted":
        found.append("The records were sorted by their released values, so that their order tells nothing.")
    return found


def _generalization(asked: Mapping[str, Any]) -> str:
    if asked["algorithm"].startswith("top-down refinement"):
        return (
            "a generalization of every column by itself: the values of a column were divided, step by step, into parts "
            "that do not overlap, and every record tells only the part that its value lies in."
        )
    return (
        "a multidimensional generalization: the quasi-identifiers were divided together, step by step, into regions "
        "that do not overlap, and every record tells of them only the region it lies in."
    )


def _withheld(rows: Mapping[str, Any]) -> str:
    withheld, dropped = (value_text(rows[word]) if rows[word] else "none" for word in ("withheld", "dropped"))
    return f"{withheld} were withheld because their group was too small, {dropped} were left out for missing values"


def _variables(report: Report) -> list[str]:
    kept = {line["column"]: line for line in report["detail"]}
    found = []
    for line in report["columns"]:
        text = f"{line['name']}: {line['role']}, {line['technique']}"
        if detail := kept.get(line["name"]):
            text += (
                f" ({line['type']}, {detail['labels']:,} different labels, {percent(detail['kept'])} of detail kept)"
            )
        found.append(f"{text}.")
    return found


def _initial(report: Report) -> list[str]:
    risk = report["initial_risk"]
    if risk is None:
        return []
    found = [
        f"Before, the smallest group of persons with the same quasi-identifiers had {value_text(risk['smallest'])} "
        f"member(s). Persons who were the only one with theirs: {share_text(risk['alone'])}. Persons who shared theirs "
        f"with fewer than {report['asked']['k']}, themselves included: {share_text(risk['below_k'])}."
    ]
    if risk["average"] is not None:
        found.append(f"The average risk of being found was {percent(risk['average'])}.")
    return found


def _threshold(report: Report) -> list[str]:
    asked = report["asked"]
    k, several = asked["k"], asked.get("several_quasi_identifiers")
    one = [
        f"The threshold is k = {k}: no person may be found with a probability above {percent(1 / k)} by someone who "
        "knows the person's quasi-identifiers and that the person is in the table."
    ]
    presets = [f"{line['threshold']:g} ({line['source']})" for line in report["audit"]["prosecutor"]["above"]]
    found = _thresholds(several) if several else one
    return [*found, f"For comparison, thresholds in use: {'; '.join(presets)}."]


def _thresholds(several: Sequence[Mapping[str, Any]]) -> list[str]:
    """The threshold of each of several quasi-identifiers."""
    return [
        f"The threshold of {joined(one['columns'])} is k = {one['k']}: no person may be found with a probability above "
        f"{percent(1 / one['k'])} by someone who knows these of the person and that the person is in the table."
        for one in several
    ]


def _residual(report: Report) -> list[str]:
    audit = report["audit"]
    risk = audit["prosecutor"]
    found = [
        "The written file was audited by a program that shares no code with the one that made it. "
        f"{'It holds' if audit['passed'] else 'It does not hold'} all that was asked: {_found(audit)}.",
        *([TOGETHER] if audit["sets"] else []),
        f"Highest risk of being found {share_text(risk['highest'])}, average {share_text(risk['average'])} "
        f"(prosecutor); an attacker who links everybody is right for {share_text(audit['marketer'])} (marketer).",
    ]
    above = [f"{line['threshold']:g}: {share_text(line['above'])}" for line in risk["above"]]
    found.append(f"Persons whose risk is above the thresholds in use: {'; '.join(above)}.")
    found += [line["sentence"] for line in report["diversity"]]
    return found + list((report.get("attack") or {}).get("sentences", ()))


TOGETHER = (
    "The following figures are about someone who knows all quasi-identifiers together, of whom nothing was asked."
)


def _found(audit: Mapping[str, Any]) -> str:
    """The smallest group; of each of several quasi-identifiers."""
    if not audit["sets"]:
        sizes = audit["sizes"]
        return f"the smallest of {value_text(sizes['groups'])} groups has {value_text(sizes['smallest'])} persons"
    return "; ".join(
        f"the smallest of {value_text(one['sizes']['groups'])} groups of {joined(one['columns'])} has "
        f"{value_text(one['sizes']['smallest'])} persons"
        for one in audit["sets"]
    )


def _utility(report: Report) -> list[str]:
    found = []
    kept = [line["kept"] for line in report["detail"]]
    if kept:
        found.append(
            f"Of the detail of the quasi-identifiers, {percent(sum(kept) / len(kept))} was kept on average, from "
            f"{percent(min(kept))} to {percent(max(kept))} by column."
        )
    found += [_prediction(line) for line in report["predictions"] if line["regions"] is not None]
    if report["comparison"] is not None:
        found += [_compared(line) for line in report["comparison"]["targets"] if line["gain"] is not None]
    asked = report["selections"] or {}
    answers = asked.get("answers") or asked.get("selections") or ()
    told = [line["precision"] for line in answers if line["precision"] is not None]
    if told:
        precision = " to ".join(dict.fromkeys([percent(min(told)), percent(max(told))]))
        found.append(
            f"Selections of which may be told: {len(told)} of {len(answers)}, answered with a precision of {precision}."
        )
    return found


def _prediction(line: Mapping[str, Any]) -> str:
    if line["measure"] == "accuracy":
        whole = "" if line["table"] is None else f"; from the whole table, {percent(line['table'])}"
        return f"{line['column']}: predicted right for {percent(line['regions'])} from the others of a group{whole}."
    return f"{line['column']}: the others of a group explain {percent(max(line['regions'], 0.0))} of its variance."


def _compared(line: Mapping[str, Any]) -> str:
    noise = "" if line["noise"] is None else f" (two standard errors: {number_text(100 * line['noise'])})"
    return (
        f"{line['column']}: on held-out records, regions made for the purpose are at {percent(line['purpose'])} "
        f"{line['measure']}, regions of the same k made blind at {percent(line['blind'])}: a difference of "
        f"{100 * line['gain']:+.1f} points{noise}."
    )


def _limits(report: Report) -> Sequence[str]:
    names = report["asked"]["quasi_identifiers"]
    return [
        report["attacker"],
        f"Quasi-identifiers: {joined(names)}. Not covered by this assessment:",
        *report["not_covered"],
    ]
