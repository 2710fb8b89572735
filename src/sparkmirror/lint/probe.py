"""Both clusters of a flow, asked what the rules want to know.

Nothing is written to either, but for one topic of our own at the target, made and deleted at once (`append_check`).
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from sparkmirror.cluster.acls import Acl, AclResource, SecurityDisabled, read_acls
from sparkmirror.cluster.admin import ClusterAdmin, ConfigEntry, NewTopicSpec, TopicDescription
from sparkmirror.cluster.append_check import AppendCheck
from sparkmirror.cluster.append_proof import proof, software
from sparkmirror.cluster.broker_versions import too_old_as_source, too_old_as_target, weaker_guarantees
from sparkmirror.cluster.client import ClusterClient
from sparkmirror.cluster.dry_creation import try_creation
from sparkmirror.cluster.list_offsets import EARLIEST, list_offsets
from sparkmirror.cluster.permissions import cluster_operations, group_operations, topic_operations
from sparkmirror.cluster.quorum_clock import clock_skew_s
from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.durable.claims import segments_topic
from sparkmirror.durable.losses import losses_topic
from sparkmirror.errors import SparkMirrorError
from sparkmirror.lint.rights import EVERYTHING
from sparkmirror.messages.control import control_topic
from sparkmirror.messages.receipts import receipts_topic
from sparkmirror.messages.status_topic import status_topic
from sparkmirror.mm2.connect_offsets import offsets_topics
from sparkmirror.policy.sample_names import names_like
from sparkmirror.sync.other_flows import OtherFlows
from sparkmirror.sync.refused_properties import refused_properties
from sparkmirror.sync.topic_properties import config_change, creation_configs
from sparkmirror.sync.topic_rules import TopicRules, topic_rules
from sparkmirror.sync.unknown_properties import create_as_known, known_properties

_Answer = TypeVar("_Answer")

_GROUP = re.compile(r"[\w.-]+")

_BEFORE, _DIFFERENCE = "message.timestamp.before.max.ms", "message.timestamp.difference.max.ms"
"""Topics' limits of age: since Kafka 3.6, and before 4.0; brokers' have `log.` before them."""
_UNLIMITED = 2**63 - 1

BROKERS_OWN = "__consumer_offsets"
"""Who may do something with this one may do it with all topics: nobody grants that by its name."""

LIMITS = ("message.max.bytes", f"log.{_BEFORE}", f"log.{_DIFFERENCE}")


@dataclass(slots=True)
class ProbedCluster:
    """What one cluster says."""

    cluster: ClusterConfig
    error: str = ""
    """Why it can't be asked; then all else is empty."""
    cluster_id: str = ""
    brokers: int = 0
    operations: frozenset[str] | None = None
    """What we may do with the cluster itself; None: it can't say."""
    topics: dict[str, TopicDescription] = field(default_factory=dict)
    configs: dict[str, dict[str, ConfigEntry]] = field(default_factory=dict)
    """Of the topics that the flow is about."""
    topic_operations: dict[str, frozenset[str]] = field(default_factory=dict)
    """Of topics that are there, and nothing for those that we could not see if they were."""
    everywhere: frozenset[str] = frozenset()
    """What we may do with any topic."""
    acls: frozenset[Acl] | None = None
    """Of topics; None: they were not read, because we may not, or there are none, or nothing is missing."""
    group_operations: dict[str, frozenset[str]] = field(default_factory=dict)
    """Of the groups that the flow names, and at the target of the one that its processes agree through."""
    pattern_operations: dict[str, frozenset[str]] = field(default_factory=dict)
    """What we may do with groups that a pattern of the flow's matches: tried with a name that is like it."""
    too_old: tuple[str, ...] = ()
    """Brokers that can't be used, and why."""
    weaker: tuple[str, ...] = ()
    """What can't be told of the source, since its brokers are old."""
    limits: dict[str, int] = field(default_factory=dict)
    """Brokers' settings, by name."""
    skew_s: float | None = None
    refusals: dict[str, tuple[int, str]] = field(default_factory=dict)
    """What creating a topic would be answered: Kafka's code and words, by name."""
    appends: AppendCheck | None = None
    """Of a target that is copied to: whether it takes only what belongs where it is sent."""


@dataclass(slots=True)
class FlowProbe:
    """A flow between two clusters as they are now."""

    flow: FlowConfig
    source: ProbedCluster
    target: ProbedCluster
    names: dict[str, str] = field(default_factory=dict)
    """Source topics that are copied, with their names at the target."""
    internal: dict[str, ProbedCluster] = field(default_factory=dict)
    """Topics of our own, and where they are."""
    specs: dict[str, NewTopicSpec] = field(default_factory=dict)
    """Topics that would be created, and the key that says how many replicas."""
    factor_keys: dict[str, str] = field(default_factory=dict)
    unknown_properties: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Of copies: what their sources have, and the target's brokers don't know."""
    copiers: dict[str, str] = field(default_factory=dict)
    """Topics at the target that another flow of ours copies into, or is to by the same file, and which."""
    refused_properties: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Of copies that would be refused: the properties without which they would be created."""
    too_old: dict[str, int] = field(default_factory=dict)
    """Source topics with records older than the target takes, and the limit in ms."""


