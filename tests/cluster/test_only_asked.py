"""Brokers that answer about other things than they were asked: passed over, or an error that is tried again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from hostile_broker import Asked, HostileBroker, framed, honest, leads
from kafka.protocol.admin import DescribeProducersResponse
from kafka.protocol.consumer import (
    FetchResponse,
    ListOffsetsResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetForLeaderEpochResponse,
)
from kafka.protocol.metadata import MetadataResponse
from tests.support.copied_flow import built

from sparkmirror.config import ClusterConfig
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.exact.durable.identity import Identity
from sparkmirror.exact.position.log_probe import LogProbe
from sparkmirror.kafka.cluster import client as client_module
from sparkmirror.kafka.cluster import coordinators as coordinators_module
from sparkmirror.kafka.cluster import list_offsets as list_offsets_module
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.fetch_once import FetchBounds, fetch_once
from sparkmirror.kafka.cluster.groups import Groups
from sparkmirror.kafka.cluster.leader_epochs import epoch_ends
from sparkmirror.kafka.cluster.list_offsets import LATEST, list_offsets, offsets_by_leader
from sparkmirror.kafka.cluster.log_tail import TailUnread
from sparkmirror.kafka.cluster.producers import describe_producers
from sparkmirror.kafka.wire.answer_bounds import LISTING
from sparkmirror.kafka.wire.rpc import BrokerUnreachable

GROUP = OffsetFetchResponse.OffsetFetchResponseGroup


@pytest.fixture
def broker() -> Iterator[HostileBroker]:
    hostile = HostileBroker()
    yield hostile
    hostile.close()


@pytest.fixture
def client(broker: HostileBroker) -> Iterator[ClusterClient]:
    config = ClusterConfig(alias="A", bootstrap_servers=(f"127.0.0.1:{broker.port}",))
    asking = ClusterClient(config, "test")
    asking.metadata([])
    yield asking
    asking.close()


def says(broker: HostileBroker, answer: Any) -> None:
    """The broker's only answer from now on to requests of the answer's kind."""

    def instead(asked: Asked) -> Iterable[bytes] | None:
        if f"{asked.name}Response" != answer.name:
            return None
        return [framed(asked, bytes(answer.encode(version=asked.version)))]

    broker.answer = instead


def test_metadata_of_other_topics(broker: HostileBroker, client: ClusterClient) -> None:
    topic = MetadataResponse.MetadataResponseTopic
    says(
        broker,
        MetadataResponse(
            brokers=[], cluster_id="c", topics=[topic(name=name, partitions=[leads(9, 0)]) for name in ("a", "other")]
        ),
    )
    assert client.metadata(["a"]).keys() == {"a"}
    with pytest.raises(BrokerUnreachable, match="its answer to Metadata leaves out b"):
        client.metadata(["a", "b"])


def test_offsets_of_other_partitions(broker: HostileBroker, client: ClusterClient) -> None:
    topic = ListOffsetsResponse.ListOffsetsTopicResponse
    part = topic.ListOffsetsPartitionResponse
    listed = [part(partition_index=at, error_code=0, timestamp=-1, offset=5, leader_epoch=0) for at in (0, 7)]
    says(broker, ListOffsetsResponse(topics=[topic(name=name, partitions=listed) for name in ("t", "other")]))
    assert list_offsets(client, 1, {"t": [0]}, LATEST).keys() == {("t", 0)}
    with pytest.raises(BrokerUnreachable, match=r"its answer to ListOffsets leaves out \('t', 1\)"):
        list_offsets(client, 1, {"t": [0, 1]}, LATEST)
    assert not client.connections


def test_producers_of_other_partitions(broker: HostileBroker, client: ClusterClient) -> None:
    topic = DescribeProducersResponse.TopicResponse
    part = topic.PartitionResponse
    says(
        broker, DescribeProducersResponse(topics=[topic(name="t", partitions=[part(partition_index=7, error_code=0)])])
    )
    with pytest.raises(BrokerUnreachable, match=r"its answer to DescribeProducers leaves out \('t', 0\)"):
        describe_producers(client, 1, {"t": [0]})


def test_epochs_of_other_partitions(broker: HostileBroker, client: ClusterClient) -> None:
    topic = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult
    part = topic.EpochEndOffset
    ends = [part(error_code=0, partition=at, leader_epoch=3, end_offset=9) for at in (0, 7)]
    says(broker, OffsetForLeaderEpochResponse(topics=[topic(topic="t", partitions=ends)]))
    assert epoch_ends(client, 1, {("t", 0): 3}).keys() == {("t", 0)}
    with pytest.raises(BrokerUnreachable, match=r"its answer to OffsetForLeaderEpoch leaves out \('t', 1\)"):
        epoch_ends(client, 1, {("t", 1): 3})


def test_records_of_other_partitions(broker: HostileBroker, client: ClusterClient) -> None:
    topic = FetchResponse.FetchableTopicResponse
    parts = [topic.PartitionData(partition_index=at, high_watermark=9, records=b"x" * at) for at in (7, 2, 2)]
    says(broker, FetchResponse(responses=[topic(topic="t", topic_id=None, partitions=parts)]))
    reply = fetch_once(client, 1, {("t", 2): 0}, {"t": bytes(16)}, FetchBounds(1 << 20, 1 << 20, 0))
    assert [(part.partition, len(part.records)) for part in reply.parts] == [(2, 2)]


def test_offsets_of_many_groups_are_asked_for_in_halves(broker: HostileBroker, client: ClusterClient) -> None:
    """One answer for all of them would be too large."""
    sizes: list[int] = []

    def answer(asked: Asked) -> Iterable[bytes] | None:
        if asked.name != "OffsetFetch":
            return None
        request = OffsetFetchRequest.decode(asked.data, version=asked.version, header=True)
        sizes.append(len(request.groups))
        if len(request.groups) > 2:
            return [(LISTING + 1).to_bytes(4, "big")]
        fetched = OffsetFetchResponse(groups=[GROUP(group_id=each.group_id, topics=[]) for each in request.groups])
        return [framed(asked, bytes(fetched.encode(version=asked.version)))]

    broker.answer = answer
    names = [f"g{number}" for number in range(7)]
    assert [found for found, _, _ in Groups(client)._fetch(1, names)] == names  # noqa: SLF001 - below the coordinators
    assert sizes == [7, 4, 2, 2, 3, 2, 1]


@pytest.mark.parametrize(
    "host", ["a..b", "x" * 70, "\ud800".encode("utf-8", "surrogatepass").decode("latin1"), "", "[::1"]
)
def test_a_host_that_is_none(broker: HostileBroker, client: ClusterClient, host: str) -> None:
    answer = MetadataResponse(
        brokers=[MetadataResponse.MetadataResponseBroker(node_id=9, host=host, port=9)], cluster_id="c", topics=[]
    )
    says(broker, answer)
    client.metadata([])
    with pytest.raises(BrokerUnreachable):
        client.broker(9)
    client.metadata([])


def test_hosts_without_number_are_not_all_tried(
    broker: HostileBroker, client: ClusterClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[tuple[str, int]] = []

    def dead(host: str, port: int, **_: Any) -> Any:
        tried.append((host, port))
        raise BrokerUnreachable("nobody there")

    brokers = [MetadataResponse.MetadataResponseBroker(node_id=at, host="127.0.0.9", port=at) for at in range(5000)]
    says(broker, MetadataResponse(brokers=brokers, cluster_id="c", topics=[]))
    client.metadata([])
    monkeypatch.setattr(client, "_dial", dead)
    monkeypatch.setattr(client_module, "PATIENCE_S", -1.0)
    with pytest.raises(ClusterUnreachable, match="nobody there"):
        client.metadata([])
    assert tried == [("127.0.0.1", broker.port)]


def test_the_honest_answer_is_read(broker: HostileBroker, client: ClusterClient) -> None:
    assert client.metadata(["t"])["t"].partitions.keys() == {0, 1, 2}
    assert broker.asked == ["Metadata", "Metadata"]
    assert honest(Asked("ListGroups", 3, 1, b"", 1))


def test_a_coordinator_that_always_points_elsewhere(
    broker: HostileBroker, client: ClusterClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinators_module, "PATIENCE_S", 0.5)
    fetched = OffsetFetchResponse(error_code=16, groups=[GROUP(group_id="g", error_code=16, topics=[])])
    says(broker, fetched)
    with pytest.raises(ClusterUnreachable, match="failed: NOT_COORDINATOR"):
        Groups(client).committed(["g"])
    assert len(broker.asked) < 50


def test_a_leader_that_always_points_elsewhere(
    broker: HostileBroker, client: ClusterClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(list_offsets_module, "_MOVING_S", 0.5)
    topic = ListOffsetsResponse.ListOffsetsTopicResponse
    part = topic.ListOffsetsPartitionResponse(partition_index=0, error_code=6, timestamp=-1, offset=-1, leader_epoch=0)
    says(broker, ListOffsetsResponse(topics=[topic(name="t", partitions=[part])]))
    assert offsets_by_leader(client, [("t", 0)], LATEST) == {}
    assert len(broker.asked) < 50


def test_a_search_ends_when_an_answer_leads_back(broker: HostileBroker, client: ClusterClient) -> None:
    topic = FetchResponse.FetchableTopicResponse
    part = topic.PartitionData(partition_index=0, high_watermark=1 << 40, records=built([b"x"] * 10))
    says(broker, FetchResponse(responses=[topic(topic="t", topic_id=None, partitions=[part])]))
    probe = LogProbe(client, 1, {"t": bytes(16)}, Identity("c", 1, 0))
    with pytest.raises(TailUnread, match="t-0: the tail of the log can't be read"):
        list(probe._from(("t", 0), 10))  # noqa: SLF001 - below each search
    assert broker.asked.count("Fetch") == 1
