# SPDX-License-Identifier: Apache-2.0
"""The verbs of the command line: each reads words, calls the api, shows the result. Heavy parts are loaded by the verb
that needs them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from anonfit.cli.options import Dry, Json, Replace, names_of, number_or_name, verb, whole_numbers
from anonfit.cli.taxonomies import app as taxonomies
from anonfit.tables.formats import endings
from anonfit.web.command import web

app = typer.Typer(
    name="anonfit",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Anonymous releases of tables about people that stay useful for a stated purpose.",
    epilog="Start with anonfit demo. Exit status: 0 done, 1 the demand was not met, 2 the request was wrong.",
)

To = Annotated[str | None, typer.Option(help="A database's table that is also to hold the release: ADDRESS#TABLE.")]
app.add_typer(taxonomies, name="taxonomy")


@verb(app, epilog="Example: anonfit demo --rows 50000 --out trial")
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


@verb(app, epilog="Example: anonfit init patients.csv --out spec.toml")
def init(
    data: Annotated[str, typer.Argument(help=f"The table: {endings(packed=True)}, or ADDRESS#TABLE of a database.")],
    out: Annotated[Path | None, typer.Option(help="The spec to write; spec.toml beside the data if not given.")] = None,
    k: Annotated[int, typer.Option(help="The k to count rows against and to propose.", min=1)] = 10,
    accept: Annotated[
        bool, typer.Option("--accept", help="Take the proposals as they are, unseen; releases tell that.")
    ] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite a spec that is already there.")] = False,
    as_json: Json = False,
) -> None:
    """Look at a table and propose a spec, with reasons.

    What is left to decide stands in the spec under the key decide: run refuses it until these lines are removed.
    """
    from anonfit.cli.specs import propose_spec

    propose_spec(data, out, k=k, accept=accept, replace=replace, as_json=as_json)


@verb(app, epilog="Example: anonfit run spec.toml --out release --set privacy.k=20")
def run(
    spec: Annotated[Path, typer.Argument(help="The spec.")],
    out: Annotated[
        Path | None, typer.Option(help="The release folder to make; named after the spec if not given.")
    ] = None,
    engine: Annotated[str, typer.Option(help="auto, or the name of an engine, such as memory or duckdb.")] = "",
    memory: Annotated[str, typer.Option(help="How much memory the engine may use, such as 2GB.")] = "",
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A setting above the spec's, such as privacy.k=20.")
    ] = None,
    curve: Annotated[
        str | None, typer.Option(help="Also measure what other k would be worth, for the report: 5,10,25,50.")
    ] = None,
    steps: Annotated[
        bool, typer.Option("--steps", help="Show how columns were refined (algorithm tdr); for the owner only.")
    ] = False,
    start: Annotated[
        Path | None, typer.Option(help="The recoding.json that refining begins with, perhaps edited (algorithm tdr).")
    ] = None,
    to: To = None,
    dry: Dry = False,
    replace: Replace = False,
    as_json: Json = False,
) -> None:
    """Make a release and publish it once audited."""
    from anonfit.cli.releasing import run_spec
    from anonfit.spec.write import toml_value

    given = {"engine.name": engine, "engine.memory": memory, "output.to": to}
    chosen = [*(settings or []), *(f"{name}={toml_value(word)}" for name, word in given.items() if word)]
    if start is not None:
        chosen.append(f"method.start={toml_value(str(start.absolute()))}")
    run_spec(
        spec,
        out,
        settings=chosen,
        curve=whole_numbers("curve", curve),
        replace=replace,
        as_json=as_json,
        steps=steps,
        dry=dry,
    )


@verb(app, epilog="Example: anonfit apply release new_patients.csv --out release-2")
def apply(
    release: Annotated[Path, typer.Argument(help="A release folder.")],
    data: Annotated[str, typer.Argument(help="New data with the original table's columns: a file or ADDRESS#TABLE.")],
    out: Annotated[Path | None, typer.Option(help="The release folder to make.")] = None,
    query: Annotated[str | None, typer.Option(help="A query of the database, in place of a table.")] = None,
    unseen: Annotated[
        str,
        typer.Option(help="Rows with a category the recoding does not know: suppress (withhold) or error."),
    ] = "suppress",
    recoding: Annotated[
        Path | None, typer.Option(help="An edited recoding.json, in place of the release's own.")
    ] = None,
    suppression_limit: Annotated[
        float | None,
        typer.Option(help="The share of rows that may be withheld, such as 0.05; the release's own if not given."),
    ] = None,
    to: To = None,
    dry: Dry = False,
    replace: Replace = False,
    as_json: Json = False,
) -> None:
    """Release new data by an earlier release's recoding.

    Regions in which the new data has fewer than k persons are withheld; exit status 1 if that is more than allowed.
    """
    from anonfit.cli.releasing import apply_release

    apply_release(
        release,
        data,
        out,
        unseen=unseen,
        replace=replace,
        as_json=as_json,
        recoding=recoding,
        suppression_limit=suppression_limit,
        query=query,
        to=to,
        dry=dry,
    )


@verb(
    app,
    epilog="Examples: anonfit audit release --source patients.csv, "
    "anonfit audit other_tool.csv --quasi-identifiers age,sex,zip --sensitive diagnosis --k 5",
)
def audit(
    data: Annotated[str, typer.Argument(help="A release folder, the folder of a tree, a file, or ADDRESS#TABLE.")],
    spec: Annotated[Path | None, typer.Argument(help="A spec: what the file's columns are, and what is asked.")] = None,
    quasi_identifiers: Annotated[
        str | None, typer.Option("--quasi-identifiers", help="Columns an attacker may know: a,b,c.")
    ] = None,
    sensitive: Annotated[str | None, typer.Option(help="Sensitive columns: a,b.")] = None,
    k: Annotated[int | None, typer.Option(help="The k that must hold.", min=1)] = None,
    entity: Annotated[str | None, typer.Option(help="Column whose different values are the persons.")] = None,
    count: Annotated[str | None, typer.Option(help="Column with the persons a row stands for.")] = None,
    source: Annotated[
        str | None, typer.Option(help="The raw table, a file or ADDRESS#TABLE: compared row for row.")
    ] = None,
    other: Annotated[Path | None, typer.Option("--with", help="Another release of the same table.")] = None,
    population: Annotated[str | None, typer.Option(help="The population the table was drawn from.")] = None,
    sampling_fraction: Annotated[float | None, typer.Option(hidden=True, help="Refused, with the reason.")] = None,
    max_risk: Annotated[
        str | None, typer.Option(help="Highest acceptable risk: a number such as 0.05, or tools, ema-0070 or strict.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="A page to write, such as audit.html; for the owner only.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite a page that is already there.")] = False,
    as_json: Json = False,
) -> None:
    """Measure what a file really protects.

    Of a release, says whether it holds what it claims and, apart from that, what is asked with --k, --max-risk or a
    spec; of any other file, whether it holds what is asked. Where nothing is asked there are only figures. Exit status
    0 if all of it is met or nothing was asked, 1 if something is missed or could not be checked.
    """
    from anonfit.cli.auditing import audit_data

    options = {
        "entity": entity,
        "count": count,
        "population": population,
        "sampling_fraction": sampling_fraction,
        "max_risk": number_or_name(max_risk),
    }
    audit_data(
        data,
        spec,
        quasi_identifiers=names_of(quasi_identifiers),
        sensitive=names_of(sensitive),
        k=k,
        source=source,
        other=other,
        options={name: value for name, value in options.items() if value is not None},
        as_json=as_json,
        html=html,
        replace=replace,
    )


@verb(app, epilog="Example: anonfit evaluate spec.toml --k 5,25,100 --learners tree,logistic-regression --out trial")
def evaluate(
    spec: Annotated[Path, typer.Argument(help="The spec; its targets are what is predicted.")],
    k: Annotated[str | None, typer.Option(help="The demands: 5,10,50. The spec's if not given.")] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            help="What is compared: spec, median, infogain, infogain-subset-denoised, lsd, selection, tdr, tree, and "
            "the baselines original and removed. spec,median,original,removed if not given."
        ),
    ] = None,
    learners: Annotated[
        str | None,
        typer.Option(
            help="tree, naive-bayes, random-forest, linear-svm, logistic-regression, gradient-boosting; "
            "linear-regression, tree-regression; with the extra weka: j48, weka-naive-bayes, weka-random-forest, smo, "
            "weka-linear-regression, m5p. Those of scikit-learn if not given."
        ),
    ] = None,
    folds: Annotated[int, typer.Option(help="Parts of the rows that are tested on in turn.", min=2)] = 10,
    protocol: Annotated[
        str,
        typer.Option(
            help="holdout (test rows are recoded by what was learned from the others), raw-test (they stay raw), or "
            "combined (all are recoded together: leaks test labels, for repeating a paper only)."
        ),
    ] = "holdout",
    target: Annotated[str | None, typer.Option(help="Predict this column only.")] = None,
    using: Annotated[str | None, typer.Option(help="Learn from these columns only: a,b,c.")] = None,
    where: Annotated[str | None, typer.Option(help="Models for these rows only, such as 'age >= 50'.")] = None,
    encoding: Annotated[str, typer.Option(help="How regions become numbers: ends, expected or both.")] = "ends",
    seed: Annotated[int, typer.Option(help="Another seed, other folds.", min=0)] = 0,
    workers: Annotated[int | None, typer.Option(help="Processes; one for each core if not given.", min=1)] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the results; the same command goes on with what is in it.")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A setting above the spec's, such as workload.denoise=true.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure how useful releases are for the models they are for.

    Models are taught with released rows and tested on other rows, for every method, k and learner.
    """
    from anonfit.cli.evaluating import evaluate_spec

    options = {
        "methods": names_of(methods),
        "ks": whole_numbers("k", k),
        "learners": names_of(learners),
        "folds": folds,
        "protocol": protocol,
        "encoding": encoding,
        "seed": seed,
        "workers": workers,
    }
    evaluate_spec(
        spec,
        settings=settings or [],
        model={"target": target, "using": names_of(using), "where": where},
        out=out,
        options={name: value for name, value in options.items() if value not in (None, [])},
        as_json=as_json,
    )


