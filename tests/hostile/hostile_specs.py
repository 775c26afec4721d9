# SPDX-License-Identifier: Apache-2.0
"""Hostile cases: specs, settings and words of the command line."""

from __future__ import annotations

from hostile_files import folder, pipe, spec
from hostile_running import ONCE, RUN, Case

SENSITIVE = ('"insensitive"', '"sensitive"')


def _spec(name: str, says: str, *changes: tuple[str, str], more: str = "", status: int = 2) -> Case:
    return Case(name, spec(*changes, more=more), says, status=status, engines=ONCE)


def _words(name: str, says: str, *words: str, status: int = 2, files: dict[str, str] | None = None) -> Case:
    return Case(name, files or {}, says, words=words, status=status, engines=ONCE)


def _set(name: str, says: str, *settings: str, engines: tuple[str, ...] = ONCE, status: int = 2) -> Case:
    words = [word for setting in settings for word in ("--set", setting)]
    return Case(name, {}, says, words=(*RUN, *words), engines=engines, status=status)


SPECS = [
    Case("no spec", {}, "no such spec file", words=("run", "nothing.toml"), engines=ONCE),
    Case("an empty spec", {"spec.toml": ""}, "version", engines=ONCE),
    Case("a folder as spec", {"spec.toml": folder}, "spec.toml", engines=ONCE),
    Case("a pipe as spec", {"spec.toml": pipe}, "not a (regular )?file", engines=ONCE),
    Case("a spec that is no TOML", {"spec.toml": "k 5"}, "spec.toml", engines=ONCE),
    Case("a spec in UTF-16", {"spec.toml": "version = 1".encode("utf-16")}, "byte 0 is not UTF-8", engines=ONCE),
    Case("a spec with NUL bytes", {"spec.toml": b"version = 1\0"}, "spec.toml", engines=ONCE),
    Case(
        "a spec without an end",
        {"spec.toml": lambda path: path.symlink_to("/dev/zero")},
        "not a (regular )?file",
        engines=ONCE,
    ),
    Case("a spec of 5,000 arrays in each other", {"spec.toml": "a = " + "[" * 5000 + "]" * 5000}, "deep", engines=ONCE),
    Case(
        "a spec with a number of 5,000 digits", spec(("k = 5", "k = " + "9" * 5000)), "beyond all bounds", engines=ONCE
    ),
    _spec("a spec of another version", "version", ("version = 1", "version = 99")),
    _spec("a spec without a version", "version", ("version = 1\n", "")),
    _spec("k of nought", "privacy.k must be at least 1; found 0", ("k = 5", "k = 0")),
    _spec("a negative k", "privacy.k must be at least 1; found -3", ("k = 5", "k = -3")),
    _spec("a k that is a text", "privacy.k", ("k = 5", 'k = "5"')),
    _spec("a k that is no whole number", "privacy.k", ("k = 5", "k = 5.5")),
    _spec("a k that is true", "privacy.k", ("k = 5", "k = true")),
    Case("a k that is larger than the table", spec(("k = 5", "k = 61")), "fewer than k = 61", status=1),
    Case("a k of 30 digits", spec(("k = 5", "k = " + "9" * 30)), "fewer than k", status=1),
    Case("the largest k", spec(("k = 5", "k = 9223372036854775807")), "fewer than k", status=1),
    _spec("unknown keys", "did you mean 'k'", ("k = 5", "k = 5\nkk = 5")),
    _spec("an unknown section", "privcy", more="[privcy]\nk = 3\n"),
    _spec(
        "columns that are a number",
        "columns",
        ("version = 1", "version = 1\ncolumns = 3"),
        ("[columns.age]", "[other.age]"),
        ("[columns.sex]", "[other.sex]"),
        ("[columns.illness]", "[other.illness]"),
    ),
    _spec("a section that is a list", "privacy", ("[privacy]\nk = 5", "[[privacy]]\nk = 5")),
    _spec("a role that is a list", "role", ('"insensitive"', '["insensitive"]')),
    _spec("an unknown role", "did you mean 'insensitive'", ('"insensitive"', '"insensitiv"')),
    _spec("an unknown type", "type", ('"insensitive"', '"insensitive"\ntype = "numbers"')),
    Case("a quasi-identifier that the table lacks", spec(more='[columns.zip]\nrole = "quasi-identifier"\n'), "zip"),
    Case("a column without a role", spec(('[columns.sex]\nrole = "quasi-identifier"\n', "")), "'sex'"),
    _spec("no quasi-identifier", "quasi-identifier", ('"quasi-identifier"', '"insensitive"')),
    _spec("a domain upside down", "domain", ("[columns.sex]", "domain = [9, 1]\n[columns.sex]")),
    _spec("a domain that is no number", "domain", ("[columns.sex]", "domain = [nan, inf]\n[columns.sex]")),
    _spec(
        "an order with a value twice",
        "order",
        (
            '[columns.sex]\nrole = "quasi-identifier"',
            '[columns.sex]\nrole = "quasi-identifier"\ntype = "ordinal"\norder = ["m", "f", "m"]',
        ),
    ),
    Case(
        "an order without a value",
        spec(
            (
                '[columns.sex]\nrole = "quasi-identifier"',
                '[columns.sex]\nrole = "quasi-identifier"\ntype = "ordinal"\norder = ["m"]',
            )
        ),
        "sex",
    ),
    _spec("a delimiter of two signs", "delimiter", ("[columns.age]", 'delimiter = "::"\n[columns.age]')),
    Case("a delimiter that ends lines", spec(("[columns.age]", 'delimiter = "\\n"\n[columns.age]')), "delimiter"),
    Case("a delimiter that is a quote", spec(("[columns.age]", "delimiter = '\"'\n[columns.age]")), "delimiter"),
    Case("a delimiter beyond ASCII", spec(("[columns.age]", 'delimiter = "→"\n[columns.age]')), "delimiter"),
    _spec("a suppression limit of 2", "suppression_limit", ("k = 5", "k = 5\nsuppression_limit = 2")),
    _spec(
        "an unknown model", "model", SENSITIVE, more='[[privacy.diversity]]\ncolumn = "illness"\nmodel = "l"\nl = 2\n'
    ),
    _spec(
        "l of nought", "l", SENSITIVE, more='[[privacy.diversity]]\ncolumn = "illness"\nmodel = "distinct-l"\nl = 0\n'
    ),
    _spec(
        "an l that is NaN",
        "l",
        SENSITIVE,
        more='[[privacy.diversity]]\ncolumn = "illness"\nmodel = "entropy-l"\nl = nan\n',
    ),
    Case(
        "an l beyond all values",
        spec(SENSITIVE, more='[[privacy.diversity]]\ncolumn = "illness"\nmodel = "distinct-l"\nl = 99\n'),
        "99",
        status=1,
    ),
    _spec("a selection that is no predicate", "selection", more='[[workload.selections]]\nwhere = "age >="\n'),
    _spec(
        "a selection with a statement in it",
        "selection",
        more='[[workload.selections]]\nwhere = "age > 3; DROP TABLE x"\n',
    ),
    Case("a selection of another column", spec(more='[[workload.selections]]\nwhere = "zip = 3"\n'), "zip"),
    _spec(
        "a selection 20,000 deep",
        "selection|deep|long",
        more=f'[[workload.selections]]\nwhere = "{"(" * 20_000}age > 3{")" * 20_000}"\n',
    ),
    Case("a target that the table lacks", spec(more='[workload]\ntargets = ["zip"]\n'), "zip"),
    _spec("a log that is not there", "log.sql", more='[workload.query_log]\npath = "log.sql"\n'),
    _spec("an algorithm of another kind", "algorithm", more='[method]\nalgorithm = ["tdr"]\n'),
    _spec("a format of another kind", "format", more='[output]\nformat = "xlsx"\n'),
]

