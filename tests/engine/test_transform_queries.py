"""Spark queries in a mirror: SQL in the file, and functions, next to topics that pumps copy."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import time
from pathlib import Path

import pytest
from kafka.admin import KafkaAdminClient
from kafka.structs import TopicPartition
from lab import KafkaCluster
from pyspark.sql import DataFrame, SparkSession
from test_transforms_on_the_way import CONNECT, COUNT, mirror_of, produce, records_of
from tests.support import loss_tools as lt
from tests.support import mirror_process as mp

import sparkmirror as sm
from sparkmirror.errors import ConfigError
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.pump.messages.control import Control, DoneTopic, control_topic
from sparkmirror.queries import query_worker
from sparkmirror.snapshot.snapshot import Cause, Partition, PartitionState

pytestmark = [pytest.mark.broker, pytest.mark.spark]

PAGE = Path(__file__).parents[2] / "docs" / "transforms.md"
SQL = """
    SELECT topic, partition, offset, timestamp, headers, key,
           to_json(named_struct('n', get_json_object(cast(value AS string), '$.n'), 'card', '***')) AS value
    FROM records WHERE value IS NOT NULL
"""


def partitions_of(mirror: sm.Mirror, topic: str) -> list[Partition]:
    topics = mirror.status()["source->target"].flow.topics
    return [part for each in topics if each.topic == topic for part in each.partitions]


def test_a_query_in_the_file_masks_and_filters_in_order_beside_pumps(
    spark: SparkSession, source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str
) -> None:
    """Stopped and started again amid the records: each record once, in order; the status tells of all."""
    queried, plain = f"{topic_name}-queried", f"{topic_name}-plain"
    for topic in (queried, plain):
        mp.create_topic(source_cluster.bootstrap_servers, topic, 1)
        produce(source_cluster, topic, 0, COUNT)
    transforms = {"transform.cards.topics": f"{topic_name}-que.*", "transform.cards.sql": SQL}
    for first in (COUNT, 2 * COUNT):
        with mirror_of(source_cluster, target_cluster, f"{topic_name}.*", spark, transforms) as mirror:
            mirror.await_caught_up(timeout=120)
            for topic in (queried, plain):
                produce(source_cluster, topic, first, COUNT)
            mirror.await_caught_up(timeout=120)
            (part,) = partitions_of(mirror, queried)
            assert (part.state, part.position, part.lag) == (PartitionState.RUNNING, first + COUNT, 0)
    assert records_of(target_cluster, f"source.{plain}") == records_of(source_cluster, plain)
    originals = records_of(source_cluster, queried)
    kept = [each for each in originals if each.value is not None]
    for each in originals[::7]:
        translated = mirror.translate(queried, 0, each.offset)
        assert translated.offset == sum(other.offset < each.offset for other in kept), translated
    assert mirror.translate(queried, 0, len(originals)).offset == len(kept), "the next record's, too"
    assert "not copied yet" in mirror.translate(queried, 0, len(originals) + 1).reason
    assert mirror.translate(f"source.{queried}", 0, 5, reverse=True).offset == kept[5].offset
    copied = records_of(target_cluster, f"source.{queried}")
    assert [json.loads(each.value or b"") for each in copied] == [
        {"n": str(each.offset), "card": "***"} for each in kept
    ]
    assert [each[1:3] for each in copied] == [each[1:3] for each in kept]
    assert [each.headers for each in copied] == [each.headers for each in kept]


def test_a_function_sends_records_to_other_topics_with_other_keys_and_once_ends(
    spark: SparkSession, source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str
) -> None:
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 2)
    mp.create_topic(target_cluster.bootstrap_servers, f"{topic_name}-odd", 3)
    mp.create_topic(target_cluster.bootstrap_servers, f"{topic_name}-even", 3)
    mp.produce(source_cluster.bootstrap_servers, topic_name, 2, COUNT)

    def routed(records: DataFrame) -> DataFrame:
        return records.selectExpr(
            f"concat('{topic_name}', if(offset % 2 = 0, '-even', '-odd')) AS topic",
            "sha2(concat(partition, '-', offset), 256) AS key",
            "value",
        )

    mirror = mirror_of(source_cluster, target_cluster, topic_name, spark, {}, once=True)
    with mirror.transform(topic_name, routed, name="routes"):
        mp.wait_for(lambda: not mirror.is_running, 120, "the mirror ends by itself")
    originals = [records_of(source_cluster, topic_name, partition) for partition in range(2)]
    for parity, kind in enumerate(("even", "odd")):
        copied = [each for part in range(3) for each in records_of(target_cluster, f"{topic_name}-{kind}", part)]
        values = [each.value for part in originals for each in part if each.offset % 2 == parity]
        assert sorted(str(each.value) for each in copied) == sorted(map(str, values))
    with pytest.raises(RuntimeError, match="name its transforms first"):
        mirror.transform("x", routed)
    with pytest.raises(ConfigError, match="there is a query of this name"):
        mirror_of(source_cluster, target_cluster, topic_name, spark, {}).transform("a", routed).transform("b", routed)


def test_a_query_that_spark_refuses_is_told_and_copies_once_it_is_right(
    spark: SparkSession,
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The topic that another query copies continues."""
    monkeypatch.setattr(query_worker, "_LONGEST_PAUSE_S", 1.0)
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    produce(source_cluster, topic_name, 0, COUNT)
    wrong = {"transform.q.topics": topic_name, "transform.q.sql": "SELECT topic, valu FROM records"}
    with mirror_of(source_cluster, target_cluster, topic_name, spark, wrong) as mirror:
        mp.wait_for(lambda: any(part.reason for part in partitions_of(mirror, topic_name)), 90, "it is parked")
        (part,) = partitions_of(mirror, topic_name)
        assert (part.state, part.cause) == (PartitionState.PARKED, Cause.TRANSFORM)
        assert "query q: Spark refuses it: " in part.reason
        assert "valu" in part.reason
        with pytest.raises(TimeoutError, match=topic_name):
            mirror.await_caught_up(timeout=1)
    (of_the_page,) = re.findall(r"transform\.cards\.sql = (.+)", PAGE.read_text("utf-8"))
    right = {"transform.q.topics": topic_name, "transform.q.sql": of_the_page}
    with mirror_of(source_cluster, target_cluster, topic_name, spark, right) as mirror:
        mirror.await_caught_up(timeout=120)
    assert mirror.translate(topic_name, 0, 7).offset == 7
    original, copied = records_of(source_cluster, topic_name), records_of(target_cluster, f"source.{topic_name}")
    hashed = [each.value and hashlib.sha256(each.value).hexdigest().encode() for each in original]
    assert copied == [each._replace(value=value) for each, value in zip(original, hashed, strict=True)]


