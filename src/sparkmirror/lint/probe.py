"""Survey both clusters of a flow, for the rules under `lint --connect`.

The survey writes to the clusters only for the append check (`append_check`): one sparkmirror topic at the target,
created and deleted at once.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.errors import SparkMirrorError
from sparkmirror.exact.durable.claims import segments_topic
from sparkmirror.exact.durable.losses import losses_topic
from sparkmirror.exact.durable.query_places import SINK_TOPIC, plans_topic
from sparkmirror.exact.mm2.connect_offsets import offsets_topics
from sparkmirror.kafka.cluster.acls import Acl, AclResource, SecurityDisabled, read_acls
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.append_check import AppendCheck
from sparkmirror.kafka.cluster.append_proof import proof, software
from sparkmirror.kafka.cluster.broker_versions import too_old_as_source, too_old_as_target, weaker_guarantees
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.group_permissions import cluster_operations, group_operations
from sparkmirror.kafka.cluster.groups import Groups
from sparkmirror.kafka.cluster.list_offsets import list_offsets
from sparkmirror.kafka.cluster.new_topics import NewTopicSpec, create_topics
from sparkmirror.kafka.cluster.permissions import topic_operations
from sparkmirror.kafka.cluster.quorum_clock import clock_skew_s
from sparkmirror.kafka.cluster.topic_configs import ConfigEntry
from sparkmirror.kafka.cluster.topic_descriptions import TopicDescription
from sparkmirror.lint.rights import EVERYTHING
from sparkmirror.mirror.sync.checkpoints import excluded_sinks, is_consumer
from sparkmirror.mirror.sync.other_flows import OtherFlows
from sparkmirror.mirror.sync.pattern_matches import Matches, group_matches, topic_matches
from sparkmirror.mirror.sync.refused_properties import refused_properties
from sparkmirror.mirror.sync.retention import FOREVER
from sparkmirror.mirror.sync.topic_properties import config_change, creation_configs
from sparkmirror.mirror.sync.topic_rules import TopicRules, group_filter, topic_rules
from sparkmirror.mirror.sync.unknown_properties import create_as_known, known_properties
from sparkmirror.policy.sample_names import names_like
from sparkmirror.pump.messages.control import control_topic
from sparkmirror.pump.messages.receipts import receipts_topic
from sparkmirror.pump.messages.status_topic import status_topic

_Answer = TypeVar("_Answer")

_GROUP = re.compile(r"[\w.-]+")

_BEFORE, _DIFFERENCE = "message.timestamp.before.max.ms", "message.timestamp.difference.max.ms"
"""Topic properties that limit the age of records: since Kafka 3.6, and before 4.0.

The brokers' settings have the prefix `log.`.
"""
_UNLIMITED = 2**63 - 1

BROKERS_OWN = "__consumer_offsets"
"""Topic on which a right implies the same right on all topics.

