"""Refusals of REST requests: Connect's `ErrorMessage` and an HTTP status."""

from __future__ import annotations

from sparkmirror.errors import HandledError

STALE = (
    "Cannot complete request momentarily due to stale configuration (typically caused by a concurrent config change)"
)
"""Message of a 409 if this process does not lead, or leads no longer."""


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
