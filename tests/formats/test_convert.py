"""There and back gives the same; what can't be said is listed, and nothing else differs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from resources import read_resource
from typer.testing import CliRunner

from sparkmirror.cli.app import app
from sparkmirror.config.entries import read_entries
from sparkmirror.config.formats import Reading, model_of, read
from sparkmirror.config.formats.convert import convert
from sparkmirror.config.model import DEFAULT_CONFIG_EXCLUDE

ROOT = Path(__file__).parents[2]

HEAD = {"clusters": "us, eu", "us.bootstrap.servers": "us1:9092,us2:9092", "eu.bootstrap.servers": "eu1:9092"}

POLICY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
NAMES = {
    "topics": st.sampled_from([r"a.*, b\d+", "orders", r"x:y=z\u00e9"]),
    "topics.exclude": st.sampled_from(["a1", ".*-tmp"]),
    "groups": st.sampled_from(["g.*", "billing"]),
    "tasks.max": st.integers(1, 9).map(str),
    "replication.factor": st.sampled_from(["-1", "1", "3"]),
    "replication.policy.class": st.just(POLICY),
    "replication.policy.separator": st.sampled_from(["_", "-"]),
    "sync.group.offsets.enabled": st.sampled_from(["true", "false"]),
    "sync.topic.acls.enabled": st.sampled_from(["true", "false"]),
    "refresh.topics.interval.seconds": st.integers(1, 999).map(str),
    "emit.checkpoints.interval.seconds": st.integers(1, 999).map(str),
    "checkpoints.topic.replication.factor": st.sampled_from(["-1", "1"]),
    "offset-syncs.topic.location": st.sampled_from(["source", "target"]),
    "offset.lag.max": st.integers(0, 999).map(str),
    "sparkmirror.on.expired": st.sampled_from(["halt", "continue"]),
    "sparkmirror.merge.tiny.batches": st.sampled_from(["true", "false"]),
}
HEARTBEATS = {
    "emit.heartbeats.interval.seconds": st.integers(1, 99).map(str),
    "heartbeats.topic.replication.factor": st.sampled_from(["-1", "1"]),
}
CLIENTS = {
    "eu.producer.compression.type": st.sampled_from(["zstd", "none"]),
    "us.consumer.fetch.max.bytes": st.integers(1000, 9999).map(str),
    "us->eu.consumer.auto.offset.reset": st.just("latest"),
    "us->eu.source.consumer.isolation.level": st.just("read_committed"),
    "us->eu.producer.override.max.request.size": st.integers(1000, 9999).map(str),
    "us->eu.use.defaults.from": st.just("source"),
    "eu.session.timeout.ms": st.just("7000"),
    "eu.offset.flush.interval.ms": st.just("5000"),
    "offset.storage.topic": st.just("the-offsets"),
    "eu.offset.storage.replication.factor": st.just("1"),
}
TLS = {
    "eu.security.protocol": st.just("SSL"),
    "eu.ssl.truststore.type": st.just("PEM"),
    "eu.ssl.truststore.certificates": st.just("-----BEGIN CERTIFICATE-----\\nabc\\n-----END CERTIFICATE-----"),
    "eu.ssl.keystore.type": st.just("PEM"),
    "eu.ssl.keystore.key": st.just("KEY"),
    "eu.ssl.keystore.certificate.chain": st.just("CHAIN"),
    "eu.ssl.endpoint.identification.algorithm": st.sampled_from(["https", ""]),
}


def flow_keys(names: dict[str, st.SearchStrategy[str]]) -> dict[str, st.SearchStrategy[str]]:
    """For all flows, and for one of them."""
    return names | {f"us->eu.{name}": values for name, values in names.items()}


@st.composite
def files(draw: st.DrawFn, *, heartbeats: bool) -> str:
    """An mm2.properties file with one or two flows."""
    optional = {**flow_keys(NAMES), **CLIENTS, **(flow_keys(HEARTBEATS) if heartbeats else {})}
    chosen = draw(st.sets(st.sampled_from(sorted(optional)), max_size=12))
    lines = {**HEAD, **{key: draw(optional[key]) for key in sorted(chosen)}}
    if draw(st.booleans()):
        lines |= {key: draw(values) for key, values in TLS.items()}
    lines["us->eu.enabled"] = "true"
    if draw(st.booleans()):
        lines["eu->us.enabled"] = "true"
    lines["emit.heartbeats.enabled"] = "true" if heartbeats else "false"
    return "".join(f"{key} = {value}\n" for key, value in lines.items())


@contextmanager
def read_text(text: str) -> Iterator[tuple[Reading, Path]]:
    with TemporaryDirectory() as directory:
        path = Path(directory, "mm2.properties")
        path.write_text(text, "latin-1")
        yield read([str(path)]), path.parent


def saved(directory: Path, texts: dict[str, str]) -> str:
    """Files below a directory; the path to read."""
    for name, text in texts.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text, "latin-1" if name.endswith(".properties") else "utf-8")
    return str(directory) if len(texts) > 1 else str(directory / next(iter(texts)))


def effective(reading: Reading) -> dict[tuple[str, str], str]:
    return {(one.flow, one.key): one.value for one in model_of(reading)[1]}


def back_again(reading: Reading, directory: Path, to: str) -> tuple[Reading, list[str]]:
    """Into another format, and back into properties; with what was not said on the way there."""
    there = convert(reading, to)
    other = read([saved(directory / "there", dict(there.files))])
    back = convert(other, "properties")
    return read([saved(directory / "back", dict(back.files))]), [note.key for note in there.notes]


@settings(max_examples=15, deadline=None)
@given(text=files(heartbeats=True))
def test_connectors_there_and_back(text: str) -> None:
    with read_text(text) as (reading, directory):
        back, unsaid = back_again(reading, directory, "connectors")
        assert not unsaid
        assert effective(back) == effective(reading)
        before, after = model_of(reading)[0], model_of(back)[0]
        assert {flow.name: flow for flow in after.flows} == {flow.name: flow for flow in before.flows}


@settings(max_examples=15, deadline=None)
@given(text=files(heartbeats=False))
def test_strimzi_there_and_back(text: str) -> None:
    with read_text(text) as (reading, directory):
        back, unsaid = back_again(reading, directory, "strimzi")
        assert not unsaid
        assert effective(back) == effective(reading)


@settings(max_examples=15, deadline=None)
@given(text=files(heartbeats=True))
def test_whatever_differs_is_listed(text: str) -> None:
    with read_text(text) as (reading, directory):
        back, unsaid = back_again(reading, directory, "strimzi")
        before, after = effective(reading), effective(back)
        there = {flow for flow, _ in after}
        differing = {
            f"{flow}.{key}" if flow in there else flow
            for (flow, key), value in before.items()
            if after.get((flow, key)) != value
        }
        assert differing <= set(unsaid)


def test_what_was_written_has_no_warnings(tmp_path: Path) -> None:
    """Also where a pair has nothing but heartbeats, and so no offsets that its worker would store."""
    path = tmp_path / "mm2.properties"
    path.write_text("".join(f"{key} = {value}\n" for key, value in HEAD.items()) + "us->eu.enabled = true\n")
    there = convert(read([str(path)]), "connectors")
    assert any(name.startswith("eu-to-us/") for name in there.files)
    config, _ = model_of(read([saved(tmp_path / "there", dict(there.files))]))
    assert not config.warnings


def test_spark_is_not_said(tmp_path: Path) -> None:
    path = tmp_path / "mm2.properties"
    path.write_text(
        "".join(f"{key} = {value}\n" for key, value in HEAD.items()) + "us->eu.enabled = true\nspark.x = 1\n"
    )
    result = convert(read([str(path)]), "connectors")
    assert [(note.key, note.line) for note in result.notes] == [("spark.x", 5)]


@pytest.mark.parametrize("to", ["connectors", "strimzi"])
def test_listeners_of_metrics_and_their_secrets_are_not_said(tmp_path: Path, to: str) -> None:
    key = "sparkmirror.metrics.listeners.https.ssl.key.password"
    file = tmp_path / "mm2.properties"
    head = "".join(f"{key} = {value}\n" for key, value in HEAD.items())
    file.write_text(f"{head}us->eu.enabled = true\n{key} = hunter2\n")
    result = convert(read([str(file)]), to)
    assert (key, 5) in [(note.key, note.line) for note in result.notes]
    assert "hunter2" not in str(result)


def test_a_pair_that_is_no_flow_is_named(tmp_path: Path) -> None:
    path = tmp_path / "mm2.properties"
    back = {"eu->us.enabled": "false", "eu->us.topics": "a", "eu->us.groups": "b"}
    lines = HEAD | {"us->eu.enabled": "true", "emit.heartbeats.enabled": "false", **back}
    path.write_text("".join(f"{key} = {value}\n" for key, value in lines.items()))
    reading = read([str(path)])
    for to in ("connectors", "strimzi"):
        assert [(note.key, note.line) for note in convert(reading, to).notes] == [("eu->us", 7)]
    assert not convert(reading, "properties").notes


@pytest.mark.parametrize("to", ["connectors", "strimzi", "properties"])
@pytest.mark.parametrize("key", ["config.properties.exclude", "us->eu.config.properties.exclude"])
def test_additions_are_written_as_the_list_that_they_make(tmp_path: Path, to: str, key: str) -> None:
    """The real MirrorMaker 2 knows no `+`."""
    path = tmp_path / "mm2.properties"
    lines = HEAD | {"us->eu.enabled": "true", "emit.heartbeats.enabled": "false", key: "+mine, +other.+"}
    path.write_text("".join(f"{name} = {value}\n" for name, value in lines.items()))
    reading = read([str(path)])
    result = convert(reading, to)
    whole = ",".join([*DEFAULT_CONFIG_EXCLUDE, "mine", "other.+"])
    assert not result.notes
    assert [text for text in result.files.values() if whole in text.replace("\n", "")]
    assert not [text for text in result.files.values() if "+mine" in text]
    there = read([saved(tmp_path / "there", dict(result.files))])
    assert effective(there)["us->eu", "config.properties.exclude"] == whole.replace(",", ", ")


def test_connectors_keep_their_names_and_workers(tmp_path: Path) -> None:
    """Connect knows connectors and their offsets by these."""
    connector = {
        "connector.class": "MirrorSourceConnector",
        "source.cluster.alias": "us",
        "target.cluster.alias": "eu",
        "source.cluster.bootstrap.servers": "us1:9092",
        "target.cluster.bootstrap.servers": "eu1:9092",
    }
    posted = {"name": "ours", "initial_state": "STOPPED", "config": connector}
    worker = "bootstrap.servers = third:9092\ngroup.id = g\noffset.storage.topic = o\nconfig.storage.topic = c\n"
    old = read([saved(tmp_path / "old", {"source.json": json.dumps(posted), "worker.properties": worker})])
    result = convert(old, "connectors")
    assert not result.notes
    new = read([saved(tmp_path / "new", dict(result.files))])
    ((before,), (after,)) = old.connect[0].connectors, new.connect[0].connectors
    assert (after.name, after.state) == (before.name, before.state) == ("ours", "stopped")
    assert old.connect[0].worker is not None
    assert new.connect[0].worker is not None
    texts = [
        {key: entry.value for key, entry in one.settings.items()}
        for one in (old.connect[0].worker, new.connect[0].worker)
    ]
    assert texts[0] == texts[1]
    assert [note.key for note in convert(old, "strimzi").notes] == ["ours"]


@pytest.mark.parametrize("with_source", [False, True])
def test_a_checkpoint_connector_alone_copies_in_no_format(tmp_path: Path, with_source: bool) -> None:
    """An mm2.properties file can't say that groups only are translated: the flow is off there, and that is listed."""

    def alone(spec: dict[str, Any]) -> None:
        source = spec["mirrors"][0].pop("sourceConnector")
        if with_source:
            asia = {"alias": "asia", "bootstrapServers": "asia1:9092"}
            spec["mirrors"].append({"source": asia, "sourceConnector": source})

    reading = read_resource(tmp_path, alone)
    properties = convert(reading, "properties")
    assert "us->eu.enabled = false" in properties.files["mm2.properties"].replace("\\", "")
    named = {note.key: note.reason for note in properties.notes if note.key in ("properties", "us->eu")}
    assert list(named) == ["us->eu"]
    assert named["us->eu"].startswith("copies nothing")
    if with_source:
        (flow,) = model_of(read([saved(tmp_path / "there", dict(properties.files))]))[0].flows
        assert flow.name == "asia->eu"
    connectors = convert(reading, "connectors")
    assert "us-to-eu/checkpoint.json" in connectors.files
    assert "us-to-eu/source.json" not in connectors.files
    assert "connectors" not in [note.key for note in connectors.notes]