No operator grants rights on this topic by its name.
"""

_TIMES = (("log.retention.ms", 1), ("log.retention.minutes", 60_000), ("log.retention.hours", 3_600_000))
_OTHERS = (
    ("retention.bytes", "log.retention.bytes"),
    ("cleanup.policy", "log.cleanup.policy"),
    ("delete.retention.ms", "log.cleaner.delete.retention.ms"),
)
LIMITS = ("message.max.bytes", f"log.{_BEFORE}", f"log.{_DIFFERENCE}")


@dataclass(slots=True, kw_only=True)
class ProbedCluster:
    """One cluster's answers."""

    cluster: ClusterConfig
    error: str = ""
    """Reason if the cluster can't be asked; other answers are missing then."""
    cluster_id: str = ""
    brokers: int = 0
    operations: frozenset[str] | None = None
    """Operations that sparkmirror may do on the cluster itself; None if unknown."""
    topics: dict[str, TopicDescription] = field(default_factory=dict)
    configs: dict[str, dict[str, ConfigEntry]] = field(default_factory=dict)
    """The flow's topics' properties, by topic."""
    topic_operations: dict[str, frozenset[str]] = field(default_factory=dict)
    """Permitted operations by topic.

    A topic that sparkmirror may not see has an empty entry; a visible missing topic has none.
    """
    everywhere: frozenset[str] = frozenset()
    """Operations that sparkmirror may do on every topic."""
    acls: frozenset[Acl] | None = None
    """Topic ACLs; None if unread.

    ACLs are unread if sparkmirror may not read ACLs, if the cluster has no authorizer, or if no topic is missing.
    """
    group_operations: dict[str, frozenset[str]] = field(default_factory=dict)
    """Permitted operations on the groups that the flow names.

    At the target the flow's lease group is among these.
    """
    pattern_operations: dict[str, frozenset[str]] = field(default_factory=dict)
    """Permitted operations on groups, by the flow's pattern.

    A made-up group name that matches the pattern is asked for.
    """
    too_old: tuple[str, ...] = ()
    """Reasons against brokers that are too old for use."""
    weaker: tuple[str, ...] = ()
    """Facts about the source that its old brokers can't tell."""
    limits: dict[str, int] = field(default_factory=dict)
    """Brokers' settings of `LIMITS`, by name."""
    retention: dict[str, str] = field(default_factory=dict)
    """Brokers' defaults for new topics' retention, by the topic's property."""
    skew_s: float | None = None
    refusals: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Answer to a dry creation, Kafka's code and words, by topic."""
    appends: AppendCheck | None = None
    """The append check's result, at the target of a flow that copies.

    The check tells whether the brokers check appended batches as Apache Kafka does.
    """


@dataclass(slots=True, kw_only=True)
class FlowProbe:
    """Flow with the present answers of its two clusters."""

    flow: FlowConfig
    source: ProbedCluster
    target: ProbedCluster
    names: dict[str, str] = field(default_factory=dict)
    """Names at the target for the source topics to copy, by source topic."""
    internal: dict[str, ProbedCluster] = field(default_factory=dict)
    """Cluster of each of sparkmirror's own topics, by topic."""
    specs: dict[str, NewTopicSpec] = field(default_factory=dict)
    """Topics that the flow would create if missing, by name."""
    factor_keys: dict[str, str] = field(default_factory=dict)
    """Setting of the replication factor, by topic of `specs`."""
    unknown_properties: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Source topics' properties that the target's brokers don't know, by copy."""
    copiers: dict[str, str] = field(default_factory=dict)
    """Name of a further flow that copies into the same target topic, by topic.

    The flow is another mirror's, found at the target, or one of the same file.
    """
    topic_matches: Matches = field(default_factory=Matches)
    """Patterns without a match among the source's topics."""
    group_matches: Matches = field(default_factory=Matches)
    """Patterns without a match among the source's consumer groups."""
    excluded_sinks: tuple[str, ...] = ()
    """Sink connectors' groups at the source that the flow excludes."""
    second_aliases: dict[str, str] = field(default_factory=dict)
    """Aliases of clusters that have another alias in the file, with the run's reason."""
    refused_properties: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Properties without which a refused copy would be created, by copy."""
    too_old: dict[str, int] = field(default_factory=dict)
    """Target's age limit in ms, by source topic with older records."""


def probe(flow: FlowConfig, timeout_s: float) -> FlowProbe:
    """Ask both clusters; an unreachable cluster has the reason in its `error`."""
    probed = FlowProbe(flow=flow, source=ProbedCluster(cluster=flow.source), target=ProbedCluster(cluster=flow.target))
    rules = topic_rules(flow)
    with contextlib.ExitStack() as stack:
        source = _tried(probed.source, lambda: _open(stack, probed.source, flow, timeout_s))
        target = _tried(probed.target, lambda: _open(stack, probed.target, flow, timeout_s))
        _name_internal(probed, rules)
        if source is not None:
            _tried(probed.source, lambda: _about_source(*source, probed, rules))
        if target is not None:
            _tried(probed.target, lambda: _about_target(*target, probed, rules))
        if source is not None and target is not None:
            probed.too_old = _tried(probed.source, lambda: dict(_too_old(source[1], probed))) or {}
    return probed


