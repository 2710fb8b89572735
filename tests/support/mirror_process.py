"""`sparkmirror run` as a process that tests can kill with all it started, and load to run it under."""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import ConfigResource, ConfigResourceType, NewTopic

from sparkmirror.config import ClusterConfig, load_mm2_properties
from sparkmirror.errors import SparkMirrorError
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.list_offsets import LATEST, list_offsets
from sparkmirror.mirror.engine.accepted_source import accept_source, flow_clusters
from sparkmirror.mirror.engine.agreed_clusters import agreed_source_id

UNKNOWN_TOPIC = 3
COMMAND = str(Path(sys.executable).with_name("sparkmirror"))

ONE_REPLICA = dict.fromkeys(
    (
        "replication.factor",
        "checkpoints.topic.replication.factor",
        "heartbeats.topic.replication.factor",
        "offset-syncs.topic.replication.factor",
        "offset.storage.replication.factor",
        "status.storage.replication.factor",
        "config.storage.replication.factor",
    ),
    "1",
)
"""What clusters of one broker need, for the real MirrorMaker 2 as well."""


def write_properties(
    path: Path,
    source: str,
    target: str,
    topics: str,
    settings: Mapping[str, str] | None = None,
    *,
    takes_source: bool = True,
) -> Path:
    """An mm2.properties for one flow A->B between two single-broker clusters.

    The target may know another cluster as A, from an earlier test: with `takes_source` the source is A from now on.
    """
    lines = {
        "clusters": "A, B",
        "A.bootstrap.servers": source,
        "B.bootstrap.servers": target,
        "A->B.enabled": "true",
        "A->B.topics": topics,
        "replication.factor": "1",
        "tasks.max": "2",
        "refresh.topics.interval.seconds": "2",
        "B.session.timeout.ms": "6000",
        # Most tests compare logs byte for byte.
        "sparkmirror.merge.tiny.batches": "false",
        "checkpoints.topic.replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "offset.storage.replication.factor": "1",
        "emit.heartbeats.enabled": "false",
        # The test of the real MirrorMaker 2 leaves a compacted heartbeats topic behind.
        "heartbeats.replication.enabled": "false",
        **(settings or {}),
    }
    path.write_text("".join(f"{key} = {value}\n" for key, value in lines.items()))
    if takes_source:
        with contextlib.suppress(ConnectionError, SparkMirrorError):
            _accept_source(path)
    return path


def _accept_source(path: Path) -> None:
    """As `sparkmirror clusters FILE --accept-source`, where another cluster was the source."""
    for flow in load_mm2_properties(str(path)).flows:
        agreed = agreed_source_id(flow)
        if not agreed:
            continue
        with contextlib.closing(ClusterClient(flow.source, "test")) as client:
            client.metadata([])
            if client.cluster_id != agreed:
                accept_source(flow, flow_clusters(flow))


