# SPDX-License-Identifier: Apache-2.0
"""The numbers in a page of Parquet are read as by a slow, obvious reader, and runs that are none are refused."""

from __future__ import annotations

import numpy as np
import pytest

from anonfit.auditing.kernels import numbers_end


def written(rng: np.random.Generator, numbers: list[int], width: int) -> bytes:
    """Numbers in runs of both kinds, of random lengths."""
    content, place = b"", 0
    while place < len(numbers):
        repeated = 1
        while place + repeated < len(numbers) and numbers[place + repeated] == numbers[place]:
            repeated += 1
        if rng.random() < 0.5:
            held = int(rng.integers(1, repeated + 1))
            content += whole(2 * held) + numbers[place].to_bytes((width + 7) // 8, "little")
        else:
            held = 8 * int(rng.integers(1, 4))
            bits = sum(number << width * i for i, number in enumerate(numbers[place : place + held]))
            content += whole(held // 4 + 1) + bits.to_bytes(held // 8 * width, "little")
            if place + held > len(numbers) + 7:  # more than what fills up eight
                return written(rng, numbers, width)
        place += held
    return content


def whole(number: int) -> bytes:
    digits = b""
    while number > 127:
        digits, number = digits + bytes([number & 127 | 128]), number >> 7
    return digits + bytes([number])


def plain_end(data: bytes, place: int, width: int, count: int, entries: int) -> tuple[int, list[int]]:
    """Where numbers end and the last place of each (-1: none), read bit by bit; (-1, []) where they are none."""
    last, done = [-1] * entries, 0
    while done < count:
        head = shift = 0
        while True:
            if place == len(data) or shift > 28:
                return -1, []
            byte, place = data[place], place + 1
            head, shift = head | (byte & 127) << shift, shift + 7
            if byte < 128:
                break
        held, packed = (head >> 1, False) if head % 2 == 0 else ((head >> 1) * 8, True)
        size = held * width // 8 if packed else (width + 7) // 8
        too_many = done + held - count > (7 if packed else 0)
        if held == 0 or too_many or place + size > len(data) or (shift > 7 and byte == 0):
            return -1, []
        bits = int.from_bytes(data[place : place + size], "little")
        numbers = [bits >> width * i & ((1 << width) - 1) for i in range(held)] if packed else [bits] * held
        for number in numbers[: count - done]:
            if number >= entries or number >> width:
                return -1, []
            last[number], done = done, done + 1
        place += size
    return place, last


@pytest.mark.parametrize("width", [0, 1, 2, 3, 7, 8, 9, 15, 17, 24, 31, 32])
def test_numbers_in_runs_are_read_as_by_a_slow_reader(width: int) -> None:
    rng = np.random.default_rng(width)
    read = 0
    for _ in range(150):
        entries = int(rng.integers(1, min(1 << width, 300) + 1))
        numbers = np.repeat(rng.integers(0, entries, 20), rng.integers(0, 12, 20)).tolist()
        content = bytearray(written(rng, numbers, width) + rng.bytes(int(rng.integers(0, 3))))
        if content and rng.random() < 0.5:
            content[int(rng.integers(len(content)))] ^= 1 << int(rng.integers(8))
        count = max(0, len(numbers) - int(rng.random() < 0.2))
        last = np.full(entries, -1)
        end = numbers_end(np.frombuffer(bytes(content), np.uint8), 0, len(content), width, count, last)
        expected, places = plain_end(bytes(content), 0, width, count, entries)
        assert end == expected
        if end >= 0:
            assert last.tolist() == places
            read += 1
    assert read > 50


def test_nothing_is_read_behind_the_end() -> None:
    data, last = np.frombuffer(b"\x02\x01", np.uint8), np.empty(2, np.int64)
    assert numbers_end(data, 0, 2, 1, 1, last) == 2
    assert numbers_end(data, 0, 1, 1, 1, last) == -1
    assert numbers_end(data, 0, 3, 1, 1, last) == -1
    assert numbers_end(data, 5, 2, 1, 1, last) == -1
    assert numbers_end(data, 0, 2, 33, 1, last) == -1
