"""What a partition has for its pump to do, as one value."""

from __future__ import annotations

from model_broker import LEADER
from model_pump import Pump, a_world, running

from sparkmirror.pump.ready import HOLD_BACK
from sparkmirror.pump.stage import Stage
from sparkmirror.pump.trust import MAX_CONFIRMATION_AGE_S


def test_a_new_partition_wants_its_position_and_nothing_else() -> None:
    pump = Pump(a_world())
    ready = pump.ready()
    assert ready == pump.ready(), "it stands until an event ends it"
    assert ready.read
    assert (ready.claims, ready.confirm, ready.question, ready.send_to, ready.fetch) == ((), (), None, None, None)
    pump.copy.ask(pump.world.now)
    assert not pump.ready().read


def test_it_says_when_to_look_again() -> None:
    pump = Pump(a_world(), until=None)
    for _ in range(3):
        pump.copy.doubt("the connection broke", pump.world.now)
    ready = pump.ready()
    assert not ready.read
    assert ready.look_again_at is not None
    assert ready.look_again_at > pump.world.now
    pump.world.now = ready.look_again_at
    assert pump.ready().read


def test_a_claim_comes_before_its_batch() -> None:
    pump = Pump(a_world())
    pump.start()
    pump.fetch()
    (claim,) = pump.ready().claims
    assert pump.ready().send_to is None
    pump.copy.claiming(1)
    assert pump.ready().claims == ()
    claim.durable = True
    assert pump.ready().send_to == LEADER


def test_a_claim_whose_batches_are_dropped_is_wanted_no_more() -> None:
    pump = Pump(a_world())
    pump.start()
    pump.fetch()
    assert pump.ready().claims
    pump.copy.doubt("the connection broke", pump.world.now)
    assert pump.ready().claims == ()


def test_a_position_too_old_is_read_and_nothing_sent() -> None:
    pump = running(a_world())
    assert pump.ready().send_to == LEADER
    pump.world.now += MAX_CONFIRMATION_AGE_S + 1
    ready = pump.ready()
    assert (ready.read, ready.send_to) == (True, None)


def test_what_is_confirmed_is_handed_out_once() -> None:
    pump = Pump(a_world(batches=3))
    pump.start()
    pump.fetch()
    pump.claim()
    pump.claimed()
    while pump.send() or pump.serve() or pump.receive():
        pass
    ready = pump.copy.ready(pump.world.now)
    confirmed = [*pump.confirming, *ready.confirm]
    assert [claim.confirmed for claim in confirmed] == [True]
    assert pump.copy.ready(pump.world.now).confirm == ()
    assert (ready.over, pump.copy.stage) == (True, Stage.DONE)


def test_fetching_continues_holds_back_and_stops() -> None:
    pump = Pump(a_world())
    pump.start()
    fetch = pump.ready().fetch
    assert fetch is not None
    assert fetch.position == pump.copy.fetch_position()
    pump.fetch(6, pieces=2)
    assert pump.ready().fetch == HOLD_BACK, "what is here comes first"
    pump.prepare()
    fetch = pump.ready().fetch
    assert fetch is not None
    assert fetch.position is not None
    pump.copy.doubt("the connection broke", pump.world.now)
    assert pump.ready().fetch is None
