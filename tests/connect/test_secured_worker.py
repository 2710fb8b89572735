"""`sparkmirror serve` where all brokers ask who is there: the AWS kit's SCRAM files, its offset sync app with mTLS."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
from javaproperties import dumps
from kafka import KafkaConsumer, OffsetAndMetadata, TopicPartition
from lab import Authority, KafkaCluster
from tests.connect.served_worker import ServedWorker
from tests.support import mirror_process as mp
from tests.support.connectors import CUSTOM_POLICY, quick_connectors
from tests.support.kit_connectors import SECRET, aws_kit
from tests.support.secure_clusters import scram_settings, scram_user

from sparkmirror.config import ClusterConfig
from sparkmirror.demo.proof import compare_topics
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.groups import Groups

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

PARTITIONS = 2
RECORDS = 2_000
USER = "kit"
PASSWORDS = {"source": "hunter2-of-source", "target": "hunter2-of-target"}


def worker_settings(target: KafkaCluster, authority: Authority) -> dict[str, str]:
    """The worker's own cluster, which only lets in who signs in."""
    signing_in = scram_settings(authority, USER, PASSWORDS["target"])
    return {"bootstrap.servers": target.servers("SCRAM"), "offset.storage.partitions": "1", **signing_in}


def connectors(
    source: KafkaCluster, target: KafkaCluster, authority: Authority, topic: str, alias: str
) -> dict[str, dict[str, str]]:
    """The kit's three, signing in at both ends as its SCRAM files do, with whom they trust; batches stay as is."""
    trust = {key: value for key, value in authority.client_settings().items() if key.startswith("ssl.")}
    kit = aws_kit()
    made = quick_connectors(source.servers("SCRAM"), target.servers("SCRAM"), topic, alias, CUSTOM_POLICY)
    made["mm2-msc"]["sparkmirror.merge.tiny.batches"] = "false"
    for name, config in made.items():
        for end, password in PASSWORDS.items():
            prefix = f"{end}.cluster."
            for key, value in kit[f"{name}-sasl-auth"].items():
                if key.startswith((f"{prefix}sasl.", f"{prefix}security.")):
                    config[key] = value.replace('"mirror"', f'"{USER}"').replace(SECRET, password)
            config |= {prefix + key: value for key, value in trust.items()}
        assert config["source.cluster.sasl.mechanism"] == "SCRAM-SHA-512"
        assert PASSWORDS["source"] in config["source.cluster.sasl.jaas.config"]
    return made


def answers(served: ServedWorker, put: Mapping[str, Mapping[str, str]]) -> str:
    """All that the interface says about these connectors; at last each is put as it is shown."""
    found = [served.ask("GET", "/"), served.ask("GET", "/connectors?expand=info&expand=status")]
    for name, config in put.items():
        paths = ("", "/config", "/status", "/tasks", "/offsets", "/topics")
        found += [served.ask("GET", f"/connectors/{name}{path}") for path in paths]
        plugin = config["connector.class"].rpartition(".")[2]
        found.append(served.ask("PUT", f"/connector-plugins/{plugin}/config/validate", {**config, "name": name}))
    for name in put:
        path = f"/connectors/{name}/config"
        found.append(served.ask("PUT", path, served.ask("GET", path)))
    return json.dumps(found)


def commit(servers: str, group: str, topic: str, offset: int) -> None:
    consumer = KafkaConsumer(bootstrap_servers=servers, group_id=group, enable_auto_commit=False)
    where = TopicPartition(topic, 0)
    consumer.assign([where])
    consumer.commit({where: OffsetAndMetadata(offset, "", -1)})
    consumer.close()


def committed(servers: str, group: str) -> dict[tuple[str, int], int]:
    client = ClusterClient(ClusterConfig(alias="target", bootstrap_servers=(servers,)), "test")
    try:
        found = Groups(client).committed([group]).offsets.get(group, {})
        return {(where[0], where[1]): one.offset for where, one in found.items()}
    finally:
        client.close()


def by_mutual_tls(target: KafkaCluster, authority: Authority, directory: Path) -> Path:
    """The offset sync app's file, with the names of its own."""
    file = directory / "consumer.properties_sync_dest"
    file.write_text(
        dumps(
            {
                "BOOTSTRAP_SERVERS_CONFIG": target.servers("MTLS"),
                "SSL_TRUSTSTORE_LOCATION_CONFIG": str(authority.certificate),
                "SSL_KEYSTORE_LOCATION_CONFIG": str(authority.issue(directory / "app.pem", "app")),
                "ssl.truststore.type": "PEM",
                "ssl.keystore.type": "PEM",
            }
        )
    )
    return file


