"""Rules about the clusters themselves, for `lint --connect`.

Each rule is one small function.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

from sparkmirror.kafka.cluster.missing_rights import principal
from sparkmirror.kafka.cluster.refusal_lines import refusal
from sparkmirror.kafka.cluster.scratch_topic import PREFIX
from sparkmirror.kafka.wire.error_codes import NOT_AUTHORIZED, ErrorCode
from sparkmirror.lint.findings import LintRule, LintSeverity, Spot
from sparkmirror.lint.grants import grant_cluster, grant_groups, grant_topics
from sparkmirror.lint.probe import FlowProbe, ProbedCluster, lease_group, missing, named_groups
from sparkmirror.lint.rights import allowed
from sparkmirror.mirror.sync.other_flows import refusal_of_second
from sparkmirror.mirror.sync.own_settings import own_topics, remedy, unsafe_settings
from sparkmirror.mirror.sync.refused_properties import exclusion, property_refusal
from sparkmirror.mirror.sync.unknown_properties import lacking
from sparkmirror.veil import shown_patterns

MOST_SKEW_S = 5.0
"""Largest clock skew, in seconds, without a finding.

Latencies and heartbeats are wrong by as much; the rules for old records look at hours.
"""

MANY_BYTES = 1_048_588
"""Kafka's default for `message.max.bytes`."""

_MOST_NAMED = 3
_OWN_NEED = frozenset({"READ", "WRITE", "DESCRIBE"})
"""Operations that sparkmirror needs on its own topics."""


def unreachable(probe: FlowProbe) -> Iterator[Spot]:
    for side in (probe.source, probe.target):
        if side.error:
            yield _spot(probe, f"{side.cluster.alias}.bootstrap.servers", side.error)


def one_cluster(probe: FlowProbe) -> Iterator[Spot]:
    for alias, reason in probe.second_aliases.items():
        yield _spot(probe, f"{alias}.bootstrap.servers", reason)


def too_old_brokers(probe: FlowProbe) -> Iterator[Spot]:
    for side in (probe.source, probe.target):
        for what in side.too_old:
            # The words are those of the run's own error.
            yield _spot(probe, side.cluster.alias, f"cluster {side.cluster.alias}: {what}")


def weaker_source(probe: FlowProbe) -> Iterator[Spot]:
    for what in probe.source.weaker:
        yield _spot(probe, probe.source.cluster.alias, what)


def forbidden_at_source(probe: FlowProbe) -> Iterator[Spot]:
    side = probe.source
    if side.error:
        return
    # Also without the sync of properties: a copy is created with the source's, and retention is compared.
    yield from _topics_lack(probe, side, {"READ", "DESCRIBE", "DESCRIBE_CONFIGS"}, probe.names)
    yield from _internal_forbidden(probe, side)
    yield from _groups_lack(probe, side, "DESCRIBE", named_groups(probe.flow))
    if probe.flow.topic_sync.syncs_acls:
        yield from _cluster_lacks(probe, side, {"DESCRIBE"}, "to read ACLs and groups")
    if probe.flow.topic_sync.sync_client_quotas_enabled:
        yield from _cluster_lacks(probe, side, {"DESCRIBE_CONFIGS"}, "to read client quotas")


def forbidden_at_target(probe: FlowProbe) -> Iterator[Spot]:
    side, flow = probe.target, probe.flow
    if side.error:
        return
    yield from _topics_lack(probe, side, _copies_need(probe), probe.names.values())
    if flow.topic_sync.syncs_acls:
        yield from _cluster_lacks(probe, side, {"ALTER"}, "to add ACLs")
    if flow.topic_sync.sync_client_quotas_enabled:
        yield from _cluster_lacks(probe, side, {"ALTER_CONFIGS"}, "to set client quotas")
    if flow.transform_queries:
        yield from _cluster_lacks(probe, side, {"DESCRIBE_CONFIGS"}, "to run Spark queries")
    yield from _groups_lack(probe, side, "READ", [lease_group(flow), *named_groups(flow)])
    yield from _internal_forbidden(probe, side)


