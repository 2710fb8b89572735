"""What came to the source after its writers had moved is told in true numbers, whoever looks, and holds the flow up."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from test_driver_control import ENDS, PlayedTopic, at_its_end
from test_observer import a_driver, copying, looked_at
from tests.support import mirror_process as mp
from tests.support.snapshot_samples import flow, topic

from sparkmirror.cli import flow_lines, topic_rows
from sparkmirror.config import FlowConfig, load_mm2_properties
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.topic_descriptions import PartitionDescription, TopicDescription
from sparkmirror.kafka.cluster.topic_log import LogEntry
from sparkmirror.kafka.wire.topic_ids import NO_ID
from sparkmirror.look.doctor import flow_status
from sparkmirror.mirror.engine import flow_health
from sparkmirror.mirror.engine.done_topics import DoneTopics
from sparkmirror.mirror.engine.turn_watch import TurnWatch
from sparkmirror.mirror.sync import moved_writers
from sparkmirror.mirror.sync.moved_writers import Moved, say_moved, word_on
from sparkmirror.mirror.sync.turn_order import FlowWords, whose_turn
from sparkmirror.mirror.sync.turns import NotTurned, TopicTurn
from sparkmirror.pump.messages.control import Border, Control, ControlState, DoneTopic, TurnStart
from sparkmirror.snapshot.late_offsets import LateOffsets
from sparkmirror.snapshot.snapshot import FlowState, Topic

OLD, NEW = b"1" * 16, b"2" * 16


def there(topic_id: bytes, partitions: int = 2) -> dict[str, TopicDescription]:
    """The topic orders as the source has it now."""
    parts = [
        PartitionDescription(partition=index, leader=1, leader_epoch=0, replicas=(1,), in_sync=(1,))
        for index in range(partitions)
    ]
    return {"orders": TopicDescription("orders", topic_id, tuple(parts))}


def at_source(*ends: int) -> dict[tuple[str, int], int]:
    return {("orders", partition): end for partition, end in enumerate(ends)}


def a_done_topic(topic_id: bytes = OLD) -> PlayedTopic:
    played = PlayedTopic()
    played.says(DoneTopic(source_topic_id=topic_id.hex(), ends=ENDS))
    played.done.follow(played.log, ())
    return played


def successor(played: PlayedTopic) -> DoneTopics:
    """Who reads what was written down."""
    done = DoneTopics(lambda *_: 0)
    done.follow(played.log, ())
    return done


def test_a_partition_is_reached_at_its_end_and_not_before() -> None:
    """A round with `--once` may end below."""
    played = a_done_topic()
    played.done.reach(at_its_end(0, 9))
    played.done.reach(at_its_end(1, 20).model_copy(update={"state": "running"}))
    assert not played.done.is_reached("orders", 0)
    assert not played.done.is_reached("orders", 1)
    played.done.follow(played.log, [at_its_end(0, 10), at_its_end(1, 19)])
    assert played.done.is_reached("orders", 0)
    assert not played.done.is_reached("orders", 1)
    assert played.newest == DoneTopic(source_topic_id=OLD.hex(), ends=ENDS, reached={0: 10})


def test_the_opposite_flows_next_turn_says_that_all_is_reached() -> None:
    """Its topics leave the pumps' plan at once, so that no receipt may come any more."""
    played = a_done_topic()
    played.done.reach(at_its_end(0, 11))
    after = TurnStart(number=2, starts={0: Border(110, 11, 11), 1: Border(120, 20, 20), 2: Border(0, 0, 0)})
    played.done.overtake("payments", after)
    played.done.overtake("orders", after.model_copy(update={"starts": {1: after.starts[1]}}))
    assert played.done.is_released("orders")
    assert played.done.late_offsets(at_source(12, 22)) == [
        LateOffsets("orders", 0, 1, 1),
        LateOffsets("orders", 1, 0, 2),
    ]
    played.done.follow(played.log, ())
    assert successor(played).ended(str) == {("orders", 0): 11, ("orders", 1): 120}
    assert played.done.topics == ("orders",)


