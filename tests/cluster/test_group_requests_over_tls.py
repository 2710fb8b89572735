"""What groups are asked and told, over TLS: of consumers of both protocols, and of share groups."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.producing import TOOLS
from lab import Authority, KafkaCluster

from sparkmirror.config import load_mm2_properties
from sparkmirror.demo.jars import class_path
from sparkmirror.demo.java import java
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.groups import Committed, Groups
from sparkmirror.kafka.cluster.new_topics import NewTopicSpec
from sparkmirror.kafka.cluster.share_groups import ShareGroups

pytestmark = pytest.mark.broker

UNKNOWN_MEMBER, NON_EMPTY = 25, 68


@pytest.fixture
def client(
    source_cluster: KafkaCluster, authority: Authority, topic_name: str, tmp_path: Path
) -> Iterator[ClusterClient]:
    """To a cluster with a topic of this test's name, through its TLS listener alone."""
    settings = {
        "clusters": "A, B",
        "A->B.enabled": "true",
        **{f"{alias}.bootstrap.servers": source_cluster.tls_bootstrap_servers for alias in ("A", "B")},
        **{f"{alias}.{key}": value for alias in ("A", "B") for key, value in authority.client_settings().items()},
    }
    file = tmp_path / "mm2.properties"
    file.write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))
    config = load_mm2_properties(str(file)).flows[0].source
    with ClusterAdmin.connect(config, "test", 20) as admin:
        assert admin.create_topics([NewTopicSpec(topic_name, 2, 1)]) == {topic_name: None}
    one = ClusterClient(config, "test")
    yield one
    one.close()


def test_offsets_are_set_and_read(client: ClusterClient, topic_name: str) -> None:
    groups = Groups(client)
    wanted = {f"{topic_name}-{number}": {(topic_name, 1): Committed(number, "about it")} for number in range(300)}
    assert groups.commit(wanted) == {group: {(topic_name, 1): 0} for group in wanted}
    assert groups.committed(wanted).offsets == wanted
    listed = groups.listed()
    assert {listed[group].type for group in wanted} == {"classic"}
    share = ShareGroups(client)
    starts = {f"{topic_name}-share": {(topic_name, 0): 0}}
    assert share.set_starts(starts) == {f"{topic_name}-share": {(topic_name, 0): 0}}
    assert share.starts(starts).offsets == starts
    assert groups.listed()[f"{topic_name}-share"].type == "share"


@pytest.mark.full
@pytest.mark.parametrize("protocol", ["consumer", "share"])
def test_live_groups_of_the_new_protocols_are_left_alone(
    client: ClusterClient, source_cluster: KafkaCluster, topic_name: str, protocol: str
) -> None:
    """KIP-848 and KIP-932: what a coordinator says of their members is heard over TLS, too."""
    share = protocol == "share"
    tool = "ConsoleShareConsumer" if share else "ConsoleConsumer"
    more = () if share else ("--command-property", "group.protocol=consumer")
    live = subprocess.Popen(
        [
            *(java(), "-Xmx128m", "-cp", class_path(TOOLS), f"org.apache.kafka.tools.consumer.{tool}"),
            *("--bootstrap-server", source_cluster.bootstrap_servers, "--topic", topic_name, "--group", topic_name),
            *more,
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    groups, shares = Groups(client), ShareGroups(client)
    try:
        deadline = time.monotonic() + 60
        while (found := groups.listed().get(topic_name)) is None or found.state != "Stable":
            assert time.monotonic() < deadline, found
            time.sleep(0.2)
        assert found.type == protocol
        where = (topic_name, 0)
        if share:
            assert shares.set_starts({topic_name: {where: 0}}) == {topic_name: {where: NON_EMPTY}}
        else:
            assert groups.commit({topic_name: {where: Committed(7)}}) == {topic_name: {where: UNKNOWN_MEMBER}}
    finally:
        live.terminate()
        live.wait()
