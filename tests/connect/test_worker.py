"""A worker with real brokers and Spark: what connectors are told takes effect, and no record is lost or repeated."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest
from lab import KafkaCluster
from tests.support import mirror_process as mp
from tests.support.connectors import RunningWorker, StartWorker, read
from tests.support.loaded_flow import assert_copied

from sparkmirror.connect.connector_model import TargetState

pytestmark = [pytest.mark.broker, pytest.mark.spark]

STARTED, PAUSED, STOPPED = TargetState.STARTED, TargetState.PAUSED, TargetState.STOPPED
MSC, CPC, HBC = "mm2-msc", "mm2-cpc", "mm2-hbc"


def alias_of(topic: str) -> str:
    """An alias that no other test has: internal topics are named by it."""
    return "W" + "".join(letter for letter in topic if letter.isalnum())[-8:]


def stands_still(worker: RunningWorker, topic: str) -> bool:
    before = worker.copied(topic)
    time.sleep(1.5)
    return worker.copied(topic) == before


def stored(worker: RunningWorker, topic: str) -> dict[int, int]:
    """What the source connector's offsets say of a topic; they may say something of other tests' topics, too."""
    return {
        int(str(where["partition"])): int(str((offset or {})["offset"]))
        for where, offset in worker.worker.offsets(MSC)
        if where["topic"] == topic
    }


def test_three_connectors_through_their_lives(
    start_worker: StartWorker, source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str
) -> None:
    alias, more = alias_of(topic_name), f"{topic_name}-more"
    source = source_cluster.bootstrap_servers
    for topic in (topic_name, more):
        mp.create_topic(source, topic, 2)
    worker = start_worker()
    remote, remote_more = f"{alias}.{topic_name}", f"{alias}.{more}"
    with mp.load(source, topic_name, 2, per_s=1000), mp.load(source, more, 2, per_s=1000):
        for name, config in worker.connectors(topic_name, alias).items():
            worker.put(name, config)
        for name in (MSC, CPC, HBC):
            worker.wait_for(name, "RUNNING")
        mp.wait_for(lambda: worker.copied(remote) > 0, 120, "the first records")
        # Another topic, by PUT.
        worker.change(MSC, topics=f"{topic_name},{more}")
        mp.wait_for(lambda: worker.copied(remote_more) > 0, 120, "the topic that was added")
        mp.wait_for(lambda: worker.worker.topics(MSC) == {remote, remote_more}, 180, "both topics noted")
        worker.to(PAUSED, MSC)
        worker.wait_for(MSC, "PAUSED")
        assert worker.state(MSC).split()[:2] == ["PAUSED", "PAUSED"]
        assert stands_still(worker, remote)
        worker.wait_for(CPC, "RUNNING")
        worker.to(STARTED, MSC)
        before = worker.copied(remote)
        mp.wait_for(lambda: worker.copied(remote) > before, 120, "the copy continues")
        worker.worker.restart(MSC, include_tasks=True, only_failed=False)
        worker.wait_for(MSC, "RUNNING")
        worker.to(STOPPED, MSC)
        worker.wait_for(MSC, "STOPPED")
        assert worker.state(MSC) == "STOPPED"
        assert stands_still(worker, remote)
        worker.to(STARTED, MSC)
        stopped_at = worker.copied(remote)
        mp.wait_for(lambda: worker.copied(remote) > stopped_at, 120, "the copy continues")
        worker.delete(CPC, HBC)
        with pytest.raises(KeyError):
            worker.worker.status(CPC)
        without_others = worker.copied(remote)
        mp.wait_for(lambda: worker.copied(remote) > without_others, 120, "the copy continues")
    sent = {topic: sum(mp.end_offsets(source, topic, 2)) for topic in (topic_name, more)}
    mp.wait_for(lambda: worker.copied(remote) == sent[topic_name], 120, "all records")
    mp.wait_for(lambda: worker.copied(remote_more) == sent[more], 120, "all records")
    assert_copied(source_cluster, target_cluster, {topic_name: remote, more: remote_more})
    last = {index: end - 1 for index, end in enumerate(mp.end_offsets(source, topic_name, 2))}
    mp.wait_for(lambda: stored(worker, topic_name) == last, 180, "its last offsets")


def test_altered_offsets_repeat_and_skip_what_was_asked_for(
    start_worker: StartWorker, source_cluster: KafkaCluster, topic_name: str
) -> None:
    alias = alias_of(topic_name)
    source = source_cluster.bootstrap_servers
    mp.create_topic(source, topic_name, 2)
    mp.produce(source, topic_name, 2, 200)
    worker = start_worker()
    remote = f"{alias}.{topic_name}"
    worker.put(MSC, worker.connectors(topic_name, alias)[MSC])
    mp.wait_for(lambda: worker.copied(remote) == 200, 120, "the copy")
    at = [{"cluster": alias, "partition": index, "topic": topic_name} for index in range(2)]
    with pytest.raises(ValueError, match="must be stopped"):
        worker.worker.alter_offsets(MSC, [(at[0], {"offset": 49})])
    worker.to(STOPPED, MSC)
    worker.wait_for(MSC, "STOPPED")
    with pytest.raises(ValueError, match="the source ends at offset 100"):
        worker.worker.alter_offsets(MSC, [(at[0], {"offset": 49}), (at[1], {"offset": 100})])
    assert worker.worker.alter_offsets(MSC, [(at[0], {"offset": 49})]).endswith("altered successfully")
    assert stored(worker, topic_name) == {0: 49, 1: 99}
    mp.produce(source, topic_name, 2, 20)
    worker.to(STARTED, MSC)
    # Partition 0: 100, then again what is behind offset 49, and the 10 new ones.
    mp.wait_for(lambda: mp.end_offsets(worker.target, remote, 2) == [160, 110], 120, "what was asked for again")
    worker.to(STOPPED, MSC)
    worker.wait_for(MSC, "STOPPED")
    mp.produce(source, topic_name, 2, 20)
    worker.worker.alter_offsets(MSC, [(at[1], {"offset": 114})])
    worker.to(STARTED, MSC)
    mp.wait_for(lambda: mp.end_offsets(worker.target, remote, 2) == [170, 115], 120, "without what was to be skipped")
    assert values(worker.source, topic_name, 0)[50:] == values(worker.target, remote, 0)[100:]
    assert values(worker.source, topic_name, 1)[115:] == values(worker.target, remote, 1)[110:]
    worker.to(STOPPED, MSC)
    worker.wait_for(MSC, "STOPPED")
    assert worker.worker.delete_offsets(MSC).endswith("reset successfully")
    assert stored(worker, topic_name) == {}
    worker.to(STARTED, MSC)
    mp.wait_for(lambda: mp.end_offsets(worker.target, remote, 2) == [290, 235], 120, "all of it again")
    assert values(worker.source, topic_name, 1) == values(worker.target, remote, 1)[115:]


def values(servers: str, topic: str, partition: int) -> list[bytes | None]:
    """The records of a partition from its start on, by their values."""
    return [record.value for record in read(servers, topic, partition)]


@pytest.mark.full
def test_the_next_worker_takes_over(
    start_worker: StartWorker, source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str
) -> None:
    alias = alias_of(topic_name)
    source = source_cluster.bootstrap_servers
    mp.create_topic(source, topic_name, 2)
    first, second = start_worker(name="one:8083"), start_worker(name="two:8083")
    with mp.load(source, topic_name, 2, per_s=1000):
        for worker in (first, second):
            for name, config in worker.connectors(topic_name, alias).items():
                worker.put(name, config)
            worker.wait_for(CPC, "RUNNING" if worker is first else "UNASSIGNED")
        mp.wait_for(lambda: "another process works on it" in second.worker.status(MSC).trace, 120, "standing by")
        assert second.worker.status(MSC).worker_id == "two:8083"
        first.close()
        second.wait_for(MSC, "RUNNING")
        before = second.copied(f"{alias}.{topic_name}")
        mp.wait_for(lambda: second.copied(f"{alias}.{topic_name}") > before, 120, "the copy continues")
    end = sum(mp.end_offsets(source, topic_name, 2))
    mp.wait_for(lambda: second.copied(f"{alias}.{topic_name}") == end, 120, "all records")
    assert_copied(source_cluster, target_cluster, {topic_name: f"{alias}.{topic_name}"})


@pytest.mark.full
def test_a_worker_is_killed_and_started_again(
    start_worker: StartWorker,
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    tmp_path: Path,
) -> None:
    alias = alias_of(topic_name)
    source = source_cluster.bootstrap_servers
    mp.create_topic(source, topic_name, 2)
    remote = f"{alias}.{topic_name}"
    helper = start_worker()
    connectors = helper.connectors(topic_name, alias)
    settings = {key: entry.value for key, entry in helper.file.settings.items()}
    (tmp_path / "worker.json").write_text(json.dumps({"worker": settings, "connectors": connectors}))
    with mp.load(source, topic_name, 2, per_s=1000):
        for _ in range(3):
            before = helper.copied(remote)
            with mp.MirrorProcess(
                tmp_path / "worker.json",
                tmp_path / "worker.log",
                command=[sys.executable, str(Path(__file__).with_name("worker_process.py"))],
            ):
                mp.wait_for(lambda before=before: helper.copied(remote) > before, 120, "fresh records")  # type: ignore[misc]
    for name, config in connectors.items():
        helper.put(name, config)
    end = sum(mp.end_offsets(source, topic_name, 2))
    mp.wait_for(lambda: helper.copied(remote) == end, 90, "all records")
    assert_copied(source_cluster, target_cluster, {topic_name: remote})
