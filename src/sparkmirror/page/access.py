"""Who may act by the page: people on this machine, and only from the page itself.

A browser sends requests to any address for whatever page it shows. So an action must come from our own page: by the
header that only a page of the same origin can set, and by what browsers say of where a request comes from. And a name
that somebody else's DNS leads to 127.0.0.1 makes their page one of the same origin: on loopback `Host` must name it.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from fastapi import Request

HEADER = "x-sparkmirror-page"
"""No form can set it, and no script of another origin without asking us first."""

_FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")


def on_loopback(request: Request) -> bool:
    """Whether it comes from this machine, straight, by a name of this machine."""
    if request.client is None or any(header in request.headers for header in _FORWARDED):
        return False
    host = urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
    return _is_loopback(request.client.host) and (host == "localhost" or _is_loopback(host))


def from_our_page(request: Request) -> bool:
    """Whether our own page sent it, by all that the browser tells."""
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
