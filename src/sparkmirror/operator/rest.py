"""Requests to the REST interface of a resource's pods."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from typing import Any, Protocol

from sparkmirror.errors import HandledError
from sparkmirror.operator.connectors import Call

_TIMEOUT_S = 95.0
"""A request's timeout: a little more than pods wait for each other.

See `connect.forwarding`.
"""
_QUICK_S = 10.0
_LONGEST = 64 << 20
"""Most bytes in an answer; 10,000 tasks with their traces need less."""


class Rest(Protocol):
    """A resource's REST interface, implemented by `ConnectRest`."""

    def get(self, path: str) -> Any: ...
    def do(self, call: Call) -> Any: ...


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Handler that refuses redirects.

    A pod must not send the operator to another server.
    """

    def redirect_request(self, *_: Any) -> None:
        return None


def direct_opener() -> urllib.request.OpenerDirector:
    """Return an opener for pods: without proxies, and without redirects."""
    return urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirects)


class RestAway(HandledError):
    """Error for a request that no pod answers."""


class RestRefused(HandledError):
    """Error for a request that the REST interface refuses; the message is Connect's."""


class ConnectRest:
    """Blocking client for one resource's REST interface."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._opener = direct_opener()

    def get(self, path: str) -> Any:
        """Return the answer, decoded from JSON. Raises `RestAway` and `RestRefused`."""
        return self.do(Call("GET", path), _QUICK_S)

    def do(self, call: Call, timeout_s: float = _TIMEOUT_S) -> Any:
        """Send a request; return its answer, or None for an empty one."""
        data = None if call.body is None else json.dumps(call.body).encode()
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        request = urllib.request.Request(self._url + call.path, data, headers, method=call.method)  # noqa: S310 - http
        try:
            with self._opener.open(request, timeout=timeout_s) as answer:
                text = answer.read(_LONGEST + 1)
                if len(text) > _LONGEST:
                    raise RestAway(f"the REST interface's answer has more than {_LONGEST >> 20} MB")
                return json.loads(text) if text else None
        except urllib.error.HTTPError as error:
            raise RestRefused(_message(error)) from None
        except (OSError, ValueError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            raise RestAway(f"the REST interface does not answer: {reason}") from None


def _message(error: urllib.error.HTTPError) -> str:
    try:
        told = json.loads(error.read(_LONGEST)).get("message")
    except (ValueError, AttributeError, OSError):
        told = None
    return " ".join(str(told or f"HTTP {error.code}").split())
