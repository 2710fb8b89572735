"""Histories of leader epochs, walked from the newest down, against a model of logs under unclean elections."""

from __future__ import annotations

from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.elected_log import AT, STEPS, ElectedLog, ModelLeader

from sparkmirror.errors import ClusterTrouble
from sparkmirror.kafka.cluster import epoch_history
from sparkmirror.kafka.cluster.client import ClusterClient, PartitionLeader, TopicLeaders
from sparkmirror.kafka.cluster.epoch_history import EpochHistories, epoch_at, epochs_in, joined
from sparkmirror.kafka.cluster.leader_epochs import EpochStart


@pytest.fixture
def leader(monkeypatch: pytest.MonkeyPatch) -> ModelLeader:
    leader = ModelLeader(ElectedLog())
    monkeypatch.setattr(epoch_history, "epoch_ends", leader.epoch_ends)
    return leader


def histories(leader: ModelLeader) -> EpochHistories:
    return EpochHistories(cast(ClusterClient, leader))


@settings(max_examples=300)
@given(st.lists(STEPS, min_size=3, max_size=30), st.integers(0, 40))
def test_each_record_has_the_epoch_of_the_log(steps: list[tuple[str, int, int]], down_to: int) -> None:
    log = ElectedLog()
    for what, one, other in steps:
        if what == "append":
            log.append(one)
        elif what == "leave":
            log.leave_behind()
        elif what == "elect":
            log.elect(one, other)
    leader = ModelLeader(log)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(epoch_history, "epoch_ends", leader.epoch_ends)
        walked = histories(leader)
        history = walked.read(leader.topics(), {AT: down_to})[AT]
        told = [epoch_at(history, offset) for offset in range(len(log.log))]
        assert told[down_to:] == log.log[down_to:]
        assert all(each in (None, log.log[offset]) for offset, each in enumerate(told[:down_to]))
        assert history == tuple(sorted(history))
        whole = walked.read(leader.topics(), {AT: 0})[AT]
        assert [epoch_at(whole, offset) for offset in range(len(log.log))] == log.log
        asked = leader.asked
        assert walked.read(leader.topics(), {AT: 0})[AT] == whole
        assert leader.asked == asked, "known, since the leader is the same"


def test_another_leader_or_topic_is_asked_again(leader: ModelLeader) -> None:
    walked = histories(leader)
    leader.log.append(5)
    assert walked.read(leader.topics(), {AT: 0}) == {AT: (EpochStart(0, 0),)}
    leader.log.leave_behind()
    leader.log.elect(0, 2)
    assert walked.read(leader.topics(), {AT: 4}) == {AT: (EpochStart(0, 0), EpochStart(1, 3))}
    assert walked.read(leader.topics(topic_id=b"\1" * 16), {AT: 0}) == {AT: (EpochStart(0, 0), EpochStart(1, 3))}


def test_a_leader_that_is_about_to_change_is_left_out(leader: ModelLeader) -> None:
    """Metadata name epoch 1, the broker has epoch 2; one without a leader, or without epochs, is apart."""
    leader.log.elect(0, 0)
    leader.log.elect(0, 0)
    walked = histories(leader)
    assert walked.read(leader.topics(epoch=1), {AT: 0}) == {}
    assert walked.read(leader.topics(), {AT: 0}) == {AT: (EpochStart(2, 0),)}
    leader.log.elect(0, 0)
    with pytest.raises(ClusterTrouble, match="t-0: its leader can't tell its leader epochs now: "):
        walked.end_of(AT, 1)
    assert walked.read({"t": TopicLeaders("t", bytes(16), 0, {0: PartitionLeader(-1, 3)})}, {AT: 0}) == {}
    assert walked.read(leader.topics(epoch=-1), {AT: 0}) == {AT: ()}, "before Kafka 2.4"


def test_parts_of_a_history() -> None:
    history = (EpochStart(1, 0), EpochStart(3, 10), EpochStart(4, 20))
    assert epochs_in(history, 5, 15) == history[:2]
    assert epochs_in(history, 10, 20) == history[1:2]
    assert epochs_in(history, 30, 31) == history[2:]
    assert epochs_in(history, 10, 10) == ()
    assert epochs_in(history[1:], 5, 11) == (EpochStart(3, 10),)
    assert joined(history[:2], history[1:]) == history
    assert joined(history, [EpochStart(6, 12)]) == (EpochStart(1, 0), EpochStart(3, 10), EpochStart(6, 12))
