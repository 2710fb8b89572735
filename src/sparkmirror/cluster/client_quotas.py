"""Client quotas (KIP-546): read and changed."""

from __future__ import annotations

from collections.abc import Mapping

from kafka.protocol.admin import AlterClientQuotasRequest, DescribeClientQuotasRequest

from sparkmirror.cluster.admin import refusal
from sparkmirror.cluster.client import ClusterClient
from sparkmirror.errors import ClusterUnreachable

Entity = tuple[tuple[str, str | None], ...]
"""Whom a quota is for: pairs of type (`user`, `client-id`, `ip`) and name, sorted; None is the default."""

ADVICE = {31: "grant our principal DESCRIBE_CONFIGS on the source's cluster, and ALTER_CONFIGS on the target's"}


def read_quotas(client: ClusterClient) -> dict[Entity, dict[str, float]]:
    """All quotas; raises `ClusterUnreachable` where we may not ask."""
    answer = client.ask_any(lambda: DescribeClientQuotasRequest(components=[], strict=False))
    if answer.error_code:
        reason = refusal(answer.error_code, answer.error_message, ADVICE)
        raise ClusterUnreachable(f"cluster {client.config.alias}: reading the client quotas failed: {reason}")
    return {
        tuple(sorted((part.entity_type, part.entity_name) for part in entry.entity)): {
            value.key: value.value for value in entry.values
        }
        for entry in answer.entries or ()
    }


def change_quotas(
    client: ClusterClient, changes: Mapping[Entity, Mapping[str, float | None]]
) -> dict[Entity, str | None]:
    """Set these; None takes one away. For each entity None or one line that says why not."""
    if not changes:
        return {}
    entry = AlterClientQuotasRequest.EntryData
    request = AlterClientQuotasRequest(
        entries=[
            entry(
                entity=[entry.EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
                ops=[entry.OpData(key=key, value=value or 0.0, remove=value is None) for key, value in ops.items()],
            )
            for entity, ops in changes.items()
        ],
        validate_only=False,
    )
    answer = client.ask_any(lambda: request)
    return {
        tuple(sorted((part.entity_type, part.entity_name) for part in changed.entity)): refusal(
            changed.error_code, changed.error_message, ADVICE
        )
        if changed.error_code
        else None
        for changed in answer.entries
    }
