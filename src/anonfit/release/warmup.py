# SPDX-License-Identifier: Apache-2.0
"""Having all kernels ready before they are needed: compiled once with a word about it, later loaded while the table is
read. Compiling takes one core, so where there are two, a second process compiles a part of the kernels into the cache.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager, suppress
from threading import Thread
from typing import TYPE_CHECKING

import numpy as np

from anonfit.runtime import machine_code
from anonfit.runtime.progress import Stage
from anonfit.runtime.threads import thread_count

if TYPE_CHECKING:
    from collections.abc import Iterator

WITH_MODELS, AUDIT_ONLY = "with-models", "audit-only"


def prepare(stage: Stage, *, models: bool = False, refining: bool = False, ahead: bool = True) -> None:
    """Compile the kernels now, if that was never done, or load them in the background if there is something else to do
    meanwhile (`ahead`). `models`: groups will be held against models; `refining`: columns are refined top-down.
    """
    from anonfit.engines.memory import warming

    if is_ready(models=models, refining=refining, ahead=ahead):
        return
    seconds = "some" if refining else "about 20"
    stage(f"Compiling (once on this machine, {seconds} seconds{machine_code.why_not_brought()})")
    if refining:
        with _second_process(AUDIT_ONLY):
            warming.warm_refining(models=models)
        return
    with _second_process(*([WITH_MODELS] if models else [])):
        warming.warm_weighing(models=models)
    # What is left puts both halves together, on one core; the audit has nothing to do with it.
    with _second_process(AUDIT_ONLY):
        warming.warm_up(models=models)


def is_ready(*, models: bool, refining: bool, ahead: bool) -> bool:
    """Whether the kernels are compiled; if so, they are loaded in the background (`ahead`)."""
    from anonfit.engines.memory import warming

    is_compiled = warming.is_compiled(models=models, refining=refining)
    if is_compiled and ahead:
        Thread(target=_try_to_warm_up, args=(models, refining), name="anonfit-warm-up").start()
    return is_compiled


def compile_all() -> None:
    """Compile every kernel for all that it is ever called with: what building a wheel does."""
    from anonfit.algorithms.trees.growing import Attributes, DecisionTreeGrower, Demand
    from anonfit.engines.memory import warming

    _compile_the_rest([AUDIT_ONLY])
    for models in (False, True):
        warming.warm_up(models=models)
        warming.warm_refining(models=models)
    warming.use_refining(sizes=(1 << 8, 1 << 16, 1 << 17), entities=True)
    codes = np.indices((2, 2)).reshape(2, 4).astype(np.int32)
    sizes, breaks, is_first = codes.max(axis=1) + codes[0, 2:], codes[1, :2], codes[1, :2] == 0
    attributes = Attributes(codes, sizes, is_first, is_first, breaks, offsets=codes[0, :2])
    DecisionTreeGrower(attributes, codes[0], class_count=2, demand=Demand()).grow()


def _compile_the_rest(words: list[str]) -> None:
    """What the second process does."""
    if AUDIT_ONLY in words:
        import anonfit.auditing.kernels  # compiled when imported
        import anonfit.auditing.numbering_kernel  # noqa: F401
    else:
        from anonfit.engines.memory import warming

        warming.warm_finding(models=WITH_MODELS in words)


def _try_to_warm_up(models: bool, refining: bool) -> None:
    """The run itself meets whatever fails here, unless it has ended already."""
    from anonfit.engines.memory import warming

    with suppress(Exception):
        (warming.warm_refining if refining else warming.warm_up)(models=models)


@contextmanager
def _second_process(*words: str) -> Iterator[None]:
    """Another process that compiles some kernels, waited for at the end; what it fails to is compiled later here."""
    started = None
    if thread_count(None) > 1 and machine_code.own("engines") is not None:
        with suppress(OSError):
            started = subprocess.Popen(  # noqa: S603  our own module
                [sys.executable, "-m", "anonfit.release.warmup", *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
    try:
        yield
    except BaseException:
        if started is not None:
            started.kill()
        raise
    finally:
        if started is not None:
            started.wait()


if __name__ == "__main__":
    _compile_the_rest(sys.argv)
