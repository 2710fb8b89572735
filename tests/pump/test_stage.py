"""The stages of a partition's copy: the table is what the copy does, and nothing else is allowed."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from model_broker import FRESH_MS, Source
from model_pump import Pump, World, a_world, running

from sparkmirror.exact.position.route import Refusal
from sparkmirror.pump import partition
from sparkmirror.pump.retry import PATIENCE_S
from sparkmirror.pump.stage import TRANSITIONS, ForbiddenEvent, Stage, StageEvent, StageRow
from sparkmirror.pump.trust import MAX_CONFIRMATION_AGE_S

ALLOWED = {(stage, event) for stage, events in TRANSITIONS.items() for event in events}
FORBIDDEN = sorted(set(itertools.product(Stage, StageEvent)) - ALLOWED, key=lambda pair: (pair[0].name, pair[1].name))
REFUSED_TIMESTAMP = 32
FOR_NOW = Refusal("a broker is away", transient=True)
FOR_LONG = Refusal("the topic is gone")


# --- the table ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("stage", "event"), FORBIDDEN, ids=lambda part: part.name)
def test_an_event_that_a_stage_does_not_have_is_an_error_that_names_both(stage: Stage, event: StageEvent) -> None:
    with pytest.raises(ForbiddenEvent, match=rf"{stage.name} .* {event.name} ") as raised:
        TRANSITIONS[stage][event]
    assert (raised.value.stage, raised.value.event) == (stage, event)


def test_every_stage_has_its_row_and_can_be_reached_and_left() -> None:
    assert set(TRANSITIONS) == set(Stage)
    for first in Stage:
        reached = {first}
        while new := {TRANSITIONS[stage][event] for stage in reached for event in TRANSITIONS[stage]} - reached:
            reached |= new
        assert reached == set(Stage), f"from {first.name}"


def test_only_a_running_partition_is_fed_and_sends() -> None:
    for event in (StageEvent.FED, StageEvent.SENT):
        assert [stage for stage in Stage if event in TRANSITIONS[stage]] == [Stage.RUNNING]


# --- what leads from stage to stage -------------------------------------------------------------------


def started() -> Pump:
    pump = Pump(a_world(), until=None)
    pump.start()
    return pump


def stale() -> Pump:
    """A pump with a batch to send, whose position is too old, and is being read."""
    pump = running(a_world())
    pump.world.now += MAX_CONFIRMATION_AGE_S + 1
    assert pump.ask()
    return pump


def parked(*, in_flight: bool = False) -> Pump:
    pump = running(a_world())
    for _ in range(2 if in_flight else 1):
        assert pump.send()
    pump.serve(REFUSED_TIMESTAMP)
    pump.receive()
    return pump


def draining() -> Pump:
    pump = running(a_world())
    assert [pump.send() for _ in range(3)] == [True] * 3
    pump.serve(6)
    pump.receive()
    return pump


def looked_again(pump: Pump) -> Pump:
    pump.world.now = max(pump.world.now, pump.copy.retry.at)
    assert pump.ask()
    return pump


def done() -> Pump:
    pump = Pump(a_world(), until=None)
    pump.copy.end_at(50, pump.world.now)
    pump.finish()
    return pump


def a_plain_copy() -> None:
    pump = Pump(a_world())
    pump.finish()
    assert pump.copy.stage is Stage.DONE


def a_position_refused_for_now() -> None:
    pump = Pump(a_world())
    assert pump.ask()
    pump.copy.refuse(FOR_NOW, pump.world.now)
    assert pump.copy.stage is Stage.SEEKING


def a_position_refused_for_long() -> None:
    pump = Pump(a_world())
    assert pump.ask()
    pump.copy.refuse(FOR_LONG, pump.world.now)
    looked_again(pump).copy.refuse(FOR_LONG, pump.world.now)
    assert pump.copy.stage is Stage.PARKED


def a_doubt_before_anything_is_known() -> None:
    pump = Pump(a_world())
    pump.copy.doubt("the connection broke", pump.world.now)
    assert pump.copy.stage is Stage.SEEKING


def an_old_position_that_is_confirmed() -> None:
    pump = stale()
    assert pump.hear()
    assert pump.copy.stage is Stage.RUNNING
    assert pump.copy.queue


def an_old_position_that_has_moved() -> None:
    pump = stale()
    rival = Pump(pump.world, 2)
    rival.start()
    rival.fetch()
    for step in (rival.claim, rival.claimed, rival.send, rival.serve):
        assert step() or rival.claiming is None
    assert len(pump.world.target.log) == 40
    pump.reading = pump.world.target.partition_reading(pump.world.source, pump.world.now)
    assert pump.hear()
    assert (pump.copy.stage, len(pump.copy.queue)) == (Stage.RUNNING, 0)


def an_old_position_that_is_refused() -> None:
    pump = stale()
    pump.copy.refuse(FOR_NOW, pump.world.now)
    assert pump.copy.stage is Stage.SEEKING


def a_doubt_with_batches_in_flight() -> None:
    pump = draining()
    for _ in range(2):
        assert pump.copy.stage is Stage.DRAINING
        pump.serve()
        pump.receive()
    assert pump.copy.stage is Stage.SEEKING


def a_connection_lost_while_draining() -> None:
    pump = draining()
    pump.lose()
    assert pump.copy.stage is Stage.SEEKING


def a_connection_lost_while_draining_for_too_long() -> None:
    pump = draining()
    pump.world.now += PATIENCE_S + 1
    pump.lose()
    assert pump.copy.stage is Stage.PARKED


def a_parked_partition_that_is_mended() -> None:
    assert looked_again(parked()).hear()


def a_parked_partition_that_is_refused_for_now() -> None:
    pump = looked_again(parked())
    pump.copy.refuse(FOR_NOW, pump.world.now)
    assert pump.copy.stage is Stage.SEEKING


def a_parked_partition_with_batches_in_flight() -> None:
    pump = parked(in_flight=True)
    pump.serve()
    pump.receive()
    assert pump.copy.stage is Stage.PARKED
    assert not pump.copy.in_flight


def writers_that_come_back() -> None:
    pump = done()
    stages = [pump.copy.stage]
    pump.copy.end_at(None, pump.world.now)
    assert [*stages, pump.copy.stage] == [Stage.DONE, Stage.SEEKING]


SCENARIOS: tuple[Callable[[], object], ...] = (
    a_plain_copy,
    a_position_refused_for_now,
    a_position_refused_for_long,
    a_doubt_before_anything_is_known,
    an_old_position_that_is_confirmed,
    an_old_position_that_has_moved,
    an_old_position_that_is_refused,
    a_doubt_with_batches_in_flight,
    a_connection_lost_while_draining,
    a_connection_lost_while_draining_for_too_long,
    a_parked_partition_that_is_mended,
    a_parked_partition_that_is_refused_for_now,
    a_parked_partition_with_batches_in_flight,
    writers_that_come_back,
)


class NotingRow(StageRow):
    """A row that notes which of its events occur."""

    def __init__(self, stage: Stage, taken: set[tuple[Stage, StageEvent]]) -> None:
        super().__init__(stage, TRANSITIONS[stage])
        self._taken = taken

    def __getitem__(self, event: StageEvent) -> Stage:
        self._taken.add((self._stage, event))
        return super().__getitem__(event)


def test_every_transition_of_the_table_occurs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that no scenario takes is one too many; one that is missing raises."""
    taken: set[tuple[Stage, StageEvent]] = set()
    monkeypatch.setattr(partition, "TRANSITIONS", {stage: NotingRow(stage, taken) for stage in Stage})
    for scenario in SCENARIOS:
        scenario()
    assert taken == ALLOWED


