"""Leader epochs of the source over a restart (KIP-101, KIP-320): what the next pump asks the source with."""

from __future__ import annotations

import dataclasses

from model_pump import Pump, World, a_world, assert_exact

from sparkmirror.exact.position.route import PartitionReading


def led_by_three() -> World:
    world = a_world()
    world.source.led_since = [30, 70]
    return world


def asked(pump: Pump) -> PartitionReading:
    assert pump.ask()
    reading = pump.reading
    assert isinstance(reading, PartitionReading)
    return reading


def test_the_next_pump_knows_the_epoch_of_the_last_copied_record() -> None:
    """Nothing but a claim tells it: the target's log has the target's epochs."""
    world = led_by_three()
    Pump(world, until=None).settle()
    assert {claim.sequence: claim.source_leader_epoch for claim in world.target.claims} == {0: 0, 30: 1, 70: 2}
    heir = Pump(world, 2, until=None)
    assert asked(heir).position.leader_epoch == 2
    heir.hear()
    position = heir.copy.fetch_position()
    assert position is not None
    assert (position.offset, position.last_fetched_epoch) == (120, 2)
    assert_exact(world)


def test_batches_of_two_epochs_are_never_one() -> None:
    """Their claim could name only one of them."""
    world = led_by_three()
    pump = Pump(world, until=None, merge_tiny=True)
    pump.copy.backlog.join(1 << 16)
    pump.start()
    pump.fetch(12)
    ends = [batch.next_upstream for batch in pump.copy.queue]
    assert {30, 70} <= {*ends}
    assert len(ends) < 12, "the others are joined"


def test_where_a_loss_is_stepped_over_no_epoch_is_known() -> None:
    """The record before the position is none of those copied: its epoch would have the source tell of a cut."""
    world = led_by_three()
    Pump(world, until=None).settle()
    world.source.start = 125
    heir = Pump(world, 2, until=None)
    heir.reading = dataclasses.replace(asked(heir), resume_at=125)
    heir.hear()
    position = heir.copy.fetch_position()
    assert position is not None
    assert (position.offset, position.last_fetched_epoch) == (125, -1)