AWS_WORKER = """\
bootstrap.servers=BROKERS
group.id=GROUP
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
key.converter.schemas.enable=true
value.converter.schemas.enable=true
offset.storage.topic=connect-offsets-GROUP
offset.storage.replication.factor=3
config.storage.topic=connect-configs-GROUP
config.storage.replication.factor=3
status.storage.topic=connect-status-GROUP
status.storage.replication.factor=3
offset.flush.interval.ms=10000
connector.client.config.override.policy=All
security.protocol=SASL_SSL
sasl.mechanism = AWS_MSK_IAM
sasl.jaas.config = software.amazon.msk.auth.iam.IAMLoginModule required;
sasl.client.callback.handler.class = software.amazon.msk.auth.iam.IAMClientCallbackHandler
producer.security.protocol=SASL_SSL
producer.sasl.mechanism = AWS_MSK_IAM
producer.sasl.jaas.config = software.amazon.msk.auth.iam.IAMLoginModule required;
producer.sasl.client.callback.handler.class = software.amazon.msk.auth.iam.IAMClientCallbackHandler
producer.max.request.size = 26214400
producer.batch.size = 524288
producer.buffer.memory = 524288000
producer.receive.buffer.bytes = 33554432
producer.send.buffer.bytes = 33554432
producer.compression.type = gzip
"""
"""The AWS kit's, for IAM."""


