# SPDX-License-Identifier: Apache-2.0
"""What the public report of a release says: plain data for report.json, from which the page is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from anonfit.errors import listed
from anonfit.privacy.disclosure import Disclosed
from anonfit.recoding.columns import RecodedColumn
from anonfit.report.words import (
    Json,
    attack_sentences,
    board_content,
    diversity_content,
    joined,
    sentences_of,
    share_text,
)
from anonfit.tables.schema import Role, Schema

ATTACKER = (
    "The assumed attacker knows that a person is in the table, knows all of the person's quasi-identifiers "
    "exactly, and wants to find "
    "the person's record or learn more about the person from it."
)

ATTACKER_OF_ONE = (
    "The assumed attacker knows that a person is in the table, knows exactly what one of the quasi-identifiers says of "
    "the person, and wants to find the person's record or learn more about the person from it."
)

UNSEEN = "Roles, demands and k were proposed by anonfit init and accepted unseen: nobody said that they looked at them."
UNCHECKED = "What was asked could not be checked."
PRESETS = {"tools": "common tools", "ema-0070": "EMA 0070, PRCI", "strict": "strict"}
FORMULAS = (
    "Texts that a spreadsheet may run as formulas, as they begin with =, +, -, @, a tab or a line break, in {}: they "
    "are released as they are. Import the file with its columns as text, or read it by a program."
)
CONSENTED = {
    ("order", "original"): "The order of the rows: it is the input's; who knows that knows which row is whose.",
    ("regions", "observed"): "The ends of labels: they are values of records, the smallest and largest of their group.",
    ("cut_points", "value"): "The cuts, and so the ends of labels: they are values of records.",
}
"""What is given away by settings that need consent."""

TECHNIQUE = {
    Role.IDENTIFIER: "removed",
    Role.QUASI_IDENTIFIER: "generalized",
    Role.SENSITIVE: "retained (sensitive)",
    Role.TARGET: "retained (target)",
    Role.ENTITY: "removed (persons were counted by it)",
    Role.COUNT: "retained (persons a row stands for)",
    Role.SAMPLE_WEIGHT: "retained (sample weight)",
    Role.INSENSITIVE: "retained",
}


def consented(asked: Json) -> list[str]:
    """What is given away by settings that were consented to."""
    return [text for (key, word), text in CONSENTED.items() if asked.get(key) == word]


def _not_covered(report: Json, schema: Schema, recoded: Sequence[RecodedColumn]) -> list[str]:
    """What the evidence says nothing about: what was consented to first, then what this release's settings bring."""
    asked, selections, formulas = report["asked"], report["selections"] or {}, report["formulas"]
    sentences = sentences_of(
        "not_covered.txt",
        guarded=len({demand["column"] for demand in asked["diversity"]}),
        capped=asked["max_confidence"] < 1,
        steered=any(target["used"] for target in asked["targets"]),
        has_entities=schema.of_role(Role.ENTITY),
        has_sensitive=schema.of_role(Role.SENSITIVE),
        has_rare=any(column.has_missing or getattr(column, "other", None) for column in recoded),
        selections=selections.get("answers") or selections.get("selections"),
        several=asked.get("several_quasi_identifiers"),
    )[""]
    runnable = [FORMULAS.format(listed(formulas, 20))] if formulas else []
    return [*consented(asked), *sentences, *runnable]


def _columns(
    asked: Json, schema: Schema, columns: Sequence[RecodedColumn], different: Mapping[str, int | None]
) -> list[dict[str, Any]]:
    """One line per column: its role, what was done to it, and how many different values the release has."""
    more = {column.name: {"type": str(column.type), "different": different[column.name]} for column in columns}
    generalized_targets = {target["column"] for target in asked["targets"]} & set(more)
    return [
        {
            "name": column.name,
            "role": str(column.role),
            "technique": "generalized (target)" if column.name in generalized_targets else TECHNIQUE[column.role],
            **more.get(column.name, {}),
        }
        for column in schema.columns
    ]


def read_content(read: int, kept: int, *left_out: Disclosed) -> Disclosed:
    """The rows that were read; only roughly where the number of rows left out may not be told."""
    return f"{kept} or slightly more" if any(isinstance(number, str) for number in left_out) else read


def following(report: Json, schema: Schema, recoded: Sequence[RecodedColumn]) -> dict[str, Any]:
    """The parts of a report that follow from its other parts, from roles and from the columns of the recoding."""
    asked, attack = report["asked"], report["attack"]
    different = {line["name"]: line.get("different") for line in report["columns"]}
    derived = {
        "attacker": ATTACKER_OF_ONE if asked.get("several_quasi_identifiers") else ATTACKER,
        "not_covered": _not_covered(report, schema, recoded),
        "columns": _columns(asked, schema, recoded, different),
        "diversity": diversity_content(report["audit"]),
        "attack": None if attack is None else attack | {"sentences": attack_sentences(attack)},
    }
    derived["verdict"] = verdict(report)
    return derived | {"board": board_content({**report, **derived})}


def nothing_asked(name: str, reason: str) -> str:
    """A sensitive column that is released without a demand, and the reason that was given."""
    return f"{name}: nothing was asked, so everybody in a group may have the same value. The reason given: “{reason}”."


def verdict(report: Json) -> dict[str, list[str]]:
    """What was asked and met, what was asked and missed, and what nobody asked, in sentences."""
    audit, asked = report["audit"], report["asked"]
    missed = [finding["sentence"] for finding in audit["findings"] if finding["met"] is False]
    return {
        "met": _met(asked) if audit["passed"] else [],
        "missed": list(dict.fromkeys(missed)) if missed or audit["passed"] else [UNCHECKED],
        "not_asked": [
            *_above(audit["prosecutor"]["above"]),
            *(nothing_asked(name, reason) for name, reason in asked["waived"].items()),
            *([UNSEEN] if asked["decisions"] == "accepted" else []),
        ],
    }


def _met(asked: Json) -> list[str]:
    several, guarded = asked.get("several_quasi_identifiers"), [demand["column"] for demand in asked["diversity"]]
    if several:
        sentences = [
            f"The written file holds what was asked of {len(several)} quasi-identifiers: every combination of the "
            "columns of each is shared by at least as many persons as asked of it."
        ]
    else:
        sentences = [
            f"The written file is {asked['k']}-anonymous: every combination of quasi-identifiers in it is shared by at "
            f"least {asked['k']} persons."
        ]
    if guarded:
        sentences.append(f"Every group holds what was asked of {joined(list(dict.fromkeys(guarded)))}.")
    return sentences


def _above(thresholds: Sequence[Json]) -> list[str]:
    """The thresholds in use that some persons are above, unless these are what was asked."""
    parts = []
    for line in thresholds:
        if line["above"]["persons"] != 0:
            share = share_text(line["above"])
            persons = share if "person" in share else f"{share} of persons"
            parts.append(f"{line['threshold']:g} ({PRESETS.get(line['name'], line['name'])}): {persons}")
    if not parts:
        return []
    return [f"Some persons can be found with a probability above thresholds in use. Above {'; above '.join(parts)}."]
