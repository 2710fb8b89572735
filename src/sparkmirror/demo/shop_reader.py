"""A consumer group that reads the shop's topics, each record once and in order.

What a group has read is kept as a digest for each partition. A second reader makes the same digests of the whole logs.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Iterable
from typing import Any

from kafka import KafkaConsumer, TopicPartition

from sparkmirror.demo.shop import SHOP
from sparkmirror.errors import CopyIncomplete

_POLL_MS = 200
_STOP_S = 30.0


class Digests:
    """Number and digest of records, by topic and partition."""

    def __init__(self) -> None:
        self._hashes: dict[tuple[str, int], Any] = {}
        self.records = 0

    def add(self, records: Iterable[Any]) -> None:
        """Add records, in their order."""
        for record in records:
            digest = self._hashes.setdefault((record.topic, record.partition), hashlib.sha256())
            digest.update(b"%r %r %d" % (record.key, record.value, record.timestamp))
            self.records += 1

    def of_partitions(self) -> dict[tuple[str, int], str]:
        """Return each partition's digest."""
        return {place: digest.hexdigest() for place, digest in self._hashes.items()}


class ShopReader:
    """One group with one member, which reads at one cluster at a time."""

    def __init__(self, group: str) -> None:
        self._group = group
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self.seen = Digests()

    def open(self, bootstrap_servers: str) -> None:
        """Join the group at a cluster, and read on in the background."""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(bootstrap_servers,), name=self._group, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Commit and leave the group.

        Raises the error that ended the reading before.
        """
        self._stop.set()
        if self._thread is not None:
            self._thread.join(_STOP_S)
            self._thread = None
        error, self._error = self._error, None
        if error is not None:
            raise error

    def wait_for(self, records: int, patience_s: float) -> None:
        """Wait until this many records are read.

        Raises `CopyIncomplete` if none comes for `patience_s`.
        """
        best, until = -1, 0.0
        while (read := self.seen.records) < records:
            if read > best:
                best, until = read, time.monotonic() + patience_s
            if self._error is not None or time.monotonic() > until:
                raise CopyIncomplete(f"group {self._group} has read {read:,} of {records:,} records, and gets no more")
            time.sleep(_POLL_MS / 1000)

    def _run(self, bootstrap_servers: str) -> None:
        try:
            consumer = KafkaConsumer(
                bootstrap_servers=bootstrap_servers,
                group_id=self._group,
                auto_offset_reset="earliest",
                enable_auto_commit=False,
            )
            try:
                consumer.subscribe([topic.name for topic in SHOP])
                while not self._stop.is_set():
                    for records in consumer.poll(timeout_ms=_POLL_MS).values():
                        self.seen.add(records)
                    consumer.commit()
            finally:
                consumer.close(autocommit=False)
        except BaseException as error:  # raised again in the thread that closes the reader
            self._error = error


def read_logs(bootstrap_servers: str, ends: dict[tuple[str, int], int]) -> Digests:
    """Read whole logs, up to these ends, without a group."""
    whole = Digests()
    consumer = KafkaConsumer(bootstrap_servers=bootstrap_servers, group_id=None, auto_offset_reset="earliest")
    try:
        parts = [TopicPartition(topic, partition) for (topic, partition), end in ends.items() if end]
        consumer.assign(parts)
        consumer.seek_to_beginning(*parts)
        while any(consumer.position(part) < ends[part.topic, part.partition] for part in parts):
            for records in consumer.poll(timeout_ms=_POLL_MS).values():
                whole.add(records)
    finally:
        consumer.close()
    return whole
