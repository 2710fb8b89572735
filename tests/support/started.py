"""Clusters that are started at once."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from lab import KafkaCluster


@contextmanager
def started(*clusters: KafkaCluster) -> Iterator[None]:
    """Run them for a while; their logs stay."""
    try:
        with ThreadPoolExecutor(len(clusters)) as pool:
            list(pool.map(KafkaCluster.start, clusters))
        yield
    finally:
        for cluster in clusters:
            cluster.cleanup(keep_logs=True)
