# SPDX-License-Identifier: Apache-2.0
"""Hostile cases: other commands than run, releases of strangers, places to write to, and what happens meanwhile."""

from __future__ import annotations

import json
import os
import resource
import signal
from pathlib import Path

from hostile_files import (
    ESCAPE,
    SCRIPT,
    TURNED,
    folder,
    gz_bomb,
    loop,
    named,
    pipe,
    release,
    source,
    unnamable,
    zst_bomb,
)
from hostile_running import BOTH, MARK, ONCE, PEOPLE, RUN, Case

DONE = '(Published|"passed": true)'


def _case(name: str, says: str, *words: str, status: int = 2, **files: object) -> Case:
    return Case(name, files, says, words=words, status=status, engines=ONCE)  # type: ignore[arg-type]


def _json_deep(depth: int) -> str:
    return '{"files": ' + "[" * depth + "]" * depth + "}"


STRANGERS = [
    *(
        Case(
            f"{what} in what tree shows",
            {**named(name), "spec.toml": named(name)["spec.toml"].replace('"insensitive"', '"target"')},
            "Published|passed",
            words=("tree", "spec.toml", "--out", "tree"),
            status=0,
            engines=ONCE,
            shows_values=True,
        )
        for what, name in (("escapes", ESCAPE), ("HTML", SCRIPT), ("a turned direction", TURNED))
    ),
    *(
        Case(
            f"{what} in the tree of a stranger",
            {"there": release(name, kind="tree")},
            "public|class",
            words=("tree", "--from", "there"),
            status=0,
            engines=ONCE,
            shows_values=True,
        )
        for what, name in (("escapes", ESCAPE), ("a turned direction", TURNED))
    ),
    _case("an audit of nothing", "no such file or release folder", "audit", "nothing.csv"),
    _case("an audit of a folder that is no release", "manifest", "audit", "there", there=folder),
    _case("an audit without quasi-identifiers", "--quasi-identifiers", "audit", "people.csv"),
    _case(
        "an audit of columns that are not there",
        "has no column 'zip'",
        "audit",
        "people.csv",
        "--quasi-identifiers",
        "zip",
    ),
    _case(
        "an audit of a pipe",
        "does not exist or is not a file",
        "audit",
        "some.csv",
        "--quasi-identifiers",
        "age",
        **{"some.csv": pipe},
    ),
    _case(
        "an audit of a device without an end",
        "does not exist or is not a file",
        "audit",
        "/dev/zero",
        "--quasi-identifiers",
        "age",
    ),
    _case(
        "an audit of uneven lines",
        "cannot be read",
        "audit",
        "some.csv",
        "--quasi-identifiers",
        "age",
        **{"some.csv": PEOPLE + f"1,m,{MARK},{MARK}\n"},
    ),
    _case(
        "an audit of Latin-1",
        "cannot be read",
        "audit",
        "some.csv",
        "--quasi-identifiers",
        "age",
        **{"some.csv": PEOPLE.replace("flu", "ä").encode("latin-1")},
    ),
    _case(
        "a manifest that is not there", "manifest", "audit", "there", there=release(change=[("manifest.json", None)])
    ),
    _case("a manifest that is no JSON", "manifest", "audit", "there", there=release(change=[("manifest.json", "{")])),
    _case("a manifest that is a list", "manifest", "audit", "there", there=release(change=[("manifest.json", "[]")])),
    _case(
        "a manifest of 100,000 lists in each other",
        "manifest",
        "audit",
        "there",
        there=release(change=[("manifest.json", _json_deep(100_000))]),
    ),
    _case(
        "a manifest of NUL bytes", "manifest", "audit", "there", there=release(change=[("manifest.json", bytes(1000))])
    ),
    _case("a recoding that is no JSON", "recoding", "audit", "there", there=release(change=[("recoding.json", "{")])),
    _case(
        "data that was cut",
        "(changed|hash|damaged|cannot)",
        "audit",
        "there",
        status=1,
        there=release(change=[("data.csv", "age,sex,illness\n")]),
    ),
    _case(
        "a new file in a release", "files", "audit", "there", status=1, there=release(change=[("more.csv", "a\n1\n")])
    ),
    _case(
        "applying a release that was changed",
        "changed after",
        "apply",
        "there",
        "people.csv",
        there=release(change=[("recoding.json", "{}")]),
    ),
    _case(
        "applying a manifest 100,000 deep",
        "damaged",
        "apply",
        "there",
        "people.csv",
        there=release(change=[("manifest.json", _json_deep(100_000))]),
    ),
    _case(
        "applying to other columns",
        "sex",
        "apply",
        "there",
        "other.csv",
        there=release(),
        **{"other.csv": PEOPLE.replace("sex", "six", 1)},
    ),
    _case("applying to an empty file", "is empty", "apply", "there", "other.csv", there=release(), **{"other.csv": ""}),
    _case(
        "applying to too few",
        "no region has 5 persons",
        "apply",
        "there",
        "other.csv",
        status=1,
        there=release(),
        **{"other.csv": f"age,sex,illness\n30,m,{MARK}flu\n"},
    ),
    _case(
        "applying an edited recoding 100,000 deep",
        "recoding",
        "apply",
        "there",
        "people.csv",
        "--recoding",
        "edited.json",
        there=release(),
        **{"edited.json": _json_deep(100_000)},
    ),
    _case("comparing what is not there", "no such release folder", "compare", "there", "where", there=release()),
    _case(
        "comparing a release with itself", "needs two releases or more", "compare", "there", status=2, there=release()
    ),
    _case("a tree of a stranger that is no tree", "damaged|model|format", "tree", "--from", "there", there=release()),
    _case("a tree without a spec", "name a spec", "tree"),
    _case("learning from a log that is not there", "log.sql", "workload", "log.sql", "--spec", "spec.toml"),
    _case(
        "learning from NUL bytes",
        "is no text file",
        "workload",
        "log.sql",
        "--spec",
        "spec.toml",
        **{"log.sql": bytes(1000)},
    ),
    _case("learning from a log without an end", "not a regular file", "workload", "/dev/zero", "--spec", "spec.toml"),
    _case("a proposal for an empty file", "is empty", "init", "some.csv", "--out", "new.toml", **{"some.csv": ""}),
    _case("a proposal that is already there", "already there", "init", "people.csv"),
    _case("a proposal to nowhere", "no such folder", "init", "people.csv", "--out", "no/new.toml"),
    _case(
        "a proposal for a pipe", "not a (regular )?file", "init", "some.csv", "--out", "new.toml", **{"some.csv": pipe}
    ),
    _case(
        "a proposal into a folder",
        "new.toml",
        "init",
        "people.csv",
        "--out",
        "new.toml",
        "--replace",
        **{"new.toml": folder},
    ),
]

