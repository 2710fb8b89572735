"""Commit copied offsets to MirrorMaker 1's group at the source.

MirrorMaker 1 committed there itself. So lag monitoring continues, and MirrorMaker 1 can continue where sparkmirror
ended. After a clean stop the hand-back is exact. Otherwise MirrorMaker 1 repeats the records copied since the last
turn, and skips none: an offset is committed only when all records before were acknowledged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sparkmirror.config import FlowConfig
from sparkmirror.config.model import LegacyConfig
from sparkmirror.errors import SparkMirrorError
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.groups import Committed, Groups
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.mirror.sync.group_offsets import why_refused
from sparkmirror.pump.messages.orders import Receipt

OURS = "sparkmirror"
"""Metadata in sparkmirror's commits; MirrorMaker 1 commits with empty metadata.

So the metadata tells who committed.
"""


class Mm1Commits:
    """The duty to commit to one flow's MirrorMaker 1 group.

    `run` is due each `--offset.commit.interval.ms`, and once more when the pumps have ended for good. `receipts` gives
    each partition's newest receipt; offsets without a record count as copied when the pump has passed over them.
    """

    def __init__(self, flow: FlowConfig, legacy: LegacyConfig, receipts: Callable[[], Iterable[Receipt]]) -> None:
        self._group = legacy.group_id
        self._receipts = receipts
        self._client = ClusterClient(flow.source, f"{flow.name}|sparkmirror-commits")
        self._groups = Groups(self._client)

    def run(self) -> None:
        """Commit for all partitions, also for partitions that have not moved.

        Raises `SparkMirrorError`s and `ConnectionError`s; then the next turn commits. A group without members loses its
        offsets `offsets.retention.minutes` after the last member has left, whatever was committed since; offsets
        committed after the loss are kept as for a group that never had members.
        """
        offsets = commits(self._receipts())
        if not offsets:
            return
        outcome = self._groups.commit({self._group: offsets})[self._group]
        failed = [(partition, code) for partition, code in outcome.items() if code]
        if failed:
            partition, code = failed[0]
            reason = why_refused("the source", partition, code)
            raise SparkMirrorError(f"group {self._group} is not committed for: {reason}")

    def close(self) -> None:
        self._client.close()


def commits(receipts: Iterable[Receipt]) -> dict[TopicPartition, Committed]:
    """Return the commits that receipts give, by source topic and partition.

    Receipts of partitions with an unknown position give no commit. An empty partition's start is committed, too:
    MirrorMaker 1 would begin at `auto.offset.reset` there, and might skip records that are written meanwhile.
    """
    return {
        (receipt.source_topic, receipt.partition): Committed(receipt.upstream, OURS)
        for receipt in receipts
        if receipt.upstream >= 0
    }
