"""Groups whose topics have moved to the target: they live there, which is no fault (M5)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest
from group_flow import Cluster, GroupFlow, group_flows
from lab import KafkaCluster
from tests.support.members import joined

from sparkmirror.exact.durable.claim_log import ClaimLog
from sparkmirror.exact.durable.claims import segments_topic, turn_claim
from sparkmirror.exact.durable.identity import Identity
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.mirror.sync.group_offsets import GroupOffsetSync
from sparkmirror.snapshot.group_standing import GroupState

pytestmark = pytest.mark.broker

MakeFlow = Callable[..., GroupFlow]
IDENTITY = {"replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"}
END = 20


@pytest.fixture
def near(source_cluster: KafkaCluster) -> Cluster:
    return Cluster("near", source_cluster)


@pytest.fixture
def far(target_cluster: KafkaCluster) -> Cluster:
    return Cluster("far", target_cluster)


@pytest.fixture
def make_flow(tmp_path: Path) -> Iterator[MakeFlow]:
    with group_flows(tmp_path) as make:
        yield make


def duty(flow: GroupFlow, group: str, ended: Mapping[TopicPartition, int]) -> GroupOffsetSync:
    """After a turn."""
    checkpoints = flow.checkpoints(group)
    checkpoints.run()
    sync = GroupOffsetSync(flow.flow, checkpoints, lambda: ended)
    sync.run()
    sync.close()
    return sync


def test_a_group_that_reads_at_the_target_is_left_alone(
    near: Cluster, far: Cluster, topic_name: str, make_flow: MakeFlow
) -> None:
    """It was at the source's end, and has read on at the target: that is where a move leads, and no fault (F4.5)."""
    near.create(topic_name)
    near.produce(topic_name, END)
    flow = make_flow(near, far, topic_name, **IDENTITY)
    flow.copy()
    ended = {(topic_name, 0): END}
    near.commit(topic_name, {(topic_name, 0): 7})
    assert duty(flow, topic_name, ended).standings[topic_name].state is GroupState.SYNCED
    near.produce(topic_name, 5)  # behind the end, as the opposite flow's copies are
    near.commit(topic_name, {(topic_name, 0): END + 5})
    flow.receipts.clear()
    assert duty(flow, topic_name, {}).standings[topic_name].state is GroupState.CATCHING_UP
    now = duty(flow, topic_name, ended)
    assert now.standings[topic_name].state is GroupState.MOVED
    assert far.committed(topic_name)[topic_name, 0].offset == END
    far.commit(topic_name, {(topic_name, 0): END + 3})
    assert duty(flow, topic_name, ended).standings[topic_name].state is GroupState.MOVED
    assert far.committed(topic_name)[topic_name, 0].offset == END + 3
    with closing(joined(far.servers, topic_name, topic_name)):
        assert duty(flow, topic_name, {}).standings[topic_name].state is GroupState.NOT_SYNCED
        assert duty(flow, topic_name, ended).standings[topic_name].state is GroupState.MOVED


def test_a_group_that_reads_what_came_back_is_left_alone(
    near: Cluster, far: Cluster, topic_name: str, make_flow: MakeFlow
) -> None:
    """Its offsets are in the opposite flow's map, and its position at the target is its own."""
    near.create(topic_name)
    near.produce(topic_name, END)
    flow = make_flow(near, far, topic_name, **IDENTITY, **{"near->far.sparkmirror.turn": "first"})
    flow.copy()
    near.produce(topic_name, 10)
    far.produce(topic_name, 10)
    client = ClusterClient(flow.flow.target, "test")
    topics = client.metadata([topic_name])
    source = ClusterClient(flow.flow.source, "test")
    log = ClaimLog(TopicLog(client, segments_topic("near")))
    identity = log.agree(client.cluster_id, None)
    assert isinstance(identity, Identity)
    start = turn_claim(
        identity,
        (topics[topic_name].topic_id, 0),
        source.metadata([topic_name])[topic_name].topic_id,
        sequence=END,
        upstream=END + 10,
        downstream=END + 10,
    )
    log.claim([start])
    client.close()
    source.close()
    flow.receipts.clear()
    for offset, state, at in (
        (7, GroupState.SYNCED, 7),
        (END, GroupState.MOVED, 7),
        (END + 4, GroupState.MOVED, 7),
        (END + 10, GroupState.MOVED, 7),
    ):
        near.commit(topic_name, {(topic_name, 0): offset})
        assert duty(flow, topic_name, {}).standings[topic_name].state is state, offset
        assert far.committed(topic_name)[topic_name, 0].offset == at
    near.produce(topic_name, 5)
    flow.copy()
    near.commit(topic_name, {(topic_name, 0): END + 12})
    assert duty(flow, topic_name, {}).standings[topic_name].state is GroupState.SYNCED
    assert far.committed(topic_name)[topic_name, 0].offset == END + 12