def test_a_record_that_a_transform_cannot_take_is_told(
    spark: SparkSession, source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str
) -> None:
    """Connect's transforms in front of a query: with transform and offset, as pumps tell them.

    The query has a name of its own, since its micro-batch stays begun.
    """
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    produce(source_cluster, topic_name, 0, 5)
    transforms = {
        "transforms": "mask",
        "transforms.mask.type": f"{CONNECT}MaskField$Value",
        "transforms.mask.fields": "card",
        "transform.stopped.topics": topic_name,
        "transform.stopped.sql": "SELECT * FROM records",
    }
    with mirror_of(source_cluster, target_cluster, topic_name, spark, transforms) as mirror:
        mp.wait_for(lambda: any(part.reason for part in partitions_of(mirror, topic_name)), 90, "it is parked")
        (part,) = partitions_of(mirror, topic_name)
    assert (part.state, part.cause) == (PartitionState.PARKED, Cause.TRANSFORM)
    assert f"transforms.mask: the record of source.{topic_name}-0 at offset 0 can't be transformed: " in part.reason


def test_records_that_expire_before_a_query_reads_them_are_in_the_ledger(
    spark: SparkSession, source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str
) -> None:
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    produce(source_cluster, topic_name, 0, COUNT)
    same = {"transform.q.topics": topic_name, "transform.q.sql": "SELECT * FROM records"}
    with mirror_of(source_cluster, target_cluster, topic_name, spark, same) as mirror:
        mirror.await_caught_up(timeout=120)
    produce(source_cluster, topic_name, COUNT, COUNT)
    admin = KafkaAdminClient(bootstrap_servers=source_cluster.bootstrap_servers)
    admin.delete_records({TopicPartition(topic_name, 0): COUNT + 50})
    admin.close()
    with mirror_of(source_cluster, target_cluster, topic_name, spark, same) as mirror:
        mirror.await_caught_up(timeout=120)
        told = mirror.losses().where(f"topic = '{topic_name}'")
        mp.wait_for(lambda: told.count() == 1, 60, "the loss is told")
        (loss,) = told.collect()
    assert (loss.kind, loss.first, loss.offsets) == ("expired", COUNT, 50)
    assert len(records_of(target_cluster, f"source.{topic_name}")) == 2 * COUNT - 50


