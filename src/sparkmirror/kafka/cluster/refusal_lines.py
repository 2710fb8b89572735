"""Lines for people about what a cluster refuses."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sparkmirror.kafka.cluster.error_names import error_name
from sparkmirror.kafka.wire.error_codes import ErrorCode

ADVICE: Mapping[int, str] = {
    ErrorCode.INVALID_TOPIC_EXCEPTION: "rename the topic or exclude it",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "grant sparkmirror's principal CREATE and DESCRIBE on it",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "grant sparkmirror's principal CREATE on the cluster",
    ErrorCode.INVALID_REPLICATION_FACTOR: "lower its replication factor or add brokers; -1 takes the broker's default",
    ErrorCode.INVALID_CONFIG: "exclude the property from the copied ones: config.properties.exclude = +NAME",
    ErrorCode.POLICY_VIOLATION: "the cluster's create.topic.policy forbids it",
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: "raise the cluster's quota of partition creations, controller_mutation_rate",
}
"""Advice by error code, for a topic that can't be created."""


_REQUEST = re.compile(r"(Request )?Request\(")
"""A message's beginning, with a request as Java prints requests."""


def refusal(code: int, message: str | None, advice: Mapping[int, str] = ADVICE) -> str:
    """Return one line about one of Kafka's error codes.

    The broker's message, or else the code's name, with the advice for the code.
    """
    line = told(code, message)
    return f"{line}; {advice[code]}" if code in advice else line


def told(code: int, message: str | None) -> str:
    """Return a broker's message in one line, or else the code's name.

    A message with a request as Java prints requests is not for people.
    """
    line = " ".join((message or "").split()).rstrip(".")
    return error_name(code) if not line or _REQUEST.match(line) else line


def creation_refusal(code: int, words: str) -> str | None:
    """Return one line that says why a creation failed; None if the topic exists."""
    return None if code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS) else refusal(code, words)
