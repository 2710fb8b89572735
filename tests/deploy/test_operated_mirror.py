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

import mirror_process as mp
import pytest
from kafka import KafkaConsumer, TopicPartition
from operated import PATH, MemoryApi, resource, turns

from sparkmirror.demo import KafkaCluster
from sparkmirror.demo.ports import free_ports
from sparkmirror.operator.rest import ConnectRest

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

SOURCE = "us->eu.MirrorSourceConnector"
RECORDS, AGAIN = 400, 150


@contextmanager
def pod(api: MemoryApi, directory: Path, rest: int, metrics: int) -> Iterator[None]:
    """The one pod of the deployment: its arguments, with the files and ports of this machine."""
    data = api.of("ConfigMap", "ours-mirrormaker2-config")["data"]["connect-distributed.properties"]
    file = directory / "connect-distributed.properties"
    file.write_text(data.replace("0.0.0.0\\:8083", f"127.0.0.1\\:{rest}").replace("0.0.0.0:8083", f"127.0.0.1:{rest}"))
    (container,) = api.of("Deployment", "ours-mirrormaker2")["spec"]["template"]["spec"]["containers"]
    arguments = [str(file) if word.endswith(file.name) else word for word in container["args"]]
    arguments = [str(metrics) if word == "9404" else word for word in arguments]
    log = (directory / "pod.log").open("ab")
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


def _state(api: MemoryApi) -> str:
    states = {item["name"]: item["connector"]["state"] for item in api.status.get("connectors") or ()}
    return str(states.get(SOURCE, ""))
