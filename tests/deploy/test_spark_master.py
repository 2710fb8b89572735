"""The cluster on Fargate in small: workers come and go, and its only master is replaced, under a running mirror."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pyspark
import pytest
from lab import KafkaCluster
from tests.deploy.terraform import opened
from tests.deploy.terraform import service as resource
from tests.support import mirror_process as mp
from tests.support import stranger
from tests.support.loaded_flow import LoadedFlow

from sparkmirror.demo.java import java_home
from sparkmirror.demo.ports import free_ports
from sparkmirror.demo.spawn import spawn

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

SPARK = Path(pyspark.__file__).parent
HERE, ELSEWHERE = "127.0.0.1", "127.0.0.2"
MASTER = "master.test"
RECOVERY = "recoveryDirectory=/var/lib/sparkmirror"
SECRET = {"_SPARK_AUTH_SECRET": "hunter2-of-spark"}


class SparkTasks:
    """Masters and workers as the tasks of their services are, with these tasks' environment.

    A file of names stands for Cloud Map: a master that replaces another has another address.
    """

    def __init__(self, directory: Path, deployment: Mapping[str, Any]) -> None:
        self._directory = directory
        self._deployment = deployment
        self._port, *self._pages = free_ports(5)
        self.pages: dict[str, int] = {}
        """Ports of the newest master's and the newest worker's pages."""
        self._started = 0
        self._names = directory / "names"

    @property
    def url(self) -> str:
        return f"spark://{MASTER}:{self._port}"

    @property
    def java_options(self) -> str:
        """So that a JVM looks its names up in the file."""
        return f"-Djdk.net.hosts.file={self._names} -Dsun.net.inetaddr.ttl=1"

    @contextmanager
    def master(self, address: str) -> Iterator[psutil.Process]:
        """Its file system is a directory here."""
        names = {MASTER: address, "localhost": HERE, socket.gethostname(): HERE}
        self._names.write_text("".join(f"{told} {name}\n" for name, told in names.items()))
        told = self._environment("master")
        assert RECOVERY in told["SPARK_MASTER_OPTS"]
        told["SPARK_MASTER_OPTS"] = told["SPARK_MASTER_OPTS"].replace(
            RECOVERY, f"recoveryDirectory={self._directory / 'recovery'}"
        )
        yield from self._running("Master", told, address, "--port", str(self._port))

    @contextmanager
    def worker(self) -> Iterator[psutil.Process]:
        """One with two slots."""
        work = self._directory / f"worker{self._started}"
        work.mkdir()
        told = {**self._environment("worker"), "SPARK_WORKER_CORES": "2", "SPARK_WORKER_MEMORY": "1g"}
        told["SPARK_WORKER_OPTS"] += f" {self.java_options}"
        yield from self._running("Worker", told, HERE, "--port", "0", "--work-dir", str(work), self.url)

    def settings(self) -> dict[str, str]:
        """The drivers' `spark.*` settings, but for where the master is and an executor's memory."""
        (text,) = (one["content"] for one in self._deployment.values() if str(one.get("key")).endswith(".properties"))
        told = dict(re.findall(r"^(spark[\w.]+) = (.*)$", text, re.M))
        return {**told, "spark.master": self.url, "spark.executor.memory": "512m"}

    def is_healthy(self, service: str, port: int) -> bool:
        """What the command of its health check says, asked at another port."""
        _, _, *words, code = self._container(service)["healthCheck"]["command"]
        asked = re.sub(r"127\.0\.0\.1:\d+", f"127.0.0.1:{port}", code)
        return subprocess.run([sys.executable, *words, asked], capture_output=True, timeout=20).returncode == 0

    def _environment(self, service: str) -> dict[str, str]:
        own = self._container(service)
        assert {one["name"] for one in own["secrets"]} == {*SECRET}
        return {one["name"]: one["value"] for one in own["environment"]} | SECRET

    def _container(self, service: str) -> dict[str, Any]:
        definition = resource(self._deployment, service, "aws_ecs_task_definition.this")["container_definitions"]
        (own,) = (one for one in json.loads(definition) if one["name"] == service)
        return dict(own)

    def _running(self, kind: str, told: Mapping[str, str], address: str, *more: str) -> Iterator[psutil.Process]:
        self._started += 1
        page = self.pages[kind.lower()] = self._pages.pop()
        process = spawn(
            [
                str(SPARK / "bin" / "spark-class"),
                f"org.apache.spark.deploy.{kind.lower()}.{kind}",
                *("--host", address, "--webui-port", str(page)),
                *more,
            ],
            output=self._directory / f"{kind.lower()}{self._started}.log",
            environment={
                "PATH": os.defpath,
                "JAVA_HOME": str(java_home()),
                "SPARK_HOME": str(SPARK),
                "SPARK_LOCAL_IP": address,
                **told,
            },
        )
        try:
            yield psutil.Process(process.pid)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()


def executors(worker: psutil.Process) -> list[psutil.Process]:
    """Executor JVMs that a worker has started."""
    below = worker.children() if worker.is_running() else []
    return [one for one in below if "CoarseGrainedExecutorBackend" in mp.command_line(one)]


def listening(process: psutil.Process) -> set[int]:
    return {one.laddr.port for one in process.net_connections("tcp") if one.status == psutil.CONN_LISTEN}


def test_a_master_that_is_replaced(
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    tmp_path: Path,
    deployment: Mapping[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The new one knows mirror and workers: executors continue, and workers that come later get theirs.

    They serve only whoever knows the secret, at the ports that the deployment opens.
    """
    for name, value in SECRET.items():
        monkeypatch.setenv(name, value)
    tasks = SparkTasks(tmp_path, deployment)
    settings = {
        **tasks.settings(),
        "spark.driver.host": HERE,
        "spark.driver.bindAddress": HERE,
        "spark.driver.extraJavaOptions": tasks.java_options,
        "spark.pyspark.python": sys.executable,
    }
    flow = LoadedFlow(source_cluster, target_cluster, topic_name, tmp_path, settings)
    with ExitStack() as rest:
        with tasks.master(HERE) as first:
            early = rest.enter_context(tasks.worker())
            rest.enter_context(flow.load())
            (page,) = free_ports(1)
            mirror = rest.enter_context(flow.start("--metrics-port", str(page)))
            flow.wait_for_progress(90)
            for service, port in {**tasks.pages, "driver": page}.items():
                assert tasks.is_healthy(service, port), service
                assert not tasks.is_healthy(service, 1), service
            at_work = executors(early)
            (driver,) = (
                one for one in mirror.family() if "org.apache.spark.deploy.SparkSubmit" in mp.command_line(one)
            )
            blocks = {port for one in at_work for port in listening(one)}
            assert opened(deployment)["worker", "driver"] <= listening(driver)
            assert blocks <= opened(deployment)["driver", "worker"]
            master = int(tasks.url.rpartition(":")[2])
            assert listening(first) == {master, tasks.pages["master"]}
            for port in {master, *blocks, *opened(deployment)["worker", "driver"]}:
                assert stranger.fetched(port, "broadcast_0_piece0") == b""
                assert "EOFException" not in stranger.deserialized(port)
            for one in (first, early, *at_work, *mirror.family()):
                assert SECRET["_SPARK_AUTH_SECRET"] not in mp.command_line(one)
            first.kill()
            first.wait(20)
            flow.wait_for_progress(30)
        rest.enter_context(tasks.master(ELSEWHERE))
        late = rest.enter_context(tasks.worker())
        mp.wait_for(lambda: bool(executors(late)), 90, "an executor on the worker that came later")
        assert [one.pid for one in executors(early)] == [one.pid for one in at_work]
        flow.wait_for_progress(30)
        early.kill()
        psutil.wait_procs(at_work, 30)
        flow.wait_for_progress(120)
        assert mirror.terminate() == 0
    flow.finish(properties=flow.write_properties("local.properties", target_cluster.bootstrap_servers))