# --- what is refused ----------------------------------------------------------------------------------


def test_nothing_is_sent_while_batches_are_drained() -> None:
    pump = draining()
    with pytest.raises(ForbiddenEvent, match=r"DRAINING .* SENT"):
        pump.copy.send(pump.world.now)


def test_nothing_is_fed_before_the_position_is_known() -> None:
    pump = Pump(a_world())
    frame = pump.pool.take(64)
    with pytest.raises(ForbiddenEvent, match=r"SEEKING .* FED"):
        pump.copy.feed(frame, frame.view[:0], 120)


def test_no_position_is_read_of_a_partition_that_is_done() -> None:
    pump = done()
    with pytest.raises(ForbiddenEvent, match=r"DONE .* ASKED"):
        pump.copy.ask(pump.world.now)


def test_no_answer_comes_to_a_partition_with_nothing_in_flight() -> None:
    pump = draining()
    pump.lose()
    with pytest.raises(ForbiddenEvent, match=r"SEEKING .* ANSWERED"):
        pump.copy.acknowledge(pump.world.target.append(bytes(batch_of_another()), pump.world.now), pump.world.now)


def batch_of_another() -> memoryview:
    """A batch that another pump has sent to another target."""
    pump = Pump(World(Source([(1, FRESH_MS)])))
    pump.start()
    pump.fetch()
    pump.claim()
    pump.claimed()
    return pump.copy.send(pump.world.now).view
