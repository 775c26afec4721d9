# SPDX-License-Identifier: Apache-2.0
"""Every setting of a spec, declared once. Reading, writing, the public manifest, keyword arguments, what is refused
with which algorithm, and the tables of docs/spec.md follow from it.

One more setting is a field of `model` (with its type and usual value, and its keyword's type), an entry here, and what
uses it.
"""

from __future__ import annotations

from dataclasses import replace

from anonfit.criteria.objectives import ALGORITHMS, OBJECTIVES
from anonfit.spec import model
from anonfit.spec.columns import COLUMN, DIVERSITY, QUASI_IDENTIFIER, QUASI_IDENTIFIERS
from anonfit.spec.heading import REPORT
from anonfit.spec.kinds import (
    ABOVE_ZERO,
    AT_LEAST_ZERO,
    FRACTION,
    NAMES,
    RECODING,
    SHARE,
    SWITCH,
    TEXTS,
    Given,
    Numbers,
    Public,
    Section,
    Setting,
    ValueKind,
    choice,
    number,
    or_auto,
    text,
    whole,
)
from anonfit.spec.layouts import LAYOUT_SETTINGS
from anonfit.spec.outputs import ENGINE, OUTPUT
from anonfit.spec.workload import QUERY_LOG, SELECTION, TARGET, WORKLOAD
from anonfit.tables.formats import reference
from anonfit.tables.scales import CutPoints
from anonfit.tables.schema import Role

MONDRIAN, TDR, TREE, NO_TREE = ("mondrian",), ("tdr",), ("tree",), ("mondrian", "tdr")
"""Algorithms that a setting is for."""
HIDDEN, CHANGED, NEEDED, ALWAYS = Public.HIDDEN, Public.CHANGED, Public.NEEDED, Public.ALWAYS
COMBINED = ("weight_rule", ("combined",))


# --- values of a kind of their own ------------------------------------------------------------------------------


def _read_default_role(given: Given) -> Role | None:
    role = given.choice(Role)
    if role is not None and role != Role.INSENSITIVE:
        given.faults.add(
            f"{given.place} = '{role}': only 'insensitive' can be a default; name the columns of every other role."
        )
        return None
    return Role(role) if role else None


def _read_k(given: Given) -> int:
    if given.key not in given.table:
        given.faults.add(
            "privacy.k is missing: how many persons must share every released combination? 10 is a common start."
        )
    k: int = replace(given, default=1).of_type(int, "a whole number")
    if k < 1:
        given.faults.add(f"{given.place} must be at least 1; found {k}.")
    return max(k, 1)


def _read_limit(given: Given) -> float:
    limit = given.of_type((int, float), "a fraction of the records such as 0.05")
    if FRACTION.have(limit):
        return float(limit)
    given.faults.add(f"{given.place} is a fraction between 0 and 1; found {limit} (write 0.05 for 5 %).")
    return 0.0


def _read_criterion(given: Given) -> str:
    """The criterion: each algorithm has its own."""
    algorithm = ALGORITHMS.get(str(given.table.get("algorithm")), ALGORITHMS["mondrian"])
    named = OBJECTIVES.get(given.value) if isinstance(given.value, str) else None
    if named is not None and algorithm.name not in named.algorithms:
        owner = named.algorithms[0]
        is_far = algorithm.grows_tree and ALGORITHMS[owner].splits
        why = f"not for algorithm = '{algorithm.name}'" if is_far else f"for algorithm = '{owner}' only"
        given.faults.add(f"{given.place} = '{given.value}' is {why}; use {' or '.join(algorithm.criteria)}.")
        return str(given.default)
    return str(given.choice(algorithm.criteria))


def _read_pruning(given: Given) -> float | None:
    """The confidence of pruning; a wrong one is still one that was asked for."""
    confidence: float = replace(given, default=0.0).number(CONFIDENCE)
    return confidence if given.key in given.table else None


CONFIDENCE = Numbers("a number of at least 0 and at most 0.5 (0: no pruning)", lambda value: 0 <= value <= 0.5)


