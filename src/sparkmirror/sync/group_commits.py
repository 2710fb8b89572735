"""What was copied is committed to MirrorMaker 1's group at the source, as it did itself.

So lag monitoring goes on, and MirrorMaker 1 can: it begins where we have ended. After a clean stop that is exact.
Otherwise it repeats what was copied since the last turn, and skips nothing: an offset is committed only when the
records before it were acknowledged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sparkmirror.cluster.client import ClusterClient
from sparkmirror.cluster.groups import Committed, Groups
from sparkmirror.config import FlowConfig
from sparkmirror.config.model import LegacyConfig
from sparkmirror.errors import SparkMirrorError
from sparkmirror.sync.group_offsets import why_refused
from sparkmirror.wire.topic_partition import TopicPartition

OURS = "sparkmirror"
"""The metadata of what we commit: MirrorMaker 1 commits without any, so it can be told who did."""


class GroupCommits:
    """For one flow: `run` each `--offset.commit.interval.ms`, and once more when the pumps have ended for good.

    `copied` gives the upstream offset of the last record copied, by source topic and partition; offsets without a
    record count as copied when they were passed over.
    """

    def __init__(
        self, flow: FlowConfig, legacy: LegacyConfig, copied: Callable[[], Mapping[TopicPartition, int]]
    ) -> None:
        self._group = legacy.group_id
        self._copied = copied
        self._client = ClusterClient(flow.source, f"{flow.name}|sparkmirror-commits")
        self._groups = Groups(self._client)

    def run(self) -> None:
        """Commit for all partitions, also for those that have not moved.

        Raises `SparkMirrorError`s and `ConnectionError`s; then the next turn does it. A group without members loses its
        offsets `offsets.retention.minutes` after the last one has left, whatever was committed since; what is
        committed after that is kept as that of a group that never had members.
        """
        offsets = {where: Committed(upstream + 1, OURS) for where, upstream in self._copied().items()}
        if not offsets:
            return
        outcome = self._groups.commit({self._group: offsets})[self._group]
        failed = [(where, code) for where, code in outcome.items() if code]
        if failed:
            where, code = failed[0]
            reason = why_refused("the source", where, code)
            raise SparkMirrorError(f"group {self._group} is not committed for: {reason}")

    def close(self) -> None:
        """Hang up."""
        self._client.close()
