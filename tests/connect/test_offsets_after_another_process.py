"""Offsets of a stopped connector, while another process that has copied its flow may still store them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import cast

import mirror_process as mp
import pytest
from tests.connect.connectors import quick_connectors, specs, worker_file

from sparkmirror.config import FlowConfig
from sparkmirror.connect import offsets
from sparkmirror.connect.connector_model import Offset
from sparkmirror.connect.errors import RestError
from sparkmirror.connect.flows import read_flows
from sparkmirror.connect.offset_store import OffsetStore
from sparkmirror.connect.offsets import ConnectorOffsets
from sparkmirror.demo import KafkaCluster
from sparkmirror.engine.leadership import lease_of
from sparkmirror.engine.lease import Lease
from sparkmirror.engine.mirror import Mirror
from sparkmirror.formats.connect_files import ConnectorRole
from sparkmirror.messages.control import control_topic

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
