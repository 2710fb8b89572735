"""What expired while a copy stands still, in the ledger: each offset once, and no entry hides another."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, cast

from hypothesis import given
from hypothesis import strategies as st
from tests.position.test_loss_detection import COPIED, GO_ON, HALT, NEW, OLD, ROUTE, TARGET

from sparkmirror.config import LossPolicy
from sparkmirror.exact.durable.losses import Loss, LossKind, LossLedger
from sparkmirror.exact.position.loss_detection import (
    LedgerPosition,
    altered,
    expired_loss,
    look_for_losses,
    recreated_loss,
)
from sparkmirror.kafka.cluster.topic_log import LogEntry, TopicLog

AT = LedgerPosition(TARGET, 25)


class Entries:
    """A ledger's topic."""

    def __init__(self) -> None:
        self._entries: list[LogEntry] = []

    def read(self, partition: int, first: int) -> tuple[list[LogEntry], int]:
        return self._entries[first:], len(self._entries)

    def append(self, partition: int, records: list[tuple[bytes, bytes]]) -> None:
        self._entries += [LogEntry(len(self._entries), key, value) for key, value in records]


class StandingCopy:
    """A copy whose next record lands at 25 all the while, after offset 69 of its source."""

    def __init__(self) -> None:
        self.ledger = LossLedger(cast("TopicLog", Entries()))
        self.position = COPIED
        self.topic_id = OLD
        self.cut_at: int | None = None

    @property
    def known(self) -> list[Loss]:
        return self.ledger.known(TARGET.hex(), 3)

    @property
    def expired(self) -> dict[str, tuple[int, int]]:
        return {loss.apart: (loss.first, loss.end) for loss in self.known if loss.kind is LossKind.EXPIRED}

    def read(self, start: int, passed: int = -1, *, writes: int = 9, policy: LossPolicy = GO_ON) -> int:
        """Read both logs, and write some losses; returns where the copy continues."""
        found = look_for_losses(
            ROUTE,
            self.position,
            (),
            self.topic_id,
            start,
            policy,
            target_topic_id=TARGET,
            known=self.known,
            cut_at=self.cut_at,
            passed=(passed, 25) if passed >= 0 else (-1, -1),
        )
        for loss in found.losses[:writes]:
            self.ledger.record(loss)
        assert found.resume_at is not None
        return found.resume_at

    def alter(self, upstream: int) -> None:
        self.ledger.record(altered(ROUTE, AT, 70, upstream))
        self.position = replace(self.position, upstream=upstream)
        self.cut_at = None

    def claim(self, upstream: int) -> None:
        """As a pump does before its first batch, which it then doesn't send."""
        self.position = replace(self.position, upstream=upstream, source_topic_id=self.topic_id)
        self.cut_at = None


def test_an_entry_behind_records_that_a_transform_dropped_grows() -> None:
    copy = StandingCopy()
    done = copy.read(90, 70)
    assert done == 90
    done = copy.read(120, 100)
    numbers = {loss.number for loss in copy.known}
    for start in (130, 140, 150):
        done = copy.read(start, done)
    assert copy.expired == {"": (70, 90), ":100": (100, 150)}
    assert {loss.number for loss in copy.known} == numbers


def test_no_offset_is_counted_twice_where_the_progress_was_not_noted() -> None:
    for passed in (-1, 70, 90):
        copy = StandingCopy()
        copy.read(90, 70)
        copy.read(120, 100)
        copy.read(130, passed)
        assert copy.expired == {"": (70, 90), ":100": (100, 130)}
    copy = StandingCopy()
    copy.read(120, 100)
    copy.read(120)
    assert copy.expired == {"": (70, 120)}, "at most: nothing tells that offsets 70 to 99 were passed over"


def test_an_altered_offset_makes_the_known_entry_larger() -> None:
    copy = StandingCopy()
    copy.read(90)
    copy.alter(40)
    copy.read(90)
    assert copy.expired == {"": (40, 90)}


def test_what_was_passed_over_before_the_offset_was_altered_is_lost_as_well() -> None:
    copy = StandingCopy()
    copy.read(90, 70)
    copy.read(120, 100)
    copy.alter(40)
    copy.read(130, writes=1)
    assert copy.expired == {"": (40, 100), ":100": (100, 120)}, "a process died in between"
    copy.read(130)
    assert copy.expired == {"": (40, 100), ":100": (100, 130)}


def test_what_expired_above_a_cut_replaces_no_entry() -> None:
    copy = StandingCopy()
    copy.read(90)
    copy.cut_at = 60
    copy.read(65)
    copy.read(75)
    assert copy.expired == {"": (70, 90), ":60": (60, 75)}, "records of two logs"
    copy.claim(75)
    copy.read(80)
    assert copy.expired == {"": (70, 90), ":60": (60, 80)}


def test_two_logs_entries_from_one_offset_on_stay_apart() -> None:
    copy = StandingCopy()
    copy.read(90, 70)
    copy.read(120, 100)
    copy.cut_at = 60
    copy.claim(copy.read(65))
    for start in (120, 125):
        copy.read(start, 100)
    assert copy.expired == {"": (70, 90), ":100": (100, 120), ":60": (60, 65), ":100:1": (100, 125)}


def test_an_entry_stays_as_large_where_another_leaders_log_starts_earlier() -> None:
    """At the most so much was lost: the log may be another one."""
    copy = StandingCopy()
    copy.read(100)
    assert copy.read(90) == 90
    assert copy.expired == {"": (70, 100)}


