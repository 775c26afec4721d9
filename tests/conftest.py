# SPDX-License-Identifier: Apache-2.0
"""What all tests share. pytest puts this folder on the path, so any test can say `from strategies import …`.

Hypothesis tries the same examples on every run, so that a run says something about the code and not about luck;
HYPOTHESIS_PROFILE=explore looks for new ones, HYPOTHESIS_TIMES=20 for twenty times as many as a test says (a third by itself).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

import mariadb_server
import postgresql_server
from spark_sessions import spark_session, why_no_spark

settings.register_profile(
    "repeatable",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("explore", settings.get_profile("repeatable"), derandomize=False)
SERVERS = {"postgresql_running", "mariadb_address"}
"""Fixtures that start a server."""
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of the cases of a test marked sampled(n) every n-th is run on every change, and the others are slow. Tests of
    Spark run in one process, since there is one session, or say why they are skipped; those of databases, too, so that
    servers are started once.
    """
    why, seen = why_no_spark(), Counter[str]()
    for item in items:
        sampled = item.get_closest_marker("sampled")
        if sampled is not None:
            name = item.nodeid.partition("[")[0]
            if seen[name] % sampled.args[0]:
                item.add_marker(pytest.mark.slow)
            seen[name] += 1
        if SERVERS & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.xdist_group("servers"))
        if item.get_closest_marker("spark") is not None:
            item.add_marker(pytest.mark.xdist_group("spark"))
            if why is not None:
                item.add_marker(pytest.mark.skip(reason=f"the engine spark is not tested: {why}"))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tests of Spark have the session of tests, whichever comes first."""
    if item.get_closest_marker("spark") is not None:
        spark_session()


@pytest.fixture(scope="session")
def postgresql_running() -> Iterator[str]:
    """The address of a PostgreSQL server, with a password."""
    if postgresql_server.programs() is None:
        pytest.skip("PostgreSQL is not installed: nothing is tested with a real server")
    with postgresql_server.server() as address:
        yield address


@pytest.fixture(scope="module")
def postgresql_address(postgresql_running: str, request: pytest.FixtureRequest) -> str:
    """The address of a database for the tests of one module alone."""
    return postgresql_server.new_database(postgresql_running, request.module.__name__)


@pytest.fixture(scope="session")
def mariadb_address() -> Iterator[str]:
    """The address of a MariaDB server, with a password."""
    if not mariadb_server.is_installed():
        pytest.skip("MariaDB is not installed: nothing is tested with a real server")
    with mariadb_server.server() as address:
        yield address
