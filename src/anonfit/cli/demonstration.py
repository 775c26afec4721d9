# SPDX-License-Identifier: Apache-2.0
"""`anonfit demo`: a made-up hospital table, its release, what changed and what the purpose gained, in one command."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anonfit.cli.releasing import summary
from anonfit.cli.showing import print_json, results, stages, table
from anonfit.errors import Infeasible, ReleaseError
from anonfit.runtime.files import write_file

if TYPE_CHECKING:
    import polars as pl

    from anonfit.api import Release
    from anonfit.metrics.holdout import Gain
    from anonfit.spec.model import Spec

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
[columns.length_of_stay]
role = "quasi-identifier"

[columns.diagnosis]            # what nobody should learn of a patient
role = "sensitive"
diversity = "none"             # nothing is asked of it, which the report tells; remove both lines and ask below
reason = "the patients are made up"
[columns.outcome]              # what the recipient wants to predict
role = "target"
[columns.cost]
role = "insensitive"
release = true                 # nearly every cost is different; the demo releases it all the same

[privacy]
k = {k}                        # every released combination is shared by at least so many patients
# [[privacy.diversity]]        # ask that their diagnoses be as mixed as three equally frequent ones
# column = "diagnosis"
# model = "entropy-l"
# l = 3.0

[workload]
targets = ["outcome"]          # the purpose: regions are cut where outcomes differ
"""

QUASI_IDENTIFIERS = ("age", "sex", "postcode", "nationality", "admission", "length_of_stay")
TARGET = "outcome"


def _is_demo(spec: Path) -> bool:
    """Whether a spec is the demo's, so that what is beside it was made up."""
    try:
        return spec.read_text(encoding="utf-8").startswith(SPEC.splitlines()[0])
    except (OSError, ValueError):
        return False


def _make(folder: Path, rows: int, seed: int, k: int) -> pl.DataFrame:
    """Write the made-up table, its taxonomies and the spec."""
    from anonfit.demo.population import hospital, hospital_taxonomies

    if folder.exists() and not _is_demo(folder / "spec.toml") and (not folder.is_dir() or any(folder.iterdir())):
        raise ReleaseError(f"{folder} holds other things than a demo; choose another --out.")
    folder.mkdir(parents=True, exist_ok=True)
    patients = hospital(rows, seed)
    write_file(folder / "patients.csv", patients.write_csv())
    for name, tree in hospital_taxonomies().items():
        write_file(folder / f"{name}.json", json.dumps(tree, indent=1, ensure_ascii=False))
    write_file(folder / "spec.toml", SPEC.format(k=k))
    return patients


@dataclass(frozen=True, slots=True)
class Measured:
    """How often the target of held-out patients is predicted right: from the most frequent one, and from regions that
    were made of the other patients blind and for the purpose.
    """

    held_out: int
    frequent: float
    blind: float
    purpose: float
    blind_groups: int
    purpose_groups: int
    gain: Gain

    def to_dict(self) -> dict[str, Any]:
        """What a script wants to know of it."""
        return {
            "target": TARGET,
            "held_out_rows": self.held_out,
            "accuracy": {"most_frequent": self.frequent, "blind": self.blind, "purpose": self.purpose},
            "groups": {"blind": self.blind_groups, "purpose": self.purpose_groups},
            "gain": self.gain.share,
            "noise": self.gain.noise,
            "gained": self.gain.is_real,
        }