def probe(flow: FlowConfig, timeout_s: float) -> FlowProbe:
    """Ask both; what can't be asked is in the sides' `error`."""
    found = FlowProbe(flow, ProbedCluster(flow.source), ProbedCluster(flow.target))
    rules = topic_rules(flow, flow.originals)
    with contextlib.ExitStack() as stack:
        source = _tried(found.source, lambda: _open(stack, found.source, flow, timeout_s))
        target = _tried(found.target, lambda: _open(stack, found.target, flow, timeout_s))
        _name_internal(found, rules)
        if source is not None:
            found.names = {name: rules.remote_name(name) for name in found.source.topics if rules.wanted(name)}
            _tried(found.source, lambda: _about_source(*source, found))
        if target is not None:
            _tried(found.target, lambda: _about_target(*target, found, rules))
        if source is not None and target is not None:
            found.too_old = _tried(found.source, lambda: dict(_too_old(source[1], found))) or {}
    return found


def _tried(side: ProbedCluster, ask: Callable[[], _Answer]) -> _Answer | None:
    """What is answered; None, and the side's first error, if nothing is."""
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
    return admin, client


def _about_source(admin: ClusterAdmin, client: ClusterClient, found: FlowProbe) -> None:
    side, flow = found.source, found.flow
    side.too_old = tuple(too_old_as_source(client))
    side.weaker = tuple(weaker_guarantees(client, sorted(found.names)))
    _about_topics(admin, client, side, [*found.names, *_own(found, side)])
    side.refusals = try_creation(client, missing(found, side))
    if flow.group.emit_checkpoints_enabled or flow.group.sync_group_offsets_enabled:
        side.group_operations = group_operations(client, named_groups(flow))
    if flow.group.emit_checkpoints_enabled:
        side.pattern_operations = _pattern_operations(client, flow)
    _about_missing(client, found, side)


def _about_target(admin: ClusterAdmin, client: ClusterClient, found: FlowProbe, rules: TopicRules) -> None:
    side, flow = found.target, found.flow
    side.too_old = tuple(too_old_as_target(client))
    if side.too_old:
        return  # much of what follows can't be asked there
    for source, remote in found.names.items():
        if remote not in side.topics:
            partitions = len(found.source.topics[source].partitions)
            configs = creation_configs(found.source.configs.get(source, {}).values(), rules)
            found.specs[remote] = NewTopicSpec(remote, partitions, flow.replication_factor, configs)
            found.factor_keys[remote] = "replication.factor"
    copies = {remote: side.topics[remote] for remote in found.names.values() if remote in side.topics}
    if flow.copies:
        found.copiers = OtherFlows(client, flow).copiers(copies, side.topics)
        side.appends = proof(client, software(client))
    _about_topics(admin, client, side, [*found.names.values(), *_own(found, side)])

    def dry(specs: list[NewTopicSpec]) -> tuple[dict[str, tuple[int, str]], dict[str, tuple[str, ...]]]:
        first_ours = sorted(side.topics, key=lambda name: (name not in side.configs, name))
        return create_as_known(
            specs, lambda some: try_creation(client, some), lambda: known_properties(admin, first_ours)
        )

    due = missing(found, side)
    side.refusals, found.unknown_properties = dry(due)
    found.refused_properties = refused_properties(due, side.refusals, lambda specs: dry(specs)[0])
    if flow.topic_sync.sync_topic_configs_enabled:
        found.unknown_properties |= dict(_not_synced(found, rules))
    groups = named_groups(flow) if flow.group.sync_group_offsets_enabled else []
    side.group_operations = group_operations(client, [lease_group(flow), *groups])
    if flow.group.emit_checkpoints_enabled and flow.group.sync_group_offsets_enabled:
        side.pattern_operations = _pattern_operations(client, flow)
    _about_missing(client, found, side)


def _not_synced(found: FlowProbe, rules: TopicRules) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Copies that are there, with the properties that they can't be given."""
    here, there = found.source.configs, found.target.configs
    for source, remote in found.names.items():
        if source in here and remote in there:
            _, unknown = config_change(remote, here[source].values(), there[remote].values(), rules)
            if unknown:
                yield remote, unknown


def lease_group(flow: FlowConfig) -> str:
    """The group that a flow's processes agree through."""
    return f"{flow.source.alias}-mm2"


def named_groups(flow: FlowConfig) -> list[str]:
    """The groups that are named, and not matched by a pattern."""
    return [group for group in flow.group.groups if _GROUP.fullmatch(group)]


def _pattern_operations(client: ClusterClient, flow: FlowConfig) -> dict[str, frozenset[str]]:
    patterns = set(flow.group.groups) - set(named_groups(flow))
    samples = {pattern: name for pattern in sorted(patterns) for name in names_like(pattern)[:1]}
    operations = group_operations(client, set(samples.values()))
    return {pattern: operations[name] for pattern, name in samples.items() if name in operations}


