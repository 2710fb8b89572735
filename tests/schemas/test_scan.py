"""A damaged batch is a failure of its partition: the others are scanned."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import cast

import pytest
from tests.support.built import Content, source_batches

from sparkmirror.kafka.cluster import log_range, log_samples
from sparkmirror.kafka.cluster.client import ClusterClient, PartitionLeader, TopicLeaders
from sparkmirror.kafka.cluster.fetch_once import FetchReply
from sparkmirror.kafka.wire.fetch_session import FetchedPartition
from sparkmirror.kafka.wire.pieces import RawRecord
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.schemas import scan as scans
from sparkmirror.schemas.scan import Scan, TopicField

LEADERS = TopicLeaders("t", bytes(16), 0, {index: PartitionLeader(1, 1) for index in range(3)})
DAMAGED = 1


def whole(client: ClusterClient) -> Scan:
    return scans.scan_whole(client, ["t"], read_committed=False, tell=lambda *_: None)


def sample(client: ClusterClient) -> Scan:
    return scans.scan_sample(client, ["t"], 2, read_committed=False, tell=lambda *_: None)


@pytest.mark.parametrize("scan", [whole, sample])
def test_a_damaged_log(scan: Callable[[ClusterClient], Scan], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of partition 1 the first bytes are no batch."""
    ((_, view),) = source_batches([Content(2, 0, [RawRecord(0, 5, b"k", b"\0\0\0\0\7v", ())], 1)])

    def fetch(_: object, __: int, offsets: Mapping[TopicPartition, int], *___: object, **____: object) -> FetchReply:
        parts = [
            FetchedPartition(*at, offset, 0, 1, 1, 0, memoryview(bytes(61)) if at[1] == DAMAGED else view, None)
            for at, offset in offsets.items()
        ]
        return FetchReply(0, False, iter(parts))

    for module in (log_range, log_samples):
        monkeypatch.setattr(module, "fetch_once", fetch)
    monkeypatch.setattr(scans, "log_ends", lambda *_, **__: {("t", index): (0, 1) for index in range(3)})
    client = SimpleNamespace(config=SimpleNamespace(alias="A"), metadata=lambda topics: {"t": LEADERS})
    seen = scan(cast("ClusterClient", client))
    assert seen.parts[TopicField("t", "value")].with_id == 2
    assert seen.unread["t"].startswith("partition 1: ")
    assert seen.unread["t"].endswith("a batch of 12 bytes")
