"""Access that a flow's source clients would lack at its target.

Access means ACLs for topics, groups and transactional ids, and SCRAM users. `sparkmirror acls` asks. Nothing is
changed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kafka.protocol.admin import DescribeUserScramCredentialsRequest

from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.kafka.cluster.acls import Acl, AclResource, SecurityDisabled, read_acls
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.groups import Groups
from sparkmirror.kafka.cluster.refusal_lines import refusal
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.mirror.sync.acl_rules import of_copies, of_groups
from sparkmirror.mirror.sync.migration_words import MigrationWords
from sparkmirror.mirror.sync.topic_rules import TopicRules, group_filter, topic_rules
from sparkmirror.pump.messages.control import control_topic

_MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
_ADVICE: Mapping[int, str] = {
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "grant sparkmirror's principal DESCRIBE on the cluster"
}


@dataclass(frozen=True, slots=True, order=True)
class ScramUser:
    """SCRAM user; since brokers store only a digest, no tool can copy the password."""

    name: str
    mechanism: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetAccess:
    """ACLs that a flow's target needs and has, and SCRAM users that the target lacks."""

    flow: FlowConfig
    wanted: frozenset[Acl]
    """The source's ACLs under the names at the target, word for word."""
    there: frozenset[Acl]
    """All the target's ACLs."""
    users: tuple[ScramUser, ...]
    """SCRAM users that the source has and the target lacks."""
    untold: str = ""
    """Reason why the users could not be compared; empty if compared."""

    @property
    def missing(self) -> list[Acl]:
        """Wanted ACLs that no ACL at the target covers."""
        return sorted(acl for acl in self.wanted if not any(granted.covers(acl) for granted in self.there))


def access(flow: FlowConfig) -> TargetAccess:
    """Ask both clusters for ACLs, topics, groups and SCRAM users.

    A migration's own denials are left out.

    Raises `ClusterUnreachable`, also if a cluster keeps no ACLs or denies reading ACLs, and `ConfigError`.
    """
    rules = topic_rules(flow)
    with contextlib.ExitStack() as stack:
        source, target = (
            stack.enter_context(contextlib.closing(ClusterClient(cluster, f"{flow.name}|sparkmirror-acls")))
            for cluster in (flow.source, flow.target)
        )
        words = MigrationWords(TopicLog(target, control_topic(flow.source.alias)))
        denials = words.denials()
        theirs, there = _acls(source), _acls(target)
        theirs -= denials | words.denials()  # the words are there before the denials, and go after them
        copies = _copies(flow.source, flow.name, rules)
        groups = sorted(Groups(source).listed())
        users, untold = _users(source, target)
    wanted = frozenset(_wanted(theirs, flow, rules, copies, groups))
    return TargetAccess(flow=flow, wanted=wanted, there=frozenset(there), users=users, untold=untold)


def _wanted(
    acls: set[Acl], flow: FlowConfig, rules: TopicRules, copies: dict[str, str], groups: list[str]
) -> Iterator[Acl]:
    filtered = group_filter(flow)
    for acl in acls:
        if acl.resource is AclResource.TOPIC:
            yield from of_copies(acl, rules, copies)
        elif acl.resource is AclResource.GROUP:
            yield from of_groups(acl, groups, filtered.should_replicate_group)
        elif acl.resource is AclResource.TRANSACTIONAL_ID:
            yield acl


def _acls(client: ClusterClient) -> set[Acl]:
    try:
        return read_acls(client, *AclResource)
    except SecurityDisabled:
        raise ClusterUnreachable(f"cluster {client.config.alias} has no authorizer, so it keeps no ACLs") from None


def _copies(cluster: ClusterConfig, name: str, rules: TopicRules) -> dict[str, str]:
    with ClusterAdmin.connect(cluster, f"{name}|sparkmirror-acls") as admin:
        return {topic: rules.remote_name(topic) for topic in admin.topics() if rules.wanted(topic)}


def _users(source: ClusterClient, target: ClusterClient) -> tuple[tuple[ScramUser, ...], str]:
    try:
        return tuple(sorted(scram_users(source) - scram_users(target))), ""
    except ConnectionError as error:  # brokers before Kafka 2.7 don't know the request
        return (), " ".join(str(error).split())


def scram_users(client: ClusterClient) -> set[ScramUser]:
    """Return the cluster's SCRAM users.

    Raises `ClusterUnreachable` if the principal may not ask.
    """
    answer = client.ask_any(lambda: DescribeUserScramCredentialsRequest(users=None))
    if answer.error_code:
        reason = refusal(answer.error_code, answer.error_message, _ADVICE)
        raise ClusterUnreachable(f"cluster {client.config.alias}: reading the SCRAM users failed: {reason}")
    return {
        ScramUser(described.user, _MECHANISMS.get(info.mechanism, f"mechanism {info.mechanism}"))
        for described in answer.results
        for info in described.credential_infos
    }
