"""Rules about the flows that result from the files.

Each rule is one small function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sparkmirror.config import IDENTITY_POLICY, ClusterConfig, FlowConfig
from sparkmirror.config.credentials import Kerberos, LoginError
from sparkmirror.config.login import GSSAPI, read_login
from sparkmirror.config.providers import with_secrets
from sparkmirror.config.spark_guards import MASTER, guard_secrets, refuse_little_memory, refuse_two_pumps
from sparkmirror.errors import ConfigError, SparkMirrorError
from sparkmirror.kafka.cluster.tickets import check, check_keytab
from sparkmirror.kafka.wire.sasl import SaslError
from sparkmirror.lint.findings import LintRule, LintSeverity, Spot, at
from sparkmirror.lint.subject import Subject
from sparkmirror.mirror.sync.flow_troubles import EFFECTS, TroubleKind, flow_troubles
from sparkmirror.mirror.sync.topic_rules import group_filter, topic_rules
from sparkmirror.policy import DefaultReplicationPolicy
from sparkmirror.policy.group_filter import DEFAULT as GROUP_FILTER
from sparkmirror.policy.near_names import hardly_meant
from sparkmirror.policy.topic_filter import DEFAULT as TOPIC_FILTER
from sparkmirror.veil import shown_patterns

AMAZONS = "com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy"


def patterns_error(flow: FlowConfig) -> str:
    """Return why a flow's patterns or classes can't be used; empty if they can."""
    try:
        topic_rules(flow)
        group_filter(flow)
    except SparkMirrorError as error:
        return str(error)
    return ""


def wrong_pattern(subject: Subject) -> Iterator[Spot]:
    for flow in subject.flows:
        if error := patterns_error(flow):
            yield at(subject.flow_spot(flow), error)
    for pair in subject.config.beats if subject.config else ():
        try:
            topic_rules(pair)
        except SparkMirrorError as error:
            yield at(subject.flow_spot(pair), str(error))


def odd_pattern(subject: Subject) -> Iterator[Spot]:
    for flow in subject.flows:
        group = flow.group
        lists: list[tuple[str, bool, tuple[str, ...]]] = []
        if flow.topic_filter_class == TOPIC_FILTER:
            lists += [("topics", True, flow.topics), ("topics.exclude", True, flow.topics_exclude)]
        if group.group_filter_class == GROUP_FILTER:
            lists += [("groups", False, group.groups), ("groups.exclude", False, group.groups_exclude)]
        for key, of_topics, patterns in lists:
            for pattern in patterns:
                if why := hardly_meant(pattern, of_topics=of_topics):
                    stated = subject.stated(key, flow) or subject.flow_spot(flow)
                    yield at(stated, shown_patterns(f"{pattern} ({why})"))


def spark_refused(subject: Subject) -> Iterator[Spot]:
    """Yield Spark settings with which a run's flows are refused.

    Spark runs for flows only: heartbeats alone need none.
    """
    spark = subject.config.spark if subject.config else {}
    for flow in subject.flows:
        for key, value in spark.items():
            try:
                refuse_two_pumps({key: value}, subject.reading.path)
            except ConfigError as error:
                yield at(subject.stated(key, flow) or subject.flow_spot(flow), error.reason)
        try:
            refuse_little_memory(spark, subject.reading.path)
        except ConfigError as error:
            yield at(subject.stated(error.key or "", flow) or subject.flow_spot(flow), error.reason)
        try:
            guard_secrets(flow, spark, subject.reading.path)
        except ConfigError as error:
            yield at(subject.stated(MASTER, flow) or subject.flow_spot(flow), error.reason)


def kerberos_here(subject: Subject) -> Iterator[Spot]:
    """Yield clusters to which this machine can't sign in by Kerberos."""
    for flow in subject.flows:
        for cluster in (flow.source, flow.source.for_copying, flow.target, flow.target.for_copying):
            if lacking := _lacks(cluster):
                entries = {entry.key: entry for entry in subject.reading.entries}
                keys = (f"{cluster.alias}.sasl.jaas.config", "sasl.jaas.config")
                stated = next((entries[key] for key in keys if key in entries), None)
                yield at(stated or subject.flow_spot(flow), lacking)


def _lacks(cluster: ClusterConfig) -> str:
    """Return the missing condition; empty without one, or without Kerberos."""
    if not cluster.signs_in or cluster.sasl.mechanism != GSSAPI:
        return ""
    try:
        login = read_login(with_secrets(cluster).sasl)
        assert isinstance(login, Kerberos)  # noqa: S101 - the mechanism says so
        if login.keytab:
            check_keytab(login)
        check(login)
    except (SaslError, LoginError, ValueError) as error:
        return str(error)
    return ""


