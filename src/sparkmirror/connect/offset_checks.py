"""Check altered offsets (KIP-875), in the words of MirrorMaker 2's connectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from typing_extensions import TypeIs

from sparkmirror.connect.connector_model import Offset
from sparkmirror.connect.errors import as_text
from sparkmirror.errors import HandledError

_INT_MAX = 2**31 - 1
_LONG_MAX = 2**63 - 1
_STRINGS = {
    "MirrorSourceConnector": ("cluster", "topic"),
    "MirrorCheckpointConnector": ("group", "topic"),
    "MirrorHeartbeatConnector": ("sourceClusterAlias", "targetClusterAlias"),
}
"""A source partition's keys with text values, by connector."""


class OffsetRefused(HandledError, ValueError):
    """Refused alteration: an entry does not have the connector's offset format.

    Nothing was changed.
    """


def check_offsets(connector: str, offsets: Sequence[Offset]) -> None:
    """Raise `OffsetRefused` for the first wrong entry.

    `connector` is the class name without its package. An entry without an offset may have any partition, so that
    garbage can be removed.
    """
    for partition, offset in offsets:
        if offset is None:
            continue
        if partition is None:
            raise OffsetRefused("Source partitions may not be null")
        for key in _STRINGS[connector]:
            _check_string(partition, key)
        if connector != "MirrorHeartbeatConnector":
            _check_partition(partition)
        _check_offset(partition, offset, only_zero=connector != "MirrorSourceConnector")


def _check_string(partition: Mapping[str, object], key: str) -> None:
    _check_there(partition, key)
    if not isinstance(partition[key], str):
        raise _wrong_part(partition, key, "which must be a string")


def _check_partition(partition: Mapping[str, object]) -> None:
    _check_there(partition, "partition")
    number = partition["partition"]
    if not _is_integer(number) or number > _INT_MAX:
        raise _wrong_part(partition, "partition", "which must be an integer")
    if number < 0:
        raise _wrong_part(partition, "partition", "which cannot be negative")


def _check_there(partition: Mapping[str, object], key: str) -> None:
    if key not in partition:
        raise OffsetRefused(f"Source partition {as_text(partition)} is missing the '{key}' key, which is required")


def _wrong_part(partition: Mapping[str, object], key: str, why: str) -> OffsetRefused:
    shown = as_text(partition[key])
    return OffsetRefused(
        f"Source partition {as_text(partition)} has an invalid value {shown} for the '{key}' key, {why}"
    )


def _check_offset(partition: Mapping[str, object], offset: Mapping[str, object], *, only_zero: bool) -> None:
    subject = f"Source offset {as_text(offset)} for source partition {as_text(partition)}"
    if "offset" not in offset:
        raise OffsetRefused(f"{subject} is missing the 'offset' key, which is required")
    number = offset["offset"]
    invalid = f"{subject} has an invalid value {as_text(number)} for the 'offset' key"
    if not _is_integer(number) or number > _LONG_MAX:
        raise OffsetRefused(f"{invalid}, which must be an integer")
    if only_zero and number != 0:
        raise OffsetRefused(f"{invalid}; the only accepted value is 0")
    if number < 0:
        raise OffsetRefused(f"{invalid}, which cannot be negative")


def _is_integer(value: object) -> TypeIs[int]:
    """Tell whether a JSON value is a whole number.

    Python's `int` includes true and false.
    """
    return isinstance(value, int) and not isinstance(value, bool)
