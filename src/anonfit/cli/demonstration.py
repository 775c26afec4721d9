# SPDX-License-Identifier: Apache-2.0
"""`anonfit demo`: a made-up hospital table, its release, what changed and what the purpose gained, in one command."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from anonfit.cli.options import Json
from anonfit.cli.releasing import summary
from anonfit.cli.showing import print_json, results, say, stages, table
from anonfit.errors import ReleaseError
from anonfit.runtime.files import write_file

if TYPE_CHECKING:
    import polars as pl

    from anonfit.api import Release
    from anonfit.metrics.holdout import Gain

SPEC = files("anonfit.demo") / "spec.toml"
QUASI_IDENTIFIERS = ("age", "sex", "postcode", "nationality", "admission", "length_of_stay")
TARGET = "outcome"
FOLDER = Path("anonfit-demo")


def _is_demo(spec: Path) -> bool:
    """Whether a spec is the demo's, so that what is beside it was made up."""
    try:
        return spec.read_text(encoding="utf-8").splitlines()[:1] == SPEC.read_text(encoding="utf-8").splitlines()[:1]
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
    write_file(folder / "spec.toml", SPEC.read_text(encoding="utf-8").format(k=k))
    return patients


def _gained(report: Mapping[str, Any]) -> dict[str, Any] | None:
    """How often the target of a third of some patients is predicted right: from the most frequent one, and from regions
    that were made of the others blind and for the purpose; None if they were too few to make any.
    """
    comparison = report["comparison"]
    if comparison is None or (contest := comparison["targets"][0])["noise"] is None:
        return None
    return {
        "target": contest["column"],
        "held_out_rows": comparison["held_out_rows"],
        "accuracy": {"most_frequent": contest["whole"], "blind": contest["blind"], "purpose": contest["purpose"]},
        "groups": comparison["groups"],
        "gain": contest["gain"],
        "noise": contest["noise"],
        "gained": contest["gain"] > contest["noise"],
    }


def demo(
    rows: Annotated[int, Option(help="Patients to make up, at least 200.", min=200)] = 20_000,
    out: Annotated[Path, Option(help="Folder for the made-up data, the spec and the release.")] = FOLDER,
    seed: Annotated[int, Option(help="Another seed, another population.", min=0)] = 0,
    k: Annotated[int, Option(help="Persons that must share every combination.", min=1)] = 10,
    as_json: Json = False,
) -> None:
    """Make up patients and release them: no data needed."""
    with stages(as_json=as_json) as stage:
        stage("Making up patients")
        patients = _make(out, rows, seed, k)
        from anonfit.api import run
        from anonfit.spec.parse import read_spec

        folder = out / "release"
        release = run(read_spec(out / "spec.toml"), folder, replace=folder.exists(), stage=stage)
    gained = _gained(release.report)
    if as_json:
        print_json(
            {
                "patients": str(out / "patients.csv"),
                "spec": str(out / "spec.toml"),
                **summary(release.report, folder),
                "purpose": gained,
            }
        )
        return
    _show(patients, release, k)
    _show_gain(gained, k)
    files = [
        (folder / "report.html", "what was asked and found, to show"),
        (folder / "data.parquet", "the released table"),
        (folder / "recoding.json", "the recoding, for new rows: anonfit apply"),
        (out / "spec.toml", "what was asked: change it, run it again"),
        (out / "patients.csv", "the made-up patients"),
    ]
    results().print(table(("file", "what it is"), files))


def _show(patients: pl.DataFrame, release: Release, k: int) -> None:
    import polars as pl

    alone = int((patients.group_by(QUASI_IDENTIFIERS).len()["len"] == 1).sum())
    sizes = release.report["audit"]["sizes"]
    names = ["age", "postcode", "admission", "diagnosis", TARGET]
    say((f"{len(patients):,} made-up patients", "bold"), ", as the hospital has them:")
    results().print(table(names, patients.select(names).cast(pl.String).head(4).fill_null("").rows()))
    say(
        f"{alone:,} of them ({alone / len(patients):.1%}) are the only one with their age, sex, postcode, "
        "nationality, day of admission and length of stay.\n"
    )
    say(("As released", "bold"), f", every combination shared by at least {k} patients:")
    step = max(1, len(release.data) // 4)
    shown = release.data.select(names).cast(pl.String).gather_every(step).head(4).fill_null("")
    results().print(table(names, shown.rows()))
    say(
        f"{len(release.data):,} rows in {sizes['groups']:,} groups of {sizes['smallest']} to {sizes['largest']:,} "
        "patients; none withheld."
    )
    for line in release.report["diversity"]:
        say(line["sentence"])
    say(("The audit of the written file accepted it.\n", "bold green"))


def _show_gain(figures: Mapping[str, Any] | None, k: int) -> None:
    """Say what the purpose gained at the same k, also if that is nothing."""
    if figures is None:
        say("What the purpose gained cannot be measured: two thirds of the patients are too few for this k.\n")
        return
    from anonfit.metrics.holdout import Gain

    gain = Gain(figures["gain"], figures["noise"])
    say((f"The {TARGET} of {figures['held_out_rows']:,} held-out patients", "bold"), ", predicted from the others:")
    accuracy, groups = figures["accuracy"], figures["groups"]
    lines = [("their most frequent one", "", f"{accuracy['most_frequent']:.1%}")]
    for name, how in (("blind", "made blind (Median)"), ("purpose", "made for it (denoised targets)")):
        lines.append((f"regions of k = {k}, {how}", f"{groups[name]:,}", f"{accuracy[name]:.1%}"))
    results().print(table(("predicted by", "groups", "right"), lines, numbers=(1, 2)))
    say((_verdict(gain) + "\n", "bold green" if gain.is_real else "yellow"))


def _verdict(gain: Gain) -> str:
    points, noise = abs(100 * gain.share), f"two standard errors: {100 * gain.noise:.1f}"
    if gain.is_real:
        return f"At the same k the purpose gained {points:.1f} points ({noise})."
    if gain.is_loss:
        return f"The purpose gained nothing here: it lost {points:.1f} points ({noise})."
    return f"The purpose gained nothing that chance does not explain: {100 * gain.share:+.1f} points ({noise})."
