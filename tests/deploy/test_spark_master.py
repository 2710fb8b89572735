"""The cluster on Fargate in small: workers come and go, and its only master is replaced, under a running mirror."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import mirror_process as mp
import pyspark
import pytest
from loaded_flow import LoadedFlow
from tests.deploy.fargate import definition, environment_of

from sparkmirror.demo import KafkaCluster
from sparkmirror.demo.java import java_home
from sparkmirror.demo.ports import free_ports
from sparkmirror.demo.spawn import spawn

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

SPARK = Path(pyspark.__file__).parent


class SparkTasks:
    """Masters and workers as the tasks of their services, with these services' environment."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        (self.port,) = free_ports(1)
        self._started = 0

    @property
    def url(self) -> str:
        return f"spark://127.0.0.1:{self.port}"

    @contextmanager
    def master(self) -> Iterator[subprocess.Popen[bytes]]:
        """With the settings of the task definition; its file system is a directory here."""
        recovery = self._directory / "recovery"
        recovery.mkdir(exist_ok=True)
        environment = {
            name: value.replace("/var/lib/sparkmirror/recovery", str(recovery))
            for name, value in environment_of(definition("master")).items()
        }
        yield from self._running("Master", environment, "--port", str(self.port))

    @contextmanager
    def worker(self) -> Iterator[subprocess.Popen[bytes]]:
        """One with two slots."""
        work = self._directory / f"worker{self._started}"
        work.mkdir()
        more = ("--cores", "2", "--memory", "1g", "--work-dir", str(work), self.url)
        yield from self._running("Worker", environment_of(definition("worker")), *more)

    def _running(self, kind: str, environment: dict[str, str], *more: str) -> Iterator[subprocess.Popen[bytes]]:
        self._started += 1
        process = spawn(
            [
                str(SPARK / "bin" / "spark-class"),
                f"org.apache.spark.deploy.{kind.lower()}.{kind}",
                *("--host", "127.0.0.1", "--webui-port", "0"),
                *more,
            ],
            output=self._directory / f"{kind.lower()}{self._started}.log",
            environment={
                "PATH": os.defpath,
                "JAVA_HOME": str(java_home()),
                "SPARK_HOME": str(SPARK),
                "SPARK_LOCAL_IP": "127.0.0.1",
                **environment,
            },
        )
        try:
            yield process
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()


def test_a_master_that_is_replaced(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    """The new one knows the mirror and its workers, so that workers that come later are used."""
    tasks = SparkTasks(tmp_path)
    settings = {
        "spark.master": tasks.url,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.pyspark.python": sys.executable,
    }
    flow = LoadedFlow(source_cluster, target_cluster, topic_name, tmp_path, settings)
    with ExitStack() as rest:
        with tasks.master() as first:
            before = rest.enter_context(tasks.worker())
            rest.enter_context(flow.load())
            mirror = rest.enter_context(flow.start())
            flow.wait_for_progress(90)
            first.send_signal(signal.SIGKILL)
            first.wait()
            flow.wait_for_progress(30)
        rest.enter_context(tasks.master())
        rest.enter_context(tasks.worker())
        flow.wait_for_progress(60)
        before.send_signal(signal.SIGKILL)
        flow.wait_for_progress(120)
        assert mirror.terminate() == 0
    flow_after = flow.write_properties("local.properties", target_cluster.bootstrap_servers)
    flow.finish(properties=flow_after)
    assert mp.COMMAND
