"""What a flow's view tells of the source's ends: known, too old, never read."""

from __future__ import annotations

import time

from sparkmirror.engine.flow_view import ENDS_S, FlowView

AT = ("t", 0)


def test_ends_are_known_until_they_are_too_old() -> None:
    view = FlowView()
    view.take_ends({AT: 7}, {})
    read_at = view.ends_read_at
    view.ends_trouble = "timed out"  # the next reading failed, and they are known all the same
    assert (view.known_ends(read_at + ENDS_S - 1), view.silence("A", read_at + ENDS_S - 1)) == ({AT: 7}, "")
    assert view.known_ends(read_at + ENDS_S) == {}
    assert view.silence("A", read_at + ENDS_S) == "cluster A has not told the ends of its logs for 30 s: timed out"
    view.take_ends({AT: 8}, {})
    assert view.silence("A", time.monotonic()) == ""


def test_ends_that_were_never_read() -> None:
    view = FlowView()
    assert (view.known_ends(time.monotonic()), view.silence("A", time.monotonic())) == ({}, "")
    view.ends_trouble = "no answer"
    assert view.silence("A", time.monotonic()) == "no answer"
