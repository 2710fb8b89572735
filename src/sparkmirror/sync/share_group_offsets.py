"""The share group duty (`sync.group.offsets.enabled`): share groups start at the target where they start at the source.

A share group (KIP-932) commits nothing. Of each partition it keeps the offset before which everything is done with, and
that is translated and set, by the rules for consumer groups: only for a group that is absent or empty at the target by
a complete list, never back, and a member that joins in between wins. What the group has acknowledged beyond that offset
is delivered again at the target: at least once is what a share group promises. There are no checkpoints, because
MirrorMaker 2's are for consumer groups.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping

from sparkmirror.cluster.client import ClusterClient
from sparkmirror.cluster.groups import Groups, ListedGroup
from sparkmirror.cluster.share_groups import SHARE, UNSUPPORTED_VERSION, ShareGroups, StartOffsets, said
from sparkmirror.config import FlowConfig
from sparkmirror.messages.orders import Receipt
from sparkmirror.policy import ReplicationPolicy
from sparkmirror.sync.group_offsets import IDLE, why_refused
from sparkmirror.sync.group_places import place_groups
from sparkmirror.sync.group_standing import GroupStanding, standing
from sparkmirror.sync.places import Places
from sparkmirror.wire.topic_partition import TopicPartition

log = logging.getLogger(__name__)


class ShareGroupOffsets:
    """Looks after the share groups of one flow. `run` is one turn; one thread."""

    def __init__(
        self,
        flow: FlowConfig,
        policy: ReplicationPolicy,
        wanted_group: Callable[[str], bool],
        wanted_topic: Callable[[str], bool],
        receipts: Callable[[], Iterable[Receipt]] = tuple,
    ) -> None:
        """As `Checkpoints`."""
        self._flow = flow
        self._wanted_group = wanted_group
        self._wanted_topic = wanted_topic
        self._source = ClusterClient(flow.source, f"{flow.name}|sparkmirror-share-groups")
        self._target = ClusterClient(flow.target, f"{flow.name}|sparkmirror-share-groups")
        self._here, self._there = ShareGroups(self._source), ShareGroups(self._target)
        self._places = Places(flow, policy, self._source, self._target, receipts)
        self._refreshed_at = float("-inf")
        self._known: tuple[str, ...] = ()
        self.standings: Mapping[str, GroupStanding] = {}
        """Of every share group of the source that the filter wants, as of the last turn."""
        self.written = 0
        """Offsets that the last turn has set."""

    def run(self) -> None:
        """One turn. Raises `ConnectionError` and `SparkMirrorError`."""
        standings: dict[str, GroupStanding] = {}
        starts = self._starts(standings)
        placed = place_groups(self._places, starts)
        standings |= {group: one for group, (_, one) in placed.items()}
        wanted = {
            group: {place.remote: place.offset for place in places.values()}
            for group, (places, _) in placed.items()
            if places
        }
        self.written = 0
        for group, reasons in self._set(wanted).items():
            standings[group] = standing(group, len(starts[group]), reasons, ())
        self.standings = standings
        log.debug("flow %s: %d offsets of %d share groups set", self._flow.name, self.written, len(starts))

    def close(self) -> None:
        """Hang up."""
        self._places.close()
        self._source.close()
        self._target.close()

    # --- the source's groups --------------------------------------------------------------------

    def _starts(self, standings: dict[str, GroupStanding]) -> dict[str, StartOffsets]:
        """Where the groups start in topics that are copied; `standings` gets those that may not be read."""
        settings, now = self._flow.group, time.monotonic()
        due = settings.refresh_groups_enabled and now - self._refreshed_at >= settings.refresh_groups_interval_seconds
        if due or self._refreshed_at == float("-inf"):
            listed = Groups(self._source).listed().values()
            self._known = tuple(one.group for one in listed if one.type == SHARE and self._wanted_group(one.group))
            self._refreshed_at = now
        found = self._here.starts(self._known)
        for group, reason in found.refused.items():
            standings[group] = standing(group, 0, [f"{self._flow.source.alias}: {reason}"], ())
        starts = {
            group: {where: offset for where, offset in some.items() if self._wanted_topic(where[0])}
            for group, some in found.offsets.items()
        }
        return {group: some for group, some in starts.items() if some}

    # --- the target's groups --------------------------------------------------------------------

    def _set(self, wanted: Mapping[str, StartOffsets]) -> dict[str, list[str]]:
        """Set what is due; returns why not, by group."""
        alias = self._flow.target.alias
        listed = Groups(self._target).listed() if wanted else {}
        failed = {group: [reason] for group in wanted if (reason := _why_not(listed.get(group), alias))}
        there = self._there.starts(group for group in wanted if group not in failed)
        failed |= {group: [f"{alias}: {reason}"] for group, reason in there.refused.items()}
        due = {group: some for group, found in there.offsets.items() if (some := later(wanted[group], found))}
        for group, outcome in self._there.set_starts(due).items():
            self.written += sum(not code for code in outcome.values())
            lines = [_refusal(alias, where, code) for where, code in outcome.items() if code]
            if lines:
                failed[group] = list(dict.fromkeys(lines))
        return failed


def later(wanted: StartOffsets, there: StartOffsets) -> StartOffsets:
    """What takes the target's group on: an offset is never put back, nor set again."""
    return {where: offset for where, offset in wanted.items() if there.get(where, -1) < offset}


def _why_not(group: ListedGroup | None, alias: str) -> str:
    """Why nothing may be set, as the target lists the group; empty if it may."""
    if group is None:
        return ""
    if group.type != SHARE:
        return f"it is a {group.type or 'consumer'} group at {alias}"
    return "" if group.state in IDLE else f"it has members at {alias} ({group.state})"


def _refusal(alias: str, where: TopicPartition, code: int) -> str:
    return f"{alias}: {said(code)}" if code == UNSUPPORTED_VERSION else why_refused(alias, where, code)
