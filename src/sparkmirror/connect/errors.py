"""What a request is refused with: Connect's `ErrorMessage`, and its HTTP status."""

from __future__ import annotations

STALE = (
    "Cannot complete request momentarily due to stale configuration (typically caused by a concurrent config change)"
)
"""While nobody is known to work, or another does."""


class RestError(Exception):
    """Answered as `{"error_code": status, "message": message}`; `message` never holds a secret."""

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
