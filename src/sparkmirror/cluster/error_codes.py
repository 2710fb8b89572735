"""Kafka's error codes by name, for messages that people read."""

from __future__ import annotations

import kafka.errors


def error_name(code: int) -> str:
    """For example `NOT_LEADER_OR_FOLLOWER (6)`."""
    known = kafka.errors.kafka_errors.get(code)
    return f"{known.message} ({code})" if known is not None and known.message else f"error {code}"
