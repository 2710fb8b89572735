"""Find out what a migration will create or change at its target.

For `sparkmirror migration plan`. Nothing is changed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import closing

from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.kafka.cluster.acls import ALL, ALLOW, WRITE, Acl, AclResource
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.client_quotas import read_quotas
from sparkmirror.kafka.cluster.log_sizes import DiskSpace, disk_space, log_sizes
from sparkmirror.kafka.cluster.new_topics import NewTopicSpec
from sparkmirror.kafka.cluster.refusal_lines import creation_refusal
from sparkmirror.kafka.cluster.topic_descriptions import TopicDescription
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.migrate.file import Fence, MigrationFile
from sparkmirror.migrate.planned_changes import ChangedValue, MissingCopy, PlannedChanges, Volume
from sparkmirror.mirror.sync.missing_acls import TargetAccess, access
from sparkmirror.mirror.sync.topic_properties import config_change, creation_configs
from sparkmirror.mirror.sync.topic_rules import TopicRules, topic_rules
from sparkmirror.mirror.sync.unknown_properties import create_as_known, known_properties
from sparkmirror.snapshot.status_topic import read_status

_ROLE = "sparkmirror-migration"
_NOT_SET = "not set"


def change_plan(file: MigrationFile, flow: FlowConfig) -> PlannedChanges:
    """Compare both clusters for the file's topics and groups.

    The flow leads to the target.

    Raises `ClusterUnreachable` and other `ConnectionError`s.
    """
    topics = [topic for each in file.sets for topic in each.topics]
    groups = {group for each in file.sets for group in each.groups}
    with ClusterAdmin.connect(flow.source, _ROLE) as source, ClusterAdmin.connect(flow.target, _ROLE) as target:
        return _CopyComparison(flow, source, target, topics).changes(groups, by_acls=file.fence is Fence.ACL)


class _CopyComparison:
    """One comparison of a flow's clusters; `untold` gathers what can't be compared."""

    def __init__(self, flow: FlowConfig, source: ClusterAdmin, target: ClusterAdmin, topics: Iterable[str]) -> None:
        self._flow = flow
        self._source = source
        self._target = target
        self._rules: TopicRules = topic_rules(flow)
        wanted = list(topics)
        self._at_source = source.topics(wanted)
        self._copies = {topic: self._rules.remote_name(topic) for topic in self._at_source}
        self._at_target = target.topics(self._copies.values())
        self.untold = [
            f"topic {topic}: {flow.source.alias} has none" for topic in wanted if topic not in self._at_source
        ]

    def changes(self, groups: Collection[str], *, by_acls: bool) -> PlannedChanges:
        """Return all changes; `by_acls` if the switch gives producers their rights."""
        configs = self._source.topic_configs(self._at_source)
        missing = [topic for topic, copy in self._copies.items() if copy not in self._at_target]
        created = self._created({topic: creation_configs(configs.get(topic, ()), self._rules) for topic in missing})
        changed = (*self._grown(), *self._drift(missing))
        granted = self._access()
        acls = [acl for acl in granted.missing if self._is_ours(acl, groups)] if granted else []
        quotas = tuple(self._quotas())
        volume = self._volume()
        return PlannedChanges(
            target=self._flow.target.alias,
            created=created,
            changed=changed,
            acls=tuple(acl for acl in acls if not (by_acls and _lets_write(acl))),
            writers=tuple(sorted({acl.principal for acl in acls if by_acls and _lets_write(acl)})),
            quotas=quotas,
            users=granted.users if granted else (),
            volume=volume,
            untold=tuple(self.untold),
        )

    # --- topics ---------------------------------------------------------------------------------

    def _created(self, missing: Mapping[str, dict[str, str]]) -> tuple[MissingCopy, ...]:
        specs = {
            topic: NewTopicSpec(
                self._copies[topic], len(self._at_source[topic].partitions), self._rules.replication_factor, configs
            )
            for topic, configs in missing.items()
        }
        answers, unknown = create_as_known(
            specs.values(), self._target.would_create, lambda: known_properties(self._target, self._target.topics())
        )
        return tuple(
            MissingCopy(
                name=spec.name,
                partitions=spec.partitions,
                replication_factor=spec.replication_factor,
                configs={name: value for name, value in spec.configs.items() if name not in unknown.get(spec.name, ())},
                refused=creation_refusal(*answers[spec.name]) or "",
                unknown=unknown.get(spec.name, ()),
            )
            for _, spec in sorted(specs.items())
        )

    def _grown(self) -> Iterable[ChangedValue]:
        for topic, there in sorted(self._both().items()):
            wanted = len(self._at_source[topic].partitions)
            if len(there.partitions) < wanted:
                before = str(len(there.partitions))
                yield ChangedValue(of=there.name, name="partitions", before=before, after=str(wanted))

    def _drift(self, missing: Collection[str]) -> Iterable[ChangedValue]:
        on_both_sides = [topic for topic in self._copies if topic not in missing]
        here = self._source.topic_configs(on_both_sides)
        there = self._target.topic_configs(self._copies[topic] for topic in on_both_sides)
        for topic in sorted(on_both_sides):
            copy = self._copies[topic]
            if topic not in here or copy not in there:
                cluster = self._flow.source.alias if topic not in here else self._flow.target.alias
                self.untold.append(f"topic {topic}: sparkmirror's principal needs DESCRIBE_CONFIGS on it at {cluster}")
                continue
            change, _ = config_change(copy, here[topic], there[copy], self._rules)
            present = {entry.name: entry.value for entry in there[copy]}
            values = {**change.values, **dict.fromkeys(change.removed, "its default")}
            for name, value in sorted(values.items()):
                before = present.get(name)
                yield ChangedValue(of=copy, name=name, before=_NOT_SET if before is None else before, after=value)

    def _both(self) -> dict[str, TopicDescription]:
        """Return the copies that there are, by source topic."""
        return {topic: self._at_target[copy] for topic, copy in self._copies.items() if copy in self._at_target}

    # --- access ---------------------------------------------------------------------------------

    def _access(self) -> TargetAccess | None:
        try:
            told = access(self._flow)
        except ClusterUnreachable as error:
            self.untold.append(f"ACLs and users: {' '.join(str(error).split())}")
            return None
        if told.untold:
            self.untold.append(f"users: {told.untold}")
        return told

    def _is_ours(self, acl: Acl, groups: Collection[str]) -> bool:
        names = {AclResource.TOPIC: self._copies.values(), AclResource.GROUP: groups}.get(acl.resource)
        return names is None or any(map(acl.is_about, names))

    def _quotas(self) -> Iterable[ChangedValue]:
        if not self._flow.topic_sync.sync_client_quotas_enabled:
            return
        try:
            with self._client(self._flow.source) as here, self._client(self._flow.target) as there:
                theirs, present = read_quotas(here), read_quotas(there)
        except ConnectionError as error:
            self.untold.append(f"quotas: {' '.join(str(error).split())}")
            return
        for entity, values in sorted(theirs.items(), key=str):
            if any(kind not in ("user", "client-id") for kind, _ in entity):
                continue
            owner = ", ".join(f"{kind} {name}" if name is not None else f"every {kind}" for kind, name in entity)
            for key, value in sorted(values.items()):
                before = present.get(entity, {}).get(key)
                if before != value:
                    shown = _NOT_SET if before is None else f"{before:g}"
                    yield ChangedValue(of=owner, name=key, before=shown, after=f"{value:g}")

    @staticmethod
    def _client(cluster: ClusterConfig) -> closing[ClusterClient]:
        return closing(ClusterClient(cluster, _ROLE))

    # --- bytes ----------------------------------------------------------------------------------

    def _volume(self) -> Volume:
        with self._client(self._flow.source) as here, self._client(self._flow.target) as there:
            at_source, at_target = _sizes(here, self._at_source.values()), _sizes(there, self._at_target.values())
            disk = self._disk(there)
        rate, positions = self._progress()
        ends = self._source.end_offsets(at_source)
        starts = self._source.start_offsets(at_source)
        left = sum(
            size * _share(starts.get(partition, 0), ends.get(partition, 0), positions.get(partition))
            for partition, size in at_source.items()
        )
        return Volume(
            there=sum(at_target.values()),
            left=round(left),
            bytes_per_s=rate,
            needed=sum(self._needed(topic, at_source, at_target) for topic in self._at_source),
            disk=disk,
        )

    def _needed(
        self, topic: str, at_source: Mapping[TopicPartition, int], at_target: Mapping[TopicPartition, int]
    ) -> int:
        """Return the bytes that a copy's replicas will take in addition."""
        copy = self._copies[topic]
        there = self._at_target.get(copy)
        replicas = len(there.partitions[0].replicas) if there else self._replication_factor()
        parts = [part.partition for part in self._at_source[topic].partitions]
        return replicas * sum(max(at_source.get((topic, p), 0) - at_target.get((copy, p), 0), 0) for p in parts)

    def _replication_factor(self) -> int:
        if self._rules.replication_factor > 0:
            return self._rules.replication_factor
        return int(self._target.broker_config("default.replication.factor") or 1)

    def _disk(self, client: ClusterClient) -> DiskSpace | None:
        client.metadata([])
        return disk_space(client, sorted(client.brokers))

    def _progress(self) -> tuple[float, dict[TopicPartition, int]]:
        """Return the mirror's rate, and the next source offset of each copied partition.

        The rate is in bytes a second.
        """
        try:
            status = read_status(self._flow)
        except ClusterUnreachable:  # no mirror has run yet
            return 0.0, {}
        if status.flow is None:
            return 0.0, {}
        positions = {
            (topic.topic, part.partition): part.position
            for topic in status.flow.topics
            for part in topic.partitions
            if part.position is not None
        }
        return (status.at_work.bytes_per_s if status.at_work is not None else 0.0), positions


def _lets_write(acl: Acl) -> bool:
    return acl.resource is AclResource.TOPIC and acl.permission == ALLOW and acl.operation in (WRITE, ALL)


def _sizes(client: ClusterClient, topics: Iterable[TopicDescription]) -> dict[TopicPartition, int]:
    """Return the partitions' sizes at their leaders."""
    led: dict[int, dict[str, list[int]]] = {}
    for topic in topics:
        for part in topic.partitions:
            if part.leader >= 0:
                led.setdefault(part.leader, {}).setdefault(topic.name, []).append(part.partition)
    client.metadata([])
    sizes: dict[TopicPartition, int] = {}
    for broker, partitions in led.items():
        sizes |= log_sizes(client, broker, partitions)
    return sizes


def _share(start: int, end: int, position: int | None) -> float:
    """Return which share of a partition's offsets is not copied yet."""
    return 1.0 if position is None else min(max(end - max(position, start), 0) / max(end - start, 1), 1.0)
