"""Groups are synced while the brokers that coordinate them are killed: each gets its exact offset, live ones theirs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from group_flow import Cluster, GroupFlow, wait_for
from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import NewTopic
from lab import KafkaCluster
from tests.support.members import joined

from sparkmirror.config import ClusterConfig
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.coordinators import Coordinators
from sparkmirror.mirror.sync.checkpoints import Checkpoints
from sparkmirror.mirror.sync.group_offsets import GroupOffsetSync
from sparkmirror.snapshot.group_standing import GroupState

pytestmark = [pytest.mark.broker, pytest.mark.full]

GROUPS = 60
RECORDS = 500


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    cluster = KafkaCluster(tmp_path_factory.mktemp("three", numbered=False), brokers=3)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.cleanup(keep_logs=True)


class Syncing(threading.Thread):
    """Both duties, turn after turn, as the driver has them done: what one raises ends nothing."""

    def __init__(self, checkpoints: Checkpoints, sync: GroupOffsetSync) -> None:
        super().__init__(daemon=True)
        self.checkpoints, self.sync = checkpoints, sync
        self.turns = 0
        self.errors: list[str] = []
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.is_set():
            try:
                self.checkpoints.run()
                self.sync.run()
            except (ConnectionError, ClusterUnreachable) as error:
                self.errors.append(str(error))
            else:
                self.turns += 1

    def turn(self) -> None:
        """Wait for one that began from now on."""
        before = self.turns
        wait_for(lambda: self.turns >= before + 2, f"two turns; {self.errors[-1:]}", 60)


def coordinators(cluster: KafkaCluster, groups: list[str]) -> dict[str, int]:
    """The broker that each group's coordinator is on."""
    client = ClusterClient(
        ClusterConfig(alias="far", bootstrap_servers=tuple(cluster.bootstrap_servers.split(","))), "t"
    )
    asked: dict[str, int] = {}

    def ask(broker: int, some: object) -> dict[str, int]:
        asked.update(dict.fromkeys(some, broker))  # type: ignore[call-overload]
        return {}

    try:
        Coordinators(client).ask_each(groups, ask, {}, "finding")
        return asked
    finally:
        client.close()


def test_coordinators_are_killed_one_after_the_other(
    source_cluster: KafkaCluster, three: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    near, far = Cluster("near", source_cluster), Cluster("far", three)
    near.create(topic_name)
    near.produce(topic_name, RECORDS)
    admin = KafkaAdminClient(bootstrap_servers=three.bootstrap_servers)
    admin.create_topics([NewTopic("near.checkpoints.internal", 1, 3)])
    admin.close()
    flow = GroupFlow(near, far, topic_name, tmp_path, **{"replication.factor": "3"})
    flow.copy()
    remote = f"near.{topic_name}"
    groups = [f"{topic_name}-{number}" for number in range(GROUPS)]
    live = f"{topic_name}-live"

    def move(place: int) -> dict[str, int]:
        offsets = {group: place + number for number, group in enumerate(groups)}
        for group, offset in {**offsets, live: place}.items():
            near.commit(group, {(topic_name, 0): offset})
        return offsets

    def there() -> dict[str, int]:
        return {group: found[remote, 0].offset for group in groups if (found := far.committed(group))}

    checkpoints = flow.checkpoints(topic_name)
    syncing = Syncing(checkpoints, flow.group_offsets(checkpoints))
    consumer = joined(three.bootstrap_servers, live, remote)
    try:
        consumer.position(TopicPartition(remote, 0))  # else there is nothing to commit
        consumer.commit()
        mine = far.committed(live)[remote, 0].offset
        move(0)
        syncing.start()
        syncing.turn()
        for kill in range(1, 4):
            home = coordinators(three, groups)
            victim = three.brokers[kill - 1]
            concerned = [group for group, broker in home.items() if broker == victim.node_id]
            expected = move(kill * 100)
            victim.kill()
            wait_for(lambda expected=expected: there() == expected, "exact offsets", 60)  # type: ignore[misc]
            syncing.turn()
            assert {syncing.sync.standings[group].state for group in groups} == {GroupState.SYNCED}
            assert syncing.sync.standings[live].state is GroupState.NOT_SYNCED
            assert far.committed(live)[remote, 0].offset == mine
            print(f"broker {victim.node_id} had {len(concerned)} groups; {len(syncing.errors)} turns failed so far")
            assert concerned
            victim.start()
            consumer.poll(timeout_ms=100)
    finally:
        syncing.over.set()
        syncing.join(60)
        consumer.close(autocommit=False)
        flow.close()
    written = [one for one in flow.written(topic_name) if one.group != live]
    assert all(one.upstream == one.downstream for one in written)
