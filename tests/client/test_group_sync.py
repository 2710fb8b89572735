"""The consumer group offset sync app: on a broker, with checkpoints of our own making, and its file and flags."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from checkpoint_topic import checkpointed, record
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.admin import NewTopic
from kafka.structs import OffsetAndMetadata as KafkasOffset
from kafka.structs import TopicPartition as KafkasPartition
from lab import KafkaCluster, RealMirrorMaker
from tests.support import mirror_process as mp
from tests.support.members import joined

from sparkmirror.client import GroupOffsets, OffsetAndMetadata, TopicPartition, translate_offsets
from sparkmirror.client.group_sync import GroupSync, in_javas_words
from sparkmirror.client.group_sync_file import read_group_sync_file
from sparkmirror.client.settings import ADMIN, cluster_config
from sparkmirror.config import ClusterConfig
from sparkmirror.config.providers import with_secrets
from sparkmirror.demo.jvm import QUICK_START
from sparkmirror.errors import ClusterUnreachable, ConfigError
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.groups import Groups


def committed(cluster: KafkaCluster, group: str) -> dict[tuple[str, int], int]:
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    try:
        found = admin.list_group_offsets({group: None})[group]
        return {(where.topic, where.partition): one.offset for where, one in found.items()}
    finally:
        admin.close()


def commit(cluster: KafkaCluster, group: str, offsets: dict[tuple[str, int], int]) -> None:
    consumer = KafkaConsumer(bootstrap_servers=cluster.bootstrap_servers, group_id=group, enable_auto_commit=False)
    consumer.assign([KafkasPartition(*where) for where in offsets])
    consumer.commit({KafkasPartition(*where): KafkasOffset(at, "", -1) for where, at in offsets.items()})
    consumer.close()


@pytest.fixture
def topic(target_cluster: KafkaCluster, topic_name: str) -> str:
    name = f"A.{topic_name}"
    admin = KafkaAdminClient(bootstrap_servers=target_cluster.bootstrap_servers)
    admin.create_topics([NewTopic(name, 3, 1)])
    admin.close()
    return name


@pytest.fixture
def sync(target_cluster: KafkaCluster, topic_name: str, topic: str) -> Iterator[GroupSync]:
    """For groups new, behind, ahead and partly; each has a checkpoint at 7 for partition 0, at 9 for partition 1."""
    groups = [f"{topic_name}-{kind}" for kind in ("new", "behind", "ahead", "partly")]
    records = [record(group, partition, 7 + 2 * partition, topic=topic) for group in groups for partition in (0, 1)]
    settings = checkpointed(target_cluster, topic_name, records)
    sync = GroupSync(settings, topic_name, groups)
    yield sync
    sync.close()


@pytest.mark.broker
def test_groups_are_set_forwards_only(
    target_cluster: KafkaCluster, topic_name: str, topic: str, sync: GroupSync, caplog: pytest.LogCaptureFixture
) -> None:
    commit(target_cluster, f"{topic_name}-behind", {(topic, 0): 3, (topic, 1): 4, (topic, 2): 5})
    commit(target_cluster, f"{topic_name}-ahead", {(topic, 0): 8, (topic, 1): 9})
    commit(target_cluster, f"{topic_name}-partly", {(topic, 1): 11})
    with caplog.at_level(logging.INFO):
        sync.tick()
    assert committed(target_cluster, f"{topic_name}-new") == {(topic, 0): 7, (topic, 1): 9}
    assert committed(target_cluster, f"{topic_name}-behind") == {(topic, 0): 7, (topic, 1): 9, (topic, 2): 5}
    assert committed(target_cluster, f"{topic_name}-ahead") == {(topic, 0): 8, (topic, 1): 9}
    assert committed(target_cluster, f"{topic_name}-partly") == {(topic, 0): 7, (topic, 1): 11}, "the real one fails"
    partly = f"{{{topic}-0=OffsetAndMetadata{{offset=7, leaderEpoch=null, metadata=''}}}}"
    both = (
        f"{{{topic}-0=OffsetAndMetadata{{offset=7, leaderEpoch=null, metadata=''}}, "
        f"{topic}-1=OffsetAndMetadata{{offset=9, leaderEpoch=null, metadata=''}}}}"
    )
    for line in (
        f"ConsumerGroupDescriptions for consumer group {topic_name}-new - it does not exist",
        f"ConsumerGroupDescriptions for consumer group {topic_name}-behind - ListedGroup(group='{topic_name}-behind'",
        f" - Translated offsets for consumer group from checkpoint {topic_name}-new - {both}",
        f"Consumer Group Offsets at destination for consumer group id {topic_name}-behind - {{{topic}-0=",
        "Checking to see if the translated offsets are higher than destination consumer offsets",
        f"Filtered consumer offsets - {both}",
        f"Filtered consumer offsets - {partly}",
        "Filtered consumer offsets - {}",
        f"Updated offsets for consumer group: {topic_name}-new with offsets {both}",
        f"Updated offsets for consumer group: {topic_name}-behind with offsets {both}",
        f"No Consumer Group offsets for specified consumer group id {topic_name}-new. "
        "Returning translated consumer offsets.",
        f"Translated offsets for consumer group id {topic_name}-ahead either smaller or caught up",
        f"Updated offsets for consumer group: {topic_name}-partly with offsets {partly}",
    ):
        assert line in caplog.text


@pytest.mark.broker
def test_a_group_with_members_is_left_alone(
    target_cluster: KafkaCluster, topic_name: str, topic: str, sync: GroupSync, caplog: pytest.LogCaptureFixture
) -> None:
    group = f"{topic_name}-new"
    servers = target_cluster.bootstrap_servers
    member = joined(servers, group, topic)
    client = ClusterClient(ClusterConfig(alias="B", bootstrap_servers=(servers,)), "test")
    groups = Groups(client)
    mp.wait_for(lambda: groups.listed()[group].state == "Stable", 60, "the group is stable")
    client.close()
    with caplog.at_level(logging.INFO):
        sync.tick()
    assert committed(target_cluster, group).get((topic, 0)) is None
    assert f"Consumer group {group} is Stable at the destination" in caplog.text
    assert committed(target_cluster, f"{topic_name}-behind") == {(topic, 0): 7, (topic, 1): 9}
    member.close()
    sync.tick()
    assert committed(target_cluster, group)[topic, 0] == 7


@pytest.mark.broker
def test_an_error_ends_a_tick_and_not_the_schedule(
    target_cluster: KafkaCluster, topic_name: str, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The real app's schedule ends for ever with the first exception."""
    stop = threading.Event()
    app = GroupSync({"bootstrap.servers": target_cluster.bootstrap_servers}, topic_name, [f"{topic_name}-late"])
    thread = threading.Thread(target=app.run, args=(0.3, stop))
    with caplog.at_level(logging.INFO):
        thread.start()
        mp.wait_for(lambda: "no topic" in caplog.text, 60, "the error is logged")
        checkpointed(target_cluster, topic_name, [record(f"{topic_name}-late", 2, 5, topic=topic)])
        deadline = time.monotonic() + 60
        while not committed(target_cluster, f"{topic_name}-late") and time.monotonic() < deadline:
            time.sleep(0.2)
        stop.set()
        thread.join(60)
    assert committed(target_cluster, f"{topic_name}-late") == {(topic, 2): 5}
    for line in (
        "Start Time: ",
        "Error retrieving translated offsets. Returning empty map.",
        f"No translated offsets received for consumer group id {topic_name}-late. Nothing to update.",
        "Shutdown called. Starting to exit.",
        "End Timestamp: ",
        "Execution time in milliseconds: ",
    ):
        assert line in caplog.text


