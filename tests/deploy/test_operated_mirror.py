"""What the operator makes, with real brokers: its pod's command and file as a process, and offsets to the record."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, TopicPartition
from lab import KafkaCluster
from tests.support import mirror_process as mp
from tests.support.operated import MIRROR_KEY, PATH, MemoryApi, mirror, mirror_turns, resource, turns

from sparkmirror.demo.ports import free_ports
from sparkmirror.operator.names import labels
from sparkmirror.operator.pod_flows import pod_snapshot
from sparkmirror.operator.rest import ConnectRest

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

SOURCE = "us->eu.MirrorSourceConnector"
RECORDS, AGAIN = 400, 150


@contextmanager
def pod(api: MemoryApi, directory: Path, rest: int, metrics: int) -> Iterator[None]:
    """The one pod of the deployment: its arguments, with the files and ports of this machine."""
    data = api.of("ConfigMap", "ours-mirrormaker2-config")["data"]["connect-distributed.properties"]
    data = data.replace("0.0.0.0\\:8083", f"127.0.0.1\\:{rest}").replace("0.0.0.0:8083", f"127.0.0.1:{rest}")
    with process(api, "ours-mirrormaker2", directory / "connect-distributed.properties", data, metrics):
        yield


@contextmanager
def process(api: MemoryApi, name: str, file: Path, text: str, metrics: int) -> Iterator[None]:
    """What the deployment's pod runs, with this file."""
    file.write_text(text)
    (container,) = api.of("Deployment", name)["spec"]["template"]["spec"]["containers"]
    arguments = [str(file) if word.endswith(file.name) else word for word in container["args"]]
    arguments = [str(metrics) if word == "9404" else word for word in arguments]
    log = (file.parent / "pod.log").open("ab")
    process = subprocess.Popen(
        [sys.executable, "-c", "from sparkmirror.cli import main; main()", *arguments],
        env={"SPARKMIRROR_POD_IP": "127.0.0.1", **_environment()},
        stdout=log,
        stderr=log,
    )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        log.close()


def _environment() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if key != "PYSPARK_PYTHON"}


def values(cluster: KafkaCluster, topic: str) -> list[bytes | None]:
    """Of the one partition, from its beginning."""
    consumer = KafkaConsumer(bootstrap_servers=cluster.bootstrap_servers, enable_auto_commit=False)
    try:
        place = TopicPartition(topic, 0)
        consumer.assign([place])
        consumer.seek_to_beginning(place)
        end = consumer.end_offsets([place])[place]
        read: list[bytes | None] = []
        while consumer.position(place) < end:
            for records in consumer.poll(timeout_ms=500).values():
                read += [record.value for record in records]
        return read
    finally:
        consumer.close()


