"""A query's process ends between a micro-batch's rows and its note, and the source loses records meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import pytest
from kafka.admin import KafkaAdminClient
from lab import KafkaCluster
from pyspark.sql import SparkSession
from test_transforms_on_the_way import mirror_of, produce, records_of
from tests.support import loss_tools as lt
from tests.support import mirror_process as mp

import sparkmirror as sm
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.exact.durable.query_places import QueryPlaces
from sparkmirror.kafka.cluster.client import ClusterClient, TopicLeaders
from sparkmirror.kafka.wire.topic_ids import NO_ID
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.queries import begun_writing, query_worker
from sparkmirror.queries.begun_writing import BegunWriter
from sparkmirror.queries.plan_log import AgreedBatch, PlanLog, PlannedBatch, TargetEnd
from sparkmirror.queries.query_logs import QueryLogs
from sparkmirror.sink.writing import BatchWriter
from sparkmirror.snapshot.snapshot import Cause

pytestmark = [pytest.mark.broker, pytest.mark.spark]

COUNT = 60
PLAIN = "SELECT topic, partition, offset, timestamp, headers, key, value FROM records"
COUNTED = "SELECT topic, partition, max(offset) AS offset, cast(count(*) AS string) AS value FROM records GROUP BY 1, 2"


def meanwhile(monkeypatch: pytest.MonkeyPatch, event: Callable[[], None]) -> None:
    """Have it happen once: the rows of a micro-batch are appended, and nothing else is."""
    place, due = PlanLog.place, [event]

    def interrupted(log: PlanLog, *args: object) -> None:
        if due:
            due.pop()()
            raise ClusterUnreachable("the process ends here")
        place(log, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(PlanLog, "place", interrupted)


def query(topic: str, sql: str) -> Mapping[str, object]:
    name = f"transform.q{topic.rsplit('-', 1)[-1]}"
    return {f"{name}.topics": topic, f"{name}.sql": sql}


@pytest.mark.parametrize("gone", [COUNT // 3, COUNT])
def test_what_was_copied_before_it_expired_is_no_loss(
    spark: SparkSession,
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    monkeypatch: pytest.MonkeyPatch,
    gone: int,
) -> None:
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    produce(source_cluster, topic_name, 0, COUNT)
    originals = records_of(source_cluster, topic_name)
    meanwhile(monkeypatch, lambda: lt.delete_records(source_cluster, topic_name, 0, gone))
    with mirror_of(source_cluster, target_cluster, topic_name, spark, query(topic_name, PLAIN)) as mirror:
        mirror.await_caught_up(timeout=120)
        produce(source_cluster, topic_name, COUNT, 5)
        mirror.await_caught_up(timeout=120)
        originals += records_of(source_cluster, topic_name)[-5:]
        translated = [mirror.translate(topic_name, 0, offset).offset for offset in (3, gone - 1, COUNT + 2)]
    assert records_of(target_cluster, f"source.{topic_name}") == originals
    assert lt.ledger(target_cluster, topic_name, "source") == []
    assert translated == [3, gone - 1, COUNT + 2]


def test_a_topic_that_is_gone_for_good_leaves_its_copy(
    spark: SparkSession,
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The other topic of the micro-batch, and of later ones, is copied."""
    gone, kept = f"{topic_name}-gone", f"{topic_name}-kept"
    for topic in (gone, kept):
        mp.create_topic(source_cluster.bootstrap_servers, topic, 1)
        produce(source_cluster, topic, 0, COUNT)
    originals = {topic: records_of(source_cluster, topic) for topic in (gone, kept)}

    def delete() -> None:
        admin = KafkaAdminClient(bootstrap_servers=source_cluster.bootstrap_servers)
        admin.delete_topics([gone])
        admin.close()

    meanwhile(monkeypatch, delete)
    both = {f"transform.q{topic_name[-6:]}.topics": f"{topic_name}-.*", f"transform.q{topic_name[-6:]}.sql": PLAIN}
    with mirror_of(source_cluster, target_cluster, f"{topic_name}-.*", spark, both) as mirror:
        mp.wait_for(lambda: caught_up(mirror, kept), 120, "copied")
        produce(source_cluster, kept, COUNT, 5)
        mp.wait_for(lambda: len(records_of(target_cluster, f"source.{kept}")) == COUNT + 5, 120, "copied on")
    for topic, records in originals.items():
        assert records_of(target_cluster, f"source.{topic}")[:COUNT] == records


def caught_up(mirror: sm.Mirror, topic: str) -> bool:
    topics = mirror.status()["source->target"].flow.topics
    parts = [part for each in topics if each.topic == topic for part in each.partitions]
    return bool(parts) and all(part.position == COUNT for part in parts)