def workers_of(processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    """The Python workers that pump (not Spark's daemon, their parent)."""
    daemons = [one for one in processes if "pyspark.daemon" in command_line(one)]
    return [one for one in daemons if one.ppid() in {parent.pid for parent in daemons}]


class MirrorProcess:
    """One `sparkmirror run`, or another `command` with a file; what it prints goes to a file."""

    def __init__(self, properties: Path, log: Path, *arguments: str, command: Sequence[str] = (COMMAND, "run")) -> None:
        self.log = log
        # A session of the tests' own may have set the workers' Python.
        environment = {key: value for key, value in os.environ.items() if key != "PYSPARK_PYTHON"}
        with log.open("ab") as out:
            self.process = subprocess.Popen(
                [*command, str(properties), *arguments],
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=environment,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill_all()
        if error is not None:
            print(self.log.read_text()[-6000:])

    def printed(self) -> list[dict[str, Any]]:
        """What `-o json` has printed, a line each."""
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]

    def family(self) -> list[psutil.Process]:
        """The process and all it started, workers too, though they have a group of their own."""
        try:
            root = psutil.Process(self.process.pid)
            return [root, *root.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def workers(self) -> list[psutil.Process]:
        """The Python workers that pump (not Spark's daemon, their parent)."""
        return workers_of(self.family())

    def kill_all(self) -> None:
        """SIGKILL to the driver, its JVM and every worker."""
        for one in self.family():
            with contextlib.suppress(psutil.NoSuchProcess):
                one.send_signal(signal.SIGKILL)
        self.process.wait()

    def terminate(self, timeout_s: float = 20.0) -> int:
        """SIGTERM to the driver alone; returns its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout_s)


def command_line(process: psutil.Process) -> str:
    """Of a process that may be gone by now."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def create_topic(
    bootstrap_servers: str,
    topic: str,
    partitions: int,
    configs: Mapping[str, str] | None = None,
    *,
    replication_factor: int = 1,
) -> None:
    """Create a topic."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap_servers)
    try:
        admin.create_topics([NewTopic(topic, partitions, replication_factor, topic_configs=dict(configs or {}))])
        admin.wait_for_topics([topic], timeout_ms=60_000)
    finally:
        admin.close()


def produce(
    bootstrap_servers: str,
    topic: str,
    partitions: int,
    records: int,
    *,
    codec: str | None = "lz4",
    size: int = 200,
    timestamp_ms: int | None = None,
) -> None:
    """Write numbered records, the same number to each partition."""
    producer = KafkaProducer(
        bootstrap_servers=bootstrap_servers, compression_type=codec, linger_ms=5, max_request_size=8 << 20
    )
    for number in range(records):
        producer.send(
            topic,
            key=None if number % 7 == 0 else b"key-%d" % number,
            value=None if number % 11 == 0 and number % 7 else (b"value-%d-" % number) + b"x" * size,
            headers=[("number", b"%d" % number)] if number % 3 == 0 else [],
            partition=number % partitions,
            timestamp_ms=timestamp_ms,
        )
    producer.flush()
    producer.close()


ANSWER_S = 60.0
"""So long brokers that are being restarted are asked again."""


def end_offsets(bootstrap_servers: str, topic: str, partitions: int) -> list[int]:
    """High watermarks; zeros while the topic is not there.

    By our own client: kafka-python's `topics()` now and then waits a minute for an answer (3.0.12).
    """
    client = ClusterClient(ClusterConfig(alias="any", bootstrap_servers=tuple(bootstrap_servers.split(","))), "test")
    deadline = time.monotonic() + ANSWER_S
    try:
        while True:
            try:
                found = _end_offsets(client, topic, partitions)
            except ConnectionError:
                found = None
            if found is not None:
                return found
            assert time.monotonic() < deadline, f"{topic} at {bootstrap_servers}: no end offsets in {ANSWER_S:.0f} s"
            time.sleep(0.2)
    finally:
        client.close()


def _end_offsets(client: ClusterClient, topic: str, partitions: int) -> list[int] | None:
    """None: to be asked again."""
    there = client.metadata([topic])[topic]
    if there.error == UNKNOWN_TOPIC:
        return [0] * partitions
    leaders = {index: there.partitions[index].leader for index in range(partitions) if index in there.partitions}
    if len(leaders) < partitions or min(leaders.values()) < 0:
        return None
    ends: dict[int, int] = {}
    for leader in set(leaders.values()):
        led = [index for index in range(partitions) if leaders[index] == leader]
        for (_, index), end in list_offsets(client, leader, {topic: led}, LATEST).items():
            if end.error:
                return None
            ends[index] = end.offset
    return [ends[index] for index in range(partitions)]


@contextlib.contextmanager
def load(
    bootstrap_servers: str, topic: str, partitions: int, *, per_s: int = 2000, age_ms: int = 0
) -> Iterator[threading.Event]:
    """Write records all the time; set the event (or leave the context) to end it."""
    stop = threading.Event()

    def write() -> None:
        producer = KafkaProducer(bootstrap_servers=bootstrap_servers, compression_type="lz4", linger_ms=5)
        number = 0
        while not stop.is_set():
            began = time.monotonic()
            for _ in range(per_s // 20):
                producer.send(
                    topic,
                    key=b"key-%d" % number,
                    value=b"value-%d-" % number + b"y" * 100,
                    partition=number % partitions,
                    timestamp_ms=int(time.time() * 1000) - age_ms if age_ms else None,
                )
                number += 1
            stop.wait(max(0.05 - (time.monotonic() - began), 0))
        producer.flush()
        producer.close()

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    try:
        yield stop
    finally:
        stop.set()
        thread.join(60)


PATIENCE = float(os.environ.get("SPARKMIRROR_TEST_PATIENCE", "1"))
"""Factor of `wait_for`'s limits, which are there against tests that hang: many tests at once starve each other."""


def wait_for(condition: Callable[[], bool], timeout_s: float, what: str) -> None:
    """Poll until `condition()` is true; fails the test when it takes too long, and prints what each thread does."""
    timeout_s *= PATIENCE
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            faulthandler.dump_traceback(2)
            raise AssertionError(f"not within {timeout_s:.0f} s: {what}")
        time.sleep(0.1)


def alter_topic(bootstrap_servers: str, topic: str, configs: Mapping[str, str]) -> None:
    """Set properties of a topic."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap_servers)
    try:
        admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, dict(configs))])
    finally:
        admin.close()
