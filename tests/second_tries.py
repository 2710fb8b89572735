"""Tests that get a second try, each with its cause: they are about how long something takes, and no record is copied.

On a machine that others starve, a time limit may be missed with nothing wrong. Whatever asserts contents gets no second
try: a record that is there twice in one run of two is there twice. So a test of kills, takeovers, rivals, moves,
elections or losses is never listed, also if it has a time limit; it needs more patience then, or a mend.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import pytest

_LINE = "a round trip through Python's proxy, which waits for a core"
_SCRAPE = "the time of a scrape of the largest mirror, on a core of its own"

LISTED: Mapping[str, str] = {
    "tests/connect/test_hostile_requests.py::test_a_megabyte_of_anything_takes_no_time": "a minute for each request",
    "tests/laboratory/test_distance.py::test_an_echo_takes_a_round_trip": _LINE,
    "tests/laboratory/test_distance.py::test_distance_costs_time_and_no_throughput": "300 MB in 20 s through Python",
    "tests/laboratory/test_distance.py::test_jitter_is_within_its_bounds": _LINE,
    "tests/laboratory/test_distance.py::test_connections_share_the_bandwidth_and_directions_do_not": _LINE,
    "tests/laboratory/test_distance.py::test_a_full_line_makes_others_wait_for_its_queue_only": _LINE,
    "tests/laboratory/test_proxy.py::test_slow_is_as_slow_as_asked": _LINE,
    "tests/metrics/test_collector.py::test_a_scrape_of_10_000_partitions": _SCRAPE,
    "tests/metrics/test_collector.py::test_a_scrape_of_many_topics_and_groups": _SCRAPE,
    "tests/page/test_page_in_a_browser.py::test_10_000_partitions_that_all_move_scroll_fluidly": (
        "the frames a second of a browser that draws without a graphics card"
    ),
}
"""File and function of each test, with all its parameters, and why it may fail with nothing wrong."""

PASSED, SOME_FAILED = pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED


class Outcome(NamedTuple):
    """Exit codes of pytest in the end, and the tests that passed only at the second try."""

    codes: Sequence[int]
    late: Sequence[str] = ()


def cause_of(test: str) -> str:
    """Return why a test may fail with nothing wrong; empty for a test without a second try."""
    return LISTED.get(test.partition("[")[0], "")


def after_second_try(failed: Sequence[str], codes: Sequence[int], run: Callable[[Sequence[str]], int]) -> Outcome:
    """Run failed tests once more, if all of them are listed and nothing else went wrong.

    `run` runs tests alone, and returns pytest's exit code.
    """
    if not failed or not {*codes} <= {PASSED, SOME_FAILED} or not all(map(cause_of, failed)):
        return Outcome(codes)
    code = run(failed)
    return Outcome([code], () if code else failed)


def last_words(outcome: Outcome) -> list[str]:
    """Return what a run says of its tests in the end."""
    named = [f"failed, and passed at its second try: {test} ({cause_of(test)})" for test in outcome.late]
    if any(outcome.codes):
        return [*named, "failed"]
    return [*named, f"all passed, {len(named)} at the second try" if named else "all passed"]