def reasons_of(mirror: sm.Mirror, topic: str, cause: Cause) -> list[str]:
    """Wait until partitions of a topic halt, and return why."""
    reasons: list[str] = []

    def is_halted() -> bool:
        topics = mirror.status()["source->target"].flow.topics
        parts = [part for each in topics if each.topic == topic for part in each.partitions]
        reasons.extend(part.reason for part in parts if part.cause is cause)
        return bool(reasons)

    mp.wait_for(is_halted, 240, "halted")
    return reasons


def test_rows_that_do_not_tell_of_their_records_halt_with_the_remedy(
    spark: SparkSession,
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever follows it has the rest copied, and what had expired is told."""
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    produce(source_cluster, topic_name, 0, COUNT)
    meanwhile(monkeypatch, lambda: lt.delete_records(source_cluster, topic_name, 0, 20))
    with mirror_of(source_cluster, target_cluster, topic_name, spark, query(topic_name, COUNTED)) as mirror:
        (reason,) = reasons_of(mirror, topic_name, Cause.EXPIRED)
        assert f"offsets 0 to 19 of source {topic_name}-0 are gone, and nothing tells whether" in reason
        assert f"nothing more is copied until source.{topic_name} is deleted, which is copied again then" in reason
        assert lt.ledger(target_cluster, topic_name, "source") == []
        lt.delete_topic(target_cluster, f"source.{topic_name}")
        mirror.await_caught_up(timeout=300)
    assert [each.value for each in records_of(target_cluster, f"source.{topic_name}")] == [b"40"]
    (loss,) = lt.ledger(target_cluster, topic_name, "source")
    assert (loss.kind.value, loss.first, loss.end) == ("target-recreated", 0, 20)


def test_copied_records_that_the_target_deleted_halt_with_the_remedy(
    spark: SparkSession,
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Copied again, they would be there twice; they are not lost either."""
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    produce(source_cluster, topic_name, 0, COUNT)
    copy = f"source.{topic_name}"
    meanwhile(monkeypatch, lambda: lt.delete_records(target_cluster, copy, 0, COUNT))
    with mirror_of(source_cluster, target_cluster, topic_name, spark, query(topic_name, PLAIN)) as mirror:
        (reason,) = reasons_of(mirror, topic_name, Cause.TAKEOVER)
        assert f"{copy}-0: earlier attempts of this batch appended {COUNT} records, and 0 are left" in reason
        assert f"nothing more is copied until {copy} is deleted, which is copied again then" in reason
        assert records_of(target_cluster, copy) == []
        lt.delete_topic(target_cluster, copy)
        mirror.await_caught_up(timeout=300)
    assert records_of(target_cluster, copy) == records_of(source_cluster, topic_name)
    assert [loss.kind.value for loss in lt.ledger(target_cluster, topic_name, "source")] == ["target-recreated"]


def test_a_micro_batch_that_another_process_proposed_first_is_taken_up(
    spark: SparkSession,
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """That process may be at work on it."""
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    produce(source_cluster, topic_name, 0, COUNT)
    agree, before, taken_up = PlanLog.agree, begun_writing.earlier_records, list[bool]()

    def agreed(log: PlanLog, proposal: PlannedBatch) -> AgreedBatch:
        if not proposal.number:
            agree(log, proposal)
        return agree(log, proposal)

    def noted(*args: object, **more: object) -> object:
        taken_up.append(bool(more["is_taken_up"]))
        return before(*args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(PlanLog, "agree", agreed)
    monkeypatch.setattr(query_worker, "earlier_records", noted)
    with mirror_of(source_cluster, target_cluster, topic_name, spark, query(topic_name, PLAIN)) as mirror:
        mirror.await_caught_up(timeout=120)
        produce(source_cluster, topic_name, COUNT, 5)
        mirror.await_caught_up(timeout=120)
    assert taken_up[0]
    assert not any(taken_up[1:])
    assert records_of(target_cluster, f"source.{topic_name}") == records_of(source_cluster, topic_name)


def test_a_begun_micro_batch_waits_while_its_copy_is_not_seen(
    spark: SparkSession,
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A broker that starts knows no topics: without its id the copy looks like another one, to be copied whole."""
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    produce(source_cluster, topic_name, 0, COUNT)
    write, look, metadata = BegunWriter.write, QueryLogs.look, ClusterClient.metadata
    blind, reasons = [1], list[str]()

    def interrupted(writer: BegunWriter, *args: object) -> object:
        if blind == [1]:
            blind[:] = [2]
            raise ClusterUnreachable("the process ends here")
        return write(writer, *args)  # type: ignore[arg-type]

    def looked(logs: QueryLogs, *args: object) -> object:
        blind[:] = [3] if blind == [2] else blind
        there = look(logs, *args)  # type: ignore[arg-type]
        if blind == [3]:
            blind[:] = []
            reasons.extend(halt.reason for halt in logs.held_up.values())
        return there

    def seen(client: ClusterClient, topics: Iterable[str]) -> dict[str, TopicLeaders]:
        found = metadata(client, topics)
        if blind == [3] and client.config.alias == "target":
            found |= {name: TopicLeaders(name, NO_ID, 3, {}) for name in found if name == f"source.{topic_name}"}
        return found

    monkeypatch.setattr(BegunWriter, "write", interrupted)
    monkeypatch.setattr(QueryLogs, "look", looked)
    monkeypatch.setattr(ClusterClient, "metadata", seen)
    with mirror_of(source_cluster, target_cluster, topic_name, spark, query(topic_name, PLAIN)) as mirror:
        mirror.await_caught_up(timeout=120)
    assert reasons == [f"target topic source.{topic_name} can't be seen now"]
    assert records_of(target_cluster, f"source.{topic_name}") == records_of(source_cluster, topic_name)


@pytest.mark.full
def test_a_process_that_stood_still_notes_no_places_of_an_old_micro_batch(
    spark: SparkSession,
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another process has planned the next one meanwhile, here of no records."""
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    produce(source_cluster, topic_name, 0, COUNT)
    agree, ends_after, place = PlanLog.agree, QueryLogs.ends_after, PlanLog.place
    plans: list[PlanLog] = []
    planned: list[PlannedBatch] = []
    noted: list[int] = []

    def agreed(log: PlanLog, proposal: PlannedBatch) -> AgreedBatch:
        plans.append(log)
        planned.append(proposal)
        return agree(log, proposal)

    def late(logs: QueryLogs, *args: object) -> object:
        if not noted and len(planned) == 1:
            (first,) = planned
            passed = {at: each.passed for at, each in first.ranges.items()}
            planned.append(agree(plans[0], PlannedBatch(first.number + 1, passed)).batch)
        return ends_after(logs, *args)  # type: ignore[arg-type]

    def written(log: PlanLog, places: Iterable[QueryPlaces], ends: Mapping[TopicPartition, TargetEnd]) -> None:
        written_places = list(places)
        noted.extend(each.batch for each in written_places)
        place(log, written_places, ends)

    monkeypatch.setattr(PlanLog, "agree", agreed)
    monkeypatch.setattr(QueryLogs, "ends_after", late)
    monkeypatch.setattr(PlanLog, "place", written)
    with mirror_of(source_cluster, target_cluster, topic_name, spark, query(topic_name, PLAIN)) as mirror:
        mirror.await_caught_up(timeout=120)
        produce(source_cluster, topic_name, COUNT, 5)
        mirror.await_caught_up(timeout=120)
    assert 0 not in noted
    assert noted[0] >= 2
    assert records_of(target_cluster, f"source.{topic_name}") == records_of(source_cluster, topic_name)


@pytest.mark.full
def test_a_micro_batch_that_another_process_has_finished_is_not_written_again(
    spark: SparkSession,
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """This one has stood still before it proposed it. The other, here, has found no rows for it."""
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    produce(source_cluster, topic_name, 0, COUNT)
    agree, expect = PlanLog.agree, BatchWriter.expect
    others: list[PlannedBatch] = []
    expected: list[tuple[dict[TopicPartition, int], bool]] = []

    def agreed(log: PlanLog, proposal: PlannedBatch) -> AgreedBatch:
        if proposal.number == 1 and not others:
            others.append(agree(log, proposal).batch)
            log.finish(proposal)
        return agree(log, proposal)

    def noted(writer: BatchWriter, begins: Mapping[TopicPartition, int], made_ms: int, *, is_repeated: bool) -> None:
        expected.append((dict(begins), is_repeated))
        expect(writer, begins, made_ms, is_repeated=is_repeated)

    monkeypatch.setattr(PlanLog, "agree", agreed)
    monkeypatch.setattr(BatchWriter, "expect", noted)
    meanwhile(monkeypatch, lambda: None)
    with mirror_of(source_cluster, target_cluster, topic_name, spark, query(topic_name, PLAIN)) as mirror:
        mirror.await_caught_up(timeout=120)
        originals = records_of(source_cluster, topic_name)
        produce(source_cluster, topic_name, COUNT, 5)
        mirror.await_caught_up(timeout=120)
        produce(source_cluster, topic_name, COUNT + 5, 5)
        mirror.await_caught_up(timeout=120)
    assert others
    keys = [each.key for each in records_of(target_cluster, f"source.{topic_name}")]
    assert keys == [each.key for each in originals + records_of(source_cluster, topic_name)[-5:]]
    copy = f"source.{topic_name}", 0
    assert expected == [({copy: 0}, False), ({copy: 0}, True), ({copy: COUNT}, False)]
