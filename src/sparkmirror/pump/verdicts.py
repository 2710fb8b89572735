"""What to do about each of Kafka's error codes, on either side.

One table: retry (read the position again after a pause), park (nothing changes until somebody acts),
or stop (this pump must never write again).
"""

from __future__ import annotations

from enum import Enum


class Verdict(Enum):
    """What an error code asks for."""

    SEEK = "read the position again, then one batch alone"
    PARK = "leave the partition until somebody acts, look again with growing pauses"
    STOP = "never write again with this producer id and epoch"


_PARK = {
    2: "the target calls the batch corrupt",
    10: "the batch is larger than the target's max.message.bytes",
    17: "the target refuses the topic's name",
    29: "not authorized for the topic",
    30: "not authorized for the group",
    31: "not authorized for the cluster",
    32: "the target refuses the record's timestamp (message.timestamp.before.max.ms, .after.max.ms)",
    38: "the target refuses the replication factor",
    43: "the target's message format is too old",
    53: "not authorized for the transactional id",
    58: "sign-in was refused",
    76: "the target refuses the compression codec",
    87: "the target refuses the record",
}
_STOP = {
    47: "another incarnation with a higher epoch has fenced this one",
    48: "a transaction of our producer id is open",
}


def verdict(code: int) -> Verdict:
    """The verdict on an error code; one that isn't listed may go away by itself."""
    if code in _STOP:
        return Verdict.STOP
    return Verdict.PARK if code in _PARK else Verdict.SEEK


def explanation(code: int) -> str:
    """A few words on a code that needs somebody; empty for the others."""
    return _PARK.get(code) or _STOP.get(code) or ""
