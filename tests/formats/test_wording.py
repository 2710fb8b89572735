"""Every mistake of a file is told, a line each, in the words and keys of that file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from resources import RESOURCE, change

from sparkmirror.config.effective import EffectiveValue
from sparkmirror.config.formats import model_of, read
from sparkmirror.config.formats.wording import Wording
from sparkmirror.errors import ConfigError
from sparkmirror.lint import check

PACKAGE = "org.apache.kafka.connect.mirror."
SOURCE = {
    "name": "mm2-msc",
    "connector.class": PACKAGE + "MirrorSourceConnector",
    "source.cluster.alias": "us",
    "target.cluster.alias": "eu",
    "source.cluster.bootstrap.servers": "s:9092",
    "target.cluster.bootstrap.servers": "t:9092",
}


def write(directory: Path, settings: dict[str, Any], kind: str) -> str:
    path = directory / f"connector.{kind}"
    lines = "".join(f"{key}={value}\n" for key, value in settings.items())
    path.write_text(json.dumps(settings, indent=0) if kind == "json" else lines)
    return str(path)


def connector(directory: Path, kind: str = "json", without: str = "", **more: Any) -> str:
    return write(directory, {key: value for key, value in (SOURCE | more).items() if key != without}, kind)


def resource(directory: Path, *changes: tuple[str, Any]) -> str:
    tree = json.loads(json.dumps(RESOURCE))
    for path, value in changes:
        change(path, value)(tree["spec"])
    file = directory / "mirror.json"
    file.write_text(json.dumps(tree, indent=0))
    return str(file)


def lines_of(path: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        model_of(read([path]))
    return [line.removeprefix(path) for line in str(caught.value).splitlines()]


def warnings_of(path: str) -> str:
    return "\n".join(model_of(read([path]))[0].warnings)


def shown(path: str) -> tuple[EffectiveValue, ...]:
    return model_of(read([path]))[1]


# --- mistakes of connectors -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["json", "properties"])
def test_each_of_several_mistakes_has_its_line(tmp_path: Path, kind: str) -> None:
    wrong = {"tasks.max": "many", "replication.factor": "0", "enabled": "true", "transforms": "x"}
    said = lines_of(connector(tmp_path, kind, **wrong, **{"source.cluster.bootstrap.servers": "s"}))
    assert [line.split(": ")[1] for line in said] == [
        *("source.cluster.bootstrap.servers", "tasks.max", "replication.factor", "transforms.x.type"),
    ]
    assert all(line.startswith(", line ") for line in said)
    assert "->" not in "\n".join(said)


@pytest.mark.parametrize("kind", ["json", "properties"])
@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("source.bootstrap.servers", "source.cluster.bootstrap.servers"),
        ("us.bootstrap.servers", "source.cluster.bootstrap.servers"),
        ("source.kafka.bootstrap.servers", "source.cluster.bootstrap.servers"),
        ("src.bootstrap.servers", "source.cluster.bootstrap.servers"),
        ("target.bootstrap.servers", "target.cluster.bootstrap.servers"),
        ("dest.kafka.bootstrap.servers", "target.cluster.bootstrap.servers"),
        ("eu.bootstrap.servers", "target.cluster.bootstrap.servers"),
    ],
)
def test_brokers_under_another_key(tmp_path: Path, kind: str, key: str, meant: str) -> None:
    (line,) = lines_of(connector(tmp_path, kind, meant, **{key: "x:9092"}))
    assert line.endswith(f": {key}: is read by no connector: write {meant}")


def test_msk_connects_keys(tmp_path: Path) -> None:
    """Both are told, and what else is wrong."""
    settings = {key.replace("cluster.bootstrap", "bootstrap"): value for key, value in SOURCE.items()}
    said = lines_of(write(tmp_path, settings | {"tasks.max": "x"}, "json"))
    assert [line.split(": ")[1] for line in said] == [
        "source.bootstrap.servers",
        "target.bootstrap.servers",
        "tasks.max",
    ]


@pytest.mark.parametrize("aliases", [("source", "target"), ("cluster", "kafka"), ("msk", "msk2"), ("a", "b")])
@pytest.mark.parametrize("kind", ["json", "properties"])
def test_msk_connects_keys_whatever_the_aliases_are(tmp_path: Path, kind: str, aliases: tuple[str, str]) -> None:
    """`source.` and `target.` before `bootstrap.servers` are no aliases there."""
    settings = {key.replace("cluster.bootstrap", "bootstrap"): value for key, value in SOURCE.items()}
    ends = dict(zip(("source.cluster.alias", "target.cluster.alias"), aliases, strict=True))
    said = lines_of(write(tmp_path, {**settings, **ends, "topics": ".*", "tasks.max": "1"}, kind))
    assert [line.split(": ", 1)[1] for line in said] == [
        f"{end}.bootstrap.servers: is read by no connector: write {end}.cluster.bootstrap.servers"
        for end in ("source", "target")
    ]


def test_brokers_that_are_missing(tmp_path: Path) -> None:
    (line,) = lines_of(connector(tmp_path, without="target.cluster.bootstrap.servers"))
    assert line == ": target.cluster.bootstrap.servers: is missing in mm2-msc: write the brokers, host:9092"


def test_a_login_that_is_missing(tmp_path: Path) -> None:
    more = {"source.cluster.security.protocol": "SASL_SSL", "source.cluster.sasl.mechanism": "PLAIN"}
    (line,) = lines_of(connector(tmp_path, **more))
    assert line.startswith(": source.cluster.sasl.jaas.config: is missing: ")


def test_mistakes_are_findings_with_the_key_that_was_written(tmp_path: Path) -> None:
    path = connector(tmp_path, **{"tasks.max": "many", "replication.factor": "0"})
    unusable = [one for one in check(read([path], partly=True)) if one.rule == "unusable"]
    assert [(one.key, one.line) for one in unusable] == [("tasks.max", 8), ("replication.factor", 9)]


# --- advice to who wrote connectors ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "says"),
    [
        ("topcs", "did you mean topics?"),
        ("refresh.topic.enabled", "did you mean refresh.topics.enabled?"),
        ("consumer.fetch.max.bytess", "did you mean consumer.fetch.max.bytes?"),
        ("producer.max.request.size", "write producer.override.max.request.size"),
        ("fetch.max.bytes", "write source.consumer.fetch.max.bytes"),
        ("source.cluster.receive.buffer.bytes", "write consumer.receive.buffer.bytes"),
        ("source.cluster.max.request.size", "write producer.override.max.request.size"),
        ("target.cluster.send.buffer.bytes", "write producer.override.send.buffer.bytes"),
        ("source.cluster.batch.size", "nor in MirrorMaker 2: take it out: batches are copied as they are"),
        ("source.cluster.config.storage.replication.factor", "it is a setting of Connect's workers"),
        ("target.cluster.offset.storage.topic", "it is a setting of Connect's workers"),
        ("offset.storage.topic", "it is a setting of Connect's workers"),
        ("us.topics", "us.topics: is not known; did you mean topics?"),
    ],
)
def test_advice_is_in_connectors_words(tmp_path: Path, key: str, says: str) -> None:
    said = warnings_of(connector(tmp_path, **{key: "1"}))
    assert f": {key}: " in said
    assert says in said
    assert "->" not in said


def test_followed_advice_leaves_nothing_to_say(tmp_path: Path) -> None:
    """The circle: what the advice says to write counts."""
    for key in (
        "consumer.receive.buffer.bytes",
        "producer.override.max.request.size",
        "producer.override.send.buffer.bytes",
    ):
        path = connector(tmp_path, **{key: "4321"})
        assert warnings_of(path) == ""
        assert "4321" in {one.value for one in shown(path)}


def test_the_kits_clusters_is_nothing_to_warn_about(tmp_path: Path) -> None:
    assert warnings_of(connector(tmp_path, clusters="us,eu")) == ""


def test_values_name_the_key_that_set_them(tmp_path: Path) -> None:
    path = connector(tmp_path, **{"tasks.max": "3", "consumer.fetch.max.bytes": "55"})
    origins = {one.key: one.where for one in shown(path)}
    assert origins["tasks.max"] == f"{path}, line 8: tasks.max"
    assert origins["us.bootstrap.servers"] == f"{path}, line 6: source.cluster.bootstrap.servers"
    assert origins["emit.checkpoints.enabled"] == f"{path}: no MirrorCheckpointConnector"
    assert not [where for where in origins.values() if "->" in where]


# --- Strimzi --------------------------------------------------------------------------------------------


def test_each_of_a_resources_mistakes_has_its_field(tmp_path: Path) -> None:
    path = resource(
        tmp_path,
        ("replicas", "one"),
        ("target.groupId", None),
        ("target.config", {"producer.max.request.size": "big"}),
        ("target.authentication", {"type": "custom", "config": {"sasl.mechanism": "PLAIN"}}),
        ("mirrors.0.source.bootstrapServers", "s"),
        ("mirrors.0.sourceConnector.config", {"replication.factor": 0}),
        ("mirrors.0.sourceConnector.tasksMax", 0),
        ("mirrors.0.checkpointConnector.config", {"sync.group.offsets.enabled": "maybe"}),
    )
    fields = {line.split(": ")[1] for line in lines_of(path)}
    assert fields == {
        "spec.replicas",
        "spec.target.groupId",
        "spec.target.config.producer.max.request.size",
        "spec.target.authentication.config.sasl.jaas.config",
        "spec.mirrors[0].source.bootstrapServers",
        "spec.mirrors[0].sourceConnector.config.replication.factor",
        "spec.mirrors[0].sourceConnector.tasksMax",
        "spec.mirrors[0].checkpointConnector.config.sync.group.offsets.enabled",
    }


@pytest.mark.parametrize(
    ("path", "key", "says"),
    [
        ("mirrors.0.source.config", "config.storage.replication.factor", "counts in the target's config only"),
        ("mirrors.0.source.config", "receive.buffer.bytes", "write consumer.receive.buffer.bytes"),
        ("mirrors.0.sourceConnector.config", "security.protocol", "write tls and authentication of a cluster"),
        ("mirrors.0.sourceConnector.config", "topcs", "did you mean topics?"),
    ],
)
def test_advice_is_in_resources_words(tmp_path: Path, path: str, key: str, says: str) -> None:
    said = warnings_of(resource(tmp_path, (path, {key: "9"})))
    assert f"spec.{path.replace('.0.', '[0].')}.{key}: " in said
    assert says in said
    assert "source.cluster." not in said


# --- the words themselves -------------------------------------------------------------------------------

ALIASES = st.text("abcxyz-_", min_size=1, max_size=5)


@given(ALIASES, ALIASES, st.sampled_from(["topics", "tasks.max", "producer.override.client.id"]))
def test_no_flow_is_left_in_a_text(source: str, target: str, name: str) -> None:
    words = Wording(((source, target),), {}, {})
    assert words.text(f"is not known; did you mean {source}->{target}.{name}?") == f"is not known; did you mean {name}?"


@given(st.text(max_size=40))
def test_a_text_without_keys_stays(text: str) -> None:
    words = Wording((("us", "eu"),), {}, {})
    if "us" not in text and "eu" not in text and " or " not in text and "<" not in text:
        assert words.text(text) == text
