"""What a process has written to a segments topic, and writes again once an election has cut it: all, and the newest."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import pytest
from tests.support.cut_log import HERE, Entry, Topic, View, claim, known

from sparkmirror.exact.durable.claim_log import ClaimLog
from sparkmirror.exact.durable.claims import Claim, ClaimKey, home_partition
from sparkmirror.kafka.cluster.topic_log import Appending, LogCut, LogUnavailable
from sparkmirror.kafka.wire.error_codes import ErrorCode

HOME = home_partition(*HERE, 4)


class Refusing(View):
    """A view that may not write, at times, or not as much at once; or the log is cut before it writes."""

    def __init__(self, topic: Topic) -> None:
        super().__init__(topic)
        self.most = 1 << 20
        """Most bytes of keys and values."""
        self.leaderless_from = 99
        """Number of the write from which on the partition has no leader."""
        self.cuts: dict[int, int] = {}
        """Where the log is cut before a write, by its number."""
        self.answer_lost: set[int] = set()
        """Numbers of writes whose answers are lost."""
        self.writes = 0

    def append_all(self, entries: Mapping[int, Sequence[Entry]]) -> Appending:
        self.writes += 1
        if self.writes in self.cuts:
            self._topic.cut(HOME, self.cuts[self.writes])
        failed: dict[int, ConnectionError] = {}
        for home, listed in entries.items():
            if self.writes >= self.leaderless_from:
                failed[home] = LogUnavailable("topic", "no leader", ErrorCode.LEADER_NOT_AVAILABLE)
            elif sum(len(key) + len(value or b"") for key, value in listed) > self.most:
                failed[home] = LogUnavailable("topic", "a record was refused", ErrorCode.MESSAGE_TOO_LARGE)
        appended = super().append_all({home: listed for home, listed in entries.items() if home not in failed})
        if self.writes in self.answer_lost:
            return Appending({}, {}, dict.fromkeys(entries, LogUnavailable("topic", "the answer was lost", 0)))
        return appended._replace(failed=failed)


@pytest.fixture
def topic() -> Topic:
    return Topic()


@pytest.fixture
def view(topic: Topic) -> Refusing:
    return Refusing(topic)


@pytest.fixture
def writer(view: Refusing) -> ClaimLog:
    return ClaimLog(view, 4, remembers=True)


def there(topic: Topic) -> list[int]:
    """Numbers of the claims in the topic."""
    return sorted(one.incarnation - 1 for one in known(ClaimLog(View(topic))))


def test_the_first_write_after_a_cut_is_not_overwritten_by_what_it_replaces(topic: Topic, writer: ClaimLog) -> None:
    """It is at a lower offset than the claim was before the cut."""
    for number in range(3):
        writer.claim([claim(number)])
    topic.cut(HOME, 1)
    confirmed = replace(claim(2), confirmed=True)
    writer.claim([confirmed])
    assert writer.take_cut() == {HOME}
    assert known(ClaimLog(View(topic))) == [claim(0), confirmed, claim(1)]


def test_a_cut_is_noticed_behind_the_first_write_after_another(topic: Topic, writer: ClaimLog) -> None:
    writer.claim([claim(0)])
    writer.claim([claim(1)])
    topic.cut(HOME, 1)
    writer.claim([claim(2)])
    assert there(topic) == [0, 1, 2]
    topic.cut(HOME, 2)
    assert there(topic) == [0, 2]
    writer.take_cut()
    writer.look_for_cuts()
    assert writer.take_cut() == {HOME}
    assert there(topic) == [0, 1, 2]


@pytest.mark.parametrize("looks", [True, False], ids=["looking", "writing"])
def test_a_cut_between_the_look_and_the_writing_is_noticed(
    topic: Topic, view: Refusing, writer: ClaimLog, looks: bool
) -> None:
    """What was seen to be there is gone when the rest is written."""
    for number in range(4):
        writer.claim([claim(number)])
    topic.cut(HOME, 2)
    view.cuts = {view.writes + (1 if looks else 2): 1}
    if looks:
        with pytest.raises(LogUnavailable, match="lost its records from offset 1"):
            writer.look_for_cuts()
    else:
        failed = writer.claim_each([claim(4)])
        assert isinstance(failed[HOME], LogCut)
    assert not writer.take_cut(), "it is told once all is there"
    writer.look_for_cuts()
    assert writer.take_cut() == {HOME}
    assert there(topic) == ([0, 1, 2, 3] if looks else [0, 1, 2, 3, 4])
    writer.look_for_cuts()
    assert not writer.take_cut()


def test_a_cut_is_told_though_the_answer_was_lost_when_all_was_written_again(
    topic: Topic, view: Refusing, writer: ClaimLog
) -> None:
    """The last record is then where it was before."""
    for number in range(3):
        writer.claim([claim(number)])
    topic.cut(HOME, 1)
    view.answer_lost = {view.writes + 1}
    with pytest.raises(LogUnavailable, match="the answer was lost"):
        writer.look_for_cuts()
    assert there(topic) == [0, 1, 2]
    assert not writer.take_cut()
    writer.look_for_cuts()
    assert writer.take_cut() == {HOME}
    assert len(topic.entries[HOME]) == 3, "nothing is written a third time"


def test_whatever_happens_between_the_newest_of_each_claim_is_there_in_the_end() -> None:
    """Cuts also in the middle of what is written again, other epochs, lost answers, and nothing that is taken."""
    for seed in range(300):
        dice, topic = random.Random(seed), Topic()
        view = Refusing(topic)
        writer = ClaimLog(view, 4, remembers=True)
        durable: dict[ClaimKey, Claim] = {}
        for number in range(dice.randint(3, 25)):
            end = dice.randint(0, len(topic.entries[HOME]))
            view.cuts = {view.writes + dice.randint(1, 3): end} if dice.random() < 0.3 else {}
            view.answer_lost = {view.writes + dice.randint(2, 3)} if dice.random() < 0.1 else set()
            view.leaderless_from = view.writes + dice.randint(2, 3) if dice.random() < 0.1 else 1 << 20
            view.most = dice.choice([400, 1 << 20])
            match dice.choice(["claim", "claim", "claim", "cut", "look", "elect", "epoch", "another's"]):
                case "claim":
                    one = replace(claim(dice.randint(0, 5)), source_leader_epoch=number)
                    durable.pop(one.key, None)
                    if not writer.claim_each([one]):
                        durable[one.key] = one
                case "cut":
                    topic.cut(HOME, end)
                case "look":
                    with suppress(LogUnavailable):
                        writer.look_for_cuts()
                case "elect":
                    topic.elect(HOME)
                case "epoch":
                    topic.raise_epoch(HOME)
                case _:
                    ClaimLog(View(topic)).claim([claim(50 + number)])
        view.cuts, view.answer_lost, view.leaderless_from, view.most = {}, set(), 1 << 20, 1 << 20
        writer.look_for_cuts()
        there = {one.key: one for one in known(ClaimLog(View(topic)))}
        assert durable.items() <= there.items(), seed


def test_claims_that_are_too_large_only_together_are_written_again(
    topic: Topic, view: Refusing, writer: ClaimLog
) -> None:
    for number in range(6):
        writer.claim([claim(number)])
    view.most = 400
    topic.cut(HOME, 0)
    assert not writer.claim_each([claim(6)])
    assert writer.take_cut() == {HOME}
    assert there(topic) == list(range(7))
    writer.look_for_cuts()
    assert len(topic.entries[HOME]) == 7


def test_claims_of_which_only_the_first_half_was_written_again_are_not_forgotten(
    topic: Topic, view: Refusing, writer: ClaimLog
) -> None:
    for number in range(6):
        writer.claim([claim(number)])
    view.most = 400
    topic.cut(HOME, 0)
    view.leaderless_from = view.writes + 3  # all together, the first half, the others
    with pytest.raises(LogUnavailable, match="no leader"):
        writer.look_for_cuts()
    assert there(topic) == [0, 1, 2]
    assert not writer.take_cut()
    view.leaderless_from = 99
    writer.look_for_cuts()
    assert writer.take_cut() == {HOME}
    assert there(topic) == list(range(6))
    assert len(topic.entries[HOME]) == 6


def test_a_lost_claim_that_the_topic_does_not_take_any_more_is_named(
    topic: Topic, view: Refusing, writer: ClaimLog
) -> None:
    """The error is not for the claim that was just written: its writer would call that one too large."""
    large = replace(claim(0), batches=claim(0).batches * 40)
    writer.claim([large])
    view.most = 400
    topic.cut(HOME, 0)
    failed = writer.claim_each([claim(1)])
    assert getattr(failed[HOME], "code", 0) == 0
    assert "topic topic: it lost a claim of" in str(failed[HOME])
    assert str(failed[HOME]).endswith("bytes, more than it takes: raise its max.message.bytes")
    view.most = 1 << 20
    writer.look_for_cuts()
    assert there(topic) == [0, 1]


def test_a_reader_writes_again_in_parts_what_is_too_large_together(topic: Topic, view: Refusing) -> None:
    ClaimLog(View(topic)).claim([claim(number) for number in range(6)])
    reader = ClaimLog(view)
    known(reader)
    view.most = 400
    topic.cut(HOME, 0)
    reader.refresh([HERE])
    assert there(topic) == list(range(6))
