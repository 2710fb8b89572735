"""Rehearsals between two real clusters with a real copy, and the comparison of two samples without brokers."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest
from bench.one_pump import copy_once
from hypothesis import given
from hypothesis import strategies as st
from kafka import KafkaAdminClient, KafkaProducer, TopicPartition
from lab import KafkaCluster
from tests.support import mirror_process as mp

from sparkmirror.config import ClusterConfig, FlowConfig, load_mm2_properties
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.groups import Committed, Groups
from sparkmirror.migrate.rehearsal import PartitionRehearsal, Rehearsed, rehearse
from sparkmirror.migrate.sample_comparison import (
    FirstDifference,
    SampleComparison,
    SampleRecord,
    compare,
    compare_compacted,
)

_numbers = itertools.count(1)


# --- two samples -------------------------------------------------------------------------------------


def sample(values: str, first: int = 0) -> list[SampleRecord]:
    """A record for each letter, its time the letter's."""
    return [SampleRecord(at, value.encode(), ord(value)) for at, value in enumerate(values, first)]


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("abc", "abc", SampleComparison(equal=3)),
        ("abc", "ab", SampleComparison(equal=2, lag=1)),
        ("abc", "", SampleComparison(lag=3)),
        ("", "", SampleComparison()),
        ("abc", "axc", SampleComparison(equal=1, differs=FirstDifference(1, 11))),
        ("abcd", "xab", SampleComparison(differs=FirstDifference(0, 10), read_again=1)),
        ("abcd", "bcd", SampleComparison(differs=FirstDifference(0, 10), skipped=1)),
        ("abcde", "abxyc", SampleComparison(equal=2, differs=FirstDifference(2, 12), read_again=2)),
    ],
)
def test_two_samples(source: str, target: str, expected: SampleComparison) -> None:
    assert compare(sample(source), sample(target, 10)) == expected


@given(st.text("ab", max_size=6), st.integers(0, 6), st.integers(0, 8))
def test_a_wrong_place_is_never_equal(values: str, cut: int, shift: int) -> None:
    """As long as the records are told apart; a copy that is behind never differs."""
    source = [SampleRecord(at, value.encode(), at) for at, value in enumerate(values)]
    assert compare(source, source[:cut]) == SampleComparison(equal=min(cut, len(source)), lag=max(len(source) - cut, 0))
    moved = compare(source, source[shift:])
    assert (moved.differs is None) == (shift == 0 or shift >= len(source))
    assert moved.skipped == (shift if moved.differs else 0)


def test_times_count_unless_the_target_stamps() -> None:
    ours, theirs = SampleRecord(3, b"a", 7), SampleRecord(4, b"a", 8)
    assert compare([ours], [theirs]).differs == FirstDifference(3, 4)
    assert compare([ours], [theirs._replace(stamped=True)]) == SampleComparison(equal=1)
    assert compare([ours._replace(stamped=True)], [theirs]).differs == FirstDifference(3, 4)


def test_compaction_on_each_side_at_its_own_time() -> None:
    """Records 1 and 4 are cleaned away at the target, 2 at the source."""
    source = [record for record in sample("abcdef") if record.offset != 2]
    target = [record for record in sample("abcdef", 10) if record.offset not in (11, 14)]
    places: list[int | None] = [10, 11, 13, 14, 15]
    assert compare_compacted(source, places, target) == SampleComparison(equal=3, cleaned=3)
    assert compare_compacted(source, [*places[:3], None, None], target[:3]) == SampleComparison(
        equal=2, cleaned=2, lag=2
    )
    wrong = [target[0], target[1], target[2]._replace(body=b"x"), target[3]]
    assert compare_compacted(source, places, wrong).differs == FirstDifference(3, 13)
    assert compare_compacted(source, places, []) == SampleComparison(cleaned=5)


# --- two clusters ------------------------------------------------------------------------------------


