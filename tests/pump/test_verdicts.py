"""What is done about Kafka's error codes (R1)."""

from __future__ import annotations

import pytest

from sparkmirror.cluster.coordinators import PASSING
from sparkmirror.cluster.topic_log import _FINAL_ERRORS
from sparkmirror.pump.verdicts import TABLE, ErrorAction, explanation, verdict


@pytest.mark.parametrize("code", [1, 3, 5, 6, 9, 13, 45, 46, 59, 74, 75, 100])
def test_what_is_out_of_date_is_looked_at_again_at_once(code: int) -> None:
    """45 and 46 alike: somebody else wrote it, or it is a gap; 100 is a new topic."""
    assert verdict(code) is ErrorAction.SEEK


@pytest.mark.parametrize("code", [-1, 7, 19, 20, 56, 89, 9999])
def test_what_may_pass_is_tried_again_after_a_pause(code: int) -> None:
    """7 and 20 may have been appended, 19 was not; an unknown code may be a newer broker's."""
    assert verdict(code) is ErrorAction.RETRY


@pytest.mark.parametrize("code", [2, 10, 29, 31, 32, 76, 87])
def test_what_stays_waits_for_somebody_who_is_told_why(code: int) -> None:
    assert verdict(code) is ErrorAction.PARK


@pytest.mark.parametrize("code", [47, 48, 90])
def test_a_fenced_pump_never_writes_again(code: int) -> None:
    assert verdict(code) is ErrorAction.STOP


def test_whoever_may_not_write_at_all_is_told_what_to_grant() -> None:
    assert "grant sparkmirror's principal IDEMPOTENT_WRITE" in explanation(31)


def test_the_small_sets_beside_the_table_say_the_same() -> None:
    assert {verdict(code) for code in _FINAL_ERRORS} == {ErrorAction.PARK}
    assert {verdict(code) for code in PASSING} == {ErrorAction.RETRY}


def test_every_listed_code_is_explained() -> None:
    assert 0 not in TABLE
    assert all(explanation(code) for code in TABLE)
    assert explanation(9999) == ""
