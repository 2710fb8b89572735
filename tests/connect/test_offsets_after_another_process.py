"""Offsets of a stopped connector, while another process that has copied its flow may still store them."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from lab import KafkaCluster
from tests.support import mirror_process as mp
from tests.support.connectors import quick_connectors, specs, worker_file

from sparkmirror.config import FlowConfig
from sparkmirror.config.formats.connect_files import ConnectorRole
from sparkmirror.connect import offset_store, offsets
from sparkmirror.connect.connector_model import Offset
from sparkmirror.connect.errors import RestError
from sparkmirror.connect.flows import read_flows
from sparkmirror.connect.offset_store import OffsetStore
from sparkmirror.connect.offsets import ConnectorOffsets
from sparkmirror.errors import ClusterTrouble
from sparkmirror.exact.mm2.stored_offsets import stored_entries
from sparkmirror.kafka.cluster.client import ClusterClient, TopicLeaders
from sparkmirror.kafka.cluster.log_range import RangeUnread
from sparkmirror.kafka.wire.rpc import BrokerUnreachable
from sparkmirror.mirror.engine.leadership import lease_of
from sparkmirror.mirror.engine.lease import Lease
from sparkmirror.mirror.engine.mirror import Mirror
from sparkmirror.pump.messages.control import control_topic

pytestmark = pytest.mark.broker

MSC = "mm2-msc"


@pytest.fixture
def flow(source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str) -> FlowConfig:
    servers = source_cluster.bootstrap_servers, target_cluster.bootstrap_servers
    config = quick_connectors(*servers, topic_name, "")[MSC] | {"source.cluster.alias": topic_name}
    file = worker_file({"offset.storage.topic": f"connect-offsets-{topic_name}"})
    (flow,) = read_flows(specs({MSC: config}), file).config.flows
    return flow


@pytest.fixture
def holder(flow: FlowConfig) -> Iterator[Lease]:
    """The part of the other process."""
    mp.create_topic(flow.target.bootstrap_servers[0], control_topic(flow.source.alias), 1)
    lease = lease_of(flow)
    lease.start()
    mp.wait_for(lease.held, 30, "the lease")
    yield lease
    lease.release()


def store(flow: FlowConfig, offset: int, *partitions: int) -> list[Offset]:
    entries: list[Offset] = [
        ({"cluster": flow.mm2_source, "partition": index, "topic": "orders"}, {"offset": offset})
        for index in partitions
    ]
    with OffsetStore(flow, MSC, ConnectorRole.SOURCE) as stored:
        stored.write(entries)
    return entries


def read(flow: FlowConfig, ended: set[str]) -> list[Offset]:
    registry = SimpleNamespace(is_changing=lambda _: False, last_failure=lambda *_: "")
    mirror = cast("Mirror", SimpleNamespace(drivers=[], registry=registry))
    return ConnectorOffsets(mirror, flow, MSC, ConnectorRole.SOURCE, ended=ended).read()


def test_they_are_read_when_the_other_process_has_stored_them_all(flow: FlowConfig, holder: Lease) -> None:
    """It writes one partition after the other, and gives the lease up then."""
    store(flow, 383, 0, 1)
    store(flow, 1499, 1)

    def last_turn() -> None:
        time.sleep(1.0)
        store(flow, 1499, 0)
        holder.release()

    ending = threading.Thread(target=last_turn)
    ending.start()
    ended: set[str] = set()
    assert [offset for _, offset in read(flow, ended)] == [{"offset": 1499}] * 2
    ending.join()
    assert ended == {flow.name}


def test_they_are_no_answer_while_it_works_on(flow: FlowConfig, holder: Lease, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offsets, "SETTLED_S", 0.5)
    store(flow, 383, 0)
    ended: set[str] = set()
    with pytest.raises(RestError, match="another process works on it, so that its last offsets may not be stored"):
        read(flow, ended)
    assert holder.held()
    assert not ended


def test_nobody_has_worked_on_a_flow_without_topics(flow: FlowConfig) -> None:
    entries = store(flow, 7, 0)
    assert read(flow, set()) == entries


@pytest.mark.parametrize("error", [RangeUnread, BrokerUnreachable])
def test_a_topic_whose_leaders_are_not_ready_is_read_again(
    flow: FlowConfig, monkeypatch: pytest.MonkeyPatch, error: type[ClusterTrouble]
) -> None:
    """As of a new topic, or while a broker goes."""
    entries = store(flow, 7, 0)
    tries: list[str] = []

    def not_ready_at_first(client: ClusterClient, topic: TopicLeaders) -> Iterator[Any]:
        tries.append(topic.name)
        if len(tries) < 3:
            raise error("NOT_LEADER_FOR_PARTITION (6)")
        return stored_entries(client, topic)

    monkeypatch.setattr(offset_store, "stored_entries", not_ready_at_first)
    assert read(flow, set()) == entries
    assert len(tries) == 3
    monkeypatch.setattr(offset_store, "_READ_AGAIN_S", 0.0)
    tries.clear()
    with pytest.raises(error):
        read(flow, set())


def test_a_topic_that_can_not_be_described_is_no_empty_one(flow: FlowConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offset_store, "_READ_AGAIN_S", 0.0)
    metadata = ClusterClient.metadata

    def refused(client: ClusterClient, topics: Iterable[str]) -> dict[str, TopicLeaders]:
        described = metadata(client, topics)
        return {name: dataclasses.replace(topic, error=29, partitions={}) for name, topic in described.items()}

    monkeypatch.setattr(ClusterClient, "metadata", refused)
    with (
        OffsetStore(flow, MSC, ConnectorRole.SOURCE) as stored,
        pytest.raises(RangeUnread, match=r"TOPIC_AUTHORIZATION_FAILED"),
    ):
        stored.read()