@pytest.fixture
def forth(tmp_path: Path) -> FlowConfig:
    turns = {"A->B.sparkmirror.turn": "first", "B->A.sparkmirror.turn": "second", "B->A.enabled": "true"}
    keep = {"replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"}
    file = mp.write_properties(tmp_path / "mm2.properties", "127.0.0.1:1", "127.0.0.1:2", "orders", turns | keep)
    return next(flow for flow in load_mm2_properties(str(file)).flows if flow.turn == "first")


def test_the_opposite_flows_words_are_enough_without_a_receipt(forth: FlowConfig) -> None:
    played, theirs = a_done_topic(), PlayedTopic()
    watch = TurnWatch(forth, played.done)
    watch.read(theirs.log, 0)
    assert not played.done.is_released("orders")
    starts = {0: Border(110, 10, 10), 1: Border(120, 20, 20)}
    Control(theirs.log).turn("orders", TurnStart(number=2, starts=starts), None)
    watch.read(theirs.log, 0)
    assert played.done.is_released("orders")
    assert watch.waits("orders")


def test_where_the_opposite_flows_copies_are_is_asked_before_the_end_is_reached() -> None:
    """Else they were late from the moment the end is reached until the next look at the source."""
    played = a_done_topic()
    played.done.reach(at_its_end(0, 10))
    ends = at_source(14, 25)
    assert played.done.outgrown(ends) == {("orders", 0): 10, ("orders", 1): 20}
    told = {("orders", 0): 0, ("orders", 1): 1}
    played.done.overtake("orders", TurnStart(number=2, starts={0: Border(10, 10, 10), 1: Border(20, 20, 20)}))
    assert played.done.late_offsets(ends, told) == [LateOffsets("orders", 1, 0, 1)]


def test_an_older_turn_of_the_opposite_flow_says_nothing_of_this_one() -> None:
    played = PlayedTopic()
    Control(played.log).turn("orders", TurnStart(number=3), DoneTopic(source_topic_id=OLD.hex(), ends=ENDS))
    played.done.follow(played.log, ())
    starts = {0: Border(10, 10, 10), 1: Border(20, 20, 20)}
    played.done.overtake("orders", TurnStart(number=2, starts=starts))
    assert not played.done.is_reached("orders", 0)
    played.done.overtake("orders", TurnStart(number=4, starts=starts))
    assert played.done.is_released("orders")


def test_what_was_copied_behind_the_end_is_told_apart_from_what_is_not() -> None:
    """Also by the next process."""
    played = a_done_topic()
    assert played.done.late_offsets(at_source(15, 30)) == [], "it is still copied up to its end, or beyond"
    played.done.follow(played.log, [at_its_end(0, 13), at_its_end(1, 20)])
    for done in (played.done, successor(played)):
        assert done.late_offsets(at_source(13, 20)) == [LateOffsets("orders", 0, 3, 0)]
        assert done.late_offsets(at_source(15, 27)) == [LateOffsets("orders", 0, 3, 2), LateOffsets("orders", 1, 0, 7)]
        assert tuple(each.line for each in done.late_offsets(at_source(15, 27))) == (
            "orders-0: 5 offsets came to the source after its writers had moved: 3 were copied or passed over before "
            "the pump heard of that, 2 are not copied: sparkmirror topics undo copies them unless a migration has "
            "moved the topic, topics done accepts them",
            "orders-1: 7 offsets came to the source after its writers had moved, and are not copied: "
            "sparkmirror topics undo copies them unless a migration has moved the topic, topics done accepts them",
        )
        assert tuple(each.line for each in done.late_offsets(at_source(13, 20))) == (
            "orders-0: 3 offsets came to the source after its writers had moved, and were copied or passed over before "
            "the pump heard of that",
        )
        assert (done.released, done.is_reached("orders", 0)) == (("orders",), True)