def _troubles(kind: TroubleKind) -> Callable[[Subject], Iterator[Spot]]:
    """Return a rule for a kind of trouble; a run looks for the same at its start."""

    def look(subject: Subject) -> Iterator[Spot]:
        for trouble in flow_troubles(subject.flows):
            if trouble.kind is kind:
                flows = [flow for flow in subject.flows if flow.name in trouble.flows]
                stated = (subject.stated(trouble.key, flow) for flow in flows)
                spot = next(filter(None, stated), None) or subject.flow_spot(flows[-1])
                yield at(spot, trouble.detail, fix=trouble.remedy)

    return look


def _keeps_names(flow: FlowConfig) -> bool:
    try:
        return topic_rules(flow).remote_name("orders") == "orders"
    except SparkMirrorError:
        return False


def same_brokers(subject: Subject) -> Iterator[Spot]:
    for flow in subject.flows:
        if set(flow.source.bootstrap_servers) & set(flow.target.bootstrap_servers):
            entries = {entry.key: entry for entry in subject.reading.entries}
            spot = entries.get(f"{flow.target.alias}.bootstrap.servers") or subject.flow_spot(flow)
            yield at(spot, f"{flow.source.alias} and {flow.target.alias}")


def no_separator(subject: Subject) -> Iterator[Spot]:
    for flow in subject.flows:
        stated = subject.stated("replication.policy.separator", flow)
        if stated is not None and not flow.replication_policy_separator and not _keeps_names(flow):
            yield at(stated)


def group_sync_unsaid(subject: Subject) -> Iterator[Spot]:
    for flow in subject.flows:
        if flow.group.emit_checkpoints_enabled and subject.stated("sync.group.offsets.enabled", flow) is None:
            yield at(subject.flow_spot(flow), flow.name, "sync.group.offsets.enabled")


def one_replica(subject: Subject) -> Iterator[Spot]:
    for flow in subject.flows:
        stated = subject.stated("replication.factor", flow)
        if flow.replication_factor == 1 and stated is not None:
            yield at(stated)


def one_task(subject: Subject) -> Iterator[Spot]:
    for flow in subject.flows:
        if flow.copies and flow.tasks_max == 1:
            yield at(subject.stated("tasks.max", flow) or subject.flow_spot(flow), flow.name, "tasks.max")


def amazons_policy(subject: Subject) -> Iterator[Spot]:
    for flow in subject.flows:
        stated = subject.stated("replication.policy.class", flow)
        if flow.replication_policy_class == AMAZONS and stated is not None:
            yield at(stated)


def acls_and_operator(subject: Subject) -> Iterator[Spot]:
    if subject.reading.format != "strimzi":
        return
    for flow in subject.flows:
        if flow.copies and flow.topic_sync.sync_topic_acls_enabled:
            spot = subject.stated("sync.topic.acls.enabled", flow) or subject.flow_spot(flow)
            yield at(spot, flow.name, "sync.topic.acls.enabled")


def names_with_aliases(subject: Subject) -> Iterator[Spot]:
    """Yield flows whose consumers must read other topic names at the target."""
    for flow in subject.flows:
        if flow.group.sync_group_offsets_enabled and _is_default(flow) and len(subject.flows) == 1:
            yield at(subject.stated("sync.group.offsets.enabled", flow) or subject.flow_spot(flow), flow.name)


def _is_default(flow: FlowConfig) -> bool:
    try:
        return type(topic_rules(flow).policy) is DefaultReplicationPolicy
    except SparkMirrorError:
        return False


_ERROR, _WARNING, _INFO = LintSeverity.ERROR, LintSeverity.WARNING, LintSeverity.INFO


def _shared(name: str, severity: LintSeverity, kind: TroubleKind, fix: str) -> LintRule[Subject]:
    return LintRule(name=name, severity=severity, what=kind.value, effect=EFFECTS[kind], fix=fix, look=_troubles(kind))


