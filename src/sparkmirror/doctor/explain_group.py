"""The checks of a consumer group: are the offsets at the target, or why not?

In the order of decision. Without I/O.
"""

from __future__ import annotations

from collections.abc import Iterator

from sparkmirror.doctor.explain_topic import filter_step, nobody_works
from sparkmirror.doctor.explanation import Explanation, GroupFacts, Mark, Reason, Step
from sparkmirror.doctor.group_commands import within_the_log, without_skipping
from sparkmirror.engine.snapshot import Flow, Group
from sparkmirror.sync.group_standing import GroupState


def explain_group(facts: GroupFacts) -> Explanation:
    """Run check after check, up to the first NO."""
    steps: list[Step] = []
    for step in _steps(facts):
        steps.append(step)
        if step.mark is Mark.NO:
            break
    return Explanation(flow=facts.flow, kind="group", name=facts.group, steps=tuple(steps))


def _steps(facts: GroupFacts) -> Iterator[Step]:
    yield _filter(facts)
    yield _permission(facts)
    yield _exists(facts)
    yield _topics(facts)
    if not facts.running.fresh or facts.running.flow is None:
        yield nobody_works(facts.running)
    yield _state(facts)
    flow = facts.running.flow
    leader = (flow.leader if flow is not None else "") or "a process"
    yield Step(check="lease", mark=Mark.YES, words=f"{leader} works on the flow")


def _filter(facts: GroupFacts) -> Step:
    if not facts.checkpoints:
        words, change = "emit.checkpoints.enabled is false", "write emit.checkpoints.enabled = true"
        return Step(check="filter", mark=Mark.NO, words=words, reason=Reason.CHECKPOINTS_OFF, change=change)
    return filter_step(facts.filtered)


def _permission(facts: GroupFacts) -> Step:
    if facts.trouble:
        change = f"see that {facts.source}'s brokers run, and that its bootstrap.servers and sign-in are right"
        return Step(
            check="permission", mark=Mark.NO, words=facts.trouble, reason=Reason.SOURCE_UNREACHABLE, change=change
        )
    if facts.refused:
        words = f"{facts.source}: {facts.refused}"
        change = f"`{facts.grant}`"
        return Step(check="permission", mark=Mark.NO, words=words, reason=Reason.SOURCE_PERMISSION, change=change)
    return Step(check="permission", mark=Mark.YES, words=f"its offsets may be read at {facts.source}")


def _exists(facts: GroupFacts) -> Step:
    if not facts.there:
        words = f"{facts.source} has no such group, or sparkmirror's principal may not see it"
        change = "look for a slip in the name; else grant DESCRIBE on it"
        return Step(check="exists", mark=Mark.NO, words=words, reason=Reason.NOT_AT_SOURCE, change=change)
    if not facts.looked_after:
        kind = facts.type if facts.type not in ("", "classic", "consumer") else facts.protocol
        words = f"it is a {kind} group, and consumer groups are translated only"
        change = "move it by hand"
        if facts.type == "share" and not facts.sync:
            change = "write sync.group.offsets.enabled = true: share groups are translated with it"
        return Step(check="exists", mark=Mark.NO, words=words, reason=Reason.GROUP_TYPE, change=change)
    return Step(check="exists", mark=Mark.YES, words=f"it is at {facts.source}")


def _topics(facts: GroupFacts) -> Step:
    if facts.type == "share":
        return Step(check="topics", mark=Mark.YES, words="a share group keeps where it starts, and commits nothing")
    if not facts.topics:
        change = "nothing: it is translated when it has committed offsets"
        return Step(
            check="topics", mark=Mark.NO, words="it has committed no offset", reason=Reason.NO_OFFSETS, change=change
        )
    if not facts.copied:
        words = f"it has committed offsets of {_named(facts.topics)}, and none of these is copied"
        return Step(
            check="topics",
            mark=Mark.NO,
            words=words,
            reason=Reason.NO_COPIED_TOPIC,
            change=f"add {facts.topics[0]} to topics",
        )
    return Step(check="topics", mark=Mark.YES, words=f"it has committed offsets of {_named(facts.copied)}")


def _named(topics: tuple[str, ...]) -> str:
    more = f" and {len(topics) - 3:,} more" if len(topics) > 3 else ""
    return ", ".join(topics[:3]) + more


def _state(facts: GroupFacts) -> Step:
    flow = facts.running.flow
    group = next((group for group in flow.groups if group.group == facts.group), None) if flow is not None else None
    if flow is None or group is None:
        change = "restart the mirror: with refresh.groups.enabled = false it looks for groups at its start only"
        if facts.refresh_s is not None:
            change = f"wait: the mirror looks each {facts.refresh_s:,} s (refresh.groups.interval.seconds)"
        return Step(
            check="state", mark=Mark.NO, words="the mirror has not seen it yet", reason=Reason.NOT_SEEN, change=change
        )
    return _seen(facts, flow, group)


def _seen(facts: GroupFacts, flow: Flow, group: Group) -> Step:
    """Return the step on the state of a group that the mirror has seen."""
    if group.state is GroupState.NOT_SYNCED:
        return Step(
            check="state",
            mark=Mark.NO,
            words=group.reason,
            reason=Reason.NOT_SYNCED,
            change="change what the reason names",
        )
    if group.state is GroupState.BEYOND_END:
        return Step(
            check="state",
            mark=Mark.NO,
            words=group.reason,
            reason=Reason.BEYOND_END,
            change=within_the_log(flow, group),
        )
    cost = _cost(group)
    if group.skipped:
        state = group.reason or "its offsets are translated"
        return Step(
            check="state",
            mark=Mark.NOTE,
            words=f"{state}{cost}",
            reason=Reason.WOULD_SKIP,
            change=without_skipping(flow, group),
        )
    if group.state is GroupState.CATCHING_UP:
        change = f"wait for the copy: `sparkmirror groups FILE --flow '{facts.flow}'` shows its lag"
        words = f"{group.reason}{cost}"
        return Step(check="state", mark=Mark.NOTE, words=words, reason=Reason.CATCHING_UP, change=change)
    if not facts.sync:
        words = "its offsets are in the checkpoints topic, and not set at the target"
        change = "write sync.group.offsets.enabled = true to set them"
        return Step(check="state", mark=Mark.NOTE, words=words, reason=Reason.CHECKPOINTS_ONLY, change=change)
    return Step(check="state", mark=Mark.YES, words=f"its offsets are at the target{cost}")


def _cost(group: Group) -> str:
    """Return words on what the group would skip and read again, if anything is known."""
    skipped = f", {group.skipped:,} records would be skipped" if group.skipped is not None else ""
    return skipped + (f", {group.reread:,} records would be read again" if group.reread is not None else "")
