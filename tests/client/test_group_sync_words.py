"""The log of the consumer group offset sync app, line by line: users search theirs for its very words."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from sparkmirror.client import GroupOffsets, OffsetAndMetadata, TopicPartition
from sparkmirror.client.group_sync import GroupSync, GroupTurn
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.kafka.cluster.groups import Committed, FetchedOffsets, ListedGroup, Offsets

GROUP = "billing"
CHECKPOINT: GroupOffsets = {
    TopicPartition("us.t", 0): OffsetAndMetadata(7, "m"),
    TopicPartition("us.t", 1): OffsetAndMetadata(9, ""),
}
FIRST = "us.t-0=OffsetAndMetadata{offset=7, leaderEpoch=null, metadata='m'}"
SECOND = "us.t-1=OffsetAndMetadata{offset=9, leaderEpoch=null, metadata=''}"
BOTH = f"{{{FIRST}, {SECOND}}}"

EMPTY = ListedGroup(GROUP, "consumer", "Empty", "classic")
THERE = f"ConsumerGroupDescriptions for consumer group {GROUP} - {EMPTY}"
NOT_THERE = f"ConsumerGroupDescriptions for consumer group {GROUP} - it does not exist"
TRANSLATED = f"MS - Translated offsets for consumer group from checkpoint {GROUP} - {BOTH}"
NO_OFFSETS = (
    f"No Consumer Group offsets for specified consumer group id {GROUP}. Returning translated consumer offsets."
)
CHECKING = "Checking to see if the translated offsets are higher than destination consumer offsets"
NOTHING = f"No translated offsets received for consumer group id {GROUP}. Nothing to update."


def at_destination(first: int, second: int) -> str:
    shown = ", ".join(
        f"us.t-{partition}=OffsetAndMetadata{{offset={offset}, leaderEpoch=null, metadata=''}}"
        for partition, offset in enumerate((first, second))
    )
    return f"Consumer Group Offsets at destination for consumer group id {GROUP} - {{{shown}}}"


@dataclass
class Target:
    """In the place of `Groups` and `MirrorClient`: a target cluster with one group."""

    listed_as: ListedGroup | None = EMPTY
    has: tuple[int, ...] = ()
    """What the group has committed, by partition."""
    checkpoint: GroupOffsets | Exception = field(default_factory=lambda: CHECKPOINT)
    unreadable: str = ""
    unlisted: str = ""
    codes: tuple[int, int] = (0, 0)
    """What committing is answered, by partition."""
    set_to: Offsets = field(default_factory=dict)

    def listed(self) -> dict[str, ListedGroup]:
        if self.unlisted:
            raise ConnectionError(self.unlisted)
        return {} if self.listed_as is None else {GROUP: self.listed_as}

    def remote_consumer_offsets(self, group: str, alias: str, timeout_s: float) -> GroupOffsets:
        assert (group, alias, timeout_s) == (GROUP, "us", 20.0)
        if isinstance(self.checkpoint, Exception):
            raise self.checkpoint
        return self.checkpoint

    def committed(self, groups: Sequence[str]) -> FetchedOffsets:
        assert groups == [GROUP]
        if self.unreadable:
            return FetchedOffsets({}, {GROUP: self.unreadable})
        return FetchedOffsets({GROUP: {("us.t", at): Committed(offset) for at, offset in enumerate(self.has)}}, {})

    def commit(self, offsets: Mapping[str, Offsets]) -> dict[str, dict[tuple[str, int], int]]:
        self.set_to = offsets[GROUP]
        return {GROUP: {where: self.codes[where[1]] for where in self.set_to}}

    def close(self) -> None:
        """Nothing."""


def syncing(target: Target) -> GroupSync:
    sync = GroupSync({"bootstrap.servers": "nobody:1"}, "us", [GROUP])
    sync._groups = sync._mirror_client = target  # type: ignore[assignment] # noqa: SLF001
    return sync


CASES: dict[str, tuple[Target, list[str], dict[int, int]]] = {
    "the group is new": (
        Target(listed_as=None),
        [
            NOT_THERE,
            TRANSLATED,
            NO_OFFSETS,
            f"Updated offsets for consumer group: {GROUP} with offsets {BOTH}",
        ],
        {0: 7, 1: 9},
    ),
    "it is behind": (
        Target(has=(3, 4)),
        [
            THERE,
            TRANSLATED,
            at_destination(3, 4),
            CHECKING,
            f"Filtered consumer offsets - {BOTH}",
            f"Updated offsets for consumer group: {GROUP} with offsets {BOTH}",
        ],
        {0: 7, 1: 9},
    ),
    "it is behind in one partition": (
        Target(has=(3, 10)),
        [
            THERE,
            TRANSLATED,
            at_destination(3, 10),
            CHECKING,
            f"Filtered consumer offsets - {{{FIRST}}}",
            f"Updated offsets for consumer group: {GROUP} with offsets {{{FIRST}}}",
        ],
        {0: 7},
    ),
    "it is as far, and further": (
        Target(has=(7, 10)),
        [
            THERE,
            TRANSLATED,
            at_destination(7, 10),
            CHECKING,
            "Filtered consumer offsets - {}",
            f"Translated offsets for consumer group id {GROUP} either smaller or caught up",
        ],
        {},
    ),
    "it has no checkpoint": (
        Target(checkpoint={}),
        [THERE, f"Could not find or get translated offsets for consumer group id: {GROUP}", NOTHING],
        {},
    ),
    "the checkpoints can't be read": (
        Target(checkpoint=ClusterUnreachable("no topic")),
        [THERE, "Error retrieving translated offsets. Returning empty map.", "ERROR no topic", NOTHING],
        {},
    ),
    "its offsets can't be read": (
        Target(unreadable="GROUP_AUTHORIZATION_FAILED"),
        [
            THERE,
            TRANSLATED,
            "Error retrieving Consumer Group offsets. Returning Empty Map.",
            f"ERROR consumer group {GROUP}: its committed offsets can't be read: GROUP_AUTHORIZATION_FAILED",
        ],
        {},
    ),
    "it has members": (
        Target(listed_as=EMPTY._replace(state="Stable")),
        [
            f"ConsumerGroupDescriptions for consumer group {GROUP} - {EMPTY._replace(state='Stable')}",
            f"Consumer group {GROUP} is Stable at the destination: its own members commit. Nothing to update.",
        ],
        {},
    ),
    "the groups can't be listed": (
        Target(unlisted="no broker answers"),
        [f"ERROR consumer group {GROUP}: no broker answers"],
        {},
    ),
    "one offset is refused": (
        Target(has=(3, 4), codes=(0, 25)),
        [
            THERE,
            TRANSLATED,
            at_destination(3, 4),
            CHECKING,
            f"Filtered consumer offsets - {BOTH}",
            f"ERROR consumer group {GROUP}: the offset of us.t-1 was refused: UNKNOWN_MEMBER_ID (25)",
            f"Updated offsets for consumer group: {GROUP} with offsets {{{FIRST}}}",
        ],
        {0: 7},
    ),
    "all offsets are refused": (
        Target(codes=(25, 25)),
        [
            THERE,
            TRANSLATED,
            NO_OFFSETS,
            f"ERROR consumer group {GROUP}: the offset of us.t-0 was refused: UNKNOWN_MEMBER_ID (25)",
            f"ERROR consumer group {GROUP}: the offset of us.t-1 was refused: UNKNOWN_MEMBER_ID (25)",
        ],
        {},
    ),
}


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was logged; times as MS, and errors as such."""
    messages = ((record.levelno, record.getMessage()) for record in caplog.records)
    return [
        ("ERROR " if level == logging.ERROR else "") + re.sub(r"\b\d{13}\b", "MS", text) for level, text in messages
    ]


