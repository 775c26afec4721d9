# SPDX-License-Identifier: Apache-2.0
"""`anonfit demo`: a made-up hospital table, its release, and what changed, in one command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from anonfit.cli.releasing import summary
from anonfit.cli.showing import console, print_json, stages, table
from anonfit.errors import ReleaseError

if TYPE_CHECKING:
    import polars as pl

    from anonfit.api import Release

__all__ = ["demonstrate"]

SPEC = """# The spec of the demo: change it and run it again with  anonfit run spec.toml --replace
version = 1

[data]
source = "patients.csv"

[columns.patient_id]
role = "identifier"            # not released

[columns.age]                  # what someone could know of a patient: generalized
role = "quasi-identifier"
[columns.sex]
role = "quasi-identifier"
type = "nominal"
[columns.postcode]
role = "quasi-identifier"
taxonomy = "postcode.json"
[columns.nationality]
role = "quasi-identifier"
taxonomy = "nationality.json"
[columns.admission]
role = "quasi-identifier"
type = "date"

[columns.diagnosis]            # what nobody should learn of a patient
role = "sensitive"
[columns.length_of_stay]
role = "insensitive"
[columns.outcome]              # what the recipient wants to predict
role = "target"
[columns.cost]
role = "insensitive"
release = true                 # nearly every cost is different; the demo releases it all the same

[privacy]
k = {k}                        # every released combination is shared by at least so many patients
"""

QUASI_IDENTIFIERS = ("age", "sex", "postcode", "nationality", "admission")


def _make(folder: Path, rows: int, seed: int, k: int) -> pl.DataFrame:
    """Write the made-up table, its taxonomies and the spec."""
    from anonfit.experiments.population import hospital, hospital_taxonomies

    if folder.exists() and not (folder / "spec.toml").is_file() and (not folder.is_dir() or any(folder.iterdir())):
        raise ReleaseError(f"{folder} holds other things than a demo; choose another --out.")
    folder.mkdir(parents=True, exist_ok=True)
    patients = hospital(rows, seed)
    patients.write_csv(folder / "patients.csv")
    for name, tree in hospital_taxonomies().items():
        (folder / f"{name}.json").write_text(json.dumps(tree, indent=1, ensure_ascii=False), encoding="utf-8")
    (folder / "spec.toml").write_text(SPEC.format(k=k), encoding="utf-8")
    return patients


def demonstrate(rows: int, out: Path, *, seed: int, k: int, as_json: bool) -> None:
    """Make up patients, release them, and say what changed."""
    with stages(as_json=as_json) as stage:
        stage("Making up patients")
        patients = _make(out, rows, seed, k)
        from anonfit.api import run

        folder = out / "release"
        release = run(out / "spec.toml", folder, replace=folder.exists(), stage=stage)
    if as_json:
        print_json(
            {
                "patients": str(out / "patients.csv"),
                "spec": str(out / "spec.toml"),
                **summary(release.report, folder),
            }
        )
        return
    _show(patients, release, out, k)


def _show(patients: pl.DataFrame, release: Release, out: Path, k: int) -> None:
    import polars as pl
    from rich.text import Text

    screen = console()
    groups = patients.group_by(QUASI_IDENTIFIERS).len()
    alone = int((groups["len"] == 1).sum())
    sizes = release.report["audit"]["sizes"]
    names = ["age", "sex", "postcode", "admission", "diagnosis"]
    screen.print(Text(f"{len(patients):,} made-up patients", style="bold") + Text(", as the hospital has them:"))
    screen.print(table(names, patients.select(names).cast(pl.String).head(4).fill_null("").rows()))
    screen.print(
        f"{alone:,} of them ({alone / len(patients):.1%}) are the only one with their age, sex, postcode, "
        "nationality and day of admission.\n"
    )
    screen.print(Text("As released", style="bold") + Text(f", every combination shared by at least {k} patients:"))
    step = max(1, len(release.data) // 4)
    shown = release.data.select(names).cast(pl.String).gather_every(step).head(4).fill_null("")
    screen.print(table(names, shown.rows()))
    screen.print(
        f"{len(release.data):,} rows in {sizes['groups']:,} groups of {sizes['smallest']} to {sizes['largest']:,} "
        "patients; none withheld.\n"
    )
    screen.print(Text("The audit of the written file accepted it.", style="bold green"))
    lines = [
        (out / "release" / "report.html", "what was asked and found, to read and to show"),
        (out / "release" / "data.parquet", "the released table"),
        (out / "release" / "recoding.json", "the recoding, to apply to new rows: anonfit apply"),
        (out / "spec.toml", "what was asked: change it and run it again"),
        (out / "patients.csv", "the made-up patients"),
    ]
    screen.print(table(("file", "what it is"), lines))
