"""What is known of clusters' append checks: tried once for each cluster and what its brokers speak.

Where the software changes, or another cluster is behind the address, it is tried anew. What holds is known for as long
as the process lives, what fails for a while, so that nobody who asks again and again has topics made each time.
"""

from __future__ import annotations

import hashlib
import threading
import time
from contextlib import suppress
from typing import NamedTuple

from sparkmirror.cluster.append_check import AppendCheck, check_appends
from sparkmirror.cluster.client import ClusterClient

LONGEST_S = 2.0
"""After which no more brokers are asked what they speak; those of one version say the same."""
AGAIN_S = 600.0
"""After which what failed is tried again: the brokers may have been mended."""
_DIGEST_BYTES = 8


class Software(NamedTuple):
    """A cluster, and what its brokers are: nothing on the wire says more."""

    cluster_id: str
    spoken: tuple[str, ...]
    """A digest of each set of requests and versions that some broker speaks, sorted."""


_known: dict[Software, tuple[float, AppendCheck]] = {}
"""With the time it was tried at."""
_locks: dict[Software, threading.Lock] = {}


def software(client: ClusterClient) -> Software:
    """What a cluster runs now. Raises `ConnectionError` and `ClusterUnreachable`."""
    client.metadata([])
    deadline = time.monotonic() + LONGEST_S
    digests = set()
    for node in sorted(client.brokers):
        with suppress(ConnectionError):
            digests.add(hashlib.sha256(repr(client.broker(node).spoken).encode()).hexdigest()[: 2 * _DIGEST_BYTES])
        if time.monotonic() > deadline:
            break
    return Software(client.cluster_id, tuple(sorted(digests)))


def proof(client: ClusterClient, runs: Software) -> AppendCheck:
    """What comes of the check there: tried now, if this process does not know it."""
    with _locks.setdefault(runs, threading.Lock()):
        if runs in _known:
            tried_at, result = _known[runs]
            if result.holds or time.monotonic() - tried_at < AGAIN_S:
                return result
        result = check_appends(client)
        if not result.untold:
            _known[runs] = time.monotonic(), result
        return result
