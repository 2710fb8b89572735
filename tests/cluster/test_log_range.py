"""An answer without a batch below a log's end is no proof that there is none: old data may be slow to come."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import cast

import pytest
from tests.support.built import Content, source_batches

from sparkmirror.kafka.cluster import log_range, log_samples
from sparkmirror.kafka.cluster.client import ClusterClient, PartitionLeader, TopicLeaders
from sparkmirror.kafka.cluster.fetch_once import FetchBounds, FetchReply
from sparkmirror.kafka.cluster.log_range import RangeDamaged, RangeUnread, read_batches
from sparkmirror.kafka.cluster.log_samples import batches_at
from sparkmirror.kafka.wire.fetch_session import FetchedPartition
from sparkmirror.kafka.wire.pieces import RawRecord
from sparkmirror.kafka.wire.topic_partition import TopicPartition

CLIENT = cast("ClusterClient", SimpleNamespace(config=SimpleNamespace(alias="A")))
TOPIC = TopicLeaders("orders", bytes(16), 0, {0: PartitionLeader(7, 1), 1: PartitionLeader(7, 1)})


def batch(offset: int) -> bytes:
    """Of one record."""
    ((_, view),) = source_batches([Content(2, 0, [RawRecord(offset, 5, b"k", b"v", ())], offset + 1)])
    return bytes(view)


@dataclass
class PlayedLog:
    """Batches of one record each, up to the high watermark; so many first answers come without any."""

    offsets: tuple[int, ...]
    end: int
    stable: int = -1
    slow: int = 0
    damaged: int = -1
    """Offset of a batch whose bytes are none."""

    def read(self, offset: int, read_committed: bool) -> bytes:
        if self.slow:
            self.slow -= 1
            return b""
        end = self.stable if read_committed else self.end
        return b"".join(bytes(61) if one == self.damaged else batch(one) for one in self.offsets if offset <= one < end)


@dataclass
class PlayedLeader:
    logs: dict[TopicPartition, PlayedLog] = field(default_factory=dict)
    asked: int = 0

    def fetch(
        self,
        client: ClusterClient,
        leader: int,
        offsets: Mapping[TopicPartition, int],
        topic_ids: Mapping[str, bytes],
        bounds: FetchBounds,
        *,
        read_committed: bool = False,
    ) -> FetchReply:
        self.asked += 1
        return FetchReply(0, False, self._parts(dict(offsets), read_committed))

    def _parts(self, offsets: Mapping[TopicPartition, int], read_committed: bool) -> Iterator[FetchedPartition]:
        for (topic, partition), offset in offsets.items():
            log = self.logs[topic, partition]
            records = memoryview(log.read(offset, read_committed))
            yield FetchedPartition(topic, partition, offset, 0, log.end, log.stable, 0, records, None)


@dataclass
class PlayedTime:
    """Passes while somebody sleeps."""

    now_s: float = 0.0

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


@pytest.fixture
def leader(monkeypatch: pytest.MonkeyPatch) -> PlayedLeader:
    played = PlayedLeader()
    for module in (log_range, log_samples):
        monkeypatch.setattr(module, "fetch_once", played.fetch)
    monkeypatch.setattr(log_range, "time", PlayedTime())
    return played


def read(read_committed: bool = False) -> list[int]:
    batches = read_batches(CLIENT, TOPIC, 0, 0, read_committed=read_committed)
    return [one.header.base_offset for one in batches]


@pytest.mark.parametrize("slow", [0, 1, 5])
def test_a_slow_log_is_read_to_its_end(leader: PlayedLeader, slow: int) -> None:
    leader.logs["orders", 0] = PlayedLog((0, 1, 5), 6, slow=slow)
    assert read() == [0, 1, 5]


@pytest.mark.parametrize("read_committed", [False, True])
def test_a_log_that_stays_silent_is_unread(leader: PlayedLeader, read_committed: bool) -> None:
    leader.logs["orders", 0] = PlayedLog((0, 1, 5), 6, stable=6, slow=9999)
    with pytest.raises(RangeUnread, match="cluster A: orders-0 at offset 0: no record comes, though its end is 6"):
        read(read_committed)


def test_what_a_cleaner_took_before_an_open_transaction_is_no_riddle(leader: PlayedLeader) -> None:
    """Offsets 2 to 4; the transaction begins at 5."""
    leader.logs["orders", 0] = PlayedLog((0, 1, 5), 6, stable=5)
    assert read(read_committed=True) == [0, 1]
    assert leader.asked == 3
    leader.logs["orders", 0] = PlayedLog((0, 1, 5), 6, stable=5, slow=2)
    assert read(read_committed=True) == [0, 1]


def test_bytes_that_are_no_batch_are_told_with_their_place(leader: PlayedLeader) -> None:
    leader.logs["orders", 0] = PlayedLog((0, 1, 5), 6, damaged=1)
    with pytest.raises(RangeDamaged, match="cluster A: orders-0 at offset 1: a batch of 12 bytes"):
        read()


def sampled(wanted: Mapping[TopicPartition, int], read_committed: bool = False) -> tuple[list[tuple[int, int]], str]:
    """Partition and offset of each sample, and what is damaged."""
    damaged: list[str] = []
    samples = batches_at(
        CLIENT,
        {"orders": TOPIC},
        wanted,
        read_committed=read_committed,
        damaged=lambda partition, error: damaged.append(f"{partition[1]}: {error}"),
    )
    return [(index, one.header.base_offset) for (_, index), one, _ in samples], "".join(damaged)


BOTH: dict[TopicPartition, int] = {("orders", 0): 0, ("orders", 1): 0}


@pytest.mark.parametrize("slow", [0, 1, 5])
def test_a_slow_partition_is_sampled_after_the_others(leader: PlayedLeader, slow: int) -> None:
    leader.logs = {("orders", 0): PlayedLog((1,), 2, slow=slow), ("orders", 1): PlayedLog((0, 1), 2)}
    samples, _ = sampled(BOTH)
    assert sorted(samples) == [(0, 1), (1, 0)]


def test_a_partition_that_stays_silent_is_unread(leader: PlayedLeader) -> None:
    leader.logs = {("orders", 0): PlayedLog((1,), 2, slow=9999), ("orders", 1): PlayedLog((0, 1), 2)}
    with pytest.raises(RangeUnread, match="cluster A: orders-0 at offset 0: no record comes"):
        sampled(BOTH)


def test_a_sample_before_an_open_transaction(leader: PlayedLeader) -> None:
    leader.logs = {("orders", 0): PlayedLog((5,), 6, stable=5), ("orders", 1): PlayedLog((0,), 1, stable=1)}
    assert sampled(BOTH, read_committed=True) == ([(1, 0)], "")


def test_a_damaged_partition_keeps_no_other_from_being_sampled(leader: PlayedLeader) -> None:
    leader.logs = {("orders", 0): PlayedLog((0,), 1, damaged=0), ("orders", 1): PlayedLog((0,), 1)}
    assert sampled(BOTH) == ([(1, 0)], "0: a batch of 12 bytes")