def test_a_partition_that_came_later_and_was_begun_is_told_as_far_as_it_was_copied() -> None:
    """By a pump that had not heard of the word."""
    played = a_done_topic()
    played.done.see(there(OLD, 3))
    played.done.reach(at_its_end(2, 4))
    assert played.done.late_offsets(at_source(10, 20, 9)) == [LateOffsets("orders", 2, 4, 5)]
    assert played.done.released == ()


@pytest.mark.parametrize("ends", [(4, 3), (12, 400)], ids=["shorter than the old one", "longer"])
def test_a_topic_that_was_created_again_is_another_topic(ends: tuple[int, int]) -> None:
    """All of it is late, and nothing of it is copied, in this process and in the next."""
    played = a_done_topic()
    played.done.follow(played.log, [at_its_end(0, 10), at_its_end(1, 23)])
    for done in (played.done, successor(played)):
        done.see(there(NEW))
        assert done.late_offsets(at_source(*ends)) == [
            LateOffsets("orders", partition, 0, end, recreated=True) for partition, end in enumerate(ends)
        ]
        assert done.late_offsets(at_source(*ends))[0].line == (
            f"orders-0: created again at the source after its writers had moved: {ends[0]} offsets are not copied: "
            "sparkmirror topics undo copies them"
        )
        assert [done.end_of("orders", partition) for partition in ENDS] == [0, 0]
        assert all(done.is_reached("orders", partition) for partition in range(3))


def test_what_a_pump_says_of_the_new_topic_does_not_release_the_old_one() -> None:
    """Its log may begin behind the old end."""
    played = a_done_topic()
    played.done.see(there(NEW))
    for each in (at_its_end(0, 10), at_its_end(1, 20)):
        played.done.reach(each)
    assert played.done.released == ()
    assert not played.done.is_reached("orders", 0)


@pytest.mark.parametrize("topic_id", [OLD, NO_ID])
def test_a_source_without_topic_ids_has_the_same_topic(topic_id: bytes) -> None:
    played = a_done_topic(topic_id)
    played.done.follow(played.log, [at_its_end(0, 10), at_its_end(1, 20)])
    played.done.see(there(NO_ID if topic_id == OLD else NEW))
    assert played.done.late_offsets(at_source(11, 20)) == [LateOffsets("orders", 0, 0, 1)]
    assert played.done.end_of("orders", 1) == 20


def test_an_earlier_release_wrote_no_more_than_the_ends_that_were_reached() -> None:
    state = ControlState()
    state.apply([LogEntry(0, b"done:orders", b'{"source_topic_id": "", "ends": {"0": 7}, "reached": {"0": 9}}')])
    done = state.done["orders"]
    assert (done.released, done.end_of(0), done.copied_to(0), done.is_of(NEW)) == (True, 7, 7, True)


# --- `topics done` is said again ------------------------------------------------------------------


def said_again(played: PlayedTopic, *ends: int) -> DoneTopic:
    """The word that the operator says after the newest one, and that the driver hears."""
    (topic,) = there(OLD, len(ends)).values()
    word = word_on(topic, dict(enumerate(ends)), played.newest)
    played.says(word)
    played.done.follow(played.log, ())
    return word


def test_late_records_that_the_operator_accepts_stay_at_the_source() -> None:
    """Copied on, they would come after the records of the new writers."""
    played = a_done_topic()
    played.done.follow(played.log, [at_its_end(0, 12), at_its_end(1, 20)])
    word = said_again(played, 15, 20)
    assert (word.ends, word.reached, word.beyond) == (ENDS, {0: 12, 1: 20}, {0: 12})
    for done in (played.done, successor(played)):
        assert done.released == ("orders",)
        assert [done.end_of("orders", partition) for partition in ENDS] == [10, 20]
        assert done.late_offsets(at_source(15, 20)) == []
        assert done.outgrown(at_source(16, 20)) == {("orders", 0): 15}
        assert done.late_offsets(at_source(16, 21)) == [
            LateOffsets("orders", 0, 0, 1),
            LateOffsets("orders", 1, 0, 1),
        ], "what comes after that is late again"
    assert said_again(played, 16, 21).accepted == {0: 16, 1: 21}


