"""Collection of the facts that decide about a topic, partition or group.

The facts come from the file's rules, both clusters and the mirror at work.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.exact.durable.acknowledgements import read_ledger
from sparkmirror.exact.durable.losses import Loss, losses_topic
from sparkmirror.kafka.cluster.acls import Acl, AclResource
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.groups import FetchedOffsets, Groups, ListedGroup
from sparkmirror.kafka.cluster.missing_rights import (
    AT_SOURCE,
    AT_TARGET,
    added_right,
    missing_rights,
    principal,
    topic_acls,
)
from sparkmirror.kafka.cluster.new_topics import NewTopicSpec
from sparkmirror.kafka.cluster.permissions import topic_operations
from sparkmirror.kafka.cluster.topic_descriptions import TopicDescription
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.kafka.wire.error_codes import NOT_AUTHORIZED
from sparkmirror.look.doctor.explain_group import explain_group
from sparkmirror.look.doctor.explain_names import group_answer, topic_answers
from sparkmirror.look.doctor.explain_topic import explain_topic
from sparkmirror.look.doctor.explanation import Explanation, GroupFacts, Running, TopicFacts, TopicSide
from sparkmirror.mirror.sync.checkpoints import is_looked_after
from sparkmirror.mirror.sync.flow_troubles import FlowTrouble, fatal_fan_in
from sparkmirror.mirror.sync.other_flows import OtherFlows, RefusedSecond, refusal_of_second
from sparkmirror.mirror.sync.topic_rules import TopicRules, group_filter, illegal, topic_rules
from sparkmirror.mirror.sync.turns import read_turns, turn_side
from sparkmirror.pump.messages.control import ControlState, control_topic
from sparkmirror.pump.messages.status_topic import status_topic
from sparkmirror.snapshot.status_topic import read_status

_CONNECT_S = 10.0
_ROLE = "sparkmirror-cli"

_Answer = TypeVar("_Answer")


@dataclass(slots=True)
class _Cluster:
    """A cluster, as far as the cluster answers."""

    admin: ClusterAdmin | None = None
    client: ClusterClient | None = None
    trouble: str = ""

    def ask(self, question: Callable[[ClusterAdmin, ClusterClient], _Answer]) -> _Answer | None:
        """Return the cluster's answer; `None` after an error.

        Keeps the first error. After an error the cluster gets no further question.
        """
        if self.admin is None or self.client is None or self.trouble:
            return None
        try:
            return question(self.admin, self.client)
        except (ClusterUnreachable, ConnectionError) as error:
            self.trouble = " ".join(str(error).split())
            return None


@dataclass(slots=True, kw_only=True)
class _Flow:
    """A flow, and the facts for all topics and groups."""

    config: FlowConfig
    rules: TopicRules
    source: _Cluster
    target: _Cluster
    running: Running = field(default_factory=Running)
    control: ControlState = field(default_factory=ControlState)
    remotes: Mapping[str, TopicDescription] = field(default_factory=dict)
    groups: Mapping[str, ListedGroup] = field(default_factory=dict)


def explanations(flow: FlowConfig, flows: Sequence[FlowConfig], name: str, stale_s: float) -> list[Explanation]:
    """Explain a topic, a partition as `TOPIC:NUMBER`, or a group.

    Explains the topic and the group if the source has both or neither. `flows` are all flows of the file. A cluster
    that does not answer is part of the explanation.
    """
    with contextlib.ExitStack() as stack:
        with ThreadPoolExecutor(2) as pool:
            source, target = pool.map(lambda cluster: _open(stack, flow, cluster), (flow.source, flow.target))
        seen = _Flow(config=flow, rules=topic_rules(flow), source=source, target=target)
        seen.remotes = target.ask(lambda admin, _: admin.topics()) or {}
        seen.groups = source.ask(lambda _, client: Groups(client).listed()) or {}
        seen.control = _control(seen)
        seen.running = _running(seen, stale_s)
        topic, partition = _named(name)
        at_source = source.ask(lambda admin, _: admin.topics([topic]).get(topic))
        is_group = name in seen.groups
        told = []
        if at_source is not None or not is_group:
            told.append(explain_topic(_topic_facts(seen, flows, topic, partition, at_source)))
        if at_source is None or is_group:
            told.append(explain_group(_group_facts(seen, name)))
        return told


def _named(name: str) -> tuple[str, int | None]:
    topic, colon, number = name.rpartition(":")
    return (topic, int(number)) if colon and number.isdecimal() else (name, None)


def _open(stack: contextlib.ExitStack, flow: FlowConfig, config: ClusterConfig) -> _Cluster:
    try:
        admin = ClusterAdmin.connect(config, f"{flow.name}|{_ROLE}", min(flow.admin_timeout_ms / 1000, _CONNECT_S))
    except ClusterUnreachable as error:
        return _Cluster(trouble=" ".join(str(error).split()))
    stack.enter_context(admin)
    client = ClusterClient(config, f"{flow.name}|{_ROLE}")
    stack.callback(client.close)
    return _Cluster(admin, client)


# --- the mirror at work -----------------------------------------------------------------------------


def _control(seen: _Flow) -> ControlState:
    state, topic = ControlState(), control_topic(seen.config.source.alias)
    if topic in seen.remotes:
        state.apply(seen.target.ask(lambda _, client: TopicLog(client, topic).read(0, 0)[0]) or ())
    return state


def _running(seen: _Flow, stale_s: float) -> Running:
    leader = seen.control.leader
    by = f"{leader.host}:{leader.pid}" if leader is not None and leader.host else ""
    if status_topic(seen.config.source.alias) not in seen.remotes:
        return Running(leader=by, stale_s=stale_s)
    status = seen.target.ask(lambda _, __: read_status(seen.config))
    if status is None:
        return Running(leader=by, stale_s=stale_s, trouble=seen.target.trouble)
    trouble = "its status was published by another version of sparkmirror" if status.left_out else ""
    return Running(
        flow=status.flow,
        age_s=status.age_s() or 0.0,
        stale_s=stale_s,
        leader=by,
        trouble="" if status.flow is not None else trouble,
    )


# --- topics -----------------------------------------------------------------------------------------


def _topic_facts(
    seen: _Flow, flows: Sequence[FlowConfig], topic: str, partition: int | None, there: TopicDescription | None
) -> TopicFacts:
    flow, rules = seen.config, seen.rules
    remote = rules.remote_name(topic)
    copy = seen.remotes.get(remote)
    wanted = rules.wanted(topic)
    done = seen.control.done.get(topic)
    return TopicFacts(
        flow=flow.name,
        topic=topic,
        partition=partition,
        names=topic_answers(flow, rules, topic),
        source=_side(seen.source, flow.source, topic, AT_SOURCE | {"DESCRIBE_CONFIGS"}, there),
        target=_side(seen.target, flow.target, remote, AT_TARGET, copy),
        remote=remote,
        fan_in=_fan_in(seen, flows, remote) if wanted else None,
        may_create=_may_create(seen, remote, there) if wanted and copy is None else None,
        refresh_s=flow.refresh_topics_interval_seconds if flow.refresh_topics_enabled else None,
        turn_of=_opposite_turn(seen, topic),
        done=done,
        recreated=done is not None and there is not None and not done.is_of(there.topic_id),
        paused_by=next((said for said, paused in seen.control.paused.items() if paused.fullmatch(topic)), ""),
        bytes_per_s_cap=seen.control.bytes_per_second,
        backfill_per_s_cap=seen.control.backfill_bytes_per_second,
        running=seen.running,
        losses=_losses(seen, topic, partition),
    )


def _opposite_turn(seen: _Flow, topic: str) -> str:
    """Return the opposite flow's name if it is that flow's turn."""
    flow = seen.config
    if not flow.turn:
        return ""
    turns = seen.source.ask(lambda _, __: read_turns(flow, [topic]))
    if turns is None or turns[topic].turn.side is turn_side(flow):
        return ""
    return f"{flow.target.alias}->{flow.source.alias}"


def _side(
    cluster: _Cluster, config: ClusterConfig, topic: str, needed: frozenset[str], there: TopicDescription | None
) -> TopicSide:
    operations = (cluster.ask(lambda _, client: topic_operations(client, [topic])) or {}).get(topic)

    def acls() -> set[Acl]:
        return cluster.ask(lambda _, client: topic_acls(client)) or set()

    partitions = len(there.partitions) if there is not None else None
    return TopicSide(
        alias=config.alias,
        trouble=cluster.trouble,
        partitions=partitions,
        told=operations is not None,
        lacks=missing_rights(config, topic, needed, operations, acls),
    )


def _fan_in(seen: _Flow, flows: Sequence[FlowConfig], remote: str) -> FlowTrouble | RefusedSecond | None:
    """Return the refusal of the start, else that of the topic duty."""
    flow = seen.config
    if trouble := fatal_fan_in(flow.name, remote, flows):
        return trouble
    if copy := seen.remotes.get(remote):
        copiers = seen.target.ask(lambda _, client: OtherFlows(client, flow).copiers({remote: copy}, seen.remotes))
        if first := (copiers or {}).get(remote):
            return refusal_of_second(flow.name, first, remote)
    return None


def _may_create(seen: _Flow, remote: str, there: TopicDescription | None) -> bool | None:
    if there is None or illegal(remote):
        return None
    spec = NewTopicSpec(remote, len(there.partitions), seen.rules.replication_factor)
    answers = seen.target.ask(lambda admin, _: admin.would_create([spec])) or {}
    return answers[remote][0] not in NOT_AUTHORIZED if remote in answers else None


def _losses(seen: _Flow, topic: str, partition: int | None) -> tuple[Loss, ...]:
    ledger = losses_topic(seen.config.source.alias)
    if ledger not in seen.remotes:
        return ()
    entries = seen.target.ask(lambda _, client: read_ledger(TopicLog(client, ledger))) or ()
    return tuple(
        entry.loss
        for entry in entries
        if entry.loss.source_topic == topic and partition in (None, entry.loss.partition) and entry.is_open
    )


# --- groups -----------------------------------------------------------------------------------------


def _group_facts(seen: _Flow, name: str) -> GroupFacts:
    flow, settings = seen.config, seen.config.group
    listed = seen.groups.get(name)
    committed = FetchedOffsets({}, {})
    if listed is not None:
        committed = seen.source.ask(lambda _, client: Groups(client).committed([name])) or committed
    topics = sorted({topic for topic, _ in committed.offsets.get(name, ())})
    return GroupFacts(
        flow=flow.name,
        group=name,
        filtered=group_answer(flow, group_filter(flow), name),
        checkpoints=settings.emit_checkpoints_enabled,
        sync=settings.sync_group_offsets_enabled,
        source=flow.source.alias,
        trouble=seen.source.trouble,
        there=listed is not None,
        refused=committed.refused.get(name, ""),
        grant=added_right(flow.source, principal(flow.source), AclResource.GROUP, name, "DESCRIBE"),
        type=listed.type if listed is not None else "",
        protocol=listed.protocol if listed is not None else "",
        looked_after=listed is not None and is_looked_after(listed, settings),
        topics=tuple(topics),
        copied=tuple(filter(seen.rules.accepts, topics)),
        refresh_s=settings.refresh_groups_interval_seconds if settings.refresh_groups_enabled else None,
        running=seen.running,
    )
