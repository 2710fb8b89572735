"""Groups of a real cluster: listed, read, committed for; many at once, live ones refused, old brokers' words too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from lab import KafkaCluster
from tests.support import mirror_process as mp
from tests.support.members import joined

from sparkmirror.config import ClusterConfig
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.kafka.cluster import coordinators as coordinators_module
from sparkmirror.kafka.cluster import groups as groups_module
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.groups import Committed, Groups
from sparkmirror.kafka.cluster.new_topics import NewTopicSpec
from sparkmirror.kafka.wire.rpc import RpcConnection

pytestmark = pytest.mark.broker

UNKNOWN_TOPIC, UNKNOWN_MEMBER = 3, 25


@pytest.fixture
def config(source_cluster: KafkaCluster) -> ClusterConfig:
    return ClusterConfig(alias="A", bootstrap_servers=(source_cluster.bootstrap_servers,))


@pytest.fixture
def groups(config: ClusterConfig) -> Iterator[Groups]:
    client = ClusterClient(config, "test")
    yield Groups(client)
    client.close()


@pytest.fixture
def topic(config: ClusterConfig, topic_name: str) -> str:
    admin = ClusterAdmin.connect(config, "test", 20.0)
    assert admin.create_topics([NewTopicSpec(topic_name, 3, 1)]) == {topic_name: None}
    mp.wait_for(lambda: topic_name in admin.topics([topic_name]), 60, "the broker knows it")
    admin.close()
    return topic_name


@pytest.mark.parametrize("words", ["new", "old"])
def test_many_groups_are_committed_for_read_and_listed(
    groups: Groups, topic: str, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    if words == "old":  # what brokers before Kafka 3.0 understand
        monkeypatch.setattr(groups_module, "SEVERAL_GROUPS", 99)
        monkeypatch.setattr(coordinators_module, "SEVERAL_KEYS", 99)
        monkeypatch.setattr(groups_module, "BY_NAME", 7)
        force_version(monkeypatch, 10, 3)
    monkeypatch.setattr(coordinators_module, "GROUPS_PER_REQUEST", 4)
    wanted = {f"{topic}-{number}": {(topic, 1): Committed(number, f"about {number}")} for number in range(10)}
    assert groups.commit(wanted) == {group: {(topic, 1): 0} for group in wanted}
    found = groups.committed([*wanted, f"{topic}-none"])
    assert found.offsets == {**wanted, f"{topic}-none": {}}
    assert found.refused == {}
    listed = groups.listed()
    assert {listed[group][1:] for group in wanted} == {("", "Empty", "classic")}


def test_no_broker_to_be_asked_is_not_a_cluster_without_groups(
    groups: Groups, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the controller has fenced them all for a moment: all groups would seem to be new."""
    groups.commit({topic: {(topic, 0): Committed(1)}})
    groups.listed()
    there, nobody = (1,), iter([(), ()])
    monkeypatch.setattr(ClusterClient, "brokers", property(lambda _: next(nobody, there)))
    monkeypatch.setattr(coordinators_module, "PAUSE_S", 0.01)
    assert topic in groups.listed()
    monkeypatch.setattr(ClusterClient, "brokers", ())
    monkeypatch.setattr(groups_module, "PATIENCE_S", 0.05)
    with pytest.raises(ClusterUnreachable, match="listing its groups failed"):
        groups.listed()


def force_version(monkeypatch: pytest.MonkeyPatch, api_key: int, newest: int) -> None:
    real = RpcConnection.version

    def version(self: RpcConnection, key: int, ours: tuple[int, int], name: str) -> int:
        return real(self, key, (ours[0], min(ours[1], newest) if key == api_key else ours[1]), name)

    monkeypatch.setattr(RpcConnection, "version", version)


