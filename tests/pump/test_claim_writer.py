"""What a flow's writer of claims writes, and what it leaves out since it was asked."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence, Set
from functools import partial

import pytest
from model_broker import LEADER
from model_pump import Pump, a_world, running

from sparkmirror.cluster.client import ClusterClient
from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.durable.claim_log import SegmentLog
from sparkmirror.durable.claims import Segment
from sparkmirror.pump import claim_writer
from sparkmirror.pump.claim_writer import ClaimWriter
from sparkmirror.pump.loop import Loop
from sparkmirror.pump.partition import PartitionCopy


class Writing:
    """A writer whose claims go into a list, or nowhere with an error."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.written: list[Segment] = []
        self.writes = 0
        self.may_end = threading.Event()
        """Cleared, it holds up each write."""
        self.may_end.set()
        self.error: Exception | None = None
        self.claimed: list[PartitionCopy] = []
        self.unclaimed: list[tuple[PartitionCopy, str]] = []
        self.confirmed: list[PartitionCopy] = []
        self.cut: list[Set[int]] = []
        self.loop = Loop()
        monkeypatch.setattr(SegmentLog, "claim", lambda _, segments: self._claim(segments))
        source, target = (ClusterConfig(alias=alias, bootstrap_servers=("127.0.0.1:1",)) for alias in "AB")
        self.writer = ClaimWriter(
            FlowConfig(source=source, target=target),
            self.loop,
            ClusterClient(target, "test"),
            on_claimed=self.claimed.append,
            on_unclaimed=lambda copy, reason: self.unclaimed.append((copy, reason)),
            on_confirmed=self.confirmed.append,
            on_cut=self.cut.append,
            homes=8,
        )

    def _claim(self, segments: Sequence[Segment]) -> None:
        if self.error is not None:
            raise self.error
        self.written += segments
        self.writes += 1
        assert self.may_end.wait(10)

    def flush_until(self, reached: Callable[[], object]) -> None:
        deadline = time.monotonic() + 10
        while not reached():
            assert time.monotonic() < deadline
            self.writer.flush()
            self.loop.turn(0.02)


@pytest.fixture
def writing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Writing]:
    made = Writing(monkeypatch)
    yield made
    made.writer.close()
    made.loop.close()


def fetched() -> Pump:
    pump = Pump(a_world())
    pump.start()
    pump.fetch()
    return pump


def confirmed() -> tuple[PartitionCopy, Sequence[Segment]]:
    """A partition's copy, and its claim with all batches acknowledged."""
    pump = running(a_world())
    pump.ready()
    return pump.copy, pump.confirming


def test_a_claim_is_written_and_said_to_be_durable(writing: Writing) -> None:
    pump = fetched()
    (claim,) = pump.ready().claims
    writing.writer.want(pump.copy, (claim,))
    writing.flush_until(lambda: writing.claimed)
    assert (writing.written, writing.claimed, claim.durable) == ([claim.segment], [pump.copy], True)
    assert pump.ready().claims == ()


def test_claims_that_come_while_others_are_written_are_written_next_in_one_go(writing: Writing) -> None:
    """Nothing is durable before its own write has ended, whatever was written before it."""
    pumps = [fetched() for _ in range(4)]
    claims = [pump.ready().claims[0] for pump in pumps]
    writing.may_end.clear()
    writing.writer.want(pumps[0].copy, (claims[0],))
    writing.flush_until(lambda: writing.written)
    for pump, claim in zip(pumps[1:], claims[1:], strict=True):
        writing.writer.want(pump.copy, (claim,))
        writing.writer.flush()
    writing.loop.turn(0.05)
    assert (writing.writes, [claim.durable for claim in claims]) == (1, [False] * 4)
    assert [len(pump.ready().claims) for pump in pumps] == [0, 1, 1, 1], "what is not begun can still be dropped"
    writing.may_end.set()
    writing.flush_until(lambda: len(writing.claimed) == 4)
    assert writing.writes == 2
    assert writing.written == [claim.segment for claim in claims]
    assert all(claim.durable for claim in claims)


