# SPDX-License-Identifier: Apache-2.0
"""UCI Adult: its complete records, and the taxonomies that TKDE 2007 has for it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl

from anonfit_papers.datasets import ADULT, require

ADULT_COLUMNS = (
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship"),
    *("race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "class"),
)
_NUMBERS = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")

Branch: TypeAlias = "Mapping[str, Branch | tuple[str, ...]]"

# Where the paper gives two groups the same name, the continent tells them apart here.
_BRANCHES: dict[str, Branch] = {
    "workclass": {
        "Worked": {
            "With-Pay": {
                "Private": (),
                "Self-emp": ("Self-emp-not-inc", "Self-emp-inc"),
                "Gov": ("Federal-gov", "Local-gov", "State-gov"),
            },
            "Without-pay": (),
        },
        "Never-worked": (),
    },
    "education": {
        "Without-Post-Secondary": {
            "Preschool": (),
            "Elementary": ("1st-4th", "5th-6th", "7th-8th"),
            "Secondary": {"Junior": ("9th", "10th"), "Senior": ("11th", "12th", "HS-grad")},
        },
        "Post-secondary": {
            "Some-college": (),
            "Assoc": ("Assoc-acdm", "Assoc-voc"),
            "University": {"Bachelors": (), "Prof-school": (), "Post-grad": ("Masters", "Doctorate")},
        },
    },
    "marital-status": {
        "Married": {
            "Partner-present": ("Married-civ-spouse", "Married-AF-spouse"),
            "Partner-absent": ("Divorced", "Separated", "Widowed", "Married-spouse-absent"),
        },
        "Never-married": (),
    },
    "occupation": {
        "White-collar": ("Exec-managerial", "Prof-specialty", "Sales", "Adm-clerical"),
        "Blue-collar": (
            *("Tech-support", "Craft-repair", "Machine-op-inspct", "Handlers-cleaners", "Transport-moving"),
            "Priv-house-serv",
        ),
        "Other": ("Protective-serv", "Armed-Forces", "Farming-fishing", "Other-service"),
    },
    "relationship": {
        "In-family": ("Wife", "Own-child", "Husband"),
        "Not-in-family": (),
        "Other-relative": (),
        "Unmarried": (),
    },
    "race": {"White": (), "Colored": ("Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black")},
    "sex": {"Female": (), "Male": ()},
    "native-country": {
        "North-America": {"USA": ("United-States", "Outlying-US(Guam-USVI-etc)"), "Canada": ()},
        "Middle-America": ("Mexico", "Honduras", "Guatemala", "Nicaragua", "El-Salvador"),
        "South-America": {
            "Western-South-America": ("Ecuador", "Peru"),
            "Northern-South-America": ("Columbia",),
            "Caribbean": ("Puerto-Rico", "Dominican-Republic", "Jamaica", "Cuba", "Haiti", "Trinadad&Tobago"),
        },
        "Europe": {
            "Western-Europe": ("France", "England", "Ireland", "Scotland", "Holand-Netherlands"),
            "Southern-Europe": ("Italy", "Greece"),
            "Southwestern-Europe": ("Portugal",),
            "Southeastern-Europe": ("Yugoslavia",),
            "Central-Europe": ("Hungary", "Germany", "Poland"),
        },
        "Asia": {
            "Southeastern-Asia": ("Philippines", "Thailand", "Cambodia", "Vietnam", "Laos"),
            "Southern-Asia": ("India",),
            "Eastern-Asia": ("Japan", "China", "Hong", "Taiwan", "South"),
            "Middle-East": ("Iran",),
        },
    },
}


def _tree(name: str, below: Branch | tuple[str, ...]) -> dict[str, Any]:
    parts = below.items() if isinstance(below, Mapping) else [(leaf, ()) for leaf in below]
    children = [_tree(part, leaves) for part, leaves in parts]
    return {"name": name, "children": children} if children else {"name": name}


ADULT_TAXONOMIES: Mapping[str, dict[str, Any]] = {column: _tree("*", below) for column, below in _BRANCHES.items()}


def complete_adult(folder: Path) -> pl.DataFrame:
    """The records without a missing value: 30,162 of adult.data, then 15,060 of adult.test."""
    require(folder, ADULT, what="Adult")
    # The test file begins with a comment, its classes end with a full stop, and both files end with an empty line.
    lines = [line for source in ADULT for line in (folder / source.path).read_text(encoding="utf-8").splitlines()]
    records = [[text.strip() for text in line.rstrip(".").split(",")] for line in lines if line.count(",")]
    frame = pl.DataFrame(records, schema=ADULT_COLUMNS, orient="row").filter(~pl.any_horizontal(pl.all() == "?"))
    return frame.with_columns(pl.col(*_NUMBERS).cast(pl.Int32))