def _measure(spec: Spec, patients: pl.DataFrame) -> Measured | None:
    """Make regions of two thirds of the patients, blind and for the purpose, and predict the others; None if two
    thirds are too few to make any.
    """
    from anonfit.metrics.holdout import RegionLearner, paired_gain
    from anonfit.release.run import make

    known = patients[: 2 * len(patients) // 3]
    others = patients[len(known) :]
    blind = replace(spec, method=replace(spec.method, criterion="median"))
    try:
        releases = [make(asked, source=known) for asked in (blind, spec)]
    except Infeasible:
        return None
    right = [
        (RegionLearner.taught(release.recoding, known, TARGET).predict(others) == others[TARGET]).to_numpy()
        for release in releases
    ]
    frequent = known[TARGET].mode().sort()[0]
    blind_groups, purpose_groups = (release.table.select(QUASI_IDENTIFIERS).n_unique() for release in releases)
    return Measured(
        held_out=len(others),
        frequent=float((others[TARGET] == frequent).to_numpy().mean()),
        blind=float(right[0].mean()),
        purpose=float(right[1].mean()),
        blind_groups=blind_groups,
        purpose_groups=purpose_groups,
        gain=paired_gain(*right),
    )


def demonstrate(rows: int, out: Path, *, seed: int, k: int, as_json: bool) -> None:
    """Make up patients, release them, and say what changed and what the purpose gained."""
    with stages(as_json=as_json) as stage:
        stage("Making up patients")
        patients = _make(out, rows, seed, k)
        from anonfit.api import run
        from anonfit.spec.parse import read_spec

        folder = out / "release"
        spec = read_spec(out / "spec.toml")
        release = run(spec, folder, replace=folder.exists(), stage=stage)
        stage("Measuring the purpose on held-out patients")
        measured = _measure(spec, patients)
    if as_json:
        print_json(
            {
                "patients": str(out / "patients.csv"),
                "spec": str(out / "spec.toml"),
                **summary(release.report, folder),
                "purpose": None if measured is None else measured.to_dict(),
            }
        )
        return
    _show(patients, release, k)
    _show_gain(measured, k)
    _show_files(out)


def _show(patients: pl.DataFrame, release: Release, k: int) -> None:
    import polars as pl
    from rich.text import Text

    screen = results()
    groups = patients.group_by(QUASI_IDENTIFIERS).len()
    alone = int((groups["len"] == 1).sum())
    sizes = release.report["audit"]["sizes"]
    names = ["age", "postcode", "admission", "diagnosis", TARGET]
    screen.print(Text(f"{len(patients):,} made-up patients", style="bold") + Text(", as the hospital has them:"))
    screen.print(table(names, patients.select(names).cast(pl.String).head(4).fill_null("").rows()))
    screen.print(
        f"{alone:,} of them ({alone / len(patients):.1%}) are the only one with their age, sex, postcode, "
        "nationality, day of admission and length of stay.\n"
    )
    screen.print(Text("As released", style="bold") + Text(f", every combination shared by at least {k} patients:"))
    step = max(1, len(release.data) // 4)
    shown = release.data.select(names).cast(pl.String).gather_every(step).head(4).fill_null("")
    screen.print(table(names, shown.rows()))
    screen.print(
        f"{len(release.data):,} rows in {sizes['groups']:,} groups of {sizes['smallest']} to {sizes['largest']:,} "
        "patients; none withheld."
    )
    for line in release.report["diversity"]:
        screen.print(line["sentence"], soft_wrap=True)
    screen.print(Text("The audit of the written file accepted it.\n", style="bold green"))


def _show_gain(measured: Measured | None, k: int) -> None:
    """Say what the purpose gained at the same k, also if that is nothing."""
    from rich.text import Text

    screen = results()
    if measured is None:
        screen.print("What the purpose gained cannot be measured: two thirds of the patients are too few for this k.\n")
        return
    screen.print(
        Text(f"The {TARGET} of {measured.held_out:,} held-out patients", style="bold")
        + Text(", predicted from the others:")
    )
    lines = [
        ("their most frequent one", "", f"{measured.frequent:.1%}"),
        (f"regions of k = {k}, made blind (Median)", f"{measured.blind_groups:,}", f"{measured.blind:.1%}"),
        (f"regions of k = {k}, made for it (InfoGain)", f"{measured.purpose_groups:,}", f"{measured.purpose:.1%}"),
    ]
    screen.print(table(("predicted by", "groups", "right"), lines, numbers=(1, 2)))
    screen.print(Text(_verdict(measured.gain) + "\n", style="bold green" if measured.gain.is_real else "yellow"))


def _verdict(gain: Gain) -> str:
    points, noise = abs(100 * gain.share), f"two standard errors: {100 * gain.noise:.1f}"
    if gain.is_real:
        return f"At the same k the purpose gained {points:.1f} points ({noise})."
    if gain.is_loss:
        return f"The purpose gained nothing here: it lost {points:.1f} points ({noise})."
    return f"The purpose gained nothing that chance does not explain: {100 * gain.share:+.1f} points ({noise})."


def _show_files(out: Path) -> None:
    lines = [
        (out / "release" / "report.html", "what was asked and found, to show"),
        (out / "release" / "data.parquet", "the released table"),
        (out / "release" / "recoding.json", "the recoding, for new rows: anonfit apply"),
        (out / "spec.toml", "what was asked: change it, run it again"),
        (out / "patients.csv", "the made-up patients"),
    ]
    results().print(table(("file", "what it is"), lines))
