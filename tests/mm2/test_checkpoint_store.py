"""Which checkpoints are written (`mm2.md` 3.7), with the cases of Java's CheckpointStoreTest."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from sparkmirror.config import ClusterConfig
from sparkmirror.exact.mm2.checkpoint_store import CheckpointStore
from sparkmirror.exact.mm2.record_formats import Checkpoint
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import LogEntry, LogUnavailable, TopicLog


class InventedLog(TopicLog):
    """One partition in memory."""

    def __init__(self, entries: Sequence[tuple[bytes | None, bytes | None]] = (), error: int = 0) -> None:
        super().__init__(ClusterClient(ClusterConfig(alias="B", bootstrap_servers=("nowhere:1",)), "test"), "topic")
        self.entries = list(entries)
        self.error = error

    def read_some(self, partition: int, offset: int, *, wait_ms: int = 0) -> tuple[list[LogEntry], int, bool]:
        if self.error:
            raise LogUnavailable(self.topic, "it can't be read", self.error)
        found = [LogEntry(at, *self.entries[at]) for at in range(offset, min(offset + 2, len(self.entries)))]
        return found, offset + len(found), offset + len(found) < len(self.entries)

    def append(
        self, partition: int, entries: Sequence[tuple[bytes, bytes | None]], *, timestamp_ms: int | None = None
    ) -> int:
        if self.error:
            raise LogUnavailable(self.topic, "a record was refused", self.error)
        self.entries += entries
        return len(self.entries) - len(entries)


def checkpoint(upstream: int, downstream: int, group: str = "group", topic: str = "A.t") -> Checkpoint:
    return Checkpoint(group=group, topic=topic, partition=0, upstream=upstream, downstream=downstream)


def written(*checkpoints: Checkpoint) -> InventedLog:
    return InventedLog([(one.key(), one.value()) for one in checkpoints])


def loaded(log: InventedLog) -> CheckpointStore:
    store = CheckpointStore(log)
    store.load()
    return store


@pytest.mark.parametrize(
    ("upstream", "downstream", "due"),
    [
        (250, 201, False),
        (250, 176, False),
        (370, 176, False),
        (400, 376, True),
        (300, 201, False),
        (249, 100, True),
        (249, 300, True),
    ],
)
def test_a_checkpoint_never_goes_back_unless_its_group_did(upstream: int, downstream: int, due: bool) -> None:
    store = loaded(written(checkpoint(100, 90), checkpoint(250, 201)))
    assert store.is_due(checkpoint(upstream, downstream)) is due


def test_the_first_one_of_a_group_or_a_partition_is_written() -> None:
    store = loaded(written(checkpoint(250, 201)))
    assert store.is_due(checkpoint(1, 1, group="other"))
    assert store.is_due(checkpoint(1, 1, topic="A.other"))


def test_one_beyond_the_log_of_a_topic_made_again_is_replaced() -> None:
    store = loaded(written(checkpoint(250, 201)))
    assert not store.is_due(checkpoint(250, 20), log_end=201)
    assert store.is_due(checkpoint(250, 20), log_end=200)


def test_what_the_exact_map_contradicts_is_replaced() -> None:
    """The topic was created again, and the source had fewer records left for it: 250 is at 20 now, in a longer log."""
    store = loaded(written(checkpoint(250, 201)))
    assert not store.is_due(checkpoint(250, 20), log_end=400)
    assert store.is_due(checkpoint(250, 20), log_end=400, exact=True)
    assert not store.is_due(checkpoint(250, 201), log_end=400, exact=True)
    assert not store.is_due(checkpoint(300, 201), log_end=400, exact=True), "only markers between"


def test_what_is_no_checkpoint_is_left_out() -> None:
    log = written(checkpoint(1, 1))
    log.entries += [(b"k", b"v"), (checkpoint(2, 2).key(), None), (None, None), (checkpoint(3, 3).key(), b"\0\1")]
    assert loaded(log).of("group", [("A.t", 0)]) == {("A.t", 0): checkpoint(1, 1)}


def test_what_was_not_written_durably_is_due_again() -> None:
    log = written()
    store = loaded(log)
    log.error = 19
    with pytest.raises(ConnectionError):
        store.write([checkpoint(5, 5)])
    assert store.is_due(checkpoint(5, 5))
    log.error = 0
    store.write([checkpoint(5, 5)])
    assert not store.is_due(checkpoint(5, 5))
    assert loaded(log).of("group", [("A.t", 0)]) == {("A.t", 0): checkpoint(5, 5)}


def test_a_topic_that_may_not_be_read_counts_as_empty(caplog: pytest.LogCaptureFixture) -> None:
    log = written(checkpoint(250, 201))
    log.error = 29
    store = loaded(log)
    assert store.is_due(checkpoint(1, 1))
    assert "may be older than the stored ones" in caplog.text


def test_a_topic_that_cant_be_read_now_is_read_later() -> None:
    log = written(checkpoint(250, 201))
    log.error = 6
    store = CheckpointStore(log)
    with pytest.raises(ConnectionError):
        store.load()
    log.error = 0
    store.load()
    assert not store.is_due(checkpoint(250, 201))
