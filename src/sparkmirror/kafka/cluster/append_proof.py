"""Append check results, one for each cluster and its brokers' software.

If the software changes, or another cluster is behind the address, the check runs again. A success is remembered as long
as the process lives, a failure for a while, so that a caller that asks again and again does not create a topic each
time.
"""

from __future__ import annotations

import hashlib
import threading
import time
from typing import NamedTuple

from sparkmirror.kafka.cluster.append_check import AppendCheck, check_appends
from sparkmirror.kafka.cluster.broker_versions import each_broker
from sparkmirror.kafka.cluster.client import ClusterClient

LONGEST_S = 2.0
"""Longest time to ask brokers which requests they know.

Later brokers are not asked: brokers with one version know the same requests.
"""
AGAIN_S = 600.0
"""Pause before a failed check is run again: the brokers may have been mended."""
_DIGEST_BYTES = 8


class Software(NamedTuple):
    """A cluster and its brokers' software, as far as the protocol tells it."""

    cluster_id: str
    spoken: tuple[str, ...]
    """Digests of the request and version sets that brokers know, sorted."""


_known: dict[Software, tuple[float, AppendCheck]] = {}
"""Time (`time.monotonic`) and result of each check that this process made."""
_locks: dict[Software, threading.Lock] = {}


def software(client: ClusterClient) -> Software:
    """Identify a cluster and its brokers' software.

    Raises `ConnectionError` and `ClusterUnreachable`.
    """
    client.metadata([])
    asked = each_broker(client, lambda _, broker: broker.spoken, until=time.monotonic() + LONGEST_S)
    digests = {hashlib.sha256(repr(spoken).encode()).hexdigest()[: 2 * _DIGEST_BYTES] for _, spoken in asked}
    return Software(client.cluster_id, tuple(sorted(digests)))


def proof(client: ClusterClient, runs: Software) -> AppendCheck:
    """Return the append check's result; run it if this process does not know it."""
    with _locks.setdefault(runs, threading.Lock()):
        if runs in _known:
            tried_at, result = _known[runs]
            if result.holds or time.monotonic() - tried_at < AGAIN_S:
                return result
        result = check_appends(client)
        if not result.untold:
            _known[runs] = time.monotonic(), result
        return result
