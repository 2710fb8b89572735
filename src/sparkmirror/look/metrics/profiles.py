"""MirrorMaker 2's metric names for dashboards, in four ways of exporters.

`aws`: the JMX exporter rules in aws-samples/mirrormaker2-msk-migration. `strimzi`: the rules in Strimzi's examples.
`strimzi-reporter`: Strimzi's metrics reporter. `jmx-exporter`: the JMX exporter 0.x without rules, and common rules
that shorten less than Strimzi's. If two profiles share a name but not its labels, one series has both profiles' labels,
so that no sum counts twice.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable

from sparkmirror.look.metrics.client_names import FETCHES, NAN, add_clients
from sparkmirror.look.metrics.connect_names import add_connect
from sparkmirror.look.metrics.profile import OF_CONNECTOR_CLASSES, Profile, Spelling
from sparkmirror.snapshot.snapshot import Flow, Group, Partition, PartitionState, Role, Snapshot, Spread, Topic
from sparkmirror.web.series import Families, labels

MOST_PARTITIONS = 500
"""Most partitions in a process with a row each.

Above, each topic has one row for all its partitions; above as many topics, each flow has one row. With all profiles a
partition takes 3.6 kB of the 5 MB that a scrape may have.
"""
MOST_CHECKPOINTS = 250
"""Most groups' partitions in a process with a row each.