def test_a_partition_that_is_still_copied_gets_the_present_end() -> None:
    """The other has reached its end; a third came later, and is late."""
    played = a_done_topic()
    played.done.follow(played.log, [at_its_end(0, 10)])
    word = said_again(played, 15, 27, 4)
    assert word == DoneTopic(source_topic_id=OLD.hex(), ends={0: 10, 1: 27}, reached={0: 10}, accepted={0: 15, 2: 4})
    played.done.see(there(OLD, 3))
    assert not played.done.released
    assert played.done.late_offsets(at_source(15, 27, 4)) == []
    played.done.follow(played.log, [at_its_end(1, 27)])
    assert played.done.released == ("orders",)


# --- after a flow's turn ---------------------------------------------------------------------------


def after_the_turn(monkeypatch: pytest.MonkeyPatch, played: PlayedTopic, *ends: int, opposite: int = 2) -> None:
    """Have the source end there, while the opposite flow has begun a turn."""
    admin: Any = SimpleNamespace(
        topics=lambda: there(OLD),
        log_ends=lambda asked: {place: ends[place[1]] for place in asked},
        still_ends=lambda _: pytest.fail("the opposite flow copies: no log is at rest"),
    )

    def read_turns(_: FlowConfig, topics: Iterable[str]) -> dict[str, TopicTurn]:
        own, theirs = FlowWords(done=played.newest), FlowWords(begun=TurnStart(number=opposite))
        return {topic: TopicTurn(own, theirs, whose_turn(own, theirs)) for topic in topics}

    monkeypatch.setattr(moved_writers, "read_turns", read_turns)
    monkeypatch.setattr(ClusterAdmin, "connect", lambda *_: nullcontext(admin))
    monkeypatch.setattr(moved_writers, "ClusterClient", lambda *_: SimpleNamespace(close=lambda: None))
    monkeypatch.setattr(moved_writers, "TopicLog", lambda *_: played.log)


def test_stragglers_are_accepted_after_the_turn(monkeypatch: pytest.MonkeyPatch, forth: FlowConfig) -> None:
    """The word on the turn's end stays as it is: a next turn may take it back at the same moment."""
    played = a_done_topic()
    played.done.follow(played.log, [at_its_end(0, 10), at_its_end(1, 20)])
    before, told = played.newest, {("orders", 0): 2, ("orders", 1): 0}
    assert played.done.late_offsets(at_source(15, 20), told) == [LateOffsets("orders", 0, 0, 2)]
    after_the_turn(monkeypatch, played, 15, 20)
    assert list(say_moved(forth, "orders".__eq__)) == [Moved("orders", ENDS, 0, {0: 15})]
    played.done.changed = False
    played.done.follow(played.log, ())
    assert played.done.changed, "the flow is looked at again"
    assert played.newest == before
    for done in (played.done, successor(played)):
        assert done.late_offsets(at_source(15, 20), told) == []
        assert done.outgrown(at_source(17, 21)) == {("orders", 0): 15, ("orders", 1): 20}
        assert done.late_offsets(at_source(17, 20), {("orders", 0): 1}) == [LateOffsets("orders", 0, 0, 1)], "a new one"
        done.see(there(NEW))
        assert done.late_offsets(at_source(15)) == [LateOffsets("orders", 0, 0, 15, recreated=True)]


