# SPDX-License-Identifier: Apache-2.0
"""The folder of a published tree: its claims, files and texts are audited, with its training rows and without."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

import anonfit as af
from anonfit.cli.main import app
from anonfit.release import trees
from json_layout import write_json

SPEC = """version = 1
[data]
source = "people.csv"
missing_policy = "drop"
[columns.name]
role = "identifier"
[columns.age]
role = "quasi-identifier"
[columns.sex]
role = "quasi-identifier"
[columns.dose]
role = "insensitive"
[columns.ill]
role = "target"
[privacy]
k = 10
"""
WAYS = {
    "names": "",
    "relative": '[output]\npopulations = "relative"\n',
    "majority": '[output]\npopulations = "majority"\n',
    "a public class": "class_is_public = true\n",
    "confidence": "max_confidence = 0.95\n",
    "diversity": '[[privacy.diversity]]\ncolumn = "ill"\nmodel = "entropy-l"\nl = 1.01\n',
}


def people(seed: int = 3, rows: int = 400) -> pl.DataFrame:
    rng = random.Random(seed)
    found = [
        {
            "name": f"p{number:03}",
            "age": None if number == 17 else rng.randint(18, 80),
            "sex": rng.choice("mf"),
            "dose": rng.choice(["low", "high"]),
            "pay": rng.randint(10, 99),
        }
        for number in range(rows)
    ]
    return pl.DataFrame([one | {"ill": (one["age"] or 0) + rng.randint(0, 40) > 70} for one in found])


def published(place: Path, more: str = "", spec: str = SPEC) -> Path:
    place.mkdir(exist_ok=True)
    data = people().drop("pay") if "pay" not in spec else people().drop("ill")
    data.write_csv(place / "people.csv")
    (place / "spec.toml").write_text(spec + more, encoding="utf-8")
    af.run_tree(place / "spec.toml", place / "tree")
    return place / "tree"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return published(tmp_path_factory.mktemp("tree"))


def run(*words: str) -> Any:
    return CliRunner().invoke(app, ["audit", *words])


@pytest.mark.parametrize("more", WAYS.values(), ids=WAYS)
def test_a_published_tree_holds_what_it_claims(tmp_path: Path, more: str) -> None:
    spec = SPEC.replace('role = "target"', 'role = "sensitive"').replace(
        "[privacy]", '[workload]\ntargets = ["ill"]\n[privacy]'
    )
    folder = published(tmp_path, more, spec if "diversity" in more else SPEC)
    found = af.audit_tree(folder, tmp_path / "people.csv")
    assert found.missed == ()
    assert found.passed
    assert found.verdict[0].startswith("The release holds what it claims: k = 10 of spans by age, sex")
    frame = pl.read_csv(tmp_path / "people.csv")
    assert af.audit_tree(folder, frame).passed
    alone = af.audit_tree(folder)
    assert alone.passed is False
    assert not [one for one in alone.findings if one.met is False]
    assert {"k", "report figures"} <= {one.name for one in alone.missed}
    assert "not checked in full" in alone.verdict[0]


def test_classes_of_numbers_are_found_in_the_raw_numbers(tmp_path: Path) -> None:
    spec = SPEC.replace("columns.ill", "columns.pay")
    targets = '[workload]\ntargets = [{ column = "pay", classes = [30, 60] }]\n'
    folder = published(tmp_path, targets, spec)
    assert json.loads((folder / "model.json").read_text("utf-8"))["classes"] == ["< 30", "[30, 60)", "≥ 60"]
    assert af.audit_tree(folder, tmp_path / "people.csv").passed
    wrong = pl.read_csv(tmp_path / "people.csv").with_columns(pay=pl.lit(5))
    assert {"populations", "report figures"} <= {one.name for one in af.audit_tree(folder, wrong).missed}


def test_what_is_asked_is_judged_apart(tree: Path) -> None:
    data = tree.parent / "people.csv"
    found = af.audit_tree(tree, data, k=10**6)
    assert [one.name for one in found.missed] == ["k"]
    assert found.verdict[0].startswith("Asked and missed: k = 1000000")
    assert found.verdict[1].startswith("The release holds what it claims")
    assert af.audit_tree(tree, data, k=2).passed


def test_the_command_audits_a_tree(tree: Path) -> None:
    data = str(tree.parent / "people.csv")
    done = run(str(tree), "--source", data)
    assert (done.exit_code, "The release holds what it claims: k = 10" in done.output) == (0, True)
    assert run(str(tree), "--source", data, "--k", "1000").exit_code == 1
    alone = run(str(tree))
    assert (alone.exit_code, "give --source DATA" in alone.output) == (1, True)
    told = json.loads(run(str(tree), "--source", data, "--json").stdout)
    assert (told["passed"], told["kind"]) == (True, "tree")
    assert "leave out --quasi-identifiers" in str(run(str(tree), "--quasi-identifiers", "age").exception)


def edited(name: str, change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    """Change a JSON file of the folder."""

    def plant(folder: Path) -> None:
        said = json.loads((folder / name).read_text("utf-8"))
        change(said)
        write_json(folder / name, said)

    return plant


def replaced(name: str, text: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_text(text, encoding="utf-8") and None


def replaced_in(name: str, old: str, new: str) -> Callable[[Path], None]:
    """Write a file otherwise at one place, and the hash that the page tells of it."""

    def plant(folder: Path) -> None:
        before = (folder / name).read_text("utf-8")
        after = before.replace(old, new, 1)
        page = (folder / "report.html").read_text("utf-8")
        hashes = [hashlib.sha256(text.encode()).hexdigest() for text in (before, after)]
        (folder / name).write_text(after, encoding="utf-8")
        (folder / "report.html").write_text(page.replace(*hashes), encoding="utf-8")

    return plant


def k_everywhere(folder: Path) -> None:
    """A forger makes every file say another k."""
    for name in ("manifest.json", "audit.json"):
        text = (folder / name).read_text("utf-8").replace('"k": 10', '"k": 500').replace('"asked": 10', '"asked": 500')
        (folder / name).write_text(text.replace('"found": 10', '"found": 500'), encoding="utf-8")


def linked(folder: Path) -> None:
    shutil.move(folder / "tree.txt", folder.with_name("elsewhere.txt"))
    (folder / "tree.txt").symlink_to(folder.with_name("elsewhere.txt"))


def more(key: str) -> dict[str, Any]:
    """A setting that carries what no setting says."""
    return {key: ["p000 is ill", "p001 is not"] if key in ("order", "domain") else "p000 is ill"}


LIES: dict[str, Callable[[Path], None]] = {
    "k of the manifest": edited("manifest.json", lambda it: it["spec"]["privacy"].update(k=500)),
    "k of the audit": edited("audit.json", lambda it: it["audit"].update(k=500)),
    "k that was asked": edited("audit.json", lambda it: it["asked"].update(k=500)),
    "k everywhere": k_everywhere,
    "a finding": edited("manifest.json", lambda it: it["audit"]["findings"].pop()),
    "a span": edited("audit.json", lambda it: it["audit"]["of_spans"].pop()),
    "who is exposed": edited("audit.json", lambda it: it["audit"].update(exposed=[])),
    "rows": edited("audit.json", lambda it: it["rows"].update(read=10**6)),
    "what is not covered": edited("audit.json", lambda it: it.update(not_covered=[])),
    "a section": edited("audit.json", lambda it: it.update(note="p000 is ill")),
    "a picture with a script": replaced("tree.svg", "<svg><script>alert(1)</script></svg>"),
    "another text": replaced("tree.txt", "p000 is ill"),
    "a file": replaced("more.csv", "p000 is ill"),
    "a link": linked,
    "a quasi-identifier": edited("manifest.json", lambda it: it["spec"]["columns"]["age"].update(role="insensitive")),
    "a public class": edited("manifest.json", lambda it: it["spec"]["privacy"].update(class_is_public=True)),
    "populations": edited("manifest.json", lambda it: it["spec"]["output"].update(populations="majority")),
    "a demand": edited(
        "manifest.json",
        lambda it: it["spec"]["privacy"]["diversity"].append({"column": "ill", "model": "entropy-l", "l": 1.9999}),
    ),
    "a confidence": edited("manifest.json", lambda it: it["spec"]["privacy"].update(max_confidence=0.51)),
    "a bin": edited("model.json", lambda it: it["bins"][0].reverse()),
    "an engine": edited("manifest.json", lambda it: it.update(engine="p000 is ill")),
    "white space": replaced_in("model.json", ": ", ":  "),
    "an escape": replaced_in("audit.json", "format", "f\\u006frmat"),
    "an entry": edited("manifest.json", lambda it: it.update(note="p000 is ill")),
    **{
        f"{key} of a column": edited(
            "manifest.json", lambda it, key=key: it["spec"]["columns"]["dose"].update(more(key))
        )
        for key in ("order", "domain", "taxonomy", "split", "release", "reason", "date_format")
    },
    "a name that is removed": edited("manifest.json", lambda it: it["spec"]["columns"]["name"].update(more("split"))),
    **{
        f"{section}.{key}": edited("manifest.json", lambda it, at=(section, key): it["spec"][at[0]].update(more(at[1])))
        for section, key in (("method", "criterion"), ("method", "pruning"), ("workload", "denoise"))
    },
    "weights": edited("manifest.json", lambda it: it["spec"]["workload"].update(weights={"age": 1980.25})),
    "a limit of tables": edited("manifest.json", lambda it: it["spec"]["privacy"].update(suppression_limit=0.5)),
    "an attack that nobody tried": edited("manifest.json", lambda it: it["spec"]["privacy"].update(attack_limit=0.01)),
    "a version": edited("manifest.json", lambda it: it["packages"].update(numpy="1.p000-is-ill")),
    "a day": edited("manifest.json", lambda it: it.update(created="9999-99-99")),
}
SEEN_BY_ROWS = ("k everywhere", "a span", "who is exposed", "rows", "a bin")


@pytest.mark.parametrize("name", LIES)
def test_a_folder_that_says_something_else_is_refused(tree: Path, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "tree"
    shutil.copytree(tree, folder)
    LIES[name](folder)
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    for file in manifest["files"]:
        manifest["files"][file] = hashlib.sha256((folder / file).read_bytes()).hexdigest()
    write_json(folder / "manifest.json", manifest)
    data = tree.parent / "people.csv"
    assert run(str(folder), "--source", str(data)).exit_code == 1
    try:
        found, alone = af.audit_tree(folder, data), af.audit_tree(folder)
    except af.errors.ReleaseError:
        return
    assert [one for one in found.findings if one.met is False]
    if name not in SEEN_BY_ROWS:
        assert [one for one in alone.findings if one.met is False or one.name in ("k", "entropy-l", "max_confidence")]


@pytest.mark.parametrize("asked", [{"k": 0}, {"max_confidence": 0.0}, {"diversity": [{"column": "ill"}]}], ids=str)
@pytest.mark.parametrize("rows", ["people.csv", None])
def test_a_demand_that_means_nothing_is_refused(tree: Path, asked: dict[str, Any], rows: str | None) -> None:
    with pytest.raises(af.errors.AnonfitError):
        af.audit_tree(tree, None if rows is None else tree.parent / rows, **asked)


def test_what_is_asked_without_rows_is_named_as_not_checked(tree: Path) -> None:
    audited = af.audit_tree(tree, k=50, max_confidence=0.9)
    asked = [(finding.name, finding.asked, finding.met) for finding in audited.findings if not finding.claimed]
    assert asked == [("k", 50, None), ("max_confidence", 0.9, None)]
    assert not audited.passed


def test_what_the_audit_of_the_folder_refuses_is_not_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = trees.tree_pages
    monkeypatch.setattr(trees, "tree_pages", lambda *given: drawn(*given) | {"tree.txt": "another tree"})
    with pytest.raises(af.AuditFailed, match="drawings"):
        published(tmp_path / "place")
    assert not (tmp_path / "place" / "tree").exists()