@pytest.mark.parametrize("to", ["properties", "strimzi", "connectors"])
def test_each_key_of_the_kits_worker_is_said_or_listed(tmp_path: Path, to: str) -> None:
    iam = {line.partition("=")[0].strip(): line.partition("=")[2].strip() for line in AWS_WORKER.splitlines()}
    signed = {key: value for key, value in iam.items() if key.startswith(("security.", "sasl."))}
    source = {
        "name": "mm2-msc",
        "connector.class": "MirrorSourceConnector",
        "source.cluster.alias": "msksource",
        "target.cluster.alias": "mskdest",
        "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
        "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
    }
    for end, servers in (("source", "OLD"), ("target", "BROKERS")):
        source |= {f"{end}.cluster.{key}": value for key, value in signed.items()}
        source[f"{end}.cluster.bootstrap.servers"] = f"{servers}:9098"
    worker = AWS_WORKER.replace("BROKERS", "BROKERS:9098")
    reading = read([saved(tmp_path, {"source.json": json.dumps(source), "worker.properties": worker})])
    result = convert(reading, to)
    listed = {note.key for note in result.notes}
    warned = "\n".join(result.warnings)
    if to == "properties":
        said = {
            entry.key.removeprefix("mskdest.") for entry in read_entries(saved(tmp_path / "out", dict(result.files)))
        }
    elif to == "strimzi":
        spec = list(yaml.safe_load_all(result.files["mirror.yaml"]))[-1]["spec"]["target"]
        fields = {"bootstrapServers", "groupId", "offsetStorageTopic", "configStorageTopic", "statusStorageTopic"}
        assert fields <= spec.keys()
        own = {"bootstrap.servers", "group.id", *(f"{kind}.storage.topic" for kind in ("offset", "config", "status"))}
        said = own | spec["config"].keys() | spec["authentication"]["config"].keys() | {"security.protocol"}
    else:
        saved(tmp_path / "out", dict(result.files))
        (written,) = (tmp_path / "out").rglob("worker.properties")
        said = {entry.key for entry in read_entries(str(written))}
    # The producer's own sign-in is the target's, which is said once.
    said |= {f"producer.{key}" for key in signed if key in said}
    unsaid = [key for key in iam if key not in said and key not in listed and f"{key}: " not in warned]
    assert not unsaid
    assert ("key.converter.schemas.enable" in listed) == (to != "connectors")


