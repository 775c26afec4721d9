# SPDX-License-Identifier: Apache-2.0
"""The one Spark session of a test run: on this machine, reached by nobody else, with as few partitions as can be."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl

CONFORMANCE = Path(__file__).parent / "engines" / "conformance"
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    # Moments of frames without a zone have none in Spark.
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    # A machine that sleeps, or is busy for minutes, is no lost executor.
    "spark.network.timeout": "3600s",
    "spark.executor.heartbeatInterval": "60s",
    # Tables of tests are so small that compiling for them takes longer than working on them.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@cache
def why_no_spark() -> str | None:
    """Why tests of Spark cannot run here."""
    if find_spec("pyspark") is None:
        return "pyspark is not installed"
    java = Path(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else shutil.which("java")
    if java is None or not Path(java).exists():
        return "there is no Java: install Java 17, or set JAVA_HOME"
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', said)
    if found is None or int(found[1]) < 17:
        return "Java is older than 17: install Java 17, or set JAVA_HOME"
    return None


def spark_frame(frame: pl.DataFrame) -> Any:
    """A frame in Spark."""
    from anonfit.engines.spark.source import quiet

    with quiet():
        return spark_session().createDataFrame(frame.to_arrow())


@cache
def event_folder() -> Path:
    """Where the session tells what its stages did."""
    folder = Path(tempfile.mkdtemp(prefix="anonfit-spark-events-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def spark_session() -> Any:
    """The session."""
    from pyspark.sql import SparkSession

    from anonfit.engines.spark.source import quiet

    os.environ["PYSPARK_PYTHON"] = sys.executable
    # Executors must find what tests send them.
    folders = [str(CONFORMANCE), str(CONFORMANCE.parents[1]), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, folders))
    builder = SparkSession.builder.master("local[2]").appName("anonfit-tests")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    with quiet():
        return builder.config("spark.eventLog.dir", event_folder().as_uri()).getOrCreate()
