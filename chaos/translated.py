"""Offsets of consumer groups, as the mirror translates them: record by record, against both logs.

Groups are committed at the source to offsets drawn at random over the whole of each partition. The checkpoint of each
must lead to the same record: whoever continues there at the target leaves nothing out, and reads nothing twice.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kafka import KafkaConsumer, TopicPartition
from kafka.structs import OffsetAndMetadata
from lab import KafkaCluster

from chaos.arena import Arena
from chaos.mirror import SOURCE, remote
from chaos.records import Log
from chaos.replicas import ask
from chaos.words import FalseWords
from sparkmirror.exact.mm2.record_formats import Checkpoint

GROUPS = 4
_CHECKPOINTS = f"{SOURCE}.checkpoints.internal"
_TIMEOUT_S = 90.0
_POLL_S = 1.0
_POLL_MS = 500


@dataclass(frozen=True, slots=True)
class Committed:
    """Where a group is at the source."""

    group: str
    part: TopicPartition
    offset: int


def commit(arena: Arena, prefix: str, ends: Mapping[TopicPartition, int], chance: random.Random) -> list[Committed]:
    """Commit groups somewhere in these partitions of the source, each up to its end. Raises SetupError."""
    committed = []
    for number in range(GROUPS):
        group = f"{prefix}.group-{number}"
        offsets = {part: chance.randint(0, end) for part, end in ends.items() if end}
        wanted = {part: OffsetAndMetadata(offset, "", -1) for part, offset in offsets.items()}
        ask(arena.source, lambda admin, group=group, wanted=wanted: admin.alter_group_offsets(group, wanted))  # type: ignore[misc]
        committed += [Committed(group, part, offset) for part, offset in offsets.items()]
    return committed


def wait_for_checkpoints(target: KafkaCluster, committed: Iterable[Committed]) -> list[Checkpoint]:
    """Return the newest checkpoint of each that says where it is; those that don't come in time are left out."""
    wanted = {(one.group, remote(one.part.topic), one.part.partition): one.offset for one in committed}
    deadline = time.monotonic() + _TIMEOUT_S
    while True:
        newest = {(one.group, one.topic, one.partition): one for one in read_checkpoints(target)}
        found = [newest[key] for key, upstream in wanted.items() if key in newest and newest[key].upstream == upstream]
        if len(found) == len(wanted) or time.monotonic() > deadline:
            return found
        time.sleep(_POLL_S)


def read_checkpoints(target: KafkaCluster) -> list[Checkpoint]:
    """Return every checkpoint that is in the topic, in its order."""
    consumer: Any = KafkaConsumer(
        bootstrap_servers=target.direct_servers,
        enable_auto_commit=False,
        allow_auto_create_topics=False,
        auto_offset_reset="earliest",
    )
    found: list[Checkpoint] = []
    try:
        if _CHECKPOINTS not in consumer.topics():
            return []
        part = TopicPartition(_CHECKPOINTS, 0)
        consumer.assign([part])
        end, deadline = consumer.end_offsets([part])[part], time.monotonic() + _TIMEOUT_S
        while consumer.position(part) < end and time.monotonic() < deadline:
            for records in consumer.poll(timeout_ms=_POLL_MS).values():
                found += [Checkpoint.read(record.key, record.value) for record in records if record.value is not None]
    finally:
        consumer.close()
    return found


def false_checkpoints(
    checkpoints: Iterable[Checkpoint],
    truth: Mapping[TopicPartition, Log],
    copies: Mapping[TopicPartition, Log],
    *,
    may_be_earlier: bool,
) -> FalseWords:
    """Compare checkpoints with the source's logs and the copies' without strangers, both by the copy's partition.

    One that leads further back than to the same record is not false if that `may_be_earlier`.
    """
    false = FalseWords()
    for one in checkpoints:
        part = TopicPartition(one.topic, one.partition)
        wanted, found = _next(truth[part], one.upstream), _next(copies[part], one.downstream)
        if wanted == found or (may_be_earlier and _comes_before(found, wanted, truth[part])):
            continue
        where = f"{one.topic}-{one.partition} at {one.downstream}, the source's {one.upstream}"
        false.add(f"checkpoint: {one.group}, {where}: leads to {found or 'nothing'}, not to {wanted or 'nothing'}")
    return false


def _next(log: Log, offset: int) -> str:
    """The name of the first record from that offset on; empty: there is none."""
    return next((record.id for record in log if record.offset >= offset), "")


def _comes_before(one: str, other: str, log: Log) -> bool:
    places = {record.id: place for place, record in enumerate(log)}
    return one in places and places[one] < places.get(other, len(log))
