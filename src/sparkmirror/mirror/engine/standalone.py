"""A Spark standalone cluster's master or worker, for containers.

`python -m sparkmirror.mirror.engine.standalone master|worker`, and then the arguments for Spark's own class.

A worker is drained before it ends. Spark's worker takes SIGPWR for that: the driver gives its executors no more tasks,
the mirror plans without them, their tasks end in order, and then the executors end.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType

from sparkmirror.errors import SetupError
from sparkmirror.mirror.engine.installed_spark import require_spark

DRAIN_S = 100.0
"""Seconds that executors have to end.

Fargate kills a container at most 120 s after asking it to end.
"""

STOP_S = 10.0
_POLL_S = 0.2
_CLASSES = {"master": "master.Master", "worker": "worker.Worker"}
_EXECUTOR = b"CoarseGrainedExecutorBackend"
_USAGE = "write master or worker first, then what Spark's own class takes, as worker spark://HOST:7077 --cores 2"


class Daemon:
    """A Spark JVM; this process translates its own signals for the JVM."""

    def __init__(self, kind: str, arguments: Sequence[str]) -> None:
        """Start the JVM; `kind` is `master` or `worker`.

        Raises `SetupError` if Spark can't be started.
        """
        require_spark()
        import pyspark  # perhaps that of SPARK_HOME

        script = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent) / "bin" / "spark-class"
        options = f"-Dspark.decommission.enabled=true {os.environ.get('SPARK_DAEMON_JAVA_OPTS', '')}".strip()
        self._told_to_end = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._end)
        try:
            # In a session of its own, since Ctrl-C at a terminal is for this process to handle.
            self._jvm = subprocess.Popen(
                [str(script), f"org.apache.spark.deploy.{_CLASSES[kind]}", *arguments],
                env={**os.environ, "SPARK_DAEMON_JAVA_OPTS": options},
                start_new_session=True,
            )
        except OSError as error:
            raise SetupError(f"Spark can't be started: {script}: {error.strerror}") from error

    def run(self) -> int:
        """Wait for the end, and return the exit code.

        On a signal the JVM is drained and ended, with code 0. If the JVM ends by itself, the code is the JVM's.
        """
        while not self._told_to_end:
            if self._jvm.poll() is not None:
                return self._jvm.returncode
            time.sleep(_POLL_S)
        self._drain()
        self._jvm.terminate()
        try:
            self._jvm.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._jvm.kill()
            self._jvm.wait()
        return 0

    def _end(self, _: int, __: FrameType | None) -> None:
        self._told_to_end = True

    def _drain(self) -> None:
        if any(_executors(self._jvm.pid)):
            self._jvm.send_signal(signal.SIGPWR)
            deadline = time.monotonic() + DRAIN_S
            while self._jvm.poll() is None and any(_executors(self._jvm.pid)) and time.monotonic() < deadline:
                time.sleep(_POLL_S)


def _executors(worker: int) -> Iterator[int]:
    """Yield the worker's children that run tasks; a master has none."""
    with suppress(OSError):
        for children in Path(f"/proc/{worker}/task").glob("*/children"):
            for child in children.read_text().split():
                with suppress(OSError):
                    if _EXECUTOR in Path(f"/proc/{child}/cmdline").read_bytes():
                        yield int(child)


def main(arguments: Sequence[str]) -> int:
    """Run a daemon, and return its exit code.

    0: ended by a signal, 2: no such kind, 3: Spark can't be started; else the JVM's own code.
    """
    if not arguments or arguments[0] not in _CLASSES:
        print(f"sparkmirror: {_USAGE}", file=sys.stderr)
        return 2
    try:
        return Daemon(arguments[0], arguments[1:]).run()
    except SetupError as error:
        print(f"sparkmirror: {error}", file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
