"""The checks of a topic or partition: mirrored, or why not?

In the order of decision. Without I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sparkmirror.look.doctor.explanation import (
    Explanation,
    Reason,
    Running,
    Step,
    TopicFacts,
    no,
    note,
    step_of,
    until_no,
    yes,
)
from sparkmirror.look.doctor.parked import action, general_action
from sparkmirror.look.doctor.rule import counted
from sparkmirror.snapshot.snapshot import Cause, Flow, Partition, PartitionState, Topic

_WORST = (PartitionState.PARKED, PartitionState.UNKNOWN, PartitionState.WAITING, PartitionState.PAUSED)


def explain_topic(facts: TopicFacts) -> Explanation:
    """Run check after check, up to the first NO."""
    kind = "topic" if facts.partition is None else "partition"
    name = facts.topic if facts.partition is None else f"{facts.topic}:{facts.partition}"
    steps = until_no(step for check in _CHECKS for step in check(facts))
    return Explanation(flow=facts.flow, kind=kind, name=name, steps=steps, in_part=_is_in_part(facts, steps[-1]))


def _is_in_part(facts: TopicFacts, step: Step) -> bool:
    if facts.partition is not None:
        return False
    refused = step.reason in (Reason.REFUSED, Reason.NOT_AT_TARGET) and facts.running.fresh and bool(_asked(facts))
    return refused or step.reason in (Reason.LATE, Reason.PARKED, Reason.WAITING)


def nobody_works(running: Running) -> Step:
    """Return the step of a flow whose status is not published, or no longer."""
    by = f"; last was {running.leader}" if running.leader else ""
    if running.flow is None:
        words = running.trouble or "no process has published its status"
    else:
        words = f"its last status is {running.age_s:,.0f} s old ({running.flow.state})"
    change = "start `sparkmirror run FILE`, or look at the log of the process that should work on it"
    return no("lease", Reason.NOBODY_WORKS, words + by, change)


# --- checks by the file alone -----------------------------------------------------------------------


def _names(facts: TopicFacts) -> Iterator[Step]:
    return map(step_of, facts.names)


def _fan_in(facts: TopicFacts) -> Iterator[Step]:
    if facts.fan_in is not None:
        yield no("fan-in", Reason.FAN_IN, facts.fan_in.reason, facts.fan_in.remedy)
    else:
        others = "no other flow of the file" if facts.target.trouble else "no other flow"
        yield yes("fan-in", f"{others} copies into {facts.remote}")


# --- checks by the clusters -------------------------------------------------------------------------


def _permission(facts: TopicFacts) -> Iterator[Step]:
    unreachable = ((facts.source, Reason.SOURCE_UNREACHABLE), (facts.target, Reason.TARGET_UNREACHABLE))
    for side, reason in unreachable:
        if side.trouble:
            change = f"see that {side.alias}'s brokers run, and that its bootstrap.servers and sign-in are right"
            yield no("permission", reason, side.trouble, change)
    for side, reason in ((facts.source, Reason.SOURCE_PERMISSION), (facts.target, Reason.TARGET_PERMISSION)):
        if side.lacks is not None:
            change = " and ".join(f"`{command}`" for command in side.lacks.commands)
            yield no("permission", reason, str(side.lacks), change)
    if facts.target.partitions is None and facts.may_create is False:
        words = f"{facts.remote} is to be created, and sparkmirror's principal lacks CREATE at {facts.target.alias}"
        change = f"grant CREATE on the cluster or on {facts.remote}, or create {facts.remote} by hand"
        yield no("permission", Reason.TARGET_PERMISSION, words, change)
    known = [side.alias for side in (facts.source, facts.target) if side.told]
    words = (
        f"sparkmirror's principal has the rights it needs at {' and '.join(known)}"
        if known
        else "not known: brokers don't say"
    )
    yield yes("permission", words)


def _exists(facts: TopicFacts) -> Iterator[Step]:
    source, target, partition = facts.source, facts.target, facts.partition
    if source.partitions is None:
        words, change = f"{source.alias} has no topic {facts.topic}", "create it, or look for a slip in the name"
        yield no("exists", Reason.NOT_AT_SOURCE, words, change)
    elif partition is not None and partition >= source.partitions:
        words = f"{facts.topic} has {source.partitions} partitions at {source.alias}, counted from 0"
        yield no("exists", Reason.NOT_AT_SOURCE, words, "name a partition that there is")
    elif target.partitions is None or target.partitions < (source.partitions if partition is None else partition + 1):
        there = "is not there" if target.partitions is None else f"has only {target.partitions} partitions"
        refused = _refusal(facts)
        words = f"{facts.remote} {there} at {target.alias}" + (f": {refused}" if refused else "")
        yield no("exists", Reason.NOT_AT_TARGET, words, _until_seen(facts.refresh_s, "topics"))
    else:
        yield yes("exists", f"it is at {source.alias}, and its copy {facts.remote} at {target.alias}")


def _until_seen(refresh_s: int | None, kind: str) -> str:
    if refresh_s is None:
        return f"restart the mirror: with refresh.{kind}.enabled = false it looks for {kind} at its start only"
    return f"wait: the mirror looks each {refresh_s:,} s (refresh.{kind}.interval.seconds)"


# --- checks by the mirror at work -------------------------------------------------------------------


def _topic(facts: TopicFacts) -> Topic | None:
    flow = facts.running.flow
    named = (topic for topic in flow.topics if topic.topic == facts.topic) if flow is not None else iter(())
    return next(named, None)


def _refusal(facts: TopicFacts) -> str:
    """Return why the topic is refused; empty for a copied partition."""
    topic = _topic(facts)
    if topic is None or not facts.running.fresh or (facts.partition is not None and _asked(facts)):
        return ""
    return topic.refused


def _refused(facts: TopicFacts) -> Iterator[Step]:
    topic = _topic(facts)
    if refusal := _refusal(facts):
        change = "change what the reason names, or take the topic out of topics"
        yield no("refused", Reason.REFUSED, refusal, change)
    elif topic is not None and topic.gone:
        words = "it was deleted at the source, and its copy stays"
        yield no("refused", Reason.GONE, words, "delete the copy if no consumer reads it")
    else:
        yield yes("refused", "the mirror does not refuse it")


def _turn(facts: TopicFacts) -> Iterator[Step]:
    if facts.turn_of:
        words = f"it is the turn of {facts.turn_of}: the topic is live at {facts.target.alias}"
        yield no("turn", Reason.OPPOSITE_TURN, words, "nothing; `sparkmirror migration reverse` moves it back")


def _released(facts: TopicFacts) -> Iterator[Step]:
    topic, done = _topic(facts), facts.done
    undo = f"`sparkmirror topics undo FILE --topics {facts.topic}`, if its writers are at the source"
    late = 0
    if topic is not None:
        late = topic.late if facts.partition is None else topic.late_in.get(facts.partition, 0)
    if facts.recreated or late:
        words = f"{late:,} offsets came to the source after its writers were said to have moved"
        if facts.recreated:
            words = (
                "it was created again at the source after its writers were said to have moved: this one is not copied"
            )
        yield no("released", Reason.LATE, words, undo)
    if (done is not None and done.released) or (topic is not None and topic.released):
        words = "an operator has said that its writers have moved to the copy: all was copied, and it is left alone"
        yield no("released", Reason.RELEASED, words, undo)
    elif done is not None:
        words = "an operator has said that its writers have moved: it is copied up to where it ended then"
        yield note("released", Reason.ENDS, words, undo)
    else:
        yield yes("released", "no operator has said that its writers have moved")


def _paused(facts: TopicFacts) -> Iterator[Step]:
    if facts.paused_by:
        words = f"an operator has paused {facts.paused_by}"
        yield no("paused", Reason.PAUSED, words, f"`sparkmirror resume FILE --flow '{facts.flow}'`")
    else:
        yield yes("paused", "no operator has paused it")


def _asked(facts: TopicFacts) -> list[Partition]:
    """Return the topic's partitions, or only the requested partition."""
    topic = _topic(facts)
    partitions = topic.partitions if topic is not None else ()
    return [each for each in partitions if facts.partition in (None, each.partition)]


