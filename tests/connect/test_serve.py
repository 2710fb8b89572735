"""`serve` on a real broker, with a worker in memory: what is put is kept, found again, shown without secrets."""

from __future__ import annotations

import base64
import json
import subprocess
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING

import pytest
from kafka import KafkaProducer
from kafka_connect import KafkaConnect
from lab import KafkaCluster
from tests.connect.serving import serving
from tests.support import mirror_process as mp
from tests.support.kit_connectors import SECRET, aws_kit, confluent_demo
from tests.support.rest_cases import connector

from sparkmirror.config import ClusterConfig
from sparkmirror.connect.basic_auth import Users
from sparkmirror.connect.connector_model import TargetState
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog

if TYPE_CHECKING:
    from pathlib import Path

    from lab import Authority

pytestmark = pytest.mark.broker


def _ask(url: str, path: str, method: str = "GET", body: object = None) -> tuple[int, object]:
    """Status and JSON; while the lease is on its way it is 409, and clients of Connect ask again."""
    data = None if body is None else json.dumps(body).encode()
    deadline = time.monotonic() + 60
    while True:
        request = urllib.request.Request(url + path, data, {"Content-Type": "application/json"}, method=method)  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
                content = answer.read()
                return answer.status, json.loads(content) if content else None
        except urllib.error.HTTPError as error:
            text = error.read().decode()
            if "momentarily" not in text or time.monotonic() > deadline:
                return error.code, text
        time.sleep(0.2)


def _records(cluster: KafkaCluster, topic: str) -> dict[str, object]:
    """The newest value of each key."""
    client = ClusterClient(ClusterConfig(alias="B", bootstrap_servers=(cluster.bootstrap_servers,)), "test")
    log = TopicLog(client, topic)
    entries = [entry for partition in range(log.partitions) for entry in log.read(partition, 0)[0]]
    client.close()
    return {
        entry.key.decode(): json.loads(entry.value) if entry.value else None
        for entry in entries
        if entry.key is not None
    }


def test_the_kits_files_are_put_with_curl(target_cluster: KafkaCluster, topic_name: str, tmp_path: Path) -> None:
    files = {**aws_kit(), **confluent_demo()}
    assert len(files) == 15
    with serving(tmp_path, target_cluster.bootstrap_servers, topic_name) as (url, worker):
        assert _ask(url, "/connectors/none/offsets", "DELETE")[0] == 404, "it leads"
        for file, config in files.items():
            (tmp_path / f"{file}.json").write_text(json.dumps(config))
            # As the documents have it: the path names the connector, and the file agrees, or says nothing.
            path = f"{url}/connectors/{config.get('name', file)}"
            json_type = ("-H", "Content-Type: application/json")
            put = ("curl", "-s", "-X", "PUT", *json_type, "--data", f"@{file}.json", f"{path}/config")
            answer = json.loads(subprocess.run(put, cwd=tmp_path, capture_output=True, check=True).stdout)
            assert answer["type"] == "source", answer
            status = subprocess.run(("curl", "-s", f"{path}/status"), capture_output=True, check=True).stdout
            assert json.loads(status)["connector"]["state"] == "RUNNING"
            assert SECRET not in json.dumps(answer)
            if "target.cluster.ssl.key.password" in config:
                assert answer["config"]["target.cluster.ssl.key.password"] == "[hidden]"
                assert worker.connectors[answer["name"]].config["target.cluster.ssl.key.password"] == SECRET


