"""One topic under load and one mirror that keeps running, while the brokers on either side become other versions."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import topics
from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError
from lab import KafkaCluster
from outcomes import Outcomes
from tests.support import mirror_process as mp

TOPIC = "t-load"
PARTITIONS = 4

_PER_S = 300
_FIRST = 100
_RECOVERY_S = 180
_CATCH_UP_S = 180
_VERBS_S = 240
_ASKING_S = 60


class UpgradeFlow:
    """The flow, its mirror running while the context lasts; `title` is what its outcomes are kept by.

    Clusters run already; the topic has a replica on each of the source's brokers.
    """

    def __init__(self, title: str, source: KafkaCluster, target: KafkaCluster, directory: Path) -> None:
        self.outcomes = Outcomes(title)
        self._source, self._target = source, target
        self._directory = directory
        self._mirror: mp.MirrorProcess | None = None
        replicas = len(source.brokers)
        mp.create_topic(source.bootstrap_servers, TOPIC, PARTITIONS, replication_factor=replicas)
        servers = source.bootstrap_servers, target.bootstrap_servers
        settings = {"replication.factor": str(len(target.brokers))}
        self._file = mp.write_properties(directory / "mm2.properties", *servers, TOPIC, settings)

    def __enter__(self) -> UpgradeFlow:
        self._mirror = mp.MirrorProcess(self._file, self._directory / "mirror.log")
        # Its topics are created by now: a cluster that lacks a broker just then refuses three replicas.
        mp.produce(self._source.bootstrap_servers, TOPIC, PARTITIONS, _FIRST)
        mp.wait_for(lambda: self._arrived() >= _FIRST, _RECOVERY_S, "the first records")
        return self

    def __exit__(self, *exception: object) -> None:
        if self._mirror is not None:
            self._mirror.kill_all()
            if exception[1] is not None:
                print(self._mirror.log.read_text()[-6000:])

    @contextmanager
    def phase(self, name: str) -> Iterator[list[str]]:
        """Write while what is in the `with` is done, then until what was written after it has arrived."""
        with self.outcomes.cell(name) as words:
            began = time.monotonic()
            with mp.load(self._source.bootstrap_servers, TOPIC, PARTITIONS, per_s=_PER_S):
                yield words
            # A producer that has seen its brokers change may have given up; the next one knows only the new ones.
            with mp.load(self._source.bootstrap_servers, TOPIC, PARTITIONS, per_s=_PER_S):
                written = sum(ends(self._source.bootstrap_servers, TOPIC)) + _PER_S
                mp.wait_for(lambda: self._arrived() >= written, _RECOVERY_S, f"{name}: records written afterwards")
            words.append(f"{time.monotonic() - began:.0f} s, {self._arrived():,} records so far")

    def finish(self) -> None:
        """All is there, once and in order, the ledger is empty, verify finds nothing; fails if a phase did."""
        with self.outcomes.cell("contents") as words:
            assert self._mirror is not None
            everything = sum(ends(self._source.bootstrap_servers, TOPIC))
            mp.wait_for(lambda: self._arrived() >= everything, _CATCH_UP_S, "the rest")
            assert self._mirror.terminate(60) == 0, self._mirror.log.read_text()[-600:]
            copies = topics.read(self._target.bootstrap_servers, f"A.{TOPIC}")
            differs = topics.difference(topics.read(self._source.bootstrap_servers, TOPIC), copies)
            assert not differs, differs
            words.append(f"{sum(map(len, copies.values())):,} records")
        with self.outcomes.cell("losses"):
            listed = self._sparkmirror("losses")
            assert listed.stdout.strip() == "nothing was lost", listed.stdout + listed.stderr[-600:]
        with self.outcomes.cell("verify"):
            verified = self._sparkmirror("verify")
            assert verified.returncode == 0, verified.stdout[-600:] + verified.stderr[-600:]
            assert "equal: " in verified.stdout, verified.stdout[-600:]
        self.outcomes.finish()

    def _arrived(self) -> int:
        assert self._mirror is not None
        assert self._mirror.process.poll() is None, "the mirror has ended"
        return sum(ends(self._target.bootstrap_servers, f"A.{TOPIC}"))

    def _sparkmirror(self, verb: str) -> subprocess.CompletedProcess[str]:
        command = [mp.COMMAND, verb, str(self._file)]
        return subprocess.run(command, capture_output=True, text=True, timeout=_VERBS_S, check=False)


def ends(servers: str, topic: str) -> list[int]:
    """Return the end of each partition; nothing while the topic is not there. Asks again while brokers restart."""
    deadline = time.monotonic() + _ASKING_S
    while True:
        try:
            return _ends(servers, topic)
        except (KafkaError, OSError):
            assert time.monotonic() < deadline, f"{topic} at {servers}: no end offsets in {_ASKING_S} s"
            time.sleep(0.5)


def _ends(servers: str, topic: str) -> list[int]:
    consumer = KafkaConsumer(bootstrap_servers=servers, enable_auto_commit=False)
    try:
        parts = [TopicPartition(topic, index) for index in sorted(consumer.partitions_for_topic(topic) or ())]
        return list(consumer.end_offsets(parts).values()) if parts else []
    finally:
        consumer.close()