@pytest.mark.broker
def test_a_group_without_a_checkpoint_is_said(
    target_cluster: KafkaCluster, topic_name: str, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    settings = checkpointed(target_cluster, topic_name, [record(f"{topic_name}-other", 0, 5, topic=topic)])
    sync = GroupSync(settings, topic_name, [f"{topic_name}-none"])
    with caplog.at_level(logging.INFO):
        sync.tick()
    sync.close()
    assert f"Could not find or get translated offsets for consumer group id: {topic_name}-none" in caplog.text
    assert f"No translated offsets received for consumer group id {topic_name}-none. Nothing to update." in caplog.text
    assert committed(target_cluster, f"{topic_name}-none") == {}


@pytest.mark.full
@pytest.mark.broker
def test_the_verb_runs_for_as_long_as_it_is_told(
    target_cluster: KafkaCluster, topic_name: str, topic: str, tmp_path: Path
) -> None:
    """With the documents' own flags, the Java class of the policy among them; and a signal ends it in order."""
    checkpointed(target_cluster, topic_name, [record(f"{topic_name}-g", 0, 5, topic=topic)])
    file = tmp_path / "consumer.properties"
    file.write_text(f"BOOTSTRAP_SERVERS_CONFIG={target_cluster.bootstrap_servers}\nGROUP_ID_CONFIG=\n")
    command = [sys.executable, "-c", "from sparkmirror.cli import main; main()", "sync-groups"]
    flags = ["-cgi", f"{topic_name}-g", "-src", topic_name, "-pfp", str(file)]
    aws = ["-rpc", "com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy", "-int", "1"]
    ran = subprocess.run(
        [*command, *flags, *aws, "-rf", "8", "-o", "json"], capture_output=True, text=True, timeout=180, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert "Reached specified run time of 8 seconds. Shutting down." in ran.stderr
    assert committed(target_cluster, f"{topic_name}-g") == {(topic, 0): 5}
    first, second = [json.loads(line) for line in ran.stdout.splitlines()][:2]
    updated = [{"topic": topic, "partition": 0, "offset": 5}]
    said = {"group": f"{topic_name}-g", "refused": [], "error": ""}
    assert first == said | {"time_ms": first["time_ms"], "state": "Dead", "updated": updated}
    assert second == said | {"time_ms": second["time_ms"], "state": "Empty", "updated": []}
    running = subprocess.Popen([*command, *flags], stderr=subprocess.PIPE, text=True, env=dict(os.environ))
    assert running.stderr is not None
    lines = iter(running.stderr)
    assert any("either smaller or caught up" in line for line in lines)
    running.send_signal(signal.SIGTERM)
    assert any("Shutdown called. Starting to exit." in line for line in lines)
    assert running.wait(60) == 0


@pytest.mark.broker
@pytest.mark.full
def test_on_checkpoints_of_the_real_mirror_maker(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    """The group gets what the real one's checkpoint says, and not more than was copied."""
    source, group = f"s{topic_name[-6:]}".replace("-", ""), f"{topic_name}-g"
    admin = KafkaAdminClient(bootstrap_servers=source_cluster.bootstrap_servers)
    admin.create_topics([NewTopic(topic_name, 1, 1)])
    admin.close()
    producer = KafkaProducer(bootstrap_servers=source_cluster.bootstrap_servers)
    for number in range(500):
        producer.send(topic_name, b"%d" % number, partition=0)
    producer.close()
    commit(source_cluster, group, {(topic_name, 0): 500})
    properties = {
        "clusters": f"{source}, B",
        f"{source}.bootstrap.servers": source_cluster.bootstrap_servers,
        "B.bootstrap.servers": target_cluster.bootstrap_servers,
        f"{source}->B.enabled": "true",
        f"{source}->B.topics": topic_name,
        f"{source}->B.groups": group,
        f"{source}->B.emit.checkpoints.interval.seconds": "1",
        f"{source}->B.emit.heartbeats.enabled": "false",
        **mp.ONE_REPLICA,
    }
    settings = {"bootstrap.servers": target_cluster.bootstrap_servers}
    where = TopicPartition(f"{source}.{topic_name}", 0)
    with RealMirrorMaker(properties, tmp_path / "mm2", jvm_options=QUICK_START):
        deadline = time.monotonic() + 120
        while not (checkpoint := checkpoint_of(settings, source, group).get(where)) and time.monotonic() < deadline:
            time.sleep(1)
    assert checkpoint is not None
    assert 0 < checkpoint.offset <= 500
    sync = GroupSync(settings, source, [group])
    sync.tick()
    sync.close()
    final = checkpoint_of(settings, source, group)[where]
    assert committed(target_cluster, group) == {tuple(where): final.offset}


def checkpoint_of(settings: dict[str, str], source: str, group: str) -> GroupOffsets:
    try:
        return translate_offsets(settings, source, group, 20)
    except ClusterUnreachable:
        return {}


# --- the file -----------------------------------------------------------------------------------------


def test_without_the_file_the_defaults_hold(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        settings = read_group_sync_file(str(tmp_path / "none"), tls=False, mtls=False)
    assert settings == {"bootstrap.servers": "127.0.0.1:9092"}
    assert f"Properties file not found in location: {tmp_path / 'none'}, using defaults" in caplog.text


def test_javas_constants_are_keys_and_flags_say_which_count(tmp_path: Path) -> None:
    file = tmp_path / "consumer.properties"
    file.write_text(
        "BOOTSTRAP_SERVERS_CONFIG=b-1:9094,b-2:9094\nGROUP_ID_CONFIG=sync-client\n"
        "SSL_TRUSTSTORE_LOCATION_CONFIG=/t.jks\nSSL_KEYSTORE_LOCATION_CONFIG=/k.jks\n"
        "SSL_KEYSTORE_PASSWORD_CONFIG=secret\nSSL_KEY_PASSWORD_CONFIG=\n"
    )
    plain = {"bootstrap.servers": "b-1:9094,b-2:9094", "client.id": "sync-client"}
    tls = plain | {"security.protocol": "SSL", "ssl.truststore.location": "/t.jks"}
    keys = {"ssl.keystore.location": "/k.jks", "ssl.keystore.password": "secret", "ssl.key.password": "password"}
    assert read_group_sync_file(str(file), tls=False, mtls=False) == plain
    assert read_group_sync_file(str(file), tls=True, mtls=False) == tls
    assert read_group_sync_file(str(file), tls=False, mtls=True) == tls | keys


def test_kafkas_own_keys_may_stand_there_and_win(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "consumer.properties"
    file.write_text("BOOTSTRAP_SERVERS_CONFIG=a:1\nbootstrap.servers=b:1\nsecurity.protocol=SSL\nkey.deserializer=x\n")
    settings = read_group_sync_file(str(file), tls=False, mtls=False)
    assert settings == {"bootstrap.servers": "b:1", "security.protocol": "SSL"}
    assert f"{file}: key.deserializer: not read" in caplog.text


def test_a_password_may_stand_elsewhere(tmp_path: Path) -> None:
    """It is looked up where a connection is made, not signed in with as it is written."""
    (tmp_path / "secrets.properties").write_text("password=hush\n")
    file = tmp_path / "consumer.properties"
    file.write_text(
        "bootstrap.servers=b:1\nsecurity.protocol=SASL_SSL\nsasl.mechanism=PLAIN\n"
        "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required"
        f' username="u" password="${{file:{tmp_path}/secrets.properties:password}}";\n'
        "config.providers=file\nconfig.providers.file.class=FileConfigProvider\n"
    )
    cluster = cluster_config(read_group_sync_file(str(file), tls=False, mtls=False), ADMIN)
    assert "hush" not in cluster.sasl.jaas_config.get_secret_value()
    assert 'password="hush"' in with_secrets(cluster).sasl.jaas_config.get_secret_value()


def test_a_file_that_can_not_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="can't be read"):
        read_group_sync_file(str(tmp_path), tls=False, mtls=False)


def test_offsets_are_shown_as_java_shows_them() -> None:
    offsets = {TopicPartition("t", 1): OffsetAndMetadata(5, "m"), TopicPartition("t", 0): OffsetAndMetadata(4, "")}
    assert in_javas_words(offsets) == (
        "{t-0=OffsetAndMetadata{offset=4, leaderEpoch=null, metadata=''}, "
        "t-1=OffsetAndMetadata{offset=5, leaderEpoch=null, metadata='m'}}"
    )
