"""What MirrorMaker 2's connectors let be altered of their offsets, by their own rules (`mm2.md` 3.9).

An offset of None, which removes one, is taken for anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sparkmirror.connect.model import Offset
from sparkmirror.formats.connect import Role

_TEXT: Mapping[Role, tuple[str, ...]] = {
    Role.SOURCE: ("cluster", "topic"),
    Role.CHECKPOINT: ("group", "topic"),
    Role.HEARTBEAT: ("sourceClusterAlias", "targetClusterAlias"),
}
"""What of a source partition is text; all but a heartbeat's have a `partition`, too."""

_MOST = 2**31 - 1


def check_offsets(role: Role, offsets: Iterable[Offset]) -> None:
    """Raises `ValueError` at the first that the connector would not take."""
    for partition, offset in offsets:
        if offset is None:
            continue
        _check_partition(role, partition)
        number = _whole(offset.get("offset"))
        if "offset" not in offset or number is None:
            raise ValueError(f"Source offset {_shown(offset)} needs an 'offset', a whole number")
        if role is Role.SOURCE and number < 0:
            raise ValueError(f"Source offset {number} of {_shown(partition)} may not be negative")
        if role is not Role.SOURCE and number != 0:
            raise ValueError(f"Source offset {number} of {_shown(partition)} must be 0, as this connector's always are")


def _check_partition(role: Role, partition: Mapping[str, object] | None) -> None:
    if partition is None:
        raise ValueError("Source partition may not be null where there is an offset")
    for key in _TEXT[role]:
        if key not in partition:
            raise ValueError(f"Source partition {_shown(partition)} has no '{key}'")
        if not isinstance(partition[key], str):
            raise ValueError(f"Source partition {_shown(partition)}: '{key}' must be text")
    if role is Role.HEARTBEAT:
        return
    if "partition" not in partition:
        raise ValueError(f"Source partition {_shown(partition)} has no 'partition'")
    index = _whole(partition["partition"])
    if index is None or not 0 <= index <= _MOST:
        raise ValueError(f"Source partition {_shown(partition)}: 'partition' must be a whole number from 0 to {_MOST}")


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _shown(content: Mapping[str, object]) -> str:
    return "{" + ", ".join(f"{key}={value}" for key, value in content.items()) + "}"
