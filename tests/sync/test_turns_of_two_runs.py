"""A turn begins by words and logs as they are, not as a process saw them before it stood still."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.mirror.sync import turns
from sparkmirror.mirror.sync.turn_order import FlowWords, whose_turn
from sparkmirror.mirror.sync.turns import NotTurned, TopicTurn, _refuse_changed, start_turn
from sparkmirror.pump.messages.control import Border, DoneTopic, TurnStart

A, B = (ClusterConfig(alias=alias, bootstrap_servers=("127.0.0.1:1",)) for alias in "AB")
BACK = FlowConfig(source=B, target=A, turn="second")
ENDS = {0: 7}


def told(theirs: DoneTopic | None, own: TurnStart | None = None) -> TopicTurn:
    mine, opposite = FlowWords(own, None), FlowWords(None, theirs)
    return TopicTurn(mine, opposite, whose_turn(opposite, mine))


@pytest.mark.parametrize(
    ("now", "refused"),
    [
        (told(DoneTopic(ends=ENDS)), False),
        (told(DoneTopic(ends=ENDS, reached={0: 7})), False),  # the mirror writes down its progress
        (told(None), True),  # the ends were taken back
        (told(DoneTopic(ends={0: 9})), True),
        (told(DoneTopic(ends=ENDS), TurnStart(number=2, starts={0: Border(7, 7, 7)})), True),
    ],
)
def test_words_that_another_run_has_changed(monkeypatch: pytest.MonkeyPatch, now: TopicTurn, refused: bool) -> None:
    monkeypatch.setattr(turns, "read_turns", lambda *_: {"orders": now})
    before = {"orders": told(DoneTopic(ends=ENDS))}
    if not refused:
        _refuse_changed(BACK, ["orders"], before)
        return
    with pytest.raises(NotTurned, match="another run has changed the turn of orders"):
        _refuse_changed(BACK, ["orders"], before)


class Claimed(Exception):
    """The turn would begin."""


class Claiming:
    """Claims nothing."""

    def __init__(self, *_: object) -> None:
        pass

    def remote(self, topic: str) -> str:
        return topic

    def claim(self, *_: object) -> None:
        raise Claimed


@pytest.mark.parametrize(
    ("ends", "why"),
    [
        ({"A": 7, "B": 4}, ""),
        ({"A": 9, "B": 9}, ""),  # stragglers
        ({"A": 7, "B": 0}, "at B ends at offset 0, and the turn would start at 4: "),
        ({"A": 6, "B": 4}, "at A ends at offset 6, and the turn would start at 7: "),
        ({"A": 7}, "at B is not there, or has no leader"),
    ],
)
def test_logs_that_end_before_the_turn_would_start(
    monkeypatch: pytest.MonkeyPatch, ends: dict[str, int], why: str
) -> None:
    """As after a topic was created again since it was drained."""

    def ends_at(client: ClusterClient, partitions: Iterable[TopicPartition], *_: object, **__: object) -> object:
        alias = client.config.alias
        return {partition: ends[alias] for partition in partitions if alias in ends}

    monkeypatch.setattr(turns, "read_turns", lambda *_: {"orders": told(DoneTopic(ends=ENDS))})
    monkeypatch.setattr(turns, "_Beginning", Claiming)
    monkeypatch.setattr(turns, "offsets_by_leader", ends_at)
    with pytest.raises(NotTurned if why else Claimed, match=f"B->A: orders-0 {why}" if why else None):
        start_turn(BACK, {"orders": {0: Border(upstream=4, downstream=7, records=4)}})
