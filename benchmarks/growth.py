# SPDX-License-Identifier: Apache-2.0
"""What a purpose and privacy models cost: growing with targets and with diversity, everything interleaved."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl

from anonfit.algorithms.coding import TableCoding
from anonfit.criteria.objectives import SplitObjective
from anonfit.criteria.targets import ClassTarget, NumberTarget
from anonfit.engines.memory.engine import MemoryEngine, grow
from anonfit.engines.memory.forms import Constraint
from anonfit.privacy.catalogue import make_model
from anonfit.privacy.coding import sensitive_column
from anonfit.runtime.process import thread_count
from anonfit.tables.scales import fixed_point
from anonfit.tables.schema import CodedTable, Column, Role, Schema

__all__ = ["coded_table", "growing_for_purposes", "purpose_section", "sklearn_tree"]

ROUNDS = 5


def coded_table(names: Sequence[str], frame: pl.DataFrame, k: int) -> CodedTable:
    """The quasi-identifiers of a frame, coded."""
    schema = Schema(tuple(Column(name, Role.QUASI_IDENTIFIER) for name in names))
    coding = TableCoding(MemoryEngine(frame), schema)
    domains = coding.code(schema.quasi_identifiers, [k] * len(names))
    return coding.table([domain.coded() for domain in domains])


def sklearn_tree(features: Any, labels: Any, k: int) -> object:
    """One tree of scikit-learn's histogram gradient boosting with the same least leaf."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    tree = HistGradientBoostingClassifier(
        max_iter=1, max_leaf_nodes=None, min_samples_leaf=k, early_stopping=False, max_bins=255
    )
    return tree.fit(features, labels)


def lightgbm_tree(features: Any, labels: Any, k: int, leaves: int, threads: int) -> Callable[[], object] | None:
    """One tree of LightGBM with the same least leaf, and room for as many leaves; binning its columns comes before, and
    is not measured. None, loudly, if it is not installed.
    """
    try:
        import lightgbm
    except ImportError:
        print("NOT MEASURED: lightgbm is not installed (pip install '.[benchmark]')", flush=True)
        return None
    settings = {
        "objective": "binary",
        "num_leaves": leaves,
        "min_data_in_leaf": k,
        "min_sum_hessian_in_leaf": 0.0,
        "max_bin": 255,
        "min_data_in_bin": 1,
        "num_threads": threads,
        "verbosity": -1,
    }
    binned = lightgbm.Dataset(features, label=labels, params=settings).construct()
    return lambda: lightgbm.Booster(settings, binned).update()


def _class_target(name: str, values: Any) -> ClassTarget:
    found, classes = np.unique(values, return_inverse=True)
    return ClassTarget(name, classes.astype(np.int64), len(found))


def _number_target(name: str, values: Any) -> NumberTarget:
    scale = fixed_point(float(values.min()), float(values.max()), persons=len(values))
    return NumberTarget(name, scale.quantize(values.astype(np.float64)), scale)


def _entropy(values: Any, share: float) -> Constraint:
    """Entropy diversity, asked for as a share of what the whole table has, in nats."""
    column, codes = sensitive_column(pl.Series("sensitive", values), np.ones(len(values), np.int64))
    whole = float(make_model(column, "entropy-l", {"l": 2.0}).figure(column.whole))
    return Constraint(column, codes, (make_model(column, "entropy-l", {"l": whole**share}),))


