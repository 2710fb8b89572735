"""What a driver writes to the control topic, and when it may; what it makes of topics whose writers have moved."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.support.receipts import receipt

from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.kafka.cluster.topic_descriptions import PartitionDescription, TopicDescription
from sparkmirror.kafka.cluster.topic_log import LogEntry, TopicLog
from sparkmirror.mirror.engine.done_topics import DoneTopics
from sparkmirror.mirror.engine.driver_control import DriverControl
from sparkmirror.pump.messages.control import Control, ControlState, DoneTopic
from sparkmirror.pump.messages.moves import RouteMoves, TaskWords
from sparkmirror.pump.messages.orders import AddedRoutes, Receipt
from sparkmirror.snapshot.late_offsets import LateOffsets

ADDED = AddedRoutes(incarnation="i", epoch=1, routes={}, shares={})
MOVES = RouteMoves(incarnation="i", epoch=1, moves=(), shares={})


@pytest.mark.parametrize("held", [True, False])
def test_without_the_lease_no_partition_is_given_to_a_task(monkeypatch: pytest.MonkeyPatch, held: bool) -> None:
    """Words that waited, while the process was suspended, would stand behind its successor's."""
    source, target = (ClusterConfig(alias=alias, bootstrap_servers=("127.0.0.1:1",)) for alias in "ab")
    control = DriverControl(FlowConfig(source=source, target=target), "i", lambda: held)
    written: list[Any] = []
    monkeypatch.setattr(control, "_control", SimpleNamespace(add=written.append, move=written.append))
    acts: list[Callable[[], None]] = [lambda: control.add(ADDED), lambda: control.move(MOVES)]
    for act in acts:
        if held:
            act()
        else:
            with pytest.raises(ConnectionError, match="the lease is no longer held"):
                act()
    assert written == ([ADDED, MOVES] if held else [])
    control.close()


class ControlTopic:
    """A control topic in memory, into which another leader writes while this process reads it."""

    failures = 0

    def __init__(self) -> None:
        self.entries: list[LogEntry] = []
        self.other: list[bytes] = []
        """What another leader writes right after the first reading."""

    def read(self, _: int, offset: int) -> tuple[list[LogEntry], int]:
        entries = self.entries[offset:]
        for value in self.other:
            self.entries.append(LogEntry(len(self.entries), b"epoch", value))
        self.other.clear()
        return entries, offset + len(entries)

    def append(self, _: int, entries: list[tuple[bytes, bytes | None]]) -> int:
        offset = len(self.entries)
        self.entries += [LogEntry(offset + index, *entry) for index, entry in enumerate(entries)]
        return offset


@pytest.mark.parametrize("held", [True, False])
def test_who_stood_still_while_another_had_the_lease_knows_of_its_round(
    monkeypatch: pytest.MonkeyPatch, held: bool
) -> None:
    """Between the reading of the topic and the announcement: the other's pumps may still be alive (R5)."""
    source, target = (ClusterConfig(alias=alias, bootstrap_servers=("127.0.0.1:1",)) for alias in "ab")
    control = DriverControl(FlowConfig(source=source, target=target), "i", lambda: held)
    topic = ControlTopic()
    monkeypatch.setattr(control, "_log", topic)
    monkeypatch.setattr(control, "_control", Control(cast("TopicLog", topic)))
    topic.other.append(json.dumps({"incarnation": "other", "number": 3, "phase": "running"}).encode())
    if held:
        state, rank = control.begin(announce=True)
        assert (state.unclean, rank) == (True, 1)
    else:
        with pytest.raises(ConnectionError, match="the lease is no longer held"):
            control.begin(announce=True)
        assert [entry.key for entry in topic.entries] == [b"epoch"]
    control.close()


def a_driver(
    monkeypatch: pytest.MonkeyPatch, topic: ControlTopic, incarnation: str, *, announce: bool = True
) -> DriverControl:
    source, target = (ClusterConfig(alias=alias, bootstrap_servers=("127.0.0.1:1",)) for alias in "ab")
    control = DriverControl(FlowConfig(source=source, target=target), incarnation, lambda: True)
    monkeypatch.setattr(control, "_log", topic)
    monkeypatch.setattr(control, "_control", Control(cast("TopicLog", topic)))
    control.begin(announce=announce)
    return control


def words_of(incarnation: str, number: int) -> tuple[AddedRoutes, RouteMoves, TaskWords]:
    """What a driver and a task say in a round, next to the driver's ticks."""
    return (
        AddedRoutes(incarnation=incarnation, epoch=number, routes={}, shares={}),
        RouteMoves(incarnation=incarnation, epoch=number, moves=(), shares={}),
        TaskWords(incarnation=incarnation, epoch=number, task=3),
    )


def speak(control: DriverControl, topic: ControlTopic, incarnation: str, number: int) -> None:
    control.say(number, "running")
    added, moves, words = words_of(incarnation, number)
    control.add(added)
    control.move(moves)
    Control(cast("TopicLog", topic)).tell(words)


