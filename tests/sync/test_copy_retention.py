"""Copies that keep less than their sources: named, and what they have lost is in the ledger, to the offset."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from group_flow import Cluster, GroupFlow, group_flows
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient
from lab import KafkaCluster

from sparkmirror.config import ClusterConfig
from sparkmirror.exact.durable.acknowledgements import acknowledge, read_ledger
from sparkmirror.exact.durable.claim_log import ClaimLog
from sparkmirror.exact.durable.claims import segments_topic, start_claim
from sparkmirror.exact.durable.loss_kinds import LossKind, LossOutcome
from sparkmirror.exact.durable.losses import losses_topic
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_descriptions import TopicDescription, describe_topics
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.mirror.sync.copy_retention import CopyRetention, ShorterCopies
from sparkmirror.mirror.sync.topic_config_duty import TopicConfigSync
from sparkmirror.mirror.sync.topic_rules import topic_rules
from sparkmirror.mirror.sync.topics import MirroredTopic, TopicSync

pytestmark = pytest.mark.broker

HOUR_MS = 3_600_000


class Retention:
    """The duty on one topic of one partition, a turn at a time."""

    def __init__(self, flow: GroupFlow, topic: str, *, reports: bool) -> None:
        self.flow, self.topic, self.remote = flow, topic, f"{flow.source.alias}.{topic}"
        self.shorter = ShorterCopies()
        self.duty = CopyRetention(
            flow.flow, lambda: [self.mirrored()], lambda: flow.receipts.values() if reports else (), self.shorter
        )

    def mirrored(self) -> MirroredTopic:
        here = _described(self.flow.flow.source, self.topic)
        return MirroredTopic(here, _described(self.flow.flow.target, self.remote))

    def deleted(self) -> list[tuple[int, int]]:
        """Source offsets in the ledger after a turn; each entry has the right words."""
        self.duty.run()
        with closing(ClusterClient(self.flow.flow.target, "test")) as client:
            entries = read_ledger(TopicLog(client, losses_topic(self.flow.source.alias)))
        found = [entry.loss for entry in entries if entry.loss.source_topic == self.topic]
        for loss in found:
            assert (loss.kind, loss.outcome) == (LossKind.COPY_EXPIRED, LossOutcome.ONLY_AT_SOURCE)
            assert "retention.ms is 1 h (7 d at the source)" in loss.words
            assert f"{self.flow.flow.name}.use.defaults.from = source" in loss.words
        return [(loss.first, loss.end) for loss in found]

    def ack(self) -> None:
        with closing(ClusterClient(self.flow.flow.target, "test")) as client:
            log = TopicLog(client, losses_topic(self.flow.source.alias))
            losses = [entry.loss for entry in read_ledger(log) if entry.loss.source_topic == self.topic]
            acknowledge(log, losses, at_ms=1, by="ann@host", why="a day is enough there")

    def open_entries(self) -> int:
        with closing(ClusterClient(self.flow.flow.target, "test")) as client:
            entries = read_ledger(TopicLog(client, losses_topic(self.flow.source.alias)))
        return sum(entry.is_open for entry in entries if entry.loss.source_topic == self.topic)


@pytest.fixture
def make_flow(tmp_path: Path) -> Iterator[Callable[..., GroupFlow]]:
    with group_flows(tmp_path) as make:
        yield make


@pytest.fixture(params=[True, False], ids=["pumps at work", "pumps silent"])
def retention(
    request: pytest.FixtureRequest,
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    make_flow: Callable[..., GroupFlow],
    topic_name: str,
) -> Iterator[Retention]:
    flow = make_flow(Cluster("early", source_cluster), Cluster("late", target_cluster), topic_name)
    flow.source.create(topic_name, 1)
    flow.source.produce(topic_name, 100)
    flow.copy()
    made = Retention(flow, topic_name, reports=request.param)
    with closing(made.duty):
        yield made


def _described(config: ClusterConfig, topic: str) -> TopicDescription:
    with closing(ClusterClient(config, "test")) as client:
        return describe_topics(client, [topic])[topic]


def keep_an_hour(cluster: Cluster, topic: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=cluster.servers)
    try:
        admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": str(HOUR_MS)})])
    finally:
        admin.close()


def test_copies_that_keep_as_much_are_left_alone(retention: Retention) -> None:
    """Logs with one retention begin at different records, by their segments."""
    retention.flow.target.delete_records(retention.remote, 40)
    assert retention.deleted() == []
    assert retention.shorter.reasons == {}


def test_what_the_target_alone_has_deleted_is_in_the_ledger(retention: Retention) -> None:
    keep_an_hour(retention.flow.target, retention.remote)
    assert retention.deleted() == []
    assert retention.shorter.reasons == {retention.topic: "retention.ms is 1 h (7 d at the source)"}

    retention.flow.target.delete_records(retention.remote, 40)
    assert retention.deleted() == [(0, 40)]
    assert retention.deleted() == [(0, 40)], "the same again is no news"

    retention.flow.source.delete_records(retention.topic, 30)
    retention.flow.target.delete_records(retention.remote, 60)
    assert retention.deleted() == [(0, 60)], "one entry that grows"

    retention.flow.source.delete_records(retention.topic, 70)
    retention.flow.target.delete_records(retention.remote, 70)
    assert retention.deleted() == [(0, 60)], "what both have deleted is no loss of the copy"

    retention.flow.target.delete_records(retention.remote, 100)
    assert retention.deleted() == [(0, 60), (70, 100)], "all that was copied"


def test_one_word_counts_for_as_long_as_the_copy_keeps_less(retention: Retention) -> None:
    keep_an_hour(retention.flow.target, retention.remote)
    retention.flow.target.delete_records(retention.remote, 10)
    retention.deleted()
    assert retention.open_entries() == 1
    retention.ack()
    retention.flow.target.delete_records(retention.remote, 20)
    assert retention.deleted() == [(0, 20)]
    assert retention.open_entries() == 0


def test_a_copy_that_keeps_as_much_again(retention: Retention) -> None:
    """The remedy: `use.defaults.from = source` has the topic duty give the copy the source's retention."""
    keep_an_hour(retention.flow.target, retention.remote)
    retention.flow.target.delete_records(retention.remote, 10)
    assert retention.deleted() == [(0, 10)]
    assert retention.shorter.reasons
    flow = retention.flow.flow
    with_source = flow.model_copy(
        update={"topic_sync": flow.topic_sync.model_copy(update={"use_defaults_from": "source"})}
    )
    synced = TopicSync(mirrored=(retention.mirrored(),), created=(), grown=(), refused={})
    with (
        ClusterAdmin.connect(flow.source, "test") as source,
        ClusterAdmin.connect(flow.target, "test") as target,
        closing(TopicConfigSync(with_source, topic_rules(with_source), source, target, lambda: synced)) as configs,
    ):
        configs.run()
    retention.flow.target.delete_records(retention.remote, 20)
    assert retention.deleted() == [(0, 10)], "it keeps as much: what goes now is no loss"
    assert retention.shorter.reasons == {}


