"""The checkpoints topic of one flow: what it says of every group, and what is worth writing into it.

A checkpoint never goes back, except where the upstream group did (`mm2.md` 3.7).
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence

from sparkmirror.cluster.topic_log import LogUnavailable, TopicLog
from sparkmirror.events import Event
from sparkmirror.mm2.records import Checkpoint, Malformed
from sparkmirror.wire.topic_partition import TopicPartition

AUTHORIZATION_FAILED = frozenset({29, 30, 31})
_PARTITION = 0

log = logging.getLogger(__name__)


class CheckpointStore:
    """The newest checkpoint of each group and target partition."""

    def __init__(self, topic: TopicLog) -> None:
        self._topic = topic
        self._newest: dict[str, dict[TopicPartition, Checkpoint]] = defaultdict(dict)
        self._read_to = 0
        self._loaded = False

    def load(self) -> None:
        """Read the topic, the first time this is called. Raises `ConnectionError`, unless we may never read it."""
        more = not self._loaded
        while more:
            try:
                entries, self._read_to, more = self._topic.read_some(_PARTITION, self._read_to)
            except LogUnavailable as error:
                if error.code not in AUTHORIZATION_FAILED:
                    raise
                log.warning(
                    "%s; so the first checkpoints of this run may lie behind those that are there",
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

    def is_due(self, checkpoint: Checkpoint, log_end: int | None = None) -> bool:
        """Whether to write it: it is the first, its group went back upstream, or it is further downstream.

        Also where the one before lies beyond `log_end`, the target's: that topic was made anew.
        """
        last = self._newest.get(checkpoint.group, {}).get((checkpoint.topic, checkpoint.partition))
        return (
            last is None
            or checkpoint.upstream < last.upstream
            or checkpoint.downstream > last.downstream
            or (log_end is not None and last.downstream > log_end)
        )

    def write(self, checkpoints: Sequence[Checkpoint]) -> None:
        """Append them. They count once they are durable."""
        if not checkpoints:
            return
        self._topic.append(_PARTITION, [(one.key(), one.value()) for one in checkpoints])
        for one in checkpoints:
            self._newest[one.group][one.topic, one.partition] = one

    def of(self, group: str, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Checkpoint]:
        """A group's newest checkpoints of these target partitions, of which each has one."""
        found = self._newest[group]
        return {where: found[where] for where in partitions}
