"""One flow's checkpoints topic: newest checkpoints, and due new checkpoints.

A checkpoint goes back only if the group went back upstream (`mm2.md` 3.7), or the target lost records (`is_due`).
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence

from sparkmirror.events import Event
from sparkmirror.exact.mm2.record_formats import Checkpoint, Malformed
from sparkmirror.kafka.cluster.topic_log import LogUnavailable, TopicLog
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.topic_partition import TopicPartition

AUTHORIZATION_FAILED = frozenset(
    {ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
)
_PARTITION = 0

log = logging.getLogger(__name__)


class CheckpointStore:
    """Newest checkpoint for each group and target partition."""

    def __init__(self, topic: TopicLog) -> None:
        self._topic = topic
        self._newest: dict[str, dict[TopicPartition, Checkpoint]] = defaultdict(dict)
        self._read_to = 0
        self._loaded = False

    def load(self) -> None:
        """Read the topic at the first call.

        Raises `ConnectionError`, except if the principal may not read the topic.
        """
        more = not self._loaded
        while more:
            try:
                entries, self._read_to, more = self._topic.read_some(_PARTITION, self._read_to)
            except LogUnavailable as error:
                if error.code not in AUTHORIZATION_FAILED:
                    raise
                log.warning(
                    "%s; so the first checkpoints of this run may be older than the stored ones",
                    error,
                    extra=Event.CHECKPOINTS_UNREADABLE.extra,
                )
                break
            for _, key, value in entries:
                self._take(key, value)
        self._loaded = True

    def _take(self, key: bytes | None, value: bytes | None) -> None:
        try:
            checkpoint = Checkpoint.read(key, value)
        except Malformed:
            return
        self._newest[checkpoint.group][checkpoint.topic, checkpoint.partition] = checkpoint

    def is_due(self, checkpoint: Checkpoint, log_end: int | None = None, *, exact: bool = False) -> bool:
        """Tell whether to write a checkpoint.

        A checkpoint is due if it is the first, if its group went back upstream, or if it is further downstream. It is
        also due if the last checkpoint is beyond `log_end`, the end of the target's log, or, with `exact`, beyond this
        checkpoint: then the last checkpoint was about records that the target no longer has, as after the topic was
        created again. The exact map never gives less for the same records.
        """
        last = self._newest.get(checkpoint.group, {}).get((checkpoint.topic, checkpoint.partition))
        return (
            last is None
            or checkpoint.upstream < last.upstream
            or checkpoint.downstream > last.downstream
            or (exact and checkpoint.downstream < last.downstream)
            or (log_end is not None and last.downstream > log_end)
        )

    def write(self, checkpoints: Sequence[Checkpoint]) -> None:
        """Append checkpoints; they count once durable."""
        if not checkpoints:
            return
        self._topic.append(_PARTITION, [(checkpoint.key(), checkpoint.value()) for checkpoint in checkpoints])
        for checkpoint in checkpoints:
            self._newest[checkpoint.group][checkpoint.topic, checkpoint.partition] = checkpoint

    def of(self, group: str, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Checkpoint]:
        """Return a group's newest checkpoints for these target partitions.

        Each partition must have a checkpoint.
        """
        newest = self._newest[group]
        return {partition: newest[partition] for partition in partitions}
