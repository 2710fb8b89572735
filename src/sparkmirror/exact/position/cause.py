"""Causes for which a partition isn't copied now, as a closed list.

Metrics have the cause as a label, and never the reason's text.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from sparkmirror.exact.durable.losses import LossKind
from sparkmirror.kafka.wire.error_codes import ErrorCode


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
    OPEN_TRANSACTION = "open-transaction"
    """An open transaction at the source holds back what may be read at read_committed."""
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
    TRANSFORM = "transform"
    """The flow's transforms can't change a record."""
    REFUSED = "refused"
    """A cluster refuses the copy for another reason: codec, policy, format, version."""
    EXPIRED = "expired"
    TRUNCATED = "truncated"
    TARGET_TRUNCATED = "target-truncated"
    RECREATED = "recreated"
    """The topic at one side is a new topic, or has fewer partitions."""
    FOREIGN = "foreign-writer"
    """A foreign producer wrote to the copy."""
    CLAIMS_LOST = "claims-lost"
    """The segments topic has lost claims on copied records."""
    TAKEOVER = "takeover"
    """The place where another mirror's copy ends is not known."""
    BROKER = "broker"
    """A broker has an error that may pass by itself."""
    OTHER = "other"


_BY_CODE: Mapping[Cause, tuple[int, ...]] = {
    Cause.NO_TOPIC: (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    ),
    Cause.NO_LEADER: (
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
    ),
    Cause.NOT_ENOUGH_REPLICAS: (
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ),
    Cause.NOT_AUTHORIZED: (
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.SECURITY_DISABLED,
        ErrorCode.SASL_AUTHENTICATION_FAILED,
    ),
    Cause.TOO_LARGE: (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE),
    Cause.TIMESTAMP: (ErrorCode.INVALID_TIMESTAMP,),
    Cause.UNREADABLE: (ErrorCode.CORRUPT_MESSAGE,),
    Cause.REFUSED: (
        ErrorCode.INVALID_REQUIRED_ACKS,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INCONSISTENT_CLUSTER_ID,
    ),
    Cause.RIVAL: (
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.TRANSACTION_COORDINATOR_FENCED,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.PRODUCER_FENCED,
    ),
    Cause.THROTTLED: (ErrorCode.THROTTLING_QUOTA_EXCEEDED,),
}
_CODES: Mapping[int, Cause] = {code: cause for cause, codes in _BY_CODE.items() for code in codes}

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
    return _CODES.get(code, Cause.BROKER)


def cause_of_loss(kind: LossKind) -> Cause:
    """Return the cause for a loss that halts a partition."""
    return _LOSSES.get(kind, Cause.OTHER)