@pytest.mark.parametrize("own", [{"enabled": "false"}, {"emit.checkpoints.enabled": "false"}])
def test_a_connector_with_nothing_to_do_stays(tmp_path: Path, own: dict[str, str]) -> None:
    places = {
        "source.cluster.alias": "us",
        "target.cluster.alias": "eu",
        "source.cluster.bootstrap.servers": "us1:9092",
        "target.cluster.bootstrap.servers": "eu1:9092",
    }
    source = {"connector.class": "MirrorSourceConnector", **places}
    checkpoint = {"connector.class": "MirrorCheckpointConnector", **places, "groups": "b.*", **own}
    texts = {"source.json": json.dumps(source), "checkpoint.json": json.dumps(checkpoint)}
    result = convert(read([saved(tmp_path, texts)]), "connectors")
    written = json.loads(result.files["us-to-eu/checkpoint.json"])
    assert written.items() >= {**own, "groups": "b.*"}.items()
    assert written.keys() & {"enabled", "emit.checkpoints.enabled"} == own.keys()


def test_secrets_leave_the_resource(tmp_path: Path) -> None:
    """They go into Secrets; where they are mounted already, references to these stay."""
    (tmp_path / "me").mkdir()
    (tmp_path / "me" / "ca.crt").write_text("CA")
    path = tmp_path / "mm2.properties"
    lines = HEAD | {
        "us->eu.enabled": "true",
        "config.providers": "dir",
        "config.providers.dir.class": "DirectoryConfigProvider",
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": f"${{dir:{tmp_path}/me:ca.crt}}",
        "eu.ssl.keystore.location": "/keys.jks",
        "eu.ssl.keystore.password": "hunter2",
    }
    path.write_text("".join(f"{key} = {value}\n" for key, value in lines.items()))
    text = convert(read([str(path)]), "strimzi", str(tmp_path)).files["mirror.yaml"]
    secret, resource = text.split("---\n")
    assert "hunter2" in secret
    assert "hunter2" not in resource
    assert "ssl.keystore.password: ${strimzisecrets:kafka/eu-client:ssl.keystore.password}" in resource
    assert "secretName: me" in resource