def test_partitions_that_a_topic_lost_in_a_new_creation_are_told(
    spark: SparkSession, source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str
) -> None:
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 2)
    produce(source_cluster, topic_name, 0, COUNT)
    same = {"transform.q.topics": topic_name, "transform.q.sql": "SELECT * FROM records"}
    with mirror_of(source_cluster, target_cluster, topic_name, spark, same) as mirror:
        mirror.await_caught_up(timeout=120)
    lt.recreate_topic(source_cluster, topic_name, 1)
    produce(source_cluster, topic_name, 0, 5)
    for _ in range(2):  # the second time has nothing to add
        with mirror_of(source_cluster, target_cluster, topic_name, spark, same, once=True) as mirror:
            mirror.await_caught_up(timeout=120)
        told = lt.ledger(target_cluster, topic_name, "source")
        assert [(loss.kind.value, loss.partition, loss.first, loss.downstream) for loss in told] == [
            ("recreated", 0, COUNT, COUNT),
            ("shrunk", 1, 0, 0),
        ]


def test_routers_in_the_file_send_records_where_java_would(
    spark: SparkSession, source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str
) -> None:
    """A topic that is named by a regex is created; one by the time of records has to be there."""
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    produce(source_cluster, topic_name, 0, COUNT)
    day = time.strftime("%Y%m%d", time.gmtime(records_of(source_cluster, topic_name)[0].timestamp / 1000))
    mp.create_topic(target_cluster.bootstrap_servers, f"{topic_name}-{day}", 1)
    transforms = {
        "transforms": "bare, daily",
        "transforms.bare.type": f"{CONNECT}RegexRouter",
        "transforms.bare.regex": r"source\.(.*)",
        "transforms.bare.replacement": "$1-all",
        "transforms.daily.type": f"{CONNECT}TimestampRouter",
        "transforms.daily.topic.format": f"{topic_name}-${{timestamp}}",
        "transforms.daily.predicate": "isTest",
        "predicates": "isTest",
        "predicates.isTest.type": f"{CONNECT}predicates.HasHeaderKey",
        "predicates.isTest.name": "test",
    }
    with mirror_of(source_cluster, target_cluster, topic_name, spark, transforms) as mirror:
        mirror.await_caught_up(timeout=120)
    original = records_of(source_cluster, topic_name)
    daily, every = records_of(target_cluster, f"{topic_name}-{day}"), records_of(target_cluster, f"{topic_name}-all")
    assert [each[1:] for each in daily] == [each[1:] for each in original if each.offset % 3 == 0]
    assert [each[1:] for each in every] == [each[1:] for each in original if each.offset % 3]
    assert records_of(target_cluster, f"source.{topic_name}") == []


def test_a_topic_to_which_a_router_sends_and_others_wrote_is_left_alone(
    spark: SparkSession, source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str
) -> None:
    """Until the topic that the reason names is deleted, and also once other partitions are copied."""
    free, routed = f"{topic_name}-free", f"{topic_name}-all"
    for name in (topic_name, free):
        mp.create_topic(source_cluster.bootstrap_servers, name, 1)
        produce(source_cluster, name, 0, COUNT)
    mp.create_topic(target_cluster.bootstrap_servers, routed, 1)
    produce(target_cluster, routed, 0, 7)
    transforms = {
        "transforms": "bare",
        "transforms.bare.type": f"{CONNECT}RegexRouter",
        "transforms.bare.regex": rf"source\.{topic_name}",
        "transforms.bare.replacement": routed,
    }
    with mirror_of(source_cluster, target_cluster, f"{topic_name}.*", spark, transforms) as mirror:
        mp.wait_for(lambda: len(records_of(target_cluster, f"source.{free}")) == COUNT, 120, "the other is copied")
        produce(source_cluster, free, COUNT, COUNT)
        mp.wait_for(lambda: len(records_of(target_cluster, f"source.{free}")) == 2 * COUNT, 60, "and more of it")
        (part,) = partitions_of(mirror, topic_name)
        assert (part.state, part.cause) == (PartitionState.PARKED, Cause.TAKEOVER)
        assert f"{routed}-0 ends at 7, and no plan of this query knows" in part.reason
        assert f"delete {routed} to have the query copy all, or take {topic_name} out of the query" in part.reason
        assert len(records_of(target_cluster, routed)) == 7


