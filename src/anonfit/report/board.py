# SPDX-License-Identifier: Apache-2.0
"""What a data steward hands to a review board: method, variables, threshold, risk before and after, and utility, in
sentences that can be copied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from anonfit.report.markup import Report, joined, number_text, percent, share_text, value_text


def board_content(report: Report) -> list[dict[str, Any]]:
    """Paragraphs with their titles, from the rest of a report."""
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
    sentences = [
        f"The table was anonymized with anonfit by {asked['algorithm']}, {_generalization(asked)}",
        *(sentence for sentence in asked["sentences"] if not sentence.startswith("Splits were chosen")),
        f"{value_text(rows['released'])} records were released; {_withheld(rows)}.",
    ]
    if asked.get("order") == "sorted":
        sentences.append("The records were sorted by their released values, so that their order tells nothing.")
    return sentences


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
    sentences = []
    for line in report["columns"]:
        text = f"{line['name']}: {line['role']}, {line['technique']}"
        if detail := kept.get(line["name"]):
            text += (
                f" ({line['type']}, {detail['labels']:,} different labels, {percent(detail['kept'])} of detail kept)"
            )
        sentences.append(f"{text}.")
    return sentences


def _initial(report: Report) -> list[str]:
    risk = report["initial_risk"]
    if risk is None:
        return []
    sentences = [
        f"Before, the smallest group of persons with the same quasi-identifiers had {value_text(risk['smallest'])} "
        f"member(s). Persons who were the only one with theirs: {share_text(risk['alone'])}. Persons who shared theirs "
        f"with fewer than {report['asked']['k']}, themselves included: {share_text(risk['below_k'])}."
    ]
    if risk["average"] is not None:
        sentences.append(f"The average risk of being found was {percent(risk['average'])}.")
    return sentences


def _threshold(report: Report) -> list[str]:
    asked = report["asked"]
    k, several = asked["k"], asked.get("several_quasi_identifiers")
    if several:
        sentences = [
            f"The threshold of {joined(entry['columns'])} is k = {entry['k']}: no person may be found with a "
            f"probability above {percent(1 / entry['k'])} by someone who knows these of the person and that the person "
            "is in the table."
            for entry in several
        ]
    else:
        sentences = [
            f"The threshold is k = {k}: no person may be found with a probability above {percent(1 / k)} by someone "
            "who knows the person's quasi-identifiers and that the person is in the table."
        ]
    presets = [f"{line['threshold']:g} ({line['source']})" for line in report["audit"]["prosecutor"]["above"]]
    return [*sentences, f"For comparison, thresholds in use: {'; '.join(presets)}."]


def _residual(report: Report) -> list[str]:
    audit = report["audit"]
    risk = audit["prosecutor"]
    sentences = [
        "The written file was audited by a program that shares no code with the one that made it. "
        f"{'It holds' if audit['passed'] else 'It does not hold'} all that was asked: {_smallest_groups(audit)}.",
        *([TOGETHER] if audit["sets"] else []),
        f"Highest risk of being found {share_text(risk['highest'])}, average {share_text(risk['average'])} "
        f"(prosecutor); an attacker who links everybody is right for {share_text(audit['marketer'])} (marketer).",
    ]
    above = [f"{line['threshold']:g}: {share_text(line['above'])}" for line in risk["above"]]
    sentences.append(f"Persons whose risk is above the thresholds in use: {'; '.join(above)}.")
    sentences += [line["sentence"] for line in report["diversity"]]
    return sentences + list((report.get("attack") or {}).get("sentences", ()))


TOGETHER = (
    "The following figures are about someone who knows all quasi-identifiers together, of whom nothing was asked."
)


def _smallest_groups(audit: Mapping[str, Any]) -> str:
    """The smallest group, of each quasi-identifier where there are several."""
    if not audit["sets"]:
        sizes = audit["sizes"]
        return f"the smallest of {value_text(sizes['groups'])} groups has {value_text(sizes['smallest'])} persons"
    return "; ".join(
        f"the smallest of {value_text(entry['sizes']['groups'])} groups of {joined(entry['columns'])} has "
        f"{value_text(entry['sizes']['smallest'])} persons"
        for entry in audit["sets"]
    )


def _utility(report: Report) -> list[str]:
    sentences = []
    kept = [line["kept"] for line in report["detail"]]
    if kept:
        sentences.append(
            f"Of the detail of the quasi-identifiers, {percent(sum(kept) / len(kept))} was kept on average, from "
            f"{percent(min(kept))} to {percent(max(kept))} by column."
        )
    sentences += [_prediction(line) for line in report["predictions"] if line["regions"] is not None]
    if report["comparison"] is not None:
        sentences += [_compared(line) for line in report["comparison"]["targets"] if line["gain"] is not None]
    asked = report["selections"] or {}
    answers = asked.get("answers") or asked.get("selections") or ()
    precisions = [line["precision"] for line in answers if line["precision"] is not None]
    if precisions:
        precision = " to ".join(dict.fromkeys([percent(min(precisions)), percent(max(precisions))]))
        sentences.append(
            f"Selections of which may be told: {len(precisions)} of {len(answers)}, answered with a precision of "
            f"{precision}."
        )
    return sentences


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
