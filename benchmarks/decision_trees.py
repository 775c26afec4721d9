# SPDX-License-Identifier: Apache-2.0
"""What a k-anonymous decision tree costs against one of scikit-learn with the same least leaf, interleaved.

.venv/bin/python benchmarks/decision_trees.py                      # this part alone, printed
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
from sklearn.tree import DecisionTreeClassifier

from anonfit import KAnonymousTreeClassifier
from anonfit_papers.datasets_adult import ADULT_TAXONOMIES

sys.path.insert(0, str(Path(__file__).resolve().parent))
from tables import ADULT, base_table, blow_up

__all__ = ["decision_tree_section"]

ROUNDS = 5
KS = (10, 50, 250, 1000)
PREDICTORS = tuple(ADULT[:-1])
PRIVATE = ("capital-gain", "occupation")


def _ours(frame: pl.DataFrame, k: int, variant: str, private: tuple[str, ...] = ()) -> Callable[[], object]:
    """A fit from the frame: coding, growing, pruning, cuts, and the spans found anew."""
    names = [name for name in PREDICTORS if variant == "c45" or name in ADULT_TAXONOMIES]
    classifier = KAnonymousTreeClassifier(k, private=private, variant=variant, taxonomies=_taxonomies(names))
    return lambda: classifier.fit(frame.select(names), frame["class"])


def _taxonomies(names: list[str]) -> dict[str, object]:
    return {name: tree for name, tree in ADULT_TAXONOMIES.items() if name in names}


def _theirs(frame: pl.DataFrame, k: int) -> Callable[[], object]:
    """A fit from numbers: texts were coded before."""
    features = frame.select(pl.col(pl.String).rank("dense"), pl.exclude(pl.String)).drop("class")
    numbers = features.to_numpy().astype(np.float64)
    labels = frame["class"].to_numpy()
    return lambda: DecisionTreeClassifier(criterion="entropy", min_samples_leaf=k, random_state=0).fit(numbers, labels)


def _medians(works: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(rounds + 1):
        for name, work in works.items():
            start = time.perf_counter()
            work()
            if turn:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(found) for name, found in times.items()}


def decision_tree_section(largest: int = 1_000_000) -> list[str]:
    """Measure, and give the lines of the report; none where Adult is not at hand."""
    base, rows, _ = base_table()
    if "class" not in rows.columns:
        return []
    lines = [f"## k-anonymous decision trees, {base}, {len(rows):,} rows, from frame to audited tree", ""]
    lines += [
        "| k | C4.5, 14 columns | scikit-learn's tree, leaves of k | ratio | ID3, 8 columns | C4.5, 2 private |",
        "|---|---|---|---|---|---|",
    ]
    for k in KS:
        found = _medians(
            {
                "c45": _ours(rows, k, "c45"),
                "tree": _theirs(rows, k),
                "id3": _ours(rows, k, "id3"),
                "private": _ours(rows, k, "c45", PRIVATE),
            },
            ROUNDS,
        )
        print(k, found, flush=True)
        lines.append(
            f"| {k} | {found['c45']:.3f} s | {found['tree']:.3f} s | {found['c45'] / found['tree']:.2f}× | "
            f"{found['id3']:.3f} s | {found['private']:.3f} s |"
        )
    lines += [
        "",
        "scikit-learn's tree is given numbers; ours codes and checks a table of texts and numbers.",
        "",
    ]
    if largest >= 1_000_000:
        many = blow_up(rows, PREDICTORS, 1_000_000)
        found = _medians({"c45": _ours(many, 10, "c45"), "tree": _theirs(many, 10)}, 1)
        print(found, flush=True)
        lines += [
            f"1,000,000 rows, 14 columns, k = 10, the class the only private column: {found['c45']:.1f} s; "
            f"scikit-learn's tree {found['tree']:.1f} s.",
            "",
        ]
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=1_000_000, help="leave out larger tables")
    print("\n".join(decision_tree_section(parser.parse_args().largest)))


if __name__ == "__main__":
    main()
