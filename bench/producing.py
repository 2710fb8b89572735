"""Filling topics with Kafka's own `ProducerPerformance`: the batches are a Java producer's."""

from __future__ import annotations

import subprocess
from pathlib import Path

from bench.workloads import Workload
from sparkmirror.demo.jars import BROKER, KAFKA_VERSION, class_path
from sparkmirror.demo.java import java
from sparkmirror.demo.spawn import spawn

TOOLS = (f"org.apache.kafka:kafka-tools:{KAFKA_VERSION}", *BROKER[1:])
BATCH_BYTES = 65_536
LINGER_MS = 20
_ROUND_ROBIN = "partitioner.class=org.apache.kafka.clients.producer.RoundRobinPartitioner"


class ProducingFailed(Exception):
    """The producer ended with an error; the message holds its last words."""


class ProducerRun:
    """A producer at work."""

    def __init__(self, command: list[str], output: Path) -> None:
        self._output = output
        self._child = spawn(command, output=output)

    def wait(self, timeout_s: float) -> None:
        """Wait for its end. Raises ProducingFailed if it fails or takes longer."""
        try:
            exit_code = self._child.wait(timeout_s)
        except subprocess.TimeoutExpired as error:
            self.kill()
            raise ProducingFailed(f"the producer did not end within {timeout_s:.0f} s") from error
        if exit_code:
            last = " / ".join(self._output.read_text(errors="replace").splitlines()[-5:])
            raise ProducingFailed(f"the producer ended with {exit_code}: {last}")

    def kill(self) -> None:
        """End it at once; nothing happens if it has ended."""
        if self._child.poll() is None:
            self._child.kill()
            self._child.wait()


class Producer:
    """Kafka's producer with one workload's payloads, writing to one cluster."""

    def __init__(self, directory: Path, workload: Workload, bootstrap_servers: str) -> None:
        self._workload = workload
        self._servers = bootstrap_servers
        self._output = directory / f"producer-{workload.name}.log"
        self._payloads = directory / f"payloads-{workload.name}.txt"
        self._payloads.write_bytes(workload.payloads())

    def start(self, topic: str, records: int) -> ProducerRun:
        """Write `records` to `topic` as fast as it can."""
        return self._run(topic, records, -1, f"linger.ms={LINGER_MS}")

    def start_paced(self, topic: str, seconds: float) -> ProducerRun:
        """Write to all partitions in turn, at the workload's pace, each record at once."""
        pace = self._workload.records_per_s
        return self._run(topic, int(pace * seconds), pace, "linger.ms=0", _ROUND_ROBIN)

    def _run(self, topic: str, records: int, pace: int, *properties: str) -> ProducerRun:
        heap = ("-Xms256m", "-Xmx1g", "-XX:-UsePerfData")
        tool = (java(), *heap, "-cp", class_path(TOOLS), "org.apache.kafka.tools.ProducerPerformance")
        what = ("--topic", topic, "--num-records", str(records), "--throughput", str(pace))
        where = ("--bootstrap-server", self._servers, "--payload-file", str(self._payloads))
        settings = (
            "acks=all",
            f"batch.size={BATCH_BYTES}",
            f"compression.type={self._workload.codec}",
            "buffer.memory=134217728",
            *properties,
        )
        return ProducerRun([*tool, *what, *where, "--command-property", *settings], self._output)
