"""Results of clusters' append checks: each is tried once for a cluster and what its brokers speak.

Where the software changes, or another cluster is behind the address, it is tried anew. What holds is known for as long
as the process lives, what fails for a while, so that nobody who asks again and again has topics made each time.
"""

from __future__ import annotations

import hashlib
import threading
import time
from typing import NamedTuple

from sparkmirror.cluster.append_check import AppendCheck, check_appends
from sparkmirror.cluster.broker_versions import each_broker
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
    """Identify a cluster and what its brokers are. Raises `ConnectionError` and `ClusterUnreachable`."""
    client.metadata([])
    asked = each_broker(client, lambda _, broker: broker.spoken, until=time.monotonic() + LONGEST_S)
    digests = {hashlib.sha256(repr(spoken).encode()).hexdigest()[: 2 * _DIGEST_BYTES] for _, spoken in asked}
    return Software(client.cluster_id, tuple(sorted(digests)))


def proof(client: ClusterClient, runs: Software) -> AppendCheck:
    """Give the result of the check there: tried now, if this process does not know it."""
    with _locks.setdefault(runs, threading.Lock()):
        if runs in _known:
            tried_at, result = _known[runs]
            if result.holds or time.monotonic() - tried_at < AGAIN_S:
                return result
        result = check_appends(client)
        if not result.untold:
            _known[runs] = time.monotonic(), result
        return result
