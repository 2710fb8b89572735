"""Filling topics with Kafka's own tools: the batches are a Java producer's.

`ProducerPerformance` does most of it. It knows no keys; `ConsoleProducer` does, and gets its lines by a pipe.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

from bench.workloads import Workload
from sparkmirror.demo.jars import BROKER, KAFKA_VERSION, class_path
from sparkmirror.demo.java import java
from sparkmirror.demo.spawn import spawn

TOOLS = (f"org.apache.kafka:kafka-tools:{KAFKA_VERSION}", *BROKER[1:])
NULL_MARKER = b"~"
"""Stands for no value in the lines of `write_keyed`."""
_HEAP = ("-Xms256m", "-Xmx1g", "-XX:-UsePerfData")
_BUFFER_BYTES = 134_217_728
_ROUND_ROBIN = "partitioner.class=org.apache.kafka.clients.producer.RoundRobinPartitioner"
_LAST_LINES = 5


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
            raise _failed(exit_code, self._output)

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
        self._payloads.write_bytes(b"\n".join(workload.lines()))

    def start(self, topic: str, records: int) -> ProducerRun:
        """Write `records` to `topic` as fast as it can."""
        return self._run(topic, records, -1)

    def start_paced(self, topic: str, seconds: float) -> ProducerRun:
        """Write to all partitions in turn, at the workload's pace."""
        pace = self._workload.records_per_s
        return self._run(topic, int(pace * seconds), pace, _ROUND_ROBIN)

    def _run(self, topic: str, records: int, pace: int, *properties: str) -> ProducerRun:
        tool = (java(), *_HEAP, "-cp", class_path(TOOLS), "org.apache.kafka.tools.ProducerPerformance")
        what = ["--topic", topic, "--num-records", str(records), "--throughput", str(pace)]
        where = ("--bootstrap-server", self._servers, "--payload-file", str(self._payloads))
        if self._workload.commit_every_ms:
            what += ["--transactional-id", topic, "--transaction-duration-ms", str(self._workload.commit_every_ms)]
        settings = (
            "acks=all",
            f"batch.size={self._workload.batching.batch_bytes}",
            f"linger.ms={self._workload.batching.linger_ms}",
            f"compression.type={self._workload.codec}",
            f"buffer.memory={_BUFFER_BYTES}",
            *properties,
        )
        return ProducerRun([*tool, *what, *where, "--command-property", *settings], self._output)


def write_keyed(
    directory: Path, workload: Workload, bootstrap_servers: str, topic: str, lines: Iterable[bytes], timeout_s: float
) -> None:
    """Write `lines`, each with its newline and in chunks of many: a key, a tab, and a value or `NULL_MARKER`.

    Raises ProducingFailed if the producer fails, or takes more than `timeout_s` after the last line.
    """
    batching = workload.batching
    output = directory / f"producer-{workload.name}.log"
    command = (
        *(java(), *_HEAP, "-cp", class_path(TOOLS), "org.apache.kafka.tools.ConsoleProducer"),
        *("--bootstrap-server", bootstrap_servers, "--topic", topic),
        *("--batch-size", str(batching.batch_bytes), "--timeout", str(batching.linger_ms)),
        *("--compression-codec", workload.codec, "--max-memory-bytes", str(_BUFFER_BYTES)),
        *("--request-timeout-ms", "30000"),
        *("--reader-property", "parse.key=true"),
        *("--reader-property", f"null.marker={NULL_MARKER.decode()}"),
    )
    # A pipe and not `spawn`: when this process dies the pipe ends, and so does the producer.
    with (
        output.open("wb") as log,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT) as child,
    ):
        assert child.stdin is not None  # noqa: S101 - it was asked for
        try:
            for chunk in lines:
                child.stdin.write(chunk)
            child.stdin.close()
            exit_code = child.wait(timeout_s)
        except (BrokenPipeError, subprocess.TimeoutExpired) as error:
            child.kill()
            raise _failed(child.wait(), output) from error
        except BaseException:
            child.kill()
            raise
    if exit_code or output.read_bytes().strip():
        raise _failed(exit_code, output)  # a record that failed is a line of its output, and nothing else


def _failed(exit_code: int, output: Path) -> ProducingFailed:
    last = " / ".join(output.read_text(errors="replace").splitlines()[-_LAST_LINES:])
    return ProducingFailed(f"the producer ended with {exit_code}: {last}")
