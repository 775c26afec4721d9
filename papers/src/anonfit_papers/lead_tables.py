# SPDX-License-Identifier: Apache-2.0
"""The tables on which the default is held against ai-privacy-toolkit, each with what is to be predicted: one target or
several, classes or numbers. The README of the data folder says where the files come from.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

import polars as pl

from anonfit.errors import DataError
from anonfit_papers.lead_shipped import SHIPPED
from anonfit_papers.lead_task import LeadTask, without_package, yes_no
from anonfit_papers.purpose_tables import adult, wages


def _path(folder: Path, *parts: str) -> Path:
    path = folder.joinpath(*parts)
    if not path.is_file():
        raise DataError(f"{path} is not there: the README of the data folder says where it comes from.")
    return path


def _survey(folder: Path) -> pl.DataFrame:
    """Persons of 16 or more with wages."""
    numbers = ("AGEP", "SCHL", "WKHP", "WAGP", "JWMNP")
    people = pl.read_csv(_path(folder, "acs", "acs2018_1yr_persons_10states.csv.gz"), infer_schema=False)
    people = people.with_columns(pl.col(*numbers).cast(pl.Int32, strict=False))
    return people.filter((pl.col("AGEP") >= 16) & (pl.col("WAGP") > 0))


def _adult(folder: Path) -> LeadTask:
    task = adult(folder)
    return LeadTask("adult", task.frame, (task.target,), tuple(task.nominal), taxonomies=task.taxonomies)


def _wages(folder: Path) -> LeadTask:
    task = wages(folder)
    return LeadTask("wages", task.frame, (task.target,), tuple(task.nominal), taxonomies=task.taxonomies)


def _several(folder: Path) -> LeadTask:
    """Three targets of one table: a high wage, a long way to work, and working for a government."""
    people = _survey(folder)
    frame = people.select(
        *("AGEP", "SCHL", "WKHP", "ST", "CIT", "MAR", "SEX", "DIS", "RAC1P"),
        pl.when(pl.col("WAGP") >= 30_000).then(pl.lit("high")).otherwise(pl.lit("low")).alias("wage"),
        pl.when(pl.col("JWMNP").fill_null(0) >= 20).then(pl.lit("long")).otherwise(pl.lit("short")).alias("way"),
        pl.when(pl.col("COW").is_in(["3", "4", "5"])).then(pl.lit("yes")).otherwise(pl.lit("no")).alias("government"),
    )
    return LeadTask("several", frame, ("wage", "way", "government"), ("ST", "CIT", "MAR", "SEX", "DIS", "RAC1P"))


def _wage_numbers(folder: Path) -> LeadTask:
    """Wages as a number."""
    frame = _survey(folder).select(
        *("AGEP", "SCHL", "WKHP", "ST", "CIT", "MAR", "SEX", "DIS", "RAC1P"), pl.col("WAGP").cast(pl.Float64)
    )
    return LeadTask("wage-numbers", frame, ("WAGP",), ("ST", "CIT", "MAR", "SEX", "DIS", "RAC1P"), numbers=True)


def _hours(folder: Path) -> LeadTask:
    """Hours of work in a week as a number."""
    nominal = ("ST", "CIT", "MAR", "SEX", "DIS", "RAC1P", "COW")
    people = _survey(folder).select("AGEP", "SCHL", *nominal, pl.col("WKHP").cast(pl.Float64))
    return LeadTask("hours", people, ("WKHP",), nominal, numbers=True)


def _worker(folder: Path) -> LeadTask:
    """Who people work for: a company, a government, themselves."""
    people = _survey(folder).filter(pl.col("COW").is_not_null())
    company = pl.when(pl.col("COW").is_in(["1", "2"])).then(pl.lit("company"))
    kind = company.when(pl.col("COW").is_in(["3", "4", "5"])).then(pl.lit("government")).otherwise(pl.lit("self"))
    nominal = ("ST", "SEX", "RAC1P", "MAR", "RELP", "NATIVITY")
    return LeadTask("worker", people.select("AGEP", "SCHL", "WKHP", *nominal, kind.alias("COW")), ("COW",), nominal)


_CENSUS = {0: "age", 1: "class_worker", 4: "education", 7: "marital_stat", 9: "major_occ_code", 10: "race", 12: "sex",
           30: "num_emp", 35: "citizenship", 39: "weeks_worked", 41: "income"}  # fmt: skip


def _census(folder: Path) -> LeadTask:
    """Census-Income (KDD), those of 16 or more."""
    text = gzip.decompress(_path(folder, "census-kdd", "census-income.data.gz").read_bytes()).replace(b", ", b",")
    frame = pl.read_csv(BytesIO(text), has_header=False, infer_schema=False)
    frame = frame.select(pl.col(frame.columns[place]).alias(name) for place, name in _CENSUS.items())
    numbers = ("age", "num_emp", "weeks_worked")
    frame = frame.with_columns(pl.col(numbers).str.strip_chars().cast(pl.Int32)).filter(pl.col("age") >= 16)
    nominal = tuple(name for name in frame.columns if name not in (*numbers, "income"))
    return LeadTask("census", frame, ("income",), nominal)


def _cmc(folder: Path) -> LeadTask:
    names = [
        "age",
        "education",
        "partner",
        "children",
        "religion",
        "working",
        "occupation",
        "living",
        "media",
        "method",
    ]
    frame = pl.read_csv(_path(folder, "uci", "cmc.data"), has_header=False, new_columns=names)
    nominal = ("religion", "working", "occupation", "media")
    return LeadTask("cmc", frame.with_columns(pl.col(*nominal, "method").cast(pl.String)), ("method",), nominal)


def _communities(folder: Path) -> LeadTask:
    """NIST's excerpt, adults: an income above the median."""
    frame = pl.read_csv(_path(folder, "nist-acs", "national2019.csv"), infer_schema=False)
    numbers = ("AGEP", "EDU", "NPF")
    frame = frame.with_columns(pl.col(numbers).cast(pl.Int32, strict=False).fill_null(-1))
    frame = frame.filter((pl.col("PINCP_DECILE") != "N") & (pl.col("AGEP") >= 18))
    income = pl.when(pl.col("PINCP_DECILE").cast(pl.Int32) >= 5).then(pl.lit("high")).otherwise(pl.lit("low"))
    nominal = ("SEX", "MSP", "HISP", "RAC1P", "OWN_RENT", "INDP_CAT", "DPHY")
    return LeadTask("communities", frame.select(*numbers, *nominal, income.alias("income")), ("income",), nominal)


