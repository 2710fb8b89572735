"""Why something isn't copied now, as a closed list: metrics use it as a label, never the reason's text."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from sparkmirror.durable.losses import LossKind


class Cause(StrEnum):
    """Why something isn't copied now."""

    NONE = "none"
    PAUSED = "paused"
    """An operator has paused it."""
    POSITION = "position"
    """Its position is being read."""
    PREDECESSOR = "predecessor"
    """A predecessor may still be alive, and is waited for."""
    RIVAL = "rival"
    """Another process writes as this flow."""
    THROTTLED = "throttled"
    """A broker's quota."""
    UNREACHABLE = "unreachable"
    """A broker can't be reached, or does not answer."""
    NO_LEADER = "no-leader"
    NOT_ENOUGH_REPLICAS = "not-enough-replicas"
    NOT_AUTHORIZED = "not-authorized"
    NO_TOPIC = "no-topic"
    """The topic, or partition, is not there."""
    TOO_LARGE = "too-large"
    """The target's limits on sizes."""
    TIMESTAMP = "timestamp"
    """The target's limits on timestamps."""
    UNREADABLE = "unreadable"
    """The source's records can't be read, or not be unpacked within the bound."""
    REFUSED = "refused"
    """A cluster refuses it for another reason: codec, policy, format, version."""
    EXPIRED = "expired"
    TRUNCATED = "truncated"
    TARGET_TRUNCATED = "target-truncated"
    RECREATED = "recreated"
    """One side's topic is a new one, or has fewer partitions."""
    FOREIGN = "foreign-writer"
    """Somebody else wrote to the copy."""
    TAKEOVER = "takeover"
    """Where another mirror's copy ended is not known."""
    BROKER = "broker"
    """An error at a broker that may pass by itself."""
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
    """That of one of Kafka's error codes."""
    return _CODES.get(code, Cause.BROKER)


def cause_of_loss(kind: LossKind) -> Cause:
    """That of a loss which halts a partition."""
    return _LOSSES.get(kind, Cause.OTHER)
