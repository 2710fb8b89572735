"""Cycles that names don't show: two aliases that are one cluster."""

from __future__ import annotations

from collections.abc import Mapping


def shared_cluster(ids: Mapping[str, str]) -> str | None:
    """One line that names two aliases of the same cluster, if there are any; `ids`: alias -> cluster id.

    A policy tells by aliases where a topic was copied from. With two names for one cluster, what has come from it
    is taken for another cluster's: it goes back there, or is copied twice.
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