Above, each group has one row; above as many groups, each flow has one row.
"""

_TOGETHER = "all"
_SPREADS = (("", "last"), ("_min", "least"), ("_max", "most"), ("_avg", "mean"))


def add_profiles(families: Families, snapshot: Snapshot, profiles: Collection[Profile]) -> None:
    if not profiles:
        return
    spelling = Spelling(families, profiles)
    flows = [flow for flow in snapshot.flows if flow.role is Role.LEADER]
    _partitions(spelling, flows)
    _checkpoints(families, flows, profiles)
    add_clients(spelling, flows)
    add_connect(spelling, snapshot)


def _partitions(spelling: Spelling, flows: list[Flow]) -> None:
    families, profiles = spelling.families, spelling.profiles
    consumers = {flow.flow: spelling.client(flow, "consumer") for flow in flows}
    for flow, topic, partition, number in _rows(flows):
        values = _mirror_values(partition)
        source, target, name = flow.source.alias, flow.target.alias, topic.target_topic
        if Profile.AWS in profiles:
            # Topics of one name at two sources are one topic at the target, so the source is named here, too
            of = labels(source=source, destination=target, topic=name, partition=number)
            _mirror(families, "kafka_connect_mirror_source_connector", of, values)
        if not OF_CONNECTOR_CLASSES.isdisjoint(profiles):
            of = labels(source=source, target=target, topic=name, partition=number)
            _mirror(families, "kafka_connect_mirror_mirrorsourceconnector", of, values)
        client = consumers[flow.flow].and_(topic=topic.topic, partition=number)
        spelling.add(FETCHES, "records_lag", "Lag of a partition, in records.", client, partition.lag)


def _rows(flows: list[Flow]) -> list[tuple[Flow, Topic, Partition, str]]:
    """Return the scrape's rows, each with its partition's label.

    Sums over all rows stay the same if a row stands for a whole topic.
    """
    topics = [(flow, topic) for flow in flows for topic in flow.topics if topic.partitions]
    if len(topics) > MOST_PARTITIONS:
        every = [(flow, tuple(partition for topic in flow.topics for partition in topic.partitions)) for flow in flows]
        return [
            (
                flow,
                Topic(topic=_TOGETHER, target_topic=_TOGETHER),
                # Counters never fall, also if a topic is gone.
                dataclasses.replace(_together(partitions), records=flow.records, bytes=flow.bytes),
                _TOGETHER,
            )
            for flow, partitions in every
            if partitions
        ]
    if sum(len(topic.partitions) for _, topic in topics) > MOST_PARTITIONS:
        return [(flow, topic, _together(topic.partitions), _TOGETHER) for flow, topic in topics]
    return [
        (flow, topic, partition, str(partition.partition)) for flow, topic in topics for partition in topic.partitions
    ]


def _together(partitions: tuple[Partition, ...]) -> Partition:
    lags = [partition.lag for partition in partitions if partition.lag is not None]
    return Partition(
        partition=-1,
        state=PartitionState.UNKNOWN,
        lag=sum(lags) if len(lags) == len(partitions) else None,
        records=sum(partition.records for partition in partitions),
        bytes=sum(partition.bytes for partition in partitions),
        records_per_s=sum(partition.records_per_s for partition in partitions),
        bytes_per_s=sum(partition.bytes_per_s for partition in partitions),
        latency_ms=_worst([partition.latency_ms for partition in partitions if partition.latency_ms]),
        age_ms=_worst([partition.age_ms for partition in partitions if partition.age_ms]),
    )


def _worst(spreads: list[Spread]) -> Spread | None:
    if not spreads:
        return None
    return Spread(
        max(spread.last for spread in spreads),
        min(spread.least for spread in spreads),
        max(spread.most for spread in spreads),
        max(spread.mean for spread in spreads),
    )


def _mirror_values(partition: Partition) -> list[tuple[str, float]]:
    values: list[tuple[str, float]] = [
        ("record_count", partition.records),
        ("record_rate", partition.records_per_s),
        ("byte_count", partition.bytes),
        ("byte_rate", partition.bytes_per_s),
    ]
    return values + _spread("record_age_ms", partition.age_ms) + _spread("replication_latency_ms", partition.latency_ms)


def _spread(name: str, spread: Spread | None) -> list[tuple[str, float]]:
    """Return a spread's values.

    Without any record, as MirrorMaker 2: 0 for the last value, NaN for the rest.
    """
    if spread is None:
        return [(name + suffix, NAN if suffix else 0.0) for suffix, _ in _SPREADS]
    return [(name + suffix, getattr(spread, attribute)) for suffix, attribute in _SPREADS]


def _mirror(families: Families, prefix: str, of: str, values: list[tuple[str, float]]) -> None:
    for name, value in values:
        families.declare(f"{prefix}_{name}", "gauge", f"MirrorMaker 2's {name.replace('_', '-')}.").add(of, value)


def _checkpoints(families: Families, flows: list[Flow], profiles: Collection[Profile]) -> None:
    prefixes = []
    if Profile.AWS in profiles:
        prefixes.append("kafka_connect_mirror_checkpoint_connector")
    if not OF_CONNECTOR_CLASSES.isdisjoint(profiles):
        prefixes.append("kafka_connect_mirror_mirrorcheckpointconnector")
    for flow, group, topic, partition, took_ms in _checkpoint_rows(flows):
        source, target = flow.source.alias, flow.target.alias
        of = labels(source=source, target=target, group=group, topic=topic, partition=partition)
        for prefix in prefixes:
            for suffix, _ in _SPREADS:
                name = f"{prefix}_checkpoint_latency_ms{suffix}"
                families.declare(name, "gauge", "Duration of the group's last checkpoint.").add(of, took_ms)


def _checkpoint_rows(flows: Iterable[Flow]) -> list[tuple[Flow, str, str, str, float]]:
    """Return rows of flow, group, topic, partition, and duration in ms."""
    groups = [
        (flow, group, took) for flow in flows for group in flow.groups if (took := group.checkpoint_ms) is not None
    ]
    if len(groups) > MOST_CHECKPOINTS:
        longest: dict[str, tuple[Flow, float]] = {}
        for flow, _, took in groups:
            longest[flow.flow] = flow, max(took, longest.get(flow.flow, (flow, 0.0))[1])
        return [(flow, _TOGETHER, _TOGETHER, _TOGETHER, took) for flow, took in longest.values()]
    if sum(len(group.partitions) for _, group, _ in groups) > MOST_CHECKPOINTS:
        return [(flow, group.group, _TOGETHER, _TOGETHER, took) for flow, group, took in groups if group.partitions]
    return [row for flow, group, took in groups for row in _partition_rows(flow, group, took)]


def _partition_rows(flow: Flow, group: Group, took_ms: float) -> list[tuple[Flow, str, str, str, float]]:
    return [(flow, group.group, at.target_topic, str(at.partition), took_ms) for at in group.partitions]
