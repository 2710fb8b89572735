"""Doctor's remedy for brokers that are too old, followed: the upgrade is done in place, and the finding goes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from lab.zookeeper import ZooKeeperCluster
from remedy_case import Case, found, wait_for_finding
from tests.support import mirror_process as mp

from sparkmirror.snapshot.snapshot import FlowState

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

VERSION, PROTOCOL = "2.8.2", "inter.broker.protocol.version"


@pytest.fixture
def old_source(tmp_path: Path) -> Iterator[ZooKeeperCluster]:
    """A source whose brokers were upgraded by half: they are new enough, and speak as before among themselves."""
    with ZooKeeperCluster(tmp_path / "old", version=VERSION, properties={PROTOCOL: "2.7"}) as cluster:
        yield cluster
    cluster.cleanup(keep_logs=True)


def test_the_upgrade_is_finished(remedy_case: Case, old_source: ZooKeeperCluster) -> None:
    """Topics get ids, so that one which is created again is known; nothing is copied twice."""
    remedy_case.source = old_source
    mp.create_topic(old_source.bootstrap_servers, remedy_case.topic, 1)
    mp.produce(old_source.bootstrap_servers, remedy_case.topic, 1, 20)
    remedy_case.write()
    with remedy_case.running() as mirror:
        finding = wait_for_finding(mirror, "exactness-weaker")
        assert PROTOCOL in finding.cause
        assert PROTOCOL in finding.action
        mp.wait_for(lambda: remedy_case.copied() == 20, 90, "it copies")
    old_source.upgrade(VERSION, properties={PROTOCOL: "2.8"})
    mp.produce(old_source.bootstrap_servers, remedy_case.topic, 1, 20)
    with remedy_case.running() as mirror:
        mp.wait_for(lambda: remedy_case.copied() == 40, 90, "all is copied")
        mp.wait_for(lambda: mirror.observer.snapshot().flows[0].state is FlowState.CAUGHT_UP, 90, "caught up")
        assert found(mirror, "exactness-weaker") is None
