"""Names for Kafka's error codes, for messages to people.

The names are kafka-python's, which differ from Kafka's own (`kafka/wire/error_codes.py`) for six codes.
"""

from __future__ import annotations

import kafka.errors


def error_name(code: int) -> str:
    """Return an error's name and code, such as `NOT_COORDINATOR (16)`."""
    known = kafka.errors.kafka_errors.get(code)
    return f"{known.message} ({code})" if known is not None and known.message else f"error {code}"