def test_what_expired_above_a_cut_of_a_new_topic_replaces_no_entry() -> None:
    copy = StandingCopy()
    copy.read(90)
    copy.topic_id = NEW
    copy.read(0)
    copy.claim(30)
    copy.cut_at = 20
    copy.read(25)
    assert copy.expired == {"": (70, 90), NEW.hex(): (20, 25)}


def of_release_0_2(copy: StandingCopy) -> None:
    copy.topic_id = NEW
    copy.ledger.record(recreated_loss(ROUTE, AT, 70, GO_ON))
    copy.ledger.record(expired_loss(ROUTE, AT, 0, 30, GO_ON))


def test_a_new_topics_entry_of_release_0_2_grows() -> None:
    copy = StandingCopy()
    of_release_0_2(copy)
    copy.read(40)
    assert copy.expired == {"": (0, 40)}
    copy.claim(40)
    copy.read(50)
    assert copy.expired == {"": (0, 50)}


def test_an_earlier_topics_entry_from_offset_0_on_is_not_the_new_topics() -> None:
    for starts in ((40, 45), (0, 40)):
        copy = StandingCopy()
        copy.alter(0)
        copy.read(30)
        copy.topic_id = NEW
        for start in starts:
            copy.read(start)
        assert copy.expired == {"": (0, 30), NEW.hex(): (0, starts[-1])}
    copy = StandingCopy()
    of_release_0_2(copy)
    copy.read(20)
    assert copy.expired == {"": (0, 30), NEW.hex(): (0, 20)}, "a third topic: its start has not come to 30"


def test_a_halting_loss_halts_at_each_reading() -> None:
    copy = StandingCopy()
    for start in (90, 90, 95):
        copy.read(start, policy=HALT)
        (loss,) = copy.known
        assert (loss.first, loss.end, loss.action) == (70, start, "halted")


STEPS: Final[Any] = st.one_of(
    st.tuples(st.just("read"), st.integers(0, 30), st.integers(0, 9)),
    st.tuples(st.just("die"), st.integers(0, 30), st.integers(0, 2)),
    st.tuples(st.just("drop"), st.integers(1, 30), st.just(0)),
    st.tuples(st.just("forget"), st.integers(0, 3), st.just(0)),
    st.tuples(st.just("alter"), st.integers(-40, 40), st.just(0)),
    st.tuples(st.just("cut"), st.integers(1, 20), st.integers(0, 20)),
    st.tuples(st.just("recreate"), st.integers(0, 30), st.just(0)),
    st.tuples(st.just("claim"), st.just(0), st.just(0)),
)


@given(st.lists(STEPS, max_size=25))
def test_entries_tell_each_lost_offset_once_and_never_vanish(steps: list[tuple[str, int, int]]) -> None:
    """A process may die between two writes, and the progress that is known may be older than what was reached."""
    copy, start, log = StandingCopy(), 0, 0
    reached, noted, passed_over = 70, [-1], True
    lost: dict[int, set[int]] = {}
    log_of: dict[str, int] = {}

    def is_known_log() -> bool:
        """True while the reading compares the log that was copied last, neither cut nor created again."""
        return copy.cut_at is None and copy.position.source_topic_id == copy.topic_id

    for step, some, more in steps:
        upstream = copy.position.upstream
        assert upstream is not None
        if step in ("read", "die"):
            start += some
            before = copy.expired
            passed = noted[-1 - more % len(noted)] if step == "read" else noted[-1]
            first = reached if is_known_log() else 0 if copy.cut_at is None else copy.cut_at
            resumed = copy.read(start, passed, writes=9 if step == "read" else more)
            fresh = copy.expired.keys() - before.keys()
            log_of |= dict.fromkeys(fresh, log)
            assert not fresh or passed_over, "a copy that stands still has one entry"
            for apart, (begins, ends) in before.items():
                now = copy.expired[apart]
                assert now[0] <= begins <= ends <= now[1]
                assert now == (begins, ends) or log_of[apart] == log
            if fresh:
                passed_over = False
            if step == "read":
                lost.setdefault(log, set()).update(range(first, start))
                reached = max(reached, resumed) if is_known_log() else resumed
                noted.append(resumed)
                for each, offsets in lost.items():
                    told = [o for apart, at in copy.expired.items() if log_of[apart] == each for o in range(*at)]
                    assert len(told) == len(set(told)), "counted twice"
                    assert offsets <= set(told), "not told"
        elif step == "drop" and is_known_log() and reached >= start:
            reached, passed_over = reached + some, True
            noted.append(reached)
        elif step == "forget":
            noted = noted[: some + 1]
        elif step == "alter" and is_known_log() and upstream + some >= 0:
            copy.alter(upstream + some)
            reached, noted = upstream + some, [-1]
            passed_over = passed_over or some > 0
        elif step == "cut":
            cut_at = (upstream if copy.cut_at is None else copy.cut_at) - some
            if cut_at >= 0 and copy.position.source_topic_id == copy.topic_id:
                copy.cut_at, start, log = cut_at, max(0, cut_at - 10 + more), log + 1
                reached, noted, passed_over = -1, [-1], True
        elif step == "recreate":
            copy.topic_id, copy.cut_at = bytes([log + 1]) * 16, None
            start, log, reached, noted, passed_over = some, log + 1, -1, [-1], True
        elif step == "claim" and not is_known_log() and reached >= start:
            copy.claim(reached)
