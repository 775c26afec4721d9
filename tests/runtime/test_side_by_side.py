# SPDX-License-Identifier: Apache-2.0
"""Tasks that are done side by side give their results in the order of their arguments, and their errors to who asked."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from threading import get_ident

import pytest

from anonfit.runtime.process import side_by_side


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_results_stand_in_the_order_of_the_arguments(threads: int) -> None:
    with ThreadPoolExecutor(max(1, threads - 1)) as pool:
        assert side_by_side(pool, threads, pow, range(50), [2] * 50) == [number**2 for number in range(50)]
        assert side_by_side(pool, threads, abs, []) == []


def test_the_thread_that_asks_works_too() -> None:
    def slowly(_: int) -> int:
        time.sleep(0.01)
        return get_ident()

    with ThreadPoolExecutor(1) as pool:
        workers = side_by_side(pool, 2, slowly, range(10))
    assert len(set(workers)) == 2
    assert get_ident() in workers
    assert set(side_by_side(None, 1, slowly, range(3))) == {get_ident()}


@pytest.mark.parametrize("failing", [0, 1, 5])
def test_an_error_of_any_task_is_told(failing: int) -> None:
    def task(number: int) -> None:
        if number == failing:
            raise ValueError(number)

    with ThreadPoolExecutor(2) as pool, pytest.raises(ValueError, match=str(failing)):
        side_by_side(pool, 3, task, range(6))
