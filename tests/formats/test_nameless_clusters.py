"""Empty aliases in connectors and Strimzi resources: MirrorMaker 2's old way to keep names (`config.aliases`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from resources import change, read_resource, values, write_connectors

from sparkmirror.config import IDENTITY_POLICY, FlowConfig, MirrorConfig
from sparkmirror.config.entries import read_entries
from sparkmirror.config.formats import Reading, model_of, read
from sparkmirror.config.formats.convert import convert
from sparkmirror.errors import ConfigError
from sparkmirror.mirror.sync.topic_rules import topic_rules

PACKAGE = "org.apache.kafka.connect.mirror."
KEEPS = "is MirrorMaker 2's old way to keep topics' names: run as with IdentityReplicationPolicy, on from its"
EMPTY = {"source.cluster.alias": "", "replication.policy.separator": ""}
CASE = "orders", "mm2-offset-syncs{}internal", "checkpointsinternal"
"""The copy of `orders`, and MirrorMaker 2's two topics, as 4.3.1's own classes name them."""


def connector(role: str = "Source", **more: str) -> dict[str, str]:
    return {
        "connector.class": f"{PACKAGE}Mirror{role}Connector",
        "source.cluster.bootstrap.servers": "127.0.0.1:9092",
        "target.cluster.bootstrap.servers": "127.0.0.1:9192",
        **({"topics": "orders"} if role == "Source" else {}),
        **EMPTY,
        **{key.replace("_", "."): value for key, value in more.items()},
    }


def names(flow: FlowConfig) -> tuple[str, str, str]:
    policy = topic_rules(flow).policy
    remote = topic_rules(flow).remote_name("orders")
    return remote, policy.offset_syncs_topic(flow.mm2_target), policy.checkpoints_topic(flow.mm2_source)


def keeps_names(config: MirrorConfig, target: str) -> FlowConfig:
    (flow,) = config.flows
    copy, syncs, checkpoints = CASE
    assert names(flow) == (copy, syncs.format(target), checkpoints)
    assert flow.replication_policy_class == IDENTITY_POLICY
    assert flow.mm2_source == ""
    (said,) = [line for line in config.warnings if "alias" in line]
    assert f"source.cluster.alias: is empty, and replication.policy.separator too, which {KEEPS}" in said
    return flow


@pytest.mark.parametrize(
    ("files", "target"),
    [
        ({"source": connector()}, "target"),
        ({"source": connector(target_cluster_alias="eu")}, "eu"),
        ({"source": connector(source_cluster_alias="  ")}, "target"),
        ({"source": {"name": "mine", "config": connector()}}, "target"),
        ({"source": connector(), "checkpoint": connector("Checkpoint"), "heartbeat": connector("Heartbeat")}, "target"),
        ({"checkpoint": connector("Checkpoint"), "source": connector()}, "target"),
    ],
)
def test_connectors_as_json(tmp_path: Path, files: dict[str, Any], target: str) -> None:
    flow = keeps_names(model_of(read(write_connectors(tmp_path, **files)))[0], target)
    assert flow.name == f"unnamed->{target}"
    assert flow.group.emit_checkpoints_enabled is ("checkpoint" in files)


@pytest.mark.parametrize("more", ["", "tasks.max=2\n", "target.cluster.alias=eu\n", "name=mirror-source\n"])
def test_a_connector_as_properties(tmp_path: Path, more: str) -> None:
    path = tmp_path / "source.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in connector().items()) + more)
    config, _ = model_of(read([str(path)]))
    keeps_names(config, "eu" if "eu" in more else "target")
    assert any(line.startswith(f"{path}, line 5: source.cluster.alias: ") for line in config.warnings)


def test_both_aliases(tmp_path: Path) -> None:
    config, _ = model_of(read(write_connectors(tmp_path, source=connector(target_cluster_alias=""))))
    flow = keeps_names(config, "")
    assert (flow.name, flow.mm2_target) == ("unnamed->target", "")


def test_the_targets_alias_alone(tmp_path: Path) -> None:
    config, _ = model_of(
        read(
            write_connectors(
                tmp_path,
                source=connector(source_cluster_alias="us", target_cluster_alias="", replication_policy_separator="."),
            )
        )
    )
    (flow,) = config.flows
    assert (flow.name, names(flow)) == (
        "us->target",
        ("us.orders", "mm2-offset-syncs..internal", "us.checkpoints.internal"),
    )


def test_without_a_separator_alone_it_is_refused(tmp_path: Path) -> None:
    config = connector(replication_policy_separator=".")
    with pytest.raises(ConfigError) as caught:
        model_of(read(write_connectors(tmp_path, source=config)))
    assert caught.value.key == "source.cluster.alias"
    assert "for <alias>.orders write the source's alias here" in str(caught.value)
    policy = {**config, "replication.policy.class": IDENTITY_POLICY}
    (flow,) = model_of(read(write_connectors(tmp_path, source=policy)))[0].flows
    assert names(flow) == ("orders", "mm2-offset-syncs.target.internal", ".checkpoints.internal")


def test_an_alias_that_is_not_there(tmp_path: Path) -> None:
    """MirrorMaker 2 refuses that: it has no default."""
    config = connector()
    del config["source.cluster.alias"]
    with pytest.raises(ConfigError, match=r"source has no source\.cluster\.alias"):
        model_of(read(write_connectors(tmp_path, source=config)))


@pytest.mark.parametrize("role", ["Checkpoint", "Heartbeat"])
def test_connectors_of_one_flow_must_agree(tmp_path: Path, role: str) -> None:
    """A name that happens to be the one that the nameless is called by here."""
    other = connector(role, source_cluster_alias="unnamed")
    with pytest.raises(ConfigError, match="alias: is something else in"):
        model_of(read(write_connectors(tmp_path, source=connector(), other=other)))


def config_of(role: str, alias: object = "") -> tuple[str, dict[str, object]]:
    return f"mirrors.0.{role}Connector.config", {"source.cluster.alias": alias, "replication.policy.separator": ""}


def resource(directory: Path, *roles: str, alias: object = "") -> Reading:
    def empty(spec: dict[str, Any]) -> None:
        spec["mirrors"][0].pop("checkpointConnector")
        for role in roles:
            change(*config_of(role, alias))(spec)

    return read_resource(directory, empty)


@pytest.mark.parametrize("roles", [("source",), ("source", "checkpoint")])
def test_a_resource_whose_connectors_have_none(tmp_path: Path, roles: tuple[str, ...]) -> None:
    """Strimzi puts a connector's `config` over the aliases of the clusters."""
    config, _ = model_of(resource(tmp_path, *roles))
    flow = keeps_names(config, "eu")
    assert flow.name == "us->eu", "as Strimzi calls it"
    assert flow.connect.connector == "us->eu.MirrorSourceConnector"
    assert any("[0].sourceConnector.config.source.cluster.alias: is empty" in one for one in config.warnings)