def _tried(side: ProbedCluster, ask: Callable[[], _Answer]) -> _Answer | None:
    """Return the answer; on failure return None, and keep the side's first error."""
    try:
        return ask()
    except (SparkMirrorError, ConnectionError) as error:
        side.error = side.error or " ".join(str(error).split())
        return None


def _open(
    stack: contextlib.ExitStack, side: ProbedCluster, flow: FlowConfig, timeout_s: float
) -> tuple[ClusterAdmin, ClusterClient]:
    admin = stack.enter_context(ClusterAdmin.connect(side.cluster, f"{flow.name}|sparkmirror-lint", timeout_s))
    client = ClusterClient(side.cluster, f"{flow.name}|sparkmirror-lint")
    stack.callback(client.close)
    client.metadata([])
    side.brokers, side.cluster_id = len(client.brokers), client.cluster_id
    side.topics = admin.topics()
    side.operations = cluster_operations(client)
    side.skew_s = clock_skew_s(client)
    for name in LIMITS:
        value = admin.broker_config(name)
        if value is not None:
            side.limits[name] = int(value)
    side.retention = dict(_broker_retention(admin))
    return admin, client


def _broker_retention(admin: ClusterAdmin) -> Iterator[tuple[str, str]]:
    """Yield new topics' default properties."""
    for name, unit_ms in _TIMES:
        if value := admin.broker_config(name):
            yield "retention.ms", str(int(value) * unit_ms if int(value) >= 0 else FOREVER)
            break
    for ours, name in _OTHERS:
        if value := admin.broker_config(name):
            yield ours, value


def _about_source(admin: ClusterAdmin, client: ClusterClient, probed: FlowProbe, rules: TopicRules) -> None:
    side, flow = probed.source, probed.flow
    probed.names = {name: rules.remote_name(name) for name in side.topics if rules.wanted(name)}
    probed.topic_matches = topic_matches(flow, rules, side.topics)
    side.too_old = tuple(too_old_as_source(client))
    side.weaker = tuple(weaker_guarantees(client, sorted(probed.names)))
    _about_topics(admin, client, side, [*probed.names, *_own(probed, side)])
    side.refusals = create_topics(client, missing(probed, side), dry=True)
    if flow.group.emit_checkpoints_enabled or flow.group.sync_group_offsets_enabled:
        side.group_operations = group_operations(client, named_groups(flow))
    if flow.group.emit_checkpoints_enabled:
        side.pattern_operations = _pattern_operations(client, flow)
        listed = Groups(client).listed()
        consumers = [group for group, entry in listed.items() if is_consumer(entry)]
        probed.group_matches = group_matches(flow, group_filter(flow), consumers)
        probed.excluded_sinks = excluded_sinks(listed.values(), flow.group)
    _about_missing(client, probed, side)


