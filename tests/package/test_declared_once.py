# SPDX-License-Identifier: Apache-2.0
"""What the package knows several of is listed where it is declared; whoever needs all of them asks there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import anonfit
from anonfit.criteria.targets import Impurity
from anonfit.engines.contract import ENGINES
from anonfit.engines.memory import impurity
from anonfit.privacy.catalogue import MODELS
from anonfit.tables.sources import FORMATS

ROOT = Path(anonfit.__file__).parent


def listing(names: list[str]) -> list[str]:
    """The modules that write two of some names one after the other, in any kind of quotes."""
    either = "|".join(map(re.escape, names))
    pair = re.compile(rf"[\"'`.]({either})[\"'`][,:]?(?: or)?\s+[\"'`]\.?(?!\1)({either})[\"'`]")
    files = sorted(ROOT.rglob("*.py"))
    return [path.relative_to(ROOT).as_posix() for path in files if pair.search(path.read_text(encoding="utf-8"))]


@pytest.mark.parametrize(
    ("names", "declared"),
    [
        (list(FORMATS), ["tables/sources.py"]),
        (list(ENGINES), ["engines/contract.py"]),
        (list(MODELS), []),
    ],
    ids=["formats", "engines", "models"],
)
def test_lists_follow_from_the_declaration(names: list[str], declared: list[str]) -> None:
    assert listing(names) == declared


def test_kernels_know_every_impurity() -> None:
    assert {impurity.ENTROPY, impurity.GINI, impurity.SURPRISE} == set(Impurity)
