"""Access to the page's actions: only from this machine, and from the page itself.

A browser sends requests to any address on behalf of any page. So an action must come from the live page: the request
must have the header that only a page of the same origin can set, and the browser's own headers about the origin must
agree. Moreover a foreign DNS name that resolves to 127.0.0.1 would give a foreign page the same origin. So on loopback
the header `Host` must name this machine.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from fastapi import Request

HEADER = "x-sparkmirror-page"
"""Header that no form can set, nor a foreign origin's script without a preflight."""

_FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")


def on_loopback(request: Request) -> bool:
    """Tell whether a request comes directly from this machine, to a name of it."""
    if request.client is None or any(header in request.headers for header in _FORWARDED):
        return False
    host = urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
    return _is_loopback(request.client.host) and (host == "localhost" or _is_loopback(host))


def from_our_page(request: Request) -> bool:
    """Tell whether the live page sent the request, by the browser's headers."""
    origin = request.headers.get("origin")
    return (
        request.headers.get(HEADER) == "1"
        and request.headers.get("sec-fetch-site", "same-origin") == "same-origin"
        and (origin is None or urlsplit(origin).netloc == request.headers.get("host"))
    )


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
