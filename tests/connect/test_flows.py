"""What connectors make: which flows there are, whose settings count, and what is said of each."""

from __future__ import annotations

import pytest
from tests.support.connectors import CUSTOM_POLICY, aws_connectors, demo_connectors, specs, worker_file
from tests.support.kit_connectors import SECRET, aws_kit

from sparkmirror.config import FlowConfig
from sparkmirror.config.formats.connect_files import PACKAGE
from sparkmirror.connect.connector_model import TargetState
from sparkmirror.connect.flows import Flows, read_flows

STOPPED, PAUSED = TargetState.STOPPED, TargetState.PAUSED


def only(flows: Flows) -> FlowConfig:
    (flow,) = flows.config.flows
    return flow


def failures(flows: Flows) -> dict[str, str]:
    return {name: part.failure for name, part in flows.parts.items() if part.failure}


def notes(flows: Flows) -> dict[str, str]:
    return {name: part.note for name, part in flows.parts.items() if part.note}


def test_the_demos_three_are_one_flow() -> None:
    flows = read_flows(specs(demo_connectors()), worker_file())
    flow = only(flows)
    assert flow.name == "msk->target"
    assert failures(flows) == {}
    assert (flow.source.bootstrap_servers, flow.target.bootstrap_servers) == (
        ("broker:9092",),
        ("confluent.cloud:9092",),
    )
    assert (flow.topics, flow.replication_factor, flow.refresh_topics_interval_seconds) == (("test-topic",), 3, 20)
    assert flow.group.emit_checkpoints_interval_seconds == 20
    assert flow.group.emit_checkpoints_enabled
    assert flow.copies
    # Its third file names the wrong class.
    assert flow.heartbeat.emit_heartbeats_enabled is False
    assert notes(flows).keys() == {"mm2-hbt"}
    assert "mm2-chk already" in flows.parts["mm2-hbt"].note
    assert "MirrorHeartbeatConnector" in flows.parts["mm2-hbt"].note


def test_connects_own_offsets_are_where_the_worker_keeps_them() -> None:
    connect = only(read_flows(specs(aws_connectors()), worker_file())).connect
    assert (connect.offset_storage_topic, connect.connector) == ("connect-offsets-mm2-worker", "mm2-msc")
    assert connect.offset_flush_interval_ms == 10_000


def test_the_aws_kits_three() -> None:
    flows = read_flows(specs(aws_connectors()), worker_file())
    flow = only(flows)
    assert failures(flows) == {}
    assert (flow.topics, flow.tasks_max) == ((r"^ExampleTopic[\w]*",), 4)
    assert flow.replication_policy_class == CUSTOM_POLICY
    assert (flow.produce.compression_type, flow.produce.max_request_size) == ("gzip", 26_214_400)
    assert flow.heartbeat.emit_heartbeats_interval_seconds == 20
    assert flow.group.emit_checkpoints_interval_seconds == 20
    # The kit's checkpoint connector names no policy.
    assert notes(flows).keys() == {"mm2-msc", "mm2-cpc"}
    assert f"replication.policy.class is {CUSTOM_POLICY} in mm2-msc" in flows.parts["mm2-cpc"].note


@pytest.mark.parametrize(
    ("auth", "protocol", "mechanism"),
    [
        ("no", "PLAINTEXT", "GSSAPI"),
        ("mtls", "SSL", "GSSAPI"),
        ("sasl", "SASL_SSL", "SCRAM-SHA-512"),
        ("iam", "SASL_SSL", "AWS_MSK_IAM"),
    ],
)
def test_the_aws_kits_three_of_each_way_of_signing_in(auth: str, protocol: str, mechanism: str) -> None:
    kit = aws_kit()
    flows = read_flows(
        specs({f"mm2-{one}": kit[f"mm2-{one}-{auth}-auth"] for one in ("msc", "cpc", "hbc")}), worker_file()
    )
    assert failures(flows) == {}
    flow = only(flows)
    assert flow.name == "msksource->mskdest"
    assert (flow.copies, flow.heartbeat.emit_heartbeats_enabled) == (True, True)
    assert flow.group.emit_checkpoints_enabled
    assert flow.group.sync_group_offsets_enabled is (auth in ("iam", "sasl"))
    for cluster in (flow.source, flow.target):
        assert (cluster.security_protocol, cluster.sasl.mechanism) == (protocol, mechanism)
        assert (SECRET in cluster.sasl.jaas_config.get_secret_value()) is (auth == "sasl")
        assert (cluster.ssl.key_password.get_secret_value() == SECRET) is (auth == "mtls")
    assert SECRET not in f"{flows}"


