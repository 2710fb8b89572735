"""Verdicts: a pump's action after an error code, on either side.

`TABLE` lists each code that an answer to Fetch or Produce can have, in any Kafka release, and some codes for other
requests (`tests/pump/test_verdicts.py` has the lists). Every other code gets the verdict RETRY: a broker gives it
unexpectedly, or it is a newer broker's.

After an error the pump sends no more from the partition, until it has read the position again; then it sends one batch
alone (invariant 5, R3). The verdict tells when to read: at once if the pump's view was out of date, after a pause if a
broker needs time, after pauses that grow if an operator must act first, and never if the pump has no right to write any
more.

Three modules have small sets instead of the table, because these modules copy no partition and repeat a request a few
times while the caller waits. `kafka/cluster/topic_log.py` writes and reads the internal topics, and repeats after all
errors but `_FINAL_ERRORS`. `kafka/cluster/coordinators.py` has `PASSING`, after which requests to coordinators are
repeated, and the one for a producer id. `kafka/cluster/append_trial.py` tries a target's brokers, and repeats after
`_PASSING`. The sets agree with the table: the pump parks for the first set's codes, and for none of the others'.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from sparkmirror.kafka.wire.error_codes import ErrorCode


class ErrorAction(Enum):
    """Action for an error code."""

    SEEK = "the pump's view is out of date: read leaders and position again, at once"
    RETRY = "it may pass by itself: the same after a pause"
    PARK = "leave the partition until an operator acts, look again with growing pauses"
    STOP = "never write again with this producer id and epoch"


_SEEK = {
    ErrorCode.OFFSET_OUT_OF_RANGE: "the offset is not in the log",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "the topic or partition is not known there",
    ErrorCode.LEADER_NOT_AVAILABLE: "no leader now",
    ErrorCode.NOT_LEADER_OR_FOLLOWER: "the leader has moved",
    ErrorCode.REPLICA_NOT_AVAILABLE: "the replica is not there",
    ErrorCode.NETWORK_EXCEPTION: "a network error at the broker",
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: (
        "another sequence was due: a rival pump has appended, or a batch before this one was refused"
    ),
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER: "the batch is there already",
    ErrorCode.UNKNOWN_PRODUCER_ID: "the leader has no state of this producer",
    ErrorCode.LISTENER_NOT_FOUND: "the listener is not known at the broker",
    ErrorCode.FENCED_LEADER_EPOCH: "a newer leader was elected",
    ErrorCode.UNKNOWN_LEADER_EPOCH: "the broker has not heard of its election yet",
    ErrorCode.UNKNOWN_TOPIC_ID: "the topic is a new one of the same name, or gone",
    ErrorCode.INCONSISTENT_TOPIC_ID: "the topic ids disagree",
}
_RETRY = {
    ErrorCode.UNKNOWN_SERVER_ERROR: "an unexpected error at the broker",
    ErrorCode.REQUEST_TIMED_OUT: "replicas did not confirm in time; the batch is in the leader's log",
    ErrorCode.BROKER_NOT_AVAILABLE: "the broker is not available",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "a coordinator is loading",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "no coordinator now",
    ErrorCode.NOT_COORDINATOR: "the coordinator has moved",
    ErrorCode.NOT_ENOUGH_REPLICAS: "too few replicas in sync; nothing was written",
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: "too few replicas in sync; the batch is in the leader's log",
    ErrorCode.NOT_CONTROLLER: "the controller has moved",
    ErrorCode.KAFKA_STORAGE_ERROR: "the broker's disk failed, or is full",
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND: "the fetch session is not known",
    ErrorCode.INVALID_FETCH_SESSION_EPOCH: "the fetch session is at another request",
    ErrorCode.OFFSET_NOT_AVAILABLE: "the leader has not learned its high watermark yet",
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: "the quota is used up",
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR: "the fetch session knows another topic id",
    ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE: "the broker can't serve older data now",
}
_PARK = {
    ErrorCode.CORRUPT_MESSAGE: "the target calls the batch corrupt",
    ErrorCode.MESSAGE_TOO_LARGE: "the batch is larger than the target's max.message.bytes",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "the topic's name is not allowed",
    ErrorCode.RECORD_LIST_TOO_LARGE: "the batch is larger than the target's segment.bytes",
    ErrorCode.INVALID_REQUIRED_ACKS: "acks=all is refused",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "not authorized for the topic",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "not authorized for the group",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: (
        "not authorized for the cluster: grant sparkmirror's principal IDEMPOTENT_WRITE on it"
    ),
    ErrorCode.INVALID_TIMESTAMP: "the target refuses the record's timestamp",
    ErrorCode.UNSUPPORTED_VERSION: "the request's version is not supported",
    ErrorCode.INVALID_REQUEST: "the request is invalid",
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT: "the target's message format is too old",
    ErrorCode.POLICY_VIOLATION: "a policy of the cluster forbids it",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "not authorized for the transactional id",
    ErrorCode.SECURITY_DISABLED: "security is disabled at the broker",
    ErrorCode.SASL_AUTHENTICATION_FAILED: "sign-in was refused",
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE: "the target refuses the compression codec",
    ErrorCode.INVALID_RECORD: "the target refuses a record",
    ErrorCode.INCONSISTENT_CLUSTER_ID: "the cluster is another one",
}
_STOP = {
    ErrorCode.INVALID_PRODUCER_EPOCH: "another incarnation with a higher epoch has fenced this one",
    ErrorCode.INVALID_TXN_STATE: "a transaction of the flow's producer id is open",
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: "the producer id is mapped to another transactional id",
    ErrorCode.CONCURRENT_TRANSACTIONS: "transactions of the flow's producer id run at the same time",
    ErrorCode.TRANSACTION_COORDINATOR_FENCED: "the transaction's coordinator has fenced this producer",
    ErrorCode.PRODUCER_FENCED: "another incarnation has fenced this one",
}
_TABLE = (
    (ErrorAction.SEEK, _SEEK),
    (ErrorAction.RETRY, _RETRY),
    (ErrorAction.PARK, _PARK),
    (ErrorAction.STOP, _STOP),
)
TABLE: Mapping[int, tuple[ErrorAction, str]] = {
    code: (verdict, words) for verdict, codes in _TABLE for code, words in codes.items()
}
"""Verdict and a few words for each listed error code."""


def verdict(code: int) -> ErrorAction:
    """Return the verdict on an error code; RETRY for an unlisted code."""
    return TABLE[code][0] if code in TABLE else ErrorAction.RETRY


def explanation(code: int) -> str:
    """Return a few words on an error code; empty for an unlisted code."""
    return TABLE[code][1] if code in TABLE else ""
