"""Connectors' JSON files and their workers' become the keys of an mm2.properties file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from resources import values, write_connectors

from sparkmirror.config.formats import model_of, read
from sparkmirror.errors import ConfigError

PACKAGE = "org.apache.kafka.connect.mirror."
POLICY = "com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy"
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
SIGNED = {
    "none": {},
    "mtls": {
        "security.protocol": "SSL",
        "ssl.truststore.location": "/tmp/kafka.client.truststore.jks",
        "ssl.truststore.password": "changeit",
        "ssl.keystore.location": "/tmp/kafka.client.keystore.jks",
        "ssl.keystore.password": "password",
        "ssl.key.password": "password",
    },
    "scram": {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required"
        ' username="u" password="p";',
    },
    "iam": {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "AWS_MSK_IAM",
        "sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;",
        "sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMClientCallbackHandler",
    },
}
"""How the kit for Amazon's MSK signs in, in its four variants."""


def connector(role: str, signed: str = "none", **more: str) -> dict[str, str]:
    """A connector as the kit has it."""
    config = {
        "connector.class": f"{PACKAGE}Mirror{role}Connector",
        "name": f"mm2-{role}",
        "clusters": "msksource,mskdest",
        "source.cluster.alias": "msksource",
        "target.cluster.alias": "mskdest",
        "source.cluster.bootstrap.servers": "source:9092",
        "target.cluster.bootstrap.servers": "target:9092",
        "key.converter": f" {BYTES}",
        "value.converter": BYTES,
        "replication.factor": "3",
        "replication.policy.class": POLICY,
    }
    config |= {f"{end}.cluster.{key}": value for end in ("source", "target") for key, value in SIGNED[signed].items()}
    return config | more


def three(signed: str = "none", **more: str) -> dict[str, dict[str, str]]:
    """The kit's three connectors; `more` goes into the source connector."""
    return {
        "source": connector(
            "Source",
            signed,
            **{
                "topics": r"^Example[\w]*",
                "tasks.max": "4",
                "consumer.group.id": "mm2-msc",
                "producer.override.bootstrap.servers": "target:9092",
                "producer.override.max.request.size": "26214400",
                "source.cluster.batch.size": "524288",
            },
            **more,
        ),
        "checkpoint": connector("Checkpoint", signed, **{"sync.group.offsets.enabled": "true"}),
        "heartbeat": connector("Heartbeat", signed, **{"emit.heartbeats.interval.seconds": "20"}),
    }


@pytest.mark.parametrize("signed", SIGNED)
def test_the_kits_twelve_files(tmp_path: Path, signed: str) -> None:
    keys = values(read(write_connectors(tmp_path, **three(signed))))
    for alias in ("msksource", "mskdest"):
        own = {key.removeprefix(f"{alias}."): value for key, value in keys.items() if key.startswith(f"{alias}.")}
        assert own.pop("bootstrap.servers")
        assert own == SIGNED[signed]
    assert keys["clusters"] == "msksource, mskdest"
    flow = "msksource->mskdest."
    assert keys[f"{flow}enabled"] == "true"
    assert keys[f"{flow}topics"] == r"^Example[\w]*"
    assert keys[f"{flow}tasks.max"] == "4"
    assert keys[f"{flow}replication.policy.class"] == POLICY
    assert keys[f"{flow}sync.group.offsets.enabled"] == "true"
    assert keys[f"{flow}emit.heartbeats.enabled"] == "true"
    assert keys[f"{flow}emit.heartbeats.interval.seconds"] == "20"
    assert keys[f"{flow}producer.override.max.request.size"] == "26214400"
    assert f"{flow}producer.override.bootstrap.servers" not in keys


def test_what_is_run(tmp_path: Path) -> None:
    config, _ = model_of(read(write_connectors(tmp_path, **three())))
    (flow,) = config.flows
    assert flow.produce.max_request_size == 26_214_400
    assert flow.connect.connector == "mm2-Source"
    assert flow.group.sync_group_offsets_enabled
    assert not config.beats
    said = "\n".join(config.warnings)
    assert "source.json, line 18: source.cluster.batch.size: reaches no client" in said
    assert "replication.factor: is not read by the checkpoint connector, only by source" in said