# --- the sections -----------------------------------------------------------------------------------------------

DATA = Section(
    "data",
    model.DataSpec,
    (
        Setting(
            "source",
            ValueKind(lambda given: given.value, lambda source: source),
            f"{reference()}, Excel, SPSS, Stata, SAS and others ([files.md](files.md)), or a pattern such as "
            "`part-*.parquet`; or a table of a database such as `postgresql://user@host/name#table` "
            "([engines.md](engines.md#databases))",
            "required",
            public=HIDDEN,
            keyword=None,
        ),
        Setting(
            "table",
            text("the name of a table"),
            "the table of the database, if the address does not end with it",
            public=HIDDEN,
            recodes=False,
        ),
        Setting("query", text("a query"), "a query in its place", public=HIDDEN, recodes=False),
        Setting("missing", TEXTS, "texts that mean missing, on top of real nulls and empty fields", public=ALWAYS),
        Setting(
            "missing_policy",
            choice(model.MissingPolicy),
            "`category` (missing is a value), `drop` (rows with a missing quasi-identifier are left out, and counted), "
            "`error`",
            public=ALWAYS,
        ),
        Setting(
            "default_role",
            ValueKind(_read_default_role),
            '`"insensitive"` gives that role to every column not listed',
            "none: every column needs a role",
            recodes=False,
        ),
        *LAYOUT_SETTINGS,
    ),
)

PRIVACY = Section(
    "privacy",
    model.PrivacySpec,
    (
        Setting(
            "k", ValueKind(_read_k), "persons that must share every released combination", "required", public=ALWAYS
        ),
        Setting(
            "suppression_limit",
            ValueKind(_read_limit),
            "fraction of the records that may be withheld (0.05 is 5 %); more is infeasible",
            public=ALWAYS,
            recodes=False,
        ),
        Setting(
            "max_confidence",
            number(SHARE),
            "the largest share that one class of a target may have in a group; above 0, at most 1",
            "`1.0`: no cap",
            public=ALWAYS,
        ),
        Setting(
            "diversity",
            DIVERSITY,
            "what the values of sensitive columns must hold in every group: any number of `[[privacy.diversity]]`",
            public=ALWAYS,
            keyword=None,
        ),
        Setting(
            "quasi_identifiers",
            QUASI_IDENTIFIERS,
            "several sets of columns that someone could know together: any number of `[[privacy.quasi_identifiers]]`",
            "all columns of that role are one",
            algorithms=TDR,
            public=CHANGED,
            keyword="requirements",
        ),
        Setting(
            "class_is_public",
            SWITCH,
            "whether someone could know the class of a person",
            algorithms=TREE,
            public=CHANGED,
            keyword=None,
        ),
        Setting(
            "attack_limit",
            number(FRACTION),
            "the largest fraction of the persons of whose value of any sensitive column a model [learned across "
            "groups](report.md#an-attack-tried) may be at least 90 % sure; a release that exceeds it is not published",
            "`1.0`: no limit",
            algorithms=NO_TREE,
            public=CHANGED,
            recodes=False,
        ),
    ),
)

