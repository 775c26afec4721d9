# SPDX-License-Identifier: Apache-2.0
"""A manifest or recoding with a setting that is missing, unknown or of another kind is refused in a sentence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from audit_folders import Folder

from anonfit.auditing.api import audit_release
from anonfit.errors import DataError, RecodingError, ReleaseError, SpecError, TaxonomyError


def spec(part: str, **changes: Any) -> Callable[[Folder], None]:
    return lambda folder: folder.spec.setdefault(part, {}).update(changes)


def manifest(**changes: Any) -> Callable[[Folder], None]:
    return lambda folder: folder.manifest.update(changes)


def recoding(**changes: Any) -> Callable[[Folder], None]:
    return lambda folder: folder.recoding.update(changes)


def column(place: int, **changes: Any) -> Callable[[Folder], None]:
    return lambda folder: folder.recoding["columns"][place].update(changes)


def diversity(**entry: Any) -> Callable[[Folder], None]:
    return spec("privacy", diversity=[entry])


def without(part: str, name: str) -> Callable[[Folder], None]:
    def change(folder: Folder) -> None:
        held = {"spec": folder.spec, "manifest": folder.manifest, "recoding": folder.recoding}
        held |= {"age": folder.recoding["columns"][0], "rows": folder.manifest["rows"], "data": folder.manifest["data"]}
        del held[part][name]

    return change


TWICE = {"patient": {"role": "entity"}, "note": {"role": "entity"}}
REFUSED: list[tuple[Callable[[Folder], None], type[Exception]]] = [
    (manifest(version=2), ReleaseError),
    (manifest(version=True), ReleaseError),
    (manifest(format="something"), ReleaseError),
    (manifest(spec=None), ReleaseError),
    (manifest(spec=[]), ReleaseError),
    (manifest(data={"file": "../release/data.parquet"}), ReleaseError),
    (manifest(data={"file": "lost.parquet"}), ReleaseError),
    (manifest(data={"file": 7}), ReleaseError),
    (manifest(rows={"released": 1, "withheld": "some"}), ReleaseError),
    (manifest(rows={"released": "155"}), ReleaseError),
    (manifest(rows={"released": 155, "withheld": -1}), ReleaseError),
    (manifest(rows={"released": 155, "withheld": True}), ReleaseError),
    (manifest(rows={"released": 155, "lost": 1}), ReleaseError),
    (without("rows", "released"), ReleaseError),
    (without("data", "rows"), ReleaseError),
    (without("data", "columns"), ReleaseError),
    (lambda folder: folder.manifest["data"].update(columns="age"), ReleaseError),
    (without("spec", "columns"), ReleaseError),
    (without("spec", "privacy"), ReleaseError),
    (spec("privacy", k=None), ReleaseError),
    (spec("privacy", k=5.5), ReleaseError),
    (spec("privacy", k=True), ReleaseError),
    (spec("privacy", l=3), ReleaseError),
    (spec("privacy", max_confidence="high"), ReleaseError),
    (spec("privacy", diversity={"column": "diagnosis"}), ReleaseError),
    (spec("privacy", diversity=[{"model": "t-closeness"}]), SpecError),
    (spec("privacy", diversity=[{"column": "diagnosis", "model": "distinct-l", "l": 2, "c": 1}]), ReleaseError),
    (diversity(column="diagnosis", model="distinct-l"), SpecError),
    (diversity(column="diagnosis", model="distinct-l", l=10**30), SpecError),
    (diversity(column="diagnosis", model="recursive-cl", c=2.0, l=10**400), SpecError),
    (diversity(column="diagnosis", model="entropy-l", l=0.5), SpecError),
    (diversity(column="diagnosis", model="entropy-l", l=2, c=3), ReleaseError),
    (diversity(column="diagnosis", model="t-closeness", t=0.2, distance="far"), SpecError),
    (diversity(column="diagnosis", model="t-closeness", t=0.2, taxonomy={"name": "*", "kids": []}), TaxonomyError),
    (diversity(column="diagnosis", model="t-closeness", t=0.2, order=["a", "b"]), DataError),
    (diversity(column="diagnosis", model="variance", variance=2), DataError),
    (diversity(column="lost", model="distinct-l", l=2), ReleaseError),
    (diversity(column="patient", model="distinct-l", l=2), DataError),
    (diversity(column="age", model="distinct-l", l=2), DataError),
    (diversity(model="distinct-l", l=2), SpecError),
    (spec("privacy", max_confidence=0), SpecError),
    (spec("privacy", max_confidence=1.2), SpecError),
    (lambda folder: folder.spec.update(workload=["outcome"]), ReleaseError),
    (spec("privacy", quasi_identifiers=[["age"]]), ReleaseError),
    (spec("privacy", quasi_identifiers=[{"k": 3}]), ReleaseError),
    (spec("output", values="names"), ReleaseError),
    (spec("output", regions="any"), ReleaseError),
    (spec("output", order="shuffled"), ReleaseError),
    (spec("output", consent="yes"), ReleaseError),
    (spec("output", rounding=2), ReleaseError),
    (spec("data", missing="NA"), ReleaseError),
    (spec("data", missing=[1]), ReleaseError),
    (spec("data", missing_policy="keep"), ReleaseError),
    (lambda folder: folder.spec.update(method="mondrian"), ReleaseError),
    (lambda folder: folder.spec.update(version=2), ReleaseError),
    (lambda folder: folder.spec.update(privacies={}), ReleaseError),
    (spec("columns", note={"role": "target", "noise": 3}), ReleaseError),
    (spec("columns", note={"role": "secret"}), ReleaseError),
    (spec("columns", note={}), ReleaseError),
    (spec("columns", note="target"), ReleaseError),
    (spec("columns", **TWICE), ReleaseError),
    (spec("columns", x={"role": "quasi-identifier"}), RecodingError),
    (recoding(version=9), RecodingError),
    (recoding(version="1"), RecodingError),
    (recoding(format="another"), RecodingError),
    (recoding(columns={}), RecodingError),
    (recoding(columns=["age"]), RecodingError),
    (recoding(frequencies=[3, 4]), RecodingError),
    (lambda folder: folder.recoding["columns"].append(folder.recoding["columns"][0]), RecodingError),
    (without("recoding", "columns"), RecodingError),
    (without("recoding", "nodes"), RecodingError),
    (without("recoding", "version"), RecodingError),
    (without("age", "name"), RecodingError),
    (without("age", "missing"), RecodingError),
    (without("age", "cuts"), RecodingError),
    (column(0, missing="yes"), RecodingError),
    (column(0, scale="apples"), RecodingError),
    (column(0, cuts=[60, 30]), RecodingError),
    (column(0, cuts=[30, 30]), RecodingError),
    (column(0, cuts=41.5), RecodingError),
    (column(0, domain=5), RecodingError),
    (column(0, domain=[0, 60, 120]), RecodingError),
    (column(0, counts=[3, 4]), RecodingError),
    (column(1, taxonomy=None), RecodingError),
    (column(1, taxonomy={"name": "*", "children": {"name": "FR"}}), RecodingError),
    (column(1, other=5), RecodingError),
    (column(2, order="low"), RecodingError),
]


@pytest.mark.parametrize(("change", "error"), REFUSED)
def test_folders_that_cannot_be_audited_are_refused(
    tmp_path: Path, change: Callable[[Folder], None], error: type[Exception]
) -> None:
    folder = Folder(tmp_path / "release")
    change(folder)
    with pytest.raises(error):
        audit_release(folder.write())
