"""Leaders that are remembered between two questions about the same partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest

from sparkmirror.kafka.cluster import list_offsets as module
from sparkmirror.kafka.cluster.client import PartitionLeader, TopicLeaders
from sparkmirror.kafka.cluster.list_offsets import LATEST, KnownLeaders, ListedOffset, offsets_by_leader
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.rpc import BrokerUnreachable
from sparkmirror.kafka.wire.topic_partition import TopicPartition

PARTITIONS = [("t", 0), ("t", 1)]


class PlayedLeaders:
    """A cluster in which the test moves leaders."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.leaders = {0: 1, 1: 2}
        self.away: set[int] = set()
        self.brokers: tuple[int, ...] = (1, 2)
        self.metadata_read = 0
        monkeypatch.setattr(module, "list_offsets", self._list)

    def metadata(self, topics: Iterable[str]) -> dict[str, TopicLeaders]:
        self.metadata_read += 1
        found = {partition: PartitionLeader(leader, 0) for partition, leader in self.leaders.items()}
        return {topic: TopicLeaders(topic, b"", 0, found) for topic in topics}

    def _list(self, _: Any, leader: int, asked: Mapping[str, Sequence[int]], *__: object, **___: object) -> Any:
        if leader in self.away:
            raise BrokerUnreachable("away")
        return {
            (topic, index): ListedOffset(10 * leader + index, 0)
            if self.leaders.get(index) == leader
            else ListedOffset(-1, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            for topic, indexes in asked.items()
            for index in indexes
        }


class Asker:
    """Who asks again and again."""

    def __init__(self, cluster: PlayedLeaders) -> None:
        self.cluster = cluster
        self.known = KnownLeaders()

    def ask(self, partitions: Sequence[TopicPartition] = PARTITIONS) -> dict[TopicPartition, int]:
        client: Any = self.cluster
        return offsets_by_leader(client, partitions, LATEST, known=self.known)


@pytest.fixture
def asker(monkeypatch: pytest.MonkeyPatch) -> Asker:
    return Asker(PlayedLeaders(monkeypatch))


def test_leaders_are_read_once(asker: Asker) -> None:
    assert [asker.ask() for _ in range(3)] == [{("t", 0): 10, ("t", 1): 21}] * 3
    assert asker.cluster.metadata_read == 1


def test_a_moved_leader_is_found_at_once(asker: Asker) -> None:
    asker.ask()
    asker.cluster.leaders[1] = 1
    assert asker.ask() == {("t", 0): 10, ("t", 1): 11}
    assert asker.ask() == {("t", 0): 10, ("t", 1): 11}


def test_a_partition_without_a_leader_is_looked_for_each_time(asker: Asker) -> None:
    asker.cluster.leaders[1] = -1
    assert asker.ask() == asker.ask() == {("t", 0): 10}
    asker.cluster.leaders[1] = 2
    assert asker.ask() == {("t", 0): 10, ("t", 1): 21}


def test_a_new_partition_is_asked_for(asker: Asker) -> None:
    asker.ask()
    asker.cluster.leaders[2] = 2
    assert asker.ask([*PARTITIONS, ("t", 2)]) == {("t", 0): 10, ("t", 1): 21, ("t", 2): 22}


def test_after_a_broken_connection_the_leaders_are_read_again(asker: Asker) -> None:
    asker.ask()
    asker.cluster.away.add(2)
    with pytest.raises(ConnectionError):
        asker.ask()
    asker.cluster.leaders[1] = 1
    assert asker.ask() == {("t", 0): 10, ("t", 1): 11}


def test_a_broker_that_the_client_does_not_know_has_the_leaders_read_again(asker: Asker) -> None:
    """Each question may go over another client."""
    asker.ask()
    asker.cluster.brokers = ()
    asker.ask()
    assert asker.cluster.metadata_read == 2
