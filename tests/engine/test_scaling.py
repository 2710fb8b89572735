"""Workers that join and leave a Spark standalone cluster under load, as an autoscaled service's do."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil
import pytest
from tests.support import mirror_process as mp
from tests.support.loaded_flow import PARTITIONS, LoadedFlow

from sparkmirror.demo.java import java_home
from sparkmirror.demo.ports import free_ports

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

STANDALONE = (sys.executable, "-m", "sparkmirror.mirror.engine.standalone")
FOLLOWS_S = 90.0
"""On a calm machine it takes 15 s, most of it the JVMs' and Python's start and the 5 s that slots have to stay."""
STALL_S = 5.0
SOURCES = str(Path(__file__).parents[2] / "src")


class Cluster:
    """A master, and workers of one core each, as our image runs them."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        (port,) = free_ports(1)
        self.master = f"spark://127.0.0.1:{port}"
        self.workers: list[subprocess.Popen[bytes]] = []
        self._processes = [self._start("master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")]

    @property
    def settings(self) -> Mapping[str, str]:
        return {
            "spark.master": self.master,
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.executor.memory": "512m",
            "spark.pyspark.python": sys.executable,
            "tasks.max": str(PARTITIONS),
        }

    def join(self) -> None:
        """One more worker."""
        options = ("--host", "127.0.0.1", "--webui-port", "0", "--cores", "1", "--memory", "600m")
        work = self._directory / f"work{len(self._processes)}"
        worker = self._start("worker", self.master, *options, "--work-dir", str(work))
        self.workers.append(worker)
        self._processes.append(worker)

    def _start(self, kind: str, *arguments: str) -> subprocess.Popen[bytes]:
        with (self._directory / f"{kind}.log").open("ab") as log:
            return subprocess.Popen(
                [*STANDALONE, kind, *arguments],
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, "JAVA_HOME": str(java_home()), "PYTHONPATH": SOURCES, "SPARK_LOCAL_IP": "127.0.0.1"},
            )

    def close(self) -> None:
        """Told to end, all do."""
        for process in reversed(self._processes):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self._processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(30)
            process.kill()


class Pace:
    """How long nothing came to the target, at the longest, since it was asked last."""

    def __init__(self, flow: LoadedFlow) -> None:
        self._flow = flow
        self._ended = threading.Event()
        self._longest = 0.0
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Pace:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def take_longest_stall_s(self) -> float:
        """Of the time since the last call."""
        longest, self._longest = self._longest, 0.0
        return longest

    def _watch(self) -> None:
        topic, servers = f"A.{self._flow.topic}", self._flow.target.direct_servers
        before, since = 0, time.monotonic()
        while not self._ended.wait(0.1):
            now = sum(mp.end_offsets(servers, topic, PARTITIONS))
            self._longest = max(self._longest, time.monotonic() - since)
            if now > before:
                before, since = now, time.monotonic()


@contextlib.contextmanager
def cluster(directory: Path) -> Iterator[Cluster]:
    started = Cluster(directory)
    try:
        yield started
    finally:
        started.close()


def tasks(log: Path) -> int:
    """Of the newest round, or its newest change."""
    told = re.findall(r"epoch \d+: \d+ partitions(?: moved to other tasks in [\d.]+ s)?, (\d+) tasks", log.read_text())
    return int(told[-1]) if told else 0


def wait_for_tasks(flow: LoadedFlow, log: Path, count: int) -> None:
    """Until so many are planned, and each partition has come further since: all of them have started."""
    mp.wait_for(lambda: tasks(log) == count, FOLLOWS_S, f"{count} tasks")
    topic, servers = f"A.{flow.topic}", flow.target.direct_servers
    before = mp.end_offsets(servers, topic, PARTITIONS)

    def all_have_moved() -> bool:
        now = mp.end_offsets(servers, topic, PARTITIONS)
        return all(end > old for end, old in zip(now, before, strict=True))

    mp.wait_for(all_have_moved, FOLLOWS_S, "each partition is copied on")


def test_tasks_follow_the_workers_and_nothing_stalls(flow: LoadedFlow, tmp_path: Path) -> None:
    """1, 2, 4 and 2 workers; who leaves has been told so, and its tasks have moved before it ends."""
    with cluster(tmp_path) as spark:
        properties = flow.write_properties("scaled.properties", flow.target.bootstrap_servers, spark.settings)
        spark.join()
        with flow.load(), flow.start(properties=properties) as mirror:
            mp.wait_for(lambda: tasks(mirror.log) == 1, 90, "one task")
            flow.wait_for_progress(90)
            with Pace(flow) as pace:
                for count in (2, 4):
                    while sum(one.poll() is None for one in spark.workers) < count:
                        spark.join()
                    wait_for_tasks(flow, mirror.log, count)
                pace.take_longest_stall_s()
                for count in (3, 2):
                    leaving = spark.workers.pop(0)
                    leaving.send_signal(signal.SIGTERM)
                    wait_for_tasks(flow, mirror.log, count)
                    assert leaving.wait(FOLLOWS_S) == 0
                stalled_s = pace.take_longest_stall_s()
            text = mirror.log.read_text()
            assert mirror.terminate() == 0
        print(f"the longest stall while two workers were drained: {stalled_s:.1f} s")
        assert stalled_s < STALL_S
        assert "did not end by itself" not in text
        assert "have no slot" in text, "of the first round alone"
        flow.finish()


def test_a_worker_that_is_killed_takes_its_slot_along(flow: LoadedFlow, tmp_path: Path) -> None:
    with cluster(tmp_path) as spark:
        properties = flow.write_properties("scaled.properties", flow.target.bootstrap_servers, spark.settings)
        for _ in range(2):
            spark.join()
        with flow.load(), flow.start(properties=properties) as mirror:
            mp.wait_for(lambda: tasks(mirror.log) == 2, 90, "two tasks")
            flow.wait_for_progress(90)
            worker = psutil.Process(spark.workers[0].pid)
            for process in (worker, *worker.children(recursive=True)):
                process.kill()
            mp.wait_for(lambda: tasks(mirror.log) == 1, FOLLOWS_S, "one task")
            flow.wait_for_progress()
            assert mirror.terminate() == 0
        flow.finish()
