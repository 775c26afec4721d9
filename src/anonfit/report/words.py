# SPDX-License-Identifier: Apache-2.0
"""Figures and names as people read them; and what was found, as sentences: the audit's figures of sensitive columns and
targets, what came of the attack, and what a data steward hands to a review board.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Any

from anonfit.privacy.catalogue import MODELS
from anonfit.privacy.likeness import MaxConfidence

SPACE = "\u00a0"
"""A space at which no line is broken."""


def value_text(value: Any) -> str:
    """Any figure, or the text that stands where it may not be told."""
    if isinstance(value, Mapping):
        return value_text(next(iter(value.values()), ""))
    if isinstance(value, float):
        return f"{value:,.4g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, list | tuple):
        return ", ".join(value_text(entry) for entry in value)
    return "" if value is None else str(value)


def percent(value: float) -> str:
    """A share, with as many digits as it takes not to be 0 or 1 by rounding."""
    digits = 1 if 0.0005 < abs(value) < 0.9995 or abs(value) >= 1 or value == 0 else 3
    return f"{100 * value + 0.0:.{digits}f}{SPACE}%"  # + 0.0: there is no less than nothing in "-0.0"


def share_text(value: Any) -> str:
    """A share of persons, or the text that stands where it may not be told."""
    if isinstance(value, Mapping):
        value = value.get("share", value.get("found", value.get("value", "")))
    return percent(value) if isinstance(value, float) else value_text(value)


def share_in_words(share: float | None) -> str:
    """A share, or that it may not be told."""
    return "not told" if share is None else percent(share)


def number_text(value: float) -> str:
    """A number with three digits."""
    return f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def shortened(words: str, most: int) -> str:
    """A text of at most so many letters."""
    return words if len(words) <= most else f"{words[: most - 1]}…"


def joined(names: Sequence[str]) -> str:
    """Names as a sentence has them."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else list(names))


def counted(number: Any, singular: str, plural: str = "") -> str:
    """A number of things, such as `1 selection` or `3 selections`."""
    return f"{value_text(number)} {singular if number == 1 else plural or f'{singular}s'}"


# --- what was found ---------------------------------------------------------------------------------------------

TIE = 1e-9
"""Figures that are so near to each other are equal."""
SHORT = (Decimal("1e-6"), Decimal("1e15"))
"""Figures between these are written out, others with an exponent."""

Measured = Mapping[str, Any]
"""An entry of `diversity` of a public audit."""


def diversity_content(audit: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A sentence for each model that was measured of a column; `audit` is a public one."""
    return [
        {
            "column": measured["column"],
            "model": measured["model"],
            "met": measured["met"],
            "sentence": _within(measured),
        }
        for measured in audit.get("diversity", ())
    ]


def _within(measured: Measured) -> str:
    """The sentence of a finding; with several quasi-identifiers it says in whose groups."""
    columns = measured["settings"].get("quasi_identifier")
    if columns is None:
        return _sentence(measured)
    return _sentence(measured).replace(": ", f": in the groups of {', '.join(columns)}, ", 1)


def _sentence(measured: Measured) -> str:
    figure = measured["found"]
    if not isinstance(figure, int | float):  # not measured, infinite, or about too few persons to be told
        return f"{measured['column']}: {measured['sentence']}"
    if measured["asked"] is None:
        values = "value" if figure == 1 else "values"
        return f"{measured['column']}: every group has at least {figure:g} different {values}; nothing was asked of it."
    return f"{measured['column']}: {_words(measured)}"


def _number(value: float, rounding: str = ROUND_HALF_EVEN) -> str:
    """A figure with four digits, more where its whole part has more; a limit is not rounded to the wrong side."""
    written = Decimal(str(value))  # the shortest number that is meant
    if written and not SHORT[0] <= abs(written) < SHORT[1]:
        return f"{written.quantize(Decimal(1).scaleb(written.adjusted() - 3), rounding).normalize():e}"
    if float(value).is_integer():
        return f"{int(value):,}"
    exact = Decimal(value)
    digits = max(3 - exact.adjusted(), 0)
    # What was asked may be missed by a rounding error, which the audit forgives; so does the text.
    nearest = round(exact, digits)
    if abs(nearest - exact) > Decimal(TIE):
        nearest = exact.quantize(Decimal(1).scaleb(-digits), rounding=rounding)
    text = f"{nearest:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _words(measured: Measured) -> str:
    """A model's sentence with the worst group's figure, and what was asked."""
    model = MODELS.get(measured["model"], MaxConfidence)
    settings = {
        name: _number(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
        for name, value in measured["settings"].items()
    }
    rounding = ROUND_FLOOR if model.bound == "at least" else ROUND_CEILING
    sentence = model.sentence_of(settings).format(_number(measured["found"], rounding))
    return f"{sentence} (asked: {model.bound} {_number(measured['asked'])})."


def attack_sentences(content: Mapping[str, Any]) -> list[str]:
    """What came of an attack, in words."""
    chances = content["re_identification"]
    sentences = [
        f"{content['persons']:,} persons were sought in the release by their exact quasi-identifiers. "
        f"The chance of taking the right record is {chances['chance']:.2%} on average and {chances['highest']:.2%} at "
        f"most; among all records it would be {chances['blind_chance']:.3%}."
    ]
    for line in content["inference"]:
        sentences.append(_guess_sentence(line))
        if "learned" in line:
            sentences.append(_learned_sentence(line["column"], line["learned"]))
    return sentences


def _learned_sentence(column: str, learned: Mapping[str, Any]) -> str:
    sure, right, by_group = (
        "a share that is not told, since too few are or are not," if share is None else f"{share:.1%}"
        for share in (learned["sure"], learned["right"], learned["sure_by_group"])
    )
    of_these = f", and right for {right} of these" if learned["sure"] else ""
    return (
        f"{column}: a model learned from all groups together is at least {learned['at_least']:.0%} sure of the value "
        f"of {sure} of the persons{of_these}; the groups alone make it as likely for {by_group}."
    )


def _off(saved: float) -> str:
    return f"{abs(saved):.1%} {'less' if saved >= 0 else 'more'} off"


def _guess_sentence(line: Mapping[str, Any]) -> str:
    column = line["column"]
    if line["kind"] == "number":
        return (
            f"{column}: guessing the mean of a person's group is {_off(line['error_saved'])} than guessing that of the "
            f"table; without the person's own record, {_off(line['error_saved_by_others'])}."
        )
    if line["accuracy"] is None or line["baseline"] is None:
        return f"{column}: how often it is guessed right is not told, since too few are right or wrong."
    by_others = line["accuracy_by_others"]
    own = "" if by_others is None else f", {by_others:.1%} without the person's own record"
    return (
        f"{column}: the commonest value of a person's group is right for {line['accuracy']:.1%}{own}; that of the "
        f"table for {line['baseline']:.1%}."
    )


def board_content(report: Mapping[str, Any]) -> list[dict[str, Any]]:
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


def _method(report: Mapping[str, Any]) -> list[str]:
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


def _variables(report: Mapping[str, Any]) -> list[str]:
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


def _initial(report: Mapping[str, Any]) -> list[str]:
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


def _threshold(report: Mapping[str, Any]) -> list[str]:
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


def _residual(report: Mapping[str, Any]) -> list[str]:
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


def _utility(report: Mapping[str, Any]) -> list[str]:
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


def _limits(report: Mapping[str, Any]) -> Sequence[str]:
    names = report["asked"]["quasi_identifiers"]
    return [
        report["attacker"],
        f"Quasi-identifiers: {joined(names)}. Not covered by this assessment:",
        *report["not_covered"],
    ]
