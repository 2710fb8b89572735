"""Each state of a topic, a set and a group has its name, on the way there and on the way back."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from tests.migrate.planted import (
    FENCES,
    SOURCE,
    TARGET,
    WORDS,
    group,
    renamed,
    seen,
    topic,
    turned,
    with_cluster,
    with_flow,
)

from sparkmirror.migrate import phase
from sparkmirror.migrate.file import Set
from sparkmirror.migrate.observation import Observation, Side, TopicSeen, WordSeen
from sparkmirror.migrate.observe import PairObserver
from sparkmirror.migrate.phase import GroupPhase, Phase
from sparkmirror.pump.messages.control import AcceptedLate, ControlState, DoneTopic, TurnStart

_FULL, _MORE = {0: 100, 1: 50}, {0: 103, 1: 50}

# What a topic that is live here shows before it leaves. Words: of the flow from here. Ends: at this side.
#        fence            word    ends    phase
_LEAVING = [
    ("open", "none", _FULL, Phase.COPYING),
    ("nobody", "none", _FULL, Phase.COPYING),
    ("an operator's", "none", _FULL, Phase.COPYING),
    ("one of two", "none", _FULL, Phase.HALF_FENCED),
    ("one broker", "none", _FULL, Phase.HALF_FENCED),
    ("closed", "none", _FULL, Phase.FENCED),
    *((fence, "ends", _FULL, Phase.DRAINING) for fence in FENCES),
    *((fence, "some", _FULL, Phase.DRAINING) for fence in FENCES),
    *((fence, "all", _FULL, Phase.DRAINED) for fence in FENCES),
    *((fence, word, _MORE, Phase.LEAKING) for fence in FENCES for word in ("ends", "some", "all")),
    *((fence, word, {**_FULL, 2: 1}, Phase.LEAKING) for fence in FENCES for word in ("ends", "some", "all")),
]
_BEFORE = {
    "first turn": (turned(WORDS["none"]), WORDS["none"]),
    "later turn": (turned(WORDS["none"]), WORDS["all"]),
}
"""Words of the flow from here, and of the flow to here."""


def _with(word: WordSeen, said: WordSeen) -> WordSeen:
    return replace(said, begun=word.begun)


@pytest.mark.parametrize("live", Side)
@pytest.mark.parametrize("before", _BEFORE)
@pytest.mark.parametrize(("fence", "said", "ends", "named"), _LEAVING)
def test_a_topic_that_leaves(
    live: Side, before: str, fence: str, said: str, ends: dict[int, int], named: Phase
) -> None:
    if live is TARGET and before == "first turn":
        before = "later turn"  # a topic comes to the target by a turn
    forth, back = _BEFORE[before]
    written = {part: end + 7 for part, end in ends.items()} if before == "later turn" else ends
    shifted = replace(
        WORDS[said],
        ends={part: end + 7 for part, end in WORDS[said].ends.items()} if before == "later turn" else WORDS[said].ends,
    )
    told = phase.topic_phase(
        seen(here=topic(written, fence), there=topic(_FULL), forth=_with(forth, shifted), back=back, live=live),
        "orders",
    )
    came = {Phase.COPYING: Phase.MOVED} if before == "later turn" else {}
    assert (told.live, told.phase) == (live, came.get(named, named))


# What a topic shows where it has come to. Ends: there; the copy reached 100 and 50.
_ARRIVED = [
    ("nobody", _FULL, Phase.ARMED),
    ("closed", _FULL, Phase.ARMED),
    ("open", _FULL, Phase.ARMED),
    ("open", {0: 101, 1: 50}, Phase.MOVED),
    ("open", {0: 100, 1: 51}, Phase.MOVED),
    ("open", {**_FULL, 2: 1}, Phase.MOVED),
]


@pytest.mark.parametrize("side", Side)
@pytest.mark.parametrize("old", FENCES)
@pytest.mark.parametrize(("fence", "ends", "named"), _ARRIVED)
def test_a_topic_that_has_come(side: Side, old: str, fence: str, ends: dict[int, int], named: Phase) -> None:
    at = seen(
        here=topic(ends, fence), there=topic(_FULL, old), forth=turned(WORDS["none"]), back=WORDS["all"], live=side
    )
    assert (phase.live_side(at, "orders"), phase.topic_phase(at, "orders").phase) == (side, named)


@pytest.mark.parametrize("side", Side)
@pytest.mark.parametrize("ends", [_FULL, _MORE])
def test_a_completed_topic(side: Side, ends: dict[int, int]) -> None:
    closed = replace(WORDS["all"], closed=True)
    at = seen(here=topic(ends), there=topic(_FULL), forth=turned(WORDS["none"]), back=closed, live=side)
    assert phase.topic_phase(at, "orders").phase is Phase.COMPLETED


# Words of the flow from the source, words of the flow back, and the live side.
_TURNS = [
    ("none", False, "none", False, SOURCE),
    ("none", True, "none", False, SOURCE),
    ("none", False, None, False, SOURCE),
    ("ends", True, "none", False, SOURCE),
    ("all", True, "none", False, SOURCE),
    ("all", False, "none", True, TARGET),
    ("all", False, "ends", True, TARGET),
    ("all", False, "all", True, TARGET),
    ("none", True, "all", False, SOURCE),
    ("ends", True, "all", False, SOURCE),
    ("all", True, "all", False, SOURCE),
]


@pytest.mark.parametrize(("forth", "begun", "back", "back_begun", "live"), _TURNS)
def test_the_newest_turn_tells_the_live_side(
    forth: str, begun: bool, back: str | None, back_begun: bool, live: Side
) -> None:
    at = seen(
        here=topic(_FULL),
        there=topic(_FULL),
        forth=replace(WORDS[forth], begun=begun),
        back=None if back is None else replace(WORDS[back], begun=back_begun),
    )
    assert phase.live_side(at, "orders") is live


# With renamed copies: words of both flows, and the live side.
_RENAMED = [
    ("none", "none", SOURCE),
    ("ends", "none", SOURCE),
    ("some", "none", SOURCE),
    ("all", "none", TARGET),
    ("all", "ends", TARGET),
    ("all", "all", TARGET),
    ("none", "all", SOURCE),
    ("none", "ends", SOURCE),
]


@pytest.mark.parametrize(("forth", "back", "live"), _RENAMED)
def test_published_ends_tell_the_live_side_of_renamed_copies(forth: str, back: str, live: Side) -> None:
    words = renamed(WORDS[forth], SOURCE), renamed(WORDS[back], TARGET)
    at = seen(here=topic(_FULL), there=topic(_FULL), forth=words[0], back=words[1])
    assert phase.live_side(at, "orders") is live


def _two(first: Observation, second: Observation) -> Observation:
    """Return an observation of two topics: of `orders` as in the first, and of `stock` as `orders` in the second."""
    for side in Side:
        cluster, flow = first.clusters[side], first.flows[side]
        other = second.clusters[side].topics["orders"], second.flows[side].topics["orders"]
        stock: TopicSeen = replace(other[0], name="stock")
        first = with_cluster(first, side, replace(cluster, topics={**cluster.topics, "stock": stock}))
        said = replace(other[1], copy="stock")
        first = with_flow(first, side, replace(flow, topics={**flow.topics, "stock": said}))
    return first


_STATES = {
    Phase.COPYING: seen(here=topic(_FULL), there=topic(_FULL)),
    Phase.HALF_FENCED: seen(here=topic(_FULL, "one of two"), there=topic(_FULL)),
    Phase.FENCED: seen(here=topic(_FULL, "closed"), there=topic(_FULL)),
    Phase.DRAINING: seen(here=topic(_FULL, "closed"), there=topic(_FULL), forth=WORDS["some"]),
    Phase.LEAKING: seen(here=topic(_MORE, "closed"), there=topic(_FULL), forth=WORDS["all"]),
    Phase.DRAINED: seen(here=topic(_FULL, "closed"), there=topic(_FULL), forth=WORDS["all"]),
    Phase.ARMED: seen(here=topic(_FULL, "closed"), there=topic(_FULL), forth=WORDS["all"], back=turned(WORDS["none"])),
    Phase.MOVED: seen(here=topic(_FULL, "closed"), there=topic(_MORE), forth=WORDS["all"], back=turned(WORDS["none"])),
}
"""The phases of a first switch, in order."""


@pytest.mark.parametrize("second", _STATES)
@pytest.mark.parametrize("first", _STATES)
def test_a_set_is_as_far_as_its_least_advanced_topic(first: Phase, second: Phase) -> None:
    one = Set(name="shop", topics=("orders", "stock"))
    told = phase.set_phase(_two(_STATES[first], _STATES[second]), one)
    order = list(_STATES)
    least = min(first, second, key=order.index)
    assert told.phase is least
    assert told.live is (TARGET if least in (Phase.ARMED, Phase.MOVED) else SOURCE)
    assert [each.phase for each in told.mixed] == ([] if first is second else [first, second])


# Members here and there; commit here, its translation, and the commit there.
_GROUPS = [
    (2, 0, 40, 40, None, GroupPhase.THERE),
    (2, 0, 40, 40, 40, GroupPhase.THERE),
    (2, 0, 40, None, None, GroupPhase.THERE),
    (2, 0, 40, 40, 41, GroupPhase.CAME_BACK),
    (2, 1, 40, 40, 40, GroupPhase.ON_BOTH_SIDES),
    (2, 1, 40, 40, 60, GroupPhase.ON_BOTH_SIDES),
    (0, 2, 40, 40, None, GroupPhase.ARRIVED),
    (0, 2, 40, 40, 40, GroupPhase.ARRIVED),
    (0, 2, 40, 40, 60, GroupPhase.ARRIVED),
    (0, 0, 40, 40, None, GroupPhase.STOPPED),
    (0, 0, 40, 40, 39, GroupPhase.STOPPED),
    (0, 0, 40, None, None, GroupPhase.STOPPED),
    (0, 0, 40, None, 40, GroupPhase.STOPPED),
    (0, 0, 40, 40, 40, GroupPhase.POSITIONED),
    (0, 0, 40, 37, 37, GroupPhase.POSITIONED),
    (0, 0, None, None, None, GroupPhase.POSITIONED),
    (0, 0, 40, 40, 41, GroupPhase.MOVED),
    (0, 0, 40, 37, 40, GroupPhase.MOVED),
]


@pytest.mark.parametrize("side", Side)
@pytest.mark.parametrize(("here", "there", "commit", "wanted", "known", "named"), _GROUPS)
def test_a_group(
    side: Side, here: int, there: int, commit: int | None, wanted: int | None, known: int | None, named: GroupPhase
) -> None:
    positions = {} if commit is None else {SOURCE: {0: wanted}}
    at = seen(group_here=group(here, commit), group_there=group(there, known), positions=positions, live=side)
    assert phase.group_phase(at, "billing", side) is named


@pytest.mark.parametrize("state", ["Stable", "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"])
def test_a_group_is_there_until_its_coordinator_calls_it_empty(state: str) -> None:
    at = seen(group_here=group(0, 40, state=state), group_there=group(0, 40), positions={SOURCE: {0: 40}})
    assert phase.group_phase(at, "billing", SOURCE) is GroupPhase.THERE


# Translations and commits there in two partitions, and what is set.
_LACKING = [
    ((40, 50), (None, None), {0: 40, 1: 50}, GroupPhase.STOPPED),
    ((40, 50), (40, None), {1: 50}, GroupPhase.STOPPED),
    ((40, 50), (40, 20), {1: 50}, GroupPhase.STOPPED),
    ((40, 50), (40, 50), {}, GroupPhase.POSITIONED),
    ((40, 50), (45, 50), {}, GroupPhase.MOVED),
    ((40, 50), (45, 20), {1: 50}, GroupPhase.STOPPED),  # each partition by itself: it has read up to 50 here
    ((40, 50), (45, None), {1: 50}, GroupPhase.STOPPED),  # without a commit it would begin at its reset policy
    ((None, 50), (None, 20), {0: None, 1: 50}, GroupPhase.STOPPED),
    ((None, 50), (None, 60), {0: None}, GroupPhase.STOPPED),
]


@pytest.mark.parametrize("side", Side)
@pytest.mark.parametrize(("wanted", "known", "lacks", "named"), _LACKING)
def test_positions_that_a_group_lacks(
    side: Side,
    wanted: tuple[int | None, ...],
    known: tuple[int | None, ...],
    lacks: dict[int, int | None],
    named: GroupPhase,
) -> None:
    at = seen(
        group_here=group(0, 40, other=50),
        group_there=group(0, known[0], other=known[1]),
        positions={SOURCE: dict(enumerate(wanted))},
        live=side,
    )
    assert phase.lacking(at, side, "billing") == {("orders", part): offset for part, offset in lacks.items()}
    assert phase.group_phase(at, "billing", side) is named


# Before its first turn the flow back translates nothing. Commits at A and B, and what the flow there makes of A's.
_UNTOLD = [
    (40, 40, 40, {}),
    (40, 35, 40, {}),
    (40, 45, 40, {0: None}),
    (40, 40, None, {0: None}),
]


@pytest.mark.parametrize(("at_a", "at_b", "forth", "lacks"), _UNTOLD)
def test_a_group_that_never_left_lacks_nothing_on_the_way_back(
    at_a: int, at_b: int, forth: int | None, lacks: dict[int, int | None]
) -> None:
    at = seen(
        group_here=group(0, at_a),
        group_there=group(0, at_b),
        positions={SOURCE: {0: forth}, TARGET: {0: None}},
    )
    assert phase.lacking(at, TARGET, "billing") == {("orders", part): offset for part, offset in lacks.items()}


@pytest.mark.parametrize("closed", [True, False])
def test_what_was_said_of_a_topic_outlives_the_topic(closed: bool) -> None:
    """A look that does not see it must not take its producers for those of the side they have left."""
    state = {side: ControlState() for side in Side}
    state[TARGET].turns["orders"] = TurnStart(number=2)
    said = {
        side: SimpleNamespace(
            state=each, stopped={"orders": ""} if closed else {}, closed={"orders"} if closed else set()
        )
        for side, each in state.items()
    }
    pair: Any = SimpleNamespace(copy_of=lambda _, name: name, words=said)
    observer = PairObserver.__new__(PairObserver)
    observer._pair = pair  # noqa: SLF001 - one part of a look, without clusters
    forth, back = (observer._word(side, None, "orders", {}) for side in (SOURCE, TARGET))  # noqa: SLF001
    assert (forth.closed, forth.stopped, back.begun) == (closed, closed, True)
    assert phase.live_side(seen(forth=forth, back=back), "orders") is TARGET


def test_late_records_that_the_operator_accepts_are_seen() -> None:
    """By both words: on the topic's end, and after the flow's turn; each for the topic that is there now."""
    state = ControlState()
    state.done["orders"] = DoneTopic(source_topic_id="aa" * 16, ends={0: 10, 1: 10}, accepted={0: 12, 2: 3})
    state.accepted["orders"] = AcceptedLate(source_topic_id="aa" * 16, ends={0: 11, 1: 14})
    words = {SOURCE: SimpleNamespace(state=state, stopped={}, closed=set())}
    pair: Any = SimpleNamespace(copy_of=lambda _, name: f"A.{name}", words=words)
    slow: Any = {SOURCE: SimpleNamespace(foreign={})}
    observer = PairObserver.__new__(PairObserver)
    observer._pair, observer._slow = pair, slow  # noqa: SLF001 - one part of a look, without clusters
    there = TopicSeen(name="orders", topic_id="aa" * 16, ends={0: 13, 1: 14, 2: 3})
    assert observer._word(SOURCE, there, "orders", {}).accepted == {0: 12, 1: 14, 2: 3}  # noqa: SLF001
    state.accepted["orders"] = AcceptedLate(source_topic_id="bb" * 16, ends={1: 14})
    assert observer._word(SOURCE, there, "orders", {}).accepted == {0: 12, 1: 0, 2: 3}  # noqa: SLF001
