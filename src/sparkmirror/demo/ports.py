"""Ports on 127.0.0.1 that stay a server's own while the server is down."""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack

# Below the range that Linux hands to outgoing connections: a client that keeps calling a broker that is
# down could otherwise be given the broker's own port, and the broker could not come back.
_RANGE = range(15_000, 32_000)

_given: set[int] = set()
"""Who was given one may listen later, or again."""


def free_ports(count: int) -> list[int]:
    """Return `count` different ports that nobody listens on now, and that were given to nobody in this process."""
    ports: list[int] = []
    with ExitStack() as reserved:
        while len(ports) < count:
            port = random.choice(_RANGE)  # noqa: S311
            if port in _given:
                continue
            claim = reserved.enter_context(socket.socket())
            claim.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                claim.bind(("127.0.0.1", port))
            except OSError:
                continue
            ports.append(port)
            _given.add(port)
    return ports
