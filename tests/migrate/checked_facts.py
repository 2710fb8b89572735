"""Facts made up for tests of checks: a set of one topic and one group, ready to move from A to B."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tests.lint.test_cluster_rules import entry
from tests.migrate.planted import with_cluster, with_flow
from tests.support.snapshot_samples import flow as status_of

from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.kafka.cluster.append_check import AppendCheck, AppendVerdict, Trial
from sparkmirror.kafka.cluster.groups import ListedGroup
from sparkmirror.kafka.cluster.topic_descriptions import PartitionDescription, TopicDescription
from sparkmirror.lint.probe import FlowProbe, ProbedCluster
from sparkmirror.lint.rights import EVERYTHING
from sparkmirror.migrate.checks.facts import Facts
from sparkmirror.migrate.file import MigrationFile
from sparkmirror.migrate.observation import (
    ClusterSeen,
    FenceSeen,
    FlowSeen,
    GroupSeen,
    Observation,
    Side,
    TopicSeen,
    WordSeen,
)
from sparkmirror.migrate.verifications import TopicVerdict, VerifiedFlow

A, B = Side.SOURCE, Side.TARGET
HOLDS = AppendCheck((Trial("gap", AppendVerdict.HOLDS, "a gap is refused"),))
Change = Callable[[Facts], Facts]


def facts(**file: Any) -> Facts:
    """Nothing is wrong; only what no cluster tells is unknown. `file` are keys of the migration's file."""
    content = {
        "mirror": "mm2.properties",
        "type": "producers-first",
        "sets": [{"name": "shop", "topics": ["orders"], "groups": ["billing"]}],
        **file,
    }
    seen = observation()
    read = MigrationFile.model_validate(content)
    return Facts(
        file=read,
        sets=read.sets,
        seen=seen,
        earlier=seen,
        probes={A: probe("A", "B"), B: probe("B", "A")},
        status={A: status_of()},
        listed={side: {"billing": ListedGroup("billing", "consumer", "Empty", "classic")} for side in Side},
        group_rights={side: {"billing": EVERYTHING} for side in Side},
        super_users={A: False, B: False},
        verified={
            ("A->B", "orders"): VerifiedFlow(
                flow="A->B",
                began_ms=seen.at_ms,
                ranges=1,
                all_ranges=1,
                topics={"orders": TopicVerdict(words="equal", good=True)},
            )
        },
    )


def observation() -> Observation:
    """Producers write at A, a mirror copies to B under the same name, and another one waits for its turn."""
    fence = FenceSeen(writers=frozenset({"User:shop"}))
    offsets = {("orders", 0): 7}
    clusters = {
        side: ClusterSeen(
            alias=alias,
            bootstrap=f"{alias}:9092",
            cluster_id=f"id-{alias}",
            brokers=3,
            authorizer=True,
            topics={"orders": topic(fence=fence)},
            groups={"billing": GroupSeen(state="Empty", offsets=offsets)},
        )
        for side, alias in ((A, "A"), (B, "B"))
    }
    positions: Mapping[str, Mapping[tuple[str, int], int | None]] = {"billing": offsets}
    flows = {
        A: FlowSeen(
            name="A->B",
            at_work=True,
            standbys=1,
            topics={"orders": WordSeen(copy="orders", lag=0)},
            positions=positions,
        ),
        B: FlowSeen(name="B->A", at_work=True, standbys=1, topics={"orders": WordSeen(copy="orders")}),
    }
    return Observation(at_ms=1_764_000_000_000, clusters=clusters, flows=flows)


def topic(**changes: Any) -> TopicSeen:
    """A topic of one partition with ten records."""
    return replace(TopicSeen(name="orders", topic_id="1", ends={0: 10}, watermarks={0: 10}, steady=True), **changes)


def probe(source: str, target: str) -> FlowProbe:
    """Lint's survey of a flow, of whose clusters all is right."""
    here, there = (
        ProbedCluster(
            cluster=ClusterConfig(alias=alias, bootstrap_servers=(f"{alias}:9092",)),
            cluster_id=f"id-{alias}",
            brokers=3,
            operations=EVERYTHING,
            topics={"orders": described(1)},
            configs={"orders": {"max.message.bytes": entry("max.message.bytes", "1048588")}},
            topic_operations={"orders": EVERYTHING},
            skew_s=0.1,
            appends=HOLDS,
        )
        for alias in (source, target)
    )
    flow = FlowConfig(source=here.cluster, target=there.cluster)
    return FlowProbe(flow=flow, source=here, target=there, names={"orders": "orders"})


def described(partitions: int) -> TopicDescription:
    """A topic's description."""
    parts = tuple(
        PartitionDescription(partition=index, leader=1, leader_epoch=0, replicas=(1,), in_sync=(1,))
        for index in range(partitions)
    )
    return TopicDescription("orders", b"1" * 16, parts)


def changed_topic(side: Side, **changes: Any) -> Change:
    """Change the topic at one side."""

    def change(facts: Facts) -> Facts:
        cluster = facts.seen.clusters[side]
        there = {**cluster.topics, "orders": replace(cluster.topics["orders"], **changes)}
        return replace(facts, seen=with_cluster(facts.seen, side, replace(cluster, topics=there)))

    return change


def changed_group(side: Side, **changes: Any) -> Change:
    """Change the group at one side."""

    def change(facts: Facts) -> Facts:
        cluster = facts.seen.clusters[side]
        there = {"billing": replace(cluster.groups["billing"], **changes)}
        return replace(facts, seen=with_cluster(facts.seen, side, replace(cluster, groups=there)))

    return change


def changed_word(side: Side, **changes: Any) -> Change:
    """Change what the flow from one side says of the topic."""

    def change(facts: Facts) -> Facts:
        flow = facts.seen.flows[side]
        topics = {"orders": replace(flow.topics["orders"], **changes)}
        return replace(facts, seen=with_flow(facts.seen, side, replace(flow, topics=topics)))

    return change


def changed_flow(side: Side, **changes: Any) -> Change:
    """Change the flow from one side."""

    def change(facts: Facts) -> Facts:
        return replace(facts, seen=with_flow(facts.seen, side, replace(facts.seen.flows[side], **changes)))

    return change


def changed_probe(side: Side, change_it: Callable[[FlowProbe], object]) -> Change:
    """Change lint's survey of the flow from one side."""

    def change(facts: Facts) -> Facts:
        change_it(facts.probes[side])
        return facts

    return change


def both(*changes: Change) -> Change:
    """Make several changes."""

    def change(facts: Facts) -> Facts:
        for each in changes:
            facts = each(facts)
        return facts

    return change
