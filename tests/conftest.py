# SPDX-License-Identifier: Apache-2.0
"""What all tests share. pytest puts this folder on the path, so any test can say `from strategies import …`.

Hypothesis tries the same examples on every run, so that a run says something about the code and not about luck;
HYPOTHESIS_PROFILE=explore looks for new ones, HYPOTHESIS_TIMES=20 for twenty times as many.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

from spark_sessions import spark_session, why_no_spark

settings.register_profile(
    "repeatable",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("explore", settings.get_profile("repeatable"), derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of Spark run in one process, since there is one session, or say why they are skipped."""
    why = why_no_spark()
    for item in items:
        if item.get_closest_marker("spark") is not None:
            item.add_marker(pytest.mark.xdist_group("spark"))
            if why is not None:
                item.add_marker(pytest.mark.skip(reason=f"the engine spark is not tested: {why}"))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tests of Spark have the session of tests, whichever comes first."""
    if item.get_closest_marker("spark") is not None:
        spark_session()