def test_a_source_connector_alone(tmp_path: Path) -> None:
    config, _ = model_of(read(write_connectors(tmp_path, source=three()["source"])))
    (flow,) = config.flows
    assert not flow.group.emit_checkpoints_enabled
    assert not flow.heartbeat.emit_heartbeats_enabled


def test_a_heartbeat_connector_alone(tmp_path: Path) -> None:
    config, _ = model_of(read(write_connectors(tmp_path, heartbeat=three()["heartbeat"])))
    assert not config.flows
    assert [beat.name for beat in config.beats] == ["msksource->mskdest"]


@pytest.mark.parametrize("in_a_list", [True, False])
def test_as_they_are_posted(tmp_path: Path, in_a_list: bool) -> None:
    """`{"name": …, "config": {…}}`, and several in one file: each value has its own line."""
    posted = [{"name": name, "config": config} for name, config in three().items()]
    paths = write_connectors(tmp_path, **({"all": posted} if in_a_list else dict(zip("abc", posted, strict=True))))
    assert values(read(paths)) == values(read(write_connectors(tmp_path, **three())))
    if in_a_list:
        (cluster,) = read(paths).connect
        lines = Path(paths[0]).read_text().splitlines()
        for one in cluster.connectors:
            for entry in one.settings.values():
                assert f'"{entry.key}": "{entry.value}"' in lines[entry.line - 1].replace("\\\\", "\\").replace(
                    '\\"', '"'
                )


@pytest.mark.parametrize("state", ["PAUSED", "stopped"])
def test_a_connector_that_is_not_to_run(tmp_path: Path, state: str) -> None:
    """As it is posted to Connect (KIP-980): it is not run, and nobody has to guess why."""
    posted = {name: {"name": name, "config": config} for name, config in three().items()}
    posted["checkpoint"]["initial_state"] = state
    posted["heartbeat"]["initial_state"] = state
    reading = read(write_connectors(tmp_path, **posted))
    config, _ = model_of(reading)
    (flow,) = config.flows
    assert not flow.group.emit_checkpoints_enabled
    assert not flow.heartbeat.emit_heartbeats_enabled
    last = len((tmp_path / "checkpoint.json").read_text().splitlines()) - 1
    assert f"{tmp_path}/checkpoint.json, line {last}: initial_state: is {state}: the connector is not run" in [
        str(note) for note in reading.notes
    ]
    assert not reading.idle


def test_connectors_none_of_which_is_to_run(tmp_path: Path) -> None:
    files = {name: {"initial_state": "STOPPED", "config": config} for name, config in three().items()}
    reading = read(write_connectors(tmp_path, **files))
    assert values(reading)["msksource->mskdest.enabled"] == "false"
    assert reading.idle == "every connector is paused or stopped"


def test_states_in_a_list_have_their_own_lines(tmp_path: Path) -> None:
    posted = [{"config": config, "initial_state": "PAUSED"} for config in three().values()]
    reading = read(write_connectors(tmp_path, all=posted))
    lines = [
        number for number, line in enumerate((tmp_path / "all.json").read_text().splitlines(), 1) if "PAUS" in line
    ]
    assert [note.line for note in reading.notes if note.key == "initial_state"] == lines


def test_an_initial_state_that_is_none(tmp_path: Path) -> None:
    files = {"source": {"name": "x", "initial_state": "ASLEEP", "config": three()["source"]}}
    with pytest.raises(ConfigError, match=r"source.json, line 3: initial_state: must be RUNNING, PAUSED or STOPPED"):
        read(write_connectors(tmp_path, **files))


def test_fields_beside_the_configuration(tmp_path: Path) -> None:
    """What Connect itself tells of a connector is no reason to warn."""
    one = {"name": "x", "confg": {}, "config": three()["source"], "tasks": [{"connector": "x", "task": 0}]}
    reading = read(write_connectors(tmp_path, source=one | {"type": "source", "initial_state": "RUNNING"}))
    named = {note.key: note.kind for note in reading.notes if note.key in ("confg", "tasks", "type", "initial_state")}
    assert named == {"confg": "", "tasks": "not needed", "type": "not needed"}
    assert any("confg: is not read" in line for line in model_of(reading)[0].warnings)


def test_policies_that_disagree(tmp_path: Path) -> None:
    """The kit's own variant without authentication: its checkpoint connector has no policy."""
    files = three()
    del files["checkpoint"]["replication.policy.class"]
    notes = [note for note in read(write_connectors(tmp_path, **files)).notes if note.kind == "mismatch"]
    assert [(note.key, Path(note.path).name) for note in notes] == [("replication.policy.class", "source.json")]


