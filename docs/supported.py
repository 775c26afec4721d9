# SPDX-License-Identifier: Apache-2.0
"""What Mondrian and top-down refinement support: ways to choose splits, privacy models, kinds of columns, and what a
person is.

Printed as docs/supported.md by `python docs/supported.py`; a test runs every combination that it says is supported, and
looks at the error of those that are not.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from anonfit.criteria.objectives import OBJECTIVES
from anonfit.engines.contract import CAPABILITIES, ENGINES, Capability
from anonfit.privacy.catalogue import MODELS
from anonfit.tables.schema import ColumnType


@dataclass(frozen=True, slots=True)
class Choice:
    """Something that can be asked: its name, how a spec asks for it, and what that means."""

    name: str
    asked: str
    words: str


def _named(name: str) -> Choice:
    """A criterion that is asked for by its name, or by what it is for."""
    return Choice(name, OBJECTIVES[name].asked, OBJECTIVES[name].words)


EXPLAINED = ("auto", "score", "median", "infogain", "lsd", "selection", "weighted", "clustering", "explore")
"""Criteria that stand below in ways of their own, or that are no way of their own; others have a plain row."""
CRITERIA = (
    _named("median"),
    Choice(
        "targets",
        "targets, and no criterion",
        "denoised, two-way cuts, and a stop where groups cost more than they tell",
    ),
    Choice("infogain", 'criterion = "infogain"', OBJECTIVES["infogain"].words),
    Choice("infogain, all cuts", 'infogain, candidates = "all"', "also cuts where the class is the same"),
    Choice("infogain, several", "infogain, several targets", "the least sum of weighted entropies is left"),
    Choice("infogain, denoised", "infogain, denoise = true", "judged by the probabilities that models expect"),
    Choice("infogain, predicted", "a target with a fitted model (in Python)", "judged by what the model predicts"),
    Choice("lsd", 'criterion = "lsd"', OBJECTIVES["lsd"].words),
    Choice("lsd, several", "lsd, several targets", "the least sum of standardized squared deviations is left"),
    Choice("lsd, denoised", "lsd, denoise = true", "judged by the numbers that models expect"),
    Choice("infogain and lsd", "targets of both kinds", "the least sum of what is left of each target, as shares"),
    _named("selection"),
    Choice("selection then infogain", "selections and a target with classes", "first selections, then the target"),
    Choice("weighted, first", "weights", "the heaviest column that can be split; then the widest"),
    Choice("weighted, product", 'weights, weight_rule = "product"', "weight times width"),
    Choice("weighted, blend", 'weights, weight_rule = "blend"', "a mean of weight and width"),
    Choice(
        "weighted, naive", 'weights, weight_rule = "naive"', "the heaviest column; then the widest, also with targets"
    ),
    Choice("weighted, probabilistic", 'weights, weight_rule = "probabilistic"', "drawn by weight times width"),
    Choice("infogain, weighted", "weights and a target with classes", "a rule of weights over what is gained"),
    Choice(
        "infogain, combined", 'weights, a target, weight_rule = "combined"', "gain, weight times width and evenness"
    ),
    Choice("infogain, found weights", 'a target, weights_from = "accuracy"', "weights by single-column accuracy"),
    _named("clustering"),
    _named("explore"),
    *(_named(name) for name in OBJECTIVES if name not in EXPLAINED),
    Choice("tdr, score", 'algorithm = "tdr"', "top-down refinement: information gain against anonymity loss"),
    Choice("tdr, infogain", 'algorithm = "tdr", criterion = "infogain"', "top-down refinement: information gain"),
)
"""Ways to choose splits."""

PRIVACY = (
    Choice("k", "k", "every group has at least k persons"),
    *(Choice(name, f'model = "{name}"', entry.words) for name, entry in MODELS.items()),
    Choice("max_confidence", "max_confidence", "no class of a target has a larger share of a group"),
)
"""What every group can be held to. k is always asked; the others are asked beside it."""

COLUMNS = (
    Choice("continuous", 'type = "continuous"', "numbers, cut in two"),
    Choice("date", 'type = "date"', "days or moments, cut in two"),
    Choice("ordinal", 'type = "ordinal" with order', "words in an order, cut in two"),
    Choice("nominal, subset", 'type = "nominal"', "names, divided into two sets"),
    Choice("taxonomy, multiway", "taxonomy", "one level down, all children at once"),
    Choice("taxonomy, binary", 'taxonomy, split = "binary"', "one level down, the children in two groups"),
    Choice("flat, multiway", 'type = "nominal", split = "multiway"', "names, all at once"),
    Choice("flat, binary", 'type = "nominal", split = "binary"', "names, in two groups"),
    Choice("numbers in a taxonomy", "taxonomy over intervals", "numbers, generalized by the tree"),
)
"""Kinds of quasi-identifiers."""

SENSITIVE = (
    Choice("nominal", 'type = "nominal"', "names"),
    Choice("taxonomy", "taxonomy", "names with a tree over them (for t-closeness)"),
    Choice("ordinal", 'type = "ordinal" with order', "words in an order (for t-closeness)"),
    Choice("continuous", 'type = "continuous"', "numbers"),
    Choice("date", 'type = "date"', "days or moments"),
)
"""Kinds of sensitive columns."""

PERSONS = (
    Choice("rows", "no column for it", "a row is a person"),
    Choice("count", 'role = "count"', "a row stands for so many persons"),
    Choice("entity", 'role = "entity"', "persons have several rows"),
    Choice("sample weight", 'role = "sample-weight"', "rows weigh differently in criteria, never in k"),
)
"""What is counted."""

_ENGINES = tuple(Choice(kind.name, f'engine.name = "{kind.name}"', kind.words) for kind in ENGINES.values())


def caps(criterion: str, model: str) -> bool:
    """Whether a model can be asked beside a criterion: a confidence is of classes, and some criteria are of numbers."""
    return model != "max_confidence" or "lsd" not in criterion


def supports(model: str, sensitive: str) -> bool:
    """Whether a model can be asked of a kind of sensitive column. Every other combination is supported."""
    if model not in MODELS:
        return True
    # A tree or an order is declared for a distance only; elsewhere it would be published for nothing.
    if sensitive in ("taxonomy", "ordinal"):
        return model == "t-closeness"
    return ColumnType(sensitive) in MODELS[model].suits


def divides(criterion: str, column: str) -> bool:
    """Whether a criterion can divide a kind of quasi-identifier: top-down refinement has no two groups of names."""
    return not (criterion.startswith("tdr") and column.endswith("binary"))


def _table(corner: str, rows: Sequence[Choice], columns: Sequence[Choice], holds: Callable[[str, str], bool]) -> str:
    lines = [f"| {corner} | " + " | ".join(column.name for column in columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for row in rows:
        cells = ["yes" if holds(row.name, column.name) else "–" for column in columns]
        lines.append(f"| {row.name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _meanings(title: str, choices: Sequence[Choice | Capability]) -> str:
    lines = [f"| {title} | asked by | meaning |", "|---|---|---|"]
    lines += [f"| {choice.name} | {choice.asked} | {choice.words} |" for choice in choices]
    return "\n".join(lines)


def support_page() -> str:
    """The page docs/supported.md."""

    def every(_row: str, _column: str) -> bool:
        return True

    return f"""# What is supported