@pytest.mark.parametrize("case", CASES)
def test_what_a_turn_says(case: str, caplog: pytest.LogCaptureFixture) -> None:
    target, expected, updated = CASES[case]
    turns: list[GroupTurn] = []
    with caplog.at_level(logging.INFO, "sparkmirror"):
        syncing(target).tick(turns.append)
    assert lines(caplog) == expected
    (turn,) = turns
    assert {where.partition: one.offset for where, one in turn.updated.items()} == updated
    assert bool(turn.error) == case.endswith(("can't be read", "can't be listed"))


def test_metadata_goes_along() -> None:
    target = Target()
    syncing(target).tick()
    assert target.set_to == {("us.t", 0): Committed(7, "m"), ("us.t", 1): Committed(9, "")}


def test_what_a_run_says(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "sparkmirror"):
        syncing(Target(checkpoint={})).run(60, threading.Event(), run_for_s=0.05)
    said = lines(caplog)
    ends = ["Shutdown called. Starting to exit.", "End Timestamp: MS"]
    assert (said[0], said[-4], said[-3:-1]) == (
        "Start Time: MS",
        "Reached specified run time of 0.05 seconds. Shutting down.",
        ends,
    )
    assert re.fullmatch(r"Execution time in milliseconds: \d+", said[-1])
    assert said.count(NOTHING) == 1


def test_what_a_run_says_that_is_stopped(caplog: pytest.LogCaptureFixture) -> None:
    stop = threading.Event()
    with caplog.at_level(logging.INFO, "sparkmirror"):
        syncing(Target(checkpoint={})).run(60, stop, on_turn=lambda _: stop.set())
    assert "Shutdown called. Starting to exit." in lines(caplog)
    assert "Reached specified run time" not in caplog.text


def test_turns_come_at_each_interval() -> None:
    """At once, and then as often as is said; whatever goes wrong."""
    stop, turns = threading.Event(), list[GroupTurn]()

    def count(turn: GroupTurn) -> None:
        turns.append(turn)
        if len(turns) == 3:
            stop.set()

    syncing(Target(unlisted="no broker answers")).run(0.01, stop, on_turn=count)
    assert [turn.error for turn in turns] == ["no broker answers"] * 3
