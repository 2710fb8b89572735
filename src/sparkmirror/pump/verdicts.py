"""What to do about each of Kafka's error codes that a pump can meet, on either side: one table.

After every error that isn't final the position is read again and one batch goes alone (invariant 5, R3); the
verdicts differ in when: at once where our view was out of date, after a pause where a broker needs time,
with growing pauses where somebody must act first, and never where this pump has no right to write any more.

Two small sets stand beside it, because no partition is copied there: a question is asked a few times while its asker
waits. `cluster/topic_log.py` writes and reads our internal topics and tries all again but `_FINAL_ERRORS`;
`cluster/producers.py` asks for a producer id and tries only `_NOT_YET` again. Neither contradicts the table: the former
would be parked, the latter tried again.
"""

from __future__ import annotations

from enum import Enum


class ErrorAction(Enum):
    """What an error code asks for."""

    SEEK = "our view is out of date: read leaders and position again, at once"
    RETRY = "it may pass by itself: the same after a pause"
    PARK = "leave the partition until somebody acts, look again with growing pauses"
    STOP = "never write again with this producer id and epoch"


_SEEK = {
    1: "the offset is not in the log",
    3: "the topic or partition is not known there",
    5: "no leader now",
    6: "the leader has moved",
    9: "the replica is not there",
    13: "a network error at the broker",
    45: "another sequence was due: somebody else has appended, or a batch before this one was refused",
    46: "the batch is there already",
    59: "the leader has no state of this producer",
    72: "the listener is not known at the broker",
    74: "a newer leader was elected",
    75: "the broker has not heard of its election yet",
    100: "the topic is a new one of the same name, or gone",
    103: "the topic ids disagree",
}
_RETRY = {
    -1: "an unexpected error at the broker",
    7: "replicas did not confirm in time; the batch is in the leader's log",
    8: "the broker is not available",
    14: "a coordinator is loading",
    15: "no coordinator now",
    16: "the coordinator has moved",
    19: "too few replicas in sync; nothing was written",
    20: "too few replicas in sync; the batch is in the leader's log",
    41: "the controller has moved",
    56: "the broker's disk failed, or is full",
    70: "the fetch session is not known",
    71: "the fetch session is at another request",
    78: "the leader has not learned its high watermark yet",
    89: "the quota is used up",
    106: "the fetch session knows another topic id",
    109: "the broker can't serve older data now",
}
_PARK = {
    2: "the target calls the batch corrupt",
    10: "the batch is larger than the target's max.message.bytes",
    17: "the topic's name is not allowed",
    18: "the batch is larger than the target's segment.bytes",
    21: "acks=all is refused",
    29: "not authorized for the topic",
    30: "not authorized for the group",
    31: "not authorized for the cluster: grant us IDEMPOTENT_WRITE on it",
    32: "the target refuses the record's timestamp",
    35: "the request's version is not supported",
    42: "the request is invalid",
    43: "the target's message format is too old",
    44: "a policy of the cluster forbids it",
    53: "not authorized for the transactional id",
    54: "security is disabled at the broker",
    58: "sign-in was refused",
    76: "the target refuses the compression codec",
    87: "the target refuses a record",
    104: "the cluster is another one",
}
_STOP = {
    47: "another incarnation with a higher epoch has fenced this one",
    48: "a transaction of our producer id is open",
    49: "the producer id is mapped to another transactional id",
    51: "transactions of our producer id run at the same time",
    52: "the transaction's coordinator has fenced this producer",
    90: "another incarnation has fenced this one",
}
_TABLE = (
    (ErrorAction.SEEK, _SEEK),
    (ErrorAction.RETRY, _RETRY),
    (ErrorAction.PARK, _PARK),
    (ErrorAction.STOP, _STOP),
)
TABLE = {code: (verdict, words) for verdict, codes in _TABLE for code, words in codes.items()}
"""Kafka's error code -> the verdict, and a few words."""


def verdict(code: int) -> ErrorAction:
    """The verdict on an error code; one that isn't listed may go away by itself."""
    return TABLE[code][0] if code in TABLE else ErrorAction.RETRY


def explanation(code: int) -> str:
    """A few words on a code; empty for one that isn't listed."""
    return TABLE[code][1] if code in TABLE else ""
