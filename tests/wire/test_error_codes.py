"""Kafka's error codes bear Kafka's names, and print as numbers."""

from __future__ import annotations

import json

import kafka.errors
import pytest

from sparkmirror.kafka.wire.error_codes import ErrorCode

OTHER_NAMES = {
    "UNKNOWN": ErrorCode.UNKNOWN_SERVER_ERROR,
    "NO_ERROR": ErrorCode.NONE,
    "NOT_LEADER_FOR_PARTITION": ErrorCode.NOT_LEADER_OR_FOLLOWER,
    "MESSAGE_SIZE_TOO_LARGE": ErrorCode.MESSAGE_TOO_LARGE,
    "INVALID_TOPIC": ErrorCode.INVALID_TOPIC_EXCEPTION,
    "INVALID_REPLICATION_ASSIGNMENT": ErrorCode.INVALID_REPLICA_ASSIGNMENT,
}
"""Codes that kafka-python calls otherwise than Kafka does."""
NEWER = range(128, 134)
"""Codes of Kafka 4.0 to 4.3 that kafka-python 3.0 lacks."""


def test_numbers_and_names_are_those_of_kafka_python() -> None:
    theirs = {known.message: code for code, known in kafka.errors.kafka_errors.items() if code is not None}
    names = {code: name for name, code in OTHER_NAMES.items()}
    ours = {names.get(code, code.name): int(code) for code in ErrorCode if code not in NEWER}
    assert ours == theirs


def test_the_list_has_neither_gap_nor_alias() -> None:
    assert [int(code) for code in ErrorCode] == list(range(-1, NEWER.stop))
    assert len(ErrorCode.__members__) == len(ErrorCode)


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION])
def test_a_code_is_printed_as_its_number(code: ErrorCode) -> None:
    number = str(int(code))
    assert [str(code), f"{code}", f"{code:d}", "%s" % code, "%d" % code, json.dumps(code)] == [number] * 6  # noqa: UP031


def test_a_code_is_the_key_of_its_number() -> None:
    assert {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "x"}[3] == "x"  # type: ignore[index]
    assert 3 in frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})