def test_each_ones_settings_come_from_its_own_connector() -> None:
    connectors = aws_connectors()
    connectors["mm2-msc"]["sync.group.offsets.enabled"] = "true"
    connectors["mm2-cpc"]["offset.lag.max"] = "7"
    connectors["mm2-cpc"]["topics.exclude"] = "never"
    flow = only(read_flows(specs(connectors), worker_file()))
    assert flow.group.sync_group_offsets_enabled is False
    assert flow.offset_sync.offset_lag_max == 100
    assert flow.topics_exclude != ("never",)


@pytest.mark.parametrize(
    ("resting", "copies", "checkpoints", "heartbeats"),
    [
        ({"mm2_msc": PAUSED}, False, True, True),
        ({"mm2_msc": STOPPED}, False, True, True),
        ({"mm2_cpc": PAUSED}, True, False, True),
        ({"mm2_hbc": STOPPED, "mm2_cpc": STOPPED}, True, False, False),
    ],
)
def test_what_rests_is_left_out(
    resting: dict[str, TargetState], copies: bool, checkpoints: bool, heartbeats: bool
) -> None:
    flow = only(read_flows(specs(aws_connectors(), **resting), worker_file()))
    assert flow.copies is copies
    assert flow.group.emit_checkpoints_enabled is checkpoints
    assert flow.heartbeat.emit_heartbeats_enabled is heartbeats


def test_nothing_is_left_where_all_rest() -> None:
    flows = read_flows(specs(aws_connectors(), mm2_msc=STOPPED, mm2_cpc=PAUSED, mm2_hbc=STOPPED), worker_file())
    assert flows.config.flows == flows.config.beats == ()
    assert flows.known.keys() == {"msksource->mskdest"}


def test_a_source_connector_alone() -> None:
    flow = only(read_flows(specs({"mm2-msc": aws_connectors()["mm2-msc"]}), worker_file()))
    assert flow.copies
    assert not flow.group.emit_checkpoints_enabled
    assert not flow.heartbeat.emit_heartbeats_enabled


def test_a_heartbeat_connector_alone_sends_heartbeats() -> None:
    config = read_flows(specs({"mm2-hbc": aws_connectors()["mm2-hbc"]}), worker_file()).config
    assert config.flows == ()
    (beat,) = config.beats
    assert (beat.name, beat.heartbeat.emit_heartbeats_interval_seconds) == ("msksource->mskdest", 20)


def test_a_checkpoint_connector_alone_waits_for_a_source_connector() -> None:
    flows = read_flows(specs({"mm2-cpc": aws_connectors()["mm2-cpc"]}), worker_file())
    assert only(flows).copies is False
    assert only(flows).group.emit_checkpoints_enabled
    assert flows.parts["mm2-cpc"].note.startswith("waits for a MirrorSourceConnector of msksource->mskdest")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("replication.policy.separator", "_"),
        ("offset-syncs.topic.location", "target"),
        ("replication.policy.class", "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"),
    ],
)
def test_what_disagrees_is_named_in_both(key: str, value: str) -> None:
    connectors = aws_connectors()
    del connectors["mm2-msc"]["replication.policy.class"]
    assert notes(read_flows(specs(connectors), worker_file())) == {}
    connectors["mm2-cpc"][key] = value
    flows = read_flows(specs(connectors), worker_file())
    assert failures(flows) == {}
    assert set(notes(flows)) == {"mm2-msc", "mm2-cpc"}
    for text in (key, value, "mm2-msc", "mm2-cpc"):
        assert text in flows.parts["mm2-cpc"].note
    assert only(flows).replication_policy_separator == "."


