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

from anonfit.runtime.compiling import cache_folder
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
    stage(f"Compiling (once on this machine, {'some' if refining else 'about 20'} seconds)")
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
    if thread_count(None) > 1 and cache_folder("engines") is not None:
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
