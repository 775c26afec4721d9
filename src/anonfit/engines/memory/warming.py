# SPDX-License-Identifier: Apache-2.0
"""Having the kernels ready before they are needed: compiled once with a word about it, later loaded while the table
is read.
"""

from __future__ import annotations

from contextlib import suppress
from threading import Thread

import numpy as np

from anonfit.compiling import cache_folder
from anonfit.progress import Stage
from anonfit.tables.coded import CodedColumn, CodedTable, SplitMode
from anonfit.tables.taxonomy import Taxonomy

__all__ = ["is_compiled", "prepare", "warm_up"]


def is_compiled(*, models: bool = False) -> bool:
    """Whether the kernels are in the cache; those that hold groups against models are compiled apart."""
    folder = cache_folder("engines")
    return folder is not None and (folder / _mark(models)).exists()


def _mark(models: bool) -> str:
    return "compiled-with-models" if models else "compiled"


def warm_up(*, models: bool = False) -> None:
    """Use every kernel once, on a table of four rows."""
    from anonfit.engines.memory.engine import Guarded, grow
    from anonfit.engines.memory.ordering import order_rows
    from anonfit.engines.memory.routing import make_routes, route_packed
    from anonfit.privacy.l_diversity import DistinctL
    from anonfit.privacy.sensitive import SensitiveColumn

    taxonomy = Taxonomy.flat(["a", "b"])
    columns = (
        CodedColumn("ordered", 2, SplitMode.ORDERED, False, np.arange(2.0)),
        CodedColumn("nominal", 2, SplitMode.MULTIWAY, False, np.zeros(2), taxonomy),
    )
    codes = np.array([0, 0, 1, 1], np.uint8)
    table = CodedTable(columns, (codes, codes), 4)
    guarded = []
    if models:
        sensitive = SensitiveColumn("sensitive", 2, False, np.array([2, 2]))
        guarded = [Guarded(sensitive, codes.astype(np.uint32), (DistinctL(sensitive, 1),))]
    grow(table, 2, guarded=guarded, threads=1)  # one thread grows a subtree, several split a node together
    growth = grow(table, 2, guarded=guarded, threads=2, subtree=1)
    cells = [np.arange(2, dtype=np.int32)] * 2
    nodes = route_packed(growth.rows, growth.columns, make_routes(growth.tree, cells, [2, 2]))
    order_rows(nodes, growth.numbers.copy(), len(growth.tree.column), np.zeros((1, 4), np.uint64))
    folder = cache_folder("engines")
    if folder is not None:
        with suppress(OSError):
            (folder / _mark(models)).touch()


def prepare(stage: Stage, *, models: bool = False) -> None:
    """Compile the kernels now, if that was never done, or load them in the background."""
    if is_compiled(models=models):
        Thread(target=_try_to_warm_up, args=(models,), name="anonfit-warm-up").start()
        return
    stage("Compiling (once on this machine, about 20 seconds)")
    warm_up(models=models)


def _try_to_warm_up(models: bool) -> None:
    """The run itself meets whatever fails here, unless it has ended already."""
    with suppress(Exception):
        warm_up(models=models)