def test_a_client_library_of_others_talks_to_it(target_cluster: KafkaCluster, topic_name: str, tmp_path: Path) -> None:
    config = connector("Source", "source:9092", "target:9092")
    with serving(tmp_path, target_cluster.bootstrap_servers, topic_name) as (url, worker):
        assert _ask(url, "/connectors/none/offsets", "DELETE")[0] == 404, "it leads"
        client = KafkaConnect(url=url)
        assert client.get_cluster_info()["version"] == "4.3.1"
        client.create_connector({"name": "shop", "config": config})
        assert list(client.list_connectors()) == ["shop"]
        assert client.get_connector_status("shop")["connector"]["state"] == "RUNNING"
        client.pause_connector("shop")
        assert worker.connectors["shop"].target_state is TargetState.PAUSED
        assert client.get_connector_status("shop")["connector"]["state"] == "PAUSED"
        client.resume_connector("shop")
        assert client.get_connector_config("shop")["topics"] == "compared"
        assert len(client.list_connector_plugins()) == 3
        client.delete_connector("shop")
        assert list(client.list_connectors()) == []


def test_a_restart_finds_the_connectors_and_another_process_answers_for_the_one_that_works(
    target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    servers = target_cluster.bootstrap_servers
    config = connector("Source", "source:9092", "target:9092", **{"ssl.keystore.password": SECRET})
    with serving(tmp_path, servers, topic_name) as (url, worker):
        assert _ask(url, "/connectors", "POST", {"name": "shop", "config": config})[0] == 201
        assert _ask(url, "/connectors/shop/stop", "PUT")[0] == 204
        with serving(tmp_path, servers, topic_name) as (other, idle):
            status, shown = _ask(other, "/connectors/shop/config")
            assert (status, shown) == (200, {**config, "name": "shop", "ssl.keystore.password": "[hidden]"})
            assert _ask(other, "/connectors/shop/status")[1] == _ask(url, "/connectors/shop/status")[1]
            # Sent on to the one that works; what is shown of a secret stands for it
            assert _ask(other, "/connectors/shop/config", "PUT", {**shown, "tasks.max": "3"})[0] == 200  # type: ignore[dict-item]
            assert worker.connectors["shop"].config["ssl.keystore.password"] == SECRET
            assert worker.connectors["shop"].config["tasks.max"] == "3"
            assert not idle.connectors
            at = {"cluster": "a", "topic": "t", "partition": 0}
            change = {"offsets": [{"partition": at, "offset": {"offset": 5}}]}
            assert _ask(other, "/connectors/shop/offsets", "PATCH", change)[0] == 200
            assert worker.offsets("shop") == [(at, {"offset": 5})]
    with serving(tmp_path, servers, topic_name) as (url, worker):
        worker.forget_topics("shop")  # it knows of none, being new
        assert _ask(url, "/connectors/shop/topics") == (200, {"shop": {"topics": ["a.compared"]}})
        assert _ask(url, "/connectors/shop/topics/reset", "PUT")[0] == 202
        assert _ask(url, "/connectors/shop/topics") == (200, {"shop": {"topics": []}})
        assert _ask(url, "/connectors/shop/resume", "PUT")[0] == 202
        assert worker.connectors["shop"].config["tasks.max"] == "3"
        assert _ask(url, "/connectors/shop/config", "PUT", {**config, "ssl.key.password": "[hidden]"})[0] == 400


def test_a_real_workers_topic_is_taken_over_as_it_is(
    target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    """The records are of the kinds that Connect writes, the session key and the fencing among them."""
    servers = target_cluster.bootstrap_servers
    group, topic = topic_name, f"connect-configs-{topic_name}"
    config = connector("Source", "source:9092", "target:9092", name="shop")
    with serving(tmp_path, servers, group):
        pass  # makes the topics
    producer = KafkaProducer(bootstrap_servers=servers)
    for key, value in [
        ("session-key", {"key": "a2V5", "algorithm": "HmacSHA256", "creation-timestamp": 1}),
        ("connector-gone", {"properties": config}),
        ("connector-shop", {"properties": config}),
        ("task-shop-0", {"properties": {**config, "task.class": "old"}}),
        ("task-shop-1", {"properties": {**config, "task.class": "old"}}),
        ("commit-shop", {"tasks": 2}),
        ("tasks-fencing-shop", {"task-count": 2}),
        ("target-state-shop", {"state": "PAUSED", "state.v2": "STOPPED"}),
        ("restart-connector-shop", {"include-tasks": True, "only-failed": False}),
        ("connector-gone", None),
        ("target-state-gone", None),
    ]:
        producer.send(topic, key=key.encode(), value=None if value is None else json.dumps(value).encode())
    producer.close()
    with serving(tmp_path, servers, group) as (url, worker):
        assert _ask(url, "/connectors")[1] == ["shop"]
        assert _ask(url, "/connectors/none/offsets", "DELETE")[0] == 404  # it leads
        assert worker.connectors["shop"].target_state is TargetState.STOPPED
        assert _ask(url, "/connectors/shop/resume", "PUT")[0] == 202
        assert worker.connectors["shop"].config == config
        status = _ask(url, "/connectors/shop/status")[1]
    written = _records(target_cluster, topic)
    assert written["target-state-shop"] == {"state": "STARTED", "state.v2": "STARTED"}
    assert written["commit-shop"] == {"tasks": 2}
    assert written["connector-shop"] == {"properties": config}
    states = _records(target_cluster, f"connect-status-{group}")
    assert isinstance(status, dict)
    assert states["status-connector-shop"]["state"] == status["connector"]["state"]  # type: ignore[index]


def test_who_may_ask_and_over_what(
    target_cluster: KafkaCluster, authority: Authority, topic_name: str, tmp_path: Path
) -> None:
    keystore = authority.issue(tmp_path / "https.pem")
    https = {
        "listeners.https.ssl.keystore.type": "PEM",
        "listeners.https.ssl.keystore.location": str(keystore),
        "access.control.allow.origin": "https://ui.example",
        "response.http.headers.config": "set X-Frame-Options: DENY",
    }
    users = Users({"ann": SECRET})
    with serving(tmp_path, target_cluster.bootstrap_servers, topic_name, users, secure=True, **https) as (url, _):
        assert url.startswith("https://")
        curl = ("curl", "-s", "-i", "--cacert", str(authority.certificate))
        let_in = subprocess.run(
            (*curl, "-u", f"ann:{SECRET}", "-H", "Origin: https://ui.example", url + "/"),
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert "200 OK" in let_in
        assert "access-control-allow-origin: https://ui.example" in let_in
        assert "x-frame-options: DENY" in let_in.replace("X-Frame-Options", "x-frame-options")
        for credentials in ((), ("-u", "ann:wrong"), ("-u", f"bob:{SECRET}")):
            kept_out = subprocess.run(
                (*curl, *credentials, url + "/"), capture_output=True, text=True, check=True
            ).stdout
            assert "401 Unauthorized" in kept_out
            assert kept_out.endswith("User cannot access the resource.")


@pytest.mark.full
def test_its_health_while_the_cluster_is_away(tmp_path: Path) -> None:
    with (
        KafkaCluster(tmp_path / "cluster") as cluster,
        serving(tmp_path, cluster.bootstrap_servers, "away") as (url, _),
    ):
        assert _ask(url, "/health")[0] == 200
        cluster.brokers[0].kill()
        mp.wait_for(lambda: _ask(url, "/health")[0] == 500, 180, "it notices")
        status, said = _ask(url, "/health")
        assert (status, json.loads(str(said))["status"]) == (500, "unhealthy")
        assert f"127.0.0.1:{cluster.brokers[0].port}" in str(said)
        cluster.brokers[0].start()
        mp.wait_for(lambda: _ask(url, "/health")[0] == 200, 180, "it is well again")


def test_header_of_basic_authentication() -> None:
    users = Users({"ann": SECRET})
    good = base64.b64encode(f"ann:{SECRET}".encode()).decode()
    assert users.admit(f"Basic {good}")
    for wrong in (None, "", "Basic", "Basic !", f"Bearer {good}", "Basic " + base64.b64encode(b"ann").decode()):
        assert not users.admit(wrong)
    assert SECRET not in repr(users)