def test_gaps_in_the_source_do_not_count(retention: Retention) -> None:
    """Offsets of the source and the target part at a transaction's marker."""
    retention.flow.source.transactions(retention.topic, 2)
    retention.flow.copy()
    keep_an_hour(retention.flow.target, retention.remote)
    records = retention.flow.target.read(retention.remote)
    start = records[103].offset
    retention.flow.target.delete_records(retention.remote, start)
    (source,) = [one for one in retention.flow.source.read(retention.topic) if one.value == records[103].value]
    assert retention.deleted() == [(0, source.offset)]


@pytest.mark.parametrize("theirs", [60, 0], ids=["after another mirror", "at the end"])
def test_only_what_the_flow_itself_copied_is_named(
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    make_flow: Callable[..., GroupFlow],
    topic_name: str,
    theirs: int,
) -> None:
    """It began at source offset 60: where another mirror's records came from is not known."""
    flow = make_flow(Cluster("early", source_cluster), Cluster("late", target_cluster), topic_name)
    flow.source.create(topic_name, 1)
    flow.copy()
    retention = Retention(flow, topic_name, reports=True)
    flow.source.produce(topic_name, 60)
    flow.target.produce(retention.remote, theirs)
    _claim_start(retention, upstream=60, downstream=theirs)
    flow.source.produce(topic_name, 40)
    flow.copy()
    assert flow.target.end(retention.remote) == theirs + 40
    keep_an_hour(flow.target, retention.remote)
    with closing(retention.duty):
        flow.target.delete_records(retention.remote, theirs // 2)
        assert retention.deleted() == []
        flow.target.delete_records(retention.remote, theirs + 10)
        assert retention.deleted() == [(60, 70)]


def _claim_start(retention: Retention, *, upstream: int, downstream: int) -> None:
    flow, topic = retention.flow, retention.mirrored()
    with closing(ClusterClient(flow.flow.target, "test")) as client:
        client.metadata(())
        log = ClaimLog(TopicLog(client, segments_topic(flow.source.alias)))
        identity = log.agree(client.cluster_id, None)
        assert identity is not None
        where = topic.remote.topic_id, 0
        log.claim(
            [start_claim(identity, where, topic.source.topic_id, sequence=0, upstream=upstream, downstream=downstream)]
        )
