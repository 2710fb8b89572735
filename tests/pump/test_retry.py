"""Pauses between the readings of a partition's position."""

from __future__ import annotations

from sparkmirror.pump.retry import Retry


def test_pauses_have_a_longest_however_often_it_failed() -> None:
    """After an hour and a half without a leader, 2 to the power of the failures is no float any more."""
    retry = Retry(0.0)
    for _ in range(1100):
        retry.pause(0.0, 0.0)
    assert retry.at == 5.0
    retry.park(0.0)
    assert retry.at == 300.0


def test_pauses_grow_and_begin_again_after_progress() -> None:
    retry = Retry(0.0)
    pauses = []
    for _ in range(8):
        retry.pause(0.0, 0.0)
        pauses.append(retry.at)
    assert pauses == [0.0, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    retry.progressed()
    retry.park(0.0)
    assert retry.at == 5.0
