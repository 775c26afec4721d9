# SPDX-License-Identifier: Apache-2.0
"""What a user would run instead: ai-privacy-toolkit's anonymizer on the same table, both from a frame to a table.

pip install '.[toolkit]', else this section says that it was not measured.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl

from anonfit.errors import MissingPackage

__all__ = ["HEADING", "instead_section", "measure_instead"]

HEADING = "## What a user would run instead: ai-privacy-toolkit"
ROUNDS = 5


def _toolkit(frame: pl.DataFrame, names: Sequence[str], target: str, k: int) -> Callable[[], object]:
    """Its anonymizer, given one-hot columns and, as what a guide predicts, the classes themselves: what fitting a guide
    takes is left out.
    """
    from sklearn.preprocessing import OneHotEncoder

    from anonfit.evaluation.toolkit import anonymize_class

    anonymize, dataset = anonymize_class()
    nominal = [name for name in names if frame[name].dtype == pl.String]
    ordered = [name for name in names if name not in nominal]
    classes = np.unique(frame[target].to_numpy(), return_inverse=True)[1]

    def work() -> object:
        encoder = OneHotEncoder(sparse_output=False)
        one_hot = encoder.fit_transform(frame.select(nominal).to_numpy())
        features = np.concatenate([one_hot, frame.select(ordered).to_numpy().astype(np.float64)], axis=1)
        ends = np.cumsum([0, *(len(values) for values in encoder.categories_)]).tolist()
        slices = [list(range(first, last)) for first, last in pairwise(ends)]
        made = anonymize(k, list(range(features.shape[1])), quasi_identifer_slices=slices)
        return made.anonymize(dataset(features, classes))

    return work


def _ours(frame: pl.DataFrame, names: Sequence[str], target: str, k: int) -> tuple[float, float]:
    """Seconds of InfoGain from frame to table, and how many of them the audit took."""
    import anonfit
    from anonfit import api

    audits: list[float] = []
    audit = api.audit_draft

    def timed(*arguments: Any) -> Any:
        start = time.perf_counter()
        found = audit(*arguments)
        audits.append(time.perf_counter() - start)
        return found

    with patch.object(api, "audit_draft", timed):
        start = time.perf_counter()
        asked = {"quasi_identifiers": names, "targets": [target], "k": k, "criterion": "infogain", "denoise": False}
        anonfit.anonymize(frame.select(*names, target), **asked)
        return time.perf_counter() - start, sum(audits)


def measure_instead(
    frames: Mapping[int, pl.DataFrame], names: Sequence[str], target: str, k: int
) -> dict[int, dict[str, float]] | None:
    """Median seconds by rows, everything interleaved; None, loudly, if the toolkit is not installed."""
    try:
        from anonfit.evaluation.toolkit import anonymize_class

        anonymize_class()
    except (ImportError, MissingPackage) as missing:
        print(f"NOT MEASURED: ai-privacy-toolkit is not installed ({missing})", flush=True)
        return None
    found = {}
    for rows, frame in frames.items():
        other = _toolkit(frame, names, target, k)
        times: dict[str, list[float]] = {"toolkit": [], "with audit": [], "without audit": []}
        for turn in range(ROUNDS + 1):
            start = time.perf_counter()
            other()
            toolkit = time.perf_counter() - start
            whole, audit = _ours(frame, names, target, k)
            if turn:
                times["toolkit"].append(toolkit)
                times["with audit"].append(whole)
                times["without audit"].append(whole - audit)
        found[rows] = {way: statistics.median(own) for way, own in times.items()}
        print(rows, found[rows], flush=True)
    return found


def instead_section(found: dict[int, dict[str, float]] | None) -> list[str]:
    """The lines of the report."""
    if found is None:
        return [
            HEADING,
            "",
            "Not measured: ai-privacy-toolkit is not installed (`pip install '.[toolkit]'`).",
            "",
        ]
    lines = [
        HEADING,
        "",
        "| rows | ai-privacy-toolkit | anonfit, InfoGain | ratio | with its audit | ratio |",
        "|---|---|---|---|---|---|",
    ]
    for rows, times in found.items():
        other, without, whole = times["toolkit"], times["without audit"], times["with audit"]
        lines.append(
            f"| {rows:,} | {other:.2f} s | {without:.3f} s | {other / without:.0f}× | {whole:.3f} s | "
            f"{other / whole:.0f}× |"
        )
    return [
        *lines,
        "",
        "Both from a frame in memory to a table, for the same quasi-identifiers, target and k. The toolkit is given "
        "the classes as predictions: fitting its guide is left out.",
        "",
    ]
