# SPDX-License-Identifier: Apache-2.0
"""Documentation that cannot go stale."""

from __future__ import annotations

import dataclasses
import json
import re
import runpy
from pathlib import Path

import pytest

import anonfit
from anonfit.spec import model as spec
from anonfit.spec.settings import ALL

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = runpy.run_path(str(ROOT / "docs" / "reference.py"))


def test_the_command_reference_is_what_the_program_says() -> None:
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert text == REFERENCE["reference"](), "run: python docs/reference.py docs"


def test_the_tables_of_the_spec_reference_are_what_the_settings_say() -> None:
    text = (ROOT / "docs" / "spec.md").read_text(encoding="utf-8")
    assert text == REFERENCE["settings_reference"](text), "run: python docs/reference.py docs"
    assert set(REFERENCE["TABLE"].findall(text)) == set(ALL)


@pytest.mark.parametrize(
    "section",
    [
        "DataSpec",
        "ColumnSpec",
        "PrivacySpec",
        "WorkloadSpec",
        "TargetSpec",
        "SelectionSpec",
        "MethodSpec",
        "EngineSpec",
        "OutputSpec",
    ],
)
def test_every_setting_is_in_the_spec_reference(section: str) -> None:
    text = (ROOT / "docs" / "spec.md").read_text(encoding="utf-8")
    for field in dataclasses.fields(getattr(spec, section)):
        assert f"`{field.name}`" in text, f"{section}.{field.name} is not in docs/spec.md"


def test_links_between_documents_lead_somewhere() -> None:
    for document in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for link in re.findall(r"\]\(([^)#]+)\)", document.read_text(encoding="utf-8")):
            if "://" not in link:
                assert (document.parent / link).exists(), f"{document.name}: {link}"


def test_architecture_names_modules_that_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    for name in re.findall(r"`((?:\w+/)+\w+\.py)`", text):
        assert (ROOT / "src" / "anonfit" / name).exists() or (ROOT / name).exists(), name


def _notebooks() -> list[Path]:
    return sorted((ROOT / "docs").rglob("*.ipynb"))


@pytest.mark.parametrize("path", _notebooks(), ids=lambda path: path.stem)
def test_notebooks_run_and_hold_no_outputs(path: Path) -> None:
    names: dict[str, object] = {}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            assert not cell["outputs"]
            exec("".join(cell["source"]), names)


def test_pictures_are_those_that_the_code_makes() -> None:
    module = runpy.run_path(str(ROOT / "docs" / "tutorials" / "pictures.py"))
    for name, drawn in module["pictures"]().items():
        kept = (ROOT / "docs" / "figures" / name).read_text(encoding="utf-8")
        assert kept == drawn, "run: python docs/tutorials/pictures.py docs/figures"


def test_the_reference_has_every_public_name() -> None:
    text = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    named = {line.rpartition(".")[2] for line in text.splitlines() if line.startswith("::: ")}
    assert named == set(anonfit.__all__) - {"__version__", "taxonomies"} | {"taxonomy_builders"}


def test_the_readme_fits_two_screens_and_opens_with_a_picture() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert lines[2].startswith("![")
    assert len(lines) <= 80
