"""Causes for which a partition isn't copied now, as a closed list.

Metrics have the cause as a label, and never the text of the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from sparkmirror.durable.losses import LossKind


class Cause(StrEnum):
    """Cause for which a flow, topic or partition isn't copied now."""

    NONE = "none"
    PAUSED = "paused"
    """An operator has paused the copy."""
    POSITION = "position"
    """The position is being read."""
    PREDECESSOR = "predecessor"
    """A predecessor may still be alive, so the pump waits."""
    RIVAL = "rival"
    """A rival process writes with this flow's identity."""
    THROTTLED = "throttled"
    """A broker enforces a quota."""
    UNREACHABLE = "unreachable"
    """A broker is unreachable, or does not answer."""
    NO_LEADER = "no-leader"
    NOT_ENOUGH_REPLICAS = "not-enough-replicas"
    NOT_AUTHORIZED = "not-authorized"
    NO_TOPIC = "no-topic"
    """The topic, or the partition, does not exist."""
    TOO_LARGE = "too-large"
    """The target limits sizes."""
    TIMESTAMP = "timestamp"
    """The target limits timestamps."""
    UNREADABLE = "unreadable"
    """The source's records can't be read, or can't be unpacked within the bound."""
    REFUSED = "refused"
    """A cluster refuses the copy for another reason: codec, policy, format, version."""
    EXPIRED = "expired"
    TRUNCATED = "truncated"
    TARGET_TRUNCATED = "target-truncated"
    RECREATED = "recreated"
    """The topic at one side is a new topic, or has fewer partitions."""
    FOREIGN = "foreign-writer"
    """A foreign producer wrote to the copy."""
    TAKEOVER = "takeover"
    """The end of another mirror's copy is not known."""
    BROKER = "broker"
    """A broker has an error that may pass by itself."""
    OTHER = "other"


_BY_CODE: Mapping[Cause, tuple[int, ...]] = {
    Cause.NO_TOPIC: (3, 17, 100, 103),
    Cause.NO_LEADER: (5, 6, 74, 75),
    Cause.NOT_ENOUGH_REPLICAS: (7, 19, 20),
    Cause.NOT_AUTHORIZED: (29, 30, 31, 53, 54, 58),
    Cause.TOO_LARGE: (10, 18),
    Cause.TIMESTAMP: (32,),
    Cause.UNREADABLE: (2,),
    Cause.REFUSED: (21, 35, 42, 43, 44, 76, 87, 104),
    Cause.RIVAL: (45, 46, 47, 48, 49, 51, 52, 59, 90),
    Cause.THROTTLED: (89,),
}
_CODES = {code: cause for cause, codes in _BY_CODE.items() for code in codes}

_LOSSES = {
    LossKind.EXPIRED: Cause.EXPIRED,
    LossKind.TRUNCATED: Cause.TRUNCATED,
    LossKind.TARGET_TRUNCATED: Cause.TARGET_TRUNCATED,
    LossKind.RECREATED: Cause.RECREATED,
    LossKind.SHRUNK: Cause.RECREATED,
    LossKind.TARGET_RECREATED: Cause.RECREATED,
    LossKind.FOREIGN: Cause.FOREIGN,
}


def cause_of_error(code: int) -> Cause:
    """Return the cause for a Kafka error code."""
    return _CODES.get(code, Cause.BROKER)


def cause_of_loss(kind: LossKind) -> Cause:
    """Return the cause for a loss that halts a partition."""
    return _LOSSES.get(kind, Cause.OTHER)