FLOW_RULES: tuple[LintRule[Subject], ...] = (
    LintRule(
        name="wrong-pattern",
        severity=_ERROR,
        what="a pattern or class can't be used",
        effect="the run stops when it starts",
        fix="as the reason says; patterns are Java's regular expressions",
        look=wrong_pattern,
    ),
    LintRule(
        name="odd-pattern",
        severity=_WARNING,
        what="this pattern can hardly be meant so",
        effect="it matches other names than it seems to, or none; MirrorMaker 2 copies nothing for it without a word",
        fix="as the reason says: Java regular expressions, separated by commas, each for whole names",
        look=odd_pattern,
    ),
    LintRule(
        name="spark-refused",
        severity=_ERROR,
        what="is refused among the settings of Spark",
        effect="the run stops when it starts, with exit code 2",
        fix="as the reason says; lint does not see what is given by --spark only",
        look=spark_refused,
    ),
    LintRule(
        name="kerberos-here",
        severity=_WARNING,
        what="this machine can't sign in by Kerberos",
        effect="if this is where sparkmirror or Spark's executors run, nothing is copied",
        fix="as the reason says; elsewhere it doesn't matter",
        look=kerberos_here,
    ),
    _shared(
        "echo-loop",
        _ERROR,
        TroubleKind.ECHO_LOOP,
        "mirror one way only, or use DefaultReplicationPolicy in all of these flows, or give each topics of its own;"
        " where an alias holds the separator, write another separator",
    ),
    _shared(
        "turns",
        _ERROR,
        TroubleKind.TURNS,
        "write sparkmirror.turn = first for one flow and second for its opposite flow, with IdentityReplicationPolicy"
        " in both and without transforms",
    ),
    _shared(
        "fan-in",
        _ERROR,
        TroubleKind.FAN_IN,
        "list the topic in one flow only, or use DefaultReplicationPolicy in both, or mirror one of them to another"
        " cluster; existing copies stay",
    ),
    _shared("nothing-listed", _ERROR, TroubleKind.NOTHING_LISTED, "list topics that can be copied"),
    _shared("comes-back", _WARNING, TroubleKind.COMES_BACK, "as for echo-loop"),
    _shared("never-copied", _WARNING, TroubleKind.NEVER_COPIED, "take it out of topics, or out of topics.exclude"),
    _shared("may-fan-in", _INFO, TroubleKind.MAY_FAN_IN, "ask the clusters: lint --connect; or as for fan-in"),
    LintRule(
        name="same-brokers",
        severity=_ERROR,
        what="source and target name a common broker",
        effect="they are one cluster: with the default policy topics are copied next to themselves, else into "
        "themselves",
        fix="correct the brokers of one of them",
        look=same_brokers,
    ),
    LintRule(
        name="no-separator",
        severity=_WARNING,
        what="there is nothing between alias and topic",
        effect="a copy can't be told from a topic of its own, so loops are not seen",
        fix="write a separator, or use IdentityReplicationPolicy to keep names",
        look=no_separator,
    ),
    LintRule(
        name="group-sync-unsaid",
        severity=_WARNING,
        what="is not set, and by default groups' offsets are not set at the target",
        effect="checkpoints are written, but consumers that move begin at auto.offset.reset",
        fix="write sync.group.offsets.enabled = true, or false if applications ask for their offsets themselves",
        look=group_sync_unsaid,
    ),
    LintRule(
        name="one-replica",
        severity=_INFO,
        what="copies have one replica",
        effect="one lost broker loses them; with min.insync.replicas=2 at the target nothing can be written",
        fix="write -1 for the target's default, or 3",
        look=one_replica,
    ),
    LintRule(
        name="one-task",
        severity=_INFO,
        what="a flow has one task",
        effect="one core copies everything, which is enough for most flows",
        fix="leave it, or raise tasks.max if one core is not enough (docs/planning.md)",
        look=one_task,
    ),
    LintRule(
        name="amazons-policy",
        severity=_INFO,
        what="is Amazon's policy",
        effect="sparkmirror has it built in; in MirrorMaker 2 from Kafka 3.0 on it ends in a NullPointerException",
        fix=f"{IDENTITY_POLICY} does the same and more",
        look=amazons_policy,
    ),
    LintRule(
        name="acls-and-operator",
        severity=_INFO,
        what="ACLs are copied",
        effect="where Strimzi's User Operator manages the target's users, it takes them away again",
        fix="write sync.topic.acls.enabled: false there",
        look=acls_and_operator,
    ),
    LintRule(
        name="names-with-aliases",
        severity=_INFO,
        what="groups' offsets are set for topics with the source's alias before their names",
        effect="consumers that keep reading the old names at the target find nothing, and no offsets",
        fix="have them read both names, or use IdentityReplicationPolicy in both connectors",
        look=names_with_aliases,
    ),
)