@verb(
    app,
    epilog="Examples: anonfit tree spec.toml --out tree --set output.populations=majority, "
    "anonfit tree --from tree --predict new_patients.csv --out predicted.csv",
)
def tree(
    spec: Annotated[
        Path | None, typer.Argument(help="The spec: quasi-identifiers are public, its one target is the class.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The folder (or the file of predictions) to make; named after the spec or data.")
    ] = None,
    saved: Annotated[
        Path | None, typer.Option("--from", help="A published tree, in place of a spec: show it, or predict by it.")
    ] = None,
    predict: Annotated[
        Path | None, typer.Option(help="New data: its rows are written with the class that the tree predicts.")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A setting above the spec's, such as privacy.k=20.")
    ] = None,
    dry: Dry = False,
    replace: Replace = False,
    as_json: Json = False,
) -> None:
    """Publish a k-anonymous decision tree instead of a table.

    Who knows all public columns of a person cannot tell the person from k - 1 others by it.
    """
    from anonfit.cli.releasing import tree_of_spec, use_tree

    if saved is not None or predict is not None:
        use_tree(spec, saved, predict, out, settings=settings or [], replace=replace, as_json=as_json)
    else:
        tree_of_spec(spec, out, settings=settings or [], replace=replace, as_json=as_json, dry=dry)


