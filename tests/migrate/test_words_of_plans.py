"""What a person reads before a switch: the whole plan of each goal, and what its steps wait for."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.migrate.planted import SOURCE, TARGET, WORDS, file, group, seen, the_set, topic, turned

from sparkmirror.migrate import switch_plan
from sparkmirror.migrate.actions import Deny, Drain, SetPositions, Settle, WaitEmpty, listed
from sparkmirror.migrate.file import Fence
from sparkmirror.migrate.observation import FenceSeen
from sparkmirror.migrate.switch_plan import SwitchGoal, Who

_AT_A = seen(
    here=topic({0: 100, 1: 50}),
    there=topic({0: 90, 1: 50}, "nobody"),
    forth=turned(WORDS["none"]),
    group_here=group(2, 40),
    positions={SOURCE: {0: 40, 1: 20}},
)
_AT_B = seen(
    here=topic({0: 120, 1: 50}),
    there=topic({0: 100, 1: 50}, "closed"),
    forth=turned(WORDS["none"]),
    back=WORDS["all"],
    group_here=group(1, 110),
    group_there=replace(group(0, 40), readers=frozenset(), read_denied=True),
    positions={SOURCE: {0: 110}},
    live=TARGET,
)
_CONSUMERS = """\
wait until billing have no members at A: YOU stop them now
  clients: consumers: a rebalance at their stop
set 2 exact positions at B for billing
deny billing to read at A again, and let them read at B
  undo: lift the denials at A
  clients: consumers: YOU start them with bootstrap.servers=b1:9092; they read the next record
"""
_PRODUCERS = """\
deny WRITE on orders at A to User:batch, User:shop
  undo: lift these denials at A: producers that still run continue by themselves
  clients: producers that still run: TopicAuthorizationException for each record, not fatal; with acks=0 they lose what\
 they send
publish the 2 ends of orders at A
  undo: take the published ends back: B gets later records, too
wait until B has everything of orders
arm the way back: B->A begins exactly at the ends of orders
  undo: the same switch in the other direction, with nothing to copy
let producers write to orders at B
  undo: `sparkmirror migration reverse`
  clients: producers: YOU start them with bootstrap.servers=b1:9092