class Copied:
    """A flow with a topic of its own, and groups at its source."""

    def __init__(self, source: KafkaCluster, target: KafkaCluster, topic: str, directory: Path) -> None:
        self.source, self.target, self.topic = source, target, topic
        self.alias = f"s{next(_numbers)}"
        lines = {
            "clusters": f"{self.alias}, there",
            f"{self.alias}.bootstrap.servers": source.bootstrap_servers,
            "there.bootstrap.servers": target.bootstrap_servers,
            f"{self.alias}->there.enabled": "true",
            f"{self.alias}->there.topics": f"{topic}.*",
            f"{self.alias}->there.topics.exclude": f"{topic}-left-out",
            f"{self.alias}.consumer.isolation.level": "read_committed",
            "replication.factor": "1",
            "heartbeats.replication.enabled": "false",
            "emit.checkpoints.enabled": "false",
        }
        file = directory / "mm2.properties"
        file.write_text("".join(f"{key} = {value}\n" for key, value in lines.items()))
        self.flow: FlowConfig = load_mm2_properties(str(file)).flows[0]

    @property
    def copy_name(self) -> str:
        return f"{self.alias}.{self.topic}"

    def copy(self) -> None:
        """All that is at the source now."""
        done = copy_once(self.flow, f"test-{next(_numbers)}", 60)
        assert all(receipt.state == "done" for receipt in done), done

    def commit(self, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
        config = ClusterConfig(alias="A", bootstrap_servers=(self.source.bootstrap_servers,))
        with closing(ClusterClient(config, "test")) as client:
            wanted = {group: {at: Committed(offset) for at, offset in offsets.items()}}
            assert not any(Groups(client).commit(wanted)[group].values())

    def look(self, *groups: str, records: int = 20, patience_s: float = 0) -> list[PartitionRehearsal]:
        told = rehearse(self.flow, groups, records, patience_s=patience_s)
        assert told.refused == {}
        return list(told.partitions)


def write(cluster: KafkaCluster, topic: str, count: int, partition: int = 0) -> None:
    """Records of which no two are equal, with keys, headers and times."""
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, linger_ms=5, compression_type="lz4")
    with closing(producer):
        for _ in range(count):
            number = b"%d" % next(_numbers)
            producer.send(topic, key=number, value=b"v" + number, headers=[("h", number)], partition=partition)


def abort(cluster: KafkaCluster, topic: str) -> None:
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, transactional_id=topic, retry_backoff_ms=10)
    producer.init_transactions()
    producer.begin_transaction()
    for _ in range(3):
        producer.send(topic, b"never", partition=0)
    producer.flush()
    producer.abort_transaction()
    producer.close()


@pytest.fixture
def copied(source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path) -> Copied:
    """Partition 0 has 30 records, 4 offsets of an aborted transaction, and 10 records; partition 1 has 5 records."""
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 2)
    write(source_cluster, topic_name, 30)
    abort(source_cluster, topic_name)
    write(source_cluster, topic_name, 10)
    write(source_cluster, topic_name, 5, partition=1)
    flow = Copied(source_cluster, target_cluster, topic_name, tmp_path)
    flow.copy()
    return flow


@pytest.mark.broker
def test_groups_that_would_go_on_exactly(copied: Copied) -> None:
    """At any place, also among aborted records and at the end; a topic that is not copied is named."""
    topic, group = copied.topic, copied.topic
    mp.create_topic(copied.source.bootstrap_servers, f"{topic}-left-out", 1)
    places = {(topic, 0): 25, (topic, 1): 5, (f"{topic}-left-out", 0): 0}
    copied.commit(group, places)
    copied.commit(f"{group}-2", {(topic, 0): 31, (topic, 1): 0})
    told = rehearse(copied.flow, [group, f"{group}-2", "none"], patience_s=0)
    assert [each.result for each in told.partitions] == [Rehearsed.EQUAL] * 4
    assert [each.position for each in told.partitions] == [25, 5, 30, 0]
    assert [each.comparison for each in told.partitions] == [
        SampleComparison(equal=15),
        SampleComparison(),
        SampleComparison(equal=10),
        SampleComparison(equal=5),
    ]
    assert told.equal == 30
    assert told.not_copied == {group: (f"{topic}-left-out",)}
    assert copied.look(group, records=7)[0].comparison == SampleComparison(equal=7)


