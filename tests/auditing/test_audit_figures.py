# SPDX-License-Identifier: Apache-2.0
"""Risks, joint cells, row order, columns, and what of them may be published."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import anonfit.auditing as package
from anonfit.auditing.api import audit
from anonfit.auditing.request import THRESHOLDS, read_threshold
from anonfit.auditing.result import CountedFigure, Share, plain
from anonfit.errors import DataError

TEN = pl.DataFrame({"q": ["a"] * 4 + ["b"] * 6})


def test_presets_name_their_source() -> None:
    assert [(one.value, one.size) for one in THRESHOLDS] == [(0.2, 5), (0.09, 11), (0.05, 20)]
    assert all(one.source for one in THRESHOLDS)
    assert read_threshold(0.3).size == 4
    assert read_threshold(1.0).size == 1


@pytest.mark.parametrize(("ask", "passed"), [(0.25, True), (0.24, False), ("tools", False)])
def test_the_prosecutor_is_judged_only_if_asked(ask: Any, passed: bool) -> None:
    assert audit(TEN, quasi_identifiers=["q"]).passed is None
    assert audit(TEN, quasi_identifiers=["q"], max_risk=ask).passed is passed


def test_groups_of_eleven_are_within_the_rounded_threshold() -> None:
    frame = pl.DataFrame({"q": ["a"] * 11})
    assert audit(frame, quasi_identifiers=["q"], max_risk="ema-0070").passed
    assert audit(frame, quasi_identifiers=["q"]).prosecutor.above[1].above.persons == 0
    assert not audit(frame[1:], quasi_identifiers=["q"], max_risk="ema-0070").passed


@pytest.mark.parametrize("attacker", ["prosecutor", "journalist", "marketer"])
def test_a_sampling_fraction_is_refused_with_the_reason(attacker: Any) -> None:
    """One who is alone in the sample may be alone in the population: the fraction does not tell."""
    with pytest.raises(DataError, match="--population FILE"):
        audit(TEN, quasi_identifiers=["q"], sampling_fraction=0.1, max_risk=0.05, attacker=attacker)


def test_a_risk_threshold_may_be_a_number_or_a_text_of_one() -> None:
    for given in (0.25, "0.25", "2.5e-1"):
        assert audit(TEN, quasi_identifiers=["q"], max_risk=given).passed
    for given in (0.24, "0.24", "tools"):
        assert not audit(TEN, quasi_identifiers=["q"], max_risk=given).passed
    for given in ("nan", "1.5", "0", "-1", "inf", ""):
        with pytest.raises(DataError, match="threshold"):
            audit(TEN, quasi_identifiers=["q"], max_risk=given)


def test_the_journalist_with_a_population_of_labels() -> None:
    population = pl.DataFrame({"q": ["a"] * 8 + ["b"] * 60 + ["c"] * 5})
    found = audit(TEN, quasi_identifiers=["q"], population=population).journalist
    assert found is not None
    assert "labels" in found.basis
    assert found.highest.value == 1 / 8
    assert found.average.value == pytest.approx((4 / 8 + 6 / 60) / 10)
    assert [one.above.persons for one in found.above] == [0, 4, 4]


def test_the_journalist_with_a_population_of_raw_rows() -> None:
    released = pl.DataFrame({"age": ["< 30", "< 30", "≥ 30"]})
    population = pl.DataFrame({"age": [1, 2, 29, 30, None]})
    found = audit(released, quasi_identifiers=["age"], columns={"age": {"type": "continuous"}}, population=population)
    assert found.journalist is not None
    assert "raw" in found.journalist.basis
    assert found.journalist.highest.value == 1.0
    assert found.marketer.value == pytest.approx((2 / 3 + 1) / 3)
    small = audit(released, quasi_identifiers=["age"], population=pl.DataFrame({"age": ["< 30"]})).journalist
    assert small is not None
    assert small.larger_than_population == 2


def test_joint_cells_of_two_releases() -> None:
    source = pl.DataFrame({"age": [10, 20, 30, 40], "city": ["a", "b", "a", "b"]})
    first = pl.DataFrame({"age": ["< 25", "< 25", "≥ 25", "≥ 25"], "city": ["*"] * 4})
    second = {"data": pl.DataFrame({"city": ["a", "b", "a", "b"]}), "quasi_identifiers": ["city"]}
    columns = {"age": {"type": "continuous"}, "city": {"type": "nominal"}}
    ask: dict[str, Any] = {"quasi_identifiers": ["age", "city"], "columns": columns, "source": source, "k": 2}
    found = audit(first, other=second, **ask)
    assert found.joint is not None
    assert (found.joint.cells, found.joint.smallest) == (4, 1)
    assert found.joint.cells_below_k == CountedFigure(4, 4)
    assert not found.passed
    same = audit(first, other=first, **ask)
    assert same.joint is not None
    assert (same.joint.cells, same.joint.smallest, same.passed) == (2, 2, True)
    parts = audit(first, other={**second, "data": second["data"][:2]}, **ask)  # type: ignore[index]
    assert parts.joint is not None
    assert parts.joint.persons_below_k == Share(4, 4)


def test_joint_cells_count_entities() -> None:
    source = pl.DataFrame({"age": [1, 2, 3, 4], "who": ["u", "u", "v", "w"]})
    released = pl.DataFrame({"age": ["< 9"] * 4})
    columns = {"age": {"type": "continuous"}}
    found = audit(
        released, quasi_identifiers=["age"], columns=columns, source=source, entity="who", k=4, other=released
    )
    assert found.joint is not None
    assert found.joint.smallest == 3


SORTED = pl.DataFrame({
    "x": [None, 2, 1, 1, 10], "q": [None, None, "[9, 10)", "é", "é"],
    "y": ["b", "a", "z", "a", "b"], "z": [1.0, None, 0.0, 2.0, 1.0],
})  # fmt: skip


def test_row_order_is_by_quasi_identifiers_first(tmp_path: Path) -> None:
    assert audit(SORTED, quasi_identifiers=["q"], order="sorted").passed
    SORTED.write_csv(tmp_path / "sorted.csv")
    assert audit(tmp_path / "sorted.csv", quasi_identifiers=["q"], order="sorted").passed
    for other in (SORTED.reverse(), SORTED[[1, 0, 2, 3, 4]], SORTED[[0, 1, 2, 4, 3]], SORTED[[0, 2, 1, 3, 4]]):
        found = audit(other, quasi_identifiers=["q"], order="sorted")
        assert [finding.name for finding in found.findings if not finding.met] == ["row order"]
    assert audit(SORTED.reverse(), quasi_identifiers=["q"]).sorted is None


@pytest.mark.parametrize("seed", range(30))
def test_row_order_agrees_with_sorting(seed: int, tmp_path: Path) -> None:
    frame = SORTED.sample(40, with_replacement=True, seed=seed).with_columns(b=pl.Series([True, False] * 20))
    columns = ["q", "x", "y", "z", "b"]
    ordered = frame.sort(columns, nulls_last=False)
    assert audit(ordered, quasi_identifiers=["q"], order="sorted").passed
    swapped = ordered[[*range(20), 21, 20, *range(22, 40)]]
    assert audit(swapped, quasi_identifiers=["q"], order="sorted").passed is swapped.equals(ordered)
    ordered.write_csv(tmp_path / "sorted.csv")
    assert audit(tmp_path / "sorted.csv", quasi_identifiers=["q"], order="sorted").passed


def test_columns_that_are_expected() -> None:
    frame = pl.DataFrame({"a": [1], "b": [1], "c": [1]})

    def missed(expected: list[str]) -> list[str]:
        found = audit(frame, quasi_identifiers=["a"], expected_columns=expected)
        return [finding.name for finding in found.findings if not finding.met]

    assert missed(["a", "b", "c"]) == []
    assert missed(["a", "b"]) == ["undeclared columns"]
    assert missed(["a", "b", "c", "d"]) == ["missing columns"]
    assert missed(["b", "a", "c"]) == ["column order"]


def leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for part in value.values() for leaf in leaves(part)]
    return [leaf for part in value for leaf in leaves(part)] if isinstance(value, list) else [value]


def test_the_public_form_hides_figures_about_few() -> None:
    frame = pl.DataFrame({"q": ["a"] * 50 + ["b"] * 7, "s": ["x"] * 49 + ["y"] + ["z"] * 7})
    source = pl.concat([frame, pl.DataFrame({"q": ["c"] * 3, "s": ["x"] * 3})])
    found = audit(frame, quasi_identifiers=["q"], sensitive=["s"], k=10, source=source, withheld=3)
    everything, public = found.to_dict(), found.public(10)
    assert json.loads(json.dumps(everything)) == everything
    assert json.loads(json.dumps(public)) == public
    assert (everything["k"], public["k"]) == (7, "fewer than 10")
    assert everything["source"]["absent"]["persons"] == 3
    assert not {"absent", "rows", "unknown_values", "beyond_domain"} & set(public["source"])
    assert {one["found"] for one in public["findings"] if one["name"] == "withheld rows"} == {"as stated"}
    assert public["raw_columns"][0]["certain"]["persons"] == "fewer than 10"
    assert public["sizes"]["histogram"][1]["persons"]["persons"] == "all but fewer than 10"
    told = [public[key] for key in ("source", "findings", "raw_columns", "diversity", "rows", "persons")]
    assert not {3, 7, 60} & {leaf for leaf in leaves(told) if type(leaf) is int}
    assert {finding["name"]: finding["found"] for finding in public["findings"]}["k"] == "fewer than 10"


def test_none_and_all_may_be_said() -> None:
    assert plain(Share(0, 30), 10) == {"persons": 0, "share": 0.0}
    assert plain(Share(30, 30), 10) == {"persons": 30, "share": 1.0}
    assert plain(Share(9, 30), 10)["persons"] == "fewer than 10"
    assert plain(Share(21, 30), 10)["persons"] == "all but fewer than 10"
    assert plain(Share(20, 30), 10) == {"persons": 20, "share": 2 / 3}


def test_public_names_are_locked() -> None:
    assert package.__all__ == [
        "ROWS_AT_ONCE",
        "THRESHOLDS",
        "Audit",
        "Finding",
        "HashShards",
        "LabelMeaning",
        "LabelTree",
        "LabelType",
        "TreeAudit",
        "ValueSet",
        "audit",
        "audit_data",
        "audit_release",
        "audit_tree",
        "read_label",
    ]
    assert all(hasattr(package, name) for name in package.__all__)


def test_the_audit_shares_no_code_with_the_package() -> None:
    folder = Path(package.__file__).parent
    lines = [line.strip() for path in folder.glob("*.py") for line in path.read_text(encoding="utf-8").splitlines()]
    imported = {line.split()[1] for line in lines if line.startswith(("from anonfit", "import anonfit"))}
    assert {name for name in imported if not name.startswith("anonfit.auditing")} == {
        "anonfit.runtime.compiling",
        "anonfit.errors",
    }


def test_importing_the_audit_loads_neither_polars_nor_numba() -> None:
    code = "import sys, anonfit.auditing; print({'polars', 'numba', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_a_plain_audit_does_not_load_numba() -> None:
    code = (
        "import sys, polars as pl; from anonfit.auditing import audit;"
        "audit(pl.DataFrame({'q': [1]}), quasi_identifiers=['q'], k=1); print('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
