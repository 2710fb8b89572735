"""Topics of all kinds that a version of Kafka knows, written by its own producer, and read record by record."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from cluster_of import number_of
from kafka import KafkaConsumer, TopicPartition
from lab import KafkaCluster
from tests.support import mirror_process as mp

from sparkmirror.demo.jars import broker_jars, class_path
from sparkmirror.demo.java import java

PARTITIONS = 2
RECORDS = 600
PATTERN = "t-.*"
LOAD = "t-load"
OLD_FORMATS = {"v0": "0.9.0", "v1": "0.10.2"}
"""What message.format.version is for each."""

_WRITER = Path(__file__).with_name("WriteTopics.java")
_WRITING_S = 180
_CLEANING_S = 120
_READING_S = 120
_COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "1000",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "100",
}


class Record(NamedTuple):
    """What a mirror must keep."""

    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class Topic:
    """One of them; `kind` is what the writer calls it."""

    name: str
    codec: str = "none"
    kind: str = "plain"
    configs: Mapping[str, str] = field(default_factory=dict)


def topics_of(version: str) -> list[Topic]:
    """Return those that brokers and producers of a version know."""
    number = number_of(version)
    codecs = ["none", "lz4", "gzip", "snappy", *(["zstd"] if number >= (2, 1) else [])]
    topics = [Topic(f"t-{codec}", codec) for codec in codecs]
    topics += [
        Topic("t-keyed", "lz4", "keyed"),
        Topic("t-compacted", "lz4", "compacted", _COMPACTED),
        Topic("t-transactional", "lz4", "transactional"),
    ]
    if number < (3, 0):  # later brokers write magic 2 whatever is asked for
        for name, format_version in OLD_FORMATS.items():
            configs = {"message.format.version": format_version}
            topics += [Topic(f"t-{name}-{codec}", codec, "old", configs) for codec in ("none", "gzip", "lz4")]
    return topics


def write(cluster: KafkaCluster, topics: Sequence[Topic]) -> None:
    """Create the topics, fill them by a producer of the cluster's version, and wait until what can be is cleaned."""
    servers = cluster.bootstrap_servers
    for topic in topics:
        mp.create_topic(servers, topic.name, PARTITIONS, topic.configs)
    jars = class_path(broker_jars(cluster.brokers[0].version))
    command = [java(), "-XX:TieredStopAtLevel=1", "-cp", jars, str(_WRITER), servers, str(PARTITIONS)]
    lines = "".join(f"{topic.name} {topic.codec} {topic.kind} {RECORDS}\n" for topic in topics)
    written = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=_WRITING_S, check=False)
    assert written.returncode == 0, written.stderr[-3000:]
    for topic in topics:
        if topic.kind == "compacted":
            mp.wait_for(lambda name=topic.name: _cleaned(servers, name), _CLEANING_S, f"{topic.name} is cleaned")  # type: ignore[misc]


def _cleaned(servers: str, topic: str) -> bool:
    """Whether every partition has lost most of what newer records replace."""
    return all(len(records) < RECORDS / PARTITIONS / 2 for records in read(servers, topic).values())


def read(servers: str, topic: str) -> dict[int, dict[int, Record]]:
    """Return the committed records of each partition by their offsets, in order."""
    consumer = KafkaConsumer(
        bootstrap_servers=servers, isolation_level="read_committed", enable_auto_commit=False, check_crcs=True
    )
    deadline = time.monotonic() + _READING_S
    try:
        parts = [TopicPartition(topic, index) for index in sorted(consumer.partitions_for_topic(topic) or ())]
        records: dict[int, dict[int, Record]] = {part.partition: {} for part in parts}
        consumer.assign(parts)
        consumer.seek_to_beginning(*parts)
        ends = consumer.end_offsets(parts)
        while any(consumer.position(part) < ends[part] for part in parts):
            assert time.monotonic() < deadline, f"{topic} at {servers}: not read in {_READING_S} s"
            for part, polled in consumer.poll(timeout_ms=200).items():
                for got in polled:
                    headers = tuple((name, value) for name, value in got.headers)
                    stamp = -1 if got.timestamp is None else got.timestamp
                    records[part.partition][got.offset] = Record(stamp, got.key, got.value, headers)
        return records
    finally:
        consumer.close()


def difference(source: Mapping[int, Mapping[int, Record]], target: Mapping[int, Mapping[int, Record]]) -> str:
    """Say what is the first difference between two topics' records in their order; nothing if there is none."""
    if source.keys() != target.keys():
        return f"partitions {sorted(source)} and {sorted(target)}"
    for index, records in source.items():
        ours, theirs = list(records.values()), list(target[index].values())
        for number, (left, right) in enumerate(zip(ours, theirs, strict=False)):
            if left != right:
                return f"partition {index}, record {number}: {left} and {right}"
        if len(ours) != len(theirs):
            return f"partition {index}: {len(ours)} and {len(theirs)} records"
    return ""


def copied_offset(source: Mapping[int, Record], offset: int) -> int:
    """Return where a reader at `offset` of a partition continues in its copy, which begins at 0 and has no gaps."""
    return sum(1 for there in source if there < offset)
