"""What the page's buttons write into a flow's control topic, at a real broker."""

from __future__ import annotations

from pathlib import Path

import pytest
from lab import KafkaCluster
from tests.support import mirror_process as mp

from sparkmirror.config import FlowConfig, load_mm2_properties
from sparkmirror.errors import ClusterUnreachable, ConfigError
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.look.page.controls import FlowControls
from sparkmirror.pump.messages.control import ControlState, control_topic


def flow_between(source: str, target: str, directory: Path) -> FlowConfig:
    path = mp.write_properties(directory / "mm2.properties", source, target, "any")
    path.write_text(path.read_text().replace("A.", "P.").replace("A->", "P->").replace("= A,", "= P,"))
    (flow,) = load_mm2_properties(str(path)).flows
    return flow


def heard(flow: FlowConfig) -> ControlState:
    client = ClusterClient(flow.target, "test")
    try:
        state = ControlState()
        state.apply(TopicLog(client, control_topic(flow.source.alias)).read(0, 0)[0])
        return state
    finally:
        client.close()


@pytest.mark.broker
def test_words_in_the_control_topic(source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path) -> None:
    flow = flow_between(source_cluster.bootstrap_servers, target_cluster.bootstrap_servers, tmp_path)
    mp.create_topic(target_cluster.bootstrap_servers, control_topic("P"), 1)
    controls = FlowControls(lambda: [flow])
    assert controls.pause("P->B", ["orders.*"]) == "P->B: paused orders.*"
    controls.pause("P->B", ["bills", "orders.*"])
    assert list(heard(flow).paused) == ["orders.*", "bills"], "a pause adds"
    assert controls.resume("P->B", ["orders.*"]) == "P->B: resumed orders.*"
    assert list(heard(flow).paused) == ["bills"]
    with pytest.raises(ConfigError, match=r"resume: orders: is not paused; paused is bills"):
        controls.resume("P->B", ["orders"])
    assert controls.resume("P->B", []) == "P->B: resumed all"
    assert heard(flow).paused == {}
    said = controls.throttle("P->B", 20e6, 5e6)
    assert said == "P->B: at most 20,000,000 bytes/s, at most 5,000,000 bytes/s of backfill"
    assert (heard(flow).bytes_per_second, heard(flow).backfill_bytes_per_second) == (20e6, 5e6)
    assert controls.throttle("P->B", None, None) == "P->B: no throttle"
    assert heard(flow).bytes_per_second is None


def test_what_makes_no_sense(tmp_path: Path) -> None:
    flow = flow_between("127.0.0.1:1", "127.0.0.1:1", tmp_path)
    controls = FlowControls(lambda: [flow])
    with pytest.raises(ConfigError, match=r"no such flow works here; there is P->B"):
        controls.pause("X->Y", ["a"])
    with pytest.raises(ConfigError, match=r"pause: '\(' is no regular expression"):
        controls.pause("P->B", ["("])
    with pytest.raises(ConfigError, match="name the topics"):
        controls.pause("P->B", [])
    with pytest.raises(ClusterUnreachable, match=r"cluster B: no broker of 127\.0\.0\.1:1 answers"):
        controls.throttle("P->B", None, None)
