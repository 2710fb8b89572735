"""Commands of Kafka's own tool that put a group's offsets right."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from sparkmirror.snapshot.snapshot import ClusterFigures, Flow, Group, GroupPartition

SET_BY_MIRROR = "group offsets"
"""Duty that sets groups' offsets at the target."""
_TOOL = "kafka-consumer-groups.sh"


def skipping(group: Group) -> list[GroupPartition]:
    """Return the partitions with records to skip, the most records first."""
    places = [place for place in group.partitions if place.skipped]
    return sorted(places, key=lambda place: -(place.skipped or 0))


def without_skipping(flow: Flow, group: Group) -> str:
    """Return the remedy for a group that would skip records if it moved."""
    topics = sorted({place.target_topic for place in skipping(group)})
    if not any(duty.duty == SET_BY_MIRROR for duty in flow.duties):
        first = skipping(group)[0]
        return (
            f"set its offsets at {flow.target.alias} to those that `sparkmirror offsets translate FILE --topic "
            f"{shlex.quote(first.topic)} --partition {first.partition} --offset {first.source_offset}` prints"
        )
    words = [word for topic in topics for word in ("--topic", topic)]
    command = _command(flow.target, group.group, "--delete-offsets", words)
    return (
        f"delete its offsets at {flow.target.alias}, and the mirror sets the exact ones in its next turn: `{command}`"
    )


def within_the_log(flow: Flow, group: Group) -> str:
    """Return the remedy for a group beyond the end of the source's log."""
    words = []
    for place in group.partitions:
        if place.beyond_end:
            words += ["--topic", f"{place.topic}:{place.partition}"]
    options = [*(words or ["--topic", "TOPIC:PARTITION"]), "--execute"]
    command = _command(flow.source, group.group, "--reset-offsets --to-latest", options)
    return (
        f"stop its consumers at {flow.source.alias}, and set it to where it must continue (--to-latest, --to-earliest, "
        f"--to-datetime): `{command}`"
    )


def _command(cluster: ClusterFigures, group: str, action: str, options: Iterable[str]) -> str:
    tools = cluster.tools or f"--bootstrap-server {cluster.alias}"
    return f"{_TOOL} {tools} --group {shlex.quote(group)} {action} {shlex.join(options)}"
