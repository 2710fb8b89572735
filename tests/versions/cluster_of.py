"""The versions of Kafka that are tested, by names such as `2.8.2`, `3.9.1 KRaft` and `3.3.2 IBP 2.7`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lab import KafkaCluster
from lab.zookeeper import ZooKeeperCluster

ZOOKEEPER = ("1.0.2", "1.1.1", "2.1.1", "2.4.1", "2.7.2", "2.8.2", "3.3.2", "3.6.2", "3.9.1")
"""With ZooKeeper; the last version that had it is 3.9."""

KRAFT = ("3.3.2 KRaft", "3.6.2 KRaft", "3.9.1 KRaft", "4.3.1", "4.4.0")
"""Without; KRaft was made for production with 3.3."""

_IBP = "inter.broker.protocol.version"


def cluster_of(
    name: str, directory: Path, *, brokers: int = 1, properties: Mapping[str, str] | None = None
) -> KafkaCluster:
    """A cluster of the version that `name` says; it is not started."""
    version, _, kind = name.partition(" ")
    if kind == "KRaft" or number_of(name) >= (4, 0):
        return KafkaCluster(directory, version=version, brokers=brokers, properties=properties)
    protocol = {_IBP: kind.removeprefix("IBP ")} if kind else {}
    return ZooKeeperCluster(directory, version=version, brokers=brokers, properties={**protocol, **(properties or {})})


def number_of(name: str) -> tuple[int, int]:
    """Return major and minor version."""
    major, minor = name.partition(" ")[0].split(".")[:2]
    return int(major), int(minor)