def left(topic: ControlTopic, *, but: str = "") -> list[tuple[str, int]]:
    """Driver and round of the words that compaction leaves, all three of each; without those of one driver."""
    newest = {entry.key or b"": entry for entry in topic.entries}
    kinds: dict[tuple[str, int], set[bytes]] = defaultdict(set)
    for key, entry in newest.items():
        if entry.value and (kind := key.partition(b":")[0]) in {b"routes", b"moves", b"task"}:
            said = json.loads(entry.value)
            kinds[said["incarnation"], said["epoch"]].add(kind)
    assert all(len(said) == 3 for who, said in kinds.items() if who[0] != but)
    return sorted(who for who in kinds if who[0] != but)


def test_with_each_round_the_words_of_earlier_ones_are_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their keys are random, so the topic would grow with each process that speaks."""
    topic = ControlTopic()
    for key in (b"routes", b"moves", b"task:0"):  # of an earlier release
        topic.append(0, [(key, b'{"incarnation": "old", "epoch": 9}')])
    topic.append(0, [(b"pause", b'{"topics": ["x"]}')])
    control = a_driver(monkeypatch, topic, "first")
    speak(control, topic, "first", 1)
    assert left(topic) == [("first", 1)]
    control.say(1, "running")
    control.say(1, "ending")
    assert left(topic) == [("first", 1)], "a later attempt needs them"
    speak(control, topic, "first", 2)
    assert left(topic) == [("first", 2)]
    second = a_driver(monkeypatch, topic, "second")
    assert left(topic) == [("first", 2)]
    speak(second, topic, "second", 1)
    assert left(topic) == [("second", 1)]
    state = ControlState()
    state.apply(topic.entries)
    assert state.is_paused("x"), "what operators say stays"
    assert state.moves_in("second", 1) is not None
    control.close()
    second.close()


def test_who_has_no_lease_takes_nothing_of_others_back(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = ControlTopic()
    leader = a_driver(monkeypatch, topic, "leader")
    speak(leader, topic, "leader", 1)
    rival = a_driver(monkeypatch, topic, "rival", announce=False)
    speak(rival, topic, "rival", 1)
    speak(rival, topic, "rival", 2)
    assert left(topic, but="rival") == [("leader", 1)]
    leader.close()
    rival.close()


def test_who_was_overtaken_takes_nothing_of_its_successor_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process stood still between its look at the lease and its round's first record."""
    topic = ControlTopic()
    frozen = a_driver(monkeypatch, topic, "frozen")
    successor = a_driver(monkeypatch, topic, "successor")
    speak(successor, topic, "successor", 1)
    frozen.say(1, "running")
    assert left(topic) == [("successor", 1)]
    frozen.close()
    successor.close()


def test_a_round_runs_also_if_earlier_words_can_not_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = ControlTopic()
    control = a_driver(monkeypatch, topic, "i")
    speak(control, topic, "i", 1)

    def read(*_: object) -> None:
        raise ConnectionError("no leader")

    with monkeypatch.context() as patched:
        patched.setattr(topic, "read", read)
        control.say(2, "running")
    assert left(topic) == [("i", 1)]
    control.say(3, "running")
    assert left(topic) == []
    topic.entries.clear()  # an operator deleted the topic, and it was created again
    speak(control, topic, "i", 4)
    control.say(5, "running")
    control.close()


# --- topics whose writers have moved ------------------------------------------------------------------

ENDS = {0: 10, 1: 20}


class PlayedTopic:
    """A control topic in memory, with an operator who may write just before a driver's record."""

    failures = 0

    def __init__(self) -> None:
        self.records: list[tuple[bytes, bytes]] = []
        self.operator: list[DoneTopic | None] = []
        """What the operator says before the next records of the driver, one each."""
        self.is_lost_then = False
        """True if the broker is away after the driver's next record."""
        self.is_away = False
        self.is_unheard = False
        """True if the answer to the driver's next record is lost; it is written again, or the append fails."""
        self.is_repeated = True
        log: Any = self
        self.log = log
        self.done = DoneTopics(self._said_by_the_driver)

    def append(self, _: int, entries: list[tuple[bytes, bytes]]) -> int:
        self.records += entries
        return len(self.records) - len(entries)

    def read(self, _: int, offset: int) -> tuple[list[LogEntry], int]:
        if self.is_away:
            raise ConnectionError("the broker is away")
        return [LogEntry(at, *record) for at, record in enumerate(self.records)][offset:], len(self.records)

    def says(self, word: DoneTopic | None, topic: str = "orders") -> int:
        return Control(self.log).done(topic, word)

    def _said_by_the_driver(self, topic: str, word: DoneTopic | None) -> int:
        if self.operator:
            self.says(self.operator.pop(0))
        self.is_away = self.is_lost_then
        at = self.says(word, topic)
        if self.is_unheard:
            self.is_unheard = False
            if not self.is_repeated:
                raise ConnectionError("no answer")
            at = self.says(word, topic)
        return at

    @property
    def newest(self) -> DoneTopic | None:
        """What somebody reads who comes after compaction."""
        state, newest = ControlState(), dict(self.records)
        state.apply(LogEntry(0, key, value) for key, value in newest.items())
        return state.done.get("orders")


