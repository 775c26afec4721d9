# SPDX-License-Identifier: Apache-2.0
"""A session that is started for a run: nothing of Java and Spark is seen beside what anonfit says itself."""

from __future__ import annotations

import os
import subprocess
import sys

import polars as pl
import pytest

pytestmark = pytest.mark.spark

RUN = """
import sys
import anonfit as af
try:
    release = af.anonymize(sys.argv[1], quasi_identifiers=["age"], insensitive=["kind"], k=3, engine="spark")
    print(release.report["engine"]["name"], len(release.data))
except af.AnonfitError as error:
    print(type(error).__name__, error)
"""


def _run(source: str, **environment: str) -> subprocess.CompletedProcess[str]:
    known = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK", "PYSPARK"))}
    words = [sys.executable, "-c", RUN, source]
    return subprocess.run(words, env=known | environment, capture_output=True, text=True, check=True)


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "people.csv"
    pl.DataFrame({"age": [20, 30, 40] * 4, "kind": ["a", "b", "b"] * 4}).write_csv(path)
    return str(path)


@pytest.mark.slow
def test_a_session_of_its_own_is_silent(source):
    done = _run(source)
    assert (done.stdout, done.stderr) == ("spark 12\n", "")


MODES = """
import sys
from pathlib import Path
from anonfit.engines.spark.source import session
spark = session()
spark.range(100).repartition(3).count()
print(*(oct(path.stat().st_mode & 0o777) for path in Path(sys.argv[1]).rglob("*")))
"""


@pytest.mark.slow
def test_only_the_owner_reads_what_a_session_of_its_own_writes(tmp_path):
    known = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK", "PYSPARK"))}
    words = [sys.executable, "-c", MODES, str(tmp_path)]
    done = subprocess.run(
        words, env=known | {"SPARK_LOCAL_DIRS": str(tmp_path)}, capture_output=True, text=True, check=True
    )
    assert done.stdout.split()
    assert set(done.stdout.split()) <= {"0o600", "0o700"}


INTERRUPTED = """
import os, signal, threading, time
from anonfit.engines.spark.source import session, result_of
spark = session()
def interrupt():
    while not spark.sparkContext.statusTracker().getActiveJobsIds():
        time.sleep(0.1)
    os.kill(os.getpid(), signal.SIGINT)
signal.signal(signal.SIGINT, signal.default_int_handler)
threading.Thread(target=interrupt).start()
try:
    result_of(lambda: spark.range(10**13).selectExpr("sum(hash(id))").collect())
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.slow
def test_a_job_can_be_interrupted():
    known = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK", "PYSPARK"))}
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], env=known, capture_output=True, text=True, timeout=300)
    assert done.stdout == "interrupted\n", done.stderr
    assert "reentrant call" not in done.stderr


def test_without_java_there_is_one_sentence(source, tmp_path):
    done = _run(source, JAVA_HOME=str(tmp_path / "nowhere"), PATH="/usr/bin:/bin")
    assert done.stdout.startswith("EngineError engine spark: Java did not start")
    assert "install Java 17 or newer" in done.stdout
    assert done.stderr == ""