@pytest.mark.broker
def test_a_group_ahead_of_the_copy_waits_for_it(copied: Copied) -> None:
    """Equal as far as copied; then all, once it is there."""
    topic, group = copied.topic, copied.topic
    write(copied.source, topic, 10)
    copied.commit(group, {(topic, 0): 40})
    copied.commit(f"{group}-2", {(topic, 0): 48})
    behind, beyond = copied.look(group, f"{group}-2")
    assert (behind.result, behind.position, behind.comparison) == (Rehearsed.LAG, 36, SampleComparison(equal=4, lag=10))
    assert (beyond.result, beyond.position, beyond.comparison) == (Rehearsed.LAG, None, SampleComparison(lag=6))
    assert "not copied yet" in beyond.reason
    copying = threading.Thread(target=copied.copy)
    copying.start()
    try:
        told = copied.look(group, f"{group}-2", patience_s=60)
    finally:
        copying.join()
    assert [(each.result, each.position, each.comparison.equal) for each in told] == [
        (Rehearsed.EQUAL, 36, 14),
        (Rehearsed.EQUAL, 44, 6),
    ]


@pytest.mark.broker
def test_what_another_producer_wrote_to_the_copy_differs(copied: Copied) -> None:
    topic, group = copied.topic, copied.topic
    write(copied.target, copied.copy_name, 2)
    write(copied.source, topic, 10)
    copied.copy()
    copied.commit(group, {(topic, 0): 42})
    (told,) = copied.look(group)
    assert (told.result, told.position) == (Rehearsed.DIFFERS, 38)
    assert told.comparison == SampleComparison(equal=2, differs=FirstDifference(44, 40), read_again=2)


@pytest.mark.broker
def test_a_compacted_topic_is_paired_by_the_map(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1, {"cleanup.policy": "compact"})
    write(source_cluster, topic_name, 30)
    flow = Copied(source_cluster, target_cluster, topic_name, tmp_path)
    flow.copy()
    flow.commit(topic_name, {(topic_name, 0): 4})
    (told,) = flow.look(topic_name)
    assert (told.result, told.comparison) == (Rehearsed.EQUAL, SampleComparison(equal=20))


@pytest.mark.broker
def test_deleted_records_are_named_at_once(copied: Copied) -> None:
    """At the source nobody can compare them; at the target the group would skip them."""
    topic, group = copied.topic, copied.topic
    copied.commit(group, {(topic, 0): 3})
    copied.commit(f"{group}-2", {(topic, 0): 20})
    for cluster, name, before in ((copied.source, topic, 10), (copied.target, copied.copy_name, 25)):
        admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
        admin.delete_records({TopicPartition(name, 0): before})
        admin.close()
    began = time.monotonic()
    at_source, at_target = copied.look(group, f"{group}-2", patience_s=600)
    assert time.monotonic() - began < 300
    assert at_source.result is Rehearsed.UNKNOWN
    assert at_source.reason == (
        f"the records of {topic}-0 from offset 3 on are deleted at {copied.alias}, where its log starts at 10 now"
    )
    assert (at_target.result, at_target.position) == (Rehearsed.DIFFERS, 25)
    assert at_target.comparison == SampleComparison(differs=FirstDifference(20, 25), skipped=5)


@pytest.mark.broker
def test_before_anything_is_copied(copied: Copied) -> None:
    topic = f"{copied.topic}-new"
    mp.create_topic(copied.source.bootstrap_servers, topic, 1)
    write(copied.source, topic, 5)
    copied.commit(topic, {(topic, 0): 2})
    (told,) = copied.look(topic)
    assert told.result is Rehearsed.UNKNOWN
    assert "has no topic" in told.reason
    copied.copy()
    (told,) = copied.look(topic)
    assert (told.result, told.comparison) == (Rehearsed.EQUAL, SampleComparison(equal=3))