def test_a_live_group_is_left_alone_and_a_missing_partition_named(
    groups: Groups, topic: str, source_cluster: KafkaCluster
) -> None:
    with closing(joined(source_cluster.bootstrap_servers, topic, topic)):
        mp.wait_for(lambda: groups.listed()[topic].state == "Stable", 60, "the group is stable")
        assert groups.commit({topic: {(topic, 0): Committed(7)}}) == {topic: {(topic, 0): UNKNOWN_MEMBER}}
    assert groups.committed([topic]).offsets == {topic: {}}
    outcome = groups.commit({topic: {(topic, 0): Committed(7), (topic, 9): Committed(1), ("none", 0): Committed(1)}})
    assert outcome == {topic: {(topic, 0): 0, (topic, 9): UNKNOWN_TOPIC, ("none", 0): UNKNOWN_TOPIC}}
    assert groups.committed([topic]).offsets == {topic: {(topic, 0): Committed(7)}}


class Moving(ClusterClient):
    """Tells groups' coordinators, and each answers once or more that it isn't."""

    def __init__(self, config: ClusterConfig, api_key: int, code: int, times: int) -> None:
        super().__init__(config, "test")
        self.api_key, self.code, self.times = api_key, code, times

    def ask(self, node_id: int, request: Any, *, newest: int | None = None) -> Any:
        answer = super().ask(node_id, request, newest=newest)
        if self.api_key == type(request).API_KEY and self.times:
            self.times -= 1
            for group in [one for name in ("groups", "coordinators") for one in getattr(answer, name, None) or ()]:
                if hasattr(group, "error_code"):
                    group.error_code = self.code
            for part in [part for one in getattr(answer, "topics", None) or () for part in one.partitions]:
                part.error_code = self.code
            if hasattr(answer, "error_code"):
                answer.error_code = self.code
        return answer


@pytest.mark.parametrize("api_key", [8, 9, 10, 16], ids=["commit", "fetch", "coordinator", "list"])
@pytest.mark.parametrize("code", [14, 15, 16])
def test_coordinators_that_move_are_looked_for_again(
    config: ClusterConfig, topic: str, monkeypatch: pytest.MonkeyPatch, api_key: int, code: int
) -> None:
    monkeypatch.setattr(coordinators_module, "PAUSE_S", 0.01)
    client = Moving(config, api_key, code, times=3)
    groups = Groups(client)
    try:
        assert groups.commit({topic: {(topic, 0): Committed(4)}}) == {topic: {(topic, 0): 0}}
        assert groups.committed([topic]).offsets == {topic: {(topic, 0): Committed(4)}}
        assert topic in groups.listed()
        assert client.times == 0
    finally:
        client.close()


class WithADeadBroker(ClusterClient):
    """The first of its brokers can't be reached."""

    @property
    def brokers(self) -> tuple[int, ...]:
        known = super().brokers
        return (99, *known) if known else ()


def test_coordinators_are_found_by_any_broker(config: ClusterConfig, topic: str) -> None:
    client = WithADeadBroker(config, "test")
    try:
        assert Groups(client).commit({topic: {(topic, 0): Committed(4)}}) == {topic: {(topic, 0): 0}}
        with pytest.raises(ConnectionError, match="has no broker 99 now"):
            Groups(client).listed()
    finally:
        client.close()


@pytest.mark.parametrize("api_key", [9, 10], ids=["fetch", "coordinator"])
def test_a_group_that_may_not_be_read_is_named(config: ClusterConfig, topic: str, api_key: int) -> None:
    client = Moving(config, api_key, 30, times=1)
    try:
        found = Groups(client).committed([topic])
        assert found.offsets == {}
        assert "GROUP_AUTHORIZATION_FAILED" in found.refused[topic]
    finally:
        client.close()


@pytest.mark.parametrize("api_key", [9, 16], ids=["fetch", "list"])
def test_one_that_stays_away_is_an_error_and_no_empty_answer(
    config: ClusterConfig, topic: str, monkeypatch: pytest.MonkeyPatch, api_key: int
) -> None:
    for module in (groups_module, coordinators_module):
        monkeypatch.setattr(module, "PATIENCE_S", 0.5)
    client = Moving(config, api_key, 16, times=1000)
    groups = Groups(client)
    with pytest.raises(ClusterUnreachable, match=r"cluster A: .* failed: NOT_COORDINATOR"):
        groups.listed() if api_key == 16 else groups.committed([topic])
    client.close()
