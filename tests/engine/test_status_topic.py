"""The status topic: what is written when, and that any reader gets the snapshot back."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.snapshot_samples import NOW_MS, flow, group, partition, topic

from sparkmirror.exact.durable.loss_kinds import LossOutcome
from sparkmirror.kafka.cluster.topic_log import LogEntry
from sparkmirror.snapshot.snapshot import LossCount, LossRow, Role
from sparkmirror.snapshot.status_topic import RECORD_BYTES, TURN_BYTES, StatusPublisher, assembled


class Records:
    """A topic in memory."""

    def __init__(self) -> None:
        self.entries: list[LogEntry] = []
        self.broken = False

    def append(self, partition: int, entries: Sequence[tuple[bytes, bytes | None]]) -> int:
        if self.broken:
            raise ConnectionError("gone")
        first = len(self.entries)
        self.entries += [LogEntry(first + n, key, value) for n, (key, value) in enumerate(entries)]
        return first

    def read(self, partition: int, offset: int) -> tuple[list[LogEntry], int]:
        return self.entries[offset:], len(self.entries)


def test_a_reader_gets_the_snapshot_back_with_its_age() -> None:
    log = Records()
    StatusPublisher(log).turn(flow())
    status = assembled(log.entries)
    assert status.flow == flow()
    assert status.left_out == 0
    assert status.age_s(NOW_MS + 7_000) == 7.0
    assert status.age_s(NOW_MS - 7_000) == 0.0


def test_the_ledgers_entries_stay_where_they_are() -> None:
    """`sparkmirror losses` reads them there; the status has their sums."""
    losses = (LossCount(kind="expired", entries=1, offsets=4, newest_ms=NOW_MS, words="gone", acknowledged=True),)
    row = LossRow(
        number="3f2a9c01",
        kind="expired",
        outcome=LossOutcome.LOST,
        at_ms=NOW_MS,
        topic="orders",
        partition=0,
        first=3,
        offsets=4,
        action="continued",
        words="gone",
    )
    log = Records()
    StatusPublisher(log).turn(flow(losses=losses, loss_entries=(row,)))
    assert assembled(log.entries).flow == flow(losses=losses)


def test_only_what_has_changed_is_written_again() -> None:
    log = Records()
    publisher = StatusPublisher(log)
    publisher.turn(flow(topics=(topic("a"), topic("b"))))
    before = len(log.entries)
    changed = flow(topics=(topic("a"), topic("b", partition(position=990, lag=10))), at_ms=NOW_MS + 5_000)
    publisher.turn(changed)
    assert [entry.key for entry in log.entries[before:]] == [b"topic/b/0", b"flow"]
    assert assembled(log.entries).flow == changed


def test_what_is_gone_becomes_a_tombstone() -> None:
    log = Records()
    publisher = StatusPublisher(log)
    publisher.turn(flow(topics=(topic("a"), topic("b"))))
    publisher.turn(flow(topics=(topic("a"),), groups=()))
    assert {entry.key for entry in log.entries if entry.value is None} == {b"topic/b/0", b"group/shop/0"}
    assert assembled(log.entries).flow == flow(topics=(topic("a"),), groups=())


def test_a_new_leader_removes_what_its_predecessor_left() -> None:
    log = Records()
    StatusPublisher(log).turn(flow(topics=(topic("a"), topic("old"))))
    StatusPublisher(log).turn(flow(topics=(topic("a"),)))
    assert assembled(log.entries).flow == flow(topics=(topic("a"),))


def test_a_standby_writes_nothing_and_begins_again_as_leader() -> None:
    log = Records()
    first, second = StatusPublisher(log), StatusPublisher(log)
    first.turn(flow())
    second.turn(flow(topics=(topic("other"),)))
    before = len(log.entries)
    first.turn(flow(role=Role.STANDBY))
    assert len(log.entries) == before
    first.turn(flow())
    assert assembled(log.entries).flow == flow()


def test_after_a_failed_turn_everything_is_written() -> None:
    log = Records()
    publisher = StatusPublisher(log)
    publisher.turn(flow())
    log.broken = True
    with pytest.raises(ConnectionError):
        publisher.turn(flow(topics=(topic("new"),)))
    log.broken = False
    publisher.turn(flow(topics=(topic("new"),)))
    assert assembled(log.entries).flow == flow(topics=(topic("new"),))


def test_a_large_topic_is_split_and_shrinks_again() -> None:
    log = Records()
    publisher = StatusPublisher(log)
    large = flow(topics=(topic("a", *(partition(n, reason="x" * 300) for n in range(6_000))),))
    publisher.turn(large)
    publisher.turn(large)  # the group had to wait, so large was the topic
    assert sum(entry.key.startswith(b"topic/a/") for entry in log.entries if entry.key) > 1
    assert max(len(entry.value or b"") for entry in log.entries) <= RECORD_BYTES
    assert assembled(log.entries).flow == large
    publisher.turn(flow(topics=(topic("a"),)))
    assert assembled(log.entries).flow == flow(topics=(topic("a"),))
    assert {entry.key for entry in log.entries if entry.value is None} >= {b"topic/a/1"}


def test_one_long_reason_is_shortened() -> None:
    log = Records()
    StatusPublisher(log).turn(flow(topics=(topic("a", partition(reason="x" * 2_000_000)),)))
    assert max(len(entry.value or b"") for entry in log.entries) <= RECORD_BYTES


def test_a_turn_writes_a_bounded_amount_and_the_next_ones_the_rest() -> None:
    log = Records()
    publisher = StatusPublisher(log)
    many = flow(topics=tuple(topic(f"t{n:03}", *(partition(p) for p in range(100))) for n in range(100)))
    turns = 0
    while (status := assembled(log.entries).flow) is None or len(status.topics) < 100:
        before = len(log.entries)
        publisher.turn(many)
        turns += 1
        assert sum(len(entry.value or b"") for entry in log.entries[before:]) < TURN_BYTES + RECORD_BYTES
        assert turns < 20
    assert turns > 1
    assert status == many


@given(st.binary(max_size=60), st.sampled_from([b"flow", b"topic/a/0", b"group/a/0", b"other", b""]))
def test_any_bytes_are_left_out(value: bytes, key: bytes) -> None:
    assert assembled([LogEntry(0, key, value)]).flow is None


@pytest.mark.parametrize(
    "value",
    [b'{"version":2,"body":{}}', b'{"version":1,"body":{"topic":3}}', b'{"version":1}', b"[]", b"\xff"],
)
def test_records_of_another_version_are_left_out(value: bytes) -> None:
    log = Records()
    StatusPublisher(log).turn(flow())
    log.append(0, [(b"topic/z/0", value)])
    assert assembled(log.entries) == dataclasses.replace(assembled(log.entries), flow=flow(), left_out=1)


def test_a_group_may_have_any_name() -> None:
    log = Records()
    odd = flow(groups=(group("a/0"), group("a"), group("ä b/1/2")))
    publisher = StatusPublisher(log)
    publisher.turn(odd)
    fresh = StatusPublisher(log)
    fresh.turn(flow(groups=(group("a"),)))
    status = assembled(log.entries).flow
    assert status is not None
    assert [one.group for one in status.groups] == ["a"]
