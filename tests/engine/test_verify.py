"""`verify` against real clusters: clean copies are clean, planted differences are found with their offsets."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from lab import KafkaCluster
from pyspark.sql import SparkSession
from tests.support import mirror_process as mp

from conftest import StartMirror
from sparkmirror.config import MirrorConfig, load_mm2_properties
from sparkmirror.errors import ConfigError
from sparkmirror.frames import Options, Progress, Verdict, Verification, ranges, run_verification, verify

pytestmark = [pytest.mark.broker, pytest.mark.spark]

IDENTITY = {"replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"}
NOW = int(time.time() * 1000)
"""Old records would be deleted by retention."""
Plain = tuple[bytes | None, bytes | None, int]
"""Key, value, timestamp."""


def write(
    cluster: KafkaCluster, topic: str, records: Iterable[Plain], *, codec: str | None = None, linger_ms: int = 5
) -> None:
    """To partition 0."""
    producer = KafkaProducer(
        bootstrap_servers=cluster.bootstrap_servers,
        compression_type=codec,
        linger_ms=linger_ms,
        max_in_flight_requests_per_connection=1,
    )
    for key, value, timestamp in records:
        producer.send(topic, key=key, value=value, timestamp_ms=timestamp, partition=0)
    producer.flush()
    producer.close()


def plain(numbers: Iterable[int]) -> list[Plain]:
    return [(b"key-%d" % (number % 10), b"value-%d" % number, NOW + number) for number in numbers]


def config_of(
    path: Path, source: KafkaCluster, target: KafkaCluster, topics: str, settings: dict[str, str] | None = None
) -> MirrorConfig:
    file = mp.write_properties(
        path / "verify.properties", source.bootstrap_servers, target.bootstrap_servers, topics, settings
    )
    return load_mm2_properties(str(file))


def found_in(found: Verification) -> set[tuple[str, int, str, int | None, int | None]]:
    return {(one.topic, one.partition, one.kind, one.upstream, one.downstream) for one in found.differences}


def test_a_mirrors_copy_is_equal_and_what_others_write_is_found(
    spark: SparkSession,
    start_mirror: StartMirror,
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 2)
    for codec in ("lz4", None, "zstd"):
        mp.produce(source_cluster.bootstrap_servers, topic_name, 2, 2_000, codec=codec)
    with start_mirror(topic_name, {}):
        mp.wait_for(
            lambda: sum(mp.end_offsets(target_cluster.bootstrap_servers, f"A.{topic_name}", 2)) == 6_000, 90, "copied"
        )
    mp.produce(source_cluster.bootstrap_servers, topic_name, 2, 100)
    config = config_of(tmp_path, source_cluster, target_cluster, topic_name)
    monkeypatch.setattr(ranges, "RANGE_BYTES", 20_000)
    clean = run_verification(spark, config, Options())
    assert not clean.differs
    assert clean.all_ranges > 4
    assert [(one.records, one.not_copied_yet, one.expired) for one in clean.partitions] == [(3_000, 50, 0)] * 2
    assert (clean.verdict, clean.behind) == (Verdict.SO_FAR, {"not copied yet": 100})
    assert [(row.kind, row.what) for row in verify(spark, config).collect()] == [
        ("behind", "50 records: not copied yet")
    ] * 2
    seventh = mp_record(source_cluster, topic_name, 7)
    write(target_cluster, f"A.{topic_name}", [(b"k", b"foreign", 5), seventh])
    found = run_verification(spark, config, Options())
    assert found_in(found) == {(topic_name, 0, "extra", None, 3_000), (topic_name, 0, "duplicate", 7, 3_001)}
    assert [dict(one.differences) for one in found.partitions] == [{"extra": 1, "duplicate": 1}, {}]
    part = run_verification(spark, config, Options(from_offset=100, to_offset=300))
    assert [one.records for one in part.partitions] == [200, 200]
    assert not part.differs


def test_between_two_times_only_what_was_written_then_is_compared(
    spark: SparkSession,
    start_mirror: StartMirror,
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    tmp_path: Path,
) -> None:
    """A record a second; a foreign one between the copies of 499 and 500 shows only where those are asked for."""
    first = NOW // 1000 * 1000 - 2_000_000
    records = [(b"key-%d" % number, b"value-%d" % number, first + number * 1000) for number in range(1_000)]
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    copied = f"A.{topic_name}"
    for half in (records[:500], records[500:]):
        write(source_cluster, topic_name, half, codec="lz4")
        end = mp.end_offsets(target_cluster.bootstrap_servers, copied, 1)[0] + 500
        with start_mirror(topic_name, {}):
            mp.wait_for(
                lambda: mp.end_offsets(target_cluster.bootstrap_servers, copied, 1) == [end],  # noqa: B023
                90,
                "copied",
            )
        if end == 500:
            write(target_cluster, copied, [(b"k", b"foreign", first + 500_000)])
    config = config_of(tmp_path, source_cluster, target_cluster, topic_name)
    planted = {(topic_name, 0, "extra", None, 500)}

    def found(
        from_number: int | None, to_number: int | None
    ) -> tuple[int, set[tuple[str, int, str, int | None, int | None]]]:
        """How many records were equal, and what differs."""
        from_time, to_time = (
            None if number is None else datetime.fromtimestamp(first / 1000 + number, UTC)
            for number in (from_number, to_number)
        )
        verified = run_verification(spark, config, Options(from_time=from_time, to_time=to_time))
        return sum(one.records for one in verified.partitions), found_in(verified)

    assert found(None, None) == (1_000, planted)
    assert found(400, 600) == (200, planted)
    assert found(100, 400) == (300, set())
    assert found(600, 900) == (300, set())
    assert found(None, 400) == (400, set())
    assert found(600, None) == (400, set())
    assert found(None, 600) == (600, planted)
    assert found(400, None) == (600, planted)
    assert found(400, 5_000) == (600, planted), "no record is so late: to the end"
    assert found(5_000, None) == (0, set())


def mp_record(cluster: KafkaCluster, topic: str, offset: int) -> Plain:
    """A record of partition 0, without headers."""
    consumer = KafkaConsumer(bootstrap_servers=cluster.bootstrap_servers)
    try:
        where = TopicPartition(topic, 0)
        consumer.assign([where])
        consumer.seek(where, offset)
        record = next(consumer)
        assert record.offset == offset
        assert not record.headers
        return record.key, record.value, record.timestamp
    finally:
        consumer.close()


def test_differences_of_a_copy_by_others_are_found_by_content(
    spark: SparkSession, source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    """Other batches, another codec; one record is missing, one changed, one twice, two changed places, one is extra."""
    for cluster in (source_cluster, target_cluster):
        mp.create_topic(cluster.bootstrap_servers, topic_name, 1)
    original = plain(range(1_000))
    write(source_cluster, topic_name, original, codec="lz4")
    copy = list(original)
    copy.insert(900, (b"key-1", b"foreign", 1))
    copy[700] = (*copy[700][:2], 99)
    copy.insert(503, copy.pop(500))
    copy.insert(300, copy[20])
    del copy[100]
    write(target_cluster, topic_name, copy, codec="gzip", linger_ms=0)
    config = config_of(tmp_path, source_cluster, target_cluster, topic_name, IDENTITY)
    rows = verify(spark, config).collect()
    assert {(row.kind, row.upstream, row.downstream, row.what) for row in rows} == {
        ("missing", 100, None, ""),
        ("duplicate", 20, 299, ""),
        ("reordered", 500, 503, ""),
        ("changed", 700, 700, f"timestamp {NOW + 700} -> 99"),
        ("extra", None, 900, ""),
    }
    with pytest.raises(ConfigError, match="was not copied by sparkmirror"):
        verify(spark, config, Options(from_offset=10))


def test_what_the_targets_cleaner_took_is_no_difference(
    spark: SparkSession, source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    """Of key 3 it never had anything: that is a loss, though there are holes where it could have been."""
    eager = {"segment.ms": "1000", "min.cleanable.dirty.ratio": "0.01", "min.compaction.lag.ms": "0"}
    original = plain(range(500))
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    mp.create_topic(target_cluster.bootstrap_servers, topic_name, 1, {"cleanup.policy": "compact", **eager})
    write(source_cluster, topic_name, original, codec="lz4")
    write(target_cluster, topic_name, [record for record in original if record[0] != b"key-3"])

    def cleaned() -> bool:
        rolls = [(b"key-0", b"again", int(time.time() * 1000))]  # by its later timestamp
        for cluster in (source_cluster, target_cluster):
            write(cluster, topic_name, rolls)
        return first_offset(target_cluster, topic_name) > 0

    mp.wait_for(cleaned, 120, "the target compacted")
    found = run_verification(
        spark, config_of(tmp_path, source_cluster, target_cluster, topic_name, IDENTITY), Options(limit=1000)
    )
    assert found_in(found) == {(topic_name, 0, "missing", number, None) for number in range(3, 500, 10)}
    (partition,) = found.partitions
    end = mp.end_offsets(source_cluster.bootstrap_servers, topic_name, 1)[0]
    assert partition.records + partition.compacted == end - 50
    assert partition.compacted >= 9 * 49


def test_a_target_that_stamps_records_is_compared_without_timestamps(
    spark: SparkSession, source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    mp.create_topic(target_cluster.bootstrap_servers, topic_name, 1, {"message.timestamp.type": "LogAppendTime"})
    for cluster in (source_cluster, target_cluster):
        write(cluster, topic_name, plain(range(100)))
    found = run_verification(
        spark, config_of(tmp_path, source_cluster, target_cluster, topic_name, IDENTITY), Options()
    )
    assert not found.differs
    assert found.partitions[0].records == 100
    assert any("timestamps are not compared" in note for note in found.partitions[0].notes)


def test_aborted_data_is_no_part_of_a_committed_copy(
    spark: SparkSession, source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    for cluster in (source_cluster, target_cluster):
        mp.create_topic(cluster.bootstrap_servers, topic_name, 1)
    producer = KafkaProducer(
        bootstrap_servers=source_cluster.bootstrap_servers, transactional_id=f"tx-{topic_name}", retry_backoff_ms=10
    )
    producer.init_transactions()
    copied: list[Plain] = []
    for turn in range(7):  # the last is copied: what follows the copy might be not copied yet
        producer.begin_transaction()
        records = plain(range(100 * turn, 100 * turn + 50))
        for key, value, timestamp in records:
            producer.send(topic_name, key=key, value=value, timestamp_ms=timestamp, partition=0)
        producer.flush()  # what is not sent yet would not be sent when it is aborted
        if turn % 2:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
            copied += records
    producer.close()
    write(target_cluster, topic_name, copied)
    committed = {**IDENTITY, "A->B.source.consumer.isolation.level": "read_committed"}
    clean = run_verification(
        spark, config_of(tmp_path, source_cluster, target_cluster, topic_name, committed), Options()
    )
    assert not clean.differs
    assert clean.partitions[0].records == 200
    dirty = run_verification(
        spark, config_of(tmp_path, source_cluster, target_cluster, topic_name, IDENTITY), Options()
    )
    assert dirty.partitions[0].differences == {"missing": 150}


class Enough(Exception):
    """Ends a verification in the middle."""


def test_a_verification_is_resumed_and_a_sample_is_a_part(
    spark: SparkSession,
    start_mirror: StartMirror,
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    mp.produce(source_cluster.bootstrap_servers, topic_name, 1, 5_000, codec=None)
    with start_mirror(topic_name, {}):
        mp.wait_for(
            lambda: mp.end_offsets(target_cluster.bootstrap_servers, f"A.{topic_name}", 1) == [5_000], 90, "copied"
        )
    config = config_of(tmp_path, source_cluster, target_cluster, topic_name)
    monkeypatch.setattr(ranges, "RANGE_BYTES", 30_000)
    journal = tmp_path / "journal"

    def stop(progress: Progress) -> None:
        if progress.done:
            raise Enough

    with pytest.raises(Enough):
        run_verification(spark, config, Options(resume=journal), stop)
    with journal.open("a") as half:
        half.write('{"done": {"range"')
    noted = sum(line.startswith('{"done": {"range": ') for line in journal.read_text().splitlines())
    assert noted
    seen: list[Progress] = []
    found = run_verification(spark, config, Options(resume=journal), seen.append)
    assert not found.differs
    assert found.partitions[0].records == 5_000
    assert found.ranges == found.all_ranges == seen[-1].total == seen[-1].done
    assert 0 < seen[-1].records <= 5_000 - 50 * noted
    again: list[Progress] = []
    assert run_verification(spark, config, Options(resume=journal), again.append).partitions == found.partitions
    assert again == []
    with pytest.raises(ConfigError, match="something else"):
        run_verification(spark, config, Options(resume=journal, sample=0.5))
    some = [run_verification(spark, config, Options(sample=0.3, seed=seed)) for seed in (1, 1, 2)]
    assert [one.ranges for one in some] == [round(found.all_ranges * 0.3)] * 3
    assert 0 < some[0].partitions[0].records == some[1].partitions[0].records < 5_000


def run_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([mp.COMMAND, "verify", *arguments], capture_output=True, text=True, timeout=120)


@pytest.mark.full
def test_the_commands_exit_code_and_its_json(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    equal = f"{topic_name}-equal"
    for cluster, numbers in ((source_cluster, range(20)), (target_cluster, [*range(18), 19])):
        for topic in (topic_name, equal):
            mp.create_topic(cluster.bootstrap_servers, topic, 1)
        write(cluster, topic_name, plain(numbers))
        write(cluster, equal, plain(range(20)))
    config = config_of(tmp_path, source_cluster, target_cluster, f"{topic_name}.*", IDENTITY)
    output = run_command(config.path, "-o", "json", "--topics", topic_name)
    assert output.returncode == 1, output.stderr
    lines: Sequence[dict[str, object]] = [json.loads(line) for line in output.stdout.splitlines()]
    assert lines[0] == {
        "difference": {
            "flow": "A->B",
            "topic": topic_name,
            "target_topic": topic_name,
            "partition": 0,
            "kind": "missing",
            "upstream": 18,
            "downstream": None,
            "what": "",
        }
    }
    assert lines[-1] == {
        "verdict": "different",
        "equal": False,
        "behind": {},
        "deleted": 0,
        "not_compared": {},
        "ranges": 1,
        "all_ranges": 1,
    }
    assert run_command(config.path, "--topics", equal).returncode == 0
    assert run_command(config.path, "--topics", "none-such").returncode == 2
    assert run_command(config.path, "--from-time", "yesterday").returncode == 2


@pytest.mark.full
def test_cleaners_that_work_at_different_times(
    spark: SparkSession,
    start_mirror: StartMirror,
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    tmp_path: Path,
) -> None:
    """The source is compacted after it was copied, then copied on; the target's cleaner is kept from its work."""
    eager = {
        "cleanup.policy": "compact",
        "segment.ms": "1000",
        "min.cleanable.dirty.ratio": "0.01",
        "min.compaction.lag.ms": "0",
    }
    lazy = {"cleanup.policy": "compact", "min.compaction.lag.ms": str(86_400_000)}
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1, lazy)
    mp.create_topic(target_cluster.bootstrap_servers, f"A.{topic_name}", 1, lazy)
    write(source_cluster, topic_name, plain(range(2_000)), codec="lz4")
    copied = f"A.{topic_name}"
    with start_mirror(topic_name, {"sync.topic.configs.enabled": "false"}):
        mp.wait_for(lambda: mp.end_offsets(target_cluster.bootstrap_servers, copied, 1) == [2_000], 90, "copied")

        mp.alter_topic(source_cluster.bootstrap_servers, topic_name, eager)

        def cleaned() -> bool:
            now = int(time.time() * 1000)  # a later timestamp rolls the segment
            write(source_cluster, topic_name, [(b"key-0", b"again", now)])
            return first_offset(source_cluster, topic_name) > 0

        mp.wait_for(cleaned, 120, "the source compacted")
        end = mp.end_offsets(source_cluster.bootstrap_servers, topic_name, 1)
        mp.wait_for(lambda: mp.end_offsets(target_cluster.bootstrap_servers, copied, 1) == end, 180, "the rest copied")
    config = config_of(tmp_path, source_cluster, target_cluster, topic_name)
    found = run_verification(spark, config, Options())
    assert not found.differs
    assert found.partitions[0].compacted > 1_900
    foreign = (b"key-none-has", b"extra", NOW)
    write(target_cluster, copied, [foreign])
    assert found_in(run_verification(spark, config, Options())) == {(topic_name, 0, "extra", None, end[0])}


def first_offset(cluster: KafkaCluster, topic: str) -> int:
    """Of the first record that is left; compaction does not move the log's start."""
    consumer = KafkaConsumer(bootstrap_servers=cluster.bootstrap_servers)
    try:
        where = TopicPartition(topic, 0)
        consumer.assign([where])
        consumer.seek(where, 0)
        return int(next(consumer).offset)
    finally:
        consumer.close()
