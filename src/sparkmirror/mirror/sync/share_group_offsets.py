"""The share group duty (`sync.group.offsets.enabled`): share groups' offsets.

A share group (KIP-932) commits no offsets. For each partition the group keeps a start offset, before which every record
is done. The duty translates and sets the start offset by the rules for consumer groups: only for a group that is absent
or empty in the target's complete group list, never back, and a member that joins in between wins. The target delivers
records again that the group acknowledged beyond the start offset: a share group promises at least once. No checkpoints
are written, because MirrorMaker 2's checkpoints are for consumer groups.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping

from sparkmirror.config import FlowConfig
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.groups import Groups, ListedGroup
from sparkmirror.kafka.cluster.share_groups import SHARE, ShareGroups, StartOffsets, said
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.mirror.sync.group_maps import GroupMaps
from sparkmirror.mirror.sync.group_moments import GroupMoments
from sparkmirror.mirror.sync.group_offsets import IDLE, why_refused
from sparkmirror.mirror.sync.translated_groups import translate_groups
from sparkmirror.policy import ReplicationPolicy
from sparkmirror.pump.messages.orders import Receipt
from sparkmirror.snapshot.group_standing import GroupStanding, standing

log = logging.getLogger(__name__)


class ShareGroupOffsets:
    """One flow's share group duty; `run` is one turn, for one thread."""

    def __init__(
        self,
        flow: FlowConfig,
        policy: ReplicationPolicy,
        wanted_group: Callable[[str], bool],
        wanted_topic: Callable[[str], bool],
        receipts: Callable[[], Iterable[Receipt]] = tuple,
    ) -> None:
        """Prepare the duty; parameters are the same as for `Checkpoints`."""
        self._flow = flow
        self._wanted_group = wanted_group
        self._wanted_topic = wanted_topic
        self._source = ClusterClient(flow.source, f"{flow.name}|sparkmirror-share-groups")
        self._target = ClusterClient(flow.target, f"{flow.name}|sparkmirror-share-groups")
        self._here, self._there = ShareGroups(self._source), ShareGroups(self._target)
        self._maps = GroupMaps(flow, policy, self._source, self._target, receipts)
        self._moments = GroupMoments()
        self._refreshed_at = float("-inf")
        self._known: tuple[str, ...] = ()
        self.standings: Mapping[str, GroupStanding] = {}
        """Every wanted share group's standing at the last turn."""
        self.written = 0
        """Number of offsets set by the last turn."""

    def run(self) -> None:
        """Do one turn. Raises `ConnectionError` and `SparkMirrorError`."""
        standings: dict[str, GroupStanding] = {}
        starts = self._starts(standings)
        translated = translate_groups(self._maps, self._moments, starts)
        standings |= {group: its_standing for group, (_, its_standing) in translated.items()}
        wanted = {
            group: {result.remote: result.offset for result in results.values()}
            for group, (results, _) in translated.items()
            if results
        }
        self.written = 0
        for group, reasons in self._set(wanted).items():
            standings[group] = standing(group, len(starts[group]), missing=reasons)
        self.standings = standings
        log.debug("flow %s: %d offsets of %d share groups set", self._flow.name, self.written, len(starts))

    def close(self) -> None:
        self._maps.close()
        self._source.close()
        self._target.close()

    # --- the source's groups --------------------------------------------------------------------

    def _starts(self, standings: dict[str, GroupStanding]) -> dict[str, StartOffsets]:
        """Return the groups' start offsets in copied topics.

        `standings` receives the groups that the principal may not read.
        """
        settings, now = self._flow.group, time.monotonic()
        due = settings.refresh_groups_enabled and now - self._refreshed_at >= settings.refresh_groups_interval_seconds
        if due or self._refreshed_at == float("-inf"):
            listed = Groups(self._source).listed().values()
            self._known = tuple(
                entry.group for entry in listed if entry.type == SHARE and self._wanted_group(entry.group)
            )
            self._refreshed_at = now
        answer = self._here.starts(self._known)
        for group, reason in answer.refused.items():
            standings[group] = standing(group, 0, missing=[f"{self._flow.source.alias}: {reason}"])
        starts = {
            group: {partition: offset for partition, offset in offsets.items() if self._wanted_topic(partition[0])}
            for group, offsets in answer.offsets.items()
        }
        return {group: offsets for group, offsets in starts.items() if offsets}

    # --- the target's groups --------------------------------------------------------------------

    def _set(self, wanted: Mapping[str, StartOffsets]) -> dict[str, list[str]]:
        """Set the start offsets that are due; return why any failed, by group."""
        alias = self._flow.target.alias
        listed = Groups(self._target).listed() if wanted else {}
        failed = {group: [reason] for group in wanted if (reason := _why_not(listed.get(group), alias))}
        there = self._there.starts(group for group in wanted if group not in failed)
        failed |= {group: [f"{alias}: {reason}"] for group, reason in there.refused.items()}
        due = {group: ahead for group, present in there.offsets.items() if (ahead := later(wanted[group], present))}
        for group, outcome in self._there.set_starts(due).items():
            self.written += sum(not code for code in outcome.values())
            lines = [_refusal(alias, partition, code) for partition, code in outcome.items() if code]
            if lines:
                failed[group] = list(dict.fromkeys(lines))
        return failed


def later(wanted: StartOffsets, there: StartOffsets) -> StartOffsets:
    """Return the offsets ahead of the target group's; no offset is set back or again."""
    return {partition: offset for partition, offset in wanted.items() if there.get(partition, -1) < offset}


def _why_not(group: ListedGroup | None, alias: str) -> str:
    """Return why the target's group must stay as it is; empty if offsets may be set."""
    if group is None:
        return ""
    if group.type != SHARE:
        return f"it is a {group.type or 'consumer'} group at {alias}"
    return "" if group.state in IDLE else f"it has members at {alias} ({group.state})"


def _refusal(alias: str, partition: TopicPartition, code: int) -> str:
    return f"{alias}: {said(code)}" if code == ErrorCode.UNSUPPORTED_VERSION else why_refused(alias, partition, code)
