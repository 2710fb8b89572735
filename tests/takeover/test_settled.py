"""Stored offsets of several connectors: what they come to together."""

from __future__ import annotations

from sparkmirror.mirror.takeover.from_mm2 import _Copied, _Refused, _settled

COPIED = (_Copied(7, "one"), _Copied(9, "two"))


def test_nothing_found_beside_a_refusal_is_no_agreement() -> None:
    """One connector's leader does not answer, and the other's tail can't be read: neither says where to continue."""
    outcome = _settled([None, _Refused("strange", wait=False)], COPIED)
    assert isinstance(outcome, _Refused)
    assert "one (7) and two (9)" in outcome.reason


def test_what_all_say_counts() -> None:
    assert _settled([None, None], COPIED) is None


def test_a_refusal_that_may_pass_comes_first() -> None:
    later = _Refused("later", wait=True)
    assert _settled([None, _Refused("strange", wait=False), later], COPIED) == later
