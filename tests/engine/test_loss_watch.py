"""The loss ledger as processes follow it, over one real topic: who takes over knows the same."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import pytest
from lab import KafkaCluster
from tests.durable.test_loss_ledger import loss

from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.exact.durable.acknowledgements import acknowledge, retract
from sparkmirror.exact.durable.loss_kinds import LossOutcome
from sparkmirror.exact.durable.losses import LossKind, LossLedger, losses_topic
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.mirror.engine.loss_watch import LossWatch
from sparkmirror.snapshot.loss_counts import MOST_ROWS, LossCount, summed_up

pytestmark = pytest.mark.broker


@pytest.fixture
def flow(target_cluster: KafkaCluster, topic_name: str) -> FlowConfig:
    source, target = (
        ClusterConfig(alias=alias, bootstrap_servers=(target_cluster.bootstrap_servers,)) for alias in (topic_name, "B")
    )
    with ClusterAdmin.connect(target, "test") as admin:
        admin.create_compacted_topic(losses_topic(topic_name), 1, 1)
    return FlowConfig(source=source, target=target)


@pytest.fixture
def topic(flow: FlowConfig) -> Iterator[TopicLog]:
    """The ledger's topic, as pumps and operators write it."""
    client = ClusterClient(flow.target, "test")
    yield TopicLog(client, losses_topic(flow.source.alias))
    client.close()


@pytest.fixture
def taking_charge(flow: FlowConfig) -> Iterator[Callable[[], LossWatch]]:
    """Each call is another process that takes charge of the flow."""
    made: list[LossWatch] = []

    def start() -> LossWatch:
        made.append(LossWatch(flow))
        made[-1].start()
        return made[-1]

    yield start
    for watch in made:
        watch.close()


def sizes(watch: LossWatch) -> list[tuple[str, LossOutcome, bool, int, int]]:
    return [(one.kind, one.outcome, one.acknowledged, one.entries, one.offsets) for one in watch.counts]


def test_the_next_process_knows_what_the_former_one_knew(
    topic: TopicLog, taking_charge: Callable[[], LossWatch], caplog: pytest.LogCaptureFixture
) -> None:
    former = taking_charge()
    assert (former.counts, former.rows) == ((), ())
    ledger = LossLedger(topic)
    ledger.record(loss())
    ledger.record(loss(kind=LossKind.RECREATED, end=30, action="restarted"))
    ledger.record(loss(kind=LossKind.FOREIGN, action="expected"))
    with caplog.at_level(logging.INFO):
        former.read()
    assert [record.levelno for record in caplog.records] == [logging.WARNING, logging.WARNING, logging.INFO]
    assert sizes(former) == [
        ("expired", LossOutcome.LOST, False, 1, 12),
        ("foreign-writer", LossOutcome.EXPECTED, False, 1, 12),
        ("recreated", LossOutcome.MAY_BE_LOST, False, 1, 0),
    ]
    assert summed_up(former.counts) == ("1 expired (12 offsets)", "1 recreated")
    assert len(former.added) == 3

    following = taking_charge()
    assert (following.counts, following.rows) == (former.counts, former.rows)
    assert following.added == [], "none of its own run"
    assert [row.kind for row in following.rows] == ["foreign-writer", "recreated", "expired"], "the newest first"


def test_an_operators_word_is_heard_by_whoever_is_in_charge(
    topic: TopicLog, taking_charge: Callable[[], LossWatch]
) -> None:
    ledger, watch = LossLedger(topic), taking_charge()
    ledger.record(loss())
    acknowledge(topic, [loss()], at_ms=0, by="ann@host", why="known")
    watch.read()
    assert [count.acknowledged for count in watch.counts] == [True]
    assert [row.acknowledged for row in watch.rows] == ["1970-01-01 00:00:00 UTC by ann@host: known"]
    assert taking_charge().counts == watch.counts
    assert summed_up(watch.counts) == ()

    ledger.record(loss(end=50))
    watch.read()
    assert sizes(watch) == [("expired", LossOutcome.LOST, False, 1, 20)], "more is lost than was acknowledged"
    acknowledge(topic, [loss(end=50)], at_ms=0, by="ann@host", why="known")
    ledger.record(loss(partition=4))
    watch.read()
    assert [(count.acknowledged, count.entries) for count in watch.counts] == [(False, 1), (True, 1)]
    retract(topic, [loss(end=50)])
    watch.read()
    assert [(count.acknowledged, count.entries) for count in watch.counts] == [(False, 2)]
    assert len(watch.added) == 2, "a word is no loss"


def test_rows_are_bounded_and_counts_are_not(topic: TopicLog, taking_charge: Callable[[], LossWatch]) -> None:
    many = [loss(partition=number) for number in range(MOST_ROWS + 5)]
    topic.append(0, [(one.key.encode(), one.model_dump_json().encode()) for one in many])
    watch = taking_charge()
    (count,) = watch.counts
    assert isinstance(count, LossCount)
    assert count.entries == MOST_ROWS + 5
    assert [row.partition for row in watch.rows] == list(range(MOST_ROWS + 4, 4, -1))