def rights_unknown(probe: FlowProbe) -> Iterator[Spot]:
    """Yield rights on missing topics that are unknown.

    Brokers tell all rights on existing topics, but CREATE and DESCRIBE only on missing topics. ACLs may tell the rest.
    """
    for side in (probe.source, probe.target):
        unknown: dict[tuple[str, ...], list[str]] = {}
        who = principal(side.cluster)
        if side.error or side.too_old:
            continue
        for name in (spec.name for spec in missing(probe, side)):
            if name in side.topic_operations or side.refusals.get(name, (0, ""))[0] in NOT_AUTHORIZED:
                continue
            needed = _OWN_NEED if name in probe.internal else _copies_need(probe)
            left = needed - {"DESCRIBE"} - allowed(side.acls or (), who, name, side.everywhere)
            if left:
                unknown.setdefault(tuple(sorted(left)), []).append(name)
        lacking = f"; no ACL allows it to {who}" if who and side.acls is not None else ""
        for operations, names in unknown.items():
            fix = f"{grant_topics(probe, side, operations, names)}; or look again when the topics are there"
            yield _spot(probe, side.cluster.alias, f"{', '.join(operations)} on topic {_some(names)}{lacking}", fix)


def _copies_need(probe: FlowProbe) -> frozenset[str]:
    needed = frozenset({"READ", "WRITE", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER"})
    return needed | {"ALTER_CONFIGS"} if probe.flow.topic_sync.sync_topic_configs_enabled else needed


def _internal_forbidden(probe: FlowProbe, side: ProbedCluster) -> Iterator[Spot]:
    """Yield missing rights on sparkmirror's own topics, and on topics to be created."""
    own = [name for name, owner in probe.internal.items() if owner is side]
    yield from _topics_lack(probe, side, _OWN_NEED, own)
    refused = [name for name, (code, _) in side.refusals.items() if code in NOT_AUTHORIZED]
    if refused:
        fix = grant_topics(probe, side, ["CREATE"], refused)
        yield _spot(probe, side.cluster.alias, f"CREATE on topic {_some(refused)}", fix)


def _groups_lack(probe: FlowProbe, side: ProbedCluster, operation: str, groups: Iterable[str]) -> Iterator[Spot]:
    lacking = [group for group in groups if operation not in side.group_operations.get(group, {operation})]
    if lacking:
        fix = grant_groups(side, operation, lacking)
        yield _spot(probe, side.cluster.alias, f"{operation} on group {_some(lacking)}", fix)


def groups_unseen(probe: FlowProbe) -> Iterator[Spot]:
    for side, operation in ((probe.source, "DESCRIBE"), (probe.target, "READ")):
        lacking = [pattern for pattern, had in side.pattern_operations.items() if operation not in had]
        if lacking:
            fix = f"{grant_groups(side, operation, ['*'])}; or leave it, if each group has such an ACL"
            yield _spot(probe, side.cluster.alias, f"{operation} on groups like {shown_patterns(_some(lacking))}", fix)


def sinks_excluded(probe: FlowProbe) -> Iterator[Spot]:
    if probe.excluded_sinks:
        yield _spot(probe, "groups.exclude", _some(list(probe.excluded_sinks)))


def _topics_lack(probe: FlowProbe, side: ProbedCluster, needed: Set[str], names: Iterable[str]) -> Iterator[Spot]:
    lacking: dict[tuple[str, ...], list[str]] = {}
    for name in names:
        if operations := tuple(sorted(needed - side.topic_operations.get(name, needed))):
            lacking.setdefault(operations, []).append(name)
    for operations, topics in lacking.items():
        fix = grant_topics(probe, side, operations, topics)
        yield _spot(probe, side.cluster.alias, f"{', '.join(operations)} on topic {_some(topics)}", fix)


def _cluster_lacks(probe: FlowProbe, side: ProbedCluster, needed: set[str], why: str) -> Iterator[Spot]:
    for operation in sorted(needed - side.operations if side.operations is not None else ()):
        yield _spot(probe, side.cluster.alias, f"{operation} on the cluster, {why}", grant_cluster(side, operation))


def factor_too_high(probe: FlowProbe) -> Iterator[Spot]:
    for side in (probe.source, probe.target):
        too_high: dict[str, list[str]] = {}
        for name, (code, _) in side.refusals.items():
            if code == ErrorCode.INVALID_REPLICATION_FACTOR:
                too_high.setdefault(probe.factor_keys.get(name, "default.replication.factor"), []).append(name)
        for key, names in too_high.items():
            factor = probe.specs[names[0]].replication_factor
            yield _spot(probe, key, f"{factor} for {_some(names)}, and {side.brokers} brokers")


def not_created(probe: FlowProbe) -> Iterator[Spot]:
    for name, (code, words) in (*probe.source.refusals.items(), *probe.target.refusals.items()):
        if code not in (
            ErrorCode.NONE,
            ErrorCode.TOPIC_ALREADY_EXISTS,
            ErrorCode.INVALID_REPLICATION_FACTOR,
            *NOT_AUTHORIZED,
        ):
            properties = probe.refused_properties.get(name, ())
            if properties:
                fix = f"write {exclusion(properties)}, if the copy can do without, or allow it at the target"
                yield _spot(probe, name, property_refusal(code, words, properties), fix)
            else:
                yield _spot(probe, name, refusal(code, words))


def copied_by_another(probe: FlowProbe) -> Iterator[Spot]:
    for remote, other in sorted(probe.copiers.items()):
        yield _spot(probe, remote, refusal_of_second(probe.flow.name, other, remote).line)


def unknown_properties(probe: FlowProbe) -> Iterator[Spot]:
    for name, topics in lacking(probe.unknown_properties).items():
        yield _spot(probe, name, _some(topics))


def no_quorum_of_replicas(probe: FlowProbe) -> Iterator[Spot]:
    for remote in probe.names.values():
        least = probe.target.configs.get(remote, {}).get("min.insync.replicas")
        topic = probe.target.topics.get(remote)
        if topic is None or least is None or least.value is None:
            continue
        replicas = min(len(partition.replicas) for partition in topic.partitions)
        if int(least.value) > replicas:
            yield _spot(probe, remote, f"{least.value} wanted, {replicas} there")


def own_topics_unsafe(probe: FlowProbe) -> Iterator[Spot]:
    side = probe.target
    for name in own_topics(probe.flow.source.alias):
        topic, configs = side.topics.get(name), side.configs.get(name)
        if topic is None or configs is None:
            continue
        values = {entry.name: entry.value for entry in configs.values() if entry.value is not None}
        replicas = min((len(partition.replicas) for partition in topic.partitions), default=0)
        if lacking := unsafe_settings(values, replicas):
            detail = ", ".join(f"{setting}={values.get(setting, '')}" for setting in lacking)
            yield _spot(probe, name, detail, remedy(side.cluster.bootstrap_servers, name, lacking))


def message_too_large(probe: FlowProbe) -> Iterator[Spot]:
    if probe.source.error or probe.target.error:
        return
    for name, remote in probe.names.items():
        here = _largest(probe.source, name)
        there = _largest(probe.target, remote) if remote in probe.target.topics else None
        if there is None:
            # A property that is set on the source's topic is copied to the new topic.
            own = probe.source.configs.get(name, {}).get("max.message.bytes")
            copied = own is not None and own.source == "DYNAMIC_TOPIC_CONFIG"
            there = here if copied else probe.target.limits.get("message.max.bytes", MANY_BYTES)
        if here is not None and there is not None and here > there:
            yield _spot(probe, name, f"up to {here:,} bytes at {probe.source.cluster.alias}, {there:,} at the target")


def _largest(side: ProbedCluster, topic: str) -> int | None:
    entry = side.configs.get(topic, {}).get("max.message.bytes")
    return int(entry.value) if entry is not None and entry.value is not None else None


def too_old(probe: FlowProbe) -> Iterator[Spot]:
    for name, limit_ms in probe.too_old.items():
        yield _spot(probe, name, f"older than {limit_ms / 3_600_000:,.0f} h")


def clock_skew(probe: FlowProbe) -> Iterator[Spot]:
    for side in (probe.source, probe.target):
        if side.skew_s is not None and abs(side.skew_s) > MOST_SKEW_S:
            word = "ahead of" if side.skew_s > 0 else "behind"
            yield _spot(probe, side.cluster.alias, f"{abs(side.skew_s):.0f} s {word} this machine's")


def clock_unknown(probe: FlowProbe) -> Iterator[Spot]:
    for side in (probe.source, probe.target):
        if side.skew_s is None and not side.error:
            yield _spot(probe, side.cluster.alias)


def limits_unknown(probe: FlowProbe) -> Iterator[Spot]:
    # Every broker has message.max.bytes: its absence means that settings can't be read.
    if "message.max.bytes" not in probe.target.limits and not probe.target.error:
        yield _spot(probe, probe.target.cluster.alias)


def nothing_to_copy(probe: FlowProbe) -> Iterator[Spot]:
    if probe.topic_matches.nothing and probe.flow.copies:
        yield _spot(probe, "topics", probe.topic_matches.nothing)


def no_group(probe: FlowProbe) -> Iterator[Spot]:
    if probe.group_matches.nothing:
        yield _spot(probe, "groups", probe.group_matches.nothing)


def pattern_unmatched(probe: FlowProbe) -> Iterator[Spot]:
    for matches in (probe.topic_matches, probe.group_matches):
        for pattern in matches.unmatched if not matches.nothing else ():
            yield _spot(probe, pattern.key, pattern.pattern + (f" ({pattern.hint})" if pattern.hint else ""))


def more_partitions(probe: FlowProbe) -> Iterator[Spot]:
    for name, remote in probe.names.items():
        if remote not in probe.target.topics:
            continue
        here, there = len(probe.source.topics[name].partitions), len(probe.target.topics[remote].partitions)
        if there > here:
            yield _spot(probe, remote, f"{there} at the target, {here} at the source")


def append_check(probe: FlowProbe) -> Iterator[Spot]:
    appends = probe.target.appends
    for check in appends.failures if appends is not None else ():
        yield _spot(probe, probe.target.cluster.alias, check.words)


def append_check_unproven(probe: FlowProbe) -> Iterator[Spot]:
    appends = probe.target.appends
    if appends is not None and appends.untold:
        yield _spot(probe, probe.target.cluster.alias, appends.untold)


def append_check_proven(probe: FlowProbe) -> Iterator[Spot]:
    appends = probe.target.appends
    if appends is not None and appends.holds:
        yield _spot(probe, probe.target.cluster.alias, appends.words)


def _spot(probe: FlowProbe, key: str, detail: str = "", fix: str = "") -> Spot:
    return Spot(path=f"flow {probe.flow.name}", line=0, key=key, detail=detail, fix=fix)


def _some(names: list[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(sorted(names)[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


_ERROR, _WARNING, _INFO = LintSeverity.ERROR, LintSeverity.WARNING, LintSeverity.INFO

CLUSTER_RULES: tuple[LintRule[FlowProbe], ...] = (
    LintRule(
        name="unreachable",
        severity=_ERROR,
        what="a cluster can't be asked",
        effect="the run stops at its start, with exit code 3",
        fix="as the reason says: brokers, firewall, security.protocol, certificates, credentials, versions",
        look=unreachable,
    ),
    LintRule(
        name="one-cluster",
        severity=_ERROR,
        what="two aliases are one cluster",
        effect="the run stops; MirrorMaker 2 would copy a cluster into itself, or its topics twice",
        fix="correct the brokers of one of them, or write one alias in all flows",
        look=one_cluster,
    ),
    LintRule(
        name="too-old-brokers",
        severity=_ERROR,
        what="a broker is too old",
        effect="the run stops at its start, with exit code 3",
        fix="upgrade it: Kafka 1.0 at least at the source, 2.8 at the target, and inter.broker.protocol.version "
        "2.8 there",
        look=too_old_brokers,
    ),
    LintRule(
        name="weaker-source",
        severity=_INFO,
        what="the source is so old that some faults can't be noticed",
        effect="the copy is exact as long as the named fault does not happen",
        fix="upgrade the source, or see that the fault does not happen (docs/versions.md)",
        look=weaker_source,
    ),
    LintRule(
        name="forbidden-at-source",
        severity=_ERROR,
        what="sparkmirror's principal lacks a permission at the source",
        effect="topics stay uncopied, or their properties and ACLs do; MirrorMaker 2 says RUNNING and copies nothing",
        fix="run the kafka-acls.sh commands of the finding, or grant it by the provider's own policies",
        look=forbidden_at_source,
    ),
    LintRule(
        name="forbidden-at-target",
        severity=_ERROR,
        what="sparkmirror's principal lacks a permission at the target",
        effect="nothing can be written, or copies are not kept like the source's",
        fix="run the kafka-acls.sh commands of the finding, or grant it by the provider's own policies",
        look=forbidden_at_target,
    ),
    LintRule(
        name="rights-unknown",
        severity=_INFO,
        what="the rights of sparkmirror's principal on topics that don't exist yet are unknown",
        effect="the topics would be created; without READ and WRITE they stay empty, without the other rights they "
        "are not"
        " kept like the source's",
        fix="grant them, for copies by prefix (kafka-acls.sh --resource-pattern-type prefixed); with DESCRIBE on the"
        " cluster ACLs are read and say more; or look again when the topics are there",
        look=rights_unknown,
    ),
    LintRule(
        name="groups-unseen",
        severity=_WARNING,
        what="sparkmirror's principal may lack a permission for groups that a pattern matches",
        effect="groups without an ACL of their own for it are left out without a word: their consumers start over at "
        "the target",
        fix="grant DESCRIBE on all groups at the source, and READ at the target if sync.group.offsets.enabled is true;"
        " or leave it, if each group has such an ACL",
        look=groups_unseen,
    ),
    LintRule(
        name="sinks-excluded",
        severity=_INFO,
        what="groups of sink connectors are not translated",
        effect="a sink connector that moves to the target starts over there; groups.exclude has connect-.* by default",
        fix="if sinks are to move, write groups.exclude without connect-.*: console-consumer-.*, __.*",
        look=sinks_excluded,
    ),
    LintRule(
        name="factor-too-high",
        severity=_ERROR,
        what="the replication factor is more than there are brokers",
        effect="the topics are not created",
        fix="lower it, or write -1 for the target's default",
        look=factor_too_high,
    ),
    LintRule(
        name="not-created",
        severity=_ERROR,
        what="this topic would not be created",
        effect="its source is not copied; if it is one of sparkmirror's own topics, nothing is copied at all",
        fix="as the reason says",
        look=not_created,
    ),
    LintRule(
        name="copied-by-another",
        severity=_ERROR,
        what="two flows would copy into one topic",
        effect="the second one's topic is refused, and stays uncopied",
        fix="as the reason says; don't delete the topic while the other flow copies into it",
        look=copied_by_another,
    ),
    LintRule(
        name="unknown-properties",
        severity=_WARNING,
        what="the target's brokers don't know this property of topics",
        effect="the topics are copied without it; MirrorMaker 2 would not create them",
        fix="upgrade the target; or write config.properties.exclude = +NAME, if the copies can do without it",
        look=unknown_properties,
    ),
    LintRule(
        name="too-few-replicas",
        severity=_ERROR,
        what="min.insync.replicas is more than the copy has replicas",
        effect="nothing can ever be written to it",
        fix="lower it, or add replicas",
        look=no_quorum_of_replicas,
    ),
    LintRule(
        name="own-topics-unsafe",
        severity=_WARNING,
        what="one of sparkmirror's own topics may lose records",
        effect="if its newest records are lost, partitions are parked: where their copied records came from is not "
        "known any more",
        fix="set unclean.leader.election.enable=false, and min.insync.replicas=2 with three replicas or more, by the "
        "kafka-configs.sh command",
        look=own_topics_unsafe,
    ),
    LintRule(
        name="message-too-large",
        severity=_WARNING,
        what="the source takes larger batches than the target",
        effect="a partition with such a batch is parked; MirrorMaker 2's task fails",
        fix="raise message.max.bytes of the target's brokers, or set max.message.bytes at the source's topic, from "
        "where the mirror brings it to the copy; on the copy alone it would be set back, unless "
        "config.properties.exclude has it",
        look=message_too_large,
    ),
    LintRule(
        name="too-old",
        severity=_ERROR,
        what="the source has records older than the target takes",
        effect="they are refused: the partitions are parked, and MirrorMaker 2's task fails with "
        "InvalidRecordException",
        fix="raise log.message.timestamp.before.max.ms of the target's brokers, or set message.timestamp.before.max.ms "
        "(before Kafka 3.6 difference.max.ms) at the source's topic, from where the mirror brings it to the copy; on "
        "the copy alone it would be set back, unless config.properties.exclude has it",
        look=too_old,
    ),
    LintRule(
        name="append-check",
        severity=_ERROR,
        what="the target does not check appended batches as Apache Kafka does",
        effect="the run refuses it, with exit code 3: records would be lost there, or be there twice",
        fix="mirror to another cluster, or to another version of its brokers",
        look=append_check,
    ),
    LintRule(
        name="append-check-unproven",
        severity=_INFO,
        what="append check not proven",
        effect="it is not known whether the target checks appended batches; the run says so, and continues",
        fix=f"grant CREATE, DELETE, READ and WRITE on topics that begin with {PREFIX}, or ask the maker of the brokers",
        look=append_check_unproven,
    ),
    LintRule(
        name="append-check-proven",
        severity=_INFO,
        what="append check proven",
        effect="none: tried on a topic of sparkmirror's own, which is deleted again",
        fix="nothing",
        look=append_check_proven,
    ),
    LintRule(
        name="clock-skew",
        severity=_WARNING,
        what=f"a cluster's clock is more than {MOST_SKEW_S:.0f} s off",
        effect="latencies and lag in time are wrong by as much; retention and limits by timestamp come early or late",
        fix="set the clocks, by NTP",
        look=clock_skew,
    ),
    LintRule(
        name="clock-unknown",
        severity=_INFO,
        what="a cluster's clock can't be read",
        effect="a wrong clock stays unnoticed: reading it needs KRaft (Kafka 3.3) and DESCRIBE on the cluster",
        fix="compare `date` on the brokers",
        look=clock_unknown,
    ),
    LintRule(
        name="limits-unknown",
        severity=_INFO,
        what="the brokers' settings at the target can't be read",
        effect="for copies that are not there yet 1 MiB is taken as the largest batch, and too old records are not "
        "looked for",
        fix="grant DESCRIBE_CONFIGS on the cluster, or compare message.max.bytes and log.message.timestamp.* yourself",
        look=limits_unknown,
    ),
    LintRule(
        name="nothing-to-copy",
        severity=_WARNING,
        what="the flow has nothing to copy",
        effect="nothing is copied but heartbeats",
        fix="correct topics or topics.exclude, or grant READ on topic names like these: brokers list only topics that "
        "sparkmirror may see",
        look=nothing_to_copy,
    ),
    LintRule(
        name="no-group",
        severity=_INFO,
        what="no consumer group is translated",
        effect="consumers start over at the target",
        fix="correct groups or groups.exclude, or grant DESCRIBE on the groups; or write emit.checkpoints.enabled = "
        "false",
        look=no_group,
    ),
    LintRule(
        name="pattern-unmatched",
        severity=_INFO,
        what="this pattern matches nothing at the source",
        effect="none, until a topic or group is there that it matches",
        fix="correct it, if it is misspelt",
        look=pattern_unmatched,
    ),
    LintRule(
        name="more-partitions",
        severity=_INFO,
        what="a copy has more partitions than its source",
        effect="producers that move there put keys into other partitions than before; the additional ones stay empty",
        fix="create it with as many, if keys' order matters after the move",
        look=more_partitions,
    ),
)