def test_a_topic_whose_turn_has_not_come_has_nothing_to_accept(
    monkeypatch: pytest.MonkeyPatch, forth: FlowConfig
) -> None:
    played = PlayedTopic()
    after_the_turn(monkeypatch, played, 15, 20)
    with pytest.raises(NotTurned, match="it is not its turn in orders"):
        list(say_moved(forth, "orders".__eq__))


# --- what people are told -------------------------------------------------------------------------


@pytest.mark.parametrize("partitions", [0, 2])
@pytest.mark.parametrize(
    ("came", "topic_id", "state", "line"),
    [
        (10, OLD, FlowState.CAUGHT_UP, ""),
        (13, OLD, FlowState.CAUGHT_UP, "3 offsets came to the source after its writers had moved, and were copied"),
        (15, OLD, FlowState.HELD_UP, "3 were copied or passed over before the pump heard of that, 2 are not copied"),
        (
            4,
            NEW,
            FlowState.HELD_UP,
            "created again at the source after its writers had moved: 4 offsets are not copied",
        ),
    ],
)
def test_late_records_hold_the_flow_up_whatever_else_it_copies(
    partitions: int, came: int, topic_id: bytes, state: FlowState, line: str
) -> None:
    """A live topic next to the done one is copied on, and has caught up."""
    driver = a_driver(partitions)
    played = PlayedTopic()
    Control(played.log).done("orders", DoneTopic(source_topic_id=OLD.hex(), ends={0: 10}))
    done = driver.topics.done_topics
    done.follow(played.log, ())
    done.reach(at_its_end(0, 13 if line else 10))
    done.see(there(topic_id, 1))
    copying(driver, {number: (70, 70) for number in range(partitions)})
    driver.view.take_ends({**driver.view.source_ends, ("orders", 0): came}, {})
    (seen,) = looked_at(driver)
    assert (seen.state, seen.lag) == (state, 0)
    assert line in "".join(flow_lines.late(seen)[:1])
    assert flow_health.is_healthy(seen) is (state is FlowState.CAUGHT_UP)
    (row,) = [row for row in topic_rows.rows(seen, 0.0) if row["topic"] == "orders"]
    assert (row["state"], row["late"], line in str(row["reason"])) == ("released", seen.topics[0].late, True)
    assert bool(row["late"]) is (state is FlowState.HELD_UP)
    assert topic_rows.cells(row)[topic_rows.KEYS.index("late")] == str(row["late"])
    copying(driver, {number: (50, 70) for number in range(partitions)})
    driver.view.take_ends({**driver.view.source_ends, ("orders", 0): came}, {})
    (seen,) = looked_at(driver)
    behind = FlowState.COPYING if partitions else FlowState.CAUGHT_UP
    assert seen.state is (state if state is FlowState.HELD_UP else behind), "also while others are copied"
    if state is FlowState.HELD_UP:
        assert flow_health.first_reason(seen).startswith("orders: ")
        assert line in flow_status.line(seen, 0.0)


@pytest.mark.parametrize(
    ("changes", "lag"),
    [
        ({"refused": "its name is too long"}, None),
        ({"gone": True}, None),
        ({"waits": True}, None),
        ({"released": True}, 0),
        ({"released": True, "recreated": True}, None),
    ],
)
def test_the_lag_of_a_topic_without_partitions(changes: dict[str, Any], lag: int | None) -> None:
    """Only of a topic that is copied to its end it is known."""
    (row,) = topic_rows.rows(flow(topics=(Topic(topic="bills", target_topic="", **changes),)), 0.0)
    assert row["lag"] == lag


def test_late_records_are_unhealthy_while_the_rest_is_copied() -> None:
    late = Topic(topic="bills", target_topic="", released=True, late_in={0: 4})
    assert not flow_health.is_healthy(flow(state=FlowState.COPYING, topics=(topic(), late)))
    copied = Topic(topic="bills", target_topic="", released=True, late_copied_in={0: 4})
    assert flow_health.is_healthy(flow(state=FlowState.COPYING, topics=(topic(), copied)))
