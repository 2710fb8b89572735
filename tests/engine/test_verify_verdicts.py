"""What `verify` says of a copy that is not complete: never that all is well."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from kafka import KafkaProducer
from lab import KafkaCluster
from pyspark.sql import SparkSession
from test_verify import config_of, plain, run_command, write
from tests.support import loss_tools as lt
from tests.support import mirror_process as mp
from tests.support.mirror_thread import receipt

from conftest import StartMirror, VerifyVerb
from sparkmirror.frames import Options, Progress, Verdict, Verification, run_verification, verify

pytestmark = [pytest.mark.broker, pytest.mark.spark]

COUNT = 500

Verify = Callable[[], Verification]


@pytest.fixture
def verified(
    spark: SparkSession, source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> Verify:
    """Of the flow A->B of a test's topics."""
    return lambda: run_verification(
        spark, config_of(tmp_path, source_cluster, target_cluster, f"{topic_name}.*"), Options()
    )


def test_of_a_flow_that_never_ran(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path, verify_verb: VerifyVerb
) -> None:
    """The first time by a process of its own."""
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    write(source_cluster, topic_name, plain(range(COUNT)))
    path = config_of(tmp_path, source_cluster, target_cluster, topic_name).path
    said = run_command(path)
    assert said.returncode == 1, said.stderr
    assert "equal so far: 0 records are the same on both sides" in said.stdout
    assert f"{COUNT} records are not at the target: {COUNT} no such topic or partition at the target" in said.stdout
    allowed = verify_verb(path, "--allow-behind", str(COUNT), "-o", "json")
    assert allowed.returncode == 0
    last = json.loads(allowed.stdout.splitlines()[-1])
    assert (last["verdict"], last["equal"]) == ("equal so far", False), "what is allowed is not what is so"


def test_of_records_that_the_target_has_deleted_before_the_source(
    spark: SparkSession,
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    tmp_path: Path,
    verify_verb: VerifyVerb,
) -> None:
    """Its retention is shorter. What is older than the source's own retention is due there, too."""
    old, kept = f"{topic_name}-old", f"{topic_name}-kept"
    mp.create_topic(source_cluster.bootstrap_servers, kept, 1)
    mp.create_topic(source_cluster.bootstrap_servers, old, 1, {"retention.ms": "3600000", "segment.ms": "86400000"})
    now = int(time.time() * 1000)
    for topic in (old, kept):
        write(
            source_cluster, topic, [(b"k", b"%d" % number, now - 7_200_000 * (number < 300)) for number in range(COUNT)]
        )
    config = config_of(tmp_path, source_cluster, target_cluster, f"{old}, {kept}")
    lt.copy_once(Path(config.path), spark)
    for topic in (old, kept):
        lt.delete_records(target_cluster, f"A.{topic}", 0, 400)
    said = verify_verb(config.path, "-o", "json")
    lines = [json.loads(line) for line in said.stdout.splitlines()]
    deleted = {line["partition"]["topic"]: line["partition"]["deleted"] for line in lines if "partition" in line}
    assert deleted == {old: 100, kept: 400}
    assert (said.returncode, lines[-1]["verdict"], lines[-1]["equal"], lines[-1]["deleted"]) == (
        1,
        "equal, but deleted at the target",
        False,
        500,
    )
    rows = verify(spark, config).collect()
    assert {(row.topic, row.kind, row.what) for row in rows} == {
        (old, "deleted", "100 offsets that the source keeps"),
        (kept, "deleted", "400 offsets that the source keeps"),
    }
    assert verify_verb(config.path, "--allow-expired").returncode == 0
    assert "500 offsets that the source keeps are deleted at the target" in verify_verb(config.path).stdout


def test_of_an_empty_topic_that_never_was_copied(
    source_cluster: KafkaCluster, topic_name: str, verified: Verify
) -> None:
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 3)
    assert verified().verdict is Verdict.EQUAL


def test_of_a_parked_partition(
    start_mirror: StartMirror,
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    verified: Verify,
) -> None:
    """At 1 of 1,002 records, because the target refuses the second."""
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    mp.create_topic(target_cluster.bootstrap_servers, f"A.{topic_name}", 1, {"max.message.bytes": "1000"})
    write(source_cluster, topic_name, plain([0]))
    mp.produce(source_cluster.bootstrap_servers, topic_name, 1, 1, codec=None, size=5_000)
    write(source_cluster, topic_name, plain(range(1_000)))

    def parked() -> bool:
        newest = receipt(mirror, topic_name)
        return newest is not None and newest.state == "parked"

    with start_mirror(topic_name, {"sync.topic.configs.enabled": "false"}) as mirror:
        mp.wait_for(parked, 90, "the partition is parked")
    found = verified()
    assert (found.verdict, found.behind) == (Verdict.SO_FAR, {"parked": 1_001})
    (partition,) = found.partitions
    assert partition.records == 1
    assert any("MESSAGE_SIZE_TOO_LARGE" in note for note in partition.notes)


def test_a_tail_without_records_is_nothing_that_is_missing(
    start_mirror: StartMirror,
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    verified: Verify,
) -> None:
    """Markers, and aborted data where the flow leaves it out."""
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    producer = KafkaProducer(
        bootstrap_servers=source_cluster.bootstrap_servers, transactional_id=topic_name, retry_backoff_ms=10
    )
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(topic_name, b"one")
    producer.commit_transaction()
    with start_mirror(topic_name, {}):
        mp.wait_for(lambda: mp.end_offsets(target_cluster.bootstrap_servers, f"A.{topic_name}", 1) == [1], 90, "copied")
    assert verified().verdict is Verdict.EQUAL
    producer.begin_transaction()
    producer.send(topic_name, b"two")
    producer.commit_transaction()
    producer.close()
    found = verified()
    assert (found.verdict, found.behind) == (Verdict.SO_FAR, {"not copied yet": 1})


def test_what_is_copied_meanwhile_is_compared_too(
    spark: SparkSession,
    start_mirror: StartMirror,
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    tmp_path: Path,
) -> None:
    """What was at the source when it began; a mirror that runs gets there, and nobody has to ask a second time."""
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    write(source_cluster, topic_name, plain(range(COUNT)))
    config = config_of(tmp_path, source_cluster, target_cluster, topic_name)
    copied = f"A.{topic_name}"
    with start_mirror(topic_name, {}):
        mp.wait_for(lambda: mp.end_offsets(target_cluster.bootstrap_servers, copied, 1) == [COUNT], 90, "copied")
    write(source_cluster, topic_name, plain(range(COUNT)))
    go_on = threading.Event()

    def copy_on(_: Progress) -> None:
        """When the plan was made, and before the rest is looked at."""
        if not go_on.is_set():
            go_on.set()
            with start_mirror(topic_name, {}):
                mp.wait_for(
                    lambda: mp.end_offsets(target_cluster.bootstrap_servers, copied, 1) == [2 * COUNT], 90, "copied"
                )
            write(source_cluster, topic_name, plain([1]))

    found = run_verification(spark, config, Options(), copy_on)
    assert go_on.is_set()
    assert (found.verdict, [one.records for one in found.partitions]) == (Verdict.EQUAL, [2 * COUNT])
