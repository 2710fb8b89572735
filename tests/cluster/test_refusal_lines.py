"""What brokers say of a refusal, as people get it."""

from __future__ import annotations

import pytest

from sparkmirror.kafka.cluster.acls import ADVICE
from sparkmirror.kafka.cluster.refusal_lines import refusal
from sparkmirror.kafka.wire.error_codes import ErrorCode

JAVAS = (
    "Request Request(processor=5, connectionId=127.0.0.1:9092-127.0.0.1:5-0, session=Session(User:mirror,/127.0.0.1),"
    " listenerName=ListenerName(PLAIN), securityProtocol=SASL_PLAINTEXT, buffer=null, envelope=None) is not authorized."
)


@pytest.mark.parametrize(
    ("message", "says"),
    [
        (
            JAVAS,
            "CLUSTER_AUTHORIZATION_FAILED (31); grant sparkmirror's principal DESCRIBE on the cluster at the source",
        ),
        (None, "CLUSTER_AUTHORIZATION_FAILED (31); grant"),
        ("", "CLUSTER_AUTHORIZATION_FAILED (31); grant"),
        ("A policy\n forbids it.", "A policy forbids it; grant"),
    ],
)
def test_a_request_as_java_prints_it_is_no_reason(message: str | None, says: str) -> None:
    assert refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, message, ADVICE).startswith(says)
