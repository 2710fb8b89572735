"""What fails on Spark's side ends `verify` with one line and exit code 3: it is no difference of records."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

from sparkmirror.config import ClusterConfig
from sparkmirror.config.model import REVEAL, SslConfig
from sparkmirror.errors import SetupError
from sparkmirror.frames.due import CountOrder, count_records
from sparkmirror.frames.ranges import LogPlan, RangePlan
from sparkmirror.frames.verify import _VerifyRun
from sparkmirror.frames.verify_task import (
    Answer,
    CompareOrder,
    LookOrder,
    Wanted,
    compare_range,
    look,
    run_tasks,
)

SPAN = RangePlan(range=0, first_upstream=0, end_upstream=9, first_downstream=0, end_downstream=9)
LOG = LogPlan(topic="orders", topic_id=bytes(16).hex(), start=0, end=9)


def compare(cluster: ClusterConfig) -> str:
    order = CompareOrder(
        source_cluster=cluster,
        target_cluster=cluster,
        source=LOG,
        target=LOG,
        partition=0,
        read_committed=False,
        target_read_committed=False,
        timestamps=True,
        due_to=None,
        range=SPAN,
    )
    return compare_range(order.model_dump_json(context=REVEAL))


def look_in(cluster: ClusterConfig) -> str:
    order = LookOrder(
        cluster=cluster,
        log=LOG,
        partition=0,
        read_committed=False,
        timestamps=True,
        first=0,
        end=9,
        wanted=0,
        keys_only=False,
        target_topic="A.orders",
    )
    return look({0: Wanted(keys=frozenset(), contents=frozenset("c"))}, order.model_dump_json(context=REVEAL))


def count(cluster: ClusterConfig) -> str:
    order = CountOrder(cluster=cluster, log=LOG, partition=0, read_committed=False, first=0, end=9)
    return count_records(order.model_dump_json(context=REVEAL))


@pytest.mark.parametrize("task", [compare, look_in, count])
def test_an_executor_without_the_truststore_is_told(task: Callable[[ClusterConfig], str], tmp_path: Path) -> None:
    gone = tmp_path / "gone.jks"
    cluster = ClusterConfig(
        alias="A",
        bootstrap_servers=("127.0.0.1:1",),
        security_protocol="SSL",
        ssl=SslConfig(truststore_location=str(gone)),
    )
    answer = Answer.model_validate_json(task(cluster))
    assert answer.report is None
    assert "on the executor's host" in answer.failed
    assert str(gone) in answer.failed
    assert "\n" not in answer.failed


class Failing:
    """A session whose jobs end so."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def range(self, *_: int) -> Failing:
        return self

    def mapInArrow(self, *_: object) -> Failing:  # noqa: N802 - Spark's name
        return self

    def collect(self) -> list[Any]:
        raise self._error


def run(error: BaseException) -> None:
    run_tasks(cast("SparkSession", Failing(error)), ["order"], lambda order: order)


TRACEBACK = """
  An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "worker.py", line 8, in main
    import it
ModuleNotFoundError: No module named 'sparkmirror'
"""


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (RuntimeError("Job aborted.\n\tat org.apache"), "Spark failed to run verify's tasks: Job aborted"),
        (
            PythonException(TRACEBACK),
            "Spark failed to run verify's tasks: An exception was thrown from the Python worker:"
            " ModuleNotFoundError: No module named 'sparkmirror'",
        ),
    ],
)
def test_a_job_that_fails_is_told_in_one_line(error: Exception, words: str) -> None:
    with pytest.raises(SetupError) as failed:
        run(error)
    assert str(failed.value) == words
    assert failed.value.exit_code == 3


def test_who_interrupts_is_obeyed() -> None:
    with pytest.raises(KeyboardInterrupt):
        run(KeyboardInterrupt())


class Jobs(_VerifyRun):
    """Only what runs jobs."""

    def __init__(self) -> None:
        self._slots = 1
        self._spark = cast("SparkSession", None)

    def answers(self, count: int) -> Iterator[list[Answer]]:
        return self._jobs(["order"] * count, str)


def test_what_another_job_answered_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three jobs; the third is not begun."""
    jobs: Iterator[SetupError | list[Answer]] = iter(
        [SetupError("Spark failed"), [Answer(records=1)], [Answer(records=2)]]
    )

    def played(*_: object) -> list[Answer]:
        job = next(jobs)
        if isinstance(job, SetupError):
            raise job
        return job

    monkeypatch.setattr(importlib.import_module("sparkmirror.frames.verify"), "run_tasks", played)
    kept: list[Answer] = []
    with pytest.raises(SetupError, match="Spark failed"):  # noqa: PT012 - what came before it is looked at
        for answers in Jobs().answers(6):
            kept += answers
    assert [answer.records for answer in kept] in ([1], [1, 2])
