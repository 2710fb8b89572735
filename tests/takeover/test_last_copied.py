"""A stored offset beyond what we have: a MirrorMaker 2's word, or our own on records that the target has lost since.

The loss itself: `tests/engine/test_unclean_elections.py`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewTopic
from lab import KafkaCluster

from sparkmirror.config import ClusterConfig
from sparkmirror.exact.position.route import PartitionPair
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.mirror.takeover import last_copied
from sparkmirror.mirror.takeover.last_copied import LastCopied, LastCopiedReader, OurEnd, Untold
from sparkmirror.mirror.takeover.log_bounds import Bounds, by_target_leader, read_bounds

pytestmark = pytest.mark.broker

COPIED, MORE = 10, 6
"""Records that we have copied and that are there; and those behind them, up to the stored offset."""
STORED = COPIED + MORE - 1
NOW_MS = int(time.time() * 1000)
Record = tuple[bytes, int, bytes]
"""Value, timestamp, header."""
THEIRS: list[Record] = [(b"%d" % number, NOW_MS - 60_000 + number, b"\x00\x01") for number in range(STORED + 1)]
ALTERED = [(value, at_ms, b"AAE=") for value, at_ms, _ in THEIRS]
"""As Connect's `SimpleHeaderConverter` leaves them."""
STRANGERS: list[Record] = [(b"stranger", NOW_MS + number, b"") for number in range(4)]


class Partition:
    """One at the source, with `THEIRS`, and its copy."""

    def __init__(self, source: KafkaCluster, target: KafkaCluster, topic: str) -> None:
        self._clusters = source, target
        self._route = PartitionPair(topic, f"A.{topic}", 0)
        self.source, self.target = (
            ClusterClient(ClusterConfig(alias=alias, bootstrap_servers=(cluster.bootstrap_servers,)), "test")
            for alias, cluster in (("A", source), ("B", target))
        )

    def make(self, copy: Sequence[Record], policy: str = "delete") -> None:
        topics = self._route.source_topic, self._route.target_topic
        for cluster, topic, records in zip(self._clusters, topics, (THEIRS, copy), strict=True):
            admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
            admin.create_topics([NewTopic(topic, 1, 1, topic_configs={"cleanup.policy": policy})])
            admin.wait_for_topics([topic], timeout_ms=60_000)
            admin.close()
            producer = KafkaProducer(bootstrap_servers=cluster.bootstrap_servers)
            for value, at_ms, header in records:
                sent = ("h", header)
                producer.send(topic, key=value, value=value, headers=[sent], partition=0, timestamp_ms=at_ms)
            producer.close()

    def find(self) -> LastCopied | Untold:
        (((both,),),) = (by_target_leader(self.source, self.target, [self._route], _fails).values(),)
        bounds = read_bounds(self.source, self.target, [both])[self._route]
        assert isinstance(bounds, Bounds)
        reader = LastCopiedReader(self.source, self.target, read_committed=False)
        try:
            return reader.find(both, bounds, STORED, None, OurEnd(COPIED, COPIED))
        except Untold as untold:
            return untold


def _fails(_: PartitionPair, reason: str) -> None:
    pytest.fail(reason)


@pytest.fixture
def partition(source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str) -> Iterator[Partition]:
    made = Partition(source_cluster, target_cluster, topic_name)
    yield made
    made.source.close()
    made.target.close()


@pytest.mark.parametrize("strangers", [STRANGERS, []])
def test_what_the_target_has_nothing_of_was_our_own_word(partition: Partition, strangers: list[Record]) -> None:
    """The source has nothing behind the stored offset: believed, it would leave out all that was lost."""
    partition.make([*THEIRS[:COPIED], *strangers])
    assert partition.find() == LastCopied(COPIED - 1, COPIED + len(strangers))


@pytest.mark.parametrize("copies", [THEIRS, ALTERED])
def test_what_the_target_has_is_a_mirror_makers_word(partition: Partition, copies: list[Record]) -> None:
    """Its header converter may have altered what it copied."""
    partition.make([*THEIRS[:COPIED], *copies[COPIED:]])
    assert partition.find() == LastCopied(STORED, STORED + 1)


def test_what_the_target_ends_with_is_enough(partition: Partition) -> None:
    partition.make([*THEIRS[:COPIED], ALTERED[STORED], *STRANGERS])
    assert partition.find() == LastCopied(STORED, COPIED + 1 + len(STRANGERS))


@pytest.mark.parametrize("copies", [THEIRS, ALTERED])
def test_where_the_target_lacks_the_last_but_not_all_it_cannot_be_told(
    partition: Partition, copies: list[Record]
) -> None:
    partition.make([*THEIRS[:COPIED], copies[COPIED], *STRANGERS])
    found = partition.find()
    assert isinstance(found, Untold)
    assert found.strange


def test_nor_can_it_where_a_cleaner_may_have_removed_some(partition: Partition) -> None:
    partition.make([*THEIRS[:COPIED], *STRANGERS], policy="compact")
    assert isinstance(partition.find(), Untold)


@pytest.mark.parametrize("limit", ["MOST_MISSING", "LONGEST_TAIL"])
def test_nor_is_it_believed_where_there_is_too_much_to_look_at_all(
    partition: Partition, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(last_copied, limit, 3)
    partition.make([*THEIRS[:COPIED], *STRANGERS])
    found = partition.find()
    assert isinstance(found, Untold)
    assert found.strange


@pytest.mark.parametrize("limit", ["MOST_MISSING", "LONGEST_TAIL"])
@pytest.mark.parametrize("copies", [THEIRS, ALTERED])
def test_the_end_is_enough_where_a_mirror_maker_copied_much(
    partition: Partition, monkeypatch: pytest.MonkeyPatch, limit: str, copies: list[Record]
) -> None:
    monkeypatch.setattr(last_copied, limit, 3)
    partition.make([*THEIRS[:COPIED], *copies[COPIED:]])
    assert partition.find() == LastCopied(STORED, STORED + 1)
