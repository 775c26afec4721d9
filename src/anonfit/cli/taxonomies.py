# SPDX-License-Identifier: Apache-2.0
"""`anonfit taxonomy`: makes a taxonomy file from a rule or from the values of a column, shows one, and writes it in
another layout."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from anonfit.cli.options import Json, Replace, names_of, whole_numbers, with_options
from anonfit.cli.showing import console, print_json, results, say, table
from anonfit.errors import RequestError, counted, did_you_mean

if TYPE_CHECKING:
    import polars as pl

    from anonfit.tables.taxonomy import Taxonomy

app = typer.Typer(no_args_is_help=True, help="Make taxonomy files, look at them, and change their layout.")
build = typer.Typer(no_args_is_help=True, help="Make a taxonomy file from a rule, or from the values of a column.")
app.add_typer(build, name="build")

Out = Annotated[Path, Option(help="The file to write: .csv (ARX layout), .json (a tree) or .txt (indented names).")]
Root = Annotated[str, Option(help="The name of the root.")]
Closed = Annotated[bool, Option("--closed", help="The ends are those of the domain: no leaf beyond them.")]
Data = Annotated[Path, Argument(help="The table.")]
ColumnName = Annotated[str, Argument(help="The column whose values become the leaves.")]
_CUT_OPTIONS = ("--closed", "--root", "--out", "--replace", "--json", "--help")
NAMED = (
    "Every value of the column is a name in this file, and names may stand in releases: remove what nobody may know."
)


def builder(
    example: str,
    *,
    notice: str = "",
    asked: Callable[[Mapping[str, Any]], int] = lambda _: 0,
    context: dict[str, Any] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a function that builds a taxonomy a command that writes it, with the options that all of these have.

    Args:
        example: Words behind the command's name.
        notice: What is said of every taxonomy that it makes.
        asked: From the words of a call to how many levels they ask for below the root; 0 where they ask for none.
        context: How words are read, if otherwise than elsewhere.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def command(*, out: Path, replace: bool, as_json: bool, **options: Any) -> None:
            if not options["root"].strip():
                raise RequestError("--root needs a name for the whole, such as '*' or 'any'.")
            made = function(**options)
            notices = [notice, _left_out(asked(options) - made.height, asked(options))]
            _write(made, out, replace=replace, as_json=as_json, notice=" ".join(filter(None, notices)))

        name = function.__name__
        options = {"out": (Out, Path(f"{name}.csv")), "replace": (Replace, False), "as_json": (Json, False)}
        named = build.command(epilog=f"Example: anonfit taxonomy build {name} {example}", context_settings=context)
        named(with_options(command, options))
        return function

    return register


def _left_out(levels: int, asked: int) -> str:
    """What is said where fewer levels were made than were asked for."""
    if levels < 1:
        return ""
    why = "one interval or period would hold everything, as the root does, or two levels would be the same"
    return f"{levels} of {counted(asked, 'level')} {'is' if levels == 1 else 'are'} left out: {why}."


def _asked_widths(options: Mapping[str, Any]) -> int:
    return 1 + len(names_of(options["levels"])) if options["levels"] else 0


@builder("--low 0 --high 120 --step 5 --levels 10,20,40", asked=_asked_widths)
def intervals(
    low: Annotated[str, Option(help="Where the first interval begins.")],
    high: Annotated[str, Option(help="Where the last interval ends.")],
    step: Annotated[str, Option(help="How wide the leaves are.")],
    levels: Annotated[str, Option(help="The widths of the wider levels: 10,20,40. Doubled if not given.")] = "",
    closed: Closed = False,
    root: Root = "*",
) -> Any:
    """Equal intervals of a number, joined to wider ones level by level."""
    from anonfit.tables import taxonomy_builders as builders

    widths = [_number(word, "levels") for word in names_of(levels)] or None
    start, end, width = _number(low, "low"), _number(high, "high"), _number(step, "step")
    return builders.intervals(start, end, step=width, levels=widths, open_ends=not closed, root=root)


# What begins with a minus is an option elsewhere; here it may be a cut below zero.
@builder(
    "18,25,45,65 25,65 --out age.csv",
    asked=lambda options: len(options["levels"]),
    context={"ignore_unknown_options": True},
)
def cuts(
    levels: Annotated[
        list[str],
        Argument(help="The cut points of the leaves, 18,25,45,65 or -5,0,5; then those of each coarser level."),
    ],
    closed: Closed = False,
    root: Root = "*",
) -> Any:
    """Intervals between cut points, which are numbers, dates or times."""
    from anonfit.tables import taxonomy_builders as builders

    for word in levels:
        if word.startswith("-") and not word[1:2].isdigit() and not word.startswith("-."):
            raise RequestError(f"there is no option '{word}'; {did_you_mean(word, _CUT_OPTIONS)}")
    points = [[_point(word) for word in names_of(level)] for level in levels]
    return builders.from_cuts(points, open_ends=not closed, root=root)


@builder(
    "--low 2020-01-01 --high 2024-12-31 --levels month,year",
    asked=lambda options: len(names_of(options["levels"])),
)
def dates(
    low: Annotated[str, Option(help="The first day, such as 2020-01-01.")],
    high: Annotated[str, Option(help="The last day.")],
    levels: Annotated[
        str, Option(help="Some of day, month, quarter and year, the finest first.")
    ] = "day,month,quarter,year",
    closed: Closed = False,
    root: Root = "*",
) -> Any:
    """Days, months, quarters and years of the calendar."""
    from anonfit.tables import taxonomy_builders as builders

    first, last = _day(low, "low"), _day(high, "high")
    return builders.dates(first, last, levels=names_of(levels), open_ends=not closed, root=root)


@builder("patients.csv postcode --keep 3,2 --out postcode.csv", notice=NAMED)
def mask(
    data: Data,
    column: ColumnName,
    keep: Annotated[
        str, Option(help="The numbers of characters kept, level by level: 3,2. All of them if not given.")
    ] = "",
    sign: Annotated[str, Option("--sign", "--mask", help="The character that stands for a masked one.")] = "*",
    root: Root = "*",
) -> Any:
    """Codes masked from the right: 75011, 7501*, 750**."""
    from anonfit.tables import taxonomy_builders as builders

    numbers = whole_numbers("keep", keep) or None
    return builders.masked(_leaves(data, column), levels=numbers, mask=sign, root=root)


@builder("patients.csv country --groups 20,5", notice=NAMED)
def alphabet(
    data: Data,
    column: ColumnName,
    groups: Annotated[str, Option(help="How many groups there are on each level, descending: 20,5.")],
    root: Root = "*",
) -> Any:
    """Groups of neighbours in alphabetical order."""
    from anonfit.tables import taxonomy_builders as builders

    return builders.alphabetical(_leaves(data, column), groups=whole_numbers("groups", groups), root=root)


@builder("patients.csv diagnosis --minimum 50", notice=NAMED)
def frequency(
    data: Data,
    column: ColumnName,
    minimum: Annotated[int, Option(help="The rows that every child of the root must have.", min=1)],
    root: Root = "*",
) -> Any:
    """Frequent values alone, rarer ones in groups of similar frequency."""
    from anonfit.tables import taxonomy_builders as builders

    values = _leaves(data, column)
    counts = dict(zip(*values.value_counts().get_columns(), strict=True))
    return builders.by_frequency(counts, minimum=minimum, root=root)


@app.command(epilog="Example: anonfit taxonomy convert country.json --out country.csv")
def convert(
    taxonomy: Annotated[Path, Argument(help="A taxonomy file: .csv (ARX layout), .json or .txt.")],
    out: Out,
    replace: Replace = False,
    as_json: Json = False,
) -> None:
    """Write a taxonomy in another layout."""
    from anonfit.tables.taxonomy_files import read_taxonomy

    _write(read_taxonomy(taxonomy), out, replace=replace, as_json=as_json)


@app.command(epilog="Example: anonfit taxonomy show country.csv --data patients.csv --column country")
def show(
    taxonomy: Annotated[Path, Argument(help="A taxonomy file.")],
    data: Annotated[Path | None, Option(help="A table to hold it against.")] = None,
    column: Annotated[str | None, Option(help="The column of that table.")] = None,
    as_json: Json = False,
) -> None:
    """Show the levels of a taxonomy, and whether it has a place for every value of a column.

    Exit status 1 if values of the column have no place in it.
    """
    from anonfit.tables.taxonomy_files import read_taxonomy

    if (data is None) != (column is None):
        raise RequestError("--data and --column go together: the table, and the column of it.")
    tree = read_taxonomy(taxonomy)
    outside = None
    if data is not None and column is not None:
        from anonfit.tables.taxonomy_leaves import leaf_positions

        values = _values(data, column).unique(maintain_order=True)
        outside = int((leaf_positions(tree, values, column=column) < 0).sum())
    _show(tree, {"taxonomy": str(taxonomy)}, outside, as_json=as_json)
    if outside:
        raise typer.Exit(1)


# --- words to values ----------------------------------------------------------------------------------------------


def _number(word: str, option: str) -> Decimal:
    try:
        return Decimal(word)
    except InvalidOperation:
        raise RequestError(f"--{option} needs numbers such as 5 or 2.5; found '{word}'.") from None


def _day(word: str, option: str) -> date:
    try:
        return date.fromisoformat(word)
    except ValueError:
        raise RequestError(f"--{option} needs a day such as 2020-01-31; found '{word}'.") from None


def _point(word: str) -> Decimal | date:
    for read in (Decimal, date.fromisoformat, datetime.fromisoformat):
        try:
            return read(word)
        except (ValueError, InvalidOperation):
            continue
    raise RequestError(f"'{word}' is no number and no date; cuts are such as 18,25,65 or 2020-01-01,2022-01-01.")


def _values(data: Path, column: str) -> pl.Series:
    """The values of a column that are not missing."""
    from anonfit.tables.reading import ReadOptions, column_names, read_table

    names = column_names(data, ReadOptions())
    if column not in names:
        raise RequestError(f"{data} has no column '{column}'; {did_you_mean(column, names)}")
    return read_table(data, ReadOptions(columns=(column,)))[column].drop_nulls()


def _leaves(data: Path, column: str) -> pl.Series:
    """The values of a column that become leaves; there must be some."""
    values = _values(data, column)
    if values.is_empty():
        raise RequestError(f"column '{column}' of {data} has no value, so there is nothing to make leaves of.")
    return values


# --- results ------------------------------------------------------------------------------------------------------


def _write(made: Taxonomy, out: Path, *, replace: bool, as_json: bool, notice: str = "") -> None:
    from anonfit.tables.taxonomy_files import write_taxonomy

    if out.exists() and not replace:
        raise RequestError(f"{out} is already there; choose another --out, or add --replace.")
    write_taxonomy(made, out)
    if notice and not as_json:
        console().print(notice, soft_wrap=True, markup=False)
    _show(made, {"taxonomy": str(out), **({"notice": notice} if notice else {})}, None, as_json=as_json)


def _show(tree: Taxonomy, said: dict[str, Any], outside: int | None, *, as_json: bool) -> None:
    """The number of names on each level, counted from the leaves, with some of them."""
    levels = [list(level) for level in levels_of(tree)]
    if as_json:
        places = {} if outside is None else {"values_without_place": outside}
        print_json({**said, "leaves": len(tree.leaves), "levels": [len(names) for names in levels], **places})
        return
    say(f"{said['taxonomy']}: {len(tree.leaves):,} leaves, {tree.height + 1} levels")
    rows = [(level, f"{len(names):,}", _some(names)) for level, names in enumerate(levels)]
    results().print(table(("level", "names", "such as"), rows, numbers=(0, 1)))
    if outside is not None:
        say("Every value of the column has a place in it." if not outside else f"{outside:,} values have no place.")


def levels_of(tree: Taxonomy) -> list[Counter[str]]:
    """How many leaves the names on each level cover, from the leaves to the root; a short branch repeats its leaf."""
    paths = [tree.path(node) for node in tree.leaf_nodes]
    height = tree.height + 1
    return [Counter(path[max(len(path) - (height - level), 0)] for path in paths) for level in range(height)]


def _some(names: Sequence[str]) -> str:
    return ", ".join([*names[:3], *(["…", names[-1]] if len(names) > 4 else names[3:])])
