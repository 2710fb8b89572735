"""What brokers refuse or delay: the partition says why, the others continue, and so does it after the remedy."""

from __future__ import annotations

import re
import time
from contextlib import closing

import pytest
from lab import KafkaCluster
from lab.quotas import set_quota
from tests.support import mirror_process as mp
from tests.support.loaded_flow import assert_copied
from tests.support.mirror_thread import receipt

from conftest import StartMirror
from sparkmirror.config import ClusterConfig
from sparkmirror.demo.proof import LogReader
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_configs import topic_configs
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.look.doctor.findings import diagnose
from sparkmirror.mirror.engine.mirror import Mirror
from sparkmirror.pump.messages.control import Control, control_topic

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

IN_2001_MS = 1_000_000_000_000
QUOTA = 300_000


def reasons_of(mirror: Mirror) -> set[str]:
    """What the newest receipts of all partitions give for their state."""
    return {view.receipt.reason for view in mirror.drivers[0].view.partitions.values() if view.receipt}


def wait_until_parked(mirror: Mirror, topic: str, *words: str) -> None:
    def parked() -> bool:
        now = receipt(mirror, topic)
        return now is not None and now.state == "parked" and all(word in now.reason for word in words)

    try:
        mp.wait_for(parked, 90, f"{topic} parked")
    finally:
        print(receipt(mirror, topic))


def test_limits_of_a_target_topic(
    start_mirror: StartMirror, source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str
) -> None:
    """Too old, and too large: both say with which limit of the target topic, and what it is set to."""
    here, there = source_cluster.bootstrap_servers, target_cluster.bootstrap_servers
    old, large, fine = (f"{topic_name}-{kind}" for kind in ("old", "large", "fine"))
    limits: tuple[dict[str, str], ...] = (
        {"message.timestamp.before.max.ms": "86400000"},
        {"max.message.bytes": "5000"},
        {},
    )
    for topic, configs in zip((old, large, fine), limits, strict=True):
        mp.create_topic(here, topic, 1)
        mp.create_topic(there, f"A.{topic}", 1, configs)
        mp.produce(here, topic, 1, 50)
    mp.produce(here, old, 1, 50, timestamp_ms=IN_2001_MS)
    mp.produce(here, large, 1, 1, size=20_000, codec=None)
    for topic in (old, large):
        mp.produce(here, topic, 1, 50)
    (size,) = (header.size for header, _ in LogReader(here).batches(large, 0) if header.base_offset == 50)
    assert size > 20_000
    own_limits = {"sync.topic.configs.enabled": "false"}  # else they become the source's, as with MirrorMaker 2
    with start_mirror(f"{topic_name}-.*", own_limits) as mirror:
        wait_until_parked(
            mirror,
            old,
            "source offset 50: INVALID_TIMESTAMP",
            "2001-09-09",
            f"topic A.{old} has ",
            "message.timestamp.before.max.ms=86400000",
        )
        wait_until_parked(
            mirror,
            large,
            "source offset 50: MESSAGE_SIZE_TOO_LARGE",
            f"the batch of {size} bytes",
            f"topic A.{large} has max.message.bytes=5000",
        )
        assert [mp.end_offsets(there, f"A.{topic}", 1)[0] for topic in (old, large)] == [50, 50]
        mp.produce(here, fine, 1, 50)
        mp.wait_for(lambda: mp.end_offsets(there, f"A.{fine}", 1) == [100], 180, "the third topic continues")
        mp.alter_topic(there, f"A.{old}", {"message.timestamp.before.max.ms": str(2**62)})
        mp.alter_topic(there, f"A.{large}", {"max.message.bytes": "100000"})
        mp.wait_for(lambda: mp.end_offsets(there, f"A.{old}", 1) == [150], 120, "the old ones copied")
        mp.wait_for(lambda: mp.end_offsets(there, f"A.{large}", 1) == [101], 120, "the large one copied")
        mp.produce(here, old, 1, 50)
        mp.wait_for(lambda: mp.end_offsets(there, f"A.{old}", 1) == [200], 180, "and what follows")
        assert mirror.rounds == 1
    assert_copied(source_cluster, target_cluster, {topic: f"A.{topic}" for topic in (old, fine)}, 300)
    assert_copied(source_cluster, target_cluster, {large: f"A.{large}"}, 101)