SETTINGS = [
    _set("a setting without a value", "--set privacy.k=20", "privacy.k"),
    _set("an unknown setting", "did you mean 'format'", "output.fromat=csv"),
    _set("a setting of nothing", "--set", "=3"),
    _set("a setting within a number", "privacy", "privacy.k.more=3"),
    _set("a setting 5,000 deep", "a is not a setting", "a=" + "[" * 5000 + "]" * 5000),
    _set("a setting with a section in it", "--set|k", 'privacy.k=5\n[output]\nformat="csv"'),
    _set("memory that is no size", "memory", "engine.memory=lots"),
    _set("negative memory", "memory", "engine.memory=-1GB"),
    _set("memory of nought", "memory", "engine.memory=0GB"),
    Case("memory of a kilobyte", {}, "memory", words=(*RUN, "--memory", "1KB"), engines=("duckdb",)),
    _set("a spill folder that is a file", "engine.spill", "engine.spill=people.csv", engines=("duckdb",)),
    _set("a spill folder that cannot be", "engine.spill", "engine.spill=/proc/nowhere", engines=("duckdb",)),
    _set("a start where nothing is refined", "method.start", "method.start=none.json"),
    _words("an engine with a setting in it", "engine", *RUN, "--engine", 'memory"\nmemory="1GB'),
    _words("an unknown engine", "did you mean 'spark'", *RUN, "--engine", "sprak"),
    _words("a curve of words", "--curve needs whole numbers", *RUN, "--curve", "five"),
    _words("a curve of nought", "k", *RUN, "--curve", "0"),
    _words("an unknown verb", "No such command", "rum", "spec.toml"),
    _words("an unknown verb with escapes", "No such command", "\x1b[31mrum", "spec.toml"),
    _words("a verb without its argument", "Missing argument", "run"),
    _words("an unknown option", "No such option", "run", "spec.toml", "--k", "5"),
    _words("a switch with a value", "does not take a value", "run", "spec.toml", "--replace=maybe"),
    _words("an option of another kind", "Invalid value", "audit", "people.csv", "--k", "many"),
    _words("an option out of range", "Invalid value", "audit", "people.csv", "--k", "0"),
]