def test_from_the_resource_to_records_and_offsets(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    mp.produce(source_cluster.bootstrap_servers, topic_name, 1, RECORDS)

    def ours(spec: dict[str, Any]) -> None:
        spec["replicas"] = 1
        del spec["target"]["authentication"]
        spec["target"] |= {"bootstrapServers": target_cluster.bootstrap_servers}
        spec["target"] |= {name: f"{topic_name}-{name}" for name in spec["target"] if name.endswith(("Topic", "Id"))}
        spec["target"]["config"] = {f"{kind}.storage.replication.factor": 1 for kind in ("config", "offset", "status")}
        mirror = spec["mirrors"][0]
        mirror["source"]["bootstrapServers"] = source_cluster.bootstrap_servers
        mirror["topicsPattern"] = topic_name
        mirror["sourceConnector"] |= {
            "config": {"replication.factor": 1, "offset-syncs.topic.replication.factor": 1},
            "listOffsets": {"toConfigMap": {"name": "offsets"}},
            "alterOffsets": {"fromConfigMap": {"name": "offsets"}},
        }
        mirror["checkpointConnector"] = {"config": {"checkpoints.topic.replication.factor": 1}}

    api = MemoryApi(resource(ours))
    api.unready = {"readyReplicas": 0}
    rest, metrics = free_ports(2)
    turn = turns(api, ConnectRest(f"http://127.0.0.1:{rest}"))
    copy = f"us.{topic_name}"

    def until(true: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + 180
        while not true():
            assert time.monotonic() < deadline, f"{what}: {api.status.get('conditions')}"
            turn()
            time.sleep(0.5)

    def end() -> int:
        return mp.end_offsets(target_cluster.bootstrap_servers, copy, 1)[0]

    def ask(what: str) -> None:
        annotations = api.objects[PATH]["metadata"]["annotations"]
        annotations |= {"strimzi.io/connector-offsets": what, "strimzi.io/mirrormaker-connector": SOURCE}
        until(lambda: not api.annotations, what)

    turn()
    assert api.conditions() == [("NotReady", "PodsNotReady")]
    api.unready = {}
    with pod(api, tmp_path, rest, metrics):
        until(lambda: end() == RECORDS, "all is copied")
        until(lambda: api.conditions() == [("Ready", "")], "ready")
        connector = api.objects[PATH]["spec"]["mirrors"][0]["sourceConnector"]
        connector["state"] = "stopped"
        until(lambda: _state(api) == "STOPPED", "stopped")
        ask("list")
        data = api.of("ConfigMap", "offsets")["data"]
        (entry,) = data
        listed = json.loads(data[entry])["offsets"]
        assert listed == [
            {
                "partition": {"cluster": "us", "partition": 0, "topic": topic_name},
                "offset": {"offset": RECORDS - 1},
            }
        ]
        data[entry] = json.dumps({"offsets": [{**listed[0], "offset": {"offset": RECORDS - AGAIN - 1}}]})
        ask("alter")
        connector["state"] = "running"
        until(lambda: end() == RECORDS + AGAIN, "what was asked for is copied again")
        until(lambda: _state(api) == "RUNNING" and api.conditions() == [("Ready", "")], "ready again")
    original = values(source_cluster, topic_name)
    assert values(target_cluster, copy) == [*original, *original[-AGAIN:]]


def test_from_a_mirror_to_records(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    mp.produce(source_cluster.bootstrap_servers, topic_name, 1, RECORDS)
    one = "replication.factor"
    kinds = ("checkpoints.topic", "heartbeats.topic", "offset-syncs.topic", "offset.storage")
    tree = mirror(
        replicas=1,
        clusters=[
            {"alias": "us", "bootstrapServers": source_cluster.bootstrap_servers},
            {"alias": "eu", "bootstrapServers": target_cluster.bootstrap_servers},
        ],
        mirrors=[{"source": "us", "target": "eu", "topics": [topic_name]}],
        settings={one: "1", **{f"{kind}.{one}": "1" for kind in kinds}},
    )
    running = {"apiVersion": "v1", "kind": "Pod", "status": {"podIP": "127.0.0.1"}}
    running["metadata"] = {"name": "ours-mirror-0", "labels": labels(MIRROR_KEY)}
    api = MemoryApi(tree, running)
    api.unready = {"readyReplicas": 0}
    (metrics,) = free_ports(1)
    turn = mirror_turns(api, lambda address: pod_snapshot(address, metrics))

    def until(true: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + 180
        while not true():
            assert time.monotonic() < deadline, f"{what}: {api.status}"
            turn()
            time.sleep(0.5)

    def ready() -> bool:
        return [(item["type"], item["status"]) for item in api.status["conditions"]] == [("Ready", "True")]

    turn()
    assert api.conditions() == [("Ready", "PodsNotReady")]
    assert not ready()
    api.unready = {}
    text = api.of("ConfigMap", "ours-mirror-config")["data"]["mm2.properties"]
    copy = f"us.{topic_name}"
    with process(api, "ours-mirror", tmp_path / "mm2.properties", text, metrics):
        until(ready, "ready")
        until(lambda: mp.end_offsets(target_cluster.bootstrap_servers, copy, 1)[0] == RECORDS, "all is copied")
        until(lambda: api.status["mirrors"][0]["state"] == "caught up", "caught up")
        (row,) = api.status["mirrors"]
        assert (row["name"], row["lag"], api.status["lagSeconds"]) == ("us->eu", 0, 0)
    assert values(target_cluster, copy) == values(source_cluster, topic_name)
    turn()
    assert api.conditions() == [("Ready", "PodsUnreachable")]
    assert not ready()
    assert api.status["mirrors"] == [row], "as it was known last"


def _state(api: MemoryApi) -> str:
    states = {item["name"]: item["connector"]["state"] for item in api.status.get("connectors") or ()}
    return str(states.get(SOURCE, ""))