METHOD = Section(
    "method",
    model.MethodSpec,
    (
        Setting(
            "algorithm",
            choice(ALGORITHMS),
            "`mondrian`; `tdr`: every column is refined by itself ([tdr.md](tdr.md)); `tree`: a k-anonymous decision "
            "tree, or the table that it stands for ([trees.md](trees.md))",
            public=ALWAYS,
        ),
        Setting(
            "criterion",
            ValueKind(_read_criterion, choices=tuple(OBJECTIVES)),
            "which split is best (below)",
            public=ALWAYS,
            public_with=NO_TREE,
        ),
        Setting(
            "cut_points",
            choice(CutPoints, CutPoints),
            "`simplest`: the simplest number or date between two neighbouring values; `value`: the upper one itself, "
            "which needs `consent = true`",
            public=ALWAYS,
        ),
        Setting(
            "candidates",
            choice(model.Candidates),
            "where `infogain` looks for cuts: `boundary` (between values where the class changes) or `all`",
            algorithms=MONDRIAN,
            public=ALWAYS,
            public_with=NO_TREE,
        ),
        Setting(
            "split_on",
            NAMES,
            "the quasi-identifiers that may be split; the others are released as one whole",
            "all",
            algorithms=MONDRIAN,
            public=ALWAYS,
            public_with=NO_TREE,
        ),
        Setting(
            "weight_rule",
            choice(model.WeightRule),
            "how weights enter the choice: `first`, `naive`, `product`, `blend`, `probabilistic` or `combined` (below)",
            "`first`",
            algorithms=MONDRIAN,
            public=ALWAYS,
            public_with=NO_TREE,
        ),
        Setting(
            "alpha",
            number(FRACTION),
            "of `blend`: the share of the weight, 0 to 1; the rest is the width's. Of `combined`: the gain's",
            algorithms=MONDRIAN,
            needs=("weight_rule", ("blend", "combined")),
            public=ALWAYS,
            public_with=NO_TREE,
        ),
        Setting(
            "min_gain",
            or_auto(number(AT_LEAST_ZERO)),
            "a split that gains less for the targets is not made: at least 0, or `auto` (below)",
            algorithms=MONDRIAN,
            public=ALWAYS,
            public_with=NO_TREE,
        ),
        Setting(
            "beta",
            number(FRACTION),
            "of `combined`: the share of weight times width, 0 to 1",
            algorithms=MONDRIAN,
            needs=COMBINED,
            public=NEEDED,
        ),
        Setting(
            "gamma",
            number(FRACTION),
            "of `combined`: the share of the pairs of rows that a split leaves together, which is taken away, 0 to 1",
            algorithms=MONDRIAN,
            needs=COMBINED,
            public=NEEDED,
        ),
        Setting("seed", whole(), "for what draws random numbers (below); it is not published"),
        Setting(
            "average",
            choice(model.Average),
            "anonymity loss is the mean over the quasi-identifiers `containing` the column, or the sum over `all` of "
            "them divided by their number",
            algorithms=TDR,
            public=ALWAYS,
        ),
        Setting(
            "suppression",
            choice(model.SuppressionRule),
            "`all` suppressed values may be disclosed, or of each column only the one of `best_gain`",
            algorithms=TDR,
            public=ALWAYS,
        ),
        Setting(
            "zero_gain",
            SWITCH,
            "`true` also makes refinements that tell nothing of the target, after all others",
            algorithms=TDR,
            public=ALWAYS,
        ),
        Setting(
            "time_budget",
            number(ABOVE_ZERO),
            "of `tdr` and `explore`: the seconds after which it stops, with what was reached until then",
            "none: `explore` tries 32 ways",
            algorithms=TDR,
        ),
        Setting(
            "start",
            RECODING,
            "the `recoding.json` that refining begins with ([tdr.md](tdr.md#starting-from-a-recoding)), relative to "
            "the spec",
            "none: every column is one part",
            algorithms=TDR,
            public=HIDDEN,
        ),
        Setting(
            "variant",
            choice(model.VariantName),
            "`c45` (gain ratio, cuts, pruning) or `id3` (gain, names only)",
            algorithms=TREE,
            public=ALWAYS,
        ),
        Setting(
            "pruning",
            ValueKind(_read_pruning),
            "the confidence of error-based pruning, 0 to 0.5; 0 for none",
            "`0.25` for `c45`, none for `id3`",
            algorithms=TREE,
            public=CHANGED,
        ),
        Setting("max_spans", whole(1, is_raised=True), "more spans are an error", algorithms=TREE),
    ),
)

SECTIONS = {section.name: section for section in (DATA, PRIVACY, WORKLOAD, METHOD, ENGINE, OUTPUT, REPORT)}
"""The sections of a spec that are one table, by name; `[columns]` has one of COLUMN for each column."""
ALL = {**SECTIONS, **{part.name: part for part in (COLUMN, TARGET, SELECTION, QUERY_LOG, QUASI_IDENTIFIER)}}
"""These, and the tables inside of them."""
