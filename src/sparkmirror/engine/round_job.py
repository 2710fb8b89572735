"""A round: one Spark job that runs the pumps, watched from the driver."""

from __future__ import annotations

import functools
import threading
import uuid
from collections.abc import Sequence
from contextlib import suppress

from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

from sparkmirror.engine.session import in_one_line
from sparkmirror.engine.task import RECEIPTS, run_task
from sparkmirror.messages.orders import PumpOrder, Receipt


class RoundJob:
    """Job of a DataFrame with a task per order, started in its own thread."""

    def __init__(self, spark: SparkSession, number: int, orders: Sequence[PumpOrder]) -> None:
        self.orders = orders
        self.receipts: list[Receipt] | None = None
        """All receipts, once every task has ended; None if a task failed for good."""
        self.failure = ""
        self._spark = spark
        self._tag = f"sparkmirror-epoch-{number}-{uuid.uuid4().hex}"  # an application may run several mirrors
        self._thread = threading.Thread(target=self._run, name=self._tag, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        orders = {order.task: order.to_json() for order in self.orders}
        count = len(self.orders)
        try:
            pump = udf(functools.partial(run_task, orders), RECEIPTS, useArrow=False).asNondeterministic()
            self._spark.sparkContext.addJobTag(self._tag)  # tags of the session exist only since Spark 4
            rows = self._spark.range(0, count, 1, count).select(pump("id").alias("receipts")).collect()
            self.receipts = [Receipt.model_validate_json(text) for row in rows for text in row["receipts"]]
        except Exception as error:  # after any error the next round reads all positions again
            self.failure = in_one_line(error)

    def wait(self, timeout_s: float) -> bool:
        """Wait; True if the job has ended by then."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def cancel(self) -> None:
        """Cancel the job, as the last resort.

        Spark kills the pumps hard, and their successors may meet them (R5).
        """
        with suppress(Exception):  # Spark may be gone
            self._spark.sparkContext.cancelJobsWithTag(self._tag)

    def spark_lives(self) -> bool:
        """True if Spark still answers."""
        try:
            return bool(self._spark.sql("SELECT 1").schema)
        except Exception:  # after any error no round can run
            return False