def stored(served: ServedWorker) -> dict[int, int]:
    """The offsets of the source connector, by partition."""
    found = served.ask("GET", "/connectors/mm2-msc/offsets")["offsets"]
    return {one["partition"]["partition"]: one["offset"]["offset"] for one in found}


def wait_until_copied(served: ServedWorker, topic: str, records: int) -> None:
    """Everything is `RUNNING` in this process, and all records are there."""
    address = served.url.removeprefix("http://")

    def states() -> set[tuple[str, str]]:
        found = [served.ask("GET", f"/connectors/{name}/status") for name in ("mm2-msc", "mm2-cpc", "mm2-hbc")]
        return {(one["state"], one["worker_id"]) for status in found for one in (status["connector"], *status["tasks"])}

    mp.wait_for(lambda: served.copied(topic, PARTITIONS) == records, 240, f"{records} records")
    mp.wait_for(lambda: states() == {("RUNNING", address)}, 240, f"all running at {address}")
    last = {partition: records // PARTITIONS - 1 for partition in range(PARTITIONS)}
    mp.wait_for(lambda: stored(served) == last, 240, "its offsets")


def test_the_kits_scram_files(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, authority: Authority, topic_name: str, tmp_path: Path
) -> None:
    """Put to one process, which a second one replaces; the app sets a group, and then the checkpoint connector."""
    source, target = source_cluster.bootstrap_servers, target_cluster.bootstrap_servers
    scram_user(source_cluster, USER, PASSWORDS["source"])
    scram_user(target_cluster, USER, PASSWORDS["target"])
    alias, group, workers = "K" + topic_name[-3:].replace("-", ""), f"{topic_name}-group", f"{topic_name}-workers"
    mp.create_topic(source, topic_name, PARTITIONS)
    mp.produce(source, topic_name, PARTITIONS, RECORDS)
    commit(source, group, topic_name, 321)
    put = connectors(source_cluster, target_cluster, authority, topic_name, alias)
    settings = worker_settings(target_cluster, authority)

    def process(name: str) -> ServedWorker:
        (tmp_path / name).mkdir()
        return ServedWorker(source_cluster, target_cluster, workers, tmp_path / name, settings)

    def wait_for_group(offset: int) -> None:
        wanted = {(topic_name, 0): offset}
        mp.wait_for(lambda: committed(target, group) == wanted, 240, f"{group} at {offset}")

    log = tmp_path / "sync-groups.log"
    with ExitStack() as stack:
        first = stack.enter_context(process("first"))
        first.ask("PUT", "/admin/loggers/sparkmirror", {"level": "DEBUG"})
        for name, config in put.items():
            first.put(name, config)
        wait_until_copied(first, topic_name, RECORDS)
        flags = ["-cgi", group, "-src", alias, "-int", "1", "-mtls", "-rpc", CUSTOM_POLICY]
        app_file = by_mutual_tls(target_cluster, authority, tmp_path)
        with mp.MirrorProcess(app_file, log, *flags, command=(mp.COMMAND, "sync-groups", "-pfp")) as app:
            wait_for_group(321)
            assert app.terminate() == 0
        said = answers(first, put)
        second = stack.enter_context(process("second"))
        assert set(second.ask("GET", "/connectors")) == set(put)
        mp.wait_for(lambda: stored(second) == stored(first), 120, "the second process having the first one answer")
        first.end()
        mp.produce(source, topic_name, PARTITIONS, RECORDS)
        wait_until_copied(second, topic_name, 2 * RECORDS)
        commit(source, group, topic_name, 1_234)
        second.change("mm2-cpc", sync_group_offsets_enabled="true")
        wait_for_group(1_234)
        said += answers(second, put)
    proofs = compare_topics(source, target, {topic_name: topic_name})
    assert [proof.difference for proof in proofs] == [None] * PARTITIONS
    assert sum(proof.records for proof in proofs) == 2 * RECORDS
    for kind in ("configs", "offsets"):
        assert mp.end_offsets(target, f"connect-{kind}-{workers}", 1)[0] > 0
    assert said.count("[hidden]") >= 2 * len(put)
    for text in (said, first.logged(), second.logged(), log.read_text()):
        assert text
        for password in PASSWORDS.values():
            assert password not in text