def _worst(facts: TopicFacts) -> tuple[Partition, int] | None:
    """Return a partition in the worst state, and the number in that state.

    `None` without partitions.
    """
    asked = _asked(facts)
    for state in _WORST:
        if in_state := [each for each in asked if each.state is state]:
            return in_state[0], len(in_state)
    return (asked[0], len(asked)) if asked else None


def _remedy(flow: Flow, facts: TopicFacts, partition: Partition) -> str:
    seen = _topic(facts)
    return general_action(partition.cause) if seen is None else action(flow, seen, partition)


def _state(facts: TopicFacts) -> Iterator[Step]:
    running = facts.running
    if not running.fresh or running.flow is None:
        return  # the check `_lease` tells why
    worst = _worst(facts)
    if worst is None:
        words, change = "the mirror does not list it yet", _until_seen(facts.refresh_s, "topics")
        yield no("state", Reason.NOT_SEEN, words, change)
        return
    partition, count = worst
    total = len(_asked(facts))
    what = f"{facts.topic}-{partition.partition}" + (f" ({count:,} of {total:,} partitions)" if total > 1 else "")
    why = f": {partition.reason or partition.cause}" if partition.reason or partition.cause is not Cause.NONE else ""
    if partition.state is PartitionState.PARKED:
        yield no("state", Reason.PARKED, f"{what} is parked{why}", _remedy(running.flow, facts, partition))
    elif partition.state is PartitionState.UNKNOWN:
        words = f"no task has reported {what} yet (the flow is {running.flow.state})"
        change = "wait; if it stays so, see that Spark has slots for all tasks (`sparkmirror doctor FILE`)"
        yield no("state", Reason.NOT_REPORTED, words, change)
    elif partition.cause is Cause.THROTTLED:
        return  # the check `_limit` tells why
    elif partition.state is PartitionState.WAITING:
        yield no("state", Reason.WAITING, f"{what} waits{why}", _remedy(running.flow, facts, partition))
    elif partition.state is PartitionState.PAUSED:
        words, change = f"{what} is paused", f"`sparkmirror resume FILE --flow '{facts.flow}'`"
        yield no("state", Reason.PAUSED, words, change)
    else:
        yield yes("state", f"{_behind(facts)} ({running.age_s:,.0f} s ago)")


