# SPDX-License-Identifier: Apache-2.0
"""Runs experiments: what is missing is measured part by part, then each is judged and written."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from anonfit.errors import DataError, RequestError, did_you_mean
from anonfit.evaluation.weka import require_weka
from anonfit.runtime.process import Stage, silent
from anonfit_papers.datasets import require
from anonfit_papers.reproduction.catalogue import EXPERIMENTS
from anonfit_papers.reproduction.figures import require_drawing
from anonfit_papers.reproduction.frame import Experiment, Measured, Part, Result, Settings
from anonfit_papers.reproduction.store import Store

ALL = "all"
PARTS = "parts"
SETTLED = 60.0
"""Seconds of work after which the pace so far counts as much as the estimate."""


@dataclass(slots=True)
class Run:
    """Experiments with their parts, and what was measured of them so far."""

    settings: Settings
    store: Store
    parts: Mapping[str, Sequence[Part]] = field(repr=False)
    experiments: tuple[Experiment, ...]

    @property
    def different(self) -> list[Part]:
        """The parts, each once although several experiments may use it."""
        return list({repr(part.key): part for parts in self.parts.values() for part in parts}.values())

    @property
    def missing(self) -> list[Part]:
        """Those that are not kept yet."""
        return [part for part in self.different if self.store.get(part.key) is None]

    @property
    def seconds(self) -> float:
        """About how long the missing parts take."""
        return sum(part.seconds for part in self.missing)


def chosen(names: Sequence[str]) -> tuple[Experiment, ...]:
    """The experiments of these names; `all` names all.

    Args:
        names: Such as R16; upper and lower case are the same.
    """
    known = {experiment.name: experiment for experiment in EXPERIMENTS}
    if any(name.lower() == ALL for name in names):
        return EXPERIMENTS
    for name in names:
        if name.upper() not in known:
            raise RequestError(f"There is no experiment '{name}': {did_you_mean(name.upper(), [ALL, *known])}")
    return tuple(known[name] for name in dict.fromkeys(name.upper() for name in names))


def plan(experiments: Sequence[Experiment], settings: Settings, out: Path) -> Run:
    """What there is to do. Whatever would stop it later is refused before anything is measured.

    Args:
        experiments: The experiments.
        settings: How much is measured, and from which files.
        out: The folder in which parts are kept; made if it is not there.
    """
    require_drawing()
    make_folder(out / PARTS, "--out")
    if taught := [experiment.name for experiment in experiments if experiment.needs_weka]:
        require_weka(", ".join(taught))
    for experiment in experiments:
        if experiment.sources is None:
            continue
        if settings.folder is None:
            raise DataError(
                f"{experiment.name} needs a data folder, and there is none: give it by --data, or ask for --fetch."
            )
        require(settings.folder, experiment.sources(settings.folder), what=experiment.name)
    parts = {experiment.name: list(experiment.plan(settings)) for experiment in experiments}
    return Run(settings, Store(out / PARTS), parts, tuple(experiments))


def make_folder(folder: Path, option: str) -> None:
    """Make a folder if it is not there; refused by the name of the option that asks for it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RequestError(
            f"{folder} cannot be made a folder ({error.strerror}): give another one by {option}."
        ) from None


def run(planned: Run, stage: Stage = silent) -> Iterator[tuple[Experiment, Result]]:
    """Measure what is missing and judge, one experiment after the other.

    Args:
        planned: What there is to do.
        stage: Told each part as it begins, with the time that is left.

    Yields:
        Each experiment with what came of it.
    """
    clock = _Clock(planned.seconds)
    for experiment in planned.experiments:
        parts = planned.parts[experiment.name]
        gave = []
        for number, part in enumerate(parts, start=1):
            measured = planned.store.get(part.key)
            if measured is None:
                stage(f"{experiment.name}: part {number} of {len(parts)}, {clock.left()} left")
                measured = _measured(planned.store, part, clock)
            gave.append(measured)
        stage(f"{experiment.name}: judging")
        yield experiment, replace(experiment.judge(planned.settings, gave), measured=tuple(gave))


def _measured(store: Store, part: Part, clock: _Clock) -> Measured:
    start = time.monotonic()
    measured = part.measure()
    clock.done(part.seconds, time.monotonic() - start)
    store.put(part.key, measured)
    kept = store.get(part.key)
    assert kept is not None
    return kept


@dataclass(slots=True)
class _Clock:
    """Guesses the time that is left: by the estimate, and by how well it was met so far."""

    expected: float
    finished: float = 0.0
    taken: float = 0.0

    def done(self, expected: float, taken: float) -> None:
        self.finished += expected
        self.taken += taken

    def left(self) -> str:
        # The first parts also compile and start Java: they say little of the pace.
        pace = (self.taken + SETTLED) / (self.finished + SETTLED)
        return in_words(max(self.expected - self.finished, 0.0) * pace)


def in_words(seconds: float) -> str:
    """A time as people say it."""
    if seconds < 90:
        return f"about {max(round(seconds), 1)} s"
    if seconds < 5400:
        return f"about {round(seconds / 60)} min"
    return f"about {seconds / 3600:.1f} h"