def _about_target(admin: ClusterAdmin, client: ClusterClient, probed: FlowProbe, rules: TopicRules) -> None:
    side, flow = probed.target, probed.flow
    side.too_old = tuple(too_old_as_target(client))
    if side.too_old:
        return  # such brokers can't answer many of the next questions
    for source, remote in probed.names.items():
        if remote not in side.topics:
            partitions = len(probed.source.topics[source].partitions)
            configs = creation_configs(probed.source.configs.get(source, {}).values(), rules)
            probed.specs[remote] = NewTopicSpec(remote, partitions, flow.replication_factor, configs)
            probed.factor_keys[remote] = "replication.factor"
    copies = {remote: side.topics[remote] for remote in probed.names.values() if remote in side.topics}
    if flow.copies:
        probed.copiers = OtherFlows(client, flow).copiers(copies, side.topics)
        side.appends = proof(client, software(client))
    _about_topics(admin, client, side, [*probed.names.values(), *_own(probed, side)])

    def dry(specs: list[NewTopicSpec]) -> tuple[dict[str, tuple[int, str]], dict[str, tuple[str, ...]]]:
        first_ours = sorted(side.topics, key=lambda name: (name not in side.configs, name))
        return create_as_known(
            specs, lambda part: create_topics(client, part, dry=True), lambda: known_properties(admin, first_ours)
        )

    due = missing(probed, side)
    side.refusals, probed.unknown_properties = dry(due)
    probed.refused_properties = refused_properties(due, side.refusals, lambda specs: dry(specs)[0])
    if flow.topic_sync.sync_topic_configs_enabled:
        probed.unknown_properties |= dict(_not_synced(probed, rules))
    groups = named_groups(flow) if flow.group.sync_group_offsets_enabled else []
    side.group_operations = group_operations(client, [lease_group(flow), *groups])
    if flow.group.emit_checkpoints_enabled and flow.group.sync_group_offsets_enabled:
        side.pattern_operations = _pattern_operations(client, flow)
    _about_missing(client, probed, side)


def _not_synced(probed: FlowProbe, rules: TopicRules) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield existing copies, with the source's properties that can't be set."""
    here, there = probed.source.configs, probed.target.configs
    for source, remote in probed.names.items():
        if source in here and remote in there:
            _, unknown = config_change(remote, here[source].values(), there[remote].values(), rules)
            if unknown:
                yield remote, unknown


def lease_group(flow: FlowConfig) -> str:
    """Return the consumer group through which a flow's processes agree on the lease."""
    return f"{flow.source.alias}-mm2"


def named_groups(flow: FlowConfig) -> list[str]:
    """Return the groups that the flow names literally, without patterns."""
    return [group for group in flow.group.groups if _GROUP.fullmatch(group)]


def _pattern_operations(client: ClusterClient, flow: FlowConfig) -> dict[str, frozenset[str]]:
    patterns = set(flow.group.groups) - set(named_groups(flow))
    samples = {pattern: name for pattern in sorted(patterns) for name in names_like(pattern)[:1]}
    operations = group_operations(client, set(samples.values()))
    return {pattern: operations[name] for pattern, name in samples.items() if name in operations}


def _own(probed: FlowProbe, side: ProbedCluster) -> list[str]:
    return [name for name, owner in probed.internal.items() if owner is side]


def missing(probed: FlowProbe, side: ProbedCluster) -> list[NewTopicSpec]:
    """Return the topics that the flow would create in one of its clusters."""
    other = probed.source if side is probed.target else probed.target
    return [
        spec
        for name, spec in probed.specs.items()
        if name not in side.topics and probed.internal.get(name, probed.target) is not other
    ]


def _about_missing(client: ClusterClient, probed: FlowProbe, side: ProbedCluster) -> None:
    """Ask for the facts that tell rights on missing topics.

    This runs after the questions about groups: the first of these makes the brokers create `BROKERS_OWN`.
    """
    if not missing(probed, side):
        return
    side.everywhere = topic_operations(client, [BROKERS_OWN]).get(BROKERS_OWN, frozenset())
    try:
        side.acls = frozenset(read_acls(client, AclResource.TOPIC))
    except SecurityDisabled:
        side.everywhere = EVERYTHING
    except (SparkMirrorError, ConnectionError):
        """ACLs stay unread: reading them needs DESCRIBE on the cluster."""


def _about_topics(admin: ClusterAdmin, client: ClusterClient, side: ProbedCluster, names: Iterable[str]) -> None:
    asked = list(names)
    there = [name for name in asked if name in side.topics]
    side.topic_operations = topic_operations(client, asked)
    side.configs = {
        topic: {entry.name: entry for entry in entries} for topic, entries in admin.topic_configs(there).items()
    }


