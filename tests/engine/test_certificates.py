"""Certificates that expire or name another host while a mirror runs: named, and mended without a restart."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from lab import Authority, KafkaCluster
from lab.authority import HOST
from lab.listeners import mutual_tls
from pyspark.sql import SparkSession
from tests.support import mirror_process as mp
from tests.support.loaded_flow import PARTITIONS, assert_copied, running
from tests.support.mirror_thread import reasons, run_mirror
from tests.support.secure_clusters import of_cluster

from sparkmirror.config import load_mm2_properties
from sparkmirror.mirror.engine.mirror import Mirror

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[KafkaCluster]:
    cluster = KafkaCluster(tmp_path_factory.mktemp("certificates"), tls=authority, listeners={"MTLS": mutual_tls()})
    with running(cluster):
        yield cluster


class Flow:
    """A loaded topic, mirrored from the listener that asks for our certificate."""

    def __init__(
        self, source: KafkaCluster, target: KafkaCluster, authority: Authority, topic: str, directory: Path
    ) -> None:
        self.source = source
        self.target = target
        self.topic = topic
        self.keys = authority.issue(directory / "mirror.pem", "mirror")
        settings = {
            **authority.client_settings(),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.keys),
        }
        self.path = mp.write_properties(
            directory / "mm2.properties",
            source.servers("MTLS"),
            target.bootstrap_servers,
            topic,
            of_cluster("A", settings),
        )
        mp.create_topic(source.bootstrap_servers, topic, PARTITIONS)

    def wait_for(self, records: int, what: str) -> None:
        """Wait until the target has that many more."""
        before = self.copied()
        mp.wait_for(lambda: self.copied() >= before + records, 120, what)

    def copied(self) -> int:
        return sum(mp.end_offsets(self.target.bootstrap_servers, f"A.{self.topic}", PARTITIONS))

    def finish(self, spark: SparkSession) -> None:
        """Copy the rest, and compare both logs."""
        Mirror(load_mm2_properties(str(self.path)), once=True, use_lease=False, spark=spark).run()
        assert_copied(self.source, self.target, {self.topic: f"A.{self.topic}"})


@pytest.fixture
def flow(
    source: KafkaCluster, target_cluster: KafkaCluster, authority: Authority, topic_name: str, tmp_path: Path
) -> Flow:
    return Flow(source, target_cluster, authority, topic_name, tmp_path)


def an_hour_ago() -> datetime:
    return datetime.now(UTC) - timedelta(hours=1)


@pytest.mark.parametrize(
    ("name", "expired", "says"),
    [(HOST, True, "its certificate has expired"), ("localhost", False, "its certificate is not for this host")],
)
def test_a_broker_with_another_certificate(
    flow: Flow, authority: Authority, spark: SparkSession, name: str, expired: bool, says: str
) -> None:
    """The broker comes back with it, so that all our connections are new ones."""
    (broker,) = flow.source.brokers
    keys = broker.directory / "broker.pem"
    good = keys.read_bytes()
    with (
        mp.load(flow.source.bootstrap_servers, flow.topic, PARTITIONS, per_s=200),
        run_mirror(flow.path, spark) as mirror,
    ):
        flow.wait_for(100, "the first records")
        authority.issue(keys, name, valid_until=an_hour_ago() if expired else None)
        try:
            broker.restart()
            mp.wait_for(lambda: any(says in reason for reason in reasons(mirror)), 180, "the reason")
        finally:
            keys.write_bytes(good)
            broker.restart()
        flow.wait_for(100, "fresh records after the mend")
    flow.finish(spark)


def test_our_own_certificate_expires_and_is_renewed(flow: Flow, authority: Authority, spark: SparkSession) -> None:
    """What is in place continues; after the broker was restarted it refuses us, until the file is a new one."""
    with (
        mp.load(flow.source.bootstrap_servers, flow.topic, PARTITIONS, per_s=200),
        run_mirror(flow.path, spark) as mirror,
    ):
        flow.wait_for(100, "the first records")
        authority.issue(flow.keys, "mirror", valid_until=an_hour_ago())
        flow.source.brokers[0].restart()
        says = "it refuses sparkmirror's certificate"
        mp.wait_for(lambda: any(says in reason for reason in reasons(mirror)), 180, "the reason")
        authority.issue(flow.keys, "mirror")
        flow.wait_for(100, "fresh records after the mend")
    flow.finish(spark)
