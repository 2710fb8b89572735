"""Ten thousand consumer groups on a hundred thousand partitions: what a turn of their duties costs.

A copied flow between two real brokers. Each group has committed on ten partitions of one topic, anywhere in their logs.
Afterwards all that was written is compared with what the groups have committed.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewTopic
from lab import KafkaCluster

from bench.one_pump import copy_once
from bench.producing import ProducingFailed
from sparkmirror.config import FlowConfig, load_mm2_properties
from sparkmirror.exact.mm2.record_formats import Checkpoint
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.groups import Committed, Groups, Offsets
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.mirror.sync.checkpoints import Checkpoints
from sparkmirror.mirror.sync.group_offsets import GroupOffsetSync
from sparkmirror.policy import policy_for
from sparkmirror.policy.group_filter import DefaultGroupFilter
from sparkmirror.pump.messages.orders import Receipt

GROUPS = 10_000
PARTITIONS_EACH = 10
TOPICS, PARTITIONS, RECORDS = 10, 100, 50
"""Topics, partitions of each, records of each partition."""
MOVED = 0.05
"""This share of the groups has read on before the last turns."""

_COPY_S = 300.0


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of one duty."""

    what: str
    seconds: float
    cpu_s: float
    """Of this process, without the brokers."""
    written: int
    """Checkpoints, or offsets of target groups."""


def measure_groups(directory: Path, say: Callable[[str], None], groups: int = GROUPS) -> list[Turn]:
    """Set it up, and take the turns. Raises `ProducingFailed` if anything written is wrong."""
    pair = KafkaCluster(directory / "source", heap_mb=1024), KafkaCluster(directory / "target", heap_mb=1024)
    try:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(KafkaCluster.start, pair))
        flow = _flow(*pair, directory / "mm2.properties")
        _fill(pair[0])
        receipts = _copy(flow)
        say(f"{len(receipts)} partitions are copied")
        return _Course(flow, receipts, groups, say).turns()
    finally:
        for cluster in pair:
            cluster.cleanup()


class _Course:
    """The turns, one after the other."""

    def __init__(self, flow: FlowConfig, receipts: Sequence[Receipt], groups: int, say: Callable[[str], None]) -> None:
        self._flow = flow
        self._say = say
        self._source, self._target = (ClusterClient(one, "bench") for one in (flow.source, flow.target))
        chosen = random.Random(7)
        self._committed = {f"group-{number}": _places(chosen, number) for number in range(groups)}
        self._chosen = chosen
        policy = policy_for(flow.replication_policy_class, source_alias=flow.source.alias)
        self._topic = policy.checkpoints_topic(flow.source.alias)
        self._checkpoints = Checkpoints(flow, policy, DefaultGroupFilter([".*"]), lambda _: True, lambda: receipts)
        self._sync = GroupOffsetSync(flow, self._checkpoints)
        self._read_to = 0

    def turns(self) -> list[Turn]:
        try:
            Groups(self._source).commit(self._committed)
            self._say(f"{len(self._committed)} groups have committed")
            found = [
                self._checkpoint("checkpoints, the first turn"),
                self._checkpoint("checkpoints, nothing has changed"),
                self._set("group offsets, the first turn"),
                self._set("group offsets, nothing has changed"),
            ]
            self._move()
            share = f"{MOVED:.0%} of the groups have moved"
            found += [self._checkpoint(f"checkpoints, {share}"), self._set(f"group offsets, {share}")]
            self._check()
            return found
        finally:
            for one in (self._sync, self._checkpoints, self._source, self._target):
                one.close()

    def _checkpoint(self, what: str) -> Turn:
        seconds, cpu_s = _timed(self._checkpoints.run)
        return self._told(Turn(what, seconds, cpu_s, len(self._new_checkpoints())))

    def _set(self, what: str) -> Turn:
        seconds, cpu_s = _timed(self._sync.run)
        return self._told(Turn(what, seconds, cpu_s, self._sync.written))

    def _told(self, turn: Turn) -> Turn:
        self._say(f"{turn.what}: {turn.seconds:.1f} s, {turn.cpu_s:.1f} CPU s, {turn.written:,} written")
        return turn

    def _new_checkpoints(self) -> list[Checkpoint]:
        entries, self._read_to = TopicLog(self._target, self._topic).read(0, self._read_to)
        return [Checkpoint.read(one.key, one.value) for one in entries]

    def _move(self) -> None:
        some = self._chosen.sample(sorted(self._committed), int(len(self._committed) * MOVED))
        moved = {group: dict.fromkeys(self._committed[group], Committed(RECORDS)) for group in some}
        self._committed |= moved
        Groups(self._source).commit(moved)

    def _check(self) -> None:
        """The logs have no gaps, so offsets are the same on both sides."""
        found = Groups(self._target).committed(self._committed).offsets
        for group, offsets in self._committed.items():
            wanted = {(f"A.{topic}", partition): one for (topic, partition), one in offsets.items()}
            if found[group] != wanted:
                raise ProducingFailed(f"{group} has other offsets at the target than it should")


def _flow(source: KafkaCluster, target: KafkaCluster, file: Path) -> FlowConfig:
    settings = {
        "clusters": "A, B",
        "A.bootstrap.servers": source.bootstrap_servers,
        "B.bootstrap.servers": target.bootstrap_servers,
        "A->B.enabled": "true",
        "A->B.topics": "topic-.*",
        "replication.factor": "1",
        "checkpoints.topic.replication.factor": "1",
    }
    file.write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))
    return load_mm2_properties(str(file)).flows[0]


def _fill(cluster: KafkaCluster) -> None:
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    try:
        admin.create_topics([NewTopic(f"topic-{number}", PARTITIONS, 1) for number in range(TOPICS)])
    finally:
        admin.close()
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap_servers, linger_ms=50)
    for number in range(TOPICS * PARTITIONS * RECORDS):
        topic, partition = number % TOPICS, number // TOPICS % PARTITIONS
        producer.send(f"topic-{topic}", value=b"value", partition=partition)
    producer.close()


def _copy(flow: FlowConfig) -> list[Receipt]:
    done = copy_once(flow, "bench", _COPY_S)
    if len(done) != TOPICS * PARTITIONS or any(one.state != "done" for one in done):
        raise ProducingFailed("not everything was copied")
    return done


def _places(chosen: random.Random, number: int) -> Offsets:
    topic = f"topic-{number % TOPICS}"
    partitions = chosen.sample(range(PARTITIONS), PARTITIONS_EACH)
    return {(topic, partition): Committed(chosen.randint(0, RECORDS - 1)) for partition in partitions}


def _timed(run: Callable[[], None]) -> tuple[float, float]:
    began, cpu = time.monotonic(), time.process_time()
    run()
    return time.monotonic() - began, time.process_time() - cpu


def markdown(turns: Sequence[Turn]) -> str:
    """A table."""
    lines = ["| turn | seconds | CPU seconds | written |", "|---|---|---|---|"]
    lines += [f"| {turn.what} | {turn.seconds:.1f} | {turn.cpu_s:.1f} | {turn.written:,} |" for turn in turns]
    return "\n".join(lines) + "\n"