def test_what_only_the_checkpoint_connector_says_is_not_the_sources(tmp_path: Path) -> None:
    """A policy there names no topics: the source connector goes by its default."""
    files = three()
    del files["source"]["replication.policy.class"]
    reading = read(write_connectors(tmp_path, **files))
    assert model_of(reading)[0].flows[0].replication_policy_class.endswith("DefaultReplicationPolicy")
    assert [note.key for note in reading.notes if note.kind == "mismatch"] == ["replication.policy.class"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda files: files.pop("source"), "mm2-Checkpoint: these files have no MirrorSourceConnector"),
        (lambda files: files["heartbeat"].update({"connector.class": "MirrorCheckpoint"}), "is a second MirrorCheckp"),
        (lambda files: files["source"].update({"connector.class": "FileStreamSource"}), "is none of MirrorMaker 2's"),
        (lambda files: files["source"].pop("connector.class"), "connector.class: names no connector"),
        (lambda files: files["source"].pop("source.cluster.alias"), "has no source.cluster.alias"),
        (
            lambda files: files["checkpoint"].update({"target.cluster.bootstrap.servers": "elsewhere:1"}),
            "checkpoint.json, line 8: target.cluster.bootstrap.servers: is something else in",
        ),
    ],
)
def test_what_is_wrong(tmp_path: Path, change: Any, says: str) -> None:
    files = three()
    change(files)
    with pytest.raises(ConfigError, match="json") as caught:
        read(write_connectors(tmp_path, **files))
    assert says in str(caught.value)


@pytest.mark.parametrize("text", ["{", "[]x", '{"a": {"b": 1}}', '"text"'])
def test_no_connectors(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"x\.json"):
        read([str(path)])


def worker(directory: Path, **more: str) -> str:
    settings = {
        "bootstrap.servers": "target:9092",
        "group.id": "connect",
        "offset.storage.topic": "connect-offsets",
        "config.storage.topic": "connect-configs",
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        **more,
    }
    path = directory / "worker.properties"
    path.write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))
    return str(path)


def test_workers(tmp_path: Path) -> None:
    paths = [*write_connectors(tmp_path, **three()), worker(tmp_path, **{"producer.compression.type": "zstd"})]
    (flow,) = model_of(read(paths))[0].flows
    assert flow.connect.offset_storage_topic == "connect-offsets"
    assert flow.produce.compression_type == "zstd"
    assert values(read([str(tmp_path)])) == values(read(paths))


def test_a_workers_spark(tmp_path: Path) -> None:
    """`spark.*` next to connectors is Spark's own, for all flows, as with `serve`."""
    paths = [*write_connectors(tmp_path, **three()), worker(tmp_path, **{"spark.master": "spark://master:7077"})]
    config, _ = model_of(read(paths))
    assert config.spark == {"spark.master": "spark://master:7077"}
    assert not any("spark.master" in line for line in config.warnings)


def test_a_workers_converter_counts_where_the_connector_has_none(tmp_path: Path) -> None:
    files = three()
    del files["source"]["key.converter"]
    paths = [*write_connectors(tmp_path, **files), worker(tmp_path)]
    with pytest.raises(ConfigError, match=r"worker.properties, line 5: .*key.converter: records are copied as bytes"):
        model_of(read(paths))


def test_workers_of_a_third_cluster(tmp_path: Path) -> None:
    """Connect may keep its topics anywhere; data goes to the target all the same."""
    files = three()
    reading = read([*write_connectors(tmp_path, **files), worker(tmp_path, **{"bootstrap.servers": "third:9092"})])
    assert "mskdest.offset.storage.topic" not in values(reading)
    assert any("are not at mskdest" in note.reason for note in reading.notes)


def test_other_security_for_the_data_counts_for_the_data(tmp_path: Path) -> None:
    paths = [*write_connectors(tmp_path, **three()), worker(tmp_path, **{"producer.security.protocol": "SSL"})]
    (flow,) = model_of(read(paths))[0].flows
    assert flow.target.security_protocol == "PLAINTEXT"
    assert flow.target.for_copying.security_protocol == "SSL"


def test_a_worker_alone_says_nothing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="give the connectors' files, too"):
        read([worker(tmp_path)])
