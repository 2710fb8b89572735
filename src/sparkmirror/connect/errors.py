"""Refused REST requests: Connect's `ErrorMessage` and an HTTP status."""

from __future__ import annotations

from collections.abc import Mapping

from sparkmirror.errors import HandledError

STALE = (
    "Cannot complete request momentarily due to stale configuration (typically caused by a concurrent config change)"
)
"""The 409's message if this process does not lead, or leads no longer."""


class RestError(HandledError):
    """Refused request, answered as `{"error_code": status, "message": message}`.

    `message` never holds a secret.
    """

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        self.message = message
        super().__init__(message)


def not_found(message: str) -> RestError:
    return RestError(404, message)


def bad_request(message: str) -> RestError:
    return RestError(400, message)


def conflict(message: str) -> RestError:
    return RestError(409, message)


def as_text(value: object) -> str:
    """Return a JSON value as Java prints it, for messages; a map keeps its order."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}={as_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(as_text, value)) + "]"
    return str(value)
