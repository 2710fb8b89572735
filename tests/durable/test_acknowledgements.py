"""An operator's word on losses, in one real topic next to them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import cast

import pytest
from tests.durable.test_loss_ledger import OpenLog, loss, open_log

from sparkmirror.exact.durable.acknowledgements import LedgerEntry, LedgerState, acknowledge, read_ledger, retract
from sparkmirror.exact.durable.known_topics import KnownTopic, TopicMemory
from sparkmirror.exact.durable.losses import Loss, LossKind, LossLedger
from sparkmirror.kafka.cluster.topic_log import LogEntry, TopicLog

__all__ = ["open_log"]


def say(log: TopicLog, *losses: Loss, why: str = "known") -> None:
    acknowledge(log, losses, at_ms=7_000, by="ann@host", why=why)


def words(entries: list[LedgerEntry]) -> list[str]:
    """The reasons, by entry."""
    return [entry.acknowledgement.why if entry.acknowledgement else "" for entry in entries]


@pytest.mark.broker
def test_a_word_is_durable_and_can_be_taken_back(open_log: OpenLog) -> None:
    first, second = loss(), loss(partition=4)
    LossLedger(open_log()).record(first)
    LossLedger(open_log()).record(second)
    say(open_log(), first, why='it was "test" data')
    one, other = read_ledger(open_log())
    assert (one.loss, other.loss) == (first, second)
    assert (one.is_open, other.is_open) == (False, True)
    word = one.acknowledgement
    assert word is not None
    assert (word.by, word.at_ms, word.why) == ("ann@host", 7_000, 'it was "test" data')
    retract(open_log(), [first])
    assert words(read_ledger(open_log())) == ["", ""]
    say(open_log(), first, second, why="after all")
    assert words(read_ledger(open_log())) == ["after all", "after all"]


@pytest.mark.broker
def test_other_readers_of_the_topic_pass_over_it(open_log: OpenLog) -> None:
    topic = KnownTopic(source_topic="orders", target_topic="A.orders", target_topic_id="01" * 16)
    TopicMemory(open_log()).learn([topic])
    LossLedger(open_log()).record(loss())
    say(open_log(), loss())
    retract(open_log(), [loss(partition=4)])
    assert LossLedger(open_log()).read() == [loss()]
    assert LossLedger(open_log()).known(loss().target_topic_id, loss().partition) == [loss()]
    assert TopicMemory(open_log()).known == {"A.orders": topic}


class Written:
    """A log in memory; what was appended is read."""

    def __init__(self) -> None:
        self.records: list[LogEntry] = []

    def append(self, _: int, entries: list[tuple[bytes, bytes | None]]) -> None:
        self.records += [LogEntry(len(self.records) + at, *entry) for at, entry in enumerate(entries)]

    def read(self, _: int, offset: int) -> tuple[list[LogEntry], int]:
        return self.records[offset:], len(self.records)


def log() -> TopicLog:
    return cast("TopicLog", Written())


@pytest.mark.parametrize(
    ("changed", "still"),
    [
        ({"at_ms": 9_000}, True),
        ({"action": "continued"}, True),
        ({"end": 43}, False),
        ({"first": 29}, False),
        ({"end": 41}, True),
    ],
    ids=str,
)
def test_the_word_is_about_the_offsets_that_the_loss_had(changed: dict[str, object], still: bool) -> None:
    """While the policy halts, retention keeps deleting: what is gone since was not acknowledged."""
    topic = log()
    LossLedger(topic).record(loss())
    say(topic, loss())
    topic.append(0, [(loss().key.encode(), loss(**changed).model_dump_json().encode())])
    (entry,) = read_ledger(topic)
    assert (entry.acknowledgement is not None) is still
    say(topic, entry.loss)
    assert words(read_ledger(topic)) == ["known"]


@pytest.mark.parametrize("other", [{"kind": LossKind.RECREATED}, {"downstream": 29}, {"target_topic_id": "0" * 32}])
def test_the_word_is_about_no_other_loss(other: dict[str, object]) -> None:
    topic = log()
    for each in (loss(), loss(**other)):
        LossLedger(topic).record(each)
    say(topic, loss())
    assert words(read_ledger(topic)) == ["known", ""]
    assert len({entry.loss.number for entry in read_ledger(topic)}) == 2


def test_what_is_read_bit_by_bit_is_what_is_read_at_once() -> None:
    topic = log()
    state, offset, news = LedgerState(), 0, []
    ledger = LossLedger(topic)
    steps: tuple[Callable[[], None], ...] = (
        lambda: ledger.record(loss()),
        lambda: ledger.record(loss(partition=4)),
        lambda: say(topic, loss()),
        lambda: ledger.record(loss(end=50)),
        lambda: say(topic, loss(partition=4)),
        lambda: retract(topic, [loss(partition=4)]),
        lambda: say(topic, loss(end=50)),
    )
    for step in steps:
        step()
        records, offset = topic.read(0, offset)
        news += state.apply(records)
        assert state.entries == read_ledger(topic)
    assert news == [loss(), loss(partition=4), loss(end=50)]
    assert words(state.entries) == ["", "known"], "the entry written last is last"


@pytest.mark.parametrize("value", [b"", b"{}", b"[]", b'{"acknowledged": "x"}', json.dumps({"by": 1}).encode()])
def test_a_record_of_another_version_says_nothing(value: bytes) -> None:
    topic = log()
    LossLedger(topic).record(loss())
    topic.append(0, [(json.dumps(["acknowledged", loss().key]).encode(), value)])
    assert words(read_ledger(topic)) == [""]


def test_the_format_is_what_it_was() -> None:
    """As processes of this release and of later ones read it."""
    topic = Written()
    say(cast("TopicLog", topic), loss())
    ((_, key, value),) = topic.records
    assert (key, value) == (
        b'["acknowledged", "[\\"expired\\", \\"orders\\", 3, \\"000102030405060708090a0b0c0d0e0f\\", 28]"]',
        b'{"acknowledged":"[\\"expired\\", \\"orders\\", 3, \\"000102030405060708090a0b0c0d0e0f\\", 28]",'
        b'"first":30,"end":42,"at_ms":7000,"by":"ann@host","why":"known"}',
    )
