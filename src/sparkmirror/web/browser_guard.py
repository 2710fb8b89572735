"""Refuse requests that browsers send on behalf of pages of other origins.

A page anywhere can have a browser send requests to an address within the browser's reach. The page can't read the
answers, but a POST without a body changes things. And if the page's own DNS name comes to mean this server's address
(DNS rebinding), the page is of the same origin, and reads the answers as well.

So two rules hold, on each listener. A browser's request must name this server by an address, or by a name outside the
public DNS. And a request with side effects must come from a page with the same origin, or with an origin in the file's
list. Clients other than browsers send none of the headers of `_MARKS`.
"""

from __future__ import annotations

import ipaddress
import json
import re
import socket
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from sparkmirror.web.access import host_of

_MARKS = ("origin", "sec-fetch-site", "accept-language")
"""Headers that a browser sends and no script in a page can take away.

A GET to a name without TLS has no `Sec-Fetch-Site`, and a GET from the same origin has no `Origin`.
"""

_READING = ("GET", "HEAD", "OPTIONS")
_PRIVATE = (".localhost", ".internal", ".local", ".svc")
"""Name endings that public DNS does not have."""

_ORIGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://([^/?#@]+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Trusted:
    """The server's names for browsers, and origins whose pages may send requests."""

    hosts: frozenset[str] = frozenset()
    """Names in lower case, besides those that are always trusted."""
    origins: frozenset[str] = frozenset()
    """Origins, `scheme://host:port`; `*` means all."""
    key: str = ""
    """Setting that adds names, and how they are written there, for the refusal."""
    machine: str = field(default_factory=lambda: socket.gethostname().lower())

    def is_own(self, host: str) -> bool:
        """Tell whether a browser may mean this server by the host."""
        if host in self.hosts or host == self.machine or "*" in self.origins or host.endswith(_PRIVATE):
            return True
        if "." not in host and ":" not in host:
            return bool(host)  # public DNS has no names of one part with an address
        try:
            ipaddress.ip_address(host)
        except ValueError:
            return False
        return True

    def allows(self, origin: str) -> bool:
        """Tell whether pages of the origin may send any request."""
        return bool({origin, "*"} & self.origins)


def trusted_hosts(hosts: Iterable[str], key: str, origins: Iterable[str] = ()) -> Trusted:
    """Return these names, and the origins with theirs; empty hosts don't count."""
    origins = frozenset(origins)
    named = {host.lower() for host in hosts if host}
    for origin in origins:
        with suppress(ValueError):  # no browser sends an origin of another form, but for `null`
            named.add(_host_of_origin(origin))
    return Trusted(frozenset(named), origins, key)


class BrowserGuard:
    """ASGI middleware that refuses other origins' requests with 403.

    A header `Host` or `Origin` that is none is answered with 400.
    """

    def __init__(self, app: ASGIApp, trusted: Trusted) -> None:
        self._app = app
        self._trusted = trusted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = _refusal(scope["method"], Headers(scope=scope), self._trusted) if scope["type"] == "http" else None
        if refused is None:
            await self._app(scope, receive, send)
            return
        status, message = refused
        body = json.dumps({"error_code": status, "message": message}).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def _refusal(method: str, headers: Headers, trusted: Trusted) -> tuple[int, str] | None:
    """Return status and message for a request to refuse; else None."""
    place, origin = headers.get("host", ""), headers.get("origin")
    try:
        host = host_of(place)
        if origin is not None and origin != "null":
            _host_of_origin(origin)
    except ValueError:
        return 400, "the header Host or Origin is none"
    if any(mark in headers for mark in _MARKS) and not trusted.is_own(host):
        return 403, f"browsers can't ask this server by the name {host}: write it into {trusted.key}"
    if method not in _READING and _is_foreign(place, origin, headers.get("sec-fetch-site"), trusted):
        return 403, "a page of another origin can't change anything here"
    return None


def _is_foreign(place: str, origin: str | None, site: str | None, trusted: Trusted) -> bool:
    if origin is None:
        return site not in (None, "same-origin", "none")
    return origin.partition("://")[2].lower() != place.lower() and not trusted.allows(origin)


def _host_of_origin(origin: str) -> str:
    """Return an origin's host; raise `ValueError`."""
    parts = _ORIGIN.fullmatch(origin)
    if parts is None:
        raise ValueError(f"{origin!r} is no origin")
    return host_of(parts[1])