def test_after_a_failure_the_next_claims_are_written(writing: Writing) -> None:
    failed, later = fetched(), fetched()
    writing.error = ConnectionError("nobody is there")
    writing.writer.want(failed.copy, failed.ready().claims)
    writing.flush_until(lambda: writing.unclaimed)
    writing.error = None
    writing.writer.want(later.copy, later.ready().claims)
    writing.flush_until(lambda: writing.claimed)
    assert writing.claimed == [later.copy]


def test_a_claim_that_is_not_wanted_any_more_is_not_written(writing: Writing) -> None:
    """Its batches were dropped before anything was begun."""
    dropped, kept = fetched(), fetched()
    for pump in (dropped, kept):
        writing.writer.want(pump.copy, pump.ready().claims)
    dropped.copy.doubt("the connection broke", dropped.world.now)
    writing.writer.want(dropped.copy, dropped.ready().claims)
    writing.flush_until(lambda: writing.claimed)
    assert (len(writing.written), writing.claimed) == (1, [kept.copy])


def test_a_claim_that_could_not_be_written_is_told_with_the_reason(writing: Writing) -> None:
    pump = fetched()
    writing.error = ConnectionError("nobody is there")
    writing.writer.want(pump.copy, pump.ready().claims)
    writing.flush_until(lambda: writing.unclaimed)
    assert writing.unclaimed == [(pump.copy, "its claim could not be written: nobody is there")]
    assert writing.claimed == []


def test_claims_are_written_again_when_they_are_acknowledged(writing: Writing) -> None:
    copy, claims = confirmed()
    assert claims
    writing.writer.confirm(copy, claims)
    writing.may_end.clear()
    writing.flush_until(lambda: writing.written)
    assert writing.written == claims
    assert not writing.writer.settle(copy), "another task may not copy the partition yet"
    writing.may_end.set()
    writing.flush_until(lambda: writing.confirmed)
    assert writing.confirmed == [copy]
    assert writing.writer.settle(copy)
    assert writing.writer.is_confirmed(copy)


def test_a_partition_that_leaves_has_its_claims_confirmed_at_once(
    writing: Writing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claim_writer, "CONFIRM_S", 60.0)
    for _ in range(2):
        copy, claims = confirmed()
        writing.writer.confirm(copy, claims)
        assert not writing.writer.settle(copy)
        writing.flush_until(partial(writing.confirmed.__contains__, copy))
        assert writing.writer.settle(copy)


def test_a_claim_that_is_not_known_to_be_confirmed_must_be_looked_up(writing: Writing) -> None:
    """By whoever copies the partition next, as long as the log shows its batches."""
    copy, claims = confirmed()
    writing.error = ConnectionError("nobody is there")
    writing.writer.confirm(copy, claims)
    writing.writer.settle(copy)
    writing.flush_until(lambda: writing.confirmed)
    assert writing.writer.settle(copy)
    assert not writing.writer.is_confirmed(copy)
    writing.writer.confirm_only(copy, claims[-1].sequence + claims[-1].announced)
    assert writing.writer.is_confirmed(copy), "the position was read"


@pytest.mark.parametrize(("behind", "kept"), [(0, 1), (1, 0)])
def test_no_claim_is_confirmed_beyond_the_position_that_was_read(writing: Writing, behind: int, kept: int) -> None:
    """What was acknowledged may be lost since."""
    copy, claims = confirmed()
    (claim,) = claims
    writing.writer.confirm(copy, claims)
    writing.writer.confirm_only(copy, claim.sequence + claim.announced - behind)
    _written_after_another(writing, kept)


@pytest.mark.parametrize(("broker", "kept"), [(LEADER + 1, 1), (LEADER, 0)])
def test_no_claim_is_confirmed_once_its_broker_is_lost(writing: Writing, broker: int, kept: int) -> None:
    """Another pump may look at the next leader's log first."""
    copy, claims = confirmed()
    writing.writer.confirm(copy, claims)
    writing.writer.confirm_none_at(broker)
    _written_after_another(writing, kept)


def _written_after_another(writing: Writing, kept: int) -> None:
    """Nothing comes of what is left out, but in the same turn another partition's claim is written."""
    pump = fetched()
    writing.writer.want(pump.copy, pump.ready().claims)
    writing.flush_until(lambda: writing.claimed and len(writing.written) == 1 + kept)
    writing.loop.turn(0.1)
    assert len(writing.written) == 1 + kept
