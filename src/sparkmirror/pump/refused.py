"""Batch refused by the target for good: the record, the reason and the remedy.

The target's limits are read only after such a refusal, in the background.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import NamedTuple

from sparkmirror.kafka.cluster.error_names import error_name
from sparkmirror.kafka.wire.batches import batch_headers
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.pieces import raw_parts
from sparkmirror.kafka.wire.produce import Ack
from sparkmirror.pump.batch import Batch
from sparkmirror.pump.verdicts import explanation

_OLD_LIMIT = "message.timestamp.difference.max.ms"
"""The only timestamp limit before Kafka 3.6 (KIP-937).

Later brokers may have this property, too; other properties count there.
"""
LIMITS: Mapping[int, tuple[str, ...]] = {
    ErrorCode.MESSAGE_TOO_LARGE: ("max.message.bytes",),
    ErrorCode.RECORD_LIST_TOO_LARGE: ("segment.bytes",),
    ErrorCode.INVALID_TIMESTAMP: (
        "message.timestamp.before.max.ms",
        "message.timestamp.after.max.ms",
        _OLD_LIMIT,
    ),
}
"""The target topic's configurations behind each error code."""
_SIZES = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)
_AT_SOURCE = "its topic at the source has "
_BYTES = re.compile(r"batch of (?:more than )?(\d+) bytes")
_TIMESTAMP = re.compile(r"\(timestamp (-?\d+), ")


class Refused(NamedTuple):
    """Reason why a partition can't continue."""

    error: int
    words: str
    target_topic: str

    def with_limits(self, target: Mapping[str, str], source: Mapping[str, str]) -> str:
        """Return the whole line, with the topic's present settings on both sides."""
        if len(target) > 1:
            target = {name: value for name, value in target.items() if name != _OLD_LIMIT}
        if not target:
            return self.words
        at_source = {name: value for name, value in source.items() if name in target}
        words = f"{self.words}; topic {self.target_topic} has {_listed(target)}"
        return f"{words}; {_AT_SOURCE}{_listed(at_source)}" if at_source else words


class Obstructed(NamedTuple):
    """Limits as a line from `Refused.with_limits` tells them; None: not told."""

    bytes: int | None
    """The batch's size."""
    timestamp_ms: int | None
    """The record's timestamp."""
    at_source: Mapping[str, int]
    """The source topic's limits."""

    @classmethod
    def of(cls, reason: str) -> Obstructed:
        """Read a line."""
        size, timestamp = _BYTES.search(reason), _TIMESTAMP.search(reason)
        limits = (setting.partition("=") for setting in reason.partition(_AT_SOURCE)[2].split(", "))
        at_source = {name: int(value) for name, equals, value in limits if equals and value.isdigit()}
        return cls(int(size[1]) if size else None, int(timestamp[1]) if timestamp else None, at_source)


def refused(batch: Batch, ack: Ack, target_topic: str) -> Refused:
    """Explain a refusal; the batch's frame must not be released yet."""
    index, detail = ack.record_errors[0] if ack.record_errors else (0, ack.message)
    reason = f"source offset {_upstream(batch, index)}: {error_name(ack.error)}"
    words = explanation(ack.error)
    if ack.error in _SIZES:
        words = f"the batch of {len(batch.view)} bytes is larger than the target's {LIMITS[ack.error][0]}"
    reason += f", {words}" if words else ""
    if ack.error == ErrorCode.INVALID_TIMESTAMP:
        reason += f" ({_date(batch, index)})"
    elif detail and ack.error not in _SIZES:
        reason += f": {detail}"
    return Refused(ack.error, reason, target_topic)


def _listed(settings: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def _upstream(batch: Batch, index: int) -> int:
    for run in batch.runs:
        if index < run.length:
            return run.upstream + index
        index -= run.length
    return batch.upstream


def _date(batch: Batch, index: int) -> str:
    """Return one record's timestamp in words."""
    ((_, header),) = batch_headers(batch.view)
    timestamp = header.max_timestamp
    with suppress(ValueError):  # a batch that goes whole may unpack to more than may be held
        timestamp = next((at for offset, at, _ in raw_parts(header, batch.view) if offset == index), timestamp)
    try:
        return f"timestamp {timestamp}, {datetime.fromtimestamp(timestamp / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):
        return f"timestamp {timestamp}"