def test_a_limit_that_the_doctor_has_raised_stays(
    start_mirror: StartMirror, source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str
) -> None:
    """The source took a large batch, and its limit was lowered since: the copy has the lower limit.

    On the copy alone a larger value is set back; the doctor's command changes the source's topic.
    """
    here, there = source_cluster.bootstrap_servers, target_cluster.bootstrap_servers
    mp.create_topic(here, topic_name, 1)
    mp.produce(here, topic_name, 1, 1, size=20_000, codec=None)
    mp.alter_topic(here, topic_name, {"max.message.bytes": "5000"})
    with start_mirror(topic_name, {"sync.topic.configs.interval.seconds": "1"}) as mirror:
        limits = f"A.{topic_name} has max.message.bytes=5000; its topic at the source has max.message.bytes=5000"
        wait_until_parked(mirror, topic_name, limits)
        mp.alter_topic(there, f"A.{topic_name}", {"max.message.bytes": "100000"})
        mp.wait_for(lambda: limit(there, f"A.{topic_name}") == "5000", 30, "it is set back")
        (finding,) = (each for each in diagnose(mirror.observer.snapshot()) if each.rule == "parked-too-large")
        command = re.search(rf"kafka-configs.sh --bootstrap-server {here} .* {topic_name} .*?=(\d+)`", finding.action)
        assert command is not None, finding.action
        mp.alter_topic(here, topic_name, {"max.message.bytes": command[1]})
        mp.wait_for(lambda: limit(there, f"A.{topic_name}") == command[1], 30, "the mirror brings it to the copy")
        with closing(ClusterClient(ClusterConfig(alias="x", bootstrap_servers=(there,)), "test")) as client:
            Control(TopicLog(client, control_topic("A"))).try_again([f"{topic_name}:0"])
        mp.wait_for(lambda: mp.end_offsets(there, f"A.{topic_name}", 1) == [1], 20, "the batch is copied at once")
        time.sleep(3)
        assert limit(there, f"A.{topic_name}") == command[1]


def limit(servers: str, topic: str) -> str:
    with closing(ClusterClient(ClusterConfig(alias="x", bootstrap_servers=(servers,)), "test")) as client:
        return topic_configs(client, [topic], ["max.message.bytes"])[topic]["max.message.bytes"]


def test_a_quota_at_the_target(
    start_mirror: StartMirror,
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The broker mutes the connection for seconds after each answer; that is no dead connection, and no doubt.

    The quota is for the client id that the file gives to the producer.
    """
    here, there = source_cluster.bootstrap_servers, target_cluster.bootstrap_servers
    mp.create_topic(here, topic_name, 4)
    mp.produce(here, topic_name, 4, 16_000, codec=None, size=1000)
    client_id = "writer"
    set_quota(target_cluster, "producer_byte_rate", QUOTA, client_id)
    try:
        # A muted connection must not be taken for a dead one, however short the time for an answer.
        settings = {"B.producer.request.timeout.ms": "5000", "B.producer.client.id": client_id}
        with start_mirror(topic_name, settings) as mirror:
            mp.wait_for(lambda: sum(mp.end_offsets(there, f"A.{topic_name}", 4)) > 0, 90, "it runs")
            # What its start waited for, on a busy machine, stands in the newest receipts for a moment more.
            mp.wait_for(lambda: reasons_of(mirror) == {""}, 30, "and says so")
            reasons = set()
            began, before = time.monotonic(), sum(mp.end_offsets(there, f"A.{topic_name}", 4))
            while time.monotonic() - began < 15:
                reasons |= reasons_of(mirror)
                time.sleep(0.2)
            rate = (sum(mp.end_offsets(there, f"A.{topic_name}", 4)) - before) * 1000 / (time.monotonic() - began)
            print(f"{rate:,.0f} bytes/s under a quota of {QUOTA:,}; {reasons}")
            assert rate < 2 * QUOTA
            assert reasons <= {""}
            set_quota(target_cluster, "producer_byte_rate", None, client_id)
            mp.wait_for(lambda: sum(mp.end_offsets(there, f"A.{topic_name}", 4)) == 16_000, 120, "the rest")
            assert mirror.rounds == 1
    finally:
        set_quota(target_cluster, "producer_byte_rate", None, client_id)
    assert_copied(source_cluster, target_cluster, {topic_name: f"A.{topic_name}"}, 16_000)
