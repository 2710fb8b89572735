"""Connectors over REST whose source has an empty alias: MirrorMaker 2's old way to keep names (`config.aliases`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mirror_process as mp
import pytest
from tests.connect.connectors import quick_connectors, read, specs, worker_file
from tests.connect.in_memory_api import in_memory_api
from tests.connect.rest_cases import connector
from tests.connect.served_worker import ServedWorker

from sparkmirror.config import IDENTITY_POLICY
from sparkmirror.connect.flows import read_flows
from sparkmirror.connect.model import TargetState
from sparkmirror.connect.offset_store import OffsetStore
from sparkmirror.demo import KafkaCluster
from sparkmirror.formats.connect import Role

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


@pytest.mark.full
@pytest.mark.broker
@pytest.mark.spark
def test_offsets_over_rest(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    """On from what a real MirrorMaker 2 stored under the empty alias; read, altered and reset under it."""
    source, target, topic = source_cluster.bootstrap_servers, target_cluster.bootstrap_servers, topic_name
    for servers in (source, target):
        mp.create_topic(servers, topic, 1)
        mp.produce(servers, topic, 1, 100)
    mp.produce(source, topic, 1, 50)
    three = connectors(source, target, topic)
    group = f"{topic}-group"
    served = ServedWorker(source_cluster, target_cluster, group, tmp_path)
    partition = {"cluster": "", "partition": 0, "topic": topic}
    (flow,) = read_flows(specs(three), worker_file(served.settings)).config.flows
    with OffsetStore(flow, MSC, Role.SOURCE) as store:
        store.write([(partition, {"offset": 99})])

    def stored(name: str = MSC) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = served.ask("GET", f"/connectors/{name}/offsets")["offsets"]
        return found

    def stop() -> None:
        served.to(TargetState.STOPPED, MSC)
        served.wait_for(MSC, "STOPPED")

    def go_on(records: int) -> None:
        served.to(TargetState.STARTED, MSC)
        mp.wait_for(lambda: served.copied(topic, 1) >= records, 120, f"{records} records at the target")

    with served:
        for name, config in three.items():
            served.put(name, config)
        mp.wait_for(lambda: served.copied(topic, 1) >= 150, 120, "what was left")
        assert stored() == [{"partition": partition, "offset": {"offset": 149}}]
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