@pytest.mark.full
def test_a_deleted_copy_whose_records_went_elsewhere_is_copied_again_with_the_other_topic(
    spark: SparkSession, source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str
) -> None:
    """The copy is empty, and deleted to tidy up: alone it would bring all rows twice."""
    routed = f"{topic_name}-all"
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    mp.create_topic(target_cluster.bootstrap_servers, routed, 1)
    produce(source_cluster, topic_name, 0, COUNT)
    name = f"transform.q{topic_name.rsplit('-', 1)[-1]}"
    sql = f"SELECT '{routed}' AS topic, partition, timestamp, headers, key, value FROM records"  # noqa: S608
    transforms = {f"{name}.topics": topic_name, f"{name}.sql": sql}

    def delete(*names: str) -> None:
        admin = KafkaAdminClient(bootstrap_servers=target_cluster.bootstrap_servers)
        admin.delete_topics(list(names))
        admin.close()

    with mirror_of(source_cluster, target_cluster, topic_name, spark, transforms) as mirror:
        mirror.await_caught_up(timeout=120)
        delete(f"source.{topic_name}")
        mp.wait_for(lambda: partitions_of(mirror, topic_name)[0].cause is Cause.RECREATED, 60, "halted")
        (part,) = partitions_of(mirror, topic_name)
        assert f"stop the flow, delete source.{topic_name}, {routed}, and start it" in part.reason
        produce(source_cluster, topic_name, COUNT, 5)
        time.sleep(3)
        assert len(records_of(target_cluster, routed)) == COUNT
    delete(f"source.{topic_name}")
    lt.recreate_topic(target_cluster, routed, 1)
    with mirror_of(source_cluster, target_cluster, topic_name, spark, transforms) as mirror:
        mirror.await_caught_up(timeout=120)
    copied = [each[1:] for each in records_of(target_cluster, routed)]
    assert copied == [each[1:] for each in records_of(source_cluster, topic_name)]


def test_pause_and_topics_done_hold_a_query(
    spark: SparkSession, source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str
) -> None:
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    produce(source_cluster, topic_name, 0, COUNT)
    same = {"transform.q.topics": topic_name, "transform.q.sql": "SELECT * FROM records"}
    with mirror_of(source_cluster, target_cluster, topic_name, spark, same) as mirror:
        mirror.await_caught_up(timeout=120)
        (flow,) = mirror.config.flows
        with contextlib.closing(ClusterClient(flow.target, "test")) as client:
            control = Control(TopicLog(client, control_topic(flow.source.alias)))
            control.pause([topic_name])

            def state() -> PartitionState:
                (part,) = partitions_of(mirror, topic_name)
                return part.state

            mp.wait_for(lambda: state() is PartitionState.PAUSED, 60, "the pause is heard")
            produce(source_cluster, topic_name, COUNT, COUNT)
            time.sleep(5)
            assert len(records_of(target_cluster, f"source.{topic_name}")) == COUNT
            control.pause([])
            mirror.await_caught_up(timeout=120)
            assert records_of(target_cluster, f"source.{topic_name}") == records_of(source_cluster, topic_name)
            end = 2 * COUNT
            control.done(topic_name, DoneTopic(ends={0: end}))
            mp.wait_for(lambda: released(mirror, topic_name), 60, "the topic is released")
            produce(source_cluster, topic_name, end, 10)
            time.sleep(5)
    assert len(records_of(target_cluster, f"source.{topic_name}")) == end


def test_a_topic_that_is_paused_as_a_query_begins_at_the_end_is_copied_from_there(
    spark: SparkSession, source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str
) -> None:
    """The query's name is its own: another test's plans would be its first."""
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    produce(source_cluster, topic_name, 0, COUNT)
    same = {
        "transform.ends.topics": topic_name,
        "transform.ends.sql": "SELECT * FROM records",
        "source.consumer.auto.offset.reset": "latest",
    }
    mirror = mirror_of(source_cluster, target_cluster, topic_name, spark, same)
    (flow,) = mirror.config.flows
    with ClusterAdmin.connect(flow.target, "test", 30) as admin:
        admin.create_compacted_topic(control_topic(flow.source.alias), 1, 1)
    with contextlib.closing(ClusterClient(flow.target, "test")) as client:
        control = Control(TopicLog(client, control_topic(flow.source.alias)))
        control.pause([topic_name])
        with mirror:

            def position() -> int | None:
                parts = partitions_of(mirror, topic_name)
                return parts[0].position if parts and parts[0].state is PartitionState.PAUSED else None

            mp.wait_for(lambda: position() == COUNT, 60, "the end is noted")
            produce(source_cluster, topic_name, COUNT, COUNT)
            control.pause([])
            mirror.await_caught_up(timeout=120)
            copied = records_of(target_cluster, f"source.{topic_name}")
            assert [each.value for each in copied] == [
                each.value for each in records_of(source_cluster, topic_name) if each.offset >= COUNT
            ]


def released(mirror: sm.Mirror, topic: str) -> bool:
    topics = mirror.status()["source->target"].flow.topics
    return any(each.topic == topic and each.released for each in topics)
