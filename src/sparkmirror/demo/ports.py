"""Ports on 127.0.0.1 that stay a server's own while the server is down."""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack

# Below the range that Linux gives to outgoing connections: else Linux could give a stopped broker's own port to a
# client that keeps connecting to the broker, and the broker could not come back.
_RANGE = range(15_000, 32_000)

_given: set[int] = set()
"""Ports given in this process: their servers may listen later, or again."""


def free_ports(count: int) -> list[int]:
    """Return `count` different ports that no process listens on now.

    Never returns a port twice in this process.
    """
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
