# SPDX-License-Identifier: Apache-2.0
"""How a release's processor time grows with each thing that a table or a spec may have more of, from a frame to an
audited folder. Processor time, since that is the same on a busy machine. Ends with status 1 if some slope is too steep.

.venv/bin/python benchmarks/slopes.py                     # prints the table and puts it into RESULTS.md
.venv/bin/python benchmarks/slopes.py selections values   # some axes, printed only
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from itertools import combinations, pairwise
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent))
from results import RESULTS, put_section

STEEPEST = 1.15
"""Time may grow with this power of what there is more of."""
ROUNDS = 3
ROWS = 100_000
K = 20
SIZES = (90, 200, 50, 1000, 12, 400)
HEADING = "## Slopes"

Request = tuple[pl.DataFrame, dict[str, Any]]


def table(rows: int = ROWS, columns: int = 6, targets: int = 1) -> Request:
    """Quasi-identifiers that are numbers, and targets that some of them tell something about."""
    rng = np.random.default_rng(0)
    names = [f"q{index}" for index in range(columns)]
    sizes = [SIZES[index % len(SIZES)] for index in range(columns)]
    frame = pl.DataFrame({name: rng.integers(0, size, rows) for name, size in zip(names, sizes, strict=True)})
    chance = (frame["q0"].to_numpy() / SIZES[0] + frame["q1"].to_numpy() / SIZES[1]) / 2
    asked = {f"y{index}": rng.random(rows) < chance for index in range(targets)}
    return frame.with_columns(**asked), {"quasi_identifiers": names, "k": K, "targets": list(asked)}


def with_k(k: int) -> Request:
    frame, asked = table()
    return frame, asked | {"k": k}


def with_numbers(values: int) -> Request:
    frame, asked = table()
    return frame.with_columns(q0=np.random.default_rng(1).integers(0, values, ROWS)), asked


def _names(values: int, rows: int) -> tuple[list[str], pl.Series]:
    """Names, few of them frequent, and one of them for each row."""
    weights = 1 / np.arange(1, values + 1) ** 0.7
    names = [f"v{value:06d}" for value in range(values)]
    chosen = np.random.default_rng(1).choice(values, rows, p=weights / weights.sum())
    return names, pl.Series(names).gather(chosen)


def with_names(values: int, rows: int = ROWS) -> Request:
    """A nominal quasi-identifier without a taxonomy."""
    frame, asked = table(rows, columns=3)
    names = [*asked["quasi_identifiers"], "name"]
    return frame.with_columns(name=_names(values, rows)[1]), asked | {"quasi_identifiers": names}


def with_leaves(leaves: int) -> Request:
    """The same with a taxonomy, whose nodes have about 20 children each."""
    frame, asked = with_names(leaves)
    names, _ = _names(leaves, 1)
    level = [{"name": name} for name in names]
    while len(level) > 20:
        groups = [level[start : start + 20] for start in range(0, len(level), 20)]
        level = [{"name": f"{group[0]['name']}+{len(group)}", "children": group} for group in groups]
    return frame, asked | {"taxonomies": {"name": {"name": "*", "children": level}}}


def with_sensitive(values: int) -> Request:
    frame, asked = table()
    demand = {"secret": {"model": "entropy-l", "l": 3.0}}
    return frame.with_columns(secret=_names(values, ROWS)[1]), asked | {"sensitive": demand}


def conditions(count: int) -> list[str]:
    """Conditions on two columns each."""
    rng = np.random.default_rng(1)
    found = []
    for _ in range(count):
        first, second = rng.choice(len(SIZES), 2, replace=False).tolist()
        low, high = rng.integers(0, [SIZES[first], SIZES[second]]).tolist()
        found.append(f"q{first} >= {low} and q{second} < {high}")
    return found


def with_selections(count: int) -> Request:
    frame, asked = table()
    return frame, asked | {"selections": [{"where": where} for where in conditions(count)]}


def refined(values: int) -> Request:
    """Top-down refinement with many values to disclose or suppress."""
    frame, asked = with_names(values)
    return frame, asked | {"algorithm": "tdr"}


def with_sets(count: int) -> Request:
    """Several quasi-identifiers of two columns each, at least ten, which together have all of 20 columns."""
    frame, asked = table(columns=20)
    names = asked["quasi_identifiers"]
    pairs = [*zip(names[::2], names[1::2], strict=True), *combinations(names, 2)]
    sets = [{"columns": list(pair), "k": K} for pair in list(dict.fromkeys(pairs))[:count]]
    return frame, asked | {"algorithm": "tdr", "requirements": sets}


def with_log(lines: int) -> Request:
    """A log of queries, from which selections and weights are learned."""
    frame, asked = table()
    with tempfile.NamedTemporaryFile("w", suffix=".sql", delete=False) as file:
        file.write("\n".join(f"SELECT * FROM people WHERE {where};" for where in conditions(lines)))
    return frame, asked | {"query_log": {"path": file.name}}


AXES: dict[str, tuple[Callable[[int], Request], tuple[int, ...]]] = {
    "rows": (table, (100_000, 300_000, 1_000_000)),
    "columns": (lambda count: table(columns=count), (10, 50, 300)),
    "k": (with_k, (2, 20, 200)),
    "numeric values": (with_numbers, (100, 3_000, 100_000)),
    "names without a taxonomy": (with_names, (100, 1_000, 5_000)),
    "rows, 1,000 names without a taxonomy": (lambda rows: with_names(1000, rows), (100_000, 300_000, 1_000_000)),
    "leaves of a taxonomy": (with_leaves, (500, 5_000, 50_000)),
    "targets": (lambda count: table(targets=count), (1, 3, 10)),
    "sensitive values": (with_sensitive, (10, 300, 10_000)),
    "selections": (with_selections, (10, 100, 1_000)),
    "top-down, names": (refined, (100, 1_000, 5_000)),
    "top-down, sets of columns": (with_sets, (10, 40, 160)),
    "log lines": (with_log, (200, 2_000, 20_000)),
}


def seconds(request: Request, folder: Path) -> float:
    """The processor time from a frame to an audited folder."""
    import anonfit

    frame, asked = request
    start = time.process_time()
    anonfit.anonymize(frame, **asked).save(folder / "release", replace=True)
    return time.process_time() - start


def measure(names: Iterable[str]) -> dict[str, list[tuple[int, float]]]:
    """For each axis the sizes and the median of some rounds."""
    found = {}
    with tempfile.TemporaryDirectory() as place:
        for name in names:
            make, sizes = AXES[name]
            requests = [(size, make(size)) for size in sizes]
            seconds(requests[0][1], Path(place))  # loads what is used
            rounds = [[seconds(request, Path(place)) for _, request in requests] for _ in range(ROUNDS)]
            found[name] = list(zip(sizes, np.median(rounds, axis=0).tolist(), strict=True))
            print(name, found[name], f"slope {slope(found[name]):.2f}", flush=True)
    return found


def slope(points: list[tuple[int, float]]) -> float:
    """The power with which time grows between one size and the next, where that is steepest."""
    return max(log(later / before) / log(larger / size) for (size, before), (larger, later) in pairwise(points))


def section(found: dict[str, list[tuple[int, float]]]) -> list[str]:
    lines = [HEADING, "", "| more | of so many | processor seconds | slope |", "|---|---|---|---|"]
    for name, points in found.items():
        sizes = " / ".join(f"{size:,}" for size, _ in points)
        times = " / ".join(f"{spent:.2f}" for _, spent in points)
        lines.append(f"| {name} | {sizes} | {times} | {slope(points):.2f} |")
    return [
        *lines,
        "",
        f"`python benchmarks/slopes.py`: a frame of {ROWS:,} rows, k = {K}, one target, to an audited folder; between "
        f"one size and the next, time must not grow with a power above {STEEPEST}.",
        "",
    ]


def main() -> None:
    asked = sys.argv[1:]
    found = measure([name for name in AXES if not asked or any(word in name for word in asked)])
    if not asked:
        put_section(RESULTS, section(found))
    steep = [name for name, points in found.items() if slope(points) > STEEPEST]
    if steep:
        sys.exit(f"too steep: {', '.join(steep)}")


if __name__ == "__main__":
    main()
