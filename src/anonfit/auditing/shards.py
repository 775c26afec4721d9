# SPDX-License-Identifier: Apache-2.0
"""More hashes than memory should hold, in files without a name, parted by their first bits: equal ones are in one file,
so that each file can be looked at alone."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterator
from contextlib import ExitStack

import numpy as np

from anonfit.auditing.numbering import Hashes
from anonfit.errors import DataError

__all__ = ["Shards", "differing", "distinct_hashes"]

_BITS = 4


class Shards:
    """Hashes in files, which are gone with this object; each may have other numbers beside it."""

    def __init__(self, width: int = 1) -> None:
        """Of each hash, `width` numbers are kept, itself included."""
        self.width = width
        stack = ExitStack()
        self.files = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(1 << _BITS)]  # noqa: SIM115 - closed below
        weakref.finalize(self, stack.close)

    def add(self, hashes: Hashes, *beside: Hashes) -> None:
        """Some more hashes, and the numbers beside them."""
        place = (hashes >> np.uint64(64 - _BITS)).astype(np.uint8)
        ordered = np.stack([hashes, *beside], axis=1)[np.argsort(place, kind="stable")]
        ends = np.cumsum(np.bincount(place, minlength=1 << _BITS))
        try:
            for file, begin, end in zip(self.files, np.append(0, ends[:-1]), ends, strict=True):
                file.write(ordered[begin:end].tobytes())
        except OSError as error:
            raise DataError(
                f"The audit could not write to the folder for temporary files ({error.strerror}): is the disk full?"
            ) from None

    def each(self) -> Iterator[tuple[Hashes, ...]]:
        """The hashes of one file after the other, and the numbers beside them."""
        for file in self.files:
            file.seek(0)
            yield tuple(np.frombuffer(file.read(), np.uint64).reshape(-1, self.width).T)


def distinct_hashes(shards: Shards) -> int:
    """How many hashes are different."""
    return sum(len(np.unique(hashes)) for (hashes,) in shards.each())


def differing(one: Shards, other: Shards) -> tuple[int, int]:
    """How many members of each multiset the other has not."""
    lacking = np.zeros(2, np.int64)
    for pair in zip(one.each(), other.each(), strict=True):
        (keys, numbers), (other_keys, other_numbers) = (np.unique(hashes, return_counts=True) for (hashes,) in pair)
        _, mine, theirs = np.intersect1d(keys, other_keys, assume_unique=True, return_indices=True)
        common = int(np.minimum(numbers[mine], other_numbers[theirs]).sum())
        lacking += int(numbers.sum()) - common, int(other_numbers.sum()) - common
    return int(lacking[0]), int(lacking[1])
