# SPDX-License-Identifier: Apache-2.0
"""How much of people's classes a released tree gives away to somebody who knows their public values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anonfit.algorithms.trees.spans import Spans

__all__ = ["CONFIDENCES", "Exposure", "exposure_of"]

CONFIDENCES = (0.75, 0.8, 0.85, 0.9, 0.95, 0.99)


@dataclass(frozen=True, slots=True)
class Exposure:
    """Training persons whose class is told by their span.

    `certain` have a span in which all have one class. `at_least` has, for each confidence, how many have a span in
    which a class has at least that share; `highest` is the highest share of a class in any span.
    """

    persons: int
    certain: int
    at_least: dict[float, int]
    highest: float

    @property
    def certain_share(self) -> float:
        """The share of persons whose class is certain."""
        return self.certain / self.persons if self.persons else 0.0


def exposure_of(spans: Spans, confidences: Sequence[float] = CONFIDENCES) -> Exposure | None:
    """The exposure of a tree with a private class; None where the class is public, and there is nothing to expose.

    Args:
        spans: The spans of the tree.
        confidences: Shares of the likeliest class, for each of which persons are counted.

    Returns:
        The numbers of persons.
    """
    if (spans.classes >= 0).any():
        return None
    sizes, most = spans.sizes, spans.counts.max(axis=1, initial=0)
    shares = most / np.maximum(sizes, 1)

    def persons(chosen: NDArray[np.bool_]) -> int:
        return int(sizes[chosen].sum())

    return Exposure(
        persons=int(sizes.sum()),
        certain=persons(most == sizes),
        at_least={float(one): persons(shares >= one - 1e-9) for one in confidences},
        highest=float(shares.max(initial=0.0)),
    )
