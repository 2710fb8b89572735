"""Access to the page's actions: only from this machine, and from the page itself.

A browser sends requests to any address on behalf of any page. `web.browser_guard` refuses requests from other origins,
on each listener. An action must come from the live page: only a page from the same origin can set its header. Without
users an action must come from this machine, to a name of this machine.
"""

from __future__ import annotations

import ipaddress
import re

from fastapi import Request

HEADER = "x-sparkmirror-page"
"""Header of the live page; neither a form nor a foreign script can set it."""

ENDING = "sparkmirror.ending"
"""Key in a request's scope: a function that tells whether the server is ending."""

_FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")
_PLACE = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([\w.-]*))(?::[0-9]{0,5})?", re.ASCII)


def host_of(place: str) -> str:
    """Return the host of `host:port`, as in the header `Host`, in lower case.

    An IPv6 address comes without its brackets. Raises `ValueError` for any other text.
    """
    parts = _PLACE.fullmatch(place)
    if parts is None:
        raise ValueError(f"{place!r} is no host and port")
    return str(ipaddress.IPv6Address(parts[1])) if parts[1] else parts[2].lower().removesuffix(".")


def on_loopback(request: Request) -> bool:
    """Tell whether a request comes directly from this machine, to a name of it."""
    if request.client is None or any(header in request.headers for header in _FORWARDED):
        return False
    try:
        host = host_of(request.headers.get("host", ""))
    except ValueError:
        return False
    return _is_loopback(request.client.host) and (host == "localhost" or _is_loopback(host))


def from_our_page(request: Request) -> bool:
    return request.headers.get(HEADER) == "1"


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
