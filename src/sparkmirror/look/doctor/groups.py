"""Rules on consumer groups: could a group move now?"""

from __future__ import annotations

from collections.abc import Iterator

from sparkmirror.look.doctor.case import Case
from sparkmirror.look.doctor.duties import due_s
from sparkmirror.look.doctor.finding import Severity
from sparkmirror.look.doctor.group_commands import SET_BY_MIRROR, skipping, within_the_log, without_skipping
from sparkmirror.look.doctor.rule import Rule, Sign, counted
from sparkmirror.snapshot.group_standing import GroupState

REREAD = 10_000
"""Records that a group may reread without a finding.

Equal to the lag up to which a flow is well.
"""
NAMED = 20
"""Most findings of a rule.

The reasons with the most groups get one each, or the groups that would skip most.
"""


def _none(case: Case) -> Iterator[Sign]:
    if case.flow.no_group:
        yield Sign(subject="", evidence=case.flow.no_group)


def _not_synced(case: Case) -> Iterator[Sign]:
    by_reason: dict[str, list[str]] = {}
    for group in case.flow.groups:
        if group.state is GroupState.NOT_SYNCED:
            by_reason.setdefault(group.reason, []).append(group.group)
    for reason, names in sorted(by_reason.items(), key=lambda entry: -len(entry[1]))[:NAMED]:
        yield Sign(subject=names[0], evidence=counted(len(names), "group"), cause=reason)


def _beyond_end(case: Case) -> Iterator[Sign]:
    beyond = [group for group in case.flow.groups if group.state is GroupState.BEYOND_END]
    for group in beyond[:NAMED]:
        yield Sign(
            subject=group.group,
            evidence=counted(len(beyond), "group"),
            cause=group.reason,
            action=_sentence(within_the_log(case.flow, group)),
        )


def _skips(case: Case) -> Iterator[Sign]:
    would_skip = [group for group in case.flow.groups if group.skipped and group.state is not GroupState.NOT_SYNCED]
    would_skip.sort(key=lambda group: -(group.skipped or 0))
    for group in would_skip[:NAMED]:
        places = [f"{place.topic}-{place.partition} {place.skipped:,}" for place in skipping(group)]
        more = f" and {len(places) - 3:,} more" if len(places) > 3 else ""
        yield Sign(
            subject=group.group,
            evidence=f"{counted(group.skipped or 0, 'record')}: {', '.join(places[:3])}{more}",
            action=f"{_sentence(without_skipping(case.flow, group))} {_MOVED_ALREADY}",
        )


def _late(case: Case) -> Iterator[Sign]:
    duties = [duty for duty in case.flow.duties if duty.duty in ("checkpoints", SET_BY_MIRROR)]
    if not duties:
        return
    duty = max(duties, key=lambda duty: duty.interval_s)
    late = [
        (case.flow.at_ms - group.synced_ms, group)
        for group in case.flow.groups
        if group.synced_ms is not None and group.state not in (GroupState.NOT_SYNCED, GroupState.BEYOND_END)
    ]
    late = [entry for entry in late if entry[0] > due_s(duty) * 1000]
    if late:
        age, group = max(late, key=lambda entry: entry[0])
        yield Sign(
            subject=group.group,
            evidence=f"{counted(len(late), 'group')}, the oldest for {age / 1000:,.0f} s, due every "
            f"{duty.interval_s:,.0f} s",
            cause="The group has read records that are not copied yet."
            if group.state is GroupState.CATCHING_UP
            else "",
        )


def _reread(case: Case) -> Iterator[Sign]:
    if not _syncs(case):
        return
    more = [(group.reread or 0, group.group) for group in case.flow.groups if (group.reread or 0) > REREAD]
    if more:
        most, name = max(more)
        yield Sign(
            subject=name, evidence=f"{most:,} records; {counted(len(more), 'group')} would read over {REREAD:,} again"
        )


def _syncs(case: Case) -> bool:
    return any(duty.duty == SET_BY_MIRROR for duty in case.flow.duties)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


_MOVED_ALREADY = (
    "Don't move it before SKIPPED of `sparkmirror groups FILE` is 0. If it has moved already, and rests at the target, "
    "do nothing, or put it into groups.exclude."
)

GROUPS = (
    Rule(
        name="no-group",
        severity=Severity.NOTICE,
        title="No consumer group is translated",
        when="Checkpoints are on, and no consumer group of the source matches `groups` without `groups.exclude`.",
        cause="A pattern is misspelt, there are no groups yet, or sparkmirror's principal may not describe them.",
        action="Correct `groups` or `groups.exclude`, or grant DESCRIBE on the groups at the source. If no consumers "
        "are to move: emit.checkpoints.enabled = false.",
        look=_none,
    ),
    Rule(
        name="group-not-synced",
        severity=Severity.WARNING,
        title="A group's offsets can't be set at the target",
        when="The group's state is `can't be synced`. One finding a reason.",
        cause="The reason names the cause.",
        action="Follow the reason; the group can't move until then.",
        look=_not_synced,
    ),
    Rule(
        name="group-beyond-end",
        severity=Severity.WARNING,
        title="A group is beyond the end of the source's log",
        when="The group's state is `beyond the end`: its committed offset is higher than the log's end.",
        cause="It was set to a wrong offset, or the log was cut or its topic created again.",
        action="Set it to an offset that the source has (kafka-consumer-groups.sh --reset-offsets, at the source); the "
        "finding has the command. Till then its offset at the target is left alone, and its consumers at the source "
        "begin by auto.offset.reset.",
        look=_beyond_end,
    ),
    Rule(
        name="group-would-skip",
        severity=Severity.WARNING,
        title="A group would skip records if it moved now",
        when="The group's offset at the target stands for records that it has not read at the source, by the exact "
        "offset map. Not if it has members at the target: then it has moved.",
        cause="It was set back at the source after its offset had been set at the target, where the mirror never puts "
        "an offset back; or it has read on at the target itself.",
        action="Where the mirror sets offsets (`sync.group.offsets.enabled`), delete the group's at the target "
        "(kafka-consumer-groups.sh --delete-offsets), and the exact ones come in its next turn. Else set those that "
        "`sparkmirror offsets translate` prints. The finding has the command. " + _MOVED_ALREADY,
        look=_skips,
    ),
    Rule(
        name="group-sync-late",
        severity=Severity.WARNING,
        title="A group's offsets are late at the target",
        when="In a partition the copy last reached the group's offset of that turn, or of the turn before, over 3 "
        "intervals and 30 s ago (the alert GroupSyncLate: 3 intervals, for 10 minutes).",
        cause="The duty that sets them is late.",
        action="Look at the findings above; before the group moves, wait until it is synced.",
        look=_late,
        explains=("group-would-reread",),
    ),
    Rule(
        name="group-would-reread",
        severity=Severity.WARNING,
        title="A group would read much again if it moved now",
        when="Over 10,000 records lie between its offset at the target and where it is at the source.",
        cause="The group has read on since its offsets were set at the target.",
        action="Before it moves: stop it at the source, and wait until REREAD of `sparkmirror groups FILE` is 0, which "
        "takes emit.checkpoints.interval.seconds and sync.group.offsets.interval.seconds together.",
        look=_reread,
    ),
)
