"""What is known of a planted state: which tests hold its words, exit code, alert and page, and where it arises."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.support.told import AT_ONCE, NO_STATUS, TOLD

VERBS = ("tests/doctor/test_words_of_planted_faults.py::test_the_verbs_tell_it",)
ALERTS = ("tests/metrics/test_alerts_of_faults.py::test_just_these_fire",)
LINES = ("tests/doctor/test_words_of_planted_faults.py::test_the_page_tells_it",)
BROWSER = "tests/page/test_faults_in_a_browser.py::test_the_page_tells_it"
ASKED_FOR = 27
"""Rows of the operator's list of 25 states: two of them have two halves."""


@dataclass(frozen=True, slots=True)
class Unchanged:
    """What is not meant to tell of the state."""

    why: str


Held = tuple[str, ...] | Unchanged
"""Tests, as pytest names them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantedState:
    """A state, and the tests that hold it."""

    name: str
    number: int
    """Row of the operator's list; 0 if it is of our own choice."""
    scene: str
    """Words of its snapshot; empty if it has none."""
    arises: tuple[str, ...]
    """Tests in which it comes about on real clusters; none: a rule on figures alone."""
    words: Held
    exit_code: Held
    alert: Held
    page: Held

    @property
    def tests(self) -> Iterator[str]:
        """All of them."""
        yield from self.arises
        for held in (self.words, self.exit_code, self.alert, self.page):
            if not isinstance(held, Unchanged):
                yield from held


def in_engine(*names: str) -> tuple[str, ...]:
    """Tests of `tests/engine`, as `file: test`."""
    return tuple("tests/engine/test_{}.py::test_{}".format(*name.split(": ")) for name in names)


def in_tests(*names: str) -> tuple[str, ...]:
    """Tests elsewhere, as `area/file: test`."""
    split = (name.replace("/", "/test_", 1).split(": ") for name in names)
    return tuple(f"tests/{file}.py::test_{test}" for file, test in split)


def planted(name: str, scene: str, *arises: str, number: int = 0, quiet: str = "", more: Held = ()) -> PlantedState:
    """A state with a scene; `quiet` says why no alert fires, `more` are tests of alerts of a real run."""
    told = TOLD[scene]
    extra = () if isinstance(more, Unchanged) else more
    return PlantedState(
        name=name,
        number=number,
        scene=scene,
        arises=arises,
        words=VERBS,
        exit_code=VERBS if told.check is not NO_STATUS else Unchanged("a process without the lease publishes nothing"),
        alert=(*ALERTS, *extra) if told.alerts else Unchanged(quiet),
        page=(*LINES, BROWSER) if scene in AT_ONCE else LINES,
    )


KNOWN_LOSSES = in_engine("known_losses: a_takeover_after_a_kill_says_the_same_until_an_operator_says_that_it_is_known")
