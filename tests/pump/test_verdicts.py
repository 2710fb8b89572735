"""What is done about Kafka's error codes (R1)."""

from __future__ import annotations

import pytest

from sparkmirror.pump.verdicts import Verdict, explanation, verdict


@pytest.mark.parametrize("code", [-1, 3, 5, 6, 7, 9, 13, 19, 20, 45, 46, 56, 74, 75, 89, 100, 9999])
def test_what_may_pass_is_looked_at_again(code: int) -> None:
    """45 and 46 alike: somebody else wrote it, or it is a gap; 7 and 20 may have been appended; 100 is a new topic."""
    assert verdict(code) is Verdict.SEEK
    assert explanation(code) == ""


@pytest.mark.parametrize("code", [2, 10, 29, 32, 76, 87])
def test_what_stays_waits_for_somebody_who_is_told_why(code: int) -> None:
    assert verdict(code) is Verdict.PARK
    assert explanation(code)


@pytest.mark.parametrize("code", [47, 48])
def test_a_fenced_pump_never_writes_again(code: int) -> None:
    assert verdict(code) is Verdict.STOP
    assert explanation(code)


def test_an_explanation_goes_with_every_verdict_that_needs_somebody() -> None:
    for code in range(-1, 200):
        assert bool(explanation(code)) == (verdict(code) is not Verdict.SEEK), code
