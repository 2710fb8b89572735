"""A flow's loss ledger, opened for a moment. Blocking."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sparkmirror.config import FlowConfig
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.exact.durable.acknowledgements import LedgerEntry, read_ledger
from sparkmirror.exact.durable.losses import losses_topic
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog


@contextmanager
def open_ledger(flow: FlowConfig) -> Iterator[TopicLog]:
    """Open a flow's ledger; raises `ClusterUnreachable`."""
    client = ClusterClient(flow.target, f"{flow.name}|sparkmirror-cli")
    try:
        yield TopicLog(client, losses_topic(flow.source.alias))
    except ConnectionError as error:
        raise ClusterUnreachable(f"flow {flow.name}: {error}; has the mirror run before?") from error
    finally:
        client.close()


def ledger_entries(flow: FlowConfig) -> list[LedgerEntry]:
    """Read all entries; raises `ClusterUnreachable`."""
    with open_ledger(flow) as log:
        return read_ledger(log)
