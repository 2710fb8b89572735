"""Troubles that may pass by themselves: a copy without an end waits for ever, one with an end is parked after a minute.

So doctor finds `parked-position` and `parked-broker` with `run --once` alone; a mirror that runs on waits.
"""

from __future__ import annotations

import pytest
from model_pump import Pump, a_world

from sparkmirror.exact.position.cause import Cause, cause_of_error
from sparkmirror.exact.position.route import Refusal
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.pump.retry import PATIENCE_S
from sparkmirror.pump.stage import Stage
from sparkmirror.pump.verdicts import ErrorAction, verdict

TROUBLES = [Cause.POSITION, Cause.BROKER]


def refuse(pump: Pump, cause: Cause, seconds: float) -> None:
    """Have each reading refused for so long."""
    until = pump.world.now + seconds
    while pump.world.now < until:
        if pump.ask():
            pump.reading = Refusal("what keeps it from being read", transient=True, cause=cause)
            assert pump.hear()
        pump.world.pass_time(1.0)


@pytest.mark.parametrize("cause", TROUBLES)
def test_a_mirror_that_runs_on_waits(cause: Cause) -> None:
    pump = Pump(a_world(), until=None)
    refuse(pump, cause, 20 * PATIENCE_S)
    assert (pump.copy.stage, pump.copy.trouble.cause) == (Stage.SEEKING, cause)


@pytest.mark.parametrize("cause", TROUBLES)
def test_a_copy_with_an_end_is_parked_until_what_the_reason_names_is_corrected(cause: Cause) -> None:
    """It looks again by itself, and then copies all."""
    pump = Pump(a_world())
    refuse(pump, cause, PATIENCE_S - 5)
    assert pump.copy.stage is Stage.SEEKING
    refuse(pump, cause, 20.0)
    assert (pump.copy.stage, pump.copy.trouble.cause) == (Stage.PARKED, cause)
    pump.world.pass_time(300.0)
    pump.finish()
    assert pump.world.target.log == list(range(120))
    assert (pump.copy.stage, pump.copy.trouble.reason) == (Stage.DONE, "")


def test_no_error_of_a_broker_parks_with_the_cause_broker() -> None:
    """The errors that park at once have causes of their own."""
    parking = {code for code in ErrorCode if verdict(code) in (ErrorAction.PARK, ErrorAction.STOP)}
    assert parking
    assert Cause.BROKER not in {cause_of_error(code) for code in parking}
