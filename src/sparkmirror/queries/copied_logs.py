"""Find logs that lost records which a query has copied, or written.

Between two looks an unclean leader election may cut a log, and the log may grow again past the query's place. So the
leader epoch of the last record is kept with the place, and compared with the log's history (KIP-320).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from sparkmirror.errors import ClusterTrouble
from sparkmirror.exact.position.loss_detection import cut_in
from sparkmirror.kafka.cluster.client import TopicLeaders
from sparkmirror.kafka.cluster.epoch_history import EpochHistories, epoch_at
from sparkmirror.kafka.cluster.leader_epochs import EpochStart
from sparkmirror.kafka.wire.topic_partition import TopicPartition


class CopiedLog(NamedTuple):
    """A log as it was when its records were copied, or written."""

    end: int
    """Offset after the last record."""
    epochs: tuple[EpochStart, ...]
    """The records' leader epochs, the last record's last; empty: not known."""


class LogsNow(NamedTuple):
    """One cluster's logs now."""

    topics: Mapping[str, TopicLeaders]
    ends: Mapping[TopicPartition, int]
    """High watermarks, or last stable offsets."""
    log_end: Callable[[TopicPartition], int]
    """Function that asks where a leader's log ends."""


def cut_offsets(
    histories: EpochHistories, now: LogsNow, copied: Mapping[TopicPartition, CopiedLog]
) -> dict[TopicPartition, int]:
    """Return up to which offset each log is still the copied log.

    The offset is the copied log's end unless the log was cut. A log that ends before was cut, whatever its leader
    epochs: a topic without an id may have been created again. Partitions whose leader doesn't tell now are left out.
    Raises `ConnectionError`.
    """
    read = histories.read(now.topics, {at: max(each.end - 1, 0) for at, each in copied.items()})
    offsets: dict[TopicPartition, int] = {}
    for at, history in read.items():
        end, epochs = copied[at]
        last = epoch_at(history, end - 1)
        left = end if now.ends.get(at, end) >= end else min(now.log_end(at), end)
        cut: int | None = left
        if epochs and last is not None and last != epochs[-1].epoch:
            cut = cut_in(epochs, end, partial(histories.end_of, at))
            if cut is None and left < end:  # a topic that was created again may have begun its epochs again, too
                cut = left
        if cut is None:
            raise ClusterTrouble(f"{at[0]}-{at[1]}: its leader does not know leader epoch {epochs[-1].epoch} now")
        offsets[at] = min(cut, left)
    return offsets