SHOWN = [
    case
    for what, name in (
        ("escapes", ESCAPE),
        ("HTML", SCRIPT),
        ("a turned direction", TURNED),
        ("markup", "[bold]x[/bold]"),
    )
    for case in (
        Case(
            f"{what} in what init shows",
            named(name),
            "Wrote|spec",
            words=("init", "people.csv", "--out", "new.toml"),
            status=0,
            engines=ONCE,
        ),
        Case(
            f"{what} in what audit shows",
            {**named(name), "there": release(name)},
            "k = |passed",
            words=("audit", "there", "--source", "people.csv"),
            status=0,
            engines=ONCE,
        ),
        Case(
            f"{what} in the page of an audit",
            {**named(name), "there": release(name)},
            "k = |passed",
            words=("audit", "there", "--source", "people.csv", "--html", "page.html"),
            status=0,
            engines=ONCE,
        ),
        Case(
            f"{what} in what a taxonomy shows",
            {"tree.json": json.dumps({"*": {f"{name}1": {f"{name}m": {}, "f": {}}, "z": {"x": {}}}})},
            "level",
            words=("taxonomy", "show", "tree.json"),
            status=0,
            engines=ONCE,
        ),
        Case(
            f"{what} in what compare shows",
            {"there": release(name), "here": release(name, 10)},
            "differ|releases",
            words=("compare", "there", "here", "--out", "page.html"),
            status=0,
            engines=ONCE,
        ),
    )
]

