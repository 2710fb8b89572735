"""The same questions in one call each, as Kafka's `RemoteClusterUtils` has them (`mm2.md` 3.11)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import overload

import regex

from sparkmirror.client.mirror_client import MirrorClient
from sparkmirror.client.offsets import GroupOffsets


def replication_hops(settings: Mapping[str, str], alias: str) -> int:
    """How many mirrors are between the cluster `alias` and this one; -1: nothing comes from there."""
    with MirrorClient(settings) as client:
        return client.replication_hops(alias)


def heartbeat_topics(settings: Mapping[str, str]) -> set[str]:
    """The topics of this cluster that hold heartbeats."""
    with MirrorClient(settings) as client:
        return client.heartbeat_topics()


def checkpoint_topics(settings: Mapping[str, str]) -> set[str]:
    """The topics of this cluster that hold checkpoints."""
    with MirrorClient(settings) as client:
        return client.checkpoint_topics()


def upstream_clusters(settings: Mapping[str, str]) -> set[str]:
    """The clusters that heartbeats come from, at whatever distance."""
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
    """Where a group of the cluster `alias` goes on at this one; or each group whose whole name matches."""
    with MirrorClient(settings) as client:
        return client.remote_consumer_offsets(groups, alias, timeout_s)
