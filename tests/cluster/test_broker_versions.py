"""What brokers of each age are taken for, and what is said of those that can't be used."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from lab import KafkaCluster

from sparkmirror.config import ClusterConfig
from sparkmirror.errors import ClusterTooOld
from sparkmirror.kafka.cluster.broker_versions import (
    PROTOCOL_VERSION_KEY,
    STATE_LIFETIME_KEYS,
    producer_state_ms,
    release,
    see_that_brokers_serve,
    too_old_as_source,
    too_old_as_target,
    weaker_guarantees,
)
from sparkmirror.kafka.cluster.client import ClusterClient, TopicLeaders
from sparkmirror.kafka.cluster.leader_epochs import EpochEnd, epoch_ends
from sparkmirror.kafka.wire.rpc import BrokerUnreachable, UnsupportedBroker
from sparkmirror.kafka.wire.topic_ids import NO_ID

PRODUCE, FETCH, ALTER_CONFIGS, QUOTAS, CLUSTER, PRODUCERS, TRANSACTIONS = 0, 1, 44, 49, 60, 61, 65

SPOKEN: dict[str, dict[int, int]] = {
    "0.11": {PRODUCE: 3, FETCH: 5},
    "1.0": {PRODUCE: 5, FETCH: 6},
    "1.1": {PRODUCE: 5, FETCH: 7},
    "2.0": {PRODUCE: 6, FETCH: 8},
    "2.1": {PRODUCE: 7, FETCH: 10},
    "2.3": {PRODUCE: 7, FETCH: 11, ALTER_CONFIGS: 0},
    "2.4": {PRODUCE: 8, FETCH: 11, ALTER_CONFIGS: 1},
    "2.7": {PRODUCE: 8, FETCH: 12, ALTER_CONFIGS: 1, QUOTAS: 0},
    "2.8": {PRODUCE: 9, FETCH: 12, ALTER_CONFIGS: 1, QUOTAS: 1, CLUSTER: 0, PRODUCERS: 0},
    "3.1": {PRODUCE: 9, FETCH: 13, ALTER_CONFIGS: 1, QUOTAS: 1, CLUSTER: 0, PRODUCERS: 0, TRANSACTIONS: 0},
}
"""The newest version of each request, as real brokers of these releases say (`tests/versions`)."""


class ModelBroker:
    """Speaks as a release does, and has these settings."""

    def __init__(self, name: str, **settings: str) -> None:
        self._spoken = SPOKEN[name]
        self._settings = {key.replace("_", "."): value for key, value in settings.items()}

    def speaks(self, api_key: int) -> int:
        return self._spoken.get(api_key, -1)

    def call(self, request: Any) -> Any:
        asked = request.resources[0].configuration_keys
        configs = [SimpleNamespace(name=key, value=self._settings.get(key)) for key in asked if key in self._settings]
        return SimpleNamespace(results=[SimpleNamespace(error_code=0, configs=configs)])


class ModelCluster:
    """A client of such brokers; None is one that can't be reached."""

    def __init__(self, *brokers: ModelBroker | None, topic_id: bytes = b"i" * 16) -> None:
        self.config = ClusterConfig(alias="T", bootstrap_servers=("127.0.0.1:1",))
        self._brokers = dict(enumerate(brokers, start=1))
        self._topic_id = topic_id
        self.hung_up: list[int] = []

    @property
    def brokers(self) -> tuple[int, ...]:
        return tuple(self._brokers)

    def metadata(self, topics: list[str]) -> dict[str, TopicLeaders]:
        return {topic: TopicLeaders(topic, self._topic_id, 0, {}) for topic in topics}

    def hang_up(self, node: int) -> None:
        self.hung_up.append(node)

    def broker(self, node: int) -> ModelBroker:
        broker = self._brokers[node]
        if broker is None:
            raise BrokerUnreachable("nobody is there")
        return broker


def model(*brokers: ModelBroker | None, topic_id: bytes = b"i" * 16) -> ClusterClient:
    return cast(ClusterClient, ModelCluster(*brokers, topic_id=topic_id))


@pytest.mark.parametrize("name", SPOKEN)
def test_a_broker_is_taken_for_the_release_that_knows_as_much(name: str) -> None:
    assert release(cast(Any, ModelBroker(name))) == name


def test_sources_from_1_0_and_targets_from_2_8() -> None:
    assert {name for name in SPOKEN if too_old_as_source(model(ModelBroker(name)))} == {"0.11"}
    targets = {name for name in SPOKEN if not too_old_as_target(model(ModelBroker(name)))}
    assert targets == {"2.8", "3.1"}
    (line,) = too_old_as_target(model(ModelBroker("2.8"), ModelBroker("2.4"), None))
    assert line == "broker 2: it speaks as Kafka 2.4 does, and a target must be Kafka 2.8 or newer"


