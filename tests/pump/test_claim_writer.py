"""What a flow's writer of claims writes, and what it leaves out since it was asked."""

from __future__ import annotations

import dataclasses
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence, Set
from functools import partial

import pytest
from lab import KafkaCluster
from model_broker import LEADER
from model_pump import Pump, a_world, running

from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.exact.durable.claim_log import ClaimLog
from sparkmirror.exact.durable.claims import AnnouncedBatch, Claim, claim_record, home_partition, segments_topic
from sparkmirror.exact.position.cause import Cause
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import LogUnavailable, TopicLog
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.pump import claim_writer
from sparkmirror.pump.batch import PendingClaim
from sparkmirror.pump.claim_writer import ClaimWriter
from sparkmirror.pump.loop import Loop
from sparkmirror.pump.partition import PartitionCopy

HOMES = 8


def home_of(claim: Claim) -> int:
    return home_partition(claim.target_topic_id, claim.partition, HOMES)


class Writing:
    """A writer whose claims go into a list, or nowhere with an error."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.written: list[Claim] = []
        self.writes = 0
        self.may_end = threading.Event()
        """Cleared, it holds up each write."""
        self.may_end.set()
        self.error: Exception | None = None
        self.refused: set[Claim] = set()
        """Claims that are too large, so that nothing is written with them."""
        self.most = 1 << 20
        """Most claims of one partition of the segments topic that are not too large together."""
        self.leaderless: set[int] = set()
        """Partitions of the segments topic."""
        self.claimed: list[PartitionCopy] = []
        self.unclaimed: list[tuple[PartitionCopy, str]] = []
        self.causes: list[Cause] = []
        self.confirmed: list[PartitionCopy] = []
        self.cut: list[Set[int]] = []
        self.loop = Loop()
        monkeypatch.setattr(ClaimLog, "claim_each", lambda _, claims: self._claim(claims))
        source, target = (ClusterConfig(alias=alias, bootstrap_servers=("127.0.0.1:1",)) for alias in "AB")
        self.writer = ClaimWriter(
            FlowConfig(source=source, target=target),
            self.loop,
            ClusterClient(target, "test"),
            on_claimed=self.claimed.append,
            on_unclaimed=self._on_unclaimed,
            on_confirmed=self.confirmed.append,
            on_cut=self.cut.append,
            homes=HOMES,
        )

    def _claim(self, claims: Sequence[Claim]) -> dict[int, ConnectionError]:
        if self.error is not None:
            raise self.error
        failed: dict[int, ConnectionError] = {}
        for home in dict.fromkeys(map(home_of, claims)):
            theirs = [claim for claim in claims if home_of(claim) == home]
            if home in self.leaderless:
                failed[home] = LogUnavailable("segments", f"partition {home} has no leader now", 5)
            elif len(theirs) > self.most or not self.refused.isdisjoint(theirs):
                failed[home] = LogUnavailable("segments", "a record was refused", ErrorCode.MESSAGE_TOO_LARGE)
            else:
                self.written += theirs
        self.writes += 1
        assert self.may_end.wait(10)
        return failed

    def _on_unclaimed(self, copy: PartitionCopy, reason: str, cause: Cause) -> None:
        self.unclaimed.append((copy, reason))
        self.causes.append(cause)

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


def different(pumps: Sequence[Pump]) -> list[PendingClaim]:
    """A claim of each, as of different partitions."""
    claims = [pump.ready().claims[0] for pump in pumps]
    for number, claim in enumerate(claims):
        claim.claim = dataclasses.replace(claim.claim, partition=number)
    return claims


def confirmed() -> tuple[PartitionCopy, Sequence[Claim]]:
    """A partition's copy, and its claim with all batches acknowledged."""
    pump = running(a_world())
    pump.ready()
    return pump.copy, pump.confirming


def test_a_claim_is_written_and_said_to_be_durable(writing: Writing) -> None:
    pump = fetched()
    (claim,) = pump.ready().claims
    writing.writer.want(pump.copy, (claim,))
    writing.flush_until(lambda: writing.claimed)
    assert (writing.written, writing.claimed, claim.durable) == ([claim.claim], [pump.copy], True)
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
    assert writing.written == [claim.claim for claim in claims]
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
    assert (writing.claimed, writing.causes) == ([], [Cause.POSITION])


@pytest.mark.parametrize("which", range(5))
def test_a_claim_that_is_too_large_fails_alone(writing: Writing, which: int) -> None:
    """The others, which were written with it, are durable; its partition is told what to do."""
    pumps = [fetched() for _ in range(5)]
    claims = different(pumps)
    writing.refused = {claims[which].claim}
    for pump, claim in zip(pumps, claims, strict=True):
        writing.writer.want(pump.copy, (claim,))
    writing.flush_until(lambda: writing.unclaimed)
    others = [number for number in range(5) if number != which]
    assert {id(copy) for copy in writing.claimed} == {id(pumps[number].copy) for number in others}
    assert [claim.durable for claim in claims] == [number != which for number in range(5)]
    ((copy, reason),) = writing.unclaimed
    assert (copy, writing.causes) == (pumps[which].copy, [Cause.TOO_LARGE])
    size = len(claim_record(claims[which].claim)[1] or b"")
    assert reason == (
        f"its claim of {size} bytes is larger than topic mm2-sparkmirror-segments.A.internal takes: raise"
        " max.message.bytes of that topic at the target"
    )
    assert writing.writer.writing == frozenset(), "the next claims are written"


