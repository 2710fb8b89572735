"""Checks on producers: fences, and records in wrong places."""

from __future__ import annotations

from collections.abc import Iterator

from sparkmirror.migrate import phase
from sparkmirror.migrate.actions import listed
from sparkmirror.migrate.checks.facts import Facts
from sparkmirror.migrate.checks.precondition import Check, CheckFind, fail, ok, unknown, warn
from sparkmirror.migrate.file import Fence
from sparkmirror.migrate.observation import Side
from sparkmirror.migrate.phase import Phase


def _fence(facts: Facts) -> Iterator[CheckFind]:
    still = facts.file.policies.still
    if facts.file.fence is Fence.NONE:
        yield ok(f"fence: none: people stop producers, and ends must stand still for {still:g} s")
        return
    if facts.file.fence is Fence.HOOK:
        yield ok(f"fence: hook: your command stops producers, and ends must stand still for {still:g} s")
        return
    who: set[str] = set()
    for side, topic in facts.topics():
        fence = phase.topic_at(facts.seen, side, topic).fence
        if fence.impossible:
            yield fail(f"{topic} at {facts.alias(side)}: {fence.impossible}")
        who |= fence.writers
    yield ok(f"each principal that may write can be denied: {listed(sorted(who)) or 'none'}")


def _denied_there(facts: Facts) -> Iterator[CheckFind]:
    if facts.file.fence is not Fence.ACL:
        yield unknown("with another fence than ACLs no ACL is read")
        return
    for side, topic in facts.topics():
        if phase.topic_phase(facts.seen, topic).live is not side:
            continue
        here, there = (phase.topic_at(facts.seen, at, topic).fence for at in (side, side.other))
        held = (here.writers - (here.denied_somewhere - here.added)) & (there.denied_somewhere - there.added)
        if held:
            yield fail(f"an ACL at {facts.alias(side.other)} denies {listed(sorted(held))} to write to {topic}")


def _super_users(facts: Facts) -> Iterator[CheckFind]:
    if facts.file.fence is not Fence.ACL:
        yield ok("no ACL is needed: producers are stopped otherwise")
        return
    for side in facts.sides:
        alias, there = facts.alias(side), facts.super_users.get(side)
        if there:
            yield unknown(f"the brokers of {alias} have super users, whom no ACL holds; no request tells who is one")
        elif there is None and facts.seen.clusters[side].authorizer:
            yield unknown(f"whether {alias} has super users, whom no ACL holds, is not known")


def _acks_zero(facts: Facts) -> Iterator[CheckFind]:
    if facts.file.fence is Fence.ACL:
        yield unknown("no request tells who sends with acks=0: such a producer loses what it sends while it is denied")
    else:
        yield ok("producers are stopped before the ends are published, so none is refused")


def _open_transactions(facts: Facts) -> Iterator[CheckFind]:
    for side, topic in facts.topics():
        there = phase.topic_at(facts.seen, side, topic)
        if there.open_transactions:
            who = listed(there.open_transactions)
            yield warn(f"{topic} at {facts.alias(side)} has an open transaction of {who}")
        elif there.transactions_untold:
            yield unknown(f"{topic} at {facts.alias(side)}: {there.transactions_untold}")


def _leaking(facts: Facts) -> Iterator[CheckFind]:
    for side, topic in facts.topics():
        now = phase.topic_phase(facts.seen, topic)
        if now.phase is Phase.LEAKING:
            count = sum(phase.leaks(facts.seen, now.live, topic).values())
            yield warn(f"{count:,} offsets of {topic} at {facts.alias(side)} lie beyond its published ends")
        elif now.live is not side:
            continue
        elif count := _stragglers(facts, side.other, topic):
            yield warn(
                f"{count:,} offsets of {topic} were written at {facts.alias(side.other)} after it had moved to"
                f" {facts.alias(side)}",
                "stop who writes there, and write again what is needed; then `sparkmirror topics done` accepts them",
            )


def _stragglers(facts: Facts, left: Side, topic: str) -> int:
    """Count what came to a renamed copy's topic at the side it has left.

    Under a kept name that log grows by copies; the loss ledger tells others' records.
    """
    said = phase.word(facts.seen, left, topic)
    if phase.keeps_names(facts.seen, topic) or not said.done or not phase.has_come(facts.seen, topic):
        return 0
    ends = phase.topic_at(facts.seen, left, topic).ends
    known = {part: max(said.ends.get(part, 0), said.accepted.get(part, 0)) for part in ends}
    return sum(max(end - known[part], 0) for part, end in ends.items())


def _written_early(facts: Facts) -> Iterator[CheckFind]:
    for _, topic in facts.topics():
        if not phase.keeps_names(facts.seen, topic):
            continue
        live = phase.live_side(facts.seen, topic)
        for side in (live, live.other) if phase.has_come(facts.seen, topic) else (live,):
            for entry in phase.word(facts.seen, side.other, topic).foreign:
                yield warn(f"{topic} at {facts.alias(side)}: {entry}")


def _target_records(facts: Facts) -> Iterator[CheckFind]:
    for side, topic in facts.topics():
        said, there = phase.word(facts.seen, side, topic), facts.alias(side.other)
        has_come = phase.has_come(facts.seen, topic)
        if not (has_come and said.copy == topic):  # else producers' own records, which `written-early` tells
            for entry in said.foreign:
                yield warn(f"{said.copy} at {there}: {entry}")
        if has_come:
            continue
        copy = phase.topic_at(facts.seen, side.other, said.copy)
        held = sum(copy.ends.values())
        if held and said.lag is None and facts.status.get(side) is None:
            yield fail(f"{said.copy} at {there} holds {held:,} offsets, and no flow is known to have written them")
        own = phase.topic_at(facts.seen, side.other, topic)
        if said.copy != topic and (held := sum(own.ends.values())):
            yield warn(f"{topic} at {there}, where the producers go, holds {held:,} offsets already")


PRODUCER_CHECKS = (
    Check(
        id="fence-complete",
        what="each principal that may write can be denied",
        remedy="grant the producers WRITE by their names, or write fence: hook or fence: none in the migration's file",
        look=_fence,
    ),
    Check(
        id="denied-there",
        what="no ACL of yours refuses a producer where it will go",
        remedy="remove that ACL, or leave the producer where it is: a switch lifts its own denials alone",
        look=_denied_there,
    ),
    Check(
        id="super-users",
        what="the brokers name no super users",
        remedy="if a producer signs in as a super user, stop it before the switch",
        look=_super_users,
    ),
    Check(
        id="acks-zero",
        what="no producer loses records while it is refused",
        remedy="stop producers with acks=0 before the switch",
        look=_acks_zero,
    ),
    Check(
        id="open-transactions",
        what="no transaction is open in the topics",
        remedy="wait for its end; the fence makes its producer abort it, and else its time-out does",
        look=_open_transactions,
    ),
    Check(
        id="written-early",
        what="no producer has written among the copies at the side that is left",
        remedy="they stay there: write those that are needed again; `sparkmirror losses ack` marks them as known",
        look=_written_early,
    ),
    Check(
        id="leaking",
        what="no producer has written beyond published ends",
        remedy="stop who writes there; before the producers are let in, the switch itself publishes later ends",
        look=_leaking,
    ),
    Check(
        id="target-records",
        what="the copies hold the mirror's records only",
        remedy="move the topic of that name away before the mirror begins; delete nothing that consumers need",
        look=_target_records,
    ),
)
