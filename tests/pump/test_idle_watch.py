"""The watch over copies at rest: what the target's leaders say of their high watermarks, played by the test."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from model_broker import LEADER, ROUTE
from model_pump import Pump, a_world

from sparkmirror.config import ClusterConfig
from sparkmirror.exact.position.cause import Cause
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.list_offsets import ListedOffset
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.pump import idle_watch
from sparkmirror.pump.idle_watch import AT_ONCE, LOOK_S, IdleWatch
from sparkmirror.pump.loop import Loop
from sparkmirror.pump.partition import PartitionCopy
from sparkmirror.pump.stage import Stage

COPIED = 120


def a_copy(number: int, *, until: int | None = None) -> PartitionCopy:
    """Copied up to the end of what there is."""
    pump = Pump(a_world(), until=until)
    pump.settle()
    pump.copy.route = replace(ROUTE, partition=number)
    return pump.copy


class Watched:
    """Copies at rest, and the answers of their leader."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.copies: list[PartitionCopy] = [a_copy(number) for number in range(3)]
        self.asked: list[list[int]] = []
        self.answers: dict[int, ListedOffset] = {}
        self.error: ConnectionError | None = None
        self.meanwhile: Callable[[], None] = lambda: None
        self.doubts: list[tuple[int, Cause]] = []
        self.loop = Loop()
        monkeypatch.setattr(idle_watch, "list_offsets", self._listed)
        monkeypatch.setattr(ClusterClient, "brokers", (LEADER,))
        client = ClusterClient(ClusterConfig(alias="B", bootstrap_servers=("127.0.0.1:1",)), "test")
        self.watch = IdleWatch("A->B", self.loop, client, self.copies, self._doubt)

    def _listed(self, client: Any, leader: int, partitions: Mapping[str, Sequence[int]], timestamp: int) -> Any:
        (numbers,) = partitions.values()
        self.asked.append([*numbers])
        self.meanwhile()
        if self.error is not None:
            raise self.error
        return {(ROUTE.target_topic, number): self.answers.get(number, ListedOffset(COPIED, 0)) for number in numbers}

    def _doubt(self, copy: PartitionCopy, reason: str, cause: Cause) -> None:
        assert reason
        self.doubts.append((copy.route.partition, cause))

    def look(self) -> None:
        """One look, from the question to the comparison."""
        looks = len(self.asked)
        self.loop.now += LOOK_S
        self.watch.check()
        deadline = time.monotonic() + 20
        while self.watch._look_at == float("inf") or len(self.asked) == looks:  # noqa: SLF001 - it tells nobody
            assert time.monotonic() < deadline
            now = self.loop.now
            self.loop.turn(0.02)
            self.loop.now = now


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    made = Watched(monkeypatch)
    yield made
    made.watch.close()


def test_a_high_watermark_below_what_was_acknowledged_is_a_doubt(watched: Watched) -> None:
    watched.answers = {0: ListedOffset(COPIED - 1, 0), 2: ListedOffset(COPIED + 7, 0)}
    watched.look()
    assert watched.doubts == [(0, Cause.POSITION)]


def test_a_leader_that_has_moved_or_is_gone_is_a_doubt(watched: Watched) -> None:
    watched.answers = {1: ListedOffset(-1, ErrorCode.NOT_LEADER_OR_FOLLOWER)}
    watched.look()
    assert watched.doubts == [(1, Cause.NO_LEADER)]
    watched.error = ConnectionError("gone")
    watched.doubts.clear()
    watched.look()
    assert watched.doubts == [(number, Cause.UNREACHABLE) for number in range(3)]


def test_who_has_looked_again_since_is_left_alone(watched: Watched) -> None:
    watched.answers = {0: ListedOffset(0, 0)}
    watched.meanwhile = lambda: watched.copies[0].look_again("something else", 0.0)
    watched.look()
    assert watched.doubts == []


def test_only_copies_at_rest_are_asked_for_and_all_in_turn(watched: Watched) -> None:
    watched.copies[1].look_again("its position is read", 0.0)
    watched.look()
    assert watched.asked == [[0, 2]]
    watched.copies[:] = [*[watched.copies[1]] * AT_ONCE, a_copy(AT_ONCE)]
    watched.copies[0] = a_copy(0)
    watched.asked.clear()
    watched.look()
    watched.look()
    assert sorted(watched.asked) == [[0], [AT_ONCE]]


def test_a_copy_that_is_done_looks_again_as_well() -> None:
    """An end that was reached is none if the target has lost its records."""
    copy = a_copy(0, until=COPIED)
    stages = [copy.stage]
    assert copy.rests_at == COPIED
    copy.look_again("the high watermark is too low", 2000.0, Cause.POSITION)
    assert [*stages, copy.stage] == [Stage.DONE, Stage.SEEKING]
    assert copy.ready(2000.0).read
