"""What tests of migrations make at real clusters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path

from lab import KafkaCluster

from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.config.formats import model_of, read
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.groups import Committed, Groups
from sparkmirror.kafka.cluster.new_topics import NewTopicSpec


def config(cluster: KafkaCluster, alias: str = "A") -> ClusterConfig:
    """Spoken with in clear."""
    return ClusterConfig(alias=alias, bootstrap_servers=tuple(cluster.direct_servers.split(",")))


def create(cluster: KafkaCluster, *specs: NewTopicSpec) -> None:
    """Create topics."""
    with ClusterAdmin.connect(config(cluster), "test") as admin:
        assert set(admin.create_topics(specs).values()) == {None}


def commit(cluster: KafkaCluster, reads: Mapping[str, Iterable[str]]) -> None:
    """Have groups commit in partition 0 of topics."""
    offsets = {group: {(topic, 0): Committed(0) for topic in topics} for group, topics in reads.items()}
    with closing(ClusterClient(config(cluster), "test")) as client:
        assert not any(code for each in Groups(client).commit(offsets).values() for code in each.values())


def mirror(
    directory: Path, source: KafkaCluster, target: KafkaCluster, topics: str, *further: str
) -> tuple[str, FlowConfig]:
    """Write a mirror's file with a flow A->B that keeps names; return its path and the flow."""
    path = directory / "mm2.properties"
    lines = (
        "clusters = A, B",
        f"A.bootstrap.servers = {source.direct_servers}",
        f"B.bootstrap.servers = {target.direct_servers}",
        "A->B.enabled = true",
        f"A->B.topics = {topics}",
        "replication.factor = 1",
        "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
        *further,
    )
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    read_back, _ = model_of(read([str(path)]))
    return str(path), read_back.flows[0]
