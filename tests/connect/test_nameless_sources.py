"""Connectors over REST whose source has an empty alias: MirrorMaker 2's old way to keep names (`config.aliases`)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import pytest
from lab import KafkaCluster
from tests.connect.served_worker import ServedWorker
from tests.support import mirror_process as mp
from tests.support.connectors import quick_connectors, read, specs, worker_file
from tests.support.in_memory_api import in_memory_api
from tests.support.rest_cases import connector

from sparkmirror.config import IDENTITY_POLICY, FlowConfig
from sparkmirror.config.formats.connect_files import ConnectorRole
from sparkmirror.connect.connector_model import Offset, TargetState
from sparkmirror.connect.errors import RestError
from sparkmirror.connect.flows import read_flows
from sparkmirror.connect.offset_store import OffsetStore
from sparkmirror.connect.offsets import ConnectorOffsets, ZeroOffsets
from sparkmirror.mirror.engine.mirror import Mirror

EMPTY = {"source.cluster.alias": "", "replication.policy.separator": ""}
MSC, CPC, HBC = "mm2-msc", "mm2-cpc", "mm2-hbc"


def connectors(source: str = "source:9092", target: str = "target:9092", topics: str = "orders") -> dict[str, Any]:
    return {name: config | EMPTY for name, config in quick_connectors(source, target, topics, "").items()}


@pytest.mark.parametrize("names", [(MSC,), (MSC, CPC), (CPC, HBC, MSC)])
def test_they_are_one_flow_that_keeps_names(names: tuple[str, ...]) -> None:
    flows = read_flows(specs({name: connectors()[name] for name in names}), worker_file())
    (flow,) = flows.config.flows
    assert (flow.name, flow.mm2_source, flow.mm2_target) == ("unnamed->mskdest", "", "mskdest")
    assert (flow.replication_policy_class, flow.connect.connector) == (IDENTITY_POLICY, MSC)
    assert {name: part.failure or part.note for name, part in flows.parts.items()} == dict.fromkeys(names, "")
    (said,) = [line for line in flows.config.warnings if "alias" in line]
    assert said.startswith("connector mm2-msc: source.cluster.alias: is empty, and replication.policy.separator too")


def test_a_heartbeat_connector_alone() -> None:
    flows = read_flows(specs({HBC: connectors()[HBC]}), worker_file())
    (beat,) = flows.config.beats
    assert (beat.mm2_source, flows.parts[HBC].failure) == ("", "")


def test_with_a_separator_it_says_why_not() -> None:
    config = {MSC: {**connectors()[MSC], "replication.policy.separator": "."}}
    failure = read_flows(specs(config), worker_file()).parts[MSC].failure
    assert "source.cluster.alias: is empty, so that MirrorMaker 2 would call the copy of orders .orders" in failure


def test_one_that_says_something_else_is_to_blame() -> None:
    config = connectors()
    config[CPC]["source.cluster.alias"] = "unnamed"
    flows = read_flows(specs(config), worker_file())
    assert "it can have one value only" in flows.parts[CPC].failure
    assert not flows.parts[MSC].failure
    config[CPC]["source.cluster.alias"] = "us"
    for part in (parts := read_flows(specs(config), worker_file()).parts)[MSC], parts[CPC]:
        assert "source.cluster.alias is us in mm2-cpc and empty in mm2-msc: write the same for one flow" in part.note


def test_none_is_not_empty() -> None:
    config = connectors()
    del config[MSC]["source.cluster.alias"]
    assert "is missing: write the source's alias" in read_flows(specs(config), worker_file()).parts[MSC].failure


@pytest.mark.parametrize("kind", ["Source", "Checkpoint", "Heartbeat"])
def test_it_can_be_put(kind: str) -> None:
    with in_memory_api() as api:
        assert api.ask("PUT", "/connectors/shop/config", connector(kind, "a:1", "b:1") | EMPTY)[0] == 201


class StubStore:
    """Connect's offsets topic as a list; each connector's own."""

    stored: ClassVar[list[Offset]] = []

    def __init__(self, *_: object) -> None:
        """Whatever flow, connector and role."""

    def __enter__(self) -> StubStore:
        return self

    def __exit__(self, *_: object) -> None:
        """There is nothing to close."""

    def read(self) -> list[Offset]:
        return self.stored

    def write(self, offsets: Iterable[Offset]) -> None:
        self.stored.extend(offsets)


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> list[Offset]:
    monkeypatch.setattr(StubStore, "stored", [])
    monkeypatch.setattr("sparkmirror.connect.offsets.OffsetStore", StubStore)
    return StubStore.stored


def flow_of(**more: str) -> FlowConfig:
    config = {MSC: connectors()[MSC] | {key.replace("_", "."): value for key, value in more.items()}}
    (flow,) = read_flows(specs(config), worker_file()).config.flows
    return flow


def registry_of(is_changing: Callable[[str], bool], failure: str = "") -> SimpleNamespace:
    return SimpleNamespace(is_changing=is_changing, last_failure=lambda *_: failure)


@pytest.mark.parametrize("alias", ["", "us"])
def test_offsets_of_a_copy_that_runs_stand_under_the_alias(stored: list[Offset], alias: str) -> None:
    flow = flow_of(source_cluster_alias=alias)
    stored.append(({"cluster": alias, "partition": 0, "topic": "orders"}, {"offset": 5}))
    driver = SimpleNamespace(name=flow.name, flow=flow, view=SimpleNamespace(copied={("orders", 0): 8, ("more", 1): 3}))
    registry = registry_of(lambda _: False, failure="of the driver before")
    mirror = cast("Mirror", SimpleNamespace(drivers=[driver], registry=registry))
    assert ConnectorOffsets(mirror, flow, MSC, ConnectorRole.SOURCE).read() == [
        ({"cluster": alias, "partition": 0, "topic": "orders"}, {"offset": 8}),
        ({"cluster": alias, "partition": 1, "topic": "more"}, {"offset": 3}),
    ]


def test_offsets_of_a_copy_that_ends_are_read_when_it_has_stored_them(stored: list[Offset]) -> None:
    """Its view was told of the last records late, and its last turn writes one partition after the other."""
    flow = flow_of(source_cluster_alias="us")
    before, after = ({"cluster": "us", "partition": 0, "topic": "orders"}, {"offset": 246}), {"offset": 1_499}
    stored.append(before)
    view = SimpleNamespace(copied={("orders", 0): 624})
    drivers = [SimpleNamespace(name=flow.name, flow=flow, view=view)]
    turns = iter((True, True, False))

    def is_changing(name: str) -> bool:
        assert name == flow.name
        changing = next(turns)
        if not changing:
            drivers.clear()
            stored[0] = before[0], after
        return changing

    mirror = cast("Mirror", SimpleNamespace(drivers=drivers, registry=registry_of(is_changing)))
    assert ConnectorOffsets(mirror, flow, MSC, ConnectorRole.SOURCE, use_lease=False).read() == [(before[0], after)]


@pytest.mark.parametrize(
    ("changing", "failure", "why"),
    [(True, "", "has not ended yet"), (False, "no leader", "its last offsets: no leader")],
)
def test_offsets_that_are_not_stored_are_no_answer(
    stored: list[Offset], monkeypatch: pytest.MonkeyPatch, *, changing: bool, failure: str, why: str
) -> None:
    monkeypatch.setattr("sparkmirror.connect.offsets.SETTLED_S", 0.1)
    flow = flow_of(source_cluster_alias="us")
    stored.append(({"cluster": "us", "partition": 0, "topic": "orders"}, {"offset": 246}))
    mirror = cast("Mirror", SimpleNamespace(drivers=[], registry=registry_of(lambda _: changing, failure)))
    with pytest.raises(RestError, match=why):
        ConnectorOffsets(mirror, flow, MSC, ConnectorRole.SOURCE, use_lease=False).read()


@pytest.mark.parametrize(
    ("alias", "wrong", "named"),
    [("", "unnamed", "a source whose alias is empty"), ("us", "", "us"), ("us", "eu", "us")],
)
def test_offsets_of_another_alias_are_none_of_its(stored: list[Offset], alias: str, wrong: str, named: str) -> None:
    offsets = ConnectorOffsets(
        cast("Mirror", SimpleNamespace(drivers=[])), flow_of(source_cluster_alias=alias), MSC, ConnectorRole.SOURCE
    )
    with pytest.raises(ValueError, match=f"copies from {named}, and has no partition"):
        offsets.alter([({"cluster": wrong, "partition": 0, "topic": "orders"}, {"offset": 5})])
    assert stored == []


@pytest.mark.parametrize(("source", "target"), [("", "mskdest"), ("us", ""), ("", ""), ("us", "eu")])
def test_heartbeats_offsets_name_both_as_they_are(stored: list[Offset], source: str, target: str) -> None:
    flow = flow_of(source_cluster_alias=source, target_cluster_alias=target)
    ZeroOffsets().store(flow, HBC, ConnectorRole.HEARTBEAT, None)
    assert stored == [({"sourceClusterAlias": source, "targetClusterAlias": target}, {"offset": 0})]


@pytest.mark.full
@pytest.mark.broker
@pytest.mark.spark
def test_offsets_over_rest(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    """On from what a real MirrorMaker 2 stored under the empty alias; read, altered and reset under it."""
    source, target, topic = source_cluster.bootstrap_servers, target_cluster.bootstrap_servers, topic_name
    now_ms = int(time.time() * 1000)
    for servers in (source, target):  # a copy has its records' timestamps
        mp.create_topic(servers, topic, 1)
        mp.produce(servers, topic, 1, 100, timestamp_ms=now_ms)
    mp.produce(source, topic, 1, 50)
    three = connectors(source, target, topic)
    group = f"{topic}-group"
    served = ServedWorker(source_cluster, target_cluster, group, tmp_path)
    partition = {"cluster": "", "partition": 0, "topic": topic}
    (flow,) = read_flows(specs(three), worker_file(served.settings)).config.flows
    with OffsetStore(flow, MSC, ConnectorRole.SOURCE) as store:
        store.write([(partition, {"offset": 99})])

    def stored(name: str = MSC) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = served.ask("GET", f"/connectors/{name}/offsets")["offsets"]
        return found

    def stop() -> None:
        served.to(TargetState.STOPPED, MSC)
        served.wait_for(MSC, "STOPPED")
        mp.wait_for(lambda: not served.ask("GET", f"/connectors/{MSC}/tasks"), 30, "it has no tasks any more")

    def go_on(records: int) -> None:
        served.to(TargetState.STARTED, MSC)
        mp.wait_for(lambda: served.copied(topic, 1) >= records, 120, f"{records} records at the target")

    with served:
        for name, config in three.items():
            served.put(name, config)
        mp.wait_for(lambda: served.copied(topic, 1) >= 150, 120, "what was left")
        last = [{"partition": partition, "offset": {"offset": 149}}]
        mp.wait_for(lambda: stored() == last, 60, "its last offset")
        beat = {"sourceClusterAlias": "", "targetClusterAlias": "mskdest"}
        mp.wait_for(lambda: stored(HBC) == [{"partition": beat, "offset": {"offset": 0}}], 60, "the heartbeats' offset")
        stop()
        with pytest.raises(AssertionError, match="copies from a source whose alias is empty, and has no partition"):
            served.ask(
                "PATCH",
                f"/connectors/{MSC}/offsets",
                {"offsets": [{"partition": {**partition, "cluster": "unnamed"}, "offset": {"offset": 1}}]},
            )
        altered = {"offsets": [{"partition": partition, "offset": {"offset": 139}}]}
        served.ask("PATCH", f"/connectors/{MSC}/offsets", altered)
        assert stored() == altered["offsets"]
        go_on(160)
        stop()
        served.ask("DELETE", f"/connectors/{MSC}/offsets")
        assert stored() == []
        go_on(310)
    values = [one.value for one in read(source, topic, 0)]
    assert len(values) == 150
    assert [one.value for one in read(target, topic, 0)] == [*values[:100], *values[100:], *values[140:], *values]
    keys = [
        json.loads(one.key) for index in range(25) for one in read(target, flow.connect.offset_storage_topic, index)
    ]
    assert {key[1]["cluster"] for key in keys if key[0] == MSC} == {""}