OUTPUTS = [
    Case("a place that is taken", {"release": folder}, "already there"),
    Case("a file in the place", {"release": "mine"}, "already there"),
    Case("replacing what is no release", {"release": folder}, "not a release", words=(*RUN, "--replace")),
    Case("a place in no folder", {}, "no such folder", words=("run", "spec.toml", "--out", "no/release")),
    Case(
        "a place that cannot be written",
        {},
        "(cannot|could not) be written|no such folder",
        words=("run", "spec.toml", "--out", "/proc/release"),
    ),
    Case("a place in a file", {}, "folder", words=("run", "spec.toml", "--out", "people.csv/release")),
    Case(
        "a name of a place that is too long",
        {},
        "too long|no such folder",
        words=("run", "spec.toml", "--out", "n" * 300),
    ),
    Case("a link to itself as place", {"release": loop}, "release"),
    Case(
        "a place with escapes in its name", {}, DONE, status=0, words=("run", "spec.toml", "--out", "re\x1b[31mlease")
    ),
    Case(
        "a source whose name is no UTF-8",
        {"x": unnamable},
        "not UTF-8",
        words=("init", os.fsdecode(b"pe\xff\xfeople.csv"), "--out", "new.toml"),
        engines=ONCE,
    ),
]


MEANWHILE = [
    *(
        Case(
            f"the source vanishes while {doing}",
            {},
            "(Published|passed|people.csv)",
            status=status,
            meanwhile=(stage, lambda folder: (folder / "people.csv").unlink()),
            engines=("memory",),
        )
        for stage, doing, status in (("Reading", "it is to be read", 2), ("Coding", "it is coded", 0))
    ),
    *(
        Case(
            f"a signal {number.name} while {doing}",
            {},
            says,
            status=128 + number,
            meanwhile=(stage, lambda _, number=number: os.kill(os.getpid(), number)),
            engines=engines,
        )
        for number, says in (
            (signal.SIGINT, "interrupted; a release that was not finished is not published"),
            (signal.SIGTERM, "terminated; a release that was not finished is not published"),
            (signal.SIGHUP, "terminated; a release that was not finished is not published"),
        )
        for stage, doing, engines in (("Coding", "rows are coded", BOTH), ("Auditing", "the file is audited", BOTH))
    ),
    Case(
        "somebody takes the place meanwhile",
        {},
        "release",
        meanwhile=("Auditing", lambda folder: (folder / "release").write_text("mine")),
        stays="release",
    ),
]

# The machine code stays where it is: without it, and without a home, it would be made anew in the temporary folder.
HOME = {"HOME": "-", "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")}
PROCESSES = [
    Case(
        "addresses of one gigabyte",
        {},
        "may address 1.0 GiB of memory only",
        limits={resource.RLIMIT_AS: 1 << 30},
        engines=ONCE,
    ),
    Case(
        "a file may have 1,000 bytes",
        {},
        "full|space|large|cannot be",
        limits={resource.RLIMIT_FSIZE: 1000},
        engines=("memory",),
    ),
    Case("a file may have 20,000 bytes", {}, "full|space|large|cannot be", limits={resource.RLIMIT_FSIZE: 20_000}),
    Case("no home", {}, DONE, status=0, environment=HOME, engines=("memory",)),
    Case("no folder for temporary files", {}, DONE, status=0, environment={"TMPDIR": "/nowhere"}, engines=("duckdb",)),
    Case(
        "the locale C",
        {},
        DONE,
        status=0,
        environment={"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        engines=("memory",),
    ),
    Case(
        "output in ASCII",
        named("größe"),
        DONE,
        status=0,
        environment={"PYTHONIOENCODING": "ascii"},
        engines=("memory",),
    ),
]

BIG = 1 << 20
LARGE = [
    Case("a table larger than memory", {}, "larger than the memory that is free", memory=100, engines=("memory",)),
    Case(
        "a gzip bomb",
        {"people.csv.gz": gz_bomb(30 * BIG), **source("people.csv.gz")},
        "larger than the memory that is free",
        memory=10 * BIG,
    ),
    Case(
        "a zstd bomb",
        {"people.csv.zst": zst_bomb(30 * BIG), **source("people.csv.zst")},
        "larger than the memory that is free",
        memory=10 * BIG,
    ),
    Case(
        "a bomb for a proposal",
        {"people.csv.gz": gz_bomb(30 * BIG)},
        "larger than the memory that is free",
        words=("init", "people.csv.gz", "--out", "new.toml"),
        memory=10 * BIG,
        engines=ONCE,
    ),
    Case(
        "a million columns",
        {
            "people.csv": ",".join(f"c{number}" for number in range(1_000_000))
            + "\n"
            + ",".join("1" for _ in range(1_000_000))
            + "\n"
        },
        "(no such column|too many columns)",
    ),
]