"""
_ALL = """\
wait until billing have no members at A: YOU stop them now
deny WRITE on orders at A to User:batch, User:shop
publish the 2 ends of orders at A
wait until B has everything of orders
arm the way back: B->A begins exactly at the ends of orders
set 2 exact positions at B for billing
let producers write to orders at B
deny billing to read at A again, and let them read at B
"""
_BACK = """\
wait until billing have no members at B: YOU stop them now
deny WRITE on orders at B to User:batch, User:shop
publish the 2 ends of orders at B
wait until A has everything of orders
arm the way back: A->B begins exactly at the ends of orders
set 1 exact positions at A for billing
let producers write to orders at A
deny billing to read at B again, and let them read at A
"""


def _text(at: object, goal: SwitchGoal, fence: Fence = Fence.ACL, *, short: bool = False) -> str:
    one = file(fence)
    lines = []
    for action in switch_plan.plan(one, at, the_set(one), goal):  # type: ignore[arg-type]
        lines.append(action.words(at))  # type: ignore[arg-type]
        if not short:
            for what, told in (("undo", action.undo(at)), ("clients", action.clients(at))):  # type: ignore[arg-type]
                lines += [f"  {what}: {told}"] if told else []
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.parametrize(
    ("at", "goal", "short", "text"),
    [
        (_AT_A, SwitchGoal(Who.CONSUMERS, TARGET), False, _CONSUMERS),
        (_AT_A, SwitchGoal(Who.PRODUCERS, TARGET), False, _PRODUCERS),
        (_AT_A, SwitchGoal(Who.ALL, TARGET), True, _ALL),
        (_AT_B, SwitchGoal(Who.ALL, SOURCE), True, _BACK),
        (_AT_A, SwitchGoal(Who.PRODUCERS, SOURCE), True, ""),
        (_AT_B, SwitchGoal(Who.PRODUCERS, TARGET), True, ""),
    ],
)
def test_a_whole_plan(at: object, goal: SwitchGoal, short: bool, text: str) -> None:
    assert _text(at, goal, short=short) == text


@pytest.mark.parametrize(
    ("fence", "first", "last"),
    [
        (
            Fence.HOOK,
            "have your command stop the producers of orders at A",
            "have your command start the producers of orders at B",
        ),
        (Fence.NONE, "YOU stop the producers of orders at A", "let producers write to orders at B"),
    ],
)
def test_fences_without_acls(fence: Fence, first: str, last: str) -> None:
    """The first look knows nothing of how long ends have stood still, so producers are always to be stopped."""
    at = seen(
        here=replace(topic({0: 100, 1: 50}), still_s=0.0), there=topic({0: 90, 1: 50}), forth=turned(WORDS["none"])
    )
    lines = _text(at, SwitchGoal(Who.PRODUCERS, TARGET), fence, short=True).splitlines()
    assert (lines[0], lines[-1]) == (first, last)


def test_what_steps_wait_for() -> None:
    at = _AT_A
    assert WaitEmpty(leaving=SOURCE, names=("billing",)).waits_for(at) == (
        "billing is Stable with app-0@10.0.3.7, app-1@10.0.3.7"
    )
    deny = Deny(leaving=SOURCE, names=("orders",), fence=Fence.ACL, still_s=5.0)
    assert deny.waits_for(at) == "not each broker denies orders: User:batch, User:shop"
    moving = replace(topic({0: 100}), steady=False, open_transactions=("payments-tx",))
    settle = Settle(leaving=SOURCE, names=("orders",))
    assert settle.waits_for(seen(here=moving)) == "orders has open transactions of payments-tx"
    assert settle.waits_for(seen(here=topic({0: 100}, steady=False))) == "orders still grows, or its replicas follow"
    lost = seen(here=replace(topic({0: 1}), leaderless=(1,)))
    assert settle.waits_for(lost) == "orders-1 has no leader"
    drain = Drain(leaving=SOURCE, names=("orders",))
    assert drain.waits_for(seen(here=topic({0: 1}), forth=WORDS["some"])) == "the copy lacks orders: 1 of 2 partitions"


def test_long_lists_are_cut_short() -> None:
    assert listed(["a"]) == "a"
    assert listed(list("abcde")) == "a, b, c, d, e"
    assert listed(list("abcdefg")) == "a, b, c, d, e and 2 more"


@pytest.mark.parametrize(("written", "shut"), [(0, True), (3, False)])
def test_where_nobody_was_let_in_nobody_is_to_be_denied(written: int, shut: bool) -> None:
    """After `arm` a switch can be undone: B's producers get their rights only when it opens."""
    nobody = FenceSeen(impossible="no ACL allows WRITE", shut=True)
    at_b = replace(topic({0: 100 + written, 1: 50}), fence=nobody)
    at = seen(here=topic({0: 100, 1: 50}, "closed"), there=at_b, forth=WORDS["all"], back=turned(WORDS["none"]))
    deny = Deny(leaving=TARGET, names=("orders",), fence=Fence.ACL, still_s=5.0)
    assert deny.seen(at) is shut


def test_a_place_that_is_further_at_the_other_side_is_told() -> None:
    """An old commit there would skip records: the plan says so before anything is done."""
    at = seen(
        group_here=group(0, 40, other=50),
        group_there=group(0, 41, other=10),
        positions={SOURCE: {0: 40, 1: 50}},
    )
    assert SetPositions(leaving=SOURCE, names=("billing",)).words(at) == (
        "set 1 exact positions at B for billing; these are further there and stay, so check that they were read there: "
        "orders-0 of billing"
    )
