# SPDX-License-Identifier: Apache-2.0
"""The reference of the spec and what `init` proposes: all that they show can be used."""

from __future__ import annotations

import re
import tomllib
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from anonfit import api
from anonfit.criteria.objectives import OBJECTIVES
from anonfit.demo.population import hospital
from anonfit.errors import SpecError
from anonfit.privacy.catalogue import MODELS
from anonfit.spec import model as spec
from anonfit.spec.parse import parse_spec, spec_of
from anonfit.tables.profile import proposal_toml, propose

REFERENCE = (Path(__file__).resolve().parents[2] / "docs" / "spec.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```toml\n(.*?)```", REFERENCE, flags=re.DOTALL)

# --- the reference ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", ["PrivacySpec", "TargetSpec", "SelectionSpec", "WorkloadSpec", "MethodSpec"])
def test_every_key_is_in_the_reference(part: str) -> None:
    for setting in fields(getattr(spec, part)):
        assert f"| `{setting.name}` |" in REFERENCE, f"{part}.{setting.name}"


def test_every_model_is_in_the_reference_with_its_parameters() -> None:
    for name, entry in MODELS.items():
        (row,) = [line for line in REFERENCE.splitlines() if line.startswith(f"| `{name}` |")]
        assert all(f"`{parameter.name}`" in row for parameter in entry.parameters), name


def test_every_word_is_in_the_reference() -> None:
    for criterion in OBJECTIVES:
        assert f"| `{criterion}` |" in REFERENCE
    words = ("boundary", "all", "first", "product", "blend", "equal", "ordered", "hierarchical")
    assert all(f"`{word}`" in REFERENCE for word in words)


COLUMNS: dict[str, Any] = {
    "age": {"role": "quasi-identifier"},
    "country": {"role": "quasi-identifier"},
    "diagnosis": {"role": "sensitive"},
    "income": {"role": "sensitive"},
    "outcome": {"role": "target"},
    "salary": {"role": "target"},
    "cost": {"role": "target"},
}


SENSITIVE = ("diagnosis", "income")


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_every_example_of_the_reference_is_read(number: int) -> None:
    tables = tomllib.loads(BLOCKS[number])
    whole = {"version": 1, "columns": COLUMNS, **tables}
    whole["privacy"] = {"k": 10} | tables.get("privacy", {})
    if "columns" not in tables:
        whole["privacy"].setdefault(
            "diversity", [{"column": name, "model": "distinct-l", "l": 2} for name in SENSITIVE]
        )
    if "weight_rule" in tables.get("method", {}):
        whole["workload"] = {"weights": {"age": 2.0}}
    assert spec_of(whole).privacy.k == 10


def test_the_example_in_python_is_the_one_in_toml(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[spec.Spec] = []

    def stop(asked: spec.Spec, **_: Any) -> None:
        found.append(asked)
        raise InterruptedError

    monkeypatch.setattr(api, "make", stop)
    (code,) = re.findall(r"```python\n(.*?)```", REFERENCE, flags=re.DOTALL)
    with pytest.raises(InterruptedError):
        exec(code, {})
    assert found == [parse_spec(BLOCKS[-1])]


# --- what init proposes -----------------------------------------------------------------------------------------

PROPOSED = re.compile(r"# (taxonomy|domain) = ")


def uncommented(text: str) -> str:
    """A proposal in which everything that is only proposed is done."""
    return "\n".join(line.removeprefix("# ") if PROPOSED.match(line) else line for line in text.splitlines())


def cycle(*values: Any, rows: int = 300) -> list[Any]:
    return [values[row % len(values)] for row in range(rows)]


FRAMES = {
    "hospital": hospital(5000, seed=3),
    "small": pl.DataFrame(
        {
            "age": cycle(*range(20, 60)),
            "town": cycle("a", "b", "c"),
            'say "hi" [x]\n diagnosis': cycle("flu", "cold"),
            "illness": cycle("a", "b", "c", "d", "e"),
            "outcome": cycle("good", "bad"),
            "income": [1234.5 + row for row in range(300)],
        }
    ),
    "without a target": pl.DataFrame({"age": cycle(*range(20, 60)), "diagnosis": cycle("same")}),
}


@pytest.mark.parametrize("name", FRAMES)
def test_what_init_proposes_is_refused_until_it_is_settled_and_then_read(name: str) -> None:
    found = propose(FRAMES[name])
    text = proposal_toml(found, source="people.csv", taxonomies={})
    with pytest.raises(SpecError) as refused:
        parse_spec(text)
    told = "\n".join(refused.value.faults)
    assert "decisions are open" in told
    assert all(f"columns.{column.name}: {column.decision}" in told for column in found.columns if column.decision)
    settled = parse_spec("\n".join(line for line in text.splitlines() if not line.startswith("decide = ")))
    assert settled.decisions is None
    accepted = parse_spec(proposal_toml(found, source="people.csv", taxonomies={}, accepted=True))
    assert accepted.decisions == "accepted"
    assert replace(accepted, decisions=None) == settled
    asked = {demand.column for demand in settled.privacy.diversity}
    assert asked == set(settled.of_role(spec.Role.SENSITIVE))


def test_uncommenting_changes_what_it_should() -> None:
    text = proposal_toml(propose(FRAMES["small"]), source="x.csv", taxonomies={}, accepted=True)
    whole = parse_spec(uncommented(text))
    assert whole.columns["age"].domain == (0, 120)
    assert whole.columns["town"].taxonomy == "…"
    assert whole.columns["income"].role == "identifier"
    assert whole.privacy.diversity == (
        spec.DiversitySpec('say "hi" [x]\n diagnosis', "entropy-l", {"l": 1.5}),
        spec.DiversitySpec("illness", "entropy-l", {"l": 3.0}),
    )
    assert whole.workload.targets == (spec.TargetSpec("outcome"),)
