"""A round: Spark jobs that run the pumps, watched from the driver."""

from __future__ import annotations

import functools
import threading
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress

from pyspark import SparkContext

from sparkmirror.mirror.engine.session import in_one_line
from sparkmirror.mirror.engine.task import pack, run_tasks
from sparkmirror.pump.messages.orders import FlowEnd, PumpOrder


class _JobPart:
    """One Spark job with a task per order, started in its own thread."""

    def __init__(self, spark: SparkContext, tag: str, orders: Sequence[PumpOrder]) -> None:
        self.ends: list[FlowEnd] | None = None
        self.failure = ""
        self._spark = spark
        self._tag = tag
        self._orders = orders
        self.thread = threading.Thread(target=self._run, name=tag, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        orders = {order.task: pack(order) for order in self._orders}
        first, count = self._orders[0].task, len(self._orders)
        try:
            self._spark.addJobTag(self._tag)
            tasks = self._spark.parallelize(range(first, first + count), count)
            ends = tasks.mapPartitions(functools.partial(run_tasks, orders)).collect()
            self.ends = [FlowEnd.model_validate_json(text) for text in ends]
        except Exception as error:  # after any error the next round reads all positions again
            self.failure = in_one_line(error)

    @property
    def has_failed(self) -> bool:
        return self.ends is None and not self.thread.is_alive()


class RoundJob:
    """A round's job; tasks that are added later run in jobs next to it.

    Tasks in `orders` are numbered from 0 on, and `extend` continues the numbers.
    """

    def __init__(self, spark: SparkContext, number: int, orders: Sequence[PumpOrder]) -> None:
        self._spark = spark
        self._tag = f"sparkmirror-epoch-{number}-{uuid.uuid4().hex}"  # an application may run several mirrors
        self._parts: list[_JobPart] = []
        self.extend(orders)

    def extend(self, orders: Sequence[PumpOrder]) -> None:
        self._parts.append(_JobPart(self._spark, self._tag, orders))

    @property
    def ends(self) -> list[FlowEnd] | None:
        """Ends of all flows in all tasks.

        None before every task has ended, or if a task failed for good.
        """
        ends: list[FlowEnd] = []
        for part in self._parts:
            if part.ends is None:
                return None
            ends += part.ends
        return ends

    @property
    def failure(self) -> str:
        """Reason of the first failed job, in one line."""
        return next((part.failure for part in self._parts if part.failure), "")

    @property
    def has_failed(self) -> bool:
        """True if a job has failed; jobs next to it may still run."""
        return any(part.has_failed for part in self._parts)

    def wait(self, timeout_s: float) -> bool:
        """Wait; True if all tasks have ended by then."""
        until = time.monotonic() + timeout_s
        for part in self._parts:
            part.thread.join(max(until - time.monotonic(), 0.0))
        return not any(part.thread.is_alive() for part in self._parts)

    def cancel(self) -> None:
        """Cancel the jobs, as the last resort.

        Spark kills the pumps hard, and their successors may meet them (R5).
        """
        with suppress(Exception):  # Spark may be gone
            self._spark.cancelJobsWithTag(self._tag)

    def spark_lives(self) -> bool:
        try:
            return not self._spark._jsc.sc().isStopped()  # noqa: SLF001 - PySpark has no public call
        except Exception:  # after any error no round can run
            return False