def _behind(facts: TopicFacts) -> str:
    asked = _asked(facts)
    lags = [each.lag for each in asked if each.lag is not None]
    words = "partition" if len(asked) == 1 else "partitions"
    unknown = len(asked) - len(lags)
    if unknown and not lags:
        return f"{len(asked):,} {words} copied, lag not known"
    lag_s = max((each.lag_s or 0.0 for each in asked), default=0.0)
    late = f" ({lag_s:,.0f} s)" if sum(lags) else ""
    others = f", of {unknown:,} not known" if unknown else ""
    return f"{len(asked):,} {words} copied, {sum(lags):,} offsets behind{late}{others}"


def _lease(facts: TopicFacts) -> Iterator[Step]:
    running = facts.running
    if not running.fresh or running.flow is None:
        yield nobody_works(running)
    else:
        yield yes("lease", f"{running.flow.leader or running.leader or 'a process'} works on the flow")


def _limit(facts: TopicFacts) -> Iterator[Step]:
    worst = _worst(facts)
    if worst is not None and worst[0].cause is Cause.THROTTLED:
        words = f"{facts.topic}-{worst[0].partition}: {worst[0].reason or 'a broker asks it to wait'}"
        yield note("limit", Reason.THROTTLED, words, general_action(Cause.THROTTLED))
    caps = ((facts.bytes_per_s_cap, "in all"), (facts.backfill_per_s_cap, "for partitions far behind"))
    said = [f"{cap:,.0f} bytes/s {of}" for cap, of in caps if cap is not None]
    if said:
        words = f"an operator has capped the flow at {' and '.join(said)}"
        yield note("limit", Reason.CAPPED, words, f"`sparkmirror throttle FILE off --flow '{facts.flow}'`")
    else:
        yield yes("limit", "no operator has capped the flow")


def _loss(facts: TopicFacts) -> Iterator[Step]:
    if facts.losses:
        offsets, newest = sum(loss.offsets for loss in facts.losses), max(facts.losses, key=lambda loss: loss.at_ms)
        entries = counted(len(facts.losses), "open entry", "open entries")
        words = f"{entries}, {counted(offsets, 'offset')}, newest ({newest.outcome}): {newest.words}"
        change = f"`sparkmirror losses FILE --flow '{facts.flow}'` lists them"
        yield note("loss", Reason.LOST, words, change)
    else:
        yield yes("loss", "the loss ledger has no open entry of it")


_CHECKS: tuple[Callable[[TopicFacts], Iterator[Step]], ...] = (
    _names,
    _fan_in,
    _permission,
    _exists,
    _refused,
    _turn,
    _released,
    _paused,
    _state,
    _lease,
    _limit,
    _loss,
)
