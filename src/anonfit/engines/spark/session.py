# SPDX-License-Identifier: Apache-2.0
"""The Spark session that is used, and Spark's failures as errors that say what to do."""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from subprocess import DEVNULL
from typing import Any, TypeVar

from anonfit.engines.spark.rows import CHANGED, NOT_SHARED
from anonfit.errors import EngineError, MissingPackage

Result = TypeVar("Result")

LOCAL = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
"""Settings of a session that we start on this machine alone, where nothing else is said: nobody else can reach it."""
PRIVATE = 0o077
"""Files that Java and the executors it starts write hold rows: others may not read them."""


@contextmanager
def quiet() -> Iterator[None]:
    """Without Spark's words about versions of pandas, of which nothing is used here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning, message="PySpark does not yet fully support pandas")
        yield


@quiet()
def session() -> Any:
    """The session of this process; if there is none, one by Spark's own settings, without any on this machine."""
    try:
        import pyarrow as pa  # noqa: F401 - rows travel as Arrow
        from pyspark import SparkConf
        from pyspark.sql import SparkSession
    except ModuleNotFoundError as error:
        raise MissingPackage(str(error.name), "spark", "The engine spark") from None
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    if "SPARK_REMOTE" in os.environ:
        return result_of(lambda: SparkSession.builder.getOrCreate())
    # Rows are counted by Python processes: they must be of the Python that runs here.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    _start_java()
    known = SparkConf()  # Spark's own settings, which Java reads
    builder = SparkSession.builder.appName("anonfit")
    if known.get("spark.master", "local[*]").startswith("local"):
        for name, value in LOCAL.items():
            if not known.contains(name):
                builder = builder.config(name, value)
    with _own_interrupts():
        return result_of(builder.getOrCreate)


@contextmanager
def _own_interrupts() -> Iterator[None]:
    """Keep what Ctrl-C does. Spark's answer to it asks Java in the middle of another question, and prints all of it."""
    before = signal.getsignal(signal.SIGINT)
    yield
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, before)


def _start_java() -> None:
    """Start Java. What it says goes nowhere: words about the machine, and what executors say of rows."""
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is not None:
        return
    words = {"stdout": DEVNULL, "stderr": DEVNULL, "umask": PRIVATE}
    try:
        gateway: Any = launch_gateway(popen_kwargs=words)  # type: ignore[no-untyped-call]
        SparkContext._ensure_initialized(gateway=gateway)
    except Exception as error:
        raise EngineError(
            f"engine spark: Java did not start ({type(error).__name__}); install Java 17 or newer, or set JAVA_HOME."
        ) from None


def result_of(work: Callable[[], Result]) -> Result:
    """What some work gives. An error says only its kind: Spark's own texts may hold values of records and addresses."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        with quiet():
            return work()
    except (PySparkException, Py4JError, OSError) as error:
        text = str(error)
        if "No space left" in text:
            why = "a disk is full; free some, or set spark.local.dir or engine.spill to another place"
        elif "OutOfMemoryError" in text or "spark.driver.maxResultSize" in text:
            why = "there is too little memory; give more by spark.driver.memory and spark.executor.memory"
        elif "No module named 'anonfit'" in text:
            why = "the package anonfit is not installed where the executors run"
        elif "No module named" in text:
            why = "a package that anonfit needs is not installed where the executors run; Spark's log names it"
        elif "PYTHON_VERSION_MISMATCH" in text or "different version in worker" in text:
            why = "the executors run another version of Python; set PYSPARK_PYTHON"
        elif NOT_SHARED in text:
            why = f"{NOT_SHARED}; set engine.spill to a folder that the driver and all executors share"
        elif CHANGED in text:
            why = f"{CHANGED}; read it while nobody writes to it"
        else:
            why = f"a job failed ({_kind(error)}); Spark's log says more"
        raise EngineError(f"engine spark: {why}.") from None


def _kind(error: BaseException) -> str:
    """The kind of an error, with Spark's own word for it where there is one."""
    condition = getattr(error, "getCondition", None)
    word = condition() if condition is not None else None
    return f"{type(error).__name__} {word}" if word else type(error).__name__
