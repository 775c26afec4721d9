# SPDX-License-Identifier: Apache-2.0
"""The settings of `[engine]` and `[output]`: where rows are counted, and what is written."""

from __future__ import annotations

from anonfit.engines.catalogue import ENGINES, EngineName
from anonfit.recoding.values import Values
from anonfit.spec import model
from anonfit.spec.kinds import SIZE, SWITCH, Public, Section, Setting, choice, in_words, text, whole
from anonfit.tables.formats import FORMATS, FormatName

MONDRIAN, TREE = ("mondrian",), ("tree",)
HIDDEN, CHANGED, ALWAYS = Public.HIDDEN, Public.CHANGED, Public.ALWAYS
ROWS = whole(1, word="a whole number of rows", fault="{place} = {value} is no number of rows; write 1 or more.")

ENGINE = Section(
    "engine",
    model.EngineSpec,
    (
        Setting(
            "name",
            choice(EngineName, also=ENGINES),
            f"{in_words(('auto', *ENGINES))} ([engines.md](engines.md))",
            keyword="engine",
            recodes=False,
        ),
        Setting(
            "memory",
            SIZE,
            'how much memory `duckdb` may use, such as `"2GB"` or `"512MiB"`',
            "half of what is free",
            recodes=False,
        ),
        Setting(
            "spill",
            text("the path of a folder"),
            "the folder for rows that do not fit; it begins at the spec's folder",
            "the system's temporary folder",
            recodes=False,
        ),
        Setting(
            "hand_over",
            ROWS,
            "nodes of at most so many rows are finished in memory; the release does not depend on it",
            "1048576",
            algorithms=MONDRIAN,
            keyword=None,
        ),
        Setting(
            "sample",
            ROWS,
            "outside memory, upper levels are grown on a sample of about so many rows ([engines.md](engines.md))",
            "none: on all rows",
            algorithms=MONDRIAN,
            recodes=False,
        ),
    ),
)

OUTPUT = Section(
    "output",
    model.OutputSpec,
    (
        Setting(
            "format",
            choice(FormatName),
            f"{in_words(FORMATS)}; text files cannot hold durations and bytes",
            public=ALWAYS,
            keyword=None,
        ),
        Setting(
            "values",
            choice(Values, Values),
            "`labels`, `bounds` or `representative` ([labels.md](labels.md))",
            public=ALWAYS,
            recodes=False,
        ),
        Setting(
            "regions",
            choice(model.Regions),
            "`domain`, or `observed`: labels of what records really have (needs `consent`)",
            public=ALWAYS,
            recodes=False,
        ),
        Setting(
            "intervals",
            choice(model.Intervals),
            "how labels write intervals of whole numbers: `half-open`, `[38, 43)`, or `closed`, `38–42` "
            "([labels.md](labels.md))",
            public=CHANGED,
            recodes=False,
        ),
        Setting(
            "order", choice(model.Order), "`sorted`, or `original` (needs `consent`)", public=ALWAYS, recodes=False
        ),
        Setting(
            "consent",
            SWITCH,
            '`true` accepts what `regions = "observed"`, `order = "original"` and `cut_points = "value"` give away; '
            "without one of them it is refused",
            public=ALWAYS,
            recodes=False,
        ),
        Setting(
            "to",
            text("the address of a database"),
            "a database that the released table is also written to, such as `postgresql://user@host/name#table`",
            "none",
            public=HIDDEN,
            keyword=None,
        ),
        Setting(
            "table",
            text("the name of a table"),
            "the table to write there, if the address does not end with it",
            public=HIDDEN,
            keyword=None,
        ),
        Setting(
            "populations",
            choice(model.Populations),
            "what is told of the leaves, `exact`, `relative` or `majority` ([trees.md](trees.md))",
            algorithms=TREE,
            keyword=None,
        ),
    ),
)