def _name_internal(probed: FlowProbe, rules: TopicRules) -> None:
    """Note sparkmirror's own topics that the flow needs."""
    flow, target, alias = probed.flow, probed.target, probed.flow.source.alias
    for topic_of in (segments_topic, control_topic, losses_topic, receipts_topic, status_topic):
        name = topic_of(alias)
        probed.internal[name] = target
        probed.specs[name] = NewTopicSpec(name, 1, flow.replication_factor if flow.copies else -1)
    for name, factor in ((plans_topic(alias), flow.replication_factor), (SINK_TOPIC, -1)):
        if flow.transform_queries:
            probed.internal[name] = target
            probed.specs[name] = NewTopicSpec(name, 1, factor)
    if flow.group.emit_checkpoints_enabled:
        factor = flow.group.checkpoints_topic_replication_factor
        _internal(probed, rules.policy.checkpoints_topic(flow.mm2_source), target, "checkpoints", factor)
    if flow.heartbeat.emit_heartbeats_enabled:
        factor = flow.heartbeat.heartbeats_topic_replication_factor
        _internal(probed, rules.policy.heartbeats_topic(), target, "heartbeats", factor)
    syncs = flow.offset_sync
    if syncs.emit_offset_syncs_enabled:
        at_target = syncs.offset_syncs_topic_location == "target"
        name = rules.policy.offset_syncs_topic(flow.mm2_source if at_target else flow.mm2_target)
        side = target if at_target else probed.source
        _internal(probed, name, side, "offset-syncs", syncs.offset_syncs_topic_replication_factor)
    if flow.copies and flow.legacy is None:
        storage = flow.connect
        name = offsets_topics(alias, storage.offset_storage_topic)[0]
        partitions, factor = storage.offset_storage_partitions, storage.offset_storage_replication_factor
        probed.internal[name] = target
        probed.specs[name] = NewTopicSpec(name, partitions, factor, {"cleanup.policy": "compact"})
        probed.factor_keys[name] = "offset.storage.replication.factor"


def _internal(probed: FlowProbe, name: str, side: ProbedCluster, kind: str, factor: int) -> None:
    probed.internal[name] = side
    probed.specs[name] = NewTopicSpec(name, 1, factor)
    probed.factor_keys[name] = f"{kind}.topic.replication.factor"


def _too_old(client: ClusterClient, probed: FlowProbe) -> Iterator[tuple[str, int]]:
    """Yield source topics whose first records are older than the target's limit.

    The source is asked for the first record at or after the limit's time. If this is not the first record with a time
    at all, the records before are older. The log's start is no such record: compaction does not move the start.
    """
    now_ms = int(time.time() * 1000)
    leaders = client.metadata(probed.names)
    for name, remote in probed.names.items():
        limit = timestamp_limit(probed, remote)
        if limit is None or limit >= now_ms or name not in leaders:
            continue
        for partition, leader in leaders[name].partitions.items():
            if leader.leader < 0:
                continue
            wanted = {name: [partition]}
            first = list_offsets(client, leader.leader, wanted, 0)[name, partition]
            young = list_offsets(client, leader.leader, wanted, now_ms - limit)[name, partition]
            if not (first.error or young.error) and first.offset >= 0 and first.offset != young.offset:
                yield name, limit
                break


def timestamp_limit(probed: FlowProbe, remote: str) -> int | None:
    """Return the largest age of a record at the target in ms; None without a limit.

    The topic's own limit counts before the brokers'.
    """
    configs = probed.target.configs.get(remote, {})
    own = {
        name: int(entry.value)
        for name, entry in configs.items()
        if name in (_BEFORE, _DIFFERENCE) and entry.value is not None
    }
    limits = own or {name.removeprefix("log."): limit for name, limit in probed.target.limits.items()}
    before = limits.get(_BEFORE, _UNLIMITED)
    # Brokers that know both names do the same: the old name counts if the new one is not set.
    limit = before if before < _UNLIMITED else limits.get(_DIFFERENCE, _UNLIMITED)
    return limit if limit < _UNLIMITED else None
