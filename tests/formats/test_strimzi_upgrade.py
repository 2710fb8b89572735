"""v1beta2 becomes v1 with all that is in it; what v1 can't say is listed."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from resources import RESOURCE, change, read_resource, values

from sparkmirror.config.formats import Reading, model_of, read
from sparkmirror.config.formats.convert import convert
from sparkmirror.config.model import DEFAULT_CONFIG_EXCLUDE

ROOT = Path(__file__).parents[2]
OLD: dict[str, Any] = yaml.safe_load("""
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaMirrorMaker2
metadata: {name: my-mm2, namespace: prod, labels: {team: payments}}
spec:
  version: 3.9.0
  connectCluster: b
  clusters:
  - {alias: a, bootstrapServers: "a:9092"}
  - {alias: c, bootstrapServers: "c:9092"}
  - alias: b
    bootstrapServers: b:9092
    config:
      group.id: my-group
      config.storage.topic: my-configs
      offset.storage.topic: my-offsets
      status.storage.topic: my-status
      config.storage.replication.factor: -1
  mirrors:
  - sourceCluster: a
    targetCluster: b
    sourceConnector: {tasksMax: 4, autoRestart: {enabled: true}, config: {replication.factor: -1}}
    checkpointConnector: {tasksMax: 2, state: stopped, config: {sync.group.offsets.enabled: true}}
    topicsPattern: orders.*
  - sourceCluster: c
    sourceConnector: {pause: true, config: {}}
    topicsPattern: bills.*
    topicsBlacklistPattern: bills-x
  template: {pod: {metadata: {labels: {x: y}}}}