@verb(app, epilog="Example: anonfit workload queries.sql --spec spec.toml --dialect postgres --out learned.toml")
def workload(
    logs: Annotated[list[Path], typer.Argument(help="Query logs: files of SQL statements, which are never executed.")],
    spec: Annotated[Path, typer.Option(help="The spec of the table that the queries are about.")],
    out: Annotated[
        Path | None, typer.Option(help="The spec to write; learned.toml beside the spec if not given.")
    ] = None,
    dialect: Annotated[
        str | None, typer.Option(help="Of the SQL: postgres, mysql, tsql, snowflake, bigquery, duckdb and others.")
    ] = None,
    table: Annotated[
        str | None, typer.Option(help="What queries call the table; without it any table that has its columns.")
    ] = None,
    selections: Annotated[int, typer.Option(help="Selections to keep at most.", min=0, max=1000)] = 50,
    minterms: Annotated[
        int, typer.Option(help="Keep so many min-terms at most in place of selections.", min=0, max=1000)
    ] = 0,
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite a spec that is already there.")] = False,
    as_json: Json = False,
) -> None:
    """Learn selections and weights from a query log.

    Writes a copy of the spec whose workload says what was learned, with the evidence for every line.
    """
    from anonfit.cli.specs import learn_workload

    options = {"dialect": dialect, "table": table, "selections": selections, "minterms": minterms}
    learn_workload(logs, spec, out, options=options, replace=replace, as_json=as_json)


@verb(app, epilog="Example: anonfit reproduce R16 R18 --quick")
def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(help="Experiments, such as R16, or all; without a name they are listed.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="The data folder; by default what ANONFIT_DATA says, or ../shared/data beside the project."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for figures, tables and verdicts, and for finished parts.")] = Path(
        "anonfit-reproduction"
    ),
    quick: Annotated[bool, typer.Option("--quick", help="Fewer rows and trials: all in five minutes.")] = False,
    fetched: Annotated[
        bool, typer.Option("--fetch", help="Fetch files of the UCI archive that the data folder lacks.")
    ] = False,
    archive: Annotated[str | None, typer.Option(help="Another address of the UCI archive.")] = None,
    docs: Annotated[
        Path | None, typer.Option(help="Also write reproduction.md and its figures into this folder.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Repeat the papers' experiments and say which claims hold.

    A run that was stopped goes on where it was.
    """
    from importlib.metadata import entry_points

    from anonfit.errors import RequestError

    known = entry_points(group="anonfit.commands", name="reproduce")
    if not known:
        raise RequestError(
            "the papers' experiments are a package of their own: install it with pip install ./papers in a checkout."
        )
    next(iter(known)).load()(
        names or (), data=data, out=out, quick=quick, fetched=fetched, archive=archive, docs=docs, as_json=as_json
    )


@verb(app, epilog="Example: anonfit compare release-k10 release-k50 --out compare.html")
def compare(
    releases: Annotated[list[Path], typer.Argument(help="Two release folders or more.")],
    source: Annotated[
        Path | None,
        typer.Option(help="The raw table they were made from: every two are audited together, as audit --with."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="A page to write, such as compare.html.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite a page that is already there.")] = False,
    as_json: Json = False,
) -> None:
    """Put releases side by side: demands, risk, utility."""
    from anonfit.cli.evaluating import compare_releases

    compare_releases(releases, source=source, out=out, replace=replace, as_json=as_json)


app.command(epilog="Example: anonfit web patients --port 8420")(web)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"anonfit {version('anonfit')}")
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    from anonfit.cli.showing import check_addresses
    from anonfit.tables.addresses import refuse_shown_password

    check_addresses()
    refuse_shown_password(sys.argv[1:])
