"""A Connect worker's own file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.connect.serving import worker_config, worker_settings
from tests.support.connectors import demo_connectors, specs

from sparkmirror.config.formats.connect_files import WorkerSettings
from sparkmirror.connect.basic_auth import EXTENSION, jaas_file, read_users
from sparkmirror.connect.flows import read_flows
from sparkmirror.connect.worker_properties import read_worker_properties
from sparkmirror.errors import ConfigError
from sparkmirror.web.listener import Listener

IMAGES = Path(__file__).parents[2] / "docs" / "deploy" / "images.md"
SETTINGS = worker_settings("kafka:9092", "group", 8083)


def test_the_pages_file_has_the_kits_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (text,) = re.findall(r"^## With the kit's variables\n.*?^```properties\n(.*?)^```", IMAGES.read_text(), re.M | re.S)
    monkeypatch.setenv("BROKERS", "one:9092,two:9092")
    monkeypatch.setenv("GROUP", "kafka-connect-fargate")
    file = tmp_path / "worker.properties"
    file.write_text(text)
    config = read_worker_properties(str(file))
    assert config.cluster.bootstrap_servers == ("one:9092", "two:9092")
    assert config.group_id == "kafka-connect-fargate"
    assert config.configs.topic == "connect-configs-kafka-connect-fargate"
    assert config.statuses.topic == "connect-status-kafka-connect-fargate"
    assert config.for_connectors["offset.storage.topic"].value == "connect-offsets-${env:GROUP}"
    monkeypatch.delenv("BROKERS")
    with pytest.raises(ConfigError, match="BROKERS"):
        read_worker_properties(str(file))


def test_the_kits_file(tmp_path: Path) -> None:
    more = {
        "key.converter.schemas.enable": "true",
        "producer.security.protocol": "PLAINTEXT",
        "plugin.path": "/opt",
        "status.storage.partitions": "7",
        "rest.port": "8083",
    }
    config = worker_config(tmp_path, {**SETTINGS, **more})
    assert config.cluster.bootstrap_servers == ("kafka:9092",)
    assert (config.configs.topic, config.configs.partitions) == ("connect-configs-group", 1)
    assert (config.statuses.partitions, config.statuses.replication_factor) == (7, 1)
    assert config.worker_id == "127.0.0.1:8083"
    said = "\n".join(config.warnings)
    for key in ("key.converter", "key.converter.schemas.enable", "plugin.path", "rest.port"):
        assert f": {key}: has no effect" in said
    assert ": producer." not in said
    assert "storage" not in said


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("consumer.fetch.max.bytes", "it is for sink connectors; set a source's consumer in its connector, with"),
        ("consumer.security.protocol", "it is for sink connectors"),
        ("client.id", "say for which client, with producer. or admin. before it"),
        ("request.timeout.ms", "say for which client, with producer. or admin. before it"),
        ("retry.backoff.ms", "pauses before another try are sparkmirror's own"),
        ("heartbeat.interval.ms", "copying needs no consumer group"),
        ("rest.port", "Kafka Connect dropped it in 3.0; write listeners = http://:8083"),
        ("sparkmirror.on.expired", "write it into the source connector, as it is here"),
        (
            "sparkmirror.metrics.hosts",
            "write a reverse proxy's name into access.control.allow.origin, as an origin (https://NAME)",
        ),
        ("sparkmirror.metrics.listeners", "metrics are at the interface's own listeners, and at --metrics-port"),
    ],
)
def test_keys_without_effect_are_named_with_the_reason(tmp_path: Path, key: str, reason: str) -> None:
    (line,) = [line for line in worker_config(tmp_path, {**SETTINGS, key: "1"}).warnings if f": {key}: " in line]
    assert f": {key}: has no effect: {reason}" in line


@pytest.mark.parametrize(
    "key",
    [
        "admin.client.id",
        "admin.request.timeout.ms",
        "config.providers.file.class",
        "offset.flush.interval.ms",
        "producer.request.timeout.ms",
        "sasl.mechanism",
        "session.timeout.ms",
        "spark.master",
        "topic.tracking.allow.reset",
        "topic.tracking.enable",
    ],
)
def test_keys_with_an_effect_are_not(tmp_path: Path, key: str) -> None:
    value = "true" if key.startswith("topic.") else "1000"
    assert f": {key}: " not in "\n".join(worker_config(tmp_path, {**SETTINGS, key: value}).warnings)


def test_an_empty_admin_listeners_turns_the_admin_endpoints_off(tmp_path: Path) -> None:
    config = worker_config(tmp_path, {**SETTINGS, "admin.listeners": ""})
    assert not config.admin
    assert "admin.listeners" not in "\n".join(config.warnings)
    config = worker_config(tmp_path, {**SETTINGS, "admin.listeners": "http://127.0.0.1:9"})
    assert config.admin
    assert "admin.listeners: has no effect: the admin endpoints are at all listeners" in "\n".join(config.warnings)


def test_a_reverse_proxys_name_moves_no_address(tmp_path: Path) -> None:
    """The refusal names the key that admits it."""
    plain = worker_config(tmp_path, SETTINGS)
    assert not plain.trusted.is_own("proxy.example")
    assert plain.trusted.key == "access.control.allow.origin, as an origin (https://NAME)"
    listed = worker_config(tmp_path, {**SETTINGS, "access.control.allow.origin": "https://proxy.example"})
    assert listed.trusted.is_own("proxy.example")
    assert listed.trusted.allows("https://proxy.example")
    assert listed.url == plain.url


def test_listeners_and_what_is_advertised(tmp_path: Path) -> None:
    config = worker_config(tmp_path, {**SETTINGS, "listeners": "http://127.0.0.1:8083, http://[::1]:8084"})
    assert config.listeners == (Listener("http", "127.0.0.1", 8083), Listener("http", "::1", 8084))
    named = {"rest.advertised.host.name": "w1.example", "rest.advertised.port": "80"}
    assert worker_config(tmp_path, {**SETTINGS, **named}).url == "http://w1.example:80"
    assert worker_config(tmp_path, {**SETTINGS, "listeners": "http://:8083", **named}).listeners[0].host == ""
    for more in (
        {"listeners": "http://[::1]:8083"},
        {"rest.advertised.host.name": "::1"},
        {"rest.advertised.host.name": "[::1]"},
    ):
        config = worker_config(tmp_path, {**SETTINGS, **more})
        assert (config.worker_id, config.url) == ("[::1]:8083", "http://[::1]:8083")


@pytest.mark.parametrize(
    ("change", "key", "reason"),
    [
        ({"group.id": ""}, "group.id", "is missing"),
        ({"config.storage.topic": ""}, "config.storage.topic", "is missing"),
        ({"listeners": "ftp://x:1"}, "listeners", "must be http://host:port"),
        ({"listeners": "https://127.0.0.1:8083"}, "listeners.https.ssl.keystore.location", "need a key"),
        ({"config.storage.replication.factor": "many"}, "config.storage.replication.factor", "whole number"),
        ({"rest.extension.classes": "com.example.Own"}, "rest.extension.classes", "can't be loaded"),
    ],
)
def test_refused(tmp_path: Path, change: dict[str, str], key: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason) as caught:
        worker_config(tmp_path, {**SETTINGS, **change})
    assert caught.value.key == key


def test_what_a_reference_stands_for_is_not_said(tmp_path: Path) -> None:
    (tmp_path / "secrets").write_text("password=hunter2\n")
    providers = {"config.providers": "file", "config.providers.file.class": "FileConfigProvider"}
    for key in ("session.timeout.ms", "ssl.client.auth"):
        with pytest.raises(ConfigError, match=f"{key}: its value from the config provider is not allowed$"):
            worker_config(tmp_path, {**SETTINGS, **providers, key: f"${{file:{tmp_path}/secrets:password}}"})


def test_users_of_the_jaas_file(tmp_path: Path) -> None:
    assert worker_config(tmp_path, {**SETTINGS, "rest.extension.classes": EXTENSION}).basic_auth
    credentials, jaas = tmp_path / "users.properties", tmp_path / "jaas.conf"
    credentials.write_text("ann=p\nbob=q\n")
    module = EXTENSION.rpartition(".")[0] + ".PropertyFileLoginModule"
    jaas.write_text(f'// who may ask\nKafkaConnect {{\n  {module} required\n  file="{credentials}";\n}};\n')
    named = jaas_file({"KAFKA_OPTS": f"-Xmx1g '-Djava.security.auth.login.config={jaas}'"})
    assert read_users(named, "worker.properties").passwords == {"ann": "p", "bob": "q"}
    assert jaas_file({}) is None
    for unfinished in ("-Xmx1g '-Dx", "-Dx=a\\"):
        with pytest.raises(ConfigError, match="KAFKA_OPTS: has a quote or a backslash"):
            jaas_file({"KAFKA_OPTS": unfinished})
    credentials.write_text("ann=\\u12\n")
    with pytest.raises(ConfigError, match="hexadecimal") as caught:
        read_users(named, "worker.properties")
    assert caught.value.origin == str(credentials)
    for text in (
        "Other {};",
        "KafkaConnect { com.example.Login required; };",
        f"KafkaConnect {{ {module} required; }};",
    ):
        jaas.write_text(text)
        with pytest.raises(ConfigError):
            read_users(str(jaas), "worker.properties")
    with pytest.raises(ConfigError, match="KAFKA_OPTS"):
        read_users(None, "worker.properties")


# --- what connectors have of it --------------------------------------------------------------------------


def test_nothing_that_serve_obeys_is_said_to_have_no_effect(tmp_path: Path) -> None:
    """Each of the four kinds of workers that the kit has, with a connector: nothing of it is denied."""
    interface = {
        "rest.advertised.host.name": "127.0.0.1",
        "access.control.allow.origin": "*",
        "admin.listeners": "",
        "topic.tracking.enable": "true",
        "response.http.headers.config": "add X-A: b",
        "config.storage.partitions": "1",
        "status.storage.partitions": "5",
    }
    config = worker_config(tmp_path, {**SETTINGS, **interface})
    flows = read_flows(specs(demo_connectors()), WorkerSettings(config.for_connectors, config.path))
    assert [flow.name for flow in flows.config.flows] == ["msk->target"]
    said = "\n".join(flows.config.warnings)
    for key in ("listeners", "storage", "rest.", "access.control", "admin.", "topic.tracking", "response."):
        assert f": {key}" not in said, said
        assert "no REST interface" not in said


def test_what_connectors_do_have_of_it_counts(tmp_path: Path) -> None:
    more = {"offset.flush.interval.ms": "7000", "producer.max.request.size": "777"}
    more["bootstrap.servers"] = "confluent.cloud:9092"  # the target of these connectors
    config = worker_config(tmp_path, {**SETTINGS, **more})
    (flow,) = read_flows(specs(demo_connectors()), WorkerSettings(config.for_connectors, config.path)).config.flows
    assert flow.connect.offset_flush_interval_ms == 7000
    assert flow.connect.offset_storage_topic == "connect-offsets-group"
    assert flow.produce.max_request_size == 777


# --- other files of Connect's ----------------------------------------------------------------------------


def test_a_standalone_workers_file_is_told_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "connect-standalone.properties"
    file.write_text("bootstrap.servers=k:9092\noffset.storage.file.filename=/tmp/connect.offsets\n")
    with pytest.raises(ConfigError) as caught:
        read_worker_properties(str(file))
    assert str(caught.value).startswith(f"{file}, line 2: offset.storage.file.filename: is of a standalone worker")
    assert "give this file and its connectors' files, in one directory, to sparkmirror run" in str(caught.value)


def test_a_connectors_file_is_no_workers(tmp_path: Path) -> None:
    file = tmp_path / "mm2-msc.properties"
    file.write_text("name=a\nconnector.class=MirrorSource\n")
    with pytest.raises(
        ConfigError, match=r"connector\.class: is of a connector: put it to a running sparkmirror serve"
    ):
        read_worker_properties(str(file))


def test_all_that_is_missing_is_named(tmp_path: Path) -> None:
    file = tmp_path / "worker.properties"
    file.write_text("bootstrap.servers=k:9092\n")
    with pytest.raises(ConfigError) as caught:
        read_worker_properties(str(file))
    assert [one.key for one in caught.value.mistakes] == [
        *("group.id", "config.storage.topic", "offset.storage.topic", "status.storage.topic")
    ]