@pytest.mark.parametrize("example", ["basic", "sync-groups", "same-names", "older-v1beta2"])
def test_examples_into_the_other_formats(example: str, tmp_path: Path) -> None:
    reading = read([str(ROOT / "examples" / "strimzi" / f"{example}.yaml")])
    for to in ("properties", "connectors"):
        other = read([saved(tmp_path / to, dict(convert(reading, to).files))])
        assert effective(other) == effective(reading)


def test_the_verb(tmp_path: Path) -> None:
    example = str(ROOT / "examples" / "strimzi" / "older-v1beta2.yaml")
    output = tmp_path / "out"
    result = CliRunner().invoke(app, ["convert", example, "--to", "connectors", "-w", str(output)])
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in (output / "north-to-hub").iterdir()) == [
        "checkpoint.json",
        "heartbeat.json",
        "source.json",
        "worker.properties",
    ]
    shown = CliRunner().invoke(app, ["convert", example, "--to", "connectors", "-o", "json"])
    files = json.loads(shown.stdout)["files"]
    assert files == {str(path.relative_to(output)): path.read_text() for path in output.rglob("*") if path.is_file()}
    assert {"file", "line", "key", "reason"} == set(json.loads(shown.stdout)["not_said"][0])
    told = CliRunner().invoke(app, ["convert", example, "--to", "connectors", "-w", f"{output}-2", "-o", "json"])
    assert set(json.loads(told.stdout)["files"]) == {f"{output}-2/{name}" for name in files}
    refused = CliRunner().invoke(app, ["convert", example, "--to", "connectors"])
    assert "--write DIR" in str(refused.exception)
    printed = CliRunner().invoke(app, ["convert", example, "--to", "strimzi"])
    assert printed.exit_code == 0
    assert "kind: KafkaMirrorMaker2" in printed.stdout
    assert "no place in the other format" in printed.stderr
    assert CliRunner().invoke(app, ["convert", example, "--to", "strimzi", "--strict"]).exit_code == 1


def test_only_its_owner_reads_a_written_file(tmp_path: Path) -> None:
    """There may be passwords in it; a file that was there keeps its mode."""
    example = str(ROOT / "examples" / "strimzi" / "older-v1beta2.yaml")
    for mode in (0o600, 0o640):
        (tmp_path / f"{mode:o}").touch(mode)
    umask = os.umask(0o022)
    try:
        for to, path in (("properties", "new"), ("connectors", "new-ones"), ("properties", "600"), ("strimzi", "640")):
            result = CliRunner().invoke(app, ["convert", example, "--to", to, "--write", str(tmp_path / path)])
            assert result.exit_code == 0, result.output
    finally:
        os.umask(umask)
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.name: path.stat().st_mode & 0o777 for path in written} == {
        **dict.fromkeys(["new", "source.json", "checkpoint.json", "heartbeat.json", "worker.properties"], 0o600),
        "600": 0o600,
        "640": 0o640,
    }
    assert all(path.stat().st_size for path in written)
