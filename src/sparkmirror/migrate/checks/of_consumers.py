"""Checks on consumers: groups with offsets in the topics, and commits."""

from __future__ import annotations

from collections.abc import Iterator

from sparkmirror.kafka.cluster.error_names import error_name
from sparkmirror.kafka.cluster.groups import SINKS
from sparkmirror.kafka.cluster.share_groups import SHARE
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.migrate import phase
from sparkmirror.migrate.actions import listed
from sparkmirror.migrate.checks.facts import Facts, OutsideGroup
from sparkmirror.migrate.checks.precondition import Check, CheckFind, blocked, fail, ok, unknown, warn
from sparkmirror.migrate.observation import Side
from sparkmirror.migrate.phase import GroupPhase, Phase

_NO_RIGHT = error_name(ErrorCode.GROUP_AUTHORIZATION_FAILED)


def _left_out(facts: Facts) -> Iterator[CheckFind]:
    for side in facts.sides:
        for reader in facts.readers.get(side, ()):
            if reader.share:
                continue
            words = f"{reader.group} reads {listed(reader.topics)} at {facts.alias(side)}, and is in no set"
            remedy = _add(reader)
            if reader.excluded:
                words += "; the mirror's groups.exclude leaves it out"
            yield fail(words, remedy) if reader.active else warn(f"{words}; it has no members now", remedy)
    yield from _unread(facts, share=False)


def _unread(facts: Facts, *, share: bool) -> Iterator[CheckFind]:
    """Yield groups outside all sets that are not listed, or whose offsets are untold."""
    for side in facts.sides:
        known, alias = facts.listed.get(side, {}), facts.alias(side)
        cluster = facts.probed(side)
        if cluster is not None and cluster.operations is not None and "DESCRIBE" not in cluster.operations:
            yield unknown(
                f"{alias} lists no group that sparkmirror's principal may not DESCRIBE",
                f"grant sparkmirror's principal DESCRIBE on the cluster {alias}",
            )
        for group, why in sorted(facts.unread.get(side, {}).items()):
            if (group in known and known[group].type == SHARE) is share:
                reason = why.partition(";")[0]
                grant = f"grant sparkmirror's principal DESCRIBE on these groups at {alias}"
                remedy = grant if reason == _NO_RIGHT else "check again"
                yield unknown(f"the offsets of group {group} at {alias} can't be read: {reason}", remedy)


def _add(reader: OutsideGroup) -> str:
    if reader.group.startswith(SINKS):
        return f"add {reader.group} to a set, if it is a sink connector that moves, or stop the connector"
    return f"add {reader.group} to its set's groups, stop it, or delete it"


def _share_groups(facts: Facts) -> Iterator[CheckFind]:
    for side in facts.sides:
        for reader in facts.readers.get(side, ()):
            if reader.share:
                yield warn(f"{reader.group} is a share group, and reads {listed(reader.topics)} at {facts.alias(side)}")
    yield from _unread(facts, share=True)


def _missing(facts: Facts) -> Iterator[CheckFind]:
    for side, group in facts.groups():
        if not any(phase.group_at(facts.seen, each, group).offsets for each in (side, side.other)):
            yield warn(
                f"{group} has no offsets in its set's topics at {facts.alias(side)} or {facts.alias(side.other)}"
            )


def _unrouted(facts: Facts) -> Iterator[CheckFind]:
    for side, group in facts.groups():
        left = phase.group_phase(facts.seen, group, side)
        for each in (side, side.other):
            now, before = phase.group_at(facts.seen, each, group), phase.group_at(facts.earlier, each, group)
            alone = now.empty and before.empty and not _is_synced(facts, each)
            if alone and before.offsets and before.offsets != now.offsets:
                yield fail(f"a consumer without membership commits for {group} at {facts.alias(each)}")
            elif _commits_only(facts, each, group) and now.offsets:
                yield warn(
                    f"{group} at {facts.alias(each)} has commits without membership: no request shows who made them"
                )
        if left is GroupPhase.ARRIVED and (behind := _behind(facts, side, group)):
            yield fail(
                f"{group} has members at {facts.alias(side.other)}, and {behind} newer commits at {facts.alias(side)}"
            )
    for blocker in facts.blockers("unrouted-commits"):
        yield fail(blocker.words)


def _is_synced(facts: Facts, side: Side) -> bool:
    """True if a mirror sets groups' offsets at this side."""
    probe = facts.probes.get(side.other)
    return probe is not None and probe.flow.group.sync_group_offsets_enabled


def _commits_only(facts: Facts, side: Side, group: str) -> bool:
    known = facts.listed.get(side, {}).get(group)
    return known is not None and not known.protocol


def _behind(facts: Facts, side: Side, group: str) -> int:
    """Count the partitions where the group's commit at `side` is newer."""
    there = phase.group_at(facts.seen, side.other, group).offsets
    wanted = phase.positions(facts.seen, side, group)
    return sum(offset is not None and offset > there.get(place, -1) for place, offset in wanted.items())


def _rights(facts: Facts) -> Iterator[CheckFind]:
    for side, group in facts.groups():
        for each, needed in ((side, "DESCRIBE"), (side.other, "READ")):
            had = facts.group_rights.get(each, {}).get(group)
            if had is not None and needed not in had:
                alias = facts.alias(each)
                remedy = f"grant sparkmirror's principal {needed} on group {group} at {alias}"
                yield fail(f"{needed} on group {group} at {alias} is missing", remedy)
    yield ok("sparkmirror may read and set the offsets of each group in a set")


def _first(facts: Facts) -> Iterator[CheckFind]:
    """Groups that are to move first fail only once the producers' switch has begun."""
    for moving in facts.sets:
        for blocker in facts.blockers_of(moving, "consumers-first"):
            begun = phase.set_phase(facts.seen, moving).phase is not Phase.COPYING
            yield fail(blocker.words) if begun else ok(f"{blocker.words}: `switch consumers` is next")


CONSUMER_CHECKS = (
    Check(
        id="groups-left-out",
        what="each group that reads the topics is in a set",
        remedy="add it to a set",
        look=_left_out,
    ),
    Check(
        id="share-groups",
        what="no share group reads the topics",
        remedy="a switch leaves it: let sync.group.offsets.enabled set its start offsets (docs/groups.md)",
        look=_share_groups,
    ),
    Check(
        id="groups-missing",
        what="each group of a set has read its set's topics",
        remedy="correct its name, or take it out of the set",
        look=_missing,
    ),
    Check(
        id="group-rights",
        what="sparkmirror may read and set the offsets of each group in a set",
        remedy="grant it",
        look=_rights,
    ),
    Check(
        id="unrouted-commits",
        what="no consumer commits at the side that its group has left, or without membership",
        remedy="stop this consumer; move one that uses assign by hand, with `sparkmirror offsets` (docs/groups.md)",
        look=_unrouted,
    ),
    Check(
        id="on-both-sides",
        what="no group has members on both sides",
        remedy="stop its members on one side",
        look=blocked("on-both-sides"),
    ),
    Check(
        id="consumers-first",
        what="with type: consumers-first, no set's producers leave before its groups",
        remedy="run `sparkmirror migration switch consumers` first, or write another type in the file",
        look=_first,
    ),
)