""")
IDENTITIES = {
    "group.id": "my-group",
    "config.storage.topic": "my-configs",
    "offset.storage.topic": "my-offsets",
    "status.storage.topic": "my-status",
}
STATES = [
    ("a->b.MirrorSourceConnector", "running"),
    ("a->b.MirrorCheckpointConnector", "stopped"),
    ("c->b.MirrorSourceConnector", "paused"),
]


def read_old(directory: Path, *others: dict[str, Any], **changed: Any) -> Reading:
    resource = copy.deepcopy(OLD)
    resource["spec"] |= changed
    path = directory / "old.yaml"
    path.write_text(yaml.safe_dump_all([*others, resource]))
    return read([str(path)], str(directory))


def upgraded(reading: Reading, directory: Path) -> tuple[Reading, list[str]]:
    """Read again as v1, and what was not said."""
    result = convert(reading, "strimzi", str(directory))
    path = directory / "new.yml"
    path.write_text(result.files["mirror.yaml"])
    new = read([str(path)], str(directory))
    assert not [one for one in new.resources if one.document["apiVersion"] != "kafka.strimzi.io/v1"]
    return new, [note.key for note in result.notes]


def identities(reading: Reading) -> list[tuple[str, str, dict[str, str]]]:
    """Connectors with their states, and what their workers are called by."""
    return [
        (one.name, one.state, {key: cluster.worker.settings[key].value for key in IDENTITIES if cluster.worker})
        for cluster in reading.connect
        for one in cluster.connectors
    ]


def test_the_same_and_by_the_same_names(tmp_path: Path) -> None:
    old = read_old(tmp_path)
    new, unsaid = upgraded(old, tmp_path)
    assert not unsaid
    assert values(new) == values(old)
    assert identities(new) == identities(old) == [(name, state, IDENTITIES) for name, state in STATES]
    (resource,) = new.resources
    assert resource.document["metadata"] == OLD["metadata"]
    assert resource.replicas == 3
    spec = resource.document["spec"]
    assert (spec["version"], spec["template"]) == (OLD["spec"]["version"], OLD["spec"]["template"])
    assert spec["mirrors"][0]["checkpointConnector"] == OLD["spec"]["mirrors"][0]["checkpointConnector"]
    assert spec["mirrors"][0]["sourceConnector"]["autoRestart"] == {"enabled": True}


@pytest.mark.parametrize("path", sorted((ROOT / "examples" / "strimzi").glob("*.yaml")), ids=lambda path: path.stem)
def test_examples(path: Path, tmp_path: Path) -> None:
    for name in ("east-cluster-ca-cert", "west-cluster-ca-cert", "mirror-user", "east-mirror-user"):
        (tmp_path / name).mkdir()
        for key in ("ca.crt", "user.crt", "user.key", "password"):
            (tmp_path / name / key).write_text("x")
    old = read([str(path)], str(tmp_path))
    new, unsaid = upgraded(old, tmp_path)
    without_heartbeats = [one for one in identities(old) if "Heartbeat" not in one[0]]
    assert identities(new) == without_heartbeats
    if without_heartbeats == identities(old):
        assert values(new) == values(old)
        assert not unsaid


def test_the_operators_defaults_are_written_out(tmp_path: Path) -> None:
    clusters = [{"alias": alias, "bootstrapServers": f"{alias}:9092"} for alias in "abc"]
    new, _ = upgraded(read_old(tmp_path, clusters=clusters), tmp_path)
    target = new.resources[0].document["spec"]["target"]
    assert (target["groupId"], target["configStorageTopic"]) == ("mirrormaker2-cluster", "mirrormaker2-cluster-configs")
    assert target["statusStorageTopic"] == "mirrormaker2-cluster-status"


def test_what_v1_can_not_say(tmp_path: Path) -> None:
    clusters = [*OLD["spec"]["clusters"], {"alias": "d", "bootstrapServers": "d:9092"}]
    clusters[0] = clusters[0] | {"authentication": {"type": "oauth", "accessTokenLocation": "/token"}}
    mirrors = copy.deepcopy(OLD["spec"]["mirrors"])
    mirrors[1]["heartbeatConnector"] = {}
    reading = read_old(tmp_path, clusters=clusters, mirrors=mirrors, externalConfiguration={"env": []})
    _, unsaid = upgraded(reading, tmp_path)
    assert unsaid[:4] == [
        "spec.clusters[0].authentication.type",
        "spec.mirrors[1].heartbeatConnector",
        "spec.clusters[3]",
        "spec.externalConfiguration",
    ]


def test_what_is_beside_stays_and_v1_is_left_alone(tmp_path: Path) -> None:
    secret = {"kind": "Secret", "metadata": {"name": "me"}, "stringData": {"a": "b"}}
    old = read_old(tmp_path, secret, RESOURCE)
    documents = list(yaml.safe_load_all(convert(old, "strimzi").files["mirror.yaml"]))
    assert documents[:2] == [secret, RESOURCE]
    assert documents[2]["apiVersion"] == "kafka.strimzi.io/v1"


def test_all_at_rest(tmp_path: Path) -> None:
    """Nothing is run, and nothing is lost."""
    old = read_old(tmp_path, replicas=0)
    new, unsaid = upgraded(old, tmp_path)
    assert not unsaid
    assert values(new) == values(old)
    assert new.idle == old.idle == "replicas is 0"


def test_v1beta2_with_v1s_layout(tmp_path: Path) -> None:
    old = read_resource(tmp_path, change("mirrors.0.topicsBlacklistPattern", "x"), version="v1beta2")
    new, unsaid = upgraded(old, tmp_path)
    assert not unsaid
    assert values(new) == values(old)


# --- into connectors' files and back -----------------------------------------------------------------


def test_connectors_keep_names_and_states(tmp_path: Path) -> None:
    old = read_old(tmp_path)
    result = convert(old, "connectors")
    assert [note.key for note in result.notes] == ["spec.version", "spec.replicas"]
    for name, text in result.files.items():
        path = tmp_path / "connect" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    again = read([str(tmp_path / "connect")])
    assert sorted(identities(again), key=str) == sorted(identities(old), key=str)
    assert {(one.flow, one.key): one.value for one in model_of(again)[1]} == {
        (one.flow, one.key): one.value for one in model_of(old)[1]
    }
    back = convert(again, "strimzi")
    (resource,) = yaml.safe_load_all(back.files["mirror.yaml"])
    first, second = resource["spec"]["mirrors"]
    assert resource["spec"]["target"]["groupId"] == "my-group"
    assert first["checkpointConnector"]["state"] == "stopped"
    assert first["checkpointConnector"]["tasksMax"] == 2
    assert second["sourceConnector"]["state"] == "paused"
    assert not back.notes


def test_additions_become_the_list_that_they_make(tmp_path: Path) -> None:
    tree = copy.deepcopy(OLD)
    for mirror, value in zip(tree["spec"]["mirrors"], ("+mine", "mine"), strict=True):
        mirror["sourceConnector"]["config"]["config.properties.exclude"] = value
    path = tmp_path / "mirror.yaml"
    path.write_text(yaml.safe_dump(tree))
    (text,) = convert(read([str(path)]), "strimzi").files.values()
    written = [
        mirror["sourceConnector"]["config"]["config.properties.exclude"]
        for mirror in yaml.safe_load(text)["spec"]["mirrors"]
    ]
    assert written == [",".join([*DEFAULT_CONFIG_EXCLUDE, "mine"]), "mine"]
