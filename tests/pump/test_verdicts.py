"""What is done about Kafka's error codes (R1)."""

from __future__ import annotations

import pytest

from sparkmirror.kafka.cluster.append_trial import _PASSING
from sparkmirror.kafka.cluster.coordinators import PASSING
from sparkmirror.kafka.cluster.topic_log import _FINAL_ERRORS
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.pump.verdicts import TABLE, ErrorAction, explanation, verdict

ANY_ANSWER = {
    ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.UNSUPPORTED_VERSION,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.INCONSISTENT_TOPIC_ID,
}
"""Codes of answers to Fetch and to Produce, as Kafka's source has them.

The sources: `KafkaApis`, and what it calls (`ReplicaManager`, `Partition`, `UnifiedLog`, `LogValidator`,
`ProducerAppendInfo`, `FetchSession`); the lists in the comments of `FetchResponse` and `ProduceResponse`.
"""

FETCH = {
    ErrorCode.OFFSET_OUT_OF_RANGE,
    ErrorCode.REPLICA_NOT_AVAILABLE,  # before Kafka 2.6
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE,
}

PRODUCE = {
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.INVALID_TOPIC_EXCEPTION,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.INVALID_REQUIRED_ACKS,
    ErrorCode.INVALID_TIMESTAMP,
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    ErrorCode.INVALID_RECORD,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
    ErrorCode.UNKNOWN_PRODUCER_ID,  # before Kafka 2.5
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.TRANSACTION_COORDINATOR_FENCED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
"""Without TRANSACTION_ABORTABLE: it answers a batch of a transaction, and a pump sends none."""

OTHER_REQUESTS = {
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.BROKER_NOT_AVAILABLE,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.POLICY_VIOLATION,
    ErrorCode.SECURITY_DISABLED,
    ErrorCode.SASL_AUTHENTICATION_FAILED,
    ErrorCode.LISTENER_NOT_FOUND,
    ErrorCode.OFFSET_NOT_AVAILABLE,
    ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    ErrorCode.INCONSISTENT_CLUSTER_ID,
}
"""Codes that are listed all the same, since their meaning is plain wherever they come up."""


def test_each_code_of_an_answer_to_fetch_or_produce_is_listed() -> None:
    assert {code.name for code in (ANY_ANSWER | FETCH | PRODUCE) - TABLE.keys()} == set()


def test_nothing_is_listed_by_chance() -> None:
    assert set(TABLE) == ANY_ANSWER | FETCH | PRODUCE | OTHER_REQUESTS
    unlisted = set(ErrorCode) - TABLE.keys() - {ErrorCode.NONE}
    assert ErrorCode.TRANSACTION_ABORTABLE in unlisted
    assert {verdict(code) for code in unlisted} == {ErrorAction.RETRY}


@pytest.mark.parametrize("code", [1, 3, 5, 6, 9, 13, 45, 46, 59, 74, 75, 100])
def test_what_is_out_of_date_is_looked_at_again_at_once(code: int) -> None:
    """45 and 46 alike: somebody else wrote it, or it is a gap; 100 is a new topic."""
    assert verdict(code) is ErrorAction.SEEK


@pytest.mark.parametrize("code", [-1, 7, 19, 20, 56, 89, 9999])
def test_what_may_pass_is_tried_again_after_a_pause(code: int) -> None:
    """7 and 20 may have been appended, 19 was not; an unknown code may be a newer broker's."""
    assert verdict(code) is ErrorAction.RETRY


@pytest.mark.parametrize("code", [2, 10, 29, 31, 32, 76, 87])
def test_what_stays_waits_for_somebody_who_is_told_why(code: int) -> None:
    assert verdict(code) is ErrorAction.PARK


@pytest.mark.parametrize("code", [47, 48, 90])
def test_a_fenced_pump_never_writes_again(code: int) -> None:
    assert verdict(code) is ErrorAction.STOP


def test_whoever_may_not_write_at_all_is_told_what_to_grant() -> None:
    assert "grant sparkmirror's principal IDEMPOTENT_WRITE" in explanation(31)


def test_the_small_sets_beside_the_table_say_the_same() -> None:
    assert {verdict(code) for code in _FINAL_ERRORS} == {ErrorAction.PARK}
    assert {verdict(code) for code in PASSING} == {ErrorAction.RETRY}
    assert {verdict(code) for code in _PASSING} == {ErrorAction.SEEK, ErrorAction.RETRY}


def test_every_listed_code_is_explained() -> None:
    assert 0 not in TABLE
    assert all(explanation(code) for code in TABLE)
    assert explanation(9999) == ""
