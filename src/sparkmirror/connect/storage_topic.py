"""One of Connect's storage topics, read and written as Connect does.

The topic is created as Connect creates it, read to its end and then followed, and written by key.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence

from kafka.partitioner.default import murmur2

from sparkmirror.config import ClusterConfig
from sparkmirror.errors import ClusterUnreachable, SparkMirrorError
from sparkmirror.events import Event
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog

log = logging.getLogger(__name__)

Record = tuple[bytes, bytes | None]
Take = Callable[[bytes | None, bytes | None, int], object]
"""Function that takes a record's key, value and offset."""

_WAIT_MS = 500
_RETRY_S = 1.0
_CATCH_UP_S = 30.0
"""Connect's `READ_WRITE_TOTAL_TIMEOUT_MS`."""


class StorageTopic:
    """Storage topic whose records go to `take`, in each partition's order.

    After `start`, one thread for each partition calls `take`.
    """

    def __init__(
        self,
        cluster: ClusterConfig,
        name: str,
        take: Take,
    ) -> None:
        self.name = name
        self._cluster = cluster
        self._take = take
        self._writing = threading.Lock()
        self._moved = threading.Condition()
        self._positions: dict[int, int] = {}
        self._troubles: dict[int, str] = {}
        self._closing = threading.Event()
        role = f"sparkmirror-connect|{name}"
        self._reader, self._writer = ClusterClient(cluster, role), ClusterClient(cluster, role)
        self._out = TopicLog(self._writer, name)
        self._threads: list[threading.Thread] = []

    def create(self, partitions: int, replication_factor: int, factor_key: str) -> None:
        """Create the topic, compacted, if missing. Raises `ClusterUnreachable`."""
        with ClusterAdmin.connect(self._cluster, "sparkmirror-connect") as admin:
            admin.create_compacted_topic(self.name, partitions, replication_factor, factor_key=factor_key)

    def start(self) -> None:
        """Read the topic to its end, then follow in the background.

        Raises `SparkMirrorError`.
        """
        ends = self._read_all()
        self._positions.update(ends)
        for partition, offset in ends.items():
            thread = threading.Thread(
                target=self._follow, args=(partition, offset), name=f"{self.name}-{partition}", daemon=True
            )
            self._threads.append(thread)
            thread.start()

    @property
    def trouble(self) -> str:
        """Reason if the topic can't be followed now; else empty."""
        return next(iter(self._troubles.copy().values()), "")

    def append(self, records: Sequence[Record]) -> None:
        """Write records, and return once the records were read again.

        Raises `ConnectionError` or `SparkMirrorError`.
        """
        with self._writing:
            partitions = self._out.partitions
            ends: dict[int, int] = {}
            for partition in range(partitions):
                own = [record for record in records if _partition(record[0], partitions) == partition]
                if own:
                    ends[partition] = self._out.append(partition, own) + len(own)
        self._wait(ends)

    def catch_up(self) -> None:
        """Return once all the topic's present records were read.

        Raises `ConnectionError` or `SparkMirrorError`.
        """
        with self._writing:
            ends = {partition: self._out.end(partition) for partition in range(self._out.partitions)}
        self._wait(ends)

    def close(self) -> None:
        """Stop following, and close the connections."""
        self._closing.set()
        for thread in self._threads:
            thread.join(2 * _WAIT_MS / 1000)
        self._reader.close()
        self._writer.close()

    def _read_all(self) -> dict[int, int]:
        """Read to the end; return the next offset by partition.

        Failures are retried for `_CATCH_UP_S`.
        """
        deadline = time.monotonic() + _CATCH_UP_S
        while True:
            try:
                source = TopicLog(self._reader, self.name)
                return {partition: self._read(source, partition, 0) for partition in range(source.partitions)}
            except (ConnectionError, SparkMirrorError) as error:
                if time.monotonic() > deadline:
                    if isinstance(error, SparkMirrorError):
                        raise
                    raise ClusterUnreachable(f"cluster {self._cluster.alias}: {error}") from error
                self._closing.wait(_RETRY_S)

    def _wait(self, ends: dict[int, int]) -> None:
        def reached() -> bool:
            return all(self._positions.get(partition, 0) >= end for partition, end in ends.items())

        with self._moved:
            if not self._moved.wait_for(reached, _CATCH_UP_S):
                raise ConnectionError(
                    f"topic {self.name}: written records could not be read again in {_CATCH_UP_S:.0f} s"
                )

    def _read(self, source: TopicLog, partition: int, offset: int, wait_ms: int = 0) -> int:
        entries, following = source.read(partition, offset, wait_ms=wait_ms)
        for entry in entries:
            self._take(entry.key, entry.value, entry.offset)
        return following

    def _follow(self, partition: int, offset: int) -> None:
        """Follow one partition from `offset` on.

        Each partition has its own connection, since the wait for a partition must not delay another. Any failure is
        retried, because no other thread reads the partition.
        """
        client = ClusterClient(self._cluster, f"sparkmirror-connect|{self.name}")
        source = TopicLog(client, self.name)
        while not self._closing.is_set():
            try:
                offset = self._read(source, partition, offset, _WAIT_MS)
                self._troubles.pop(partition, None)
            except Exception as error:
                self._note_trouble(partition, error)
                self._closing.wait(_RETRY_S)
                continue
            with self._moved:
                self._positions[partition] = offset
                self._moved.notify_all()
        client.close()

    def _note_trouble(self, partition: int, error: Exception) -> None:
        """Keep the reason why a partition can't be followed, and log a new reason."""
        expected = isinstance(error, ConnectionError | SparkMirrorError)
        reason = f"{type(error).__name__}: the log of this process has more"
        trouble = str(error) if expected else f"topic {self.name} can't be followed: {reason}"
        if trouble != self._troubles.get(partition):
            log.warning("%s", trouble, exc_info=None if expected else error, extra=Event.STORAGE_TOPIC_UNREADABLE.extra)
        self._troubles[partition] = trouble


def _partition(key: bytes, partitions: int) -> int:
    """Return the partition that Java's producer would choose for the key."""
    return int(murmur2(key) & 0x7FFFFFFF) % partitions
