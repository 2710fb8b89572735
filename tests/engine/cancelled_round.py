"""Two rounds of a Spark that hang: one is cancelled, which must end its tasks and leave the other alone.

As a program it runs on the Spark of its Python, and prints what came of it as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from unittest import mock

from pyspark import SparkContext

from sparkmirror.mirror.engine import round_job
from sparkmirror.mirror.engine.round_job import RoundJob
from sparkmirror.mirror.engine.session import start_spark
from sparkmirror.pump.messages.orders import PumpOrder

START_S = 60.0
END_S = 20.0


@dataclass(frozen=True)
class Outcome:
    """What the cancelling did; seconds count from the call."""

    ended_s: float | None
    """Until the job had ended; None: it did not."""
    worker_gone_s: float | None
    """Until the Python that ran its task had ended."""
    failure: str
    other_goes_on: bool


def cancel_one(spark: SparkContext, directory: Path) -> Outcome:
    """Start both, cancel the first; `directory` is where their tasks say their process ids."""

    def hang(orders: dict[int, bytes], _: object) -> list[str]:
        for order in orders.values():  # as `engine.task.pack` has made them
            incarnation = json.loads(zlib.decompress(order))["incarnation"]
            draft = directory / f"{incarnation}.draft"
            draft.write_text(str(os.getpid()))
            draft.rename(directory / incarnation)
        while not (directory / "end").exists():
            time.sleep(0.1)
        return []

    with mock.patch.object(round_job, "run_tasks", hang):
        jobs = [
            RoundJob(spark, 1, [PumpOrder(epoch=1, task=0, incarnation=name, seconds=60, flows=())])
            for name in ("first", "second")
        ]
        try:
            first, _ = (_pid(directory / name, job) for name, job in zip(("first", "second"), jobs, strict=True))
            began = time.monotonic()
            jobs[0].cancel()
            ended_s = time.monotonic() - began if jobs[0].wait(END_S) else None
            while _lives(first) and time.monotonic() < began + END_S:
                time.sleep(0.05)
            gone_s = None if _lives(first) else time.monotonic() - began
            return Outcome(ended_s, gone_s, jobs[0].failure, other_goes_on=not jobs[1].wait(1.0))
        finally:
            (directory / "end").touch()
            jobs[1].wait(END_S)


def _pid(path: Path, job: RoundJob) -> int:
    deadline = time.monotonic() + START_S
    while not path.exists():
        assert time.monotonic() < deadline, f"no task has begun: {job.failure}"
        time.sleep(0.05)
    return int(path.read_text())


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def main() -> int:
    """Run it on a Spark of its own."""
    spark = start_spark({}, tasks=2)
    with tempfile.TemporaryDirectory() as directory:
        print(json.dumps(asdict(cancel_one(spark, Path(directory)))))
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