def test_other_brokers_stop_the_connector_that_has_them_and_not_the_copy() -> None:
    connectors = aws_connectors()
    connectors["mm2-cpc"]["target.cluster.bootstrap.servers"] = "elsewhere:9092"
    flows = read_flows(specs(connectors), worker_file())
    assert failures(flows).keys() == {"mm2-cpc"}
    assert "bootstrap.servers" in flows.parts["mm2-cpc"].failure
    assert only(flows).copies
    assert not only(flows).group.emit_checkpoints_enabled
    assert only(flows).heartbeat.emit_heartbeats_enabled


def test_aliases_that_disagree_are_named() -> None:
    connectors = aws_connectors()
    del connectors["mm2-cpc"]["target.cluster.alias"]
    flows = read_flows(specs(connectors), worker_file())
    words = "target.cluster.alias is target in mm2-cpc and mskdest in mm2-msc"
    assert words in flows.parts["mm2-msc"].note
    assert words in flows.parts["mm2-cpc"].failure + flows.parts["mm2-cpc"].note
    assert [flow.name for flow in flows.config.flows if flow.copies] == ["msksource->mskdest"]


def test_a_second_source_connector_is_refused_until_the_first_is_stopped() -> None:
    connectors = {"mm2-msc": aws_connectors()["mm2-msc"], "a-second": {**aws_connectors()["mm2-msc"], "topics": "b"}}
    flows = read_flows(specs(connectors), worker_file())
    assert only(flows).topics == ("b",)
    assert "by a-second already: put the topics of mm2-msc into that one" in flows.parts["mm2-msc"].failure
    flows = read_flows(specs(connectors, a_second=STOPPED), worker_file())
    assert only(flows).topics == (r"^ExampleTopic[\w]*",)


def test_what_is_wrong_with_one_does_not_hold_up_the_others() -> None:
    connectors = {
        **aws_connectors(),
        "sink": {"connector.class": "org.example.Sink", "topics": "a"},
        "no-alias": {"connector.class": PACKAGE + "MirrorSourceConnector"},
        "json": {**demo_connectors()["mm2-src"], "key.converter": "org.apache.kafka.connect.json.JsonConverter"},
    }
    connectors["mm2-cpc"]["emit.checkpoints.interval.seconds"] = "often"
    flows = read_flows(specs(connectors), worker_file())
    assert only(flows).name == "msksource->mskdest"
    assert failures(flows).keys() == {"sink", "no-alias", "json", "mm2-cpc"}
    assert flows.parts["sink"].failure.startswith("connector sink: connector.class: is none of MirrorMaker 2's")
    assert "source.cluster.alias" in flows.parts["no-alias"].failure
    assert flows.parts["json"].failure.startswith("connector json: key.converter: records are copied as bytes")
    assert "emit.checkpoints.interval.seconds" in flows.parts["mm2-cpc"].failure


def test_the_workers_converters_count_where_the_connector_has_none() -> None:
    connector = aws_connectors()["mm2-msc"]
    del connector["value.converter"]
    flows = read_flows(specs({"mm2-msc": connector}), worker_file())
    assert "value.converter: records are copied as bytes" in flows.parts["mm2-msc"].failure


def test_a_flows_key_in_the_workers_file_has_no_effect() -> None:
    flows = read_flows(specs(demo_connectors()), worker_file({"sparkmirror.on.expired": "halt"}))
    assert [line for line in flows.config.warnings if "on.expired" in line] == [
        "connect-distributed.properties: sparkmirror.on.expired: has no effect in a worker's file; "
        "write it into the connector that it is for"
    ]
    assert flows.config.flows[0].model_dump(mode="json") == only(
        read_flows(specs(demo_connectors()), worker_file())
    ).model_dump(mode="json")


def test_a_connector_without_a_target_writes_to_the_workers_cluster() -> None:
    connector = aws_connectors()["mm2-msc"]
    del connector["target.cluster.bootstrap.servers"]
    flow = only(read_flows(specs({"mm2-msc": connector}), worker_file()))
    assert flow.target.bootstrap_servers == ("target:9092",)


def test_two_flows_whose_offsets_would_be_in_one_topic() -> None:
    connectors = {
        "one": aws_connectors()["mm2-msc"],
        "two": {**aws_connectors()["mm2-msc"], "target.cluster.alias": "b"},
    }
    flows = read_flows(specs(connectors), worker_file())
    assert len(flows.config.flows) == 1
    assert len(failures(flows)) == 1
