"""Batch refused by the target for good: the record, the reason and the remedy.

The target's limits are read only after such a refusal, in the background.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import NamedTuple

from sparkmirror.cluster.error_names import error_name
from sparkmirror.pump.batch import Batch
from sparkmirror.pump.verdicts import explanation
from sparkmirror.wire.batches import batch_headers
from sparkmirror.wire.error_codes import ErrorCode
from sparkmirror.wire.pieces import raw_parts
from sparkmirror.wire.produce import Ack

LIMITS: Mapping[int, tuple[str, ...]] = {
    ErrorCode.MESSAGE_TOO_LARGE: ("max.message.bytes",),
    ErrorCode.INVALID_TIMESTAMP: ("message.timestamp.before.max.ms", "message.timestamp.after.max.ms"),
}
"""Configurations of the target topic behind each error code."""


class Refused(NamedTuple):
    """Reason why a partition can't go on."""

    error: int
    words: str
    target_topic: str

    def with_limits(self, settings: Mapping[str, str]) -> str:
        """Return the whole line, with the present settings of the target's topic."""
        if not settings:
            return self.words
        limits = ", ".join(f"{name}={value}" for name, value in settings.items())
        return f"{self.words}; topic {self.target_topic} has {limits}: raise the limit that stands in the way"


def refused(batch: Batch, ack: Ack, target_topic: str) -> Refused:
    """Explain a refusal; the batch's frame must not be released yet."""
    index, detail = ack.record_errors[0] if ack.record_errors else (0, ack.message)
    reason = f"source offset {_upstream(batch, index)}: {error_name(ack.error)}"
    words = explanation(ack.error)
    reason += f", {words}" if words else ""
    if ack.error == ErrorCode.MESSAGE_TOO_LARGE:
        reason += f" ({len(batch.view)} bytes)"
    elif ack.error == ErrorCode.INVALID_TIMESTAMP:
        reason += f" ({_date(batch, index)})"
    elif detail:
        reason += f": {detail}"
    return Refused(ack.error, reason, target_topic)


def _upstream(batch: Batch, index: int) -> int:
    for run in batch.runs:
        if index < run.length:
            return run.upstream + index
        index -= run.length
    return batch.upstream


def _date(batch: Batch, index: int) -> str:
    """Return the timestamp of one record in words."""
    ((_, header),) = batch_headers(batch.view)
    timestamp = header.max_timestamp
    with suppress(ValueError):  # a batch that goes whole may unpack to more than may be held
        timestamp = next((at for offset, at, _ in raw_parts(header, batch.view) if offset == index), timestamp)
    try:
        return f"timestamp {timestamp}, {datetime.fromtimestamp(timestamp / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):
        return f"timestamp {timestamp}"
