"""The loss sentinel's words: what was or may be lost, and what is done about it.

Every loss is a record in `mm2-sparkmirror-losses.<source>.internal` on the target, a small compacted topic whose
keys and values are JSON, before anything is sent past it. Beside them lies what is known of each target topic
(`topic_memory`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from sparkmirror.cluster.topic_log import LogEntry, TopicLog


class LossKind(StrEnum):
    """What happened."""

    EXPIRED = "expired"
    """The source deleted records before they were copied: retention, or DeleteRecords."""
    TRUNCATED = "truncated"
    """The source's log was cut below what was copied, by an unclean leader election."""
    RECREATED = "recreated"
    """The source topic was deleted and created again."""
    SHRUNK = "shrunk"
    """The source topic has fewer partitions than were copied."""
    TARGET_TRUNCATED = "target-truncated"
    """The target lost records that it had acknowledged; they are copied again, unless nothing tells where to go on."""
    TARGET_RECREATED = "target-recreated"
    """The target topic is a new one; everything that the source still has is copied again."""
    FOREIGN = "foreign-writer"
    """Somebody else wrote to the target partition."""
    FENCED = "fenced"
    """No loss: markers that we wrote ourselves, to fence a predecessor; each takes an offset."""
    ALTERED = "altered"
    """An operator had the copy go on at another offset: records are skipped, or copied again."""


Action = Literal["halted", "continued", "restarted", "healed", "expected"]
"""`expected`: no loss; the topic's own writers have moved to the target, and the operator has said so."""


NOT_OURS = frozenset({LossKind.FOREIGN, LossKind.FENCED})
"""What lies between our records at the target."""

AT_TARGET = NOT_OURS | {LossKind.TARGET_TRUNCATED}
"""Their offsets are the target's."""


class Loss(BaseModel):
    """One loss in one partition.

    `first` and `end` are a half-open range of offsets: the target's for the kinds of `AT_TARGET`, else the source's.
    """

    model_config = ConfigDict(frozen=True)
    kind: LossKind
    source_topic: str
    target_topic: str
    partition: int
    first: int
    end: int
    downstream: int
    """The target's offset where it shows: what is copied next lands there."""
    target_topic_id: str
    """As 32 hexadecimal digits: a topic that is created again has another one."""
    action: Action
    words: str
    """One line: what, where, and what to do."""
    at_ms: int = 0
    """When it was found, in milliseconds since 1970."""

    @property
    def offsets(self) -> int:
        """How many offsets it spans: as many records at most."""
        return self.end - self.first

    @property
    def is_loss(self) -> bool:
        """Whether anything was lost, or could have been: not where it was to be expected."""
        return self.kind is not LossKind.FENCED and self.action != "expected"

    @property
    def key(self) -> str:
        """The same for the same loss, however often it is met and however much it grows meanwhile."""
        return json.dumps([self.kind, self.source_topic, self.partition, self.target_topic_id, self.downstream])


TargetPartition = tuple[str, int]
"""A target topic's id, as 32 hexadecimal digits, and a partition."""


def losses_topic(source_alias: str) -> str:
    """Its name ends so that no MirrorMaker 2 mirrors it."""
    return f"mm2-sparkmirror-losses.{source_alias}.internal"


class LossLedger:
    """Writing and reading the ledger of one flow."""

    def __init__(self, log: TopicLog) -> None:
        self._log = log
        self._newest: dict[TargetPartition, dict[str, Loss]] | None = None
        """By key, the newest word last."""

    def record(self, loss: Loss) -> None:
        """Make it durable; what the ledger says already is not written again, nor dated anew.

        A target's loss is one that somebody else may have known more of: it never becomes smaller.
        """
        partition = self._of(loss.target_topic_id, loss.partition)
        known = partition.get(loss.key)
        smaller = known is not None and loss.kind is LossKind.TARGET_TRUNCATED and loss.end < known.end
        if known is not None and smaller and known.action == loss.action == "healed":
            loss = known.model_copy(update={"at_ms": loss.at_ms})
        if known is not None and known == loss.model_copy(update={"at_ms": known.at_ms}):
            newer = list(partition.values())[list(partition).index(loss.key) + 1 :]
            if not any(_overrules(one, known) for one in newer):
                return
        self._log.append(0, [(loss.key.encode(), loss.model_dump_json().encode())])
        partition.pop(loss.key, None)
        partition[loss.key] = loss

    def read(self) -> list[Loss]:
        """All losses, the newest last."""
        return list(read_losses(self._log.read(0, 0)[0]))

    def known(self, target_topic_id: str, partition: int) -> list[Loss]:
        """All losses in a target partition, as far as this process has read or written of them, the newest last."""
        return list(self._of(target_topic_id, partition).values())

    def _of(self, target_topic_id: str, partition: int) -> dict[str, Loss]:
        if self._newest is None:
            self._newest = {}
            for one in self.read():
                self._newest.setdefault((one.target_topic_id, one.partition), {})[one.key] = one
        return self._newest.setdefault((target_topic_id, partition), {})


def halted_at_target(losses: Iterable[Loss]) -> list[Loss]:
    """Those that nothing tells how to heal: what the target lost in a log that was emptied."""
    return [loss for loss in losses if loss.kind is LossKind.TARGET_TRUNCATED and loss.action == "halted"]


def standing_notes(losses: Iterable[Loss]) -> list[Loss]:
    """What is not ours in one target partition, by all that the ledger says of it, in order.

    What the target lost since it was noted is not there any more: something else may be in its place.
    """
    notes: list[Loss] = []
    for loss in losses:
        if loss.kind in NOT_OURS:
            notes.append(loss)
        elif loss.kind is LossKind.TARGET_TRUNCATED:
            notes = [part for note in notes for part in _without(note, loss)]
    return notes


def _without(note: Loss, lost: Loss) -> Iterable[Loss]:
    for first, end in ((note.first, min(note.end, lost.first)), (max(note.first, lost.end), note.end)):
        if first < end:
            yield note.model_copy(update={"first": first, "end": end})


def _overrules(newer: Loss, known: Loss) -> bool:
    """Whether saying what is known again says something new."""
    kinds = {newer.kind, known.kind}
    both = LossKind.TARGET_TRUNCATED in kinds and not kinds.isdisjoint(NOT_OURS)
    return both and newer.first < known.end and known.first < newer.end


def read_losses(entries: Iterable[LogEntry]) -> Iterable[Loss]:
    """Losses from the ledger's records, the newest word on each; what another version wrote is left out."""
    found: dict[bytes, Loss] = {}
    for _, key, value in entries:
        if key is not None and value is not None:
            try:
                loss = Loss.model_validate_json(value)
            except ValidationError:
                continue
            found.pop(key, None)
            found[key] = loss
    return found.values()