def at_its_end(partition: int, offset: int) -> Receipt:
    return receipt(partition, flow="a->b", target_topic="a.orders", state="done", upstream=offset, downstream=offset)


ALL = [at_its_end(0, 10), at_its_end(1, 20)]
LATER = DoneTopic(ends={0: 15, 1: 25})


def assert_word_stands(topic: PlayedTopic, word: DoneTopic | None) -> None:
    """The operator's word is the newest, counts for the driver, and is not written again."""
    assert topic.newest == word
    assert topic.done.end_of("orders", 0) == (None if word is None else 15)
    count = len(topic.records)
    topic.done.follow(topic.log, ())
    assert len(topic.records) == count


def test_how_far_a_topic_is_copied_is_written_down_once() -> None:
    topic = PlayedTopic()
    topic.says(DoneTopic(ends=ENDS))
    topic.done.follow(topic.log, ALL[:1])
    topic.done.follow(topic.log, ALL)
    topic.done.follow(topic.log, ALL)
    assert topic.newest == DoneTopic(ends=ENDS, reached=ENDS)
    assert topic.done.released == ("orders",)
    assert [json.loads(value)["reached"] for _, value in topic.records] == [{}, {"0": 10}, {"0": 10, "1": 20}]


@pytest.mark.parametrize("word", [None, LATER], ids=["undo", "done again"])
@pytest.mark.parametrize("closes", [True, False])
def test_an_operators_word_stands_behind_the_drivers_progress(word: DoneTopic | None, closes: bool) -> None:
    """The driver has read the control topic, and writes under the same key just after the operator."""
    topic = PlayedTopic()
    topic.says(DoneTopic(ends=ENDS))
    topic.done.follow(topic.log, ())
    for each in ALL:
        topic.done.reach(each)
    topic.operator = [word]
    if closes:
        topic.done.close(topic.log)
    else:
        topic.done.follow(topic.log, ())
    assert_word_stands(topic, word)


def test_an_operators_word_is_found_though_the_broker_was_away_meanwhile() -> None:
    topic = PlayedTopic()
    topic.says(DoneTopic(ends=ENDS))
    topic.operator, topic.is_lost_then = [None], True
    with pytest.raises(ConnectionError):
        topic.done.follow(topic.log, ALL)
    hiding = topic.newest
    assert hiding is not None
    assert hiding.released
    topic.is_away = topic.is_lost_then = False
    topic.done.follow(topic.log, ())
    assert topic.newest is None
    assert topic.done.topics == ()


@pytest.mark.parametrize("word", [None, LATER])
@pytest.mark.parametrize("is_repeated", [True, False])
def test_an_operators_word_is_found_behind_an_own_one_without_an_answer(
    word: DoneTopic | None, is_repeated: bool
) -> None:
    topic = PlayedTopic()
    topic.says(DoneTopic(ends=ENDS))
    topic.operator, topic.is_unheard, topic.is_repeated = [word], True, is_repeated
    try:
        topic.done.follow(topic.log, ALL)
    except ConnectionError:
        assert not is_repeated
    topic.done.follow(topic.log, ())
    assert_word_stands(topic, word)


@pytest.mark.parametrize("word", [None, LATER])
def test_at_the_end_an_operators_newest_word_is_read_first(word: DoneTopic | None) -> None:
    topic = PlayedTopic()
    topic.says(DoneTopic(ends=ENDS))
    topic.done.follow(topic.log, ())
    topic.done.reach(ALL[0])
    topic.says(word)
    count = len(topic.records)
    topic.done.close(topic.log)
    assert topic.newest == word
    assert len(topic.records) == count


def test_a_partition_that_came_after_the_word_is_late_from_its_first_record() -> None:
    """Also after the release; it is copied as soon as the operator takes the word back."""
    topic = PlayedTopic()
    topic.says(DoneTopic(ends=ENDS))
    parts = [
        PartitionDescription(partition=index, leader=1, leader_epoch=0, replicas=(1,), in_sync=(1,))
        for index in range(3)
    ]
    at_source = {("orders", 0): 10, ("orders", 1): 20, ("orders", 2): 7}
    for receipts in ((), ALL):
        topic.done.follow(topic.log, receipts)
        topic.done.see({"orders": TopicDescription("orders", b"t" * 16, tuple(parts))})
        assert sorted(topic.done.partitions) == [("orders", 0), ("orders", 1), ("orders", 2)]
        assert topic.done.late_offsets(at_source) == [LateOffsets("orders", 2, 0, 7)]
        assert topic.done.late_offsets(at_source)[0].line.startswith("orders-2: 7 offsets came to the source")
        assert topic.done.end_of("orders", 2) == 0
        assert topic.done.is_reached("orders", 2)
    assert topic.done.is_released("orders")
    topic.says(None)
    topic.done.follow(topic.log, ())
    assert (topic.done.end_of("orders", 2), topic.done.is_reached("orders", 2)) == (None, False)
    assert topic.done.late_offsets(at_source) == []