def _own(found: FlowProbe, side: ProbedCluster) -> list[str]:
    return [name for name, where in found.internal.items() if where is side]


def missing(found: FlowProbe, side: ProbedCluster) -> list[NewTopicSpec]:
    """What would be created there."""
    other = found.source if side is found.target else found.target
    return [
        spec
        for name, spec in found.specs.items()
        if name not in side.topics and found.internal.get(name, found.target) is not other
    ]


def _about_missing(client: ClusterClient, found: FlowProbe, side: ProbedCluster) -> None:
    """What tells rights on topics that are not there. After groups: with the first that is asked for the brokers make
    their own topic."""
    if not missing(found, side):
        return
    side.everywhere = topic_operations(client, [BROKERS_OWN]).get(BROKERS_OWN, frozenset())
    try:
        side.acls = frozenset(read_acls(client, AclResource.TOPIC))
    except SecurityDisabled:
        side.everywhere = EVERYTHING
    except (SparkMirrorError, ConnectionError):
        """We may not read them: they are DESCRIBE on the cluster."""


def _about_topics(admin: ClusterAdmin, client: ClusterClient, side: ProbedCluster, names: Iterable[str]) -> None:
    asked = list(names)
    there = [name for name in asked if name in side.topics]
    side.topic_operations = topic_operations(client, asked)
    side.configs = {
        topic: {entry.name: entry for entry in entries} for topic, entries in admin.topic_configs(there).items()
    }


def _name_internal(found: FlowProbe, rules: TopicRules) -> None:
    """The topics of our own that the flow needs."""
    flow, target, alias = found.flow, found.target, found.flow.source.alias
    for topic_of in (segments_topic, control_topic, losses_topic, receipts_topic, status_topic):
        name = topic_of(alias)
        found.internal[name] = target
        found.specs[name] = NewTopicSpec(name, 1, -1)
    if flow.group.emit_checkpoints_enabled:
        factor = flow.group.checkpoints_topic_replication_factor
        _internal(found, rules.policy.checkpoints_topic(flow.mm2_source), target, "checkpoints", factor)
    if flow.heartbeat.emit_heartbeats_enabled:
        factor = flow.heartbeat.heartbeats_topic_replication_factor
        _internal(found, rules.policy.heartbeats_topic(), target, "heartbeats", factor)
    syncs = flow.offset_sync
    if syncs.emit_offset_syncs_enabled:
        at_target = syncs.offset_syncs_topic_location == "target"
        name = rules.policy.offset_syncs_topic(flow.mm2_source if at_target else flow.mm2_target)
        side = target if at_target else found.source
        _internal(found, name, side, "offset-syncs", syncs.offset_syncs_topic_replication_factor)
    if flow.copies and flow.legacy is None:
        storage = flow.connect
        name = offsets_topics(alias, storage.offset_storage_topic)[0]
        partitions, factor = storage.offset_storage_partitions, storage.offset_storage_replication_factor
        found.internal[name] = target
        found.specs[name] = NewTopicSpec(name, partitions, factor, {"cleanup.policy": "compact"})
        found.factor_keys[name] = "offset.storage.replication.factor"


def _internal(found: FlowProbe, name: str, side: ProbedCluster, kind: str, factor: int) -> None:
    found.internal[name] = side
    found.specs[name] = NewTopicSpec(name, 1, factor)
    found.factor_keys[name] = f"{kind}.topic.replication.factor"


def _too_old(client: ClusterClient, found: FlowProbe) -> Iterator[tuple[str, int]]:
    """Topics whose first records are older than the target takes.

    The first offset at or after a time is asked for: if it isn't the first of the log, something before it is older.
    """
    now_ms = int(time.time() * 1000)
    leaders = client.metadata(found.names)
    for name, remote in found.names.items():
        limit = timestamp_limit(found, remote)
        if limit is None or limit >= now_ms or name not in leaders:
            continue
        for partition, leader in leaders[name].partitions.items():
            if leader.leader < 0:
                continue
            where = {name: [partition]}
            start = list_offsets(client, leader.leader, where, EARLIEST)[name, partition]
            young = list_offsets(client, leader.leader, where, now_ms - limit)[name, partition]
            end = list_offsets(client, leader.leader, where, -1)[name, partition]
            if not (start.error or young.error or end.error) and start.offset != (
                young.offset if young.offset >= 0 else end.offset
            ):
                yield name, limit
                break


def timestamp_limit(found: FlowProbe, remote: str) -> int | None:
    """How old a record may be at the target, in ms: the topic's own limit, or the brokers'; None: there is none."""
    configs = found.target.configs.get(remote, {})
    own = {
        name: int(entry.value)
        for name, entry in configs.items()
        if name in (_BEFORE, _DIFFERENCE) and entry.value is not None
    }
    limits = own or {name.removeprefix("log."): limit for name, limit in found.target.limits.items()}
    before = limits.get(_BEFORE, _UNLIMITED)
    # As brokers do that know both: the old name counts where the new one is not set.
    limit = before if before < _UNLIMITED else limits.get(_DIFFERENCE, _UNLIMITED)
    return limit if limit < _UNLIMITED else None