Printed from the code by `python docs/supported.py > docs/supported.md`. A test runs every combination that
says *yes*, and checks that every other is an error of one sentence.

## Criteria

{_meanings("criterion", CRITERIA)}

A fitted model needs the extra `pandas`, selections the extra `sql`.

### with privacy models

{_table("criterion", CRITERIA, PRIVACY, caps)}

`max_confidence` caps the classes of every column whose role is `target`, whether or not it steers splits; one that is
a number needs `classes`, `equal_width` or `type = "nominal"`. Targets that are quasi-identifiers are released
generalized and not capped; another target must be left. Nothing can be selected by a sensitive column or by a capped
target.

### with kinds of quasi-identifiers

{_table("criterion", CRITERIA, COLUMNS, divides)}

Under top-down refinement, names without a taxonomy (`subset`) are not divided into sets, but disclosed one by one.

### with what a person is

{_table("criterion", CRITERIA, PERSONS, every)}

## Privacy models

{_meanings("model", PRIVACY)}

### with kinds of sensitive columns

{_table("model", [choice for choice in PRIVACY if choice.name in MODELS], SENSITIVE, supports)}

A taxonomy or an order of a sensitive column is for the distance of t-closeness only, since it is published with the
release; without it the column is nominal, and every model but the two for numbers can be asked of it.

### with what a person is

{_table("model", PRIVACY, PERSONS, every)}

## Several quasi-identifiers

`[[privacy.quasi_identifiers]]` goes with `algorithm = "tdr"` only, and there with every criterion, privacy model, kind
of column and of person: what is asked holds in the groups of each quasi-identifier.

## Decision trees

`algorithm = "tree"` (a tree with `anonfit tree`, the table that it stands for with `anonfit run`) goes with one target
with classes, with k, `max_confidence` and `entropy-l` of the target, and with all kinds of columns that are not divided
into sets or two groups; `variant = "id3"` needs names. A row is a person: no column can have the role entity, count or
sample-weight. Everything else is an error ([trees.md](trees.md)).

## Kinds of quasi-identifiers

{_meanings("kind", COLUMNS)}

## What a person is

{_meanings("person", PERSONS)}

## Engines

{_meanings("engine", _ENGINES)}

Every engine gives the same recoding, byte for byte, and the same rows in the same order ([engines.md](engines.md)).
These need the engine `memory`, and are an error of one sentence with any other:

{_meanings("what", CAPABILITIES)}
"""


if __name__ == "__main__":
    sys.stdout.write(support_page())
