"""Names of Kafka's error codes, for messages to people."""

from __future__ import annotations

import kafka.errors


def error_name(code: int) -> str:
    """Return name and code of an error, such as `NOT_LEADER_OR_FOLLOWER (6)`."""
    known = kafka.errors.kafka_errors.get(code)
    return f"{known.message} ({code})" if known is not None and known.message else f"error {code}"
