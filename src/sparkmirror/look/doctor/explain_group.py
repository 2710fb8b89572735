"""The checks of a consumer group: are the offsets at the target, or why not?

In the order of decision. Without I/O.
"""

from __future__ import annotations

from collections.abc import Iterator

from sparkmirror.look.doctor.explain_topic import nobody_works
from sparkmirror.look.doctor.explanation import Explanation, GroupFacts, Reason, Step, no, note, step_of, until_no, yes
from sparkmirror.look.doctor.group_commands import within_the_log, without_skipping
from sparkmirror.snapshot.group_standing import GroupState
from sparkmirror.snapshot.snapshot import Flow, Group


def explain_group(facts: GroupFacts) -> Explanation:
    """Run check after check, up to the first NO."""
    return Explanation(flow=facts.flow, kind="group", name=facts.group, steps=until_no(_steps(facts)))


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
    yield yes("lease", f"{leader} works on the flow")


def _filter(facts: GroupFacts) -> Step:
    if not facts.checkpoints:
        words, change = "emit.checkpoints.enabled is false", "write emit.checkpoints.enabled = true"
        return no("filter", Reason.CHECKPOINTS_OFF, words, change)
    return step_of(facts.filtered)


def _permission(facts: GroupFacts) -> Step:
    if facts.trouble:
        change = f"see that {facts.source}'s brokers run, and that its bootstrap.servers and sign-in are right"
        return no("permission", Reason.SOURCE_UNREACHABLE, facts.trouble, change)
    if facts.refused:
        words = f"{facts.source}: {facts.refused}"
        change = f"`{facts.grant}`"
        return no("permission", Reason.SOURCE_PERMISSION, words, change)
    return yes("permission", f"its offsets may be read at {facts.source}")


def _exists(facts: GroupFacts) -> Step:
    if not facts.there:
        words = f"{facts.source} has no such group, or sparkmirror's principal may not see it"
        change = "look for a slip in the name; else grant DESCRIBE on it"
        return no("exists", Reason.NOT_AT_SOURCE, words, change)
    if not facts.looked_after:
        kind = facts.type if facts.type not in ("", "classic", "consumer") else facts.protocol
        words = f"it is a {kind} group, and consumer groups are translated only"
        change = "move it by hand"
        if facts.type == "share" and not facts.sync:
            change = "write sync.group.offsets.enabled = true: share groups are translated with it"
        return no("exists", Reason.GROUP_TYPE, words, change)
    return yes("exists", f"it is at {facts.source}")


def _topics(facts: GroupFacts) -> Step:
    if facts.type == "share":
        return yes("topics", "a share group keeps where it starts, and commits nothing")
    if not facts.topics:
        change = "nothing: it is translated when it has committed offsets"
        return no("topics", Reason.NO_OFFSETS, "it has committed no offset", change)
    if not facts.copied:
        words = f"it has committed offsets of {_named(facts.topics)}, and none of these is copied"
        return no("topics", Reason.NO_COPIED_TOPIC, words, f"add {facts.topics[0]} to topics")
    return yes("topics", f"it has committed offsets of {_named(facts.copied)}")


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
        return no("state", Reason.NOT_SEEN, "the mirror has not seen it yet", change)
    return _seen(facts, flow, group)


def _seen(facts: GroupFacts, flow: Flow, group: Group) -> Step:
    """Return the step on the state of a group that the mirror has seen."""
    if group.state is GroupState.NOT_SYNCED:
        return no("state", Reason.NOT_SYNCED, group.reason, "change what the reason names")
    if group.state is GroupState.BEYOND_END:
        return no("state", Reason.BEYOND_END, group.reason, within_the_log(flow, group))
    cost = _cost(group)
    if group.skipped:
        state = group.reason or "its offsets are translated"
        return note("state", Reason.WOULD_SKIP, f"{state}{cost}", without_skipping(flow, group))
    if group.state is GroupState.CATCHING_UP:
        change = f"wait for the copy: `sparkmirror groups FILE --flow '{facts.flow}'` shows its lag"
        words = f"{group.reason}{cost}"
        return note("state", Reason.CATCHING_UP, words, change)
    if not facts.sync:
        words = "its offsets are in the checkpoints topic, and not set at the target"
        change = "write sync.group.offsets.enabled = true to set them"
        return note("state", Reason.CHECKPOINTS_ONLY, words, change)
    return yes("state", f"its offsets are at the target{cost}")


def _cost(group: Group) -> str:
    """Return words on what the group would skip and read again, if anything is known."""
    skipped = f", {group.skipped:,} records would be skipped" if group.skipped is not None else ""
    return skipped + (f", {group.reread:,} records would be read again" if group.reread is not None else "")
