"""Connections that break while partitions wait for them, and partitions that begin at the latest offset."""

from __future__ import annotations

from model_broker import FRESH_AFTER_MS, FRESH_MS, IDENTITY, LEADER, ROUTE, Pump, Source, World

from sparkmirror.offsets.route import Bearings
from sparkmirror.pump.intake import Intake
from sparkmirror.pump.loop import Loop
from sparkmirror.pump.partition import PartitionCopy
from sparkmirror.pump.target_leg import TargetLeg


def a_leg(lost: list[PartitionCopy]) -> TargetLeg:
    return TargetLeg(
        LEADER,
        Loop(),
        client_id="test",
        timeout_ms=1_000,
        max_request_bytes=1 << 20,
        max_in_flight=5,
        dial=lambda leg: None,
        renew=lambda leg, channel: None,
        on_ack=lambda copy, ack: None,
        on_unsendable=lambda copy: None,
        on_lost=lambda leg, reason, copies: lost.extend(copies),
        may_send=lambda: True,
    )


def a_fetched_copy() -> PartitionCopy:
    pump = Pump(World(Source([(10, FRESH_MS)] * 4)))
    pump.start()
    pump.fetch()
    pump.claim()
    pump.claimed()
    return pump.copy


def test_a_partition_that_waits_for_a_lost_leg_is_in_doubt() -> None:
    lost: list[PartitionCopy] = []
    leg, copy = a_leg(lost), a_fetched_copy()
    leg.offer(copy)
    leg.failed("gone")
    assert lost == [copy]


def test_a_partition_in_flight_on_another_leg_is_left_to_it() -> None:
    """Its leader has moved while it waited here; what is in flight there is answered there."""
    lost: list[PartitionCopy] = []
    leg, copy = a_leg(lost), a_fetched_copy()
    leg.offer(copy)
    copy.send(1000.0)
    leg.failed("gone")
    assert lost == []
    assert len(copy.in_flight) == 1


def test_latest_is_the_first_look_and_is_claimed_at_once() -> None:
    source = Source([(10, FRESH_MS)] * 4)
    world = World(source)
    copy = PartitionCopy(
        ROUTE,
        IDENTITY,
        1,
        until=None,
        from_latest=True,
        unclean=False,
        fresh_after_ms=FRESH_AFTER_MS,
        max_in_flight=5,
        now=world.now,
        intake=Intake(read_committed=False, codec=None, merge_tiny=False),
    )
    for _ in range(2):
        copy.ask(world.now)
        bearings = world.target.bearings(source, world.now)
        assert isinstance(bearings, Bearings)
        copy.take(bearings, world.now)
        (claim,) = copy.claims
        assert (claim.segment.upstream, claim.segment.sequence, claim.segment.announced) == (40, 0, 0)
        source.end += 10  # more arrives before the claim is durable
        copy.doubt("a lost connection", world.now)
