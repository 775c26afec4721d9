# SPDX-License-Identifier: Apache-2.0
"""What an experiment is: a plan of parts that can be measured one by one, and a judgement of what they gave."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import polars as pl

from anonfit_papers.datasets import Source

if TYPE_CHECKING:
    from anonfit_papers.reproduction.figures import Figure

Choice = TypeVar("Choice")
Measured: TypeAlias = dict[str, Any]
"""What a part gave: texts, numbers, and lists and mappings of them."""


OWN = "own"
"""In place of the number of a claim: no paper claims it, the question is ours."""


class Verdict(StrEnum):
    """What came of a claim."""

    HOLDS = "holds"
    WEAKLY = "holds, but weakly"
    WITHIN_BAND = "holds within the band"
    FAILS = "does not hold"


@dataclass(frozen=True, slots=True)
class Settings:
    """How much is measured, and from which files."""

    quick: bool
    folder: Path | None
    """The data folder; None if there is none."""

    def choose(self, quick: Choice, full: Choice) -> Choice:
        """What a quick run takes, or what a full one does."""
        return quick if self.quick else full

    @property
    def data(self) -> Path:
        """The data folder of an experiment that needs files, which was looked at before."""
        assert self.folder is not None
        return self.folder


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of an experiment that is measured at once and kept: the same key always gives the same."""

    key: Mapping[str, Any]
    seconds: float
    """About how long it takes on one core of a usual machine."""
    measure: Callable[[], Measured] = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was claimed: whether it holds as it was said, whether it does within the band, what was found."""

    claim: str
    holds: bool
    within_band: bool
    found: str
    weak: bool = False
    """Whether chance alone would part the numbers as far: then it holds in its direction only."""


@dataclass(frozen=True, slots=True)
class Result:
    """What came of an experiment."""

    table: pl.DataFrame
    figure: Figure
    checks: tuple[Check, ...]
    notes: tuple[str, ...] = ()
    """What a reader should know of the numbers."""
    measured: tuple[Measured, ...] = field(default=(), repr=False)
    """What was judged, part by part; it is kept, so that a judge that changes can judge it again."""

    @property
    def verdict(self) -> Verdict:
        """What all checks say together."""
        if all(check.holds for check in self.checks):
            return Verdict.WEAKLY if any(check.weak for check in self.checks) else Verdict.HOLDS
        return Verdict.WITHIN_BAND if all(check.within_band for check in self.checks) else Verdict.FAILS

    @property
    def why(self) -> str:
        """What kept it from holding as it was said; empty if nothing did."""
        worst = [check for check in self.checks if not check.within_band]
        missed = worst or [check for check in self.checks if not check.holds]
        missed = missed or [check for check in self.checks if check.weak]
        return "; ".join(f"{check.claim}: {check.found}" for check in missed)


@dataclass(frozen=True, slots=True)
class Experiment:
    """One row of the reproduction: its claim, and how it is measured and judged."""

    name: str
    title: str
    paper: str
    """Where the paper shows it."""
    claims: tuple[str, ...]
    """The numbers of the claims it tests; OWN where no paper makes one."""
    claim: str
    band: str
    """What is accepted."""
    reading: str
    """Which reading of the paper it tests, where the paper leaves one open or has other data."""
    shares: str
    """The share of each class that is predicted, or that none is."""
    learners: str
    """Who learns, with which settings, or that nobody does."""
    plan: Callable[[Settings], Iterable[Part]] = field(repr=False)
    judge: Callable[[Settings, Sequence[Measured]], Result] = field(repr=False)
    sources: Callable[[Path], Sequence[Source]] | None = field(default=None, repr=False)
    """The files it needs, for a data folder; None: it needs none."""
    setting: str = ""
    """How it is set up here: rows, k, trials, and how much less a quick run does."""

    @property
    def needs_weka(self) -> bool:
        """Whether a learner of Weka is among those that it names."""
        return "Weka" in self.learners