def _credit(folder: Path) -> LeadTask:
    names = [f"a{place}" for place in range(1, 21)] + ["risk"]
    frame = pl.read_csv(_path(folder, "uci", "german.data"), has_header=False, separator=" ", new_columns=names)
    nominal = ("a1", "a3", "a4", "a6", "a7", "a9", "a15", "a17")
    frame = frame.select("a2", "a5", "a8", "a13", "a16", *nominal, pl.col("risk").cast(pl.String))
    return LeadTask("credit", frame, ("risk",), nominal)


def _approval(folder: Path) -> LeadTask:
    """Credit approval, complete records."""
    names = [f"a{place}" for place in range(1, 16)] + ["approved"]
    frame = pl.read_csv(_path(folder, "uci", "crx.data"), has_header=False, infer_schema=False, new_columns=names)
    frame = frame.filter(~pl.any_horizontal(pl.all() == "?"))
    numbers, nominal = ("a2", "a3", "a8", "a11"), ("a1", "a4", "a6", "a7", "a9", "a10", "a13")
    frame = frame.select(pl.col(*numbers).cast(pl.Float64), *nominal, "approved")
    return LeadTask("approval", frame, ("approved",), nominal)


def _from_statsmodels(name: str, target: pl.Expr, nominal: tuple[str, ...], without: tuple[str, ...]) -> LeadTask:
    """A table that ships with statsmodels; without the column that the target is made of."""
    if find_spec("statsmodels") is None:
        raise without_package("statsmodels", name)
    rows = import_module(f"statsmodels.datasets.{name}").load_pandas().data
    frame = pl.DataFrame({column: rows[column].to_numpy() for column in rows.columns}).with_columns(target)
    frame = frame.drop(without).with_columns(pl.col(nominal).cast(pl.Int32).cast(pl.String))
    return LeadTask(name, frame, (target.meta.output_name(),), nominal)


def _fair(_: Path) -> LeadTask:
    """Fair's survey of marriages (1978): whether there was an affair."""
    target = yes_no(pl.col("affairs") > 0, "any")
    return _from_statsmodels("fair", target, ("occupation", "occupation_husb"), ("affairs",))


def _doctor(_: Path) -> LeadTask:
    """The RAND health insurance experiment: whether somebody went to a doctor at least twice a year."""
    return _from_statsmodels("randhie", yes_no(pl.col("mdvis") >= 2, "often"), ("idp", "physlm"), ("mdvis",))


def _visits(_: Path) -> LeadTask:
    """The same table: how many visits to a doctor in a year."""
    task = _from_statsmodels("randhie", pl.col("mdvis").cast(pl.Float64).alias("visits"), ("idp", "physlm"), ("mdvis",))
    return replace(task, name="visits", numbers=True)


def _election(_: Path) -> LeadTask:
    """The American national election study of 1996: the vote."""
    return _from_statsmodels("anes96", yes_no(pl.col("vote") > 0, "dole"), (), ("vote", "logpopul"))


def _shipped(name: str, _: Path) -> LeadTask:
    return SHIPPED[name].task(name)


TABLES: Mapping[str, Callable[[Path], LeadTask]] = {
    "adult": _adult,
    "wages": _wages,
    "census": _census,
    "cmc": _cmc,
    "communities": _communities,
    "credit": _credit,
    "approval": _approval,
    "fair": _fair,
    "randhie": _doctor,
    "anes96": _election,
    "worker": _worker,
    "several": _several,
    "wage-numbers": _wage_numbers,
    "hours": _hours,
    "visits": _visits,
    **{name: partial(_shipped, name) for name in SHIPPED},
}


def tables(names: Sequence[str], folder: Path) -> list[LeadTask]:
    """The tables of some names."""
    return [TABLES[name](folder) for name in names]