def growing_for_purposes(
    names: Sequence[str], wide: Sequence[str], frame: pl.DataFrame, label: str, number: str, k: int
) -> dict[str, float]:
    """Median seconds of each way to grow."""
    table = coded_table(names, frame, k)
    many = coded_table([*names, *wide], frame, k)
    rng = np.random.default_rng(0)
    target = _class_target(label, frame[label].to_numpy())
    second = ClassTarget("second", (rng.random(len(frame)) < 0.3 + 0.2 * target.classes).astype(np.int64), 2)
    third = ClassTarget("third", (target.classes + rng.integers(0, 4, len(frame))) % 6, 6)
    few, some = rng.zipf(1.3, len(frame)) % 20, rng.zipf(1.3, len(frame)) % 500
    features = [np.stack(one.codes, axis=1).astype(np.float64) for one in (table, many)]
    leaves = [grow(one, k, SplitObjective(targets=(target,))).tree.regions for one in (table, many)]
    ways: dict[str, Callable[[], object]] = {
        "median": lambda: grow(table, k),
        "infogain": lambda: grow(table, k, SplitObjective(targets=(target,))),
        "infogain, one thread": lambda: grow(table, k, SplitObjective(targets=(target,)), threads=1),
        "tree": lambda: sklearn_tree(features[0], target.classes, k),
        "lsd": lambda: grow(table, k, SplitObjective(targets=(_numbers,))),
        "three": lambda: grow(table, k, SplitObjective(targets=(target, second, third))),
        "wide": lambda: grow(many, k, SplitObjective(targets=(target,))),
        "wide tree": lambda: sklearn_tree(features[1], target.classes, k),
    }
    for word, own, room in zip(("lightgbm", "wide lightgbm"), features, leaves, strict=True):
        if (tree := lightgbm_tree(own, target.classes, k, room, thread_count(None))) is not None:
            ways[word] = tree
    _numbers = _number_target(number, frame[number].to_numpy())
    for name, values in (("20", few), ("500", some)):
        for word, share in (("loose", 0.5), ("tight", 0.85)):
            guarded = [_entropy(values, share)]
            ways[f"median, {word} {name}"] = _bound(table, k, SplitObjective(), guarded)
            ways[f"infogain, {word} {name}"] = _bound(table, k, SplitObjective(targets=(target,)), guarded)
    times: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(ROUNDS + 1):
        for name, work in ways.items():
            start = time.perf_counter()
            work()
            if turn:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(found) for name, found in times.items()}


def _bound(table: CodedTable, k: int, purpose: SplitObjective, guarded: list[Constraint]) -> Callable[[], object]:
    return lambda: grow(table, k, purpose, constraints=guarded)


def _against(times: dict[str, float], own: str, tree: str, lightgbm: str) -> str:
    """How much longer others take for one tree of as many leaves."""
    told = f"HistGradientBoosting, one tree: {times[tree] / times[own]:.1f}× longer; LightGBM: "
    return told + (f"{times[lightgbm] / times[own]:.1f}×" if lightgbm in times else "not measured (not installed)")


def purpose_section(times: dict[str, float], rows: int) -> list[str]:
    """The lines of the report."""
    gain, median = times["infogain"], times["median"]
    lines = [
        f"## Growing for a purpose, {rows:,} rows already coded",
        "",
        "| what | seconds | against |",
        "|---|---|---|",
        f"| Median, k alone | {median:.3f} s | |",
        f"| InfoGain, one target | {gain:.3f} s | {_against(times, 'infogain', 'tree', 'lightgbm')} |",
        f"| InfoGain, one target, on one thread | {times['infogain, one thread']:.3f} s | "
        f"all threads gain {times['infogain, one thread'] / gain:.2f}× |",
        f"| InfoGain, 14 columns, one of 20,000 values | {times['wide']:.3f} s | "
        f"{_against(times, 'wide', 'wide tree', 'wide lightgbm')} |",
        f"| LSD, one numeric target | {times['lsd']:.3f} s | {times['lsd'] / gain:.2f}× InfoGain |",
        f"| InfoGain, three targets | {times['three']:.3f} s | {times['three'] / gain:.2f}× one target |",
    ]
    for name in ("20", "500"):
        for word in ("loose", "tight"):
            for way, base in (("median", median), ("infogain", gain)):
                took = times[f"{way}, {word} {name}"]
                told = "Median" if way == "median" else "InfoGain"
                lines.append(
                    f"| {told}, {word} entropy diversity over {name} values | {took:.3f} s | "
                    f"{took / base:.2f}× k alone |"
                )
    lines += [
        "",
        "A loose demand is half of the table's own entropy, and hardly any group fails it; a tight one is 85 % of it, "
        "and decides where splitting ends. The trees of others have leaves of at least k rows, LightGBM's no more of "
        "them than InfoGain has regions; both put the 20,000 values into 255 bins, LightGBM before time is taken.",
        "",
    ]
    return lines