def test_a_partition_of_the_segments_topic_without_a_leader_fails_its_own_claims_alone(writing: Writing) -> None:
    pumps = [fetched() for _ in range(9)]
    claims = different(pumps)
    gone = home_of(claims[4].claim)
    writing.leaderless = {gone}
    for pump, claim in zip(pumps, claims, strict=True):
        writing.writer.want(pump.copy, (claim,))
    writing.flush_until(lambda: len(writing.claimed) + len(writing.unclaimed) == len(pumps))
    kept = [home_of(claim.claim) != gone for claim in claims]
    assert any(kept)
    assert [claim.durable for claim in claims] == kept
    assert [copy for copy, _ in writing.unclaimed] == [pumps[number].copy for number in range(9) if not kept[number]]
    reason = f"its claim could not be written: topic segments: partition {gone} has no leader now (error 5)"
    assert {reason for _, reason in writing.unclaimed} == {reason}
    assert set(writing.causes) == {Cause.POSITION}


def test_a_partition_without_a_leader_keeps_no_confirmed_claim_of_another_unconfirmed(writing: Writing) -> None:
    (one, its), (other, others) = confirmed(), confirmed()
    its = [dataclasses.replace(claim, partition=1) for claim in its]
    assert home_of(its[0]) != home_of(others[0])
    writing.leaderless = {home_of(its[0])}
    writing.writer.confirm(one, its)
    writing.writer.confirm(other, others)
    writing.flush_until(lambda: len(writing.confirmed) == 2)
    assert (writing.writer.is_confirmed(one), writing.writer.is_confirmed(other)) == (False, True)


def test_claims_that_are_too_large_only_together_are_all_written(writing: Writing) -> None:
    pumps = [fetched() for _ in range(7)]
    writing.most = 2
    for pump in pumps:
        writing.writer.want(pump.copy, pump.ready().claims)
    writing.flush_until(lambda: len(writing.claimed) == 7)
    assert writing.unclaimed == []


def test_no_claim_is_written_behind_one_of_its_partition_that_is_too_large(writing: Writing) -> None:
    """It would announce batches that do not come next."""
    large, small = fetched(), fetched()
    first, other = different([large, small])
    behind = PendingClaim(dataclasses.replace(first.claim, sequence=first.claim.sequence + 1000))
    large.copy.backlog.claims.append(behind)
    writing.refused = {first.claim}
    writing.writer.want(large.copy, (first, behind))
    writing.writer.want(small.copy, (other,))
    writing.flush_until(lambda: writing.unclaimed)
    assert (writing.claimed, behind.durable) == ([small.copy], False)
    assert behind.claim not in writing.written


def test_a_confirmed_claim_that_is_too_large_keeps_no_other_unconfirmed(writing: Writing) -> None:
    """The topic takes less than it did."""
    (large, its), (small, others) = confirmed(), confirmed()
    its = [dataclasses.replace(claim, partition=1) for claim in its]
    writing.refused = {*its}
    writing.writer.confirm(large, its)
    writing.writer.confirm(small, others)
    writing.flush_until(lambda: len(writing.confirmed) == 2)
    assert (writing.writer.is_confirmed(large), writing.writer.is_confirmed(small)) == (False, True)


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


@pytest.mark.broker
def test_a_broker_refuses_one_claim_and_takes_the_others(target_cluster: KafkaCluster, topic_name: str) -> None:
    """A long line's answer with 60,000 batches, unmerged, next to partitions with a gap here and there."""
    source = ClusterConfig(alias=topic_name, bootstrap_servers=("127.0.0.1:1",))
    target = ClusterConfig(alias="B", bootstrap_servers=(target_cluster.bootstrap_servers,))
    with ClusterAdmin.connect(target, "test") as admin:
        admin.create_compacted_topic(segments_topic(topic_name), 2, 1)
    pumps = [fetched() for _ in range(6)]
    claims = different(pumps)
    choices = random.Random(0)
    many = tuple(
        AnnouncedBatch(1, 0, choices.getrandbits(32), choices.getrandbits(60), choices.getrandbits(60))
        for _ in range(60_000)
    )
    claims[2].claim = dataclasses.replace(claims[2].claim, batches=many)
    loop, claimed, unclaimed = Loop(), list[PartitionCopy](), dict[PartitionCopy, tuple[str, Cause]]()
    client = ClusterClient(target, "test")
    writer = ClaimWriter(
        FlowConfig(source=source, target=target),
        loop,
        client,
        on_claimed=claimed.append,
        on_unclaimed=lambda copy, reason, cause: unclaimed.update({copy: (reason, cause)}),
        on_confirmed=lambda _: None,
        on_cut=lambda _: None,
        homes=2,
    )
    for pump, claim in zip(pumps, claims, strict=True):
        writer.want(pump.copy, (claim,))
    deadline = time.monotonic() + 60
    while len(claimed) + len(unclaimed) < len(pumps):
        assert time.monotonic() < deadline
        writer.flush()
        loop.turn(0.02)
    writer.close()
    loop.close()
    assert [claim.durable for claim in claims] == [True, True, False, True, True, True]
    ((copy, (reason, cause)),) = unclaimed.items()
    assert (copy, cause) == (pumps[2].copy, Cause.TOO_LARGE)
    assert f"topic {segments_topic(topic_name)} takes: raise max.message.bytes" in reason
    client = ClusterClient(target, "test")
    log = ClaimLog(TopicLog(client, segments_topic(topic_name)))
    found = [log.whole(claim.claim.target_topic_id, number) for number, claim in enumerate(claims)]
    client.close()
    assert [len(each) for each in found] == [1, 1, 0, 1, 1, 1]
