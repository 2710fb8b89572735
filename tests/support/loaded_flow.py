"""A flow A->B of one topic that is written to all the time, for tests of what breaks under it."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from bench.records import TopicReader
from lab import KafkaCluster
from tests.support import mirror_process as mp

PARTITIONS = 4


@contextlib.contextmanager
def running(cluster: KafkaCluster) -> Iterator[None]:
    """A cluster for the tests of one module; its logs stay in pytest's directory."""
    cluster.start()
    try:
        yield
    finally:
        cluster.cleanup(keep_logs=True)


class LoadedFlow:
    """The topic, the file that mirrors it, and processes on that file.

    Files and logs are in `directory`; `settings` are added to the file.
    """

    def __init__(
        self,
        source: KafkaCluster,
        target: KafkaCluster,
        topic: str,
        directory: Path,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.source = source
        self.target = target
        self.topic = topic
        self.directory = directory
        mp.create_topic(source.bootstrap_servers, topic, PARTITIONS)
        self.properties = self.write_properties("mm2.properties", target.bootstrap_servers, settings)

    def write_properties(self, name: str, target: str, settings: Mapping[str, str] | None = None) -> Path:
        """Another file for the same flow, that finds the target elsewhere or has other settings."""
        return mp.write_properties(self.directory / name, self.source.bootstrap_servers, target, self.topic, settings)

    def load(self, *, age_ms: int = 0) -> AbstractContextManager[threading.Event]:
        """Write to the topic for the length of a `with`; its records are `age_ms` old."""
        return mp.load(self.source.bootstrap_servers, self.topic, PARTITIONS, age_ms=age_ms)

    def start(self, *arguments: str, log: str = "mirror", properties: Path | None = None) -> mp.MirrorProcess:
        """One more process; `arguments` are the command's."""
        return mp.MirrorProcess(properties or self.properties, self.directory / f"{log}.log", *arguments)

    def wait_for_progress(self, timeout_s: float = 60.0) -> None:
        """Wait until the target has more than it has now."""
        before = self._copied()
        mp.wait_for(lambda: self._copied() > before, timeout_s, f"fresh records in A.{self.topic}")

    def moved_in(self, seconds: float) -> bool:
        """Whether anything is added in that time."""
        before = self._copied()
        time.sleep(seconds)
        return self._copied() > before

    def _copied(self) -> int:
        return sum(mp.end_offsets(self.target.direct_servers, f"A.{self.topic}", PARTITIONS))

    def finish(self, properties: Path | None = None, timeout_s: float = 90.0) -> None:
        """Copy the rest, and compare both logs record by record."""
        with self.start("--once", log="last", properties=properties) as mirror:
            assert mirror.process.wait(timeout_s) == 0, mirror.log.read_text()[-3000:]
        assert_copied(self.source, self.target, {self.topic: f"A.{self.topic}"})


def assert_copied(
    source: KafkaCluster, target: KafkaCluster, topics: Mapping[str, str], records: int | None = None
) -> None:
    """Compare every record of logs without gaps, and count them; any number but none is right if none is given.

    Their batches need not be the same: tiny ones of a backlog are merged.
    """
    found = 0
    for topic, remote in topics.items():
        ours = TopicReader(source.bootstrap_servers, topic)
        theirs = TopicReader(target.bootstrap_servers, remote)
        copies = theirs.contents()
        for partition, part in ours.contents().items():
            copy = copies[partition]
            assert (copy.records, copy.digest, copy.offsets) == (part.records, part.digest, part.offsets), (
                f"{remote}-{partition}: {copy.records} of {part.records} records, "
                f"{ours.first_difference(theirs, partition)} equal at first"
            )
            assert part.offsets == part.records
            found += part.records
        partitions = len(copies)
        assert mp.end_offsets(source.direct_servers, topic, partitions) == mp.end_offsets(
            target.direct_servers, remote, partitions
        )
    assert found == records if records is not None else found > 0
