# SPDX-License-Identifier: Apache-2.0
"""The command line: reads words, calls the api, shows the result. Heavy parts are loaded by the verb that needs
them.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["app", "main"]

app = typer.Typer(
    name="anonfit",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Anonymous releases of tables about people that stay useful for a stated purpose.",
    epilog="Start with anonfit demo. Exit status: 0 done, 1 the demand was not met, 2 the request was wrong.",
)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")]
Replace = Annotated[bool, typer.Option("--replace", help="Replace a release that is already there.")]


def _names(text: str | None) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()] if text else []


@app.command(epilog="Example: anonfit demo --rows 50000 --out trial")
def demo(
    rows: Annotated[int, typer.Option(help="Patients to make up, at least 200.", min=200)] = 20_000,
    out: Annotated[Path, typer.Option(help="Folder for the made-up data, the spec and the release.")] = Path(
        "anonfit-demo"
    ),
    seed: Annotated[int, typer.Option(help="Another seed, another population.", min=0)] = 0,
    k: Annotated[int, typer.Option(help="Persons that must share every combination.", min=1)] = 10,
    as_json: Json = False,
) -> None:
    """Make up patients and release them: no data needed."""
    from anonfit.cli.demonstration import demonstrate

    demonstrate(rows, out, seed=seed, k=k, as_json=as_json)


@app.command(epilog="Example: anonfit init patients.csv --out spec.toml")
def init(
    data: Annotated[Path, typer.Argument(help="The table: .csv(.gz|.zst), .parquet or .arrow.")],
    out: Annotated[Path | None, typer.Option(help="The spec to write; spec.toml beside the data if not given.")] = None,
    k: Annotated[int, typer.Option(help="The k to count rows against and to propose.", min=1)] = 10,
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite a spec that is already there.")] = False,
    as_json: Json = False,
) -> None:
    """Look at a table and propose a spec, with reasons."""
    from anonfit.cli.proposing import propose_spec

    propose_spec(data, out, k=k, replace=replace, as_json=as_json)


@app.command(epilog="Example: anonfit run spec.toml --out release --set privacy.k=20")
def run(
    spec: Annotated[Path, typer.Argument(help="The spec.")],
    out: Annotated[
        Path | None, typer.Option(help="The release folder to make; named after the spec if not given.")
    ] = None,
    engine: Annotated[str, typer.Option(help="auto or memory.")] = "",
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A setting above the spec's, such as privacy.k=20.")
    ] = None,
    replace: Replace = False,
    as_json: Json = False,
) -> None:
    """Make a release and publish it once audited."""
    from anonfit.cli.releasing import run_spec

    chosen = [*(settings or []), *([f'engine.name="{engine}"'] if engine else [])]
    run_spec(spec, out, settings=chosen, replace=replace, as_json=as_json)


@app.command(epilog="Example: anonfit apply release new_patients.csv --out release-2")
def apply(
    release: Annotated[Path, typer.Argument(help="A release folder.")],
    data: Annotated[Path, typer.Argument(help="New data with the columns of the original table.")],
    out: Annotated[Path | None, typer.Option(help="The release folder to make.")] = None,
    unseen: Annotated[
        str,
        typer.Option(help="Rows with a category the recoding does not know: suppress (withhold) or error."),
    ] = "suppress",
    replace: Replace = False,
    as_json: Json = False,
) -> None:
    """Release new data by an earlier release's recoding.

    Regions in which the new data has fewer than k persons are withheld.
    """
    from anonfit.cli.releasing import apply_release

    apply_release(release, data, out, unseen=unseen, replace=replace, as_json=as_json)


@app.command(
    epilog="Examples: anonfit audit release --source patients.csv, "
    "anonfit audit other_tool.csv --quasi-identifiers age,sex,zip --sensitive diagnosis --k 5"
)
def audit(
    data: Annotated[Path, typer.Argument(help="A release folder, or any file.")],
    spec: Annotated[Path | None, typer.Argument(help="The spec that says what the file's columns are.")] = None,
    quasi_identifiers: Annotated[
        str | None, typer.Option("--quasi-identifiers", help="Columns an attacker may know: a,b,c.")
    ] = None,
    sensitive: Annotated[str | None, typer.Option(help="Sensitive columns: a,b.")] = None,
    k: Annotated[int | None, typer.Option(help="The k that must hold.", min=1)] = None,
    entity: Annotated[str | None, typer.Option(help="Column whose different values are the persons.")] = None,
    count: Annotated[str | None, typer.Option(help="Column with the persons a row stands for.")] = None,
    source: Annotated[
        Path | None, typer.Option(help="The raw table the file was made from: compared row for row.")
    ] = None,
    other: Annotated[Path | None, typer.Option("--with", help="Another release of the same table.")] = None,
    population: Annotated[Path | None, typer.Option(help="The population the table was drawn from.")] = None,
    sampling_fraction: Annotated[
        float | None, typer.Option(help="Or the share of the population that is in the table.")
    ] = None,
    max_risk: Annotated[str | None, typer.Option(help="Highest acceptable risk: a number or a preset's name.")] = None,
    as_json: Json = False,
) -> None:
    """Measure what a file really protects.

    Works on any file, not only on releases. Exit status 1 if a demand is missed.
    """
    from anonfit.cli.auditing import audit_data

    options = {
        "entity": entity,
        "count": count,
        "population": population,
        "sampling_fraction": sampling_fraction,
        "max_risk": max_risk,
    }
    audit_data(
        data,
        spec,
        quasi_identifiers=_names(quasi_identifiers),
        sensitive=_names(sensitive),
        k=k,
        source=source,
        other=other,
        options={name: value for name, value in options.items() if value is not None},
        as_json=as_json,
    )


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"anonfit {version('anonfit')}")
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; every error becomes one text and an exit status."""
    from anonfit.cli.showing import show_failure

    try:
        app()
    except Exception as error:
        sys.exit(show_failure(error, as_json="--json" in sys.argv))
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; nothing was published.\n")
        sys.exit(130)
