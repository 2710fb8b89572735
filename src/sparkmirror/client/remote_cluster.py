"""`MirrorClient`'s methods as functions, like Kafka's `RemoteClusterUtils`.

`mm2.md` 3.11. Each call connects again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import overload

import regex

from sparkmirror.client.mirror_client import MirrorClient
from sparkmirror.client.translated_offsets import GroupOffsets


def replication_hops(settings: Mapping[str, str], alias: str) -> int:
    """Return the number of mirrors between the cluster `alias` and this one.

    -1 if no heartbeats from `alias` arrive here.
    """
    with MirrorClient(settings) as client:
        return client.replication_hops(alias)


def heartbeat_topics(settings: Mapping[str, str]) -> set[str]:
    """Return this cluster's topics with heartbeats."""
    with MirrorClient(settings) as client:
        return client.heartbeat_topics()


def checkpoint_topics(settings: Mapping[str, str]) -> set[str]:
    """Return this cluster's topics with checkpoints."""
    with MirrorClient(settings) as client:
        return client.checkpoint_topics()


def upstream_clusters(settings: Mapping[str, str]) -> set[str]:
    """Return the clusters whose heartbeats arrive here, at any distance."""
    with MirrorClient(settings) as client:
        return client.upstream_clusters()


@overload
def translate_offsets(settings: Mapping[str, str], alias: str, groups: str, timeout_s: float) -> GroupOffsets: ...


@overload
def translate_offsets(
    settings: Mapping[str, str], alias: str, groups: re.Pattern[str] | regex.Pattern[str], timeout_s: float
) -> dict[str, GroupOffsets]: ...


def translate_offsets(
    settings: Mapping[str, str], alias: str, groups: str | re.Pattern[str] | regex.Pattern[str], timeout_s: float
) -> GroupOffsets | dict[str, GroupOffsets]:
    """Return the offsets at this cluster for a group of the cluster `alias`.

    With a pattern, return the offsets for each group whose whole name matches.
    """
    with MirrorClient(settings) as client:
        return client.remote_consumer_offsets(groups, alias, timeout_s)
