"""Settings that keep sparkmirror's own topics from losing records.

Kafka has them for its own topics. Claims that are lost leave copied records without a source offset (`docs/losses.md`,
"A lost segments topic").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sparkmirror.exact.durable.claims import segments_topic
from sparkmirror.exact.durable.losses import losses_topic
from sparkmirror.exact.durable.query_places import SINK_TOPIC, plans_topic
from sparkmirror.kafka.cluster.tool_commands import set_topic_property
from sparkmirror.pump.messages.control import control_topic
from sparkmirror.pump.messages.receipts import receipts_topic
from sparkmirror.pump.messages.status_topic import status_topic

UNCLEAN, MIN_INSYNC = "unclean.leader.election.enable", "min.insync.replicas"
SAFE_NAMES = UNCLEAN, MIN_INSYNC
_REPLICAS = 3
"""Replicas from which on two must have a record before it is acknowledged."""


def own_topics(source_alias: str) -> tuple[str, ...]:
    topics = segments_topic, losses_topic, control_topic, receipts_topic, status_topic, plans_topic
    return *(topic_of(source_alias) for topic_of in topics), SINK_TOPIC


def safe_settings(replicas: int) -> dict[str, str]:
    """Return a topic's settings with as many replicas.

    -1 is the cluster's default number.
    """
    return {UNCLEAN: "false"} | ({MIN_INSYNC: "2"} if replicas >= _REPLICAS else {})


def unsafe_settings(values: Mapping[str, str], replicas: int) -> dict[str, str]:
    """Return the safe settings that a topic lacks.

    `values` are the topic's present settings, defaults included.
    """
    lacking = {}
    if values.get(UNCLEAN, "false") != "false":
        lacking[UNCLEAN] = "false"
    if replicas >= _REPLICAS and int(values.get(MIN_INSYNC, "2")) < 2:
        lacking[MIN_INSYNC] = "2"
    return lacking


def remedy(servers: Sequence[str], topic: str, lacking: Mapping[str, str]) -> str:
    """Return the command that gives a topic the settings it lacks."""
    added = ",".join(f"{name}={value}" for name, value in lacking.items())
    return set_topic_property(f"--bootstrap-server {','.join(servers)}", topic, added)


def unsafe_line(servers: Sequence[str], topic: str, lacking: Mapping[str, str]) -> str:
    """Return a line on a topic that may lose records, and the remedy."""
    wanted = " and ".join(f"{name}={value}" for name, value in lacking.items())
    return f"topic {topic} may lose records, for it lacks {wanted}: {remedy(servers, topic, lacking)}"