def test_a_resource_in_which_one_connector_has_none(tmp_path: Path) -> None:
    def one(spec: dict[str, Any]) -> None:
        change(*config_of("source"))(spec)

    with pytest.raises(ConfigError, match="it can have one value only") as caught:
        model_of(read_resource(tmp_path, one))
    assert "alias" in str(caught.value.key)


@pytest.mark.parametrize(
    ("path", "version", "field"),
    [
        ("mirrors.0.source.alias", "v1", "spec.mirrors[0].source.alias"),
        ("target.alias", "v1", "spec.target.alias"),
        ("connectCluster", "v1beta2", "spec.connectCluster"),
    ],
)
def test_a_resources_own_alias_is_never_empty(tmp_path: Path, path: str, version: str, field: str) -> None:
    """The resource's own definition forbids it, so that the API server would not take it."""

    def empty(spec: dict[str, Any]) -> None:
        if version == "v1beta2":
            del spec["target"]
            spec["clusters"] = [{"alias": "us", "bootstrapServers": "u:1"}, {"alias": "", "bootstrapServers": "e:1"}]
        change(path, "")(spec)

    with pytest.raises(ConfigError) as caught:
        model_of(read_resource(tmp_path, empty, version=version))
    (said,) = [str(one) for one in caught.value.mistakes if one.key == field]
    assert "is empty, which Strimzi's definition of the resource forbids; to keep names" in said
    assert "source.cluster.alias and replication.policy.separator as ''" in said


PROPERTIES = (
    "clusters = us, eu\nus.bootstrap.servers = u:1\neu.bootstrap.servers = e:1\nus->eu.enabled = true\n"
    "topics = orders\nemit.heartbeats.enabled = false\n"
)


@pytest.mark.parametrize("prefix", ["", "us->eu."])
@pytest.mark.parametrize(
    ("to", "called"), [("connectors", "unnamed->eu"), ("strimzi", "us->eu"), ("properties", "us->eu")]
)
def test_converted_it_keeps_names(tmp_path: Path, to: str, called: str, prefix: str) -> None:
    path = tmp_path / "mm2.properties"
    path.write_text(PROPERTIES + "".join(f"{prefix}{key} =\n" for key in EMPTY))
    reading = Reading(path=str(path), format="properties", entries=tuple(read_entries(str(path))))
    result = convert(reading, to)
    notes = [str(note) for note in result.notes]
    renamed = [note for note in notes if f"us->eu: is {called} there" in note]
    assert bool(renamed) is (called != "us->eu")
    assert [note for note in notes if not note.endswith("nothing becomes mm2-offsets.us.internal")] == renamed
    paths = []
    for name, text in result.files.items():
        file = tmp_path / "made" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        paths.append(str(file))
    config, _ = model_of(read(paths))
    assert keeps_names(config, "eu").name == called


def test_connectors_become_a_file_that_keeps_names(tmp_path: Path) -> None:
    reading = read(write_connectors(tmp_path, source=connector(), checkpoint=connector("Checkpoint")))
    assert values(reading)["unnamed->target.source.cluster.alias"] == ""
    for to in ("properties", "connectors", "strimzi"):
        assert not [note for note in convert(reading, to).notes if "alias" in str(note) or "separator" in str(note)]