def test_a_target_with_an_older_protocol_version_has_no_ids() -> None:
    old = ModelBroker("3.1", inter_broker_protocol_version="2.7-IV2")
    assert PROTOCOL_VERSION_KEY == "inter.broker.protocol.version"
    (line,) = too_old_as_target(model(old))
    assert line == (
        "broker 1: it speaks as Kafka 3.1 does, but its inter.broker.protocol.version is 2.7, and a target must give"
        " its topics ids: set 2.8 or newer on all brokers"
    )
    for value in ("2.8", "2.8-IV1", "3.9-IV0", "10.0"):
        assert not too_old_as_target(model(ModelBroker("3.1", inter_broker_protocol_version=value)))


def test_the_refusal_names_the_cluster_and_how_many_brokers() -> None:
    with pytest.raises(ClusterTooOld) as caught:
        see_that_brokers_serve(model(ModelBroker("1.0")), model(*[ModelBroker("2.7")] * 3))
    assert str(caught.value) == (
        "cluster T: broker 1: it speaks as Kafka 2.7 does, and a target must be Kafka 2.8 or newer"
        " (and 2 more of its brokers)"
    )
    assert caught.value.exit_code == 3


def test_what_old_sources_cant_tell_is_said() -> None:
    assert weaker_guarantees(model(ModelBroker("2.8")), ["t"]) == []
    (line,) = weaker_guarantees(model(ModelBroker("2.7"), topic_id=NO_ID), ["t"])
    assert line.startswith("its topics have no ids")
    epochs, ids = weaker_guarantees(model(ModelBroker("2.0"), ModelBroker("2.1"), topic_id=NO_ID), ["t"])
    assert epochs.startswith("brokers older than Kafka 2.1 (1): an unclean leader election")
    assert ids == line


def test_how_long_producers_are_remembered_is_read_of_every_broker() -> None:
    """Before Kafka 3.4 it is transactional.id.expiration.ms; while a cluster is upgraded the shortest counts."""
    assert STATE_LIFETIME_KEYS == ("producer.id.expiration.ms", "transactional.id.expiration.ms")
    old = ModelBroker("2.8", transactional_id_expiration_ms="3600000")
    new = ModelBroker("3.1", transactional_id_expiration_ms="1000", producer_id_expiration_ms="86400000")
    assert producer_state_ms(model(new)) == 86_400_000
    assert producer_state_ms(model(old)) == 3_600_000
    assert producer_state_ms(model(new, old, None)) == 3_600_000
    assert producer_state_ms(model(ModelBroker("2.8"))) is None


def test_a_late_answer_is_not_taken_for_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection to a broker that did not answer is closed."""
    slow, other = ModelBroker("3.1"), ModelBroker("3.1", producer_id_expiration_ms="1000")

    def call(_: object) -> None:
        raise ConnectionError("no answer")

    monkeypatch.setattr(slow, "call", call)
    cluster = ModelCluster(slow, other)
    assert producer_state_ms(cast(ClusterClient, cluster)) == 1_000
    assert cluster.hung_up == [1]


@pytest.mark.broker
def test_a_real_cluster_of_today_is_both(target_cluster: KafkaCluster) -> None:
    servers = tuple(target_cluster.bootstrap_servers.split(","))
    client = ClusterClient(ClusterConfig(alias="T", bootstrap_servers=servers), "test")
    try:
        assert too_old_as_source(client) == too_old_as_target(client) == []
        assert weaker_guarantees(client, ["__consumer_offsets"]) == []
        assert producer_state_ms(client) == 86_400_000
    finally:
        client.close()


# --- leader epochs, as old brokers tell them -----------------------------------------------------------


def ends(epoch: int, offset: int, error: int = 0) -> EpochEnd:
    """What a leader that answers so is understood to say of epoch 7."""
    part = SimpleNamespace(partition=0, leader_epoch=epoch, end_offset=offset, error_code=error)
    answer = SimpleNamespace(topics=[SimpleNamespace(topic="t", partitions=[part])])
    client = SimpleNamespace(ask=lambda leader, request: answer)
    return epoch_ends(cast(ClusterClient, client), 1, {("t", 0): 7})["t", 0]


def test_an_answer_without_an_epoch_is_about_the_one_asked_for() -> None:
    assert ends(-1, 100) == EpochEnd(7, 100, 0)
    assert ends(5, 100) == EpochEnd(5, 100, 0)
    assert ends(-1, -1) == EpochEnd(-1, -1, 0)
    assert ends(-1, -1, 6) == EpochEnd(-1, -1, 6)


def test_a_leader_that_tells_only_brokers_does_not_know() -> None:
    """CLUSTER_AUTHORIZATION_FAILED, before Kafka 2.1; or it lacks the request."""
    assert ends(-1, -1, 31) == EpochEnd(-1, -1, 0)

    def refuse(leader: int, request: Any) -> Any:
        raise UnsupportedBroker("no such request")

    client = cast(ClusterClient, SimpleNamespace(ask=refuse))
    assert epoch_ends(client, 1, {("t", 0): 7}) == {("t", 0): EpochEnd(-1, -1, 0)}
