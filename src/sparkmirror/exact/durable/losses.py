"""Loss ledger: the durable list of losses, and what was done about each.

A loss is a record in `mm2-sparkmirror-losses.<source>.internal` on the target, a small compacted topic whose keys and
values are JSON. A loss is durable before anything is sent past the lost range. The same topic also holds the flow's
further records, such as the known topics (`known_topics`) and the progress (`noted_progress`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict, ValidationError

from sparkmirror.exact.durable.loss_kinds import AT_TARGET as AT_TARGET
from sparkmirror.exact.durable.loss_kinds import NOT_OURS, LossOutcome, outcome_of
from sparkmirror.exact.durable.loss_kinds import Action as Action
from sparkmirror.exact.durable.loss_kinds import LossKind as LossKind
from sparkmirror.kafka.cluster.topic_log import LogEntry, TopicLog


class Loss(BaseModel):
    """One loss in one partition.

    `first` and `end` are a half-open offset range, at the target for the kinds in `AT_TARGET`, else at the source.
    """

    model_config = ConfigDict(frozen=True)
    kind: LossKind
    source_topic: str
    target_topic: str
    partition: int
    first: int
    end: int
    downstream: int
    """Target offset where the next copied record lands."""
    target_topic_id: str
    """Target topic's id, as 32 hexadecimal digits.

    A topic that is created again has a new id.
    """
    action: Action
    words: str
    """One line: the event, the place, and the remedy."""
    at_ms: int = 0
    """Discovery time, in milliseconds since 1970."""
    apart: str = ""
    """Words that tell the entry from others of its kind at its place at the target.

    A query's losses have the source topic's id and the first offset. A pump's have the id if the place was reached
    under an earlier topic of the name, and the first offset if an entry of other offsets is known, else nothing.
    """

    @property
    def offsets(self) -> int:
        """Number of offsets in the range, and so the most records lost."""
        return self.end - self.first

    @property
    def outcome(self) -> LossOutcome:
        """Fate of the flow's records."""
        return outcome_of(self.kind, self.action, self.offsets)

    @property
    def number(self) -> str:
        """Number by which operators name the entry: eight hexadecimal digits.

        The number follows from the key, so it stays the same.
        """
        return hashlib.sha256(self.key.encode()).hexdigest()[:8]

    @property
    def key(self) -> str:
        """The loss's key in the ledger.

        The key stays the same however often the loss is met, and however much the loss grows meanwhile.
        """
        place = [self.kind, self.source_topic, self.partition, self.target_topic_id, self.downstream]
        return json.dumps([*place, self.apart] if self.apart else place)


TargetPartition = tuple[str, int]
"""A target topic's id, as 32 hexadecimal digits, and partition number."""


def losses_topic(source_alias: str) -> str:
    """Return the ledger topic's name.

    The name ends so that no MirrorMaker 2 mirrors the topic (`design.md`, "Internal topics").
    """
    return f"mm2-sparkmirror-losses.{source_alias}.internal"


class LossLedger:
    """One flow's loss ledger."""

    def __init__(self, log: TopicLog) -> None:
        self._log = log
        self._newest: dict[TargetPartition, dict[str, Loss]] = {}
        """Losses by key; the entry written last is last."""
        self._is_read = False
        self._offset = 0

    def record(self, loss: Loss) -> None:
        """Make a loss durable, unless the ledger has the same loss.

        A loss that the ledger has is neither written again nor dated again, except behind a newer entry that overlaps
        (`_overrules`). A healed loss at the target never becomes smaller: another process may have known more about the
        loss.
        """
        partition = self._of(loss.target_topic_id, loss.partition)
        known = partition.get(loss.key)
        smaller = known is not None and loss.kind is LossKind.TARGET_TRUNCATED and loss.end < known.end
        if known is not None and smaller and known.action == loss.action == "healed":
            loss = known.model_copy(update={"at_ms": loss.at_ms})
        if known is not None and known == loss.model_copy(update={"at_ms": known.at_ms}):
            newer = list(partition.values())[list(partition).index(loss.key) + 1 :]
            if not any(_overrules(entry, known) for entry in newer):
                return
        self._log.append(0, [(loss.key.encode(), loss.model_dump_json().encode())])
        partition.pop(loss.key, None)
        partition[loss.key] = loss

    def read(self) -> list[Loss]:
        """Return all losses, the newest last."""
        return list(read_losses(self._log.read(0, 0)[0]))

    def known(self, target_topic_id: str, partition: int) -> list[Loss]:
        """Return the losses in a target partition, the newest last.

        Only losses that this process has read or written are returned: what others have written since the first call
        is read after `outdate`.
        """
        return list(self._of(target_topic_id, partition).values())

    def _of(self, target_topic_id: str, partition: int) -> dict[str, Loss]:
        if not self._is_read:
            self._read_on()
        return self._newest.setdefault((target_topic_id, partition), {})

    def outdate(self) -> None:
        """Have the next look read what others have written since; for any thread."""
        self._is_read = False

    def _read_on(self) -> None:
        self._is_read = True  # first, since it may be outdated again meanwhile
        try:
            entries, self._offset = self._log.read(0, self._offset)
        except BaseException:
            self._is_read = False
            raise
        for loss in read_losses(entries):
            partition = self._newest.setdefault((loss.target_topic_id, loss.partition), {})
            partition.pop(loss.key, None)
            partition[loss.key] = loss


def halted_at_target(losses: Iterable[Loss]) -> list[Loss]:
    """Return the target losses that halt a partition.

    The target lost acknowledged records in a log that was emptied, and nothing tells where to continue.
    """
    return [loss for loss in losses if loss.kind is LossKind.TARGET_TRUNCATED and loss.action == "halted"]


def standing_notes(losses: Iterable[Loss]) -> list[Loss]:
    """Return the notes on foreign records and fences that still hold.

    `losses` are all a target partition's ledger entries, in order. A range that the target lost after the note is cut
    from the note: other records may be in its place.
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
    """Tell whether a known loss must be written again, behind a newer loss.

    A loss at the target and a note on foreign records or fences overlap, so the order in the ledger matters.
    """
    kinds = {newer.kind, known.kind}
    loss_and_note = LossKind.TARGET_TRUNCATED in kinds and not kinds.isdisjoint(NOT_OURS)
    return loss_and_note and newer.first < known.end and known.first < newer.end


def read_losses(entries: Iterable[LogEntry]) -> Iterable[Loss]:
    """Return the losses in the ledger's records, the newest record for each key.

    Another sparkmirror version's records are left out.
    """
    newest: dict[bytes, Loss] = {}
    for _, key, value in entries:
        if key is not None and value is not None:
            try:
                loss = Loss.model_validate_json(value)
            except ValidationError:
                continue
            newest.pop(key, None)
            newest[key] = loss
    return newest.values()
