"""Plans agreed in a topic of a real broker: of rival processes one counts, and a later batch shuts older ones out."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
from kafka.admin import NewTopic
from lab import KafkaCluster
from tests.support.copied_flow import Side

from sparkmirror.errors import AttemptFenced, ClusterUnreachable
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.queries.plan_log import PlanLog, PlannedBatch, PlannedRange

pytestmark = pytest.mark.broker


def batch(number: int, end: int) -> PlannedBatch:
    return PlannedBatch(number, {("t", 0): PlannedRange(10 * number, end, "0a", "0b")})


@pytest.fixture
def side(target_cluster: KafkaCluster, topic_name: str) -> Iterator[Side]:
    with contextlib.closing(Side("us", target_cluster)) as side:
        side.create_all(NewTopic(topic_name, 1, 1, topic_configs={"cleanup.policy": "compact"}))
        yield side


def plans(side: Side, topic: str, query: str = "q") -> PlanLog:
    return PlanLog(ClusterClient(side.config, "test"), topic, query)


def test_of_two_processes_the_first_proposal_counts(side: Side, topic_name: str) -> None:
    one, other = plans(side, topic_name), plans(side, topic_name)
    assert one.newest() is None
    assert one.agree(batch(0, 10)) == batch(0, 10)
    assert other.agree(batch(0, 99)) == batch(0, 10), "the other's is agreed on"
    one.finish(batch(0, 10))
    assert other.newest() == batch(0, 10)
    assert other.is_finished(batch(0, 10))
    assert not other.is_finished(batch(1, 20))


def test_a_process_that_slept_is_shut_out_by_the_next_batch(side: Side, topic_name: str) -> None:
    awake, asleep = plans(side, topic_name), plans(side, topic_name)
    awake.agree(batch(0, 10))
    assert asleep.newest() == batch(0, 10)
    awake.agree(batch(1, 20))
    awake.agree(batch(2, 30))
    with pytest.raises(AttemptFenced, match="another process has planned batch 2, this one batch 1"):
        asleep.agree(batch(1, 77))
    assert plans(side, topic_name).newest() == batch(2, 30), "the late proposal changes nothing for those to come"
    assert awake.agree(batch(3, 40)) == batch(3, 40)


def test_old_proposals_are_deleted_and_queries_are_apart(side: Side, topic_name: str) -> None:
    first, second = plans(side, topic_name), plans(side, topic_name, "other")
    for number in range(4):
        first.agree(batch(number, 10 * number + 10))
    second.agree(batch(0, 5))
    entries, _ = TopicLog(side.client, topic_name).read(0, 0)
    alive = {entry.key: entry.value for entry in entries}
    assert sum(value is not None for value in alive.values()) == 2, "one plan of each query"
    assert (plans(side, topic_name).newest(), plans(side, topic_name, "other").newest()) == (batch(3, 40), batch(0, 5))


def test_records_of_another_program_are_named(side: Side, topic_name: str) -> None:
    TopicLog(side.client, topic_name).append(0, [(b"{}", b"")])
    with pytest.raises(ClusterUnreachable, match="a record of another program at offset 0"):
        plans(side, topic_name).newest()
