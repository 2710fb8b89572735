"""Detect cycles that topic names don't show: two aliases for one cluster."""

from __future__ import annotations

from collections.abc import Mapping


def shared_cluster(ids: Mapping[str, str]) -> str | None:
    """Name two aliases for the same cluster in one line; None without such aliases.

    `ids` is alias -> cluster id. A policy derives a topic's source cluster from aliases. Under a second alias, a
    cluster's own topics look like another cluster's: a flow copies them back to the cluster, or copies them twice.
    """
    owners: dict[str, str] = {}
    for alias, cluster_id in sorted(ids.items()):
        if cluster_id in owners:
            return (
                f"{owners[cluster_id]} and {alias} are the same cluster ({cluster_id}): topics would be copied back"
                " to it, or twice; give a cluster one alias"
            )
        owners[cluster_id] = alias
    return None
