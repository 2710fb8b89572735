"""Each reason against a switch, planted, and the words that people read."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.migrate.planted import (
    FENCES,
    SOURCE,
    TARGET,
    WORDS,
    file,
    group,
    renamed,
    seen,
    the_set,
    topic,
    turned,
    with_cluster,
    with_flow,
)

from sparkmirror.migrate import phase
from sparkmirror.migrate.file import Fence
from sparkmirror.migrate.observation import FenceSeen, GroupSeen, Observation, Side

_FULL, _MORE = {0: 100, 1: 50}, {0: 103, 1: 50}
_FAIR = seen(here=topic(_FULL), there=topic(_FULL), forth=turned(WORDS["none"]))
_FOREIGN = "2 records at offset 17 of orders-0 are another producer's"


def _at(at: Observation, side: Side, **changed: object) -> Observation:
    """Return an observation with another topic at one side."""
    cluster = at.clusters[side]
    one = replace(cluster.topics["orders"], **changed)  # type: ignore[arg-type]
    return with_cluster(at, side, replace(cluster, topics={"orders": one}))


def _said(at: Observation, side: Side, **changed: object) -> Observation:
    """Return an observation with another word of the flow from one side."""
    flow = at.flows[side]
    one = replace(flow.topics["orders"], **changed)  # type: ignore[arg-type]
    return replace(at, flows={**at.flows, side: replace(flow, topics={"orders": one})})


def _working(at: Observation, side: Side, at_work: bool) -> Observation:
    return with_flow(at, side, replace(at.flows[side], at_work=at_work))


_NO_FLOW_BACK = replace(_FAIR, flows={SOURCE: _FAIR.flows[SOURCE]})
_NO_FLOW = replace(_FAIR, flows={})
_RENAMED = _said(_NO_FLOW_BACK, SOURCE, copy="A.orders")
_IMPOSSIBLE = FenceSeen(
    writers=FENCES["open"].writers, impossible="`ALLOW WRITE User:*`: it would hold the mirror, too"
)
_ONE_WAY = seen(here=topic(_FULL, "closed"), there=topic({0: 0, 1: 0}), forth=replace(WORDS["all"], copy="A.orders"))
_ONE_WAY = replace(_ONE_WAY, flows={SOURCE: _ONE_WAY.flows[SOURCE]})
"""Renamed copies that have moved, with nothing that flows back; nobody has written at the target."""
_SHUT = FenceSeen(impossible="no ACL allows WRITE", shut=True)
_ARMED = seen(here=topic(_FULL, "closed"), there=topic(_FULL), forth=WORDS["all"], back=turned(WORDS["none"]))
_DRAINED = seen(here=topic(_FULL, "closed"), there=topic(_FULL), forth=turned(WORDS["all"]))
_MOVED = seen(here=topic(_FULL, "closed"), there=topic(_MORE), forth=WORDS["all"], back=turned(WORDS["none"]))

_CLOSED_ALONE = _said(replace(_MOVED, flows={SOURCE: _MOVED.flows[SOURCE]}), SOURCE, closed=True)
"""Completed, and the flow back is out of the file."""
_CAME_BACK = seen(
    here=topic(_MORE),
    there=topic(_FULL, "closed"),
    forth=turned(WORDS["none"]),
    back=WORDS["all"],
)
"""There and back: producers write at the source again."""

# Observation, where producers shall go, and the ids of what blocks.
_PRODUCERS = [
    (_FAIR, TARGET, []),
    (_FAIR, SOURCE, []),
    (_MOVED, SOURCE, []),
    (_MOVED, TARGET, []),
    (_DRAINED, TARGET, []),
    (_RENAMED, TARGET, []),
    (_NO_FLOW, TARGET, ["no-flow"]),
    (_ONE_WAY, SOURCE, []),
    (_at(_ONE_WAY, TARGET, ends=_MORE), SOURCE, ["no-flow"]),
    (_at(_ONE_WAY, TARGET, fence=_IMPOSSIBLE), SOURCE, ["fence-complete"]),
    (_at(_ONE_WAY, TARGET, fence=_SHUT), SOURCE, []),
    (_NO_FLOW_BACK, SOURCE, []),
    (_NO_FLOW_BACK, TARGET, ["reverse-flow-ready"]),
    (_at(_ARMED, TARGET, fence=_SHUT), SOURCE, []),  # nobody has been let in yet: nobody is to be denied
    (_at(_MOVED, TARGET, fence=_SHUT), SOURCE, ["fence-complete"]),
    (_at(_FAIR, SOURCE, fence=_SHUT), TARGET, ["fence-complete"]),
    (_working(_FAIR, SOURCE, False), TARGET, ["mirror-down"]),
    (_working(_FAIR, TARGET, False), TARGET, ["reverse-flow-ready"]),
    (_working(_MOVED, TARGET, False), SOURCE, ["mirror-down"]),
    (_working(_MOVED, SOURCE, False), SOURCE, ["reverse-flow-ready"]),
    (_at(_FAIR, SOURCE, ends={}), TARGET, ["missing-topic"]),
    (_at(_MOVED, TARGET, leaderless=(1,)), SOURCE, ["leaderless"]),
    (_at(_FAIR, SOURCE, leaderless=(1,)), TARGET, ["leaderless"]),
    (_at(_FAIR, TARGET, leaderless=(1,)), TARGET, []),
    (_said(_FAIR, SOURCE, lag=1000), TARGET, []),
    (_said(_FAIR, SOURCE, lag=1001), TARGET, ["lag"]),
    (_said(_FAIR, SOURCE, lag=None), TARGET, ["lag"]),
    (_said(_MOVED, TARGET, lag=None), SOURCE, ["lag"]),
    (_said(_DRAINED, SOURCE, lag=5000), TARGET, []),
    (_at(_FAIR, SOURCE, fence=_IMPOSSIBLE), TARGET, ["fence-complete"]),
    (_at(_FAIR, TARGET, fence=_IMPOSSIBLE), TARGET, []),
    (_at(_MOVED, TARGET, fence=_IMPOSSIBLE), SOURCE, ["fence-complete"]),
    (_at(_DRAINED, SOURCE, ends=_MORE), TARGET, ["leaking"]),
    (_said(_FAIR, SOURCE, foreign=(_FOREIGN,)), TARGET, []),
    (_said(_MOVED, SOURCE, foreign=(_FOREIGN,)), SOURCE, []),
    (_said(_FAIR, TARGET, foreign=(_FOREIGN,)), TARGET, []),
    (_said(_MOVED, TARGET, foreign=(_FOREIGN,)), SOURCE, []),
    (_said(_MOVED, SOURCE, closed=True), SOURCE, ["completed"]),
    (_CLOSED_ALONE, SOURCE, ["completed"]),
    (_CLOSED_ALONE, TARGET, []),
    (_working(_said(_FAIR, SOURCE, lag=None), SOURCE, False), TARGET, ["mirror-down", "lag"]),
]


@pytest.mark.parametrize(("at", "to", "blockers"), _PRODUCERS)
def test_what_keeps_producers(at: Observation, to: Side, blockers: list[str]) -> None:
    one = file()
    assert [each.id for each in phase.producers_blockers(at, one, the_set(one), to)] == blockers


@pytest.mark.parametrize("fence", [Fence.HOOK, Fence.NONE])
def test_a_fence_without_acls_needs_none(fence: Fence) -> None:
    one = file(fence)
    assert not phase.producers_blockers(_at(_FAIR, SOURCE, fence=_IMPOSSIBLE), one, the_set(one), TARGET)


# Members and commits of a group at both sides, and its translation.
_READING = seen(here=topic(_FULL), there=topic(_FULL), group_here=group(2, 40), positions={SOURCE: {0: 40}})
_STOPPED = seen(here=topic(_FULL), there=topic(_FULL), group_here=group(0, 40), positions={SOURCE: {0: 40}})
_SET = seen(
    here=topic(_FULL),
    there=topic(_FULL),
    group_here=group(0, 40),
    group_there=group(0, 40),
    positions={SOURCE: {0: 40}},
)
_UNTOLD = seen(here=topic(_FULL), there=topic(_FULL), group_here=group(0, 40), positions={SOURCE: {0: None}})
_BOTH = seen(group_here=group(2, 40), group_there=group(1, 40), positions={SOURCE: {0: 40}})
_BACK_AGAIN = seen(group_here=group(2, 40), group_there=group(0, 60), positions={SOURCE: {0: 40}})
_THERE = seen(group_here=group(0, 40), group_there=group(2, 60), positions={SOURCE: {0: 40}})

_EARLY = seen(group_here=group(0, 40), group_there=group(1, 12), positions={SOURCE: {0: 40}})
_EARLY_AT_AN_UNKNOWN = seen(group_here=group(0, 40), group_there=group(1), positions={SOURCE: {0: None}})

_CONSUMERS = [
    (_EARLY, TARGET, ["unrouted-commits: billing reads at B from before its position at A: stop it at B"]),
    (_EARLY_AT_AN_UNKNOWN, TARGET, []),
    (_READING, TARGET, ["members: billing has 2 members at A: stop them"]),
    (_STOPPED, TARGET, []),
    (_SET, TARGET, []),
    (_THERE, TARGET, []),
    (_UNTOLD, TARGET, ["not-copied: billing: orders-0: not copied yet"]),
    (_BOTH, TARGET, ["on-both-sides: billing has members at A and at B"]),
    (_BOTH, SOURCE, ["on-both-sides: billing has members at B and at A"]),
    (
        _BACK_AGAIN,
        TARGET,
        ["unrouted-commits: billing reads at A again, though it has read on at B: stop it at A"],
    ),
    (_THERE, SOURCE, ["members: billing has 2 members at B: stop them"]),
    (replace(_STOPPED, flows={}), TARGET, ["no-flow: nothing copies from A to B, and billing may have read at A"]),
    (_NO_FLOW, TARGET, []),  # a group that has committed nothing has nothing to move
    (replace(_THERE, flows={}), TARGET, []),  # it reads at B already
    (_working(_STOPPED, SOURCE, False), TARGET, ["mirror-down: no mirror works on A->B"]),
]


@pytest.mark.parametrize(("at", "to", "blockers"), _CONSUMERS)
def test_what_keeps_consumers(at: Observation, to: Side, blockers: list[str]) -> None:
    one = file()
    assert [str(each) for each in phase.consumers_blockers(at, one, the_set(one), to)] == blockers


@pytest.mark.parametrize(
    ("kind", "at", "to", "blocked"),
    [
        ("consumers-first", _READING, TARGET, True),
        ("consumers-first", _STOPPED, TARGET, True),
        ("consumers-first", _BACK_AGAIN, TARGET, True),
        ("consumers-first", _SET, TARGET, False),
        ("consumers-first", _THERE, TARGET, False),
        ("producers-first", _READING, TARGET, False),
        ("all-at-once", _READING, TARGET, False),
        ("consumers-first", _MOVED, SOURCE, False),
    ],
)
def test_consumers_first(kind: str, at: Observation, to: Side, blocked: bool) -> None:
    one = file(kind=kind)
    blockers = phase.producers_blockers(at, one, the_set(one), to)
    assert [str(each) for each in blockers if each.id == "consumers-first"] == (
        ["consumers-first: billing must move to B first"] if blocked else []
    )


_LEFT = [
    (_MOVED, {}, []),
    (_said(_MOVED, SOURCE, closed=True), {}, []),
    (_CLOSED_ALONE, {}, []),
    (_FAIR, {}, ["not-moved: shop is copying at A: producers must write at the target"]),
    (_ARMED, {}, ["not-moved: shop is armed at B: producers must write at the target"]),
    (_CAME_BACK, {}, ["not-moved: shop is moved at A: producers must write at the target"]),
    (_MOVED, {SOURCE: group(0, 40)}, ["consumers-first: billing has not left A"]),
    (_MOVED, {SOURCE: group(1, 40), TARGET: group(0, 40)}, ["consumers-first: billing has not left A"]),
    (_MOVED, {SOURCE: group(0, 40), TARGET: group(0, 40)}, []),
    (_MOVED, {SOURCE: group(0, 40), TARGET: group(1, 60)}, []),
]


@pytest.mark.parametrize(("at", "groups", "blockers"), _LEFT)
def test_what_keeps_a_way_back(at: Observation, groups: dict[Side, GroupSeen], blockers: list[str]) -> None:
    for side, one in groups.items():
        at = with_cluster(at, side, replace(at.clusters[side], groups={"billing": one}))
    if groups:
        flow = replace(at.flows[SOURCE], positions={"billing": {("orders", 0): 40}})
        at = replace(at, flows={**at.flows, SOURCE: flow})
    assert [str(each) for each in phase.complete_blockers(at, the_set(file()))] == blockers


# Words of each blocker.
_TOLD = [
    (
        _NO_FLOW,
        TARGET,
        "no-flow: nothing copies from A to B, and producers may have written to orders at A",
    ),
    (_NO_FLOW_BACK, TARGET, "reverse-flow-ready: there is no flow back, so orders would have no way back"),
    (
        _working(_FAIR, TARGET, False),
        TARGET,
        "reverse-flow-ready: no mirror works on B->A, so orders would have no way back",
    ),
    (_working(_FAIR, SOURCE, False), TARGET, "mirror-down: no mirror works on A->B"),
    (_at(_FAIR, SOURCE, ends={}), TARGET, "missing-topic: A has no topic orders"),
    (_at(_FAIR, SOURCE, leaderless=(1,)), TARGET, "leaderless: orders-1 has no leader, so its end is not known"),
    (
        _said(_FAIR, SOURCE, lag=12345),
        TARGET,
        "lag: the copy of orders lacks 12,345 offsets; at most 1,000 may be missing",
    ),
    (
        _said(_FAIR, SOURCE, lag=None),
        TARGET,
        "lag: the copy of orders lacks an unknown number of offsets; at most 1,000 may be missing",
    ),
    (
        _at(_FAIR, SOURCE, fence=_IMPOSSIBLE),
        TARGET,
        "fence-complete: orders: `ALLOW WRITE User:*`: it would hold the mirror, too",
    ),
    (_at(_DRAINED, SOURCE, ends=_MORE), TARGET, "leaking: 3 offsets of orders lie beyond its published ends"),
    (_said(_MOVED, SOURCE, closed=True), SOURCE, "completed: orders was completed: there is no way back"),
]


@pytest.mark.parametrize(("at", "to", "words"), _TOLD)
def test_words(at: Observation, to: Side, words: str) -> None:
    one = file()
    assert str(phase.producers_blockers(at, one, the_set(one), to)[0]) == words


@pytest.mark.parametrize(
    ("at", "switch", "reverse"),
    [
        (_FAIR, True, False),
        (_DRAINED, True, False),
        (_MOVED, False, True),
        (_NO_FLOW, False, False),
        (_working(_MOVED, TARGET, False), False, False),
        (_said(_MOVED, SOURCE, closed=True), False, False),
    ],
)
def test_verdicts(at: Observation, switch: bool, reverse: bool) -> None:
    one = file(groups=())
    told = phase.verdict(at, one, the_set(one))
    assert (told.can_switch, told.can_reverse) == (switch, reverse)


def test_renamed_copies_need_no_flow_back() -> None:
    one = file()
    at = seen(here=topic(_FULL), there=topic(_FULL), forth=renamed(WORDS["none"], SOURCE), back=None)
    assert not phase.producers_blockers(at, one, the_set(one), TARGET)
