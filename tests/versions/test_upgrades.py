"""Clusters that become another version in place, under load, and one mirror that keeps running: each record once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from cluster_of import cluster_of
from kafka.admin import KafkaAdminClient
from lab import KafkaCluster
from pairs import (
    NEWEST,
    SOURCE_OF_TWO,
    SOURCE_TO_3,
    SOURCE_WITHOUT_IDS,
    TARGET_BY_KRAFT,
    TARGET_OF_TWO,
    TARGET_TO_3,
)
from rolling import roll
from upgrade_flow import UpgradeFlow

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

IBP = "inter.broker.protocol.version"
METADATA = "metadata.version"


@pytest.fixture
def stack() -> ExitStack:
    """What ends with the test."""
    return ExitStack()


def start(stack: ExitStack, *clusters: KafkaCluster) -> None:
    """Start them at once; they end with the test, and leave their logs."""
    for cluster in clusters:
        stack.callback(cluster.cleanup, keep_logs=True)
    with ThreadPoolExecutor(len(clusters)) as pool:
        list(pool.map(lambda cluster: cluster.start(), clusters))


def test_source_by_zookeeper(stack: ExitStack, tmp_path: Path) -> None:
    """From a version without topic ids, by a newer binary that has none yet and back once, to the last ZooKeeper."""
    source = cluster_of("2.7.2", tmp_path / "source")
    target = cluster_of(NEWEST, tmp_path / "target")
    with stack:
        start(stack, source, target)
        flow = UpgradeFlow(SOURCE_TO_3, source, target, tmp_path)
        with flow:
            with flow.phase("2.8.2, IBP 2.7"):
                source.upgrade("2.8.2", properties={IBP: "2.7"})
            with flow.phase("back to 2.7.2"):
                source.upgrade("2.7.2")
            with flow.phase("2.8.2, IBP 2.7 again"):
                source.upgrade("2.8.2")
            with flow.phase("2.8.2, IBP 2.8: topics get ids"):
                source.upgrade("2.8.2", properties={IBP: "2.8"})
            with flow.phase("3.9.1, IBP 2.8"):
                source.upgrade("3.9.1")
            with flow.phase("3.9.1, IBP 3.9"):
                source.upgrade("3.9.1", properties={IBP: "3.9"})
            flow.finish()


def test_newer_binary_with_a_protocol_without_ids(stack: ExitStack, tmp_path: Path) -> None:
    """Kafka 3.9 speaks Fetch by topic id, and has no ids while the protocol is 2.7; then topics get them."""
    source = cluster_of("2.7.2", tmp_path / "source", properties={IBP: "2.7"})
    target = cluster_of(NEWEST, tmp_path / "target")
    with stack:
        start(stack, source, target)
        flow = UpgradeFlow(SOURCE_WITHOUT_IDS, source, target, tmp_path)
        with flow:
            with flow.phase("3.9.1, IBP 2.7"):
                source.upgrade("3.9.1")
            with flow.phase("3.9.1, IBP 3.9: topics get ids"):
                source.upgrade("3.9.1", properties={IBP: "3.9"})
            flow.finish()


def test_target_by_zookeeper(stack: ExitStack, tmp_path: Path) -> None:
    """As far as ZooKeeper goes: Kafka 4 has none, so a target of 4.x is a new cluster, or KRaft before."""
    source = cluster_of(NEWEST, tmp_path / "source")
    target = cluster_of("2.8.2", tmp_path / "target", properties={IBP: "2.8"})
    with stack:
        start(stack, source, target)
        flow = UpgradeFlow(TARGET_TO_3, source, target, tmp_path)
        with flow:
            with flow.phase("3.9.1, IBP 2.8"):
                target.upgrade("3.9.1")
            with flow.phase("back to 2.8.2"):
                target.upgrade("2.8.2")
            with flow.phase("3.9.1, IBP 2.8 again"):
                target.upgrade("3.9.1")
            with flow.phase("3.9.1, IBP 3.9"):
                target.upgrade("3.9.1", properties={IBP: "3.9"})
            flow.finish()


def test_target_by_kraft(stack: ExitStack, tmp_path: Path) -> None:
    """One of three brokers after the other, then the features of the new version."""
    source = cluster_of(NEWEST, tmp_path / "source")
    target = cluster_of("3.9.1 KRaft", tmp_path / "target", brokers=3)
    with stack:
        start(stack, source, target)
        flow = UpgradeFlow(TARGET_BY_KRAFT, source, target, tmp_path)
        with flow:
            with flow.phase("one broker after the other"):
                roll(target, "4.4.0")
            with flow.phase("the features of 4.4"):
                raise_features(target)
            flow.finish()


def test_source_of_two_versions(stack: ExitStack, tmp_path: Path) -> None:
    """Three brokers, of which at first one is newer, then two; then all, and the protocol one after the other."""
    source = cluster_of("2.7.2", tmp_path / "source", brokers=3, properties={IBP: "2.7"})
    target = cluster_of(NEWEST, tmp_path / "target")
    with stack:
        start(stack, source, target)
        flow = UpgradeFlow(SOURCE_OF_TWO, source, target, tmp_path)
        with flow:
            for broker in source.brokers:
                with flow.phase(f"{broker.node_id} of 3 is 2.8.2"):
                    roll(source, "2.8.2", nodes=[broker.node_id])
            with flow.phase("IBP 2.8, one after the other: topics get ids"):
                roll(source, "2.8.2", properties={IBP: "2.8"})
            flow.finish()


def test_target_of_two_versions(stack: ExitStack, tmp_path: Path) -> None:
    source = cluster_of(NEWEST, tmp_path / "source")
    target = cluster_of("2.8.2", tmp_path / "target", brokers=3, properties={IBP: "2.8"})
    with stack:
        start(stack, source, target)
        flow = UpgradeFlow(TARGET_OF_TWO, source, target, tmp_path)
        with flow:
            for broker in target.brokers:
                with flow.phase(f"{broker.node_id} of 3 is 3.9.1"):
                    roll(target, "3.9.1", nodes=[broker.node_id])
            with flow.phase("IBP 3.9, one after the other"):
                roll(target, "3.9.1", properties={IBP: "3.9"})
            flow.finish()


def raise_features(cluster: KafkaCluster) -> None:
    """Finalize the newest metadata version that the brokers know."""
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    try:
        newest = admin.describe_features()[METADATA]["supported"][1]
        assert admin.update_features({METADATA: newest}) == {METADATA: "OK"}
    finally:
        admin.close()
