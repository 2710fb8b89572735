"""Profiles: three ways of exporters to name and label MirrorMaker 2's metrics."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

from sparkmirror.engine.snapshot import Flow
from sparkmirror.metrics.connector_states import SOURCE
from sparkmirror.metrics.series import labels


class Profile(StrEnum):
    """A way to write MirrorMaker 2's metrics."""

    AWS = "aws"
    STRIMZI = "strimzi"
    STRIMZI_REPORTER = "strimzi-reporter"


JMX = frozenset({Profile.AWS, Profile.STRIMZI})
"""Profiles of JMX exporters."""
OF_STRIMZI = frozenset({Profile.STRIMZI, Profile.STRIMZI_REPORTER})


def clients(flow: Flow, profiles: Collection[Profile], client: str, group: str = "") -> list[tuple[str, str, str]]:
    """Return each client's metric prefix, counter suffix and labels.

    Both JMX profiles share an entry; the reporter's profile has an entry of its own. `client` is `consumer`, `producer`
    or `admin_client`; `group` is a group of metrics, such as `fetch_manager`.
    """
    kafka_id = f"{flow.flow}|{flow.flow}.{SOURCE}-0|replication-consumer"
    aws_id = "consumer-mm2-msc-cons-0"
    if client == "producer":
        kafka_id, aws_id = f"connector-producer-{flow.flow}.{SOURCE}-0", "producer-mm2-msc-0"
    elif client == "admin_client":
        kafka_id = aws_id = f"{flow.flow}|{flow.flow}.{SOURCE}|replication-source-admin"
    ids = {}
    if Profile.AWS in profiles:
        ids["clientId"] = aws_id
    if Profile.STRIMZI in profiles:
        ids["clientid"] = f'"{kafka_id}"'
    named = [(f"kafka_{client}_{group}" if group else f"kafka_{client}", "_total", labels(flow=flow.flow, **ids))]
    if not ids:
        named = []
    if Profile.STRIMZI_REPORTER in profiles:
        middle = f"{client}_{group}_metrics" if group else f"{client}_metrics"
        named.append((f"kafka_{client}_{middle}", "", labels(flow=flow.flow, client_id=kafka_id)))
    return named


def connector_name(flow: Flow, kind: str, profiles: Collection[Profile]) -> str:
    """Return the value of the label `connector`.

    Strimzi's exporter keeps JMX's quotes around a name with `->`.
    """
    name = f"{flow.flow}.{kind}"
    return f'"{name}"' if Profile.STRIMZI in profiles else name
