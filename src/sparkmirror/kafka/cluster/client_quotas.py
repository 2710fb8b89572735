"""Client quotas (KIP-546): reading and changing."""

from __future__ import annotations

from collections.abc import Mapping

from kafka.protocol.admin import AlterClientQuotasRequest, DescribeClientQuotasRequest

from sparkmirror.errors import ClusterUnreachable
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.refusal_lines import refusal
from sparkmirror.kafka.wire.error_codes import ErrorCode

Entity = tuple[tuple[str, str | None], ...]
"""A quota's owner: sorted pairs of type and name.

Types are `user`, `client-id` and `ip`. The name None stands for the default.
"""

ADVICE: Mapping[int, str] = {
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: (
        "grant sparkmirror's principal DESCRIBE_CONFIGS on the source's cluster, and ALTER_CONFIGS on the target's"
    ),
}


def read_quotas(client: ClusterClient) -> dict[Entity, dict[str, float]]:
    """Read all quotas; raise `ClusterUnreachable` if the principal may not read them."""
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
    """Set quotas, or remove a quota by None.

    Return for each entity None, or one line that says why it failed.
    """
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
