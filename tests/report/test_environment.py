# SPDX-License-Identifier: Apache-2.0
"""The code of templates that is kept on disk: it is used again, and never if it is damaged or of another template."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from anonfit.report import environment as environments
from anonfit.runtime.compiling import CodeFolder


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where code is kept; and beside it templates, one of which says what it is given."""
    templates = tmp_path / "templates"
    templates.mkdir()
    (templates / "one.txt").write_text("found: {{ value }}", encoding="utf-8")
    kept = tmp_path / "kept"
    kept.mkdir()
    monkeypatch.setattr(environments, "TEMPLATES", templates)
    monkeypatch.setattr(environments, "own", lambda _: CodeFolder(kept))
    return kept


def upper(value: Any) -> str:
    return str(value).upper()


def rendered(finalize: Any = str) -> str:
    return environments.environment(finalize, autoescape=False).get_template("one.txt").render(value="a<b")


def code(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_code_is_kept_and_used_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert rendered() == "found: a<b"
    assert len(code(folder)) == 1
    monkeypatch.setattr(environments.Environment, "compile", None)
    assert rendered() == "found: a<b"


def test_a_changed_template_and_another_way_to_write_are_compiled_anew(folder: Path) -> None:
    assert rendered() == "found: a<b"
    assert rendered(upper) == "found: A<B"
    (environments.TEMPLATES / "one.txt").write_text("now: {{ value }}", encoding="utf-8")
    assert rendered() == "now: a<b"
    assert len(code(folder)) == 3


@pytest.mark.parametrize("content", [b"", b"garbage", bytes(200)])
def test_damaged_code_is_not_run(folder: Path, content: bytes) -> None:
    rendered()
    (path,) = code(folder)
    whole = path.read_bytes()
    for damaged in (content, whole[:-1], whole[:40] + b"\0" + whole[41:]):
        path.write_bytes(damaged)
        assert rendered() == "found: a<b"
        assert path.read_bytes() == whole


def test_nothing_is_kept_where_nothing_can_be_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "own", lambda _: CodeFolder(folder / "not" / "there"))
    assert rendered() == "found: a<b"
    monkeypatch.setattr(environments, "own", lambda _: None)
    assert rendered() == "found: a<b"
    assert not code(folder)
