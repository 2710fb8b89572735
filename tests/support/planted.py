"""Faults as a mirror would show them: each with its consequences, over a minute."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from tests.support.planted_flows import (
    DAY_MS,
    MINUTE_MS,
    Fault,
    copying,
    earlier,
    moved,
    parts,
    pumps,
    with_parked,
)
from tests.support.snapshot_samples import HEARTBEATS, NOW_MS, PROCESS, duty, flow, group, partition, place, topic

from sparkmirror.exact.durable.loss_kinds import Action, LossKind, outcome_of
from sparkmirror.snapshot.group_standing import GroupState
from sparkmirror.snapshot.snapshot import (
    ELSEWHERE,
    Cause,
    ClusterFigures,
    Flow,
    FlowState,
    Group,
    Histogram,
    LossCount,
    PartitionState,
    Process,
    Role,
    Spread,
    Topic,
    UnmatchedPattern,
)


def _fault(words: str, rule: str, now: Flow, before: Flow | None = None, process: Process = PROCESS) -> Fault:
    return Fault(words, rule, now, before if before is not None else moved(now), process)


def _losses(kind: str, action: Action, offsets: int = 20) -> tuple[LossCount, ...]:
    outcome = outcome_of(LossKind(kind), action, offsets)
    words = f"{offsets} offsets of orders-0"
    return (LossCount(kind=kind, outcome=outcome, entries=1, offsets=offsets, newest_ms=NOW_MS - 5_000, words=words),)


LONG_AGO_MS = NOW_MS - 900_000


def _faults() -> list[Fault]:
    still = copying(400)
    behind = copying(20_000, lag_s=900.0)
    syncing = (duty(), duty("group offsets", 6_000), HEARTBEATS)
    late_group = group(synced_ms=NOW_MS - 900_000)
    far_place = place(source_offset=90_000, target_lag=90_015, reread=89_015)
    far_group = group(partitions=(far_place,))
    set_back = place(source_offset=10, source_lag=990, target_offset=1_000, target_lag=0, skipped=990, reread=0)
    too_far = dataclasses.replace(
        set_back, source_offset=999_999, source_lag=None, skipped=None, reread=None, beyond_end=True
    )
    waits_for_lease: dict[str, Any] = {
        "lag": None,
        "lag_s": None,
        "topics": (),
        "groups": (),
        "duties": (),
        "pumps": (),
    }
    standby = {**waits_for_lease, "role": Role.STANDBY, "state": FlowState.STANDING_BY, "reason": ELSEWHERE}
    joining = {**waits_for_lease, "role": Role.JOINING, "state": FlowState.JOINING}
    unread = parts(3, state=PartitionState.UNKNOWN, position=None, lag=None, lag_s=None)
    no_figures: dict[str, Any] = {
        "lag": None,
        "lag_s": None,
        "records": 0,
        "topics": (topic("orders", *unread),),
        "unknown": 3,
    }
    down = "target broker 2: connection refused"
    refused = "cluster A has not answered since then: sign-in by SCRAM-SHA-512 as mirror is refused"
    silent = "cluster A has not answered since then: no broker answers"
    hot = tuple(
        partition(number, lag=lag, position=1_000, end=1_000 + lag, lag_s=900.0)
        for number, lag in enumerate((90_000, 100, 0, 50))
    )
    skewed = copying(20_000, pumps=pumps(3, in_flight=5_000, cpu_s=10.0))
    skewed = dataclasses.replace(
        skewed,
        pumps=tuple(
            dataclasses.replace(pump, bytes=size)
            for pump, size in zip(skewed.pumps, (900_000_000, 20_000_000, 30_000_000), strict=True)
        ),
    )
    hot_cpu = copying(20_000, pumps=pumps(2, in_flight=5_000, cpu_s=70.0))
    paused = parts(2, state=PartitionState.PAUSED, cause=Cause.PAUSED, reason="paused", lag=5_000, lag_s=8_000.0)
    forgotten: dict[str, Any] = {"state": FlowState.COPYING, "paused": ("orders",), "lag": 10_000, "lag_s": 8_000.0}
    heartbeats = flow(
        topics=(topic("heartbeats"), topic("orders")), heartbeat_latency=Histogram((500,) + (0,) * 16, 1.0)
    )
    waits = parts(4, state=PartitionState.WAITING, cause=Cause.UNREACHABLE, reason=down, lag=500, lag_s=90.0)
    leader_gone = partition(
        state=PartitionState.WAITING,
        cause=Cause.NO_LEADER,
        reason="A: orders-0 has no leader now",
        lag=None,
        lag_s=None,
    )
    leaderless = flow(
        state=FlowState.FINDING_OUT,
        unknown=1,
        topics=(topic("orders", leader_gone, partition(1)),),
    )
    ahead = Spread(-30_000.0, -31_000.0, 10.0, -29_000.0)
    absurd = Spread(1.7e12, 1.7e12, 1.7e12, 1.7e12)
    less = {"orders": "retention.ms is 8 h (7 d at the source)"}
    return [
        # --- copies that keep less ---
        _fault("a copy keeps less than its source", "copy-keeps-less", flow(keeping_less=less)),
        _fault(
            "a copy has lost records that the source still has",
            "copy-expired",
            flow(losses=_losses("copy-expired", "continued", 300), keeping_less=less),
        ),
        # --- the clusters ---
        _fault(
            "the target's brokers are down: all partitions parked, duties fail, groups late",
            "target-unreachable",
            with_parked(
                Cause.UNREACHABLE,
                down,
                4,
                duties=(duty("checkpoints", 900_000, failing="B: no broker answers", failures=9),),
                groups=(late_group,),
            ),
        ),
        _fault(
            "the source's name leads to another cluster: no connection is used, partitions wait",
            "wrong-cluster",
            dataclasses.replace(
                with_parked(Cause.UNREACHABLE, "A leads to another cluster: flow A->B is with cluster x", 4),
                state=FlowState.WRONG_CLUSTER,
                reason="A leads to another cluster: flow A->B is with cluster x, and 10.0.0.1:9092 is of cluster y",
            ),
        ),
        _fault(
            "the source's brokers are down: all partitions parked",
            "source-unreachable",
            with_parked(Cause.UNREACHABLE, "A: no broker of 10.0.0.1:9092 answers", 4),
        ),
        _fault(
            "the source is away: what was caught up is not known any more",
            "source-unreachable",
            flow(
                state=FlowState.UNREACHABLE,
                reason=silent,
                lag=None,
                lag_s=None,
                unknown=4,
                source=ClusterFigures(alias="A", away=silent, away_since_ms=NOW_MS - 9_000),
                topics=(topic("orders", *parts(4, lag=None, lag_s=None, end=None)),),
                duties=(duty("checkpoints", 900_000, failing="A: no broker answers", failures=9),),
            ),
            earlier(flow(topics=(topic("orders", *parts(4)),))),
        ),
        _fault(
            "the source refuses the sign-in: its password is another one now",
            "source-unreachable",
            flow(
                state=FlowState.UNREACHABLE,
                reason=refused,
                lag=None,
                lag_s=None,
                unknown=4,
                source=ClusterFigures(alias="A", away=refused, away_since_ms=NOW_MS - 9_000),
                topics=(topic("orders", *parts(4, lag=None, lag_s=None, end=None)),),
            ),
            earlier(flow(topics=(topic("orders", *parts(4)),))),
        ),
        _fault(
            "the target is away, and this process only stands by",
            "target-unreachable",
            flow(
                **standby,
                target=ClusterFigures(alias="B", away="cluster B has not answered", away_since_ms=NOW_MS - 9_000),
            ),
        ),
        _fault(
            "a transaction hangs at the source: all that comes after it waits",
            "open-transaction",
            flow(
                state=FlowState.HELD_UP,
                lag=500,
                lag_s=900.0,
                objective_s=60.0,
                topics=(
                    topic(
                        "orders",
                        partition(
                            state=PartitionState.WAITING,
                            cause=Cause.OPEN_TRANSACTION,
                            reason="500 offsets wait for the end of a transaction of producer 4000",
                            remedy="kafka-transactions.sh --bootstrap-server a:9092 abort",
                            end=1_500,
                            lag=500,
                            held_back=500,
                            lag_s=900.0,
                        ),
                        partition(1),
                    ),
                ),
                groups=(late_group,),
            ),
            earlier(flow(state=FlowState.HELD_UP, lag=500, groups=(late_group,))),
        ),
        _fault(
            "a slip in the pattern of topics: only heartbeats are copied",
            "nothing-to-copy",
            flow(
                state=FlowState.NOTHING,
                reason="no topic of A matches topics = ordrs (did you mean orders?)",
                topics=(topic("heartbeats"),),
                unmatched=(UnmatchedPattern("topics", "ordrs", nearest=("orders",)),),
            ),
        ),
        _fault(
            "a slip in one pattern of several",
            "pattern-unmatched",
            flow(unmatched=(UnmatchedPattern("topics", "paymnts", nearest=("payments",)),)),
        ),
        _fault(
            "a slip in the pattern of groups",
            "no-group",
            flow(
                groups=(),
                no_group="no consumer group of A matches groups = billng (did you mean billing?)",
                unmatched=(UnmatchedPattern("groups", "billng", nearest=("billing",)),),
            ),
        ),
        _fault(
            "a broker of the target has died: its partitions wait, others continue",
            "target-unreachable",
            flow(state=FlowState.COPYING, lag=2_000, lag_s=90.0, topics=(topic("orders", *waits),)),
            earlier(flow(state=FlowState.COPYING, lag=2_000, topics=(topic("orders", *waits),)), 10_000),
        ),
        _fault(
            "the source's certificate has ended: no client is let in",
            "certificate-ends",
            with_parked(
                Cause.UNREACHABLE,
                "source broker 1: TLS: certificate has expired",
                3,
                source=ClusterFigures(alias="A", certificate_ends_ms=NOW_MS - DAY_MS),
            ),
        ),
        _fault(
            "a certificate ends in five days",
            "certificate-ends",
            flow(target=ClusterFigures(alias="B", bytes=100_000, requests=90, certificate_ends_ms=NOW_MS + 5 * DAY_MS)),
        ),
        _fault(
            "a quota at the target is so low that nothing moves",
            "throttled-target",
            dataclasses.replace(behind, target=ClusterFigures(alias="B", bytes=100_000, requests=90, throttle_s=130.0)),
            earlier(behind),
        ),
        _fault(
            "a quota at the source slows the catch-up down",
            "throttled-source",
            dataclasses.replace(
                behind, objective_s=60.0, source=ClusterFigures(alias="A", bytes=120_000, requests=100, throttle_s=60.0)
            ),
            moved(behind),
        ),
        # --- the lease ---
        _fault(
            "a MirrorMaker 2 still works in the lease's group",
            "lease-refused",
            flow(
                **{**standby, "role": Role.JOINING, "reason": "a MirrorMaker 2 still runs in group A-mm2", "leader": ""}
            ),
        ),
        _fault(
            "two processes stand by, and none works",
            "nobody-works",
            flow(**joining, leader="", processes=2, state_since_ms=NOW_MS - 400_000),
        ),
        _fault(
            "a process joins for ten minutes",
            "long-joining",
            flow(**joining, state_since_ms=NOW_MS - 600_000, waiting="no answer"),
        ),
        _fault("no other process was started", "no-standby", flow(processes=1)),
        # --- pumps and Spark ---
        _fault(
            "executors die as soon as they begin",
            "epochs-failing",
            flow(**no_figures, state=FlowState.STARTING, state_since_ms=NOW_MS - 600_000, epochs={"failed": 5}),
            earlier(flow(**no_figures, state=FlowState.STARTING, epochs={"planned": 1, "failed": 1})),
        ),
        _fault(
            "Spark gives no executors",
            "long-starting",
            flow(**no_figures, state=FlowState.STARTING, state_since_ms=NOW_MS - 600_000, pumps=()),
            earlier(flow(**no_figures, state=FlowState.STARTING, pumps=())),
        ),
        _fault(
            "positions can't be read for long",
            "long-finding-out",
            flow(**no_figures, state=FlowState.FINDING_OUT, state_since_ms=NOW_MS - 600_000),
            earlier(flow(**no_figures, state=FlowState.FINDING_OUT)),
        ),
        _fault(
            "the executors' host hangs: no reports, no progress",
            "pumps-silent",
            dataclasses.replace(still, pumps=pumps(2, at_ms=NOW_MS - 90_000)),
            earlier(still),
        ),
        _fault("a pump's memory grows", "pump-memory", flow(pumps=pumps(1, memory_bytes=900_000_000))),
        _fault(
            "a pump hangs: positions stand still",
            "no-progress",
            still,
            earlier(still),
        ),
        _fault(
            "one of two partitions hangs",
            "partitions-stuck",
            flow(
                state=FlowState.COPYING,
                lag=800,
                lag_s=90.0,
                records=2_000,
                topics=(topic("orders", partition(0, lag=400), partition(1, lag=400, position=2_000)),),
            ),
            earlier(
                flow(
                    state=FlowState.COPYING,
                    lag=800,
                    topics=(topic("orders", partition(0, lag=400), partition(1, lag=400, position=1_000)),),
                )
            ),
        ),
        # --- how the work is spread; latency ---
        _fault(
            "Spark has two slots for eight tasks, and falls behind",
            "slots-short",
            copying(20_000, count=8, tasks_max=8, lag_s=900.0, objective_s=60.0),
            process=dataclasses.replace(PROCESS, slots=2),
        ),
        _fault(
            "one key gets most records",
            "hot-partition",
            copying(22_537, count=4, topics=(topic("orders", *hot),), lag_s=900.0, objective_s=60.0),
        ),
        _fault(
            "one task has all busy partitions",
            "task-skew",
            dataclasses.replace(skewed, lag_s=900.0, objective_s=60.0),
            moved(skewed, pumps=pumps(3, in_flight=5_000, at_ms=NOW_MS - MINUTE_MS)),
        ),
        _fault(
            "ten tasks for twenty idle partitions",
            "few-partitions-a-task",
            flow(topics=(topic("orders", *parts(20)),), tasks_max=10, pumps=pumps(10, cpu_s=2.0)),
            earlier(flow(topics=(topic("orders", *parts(20)),), tasks_max=10, pumps=pumps(10, cpu_s=1.0))),
            dataclasses.replace(PROCESS, slots=16),
        ),
        _fault("tasks.max 32 for one partition", "tasks-max-useless", flow(tasks_max=32)),
        _fault(
            "recompression takes all cores",
            "pump-cpu",
            dataclasses.replace(hot_cpu, lag_s=900.0, objective_s=60.0),
            moved(hot_cpu, pumps=pumps(2, cpu_s=5.0)),
        ),
        _fault(
            "the source's disks are slow",
            "slow-fetches",
            copying(20_000, lag_s=900.0, objective_s=60.0, pumps=pumps(2, in_flight=300, fetch_ms=2_500.0)),
        ),
        # --- bandwidth, lag ---
        _fault(
            "an operator left a throttle in place",
            "cap-too-low",
            dataclasses.replace(behind, objective_s=60.0, bytes_per_s_cap=1_000.0),
            moved(copying(10_000), 2_000),
        ),
        _fault(
            "most of what is fetched belongs to aborted transactions",
            "fetched-not-written",
            copying(
                400,
                source=ClusterFigures(alias="A", bytes=900_000_000, requests=100),
                target=ClusterFigures(alias="B", bytes=20_000_000, requests=90),
            ),
            moved(
                copying(
                    400,
                    source=ClusterFigures(alias="A", bytes=120_000),
                    target=ClusterFigures(alias="B", bytes=10_000_000),
                )
            ),
        ),
        _fault(
            "more is written than copied",
            "lag-growing",
            behind,
            moved(copying(10_000)),
        ),
        _fault("the promise is broken by a little", "lag-over-objective", copying(400, lag_s=61.0, objective_s=60.0)),
        _fault(
            "retention is an hour, the backlog a day",
            "retention-race",
            copying(20_000, lag_s=3_000.0, objective_s=60.0, retention_s=500.0, retention_of="orders-0"),
        ),
        _fault(
            "a paused topic will be deleted before it is copied",
            "paused",
            flow(**forgotten, topics=(topic("orders", *paused),), retention_s=900.0, retention_of="orders-1"),
        ),
        _fault(
            "a topic was paused two hours ago and forgotten",
            "paused",
            flow(**forgotten, topics=(topic("orders", *paused), topic("bills"))),
        ),
        # --- topics, parked partitions, losses ---
        _fault(
            "another flow has the topic's copy; its group can't move either",
            "topic-refused",
            flow(
                state=FlowState.HELD_UP,
                topics=(topic("orders"), Topic(topic="bills", target_topic="", refused="flow C->B copies into bills")),
                groups=(group("pay", state=GroupState.NOT_SYNCED, reason="bills is not copied"),),
            ),
        ),
        _fault(
            "writers said to have moved still write",
            "late-records",
            flow(state=FlowState.HELD_UP, topics=(topic(late_in={0: 7, 2: 5}),)),
        ),
        _fault(
            "a forgotten writer has created the topic again whose writers have moved",
            "late-records",
            flow(state=FlowState.HELD_UP, topics=(topic(late_in={0: 120}, recreated=True),)),
        ),
        _fault(
            "a writer was stopped a moment after its topic was said to be done",
            "late-records",
            flow(topics=(topic(late_copied_in={0: 11}),)),
        ),
        _fault("a source topic was deleted", "topic-deleted", flow(topics=(topic(), topic("bills", gone=True)))),
        _fault(
            "a record is larger than the target takes",
            "parked-too-large",
            with_parked(Cause.TOO_LARGE, "source offset 50: MESSAGE_SIZE_TOO_LARGE (20057 bytes)"),
        ),
        _fault(
            "records of 2001 and a target that takes none",
            "parked-timestamp",
            with_parked(Cause.TIMESTAMP, "source offset 0: INVALID_TIMESTAMP"),
        ),
        _fault(
            "the right to write was taken away",
            "parked-not-authorized",
            with_parked(
                Cause.NOT_AUTHORIZED,
                "TOPIC_AUTHORIZATION_FAILED",
                3,
                groups=(group(state=GroupState.NOT_SYNCED, reason="not copied"),),
            ),
        ),
        _fault(
            "partitions of the source have no leader, and the promise is broken",
            "parked-no-leader",
            with_parked(Cause.NO_LEADER, "A: orders-0 has no leader now", 2),
        ),
        _fault(
            "the only broker of a partition has died: it waits, others continue",
            "parked-no-leader",
            leaderless,
            earlier(leaderless, 10_000),
        ),
        _fault(
            "one replica in sync is left, two are wanted",
            "parked-not-enough-replicas",
            with_parked(Cause.NOT_ENOUGH_REPLICAS, "NOT_ENOUGH_REPLICAS", 3),
        ),
        _fault(
            "the source deleted records before they were copied",
            "parked-expired",
            with_parked(
                Cause.EXPIRED, "halted (expired): offsets 0 to 900 are gone", losses=_losses("expired", "halted", 900)
            ),
        ),
        _fault("a loss after which copying continued", "records-lost", flow(losses=_losses("expired", "continued"))),
        _fault(
            "the source took back what was copied",
            "records-taken-back",
            flow(losses=_losses("truncated", "continued")),
        ),
        _fault(
            "a source topic was created again, and the new one is copied",
            "records-may-be-lost",
            flow(losses=_losses("recreated", "restarted", 0)),
        ),
        _fault(
            "the target lost acknowledged records",
            "copy-healed",
            flow(losses=_losses("target-truncated", "healed")),
        ),
        _fault(
            "the copy was deleted, and the source has not all of it any more",
            "records-lost",
            flow(losses=_losses("target-recreated", "healed", 20)),
        ),
        _fault(
            "a producer has moved to the copy",
            "parked-foreign-writer",
            with_parked(
                Cause.FOREIGN, "halted (foreign-writer): 4 offsets", losses=_losses("foreign-writer", "continued", 4)
            ),
        ),
        _fault(
            "a producer writes into the copy", "foreign-writer", flow(losses=_losses("foreign-writer", "continued", 4))
        ),
        _fault(
            "a connector's offsets were set forward",
            "offsets-altered",
            flow(losses=_losses("altered", "continued", 300)),
        ),
        _fault(
            "a connector's offsets were set back",
            "records-twice",
            flow(losses=_losses("altered", "restarted", 300)),
        ),
        _fault(
            "a second process without the lease writes the same flow",
            "parked-rival",
            with_parked(Cause.RIVAL, "a rival had already written source offset 50", 3),
        ),
        _fault(
            "a source topic was deleted and created again",
            "parked-recreated",
            with_parked(
                Cause.RECREATED, "halted (recreated): orders is a new topic", losses=_losses("recreated", "halted", 0)
            ),
        ),
        _fault(
            "an unclean election at the source cut what was copied",
            "parked-truncated",
            with_parked(Cause.TRUNCATED, "halted (truncated): 9 offsets", losses=_losses("truncated", "halted", 9)),
        ),
        _fault(
            "an unclean election at the target, and nothing tells where to continue",
            "parked-target-truncated",
            with_parked(Cause.TARGET_TRUNCATED, "halted", losses=_losses("target-truncated", "halted", 9)),
        ),
        _fault(
            "an operator deleted the copy, and auto-creation is off",
            "parked-no-topic",
            with_parked(Cause.NO_TOPIC, "UNKNOWN_TOPIC_OR_PARTITION", 2, groups=(late_group,)),
        ),
        _fault(
            "a batch of the source is damaged on disk",
            "parked-unreadable",
            with_parked(Cause.UNREADABLE, "source: the fetched data can't be read: CRC"),
        ),
        _fault(
            "a transform wants JSON, and a record has none",
            "parked-transform",
            with_parked(Cause.TRANSFORM, "the record at source offset 9 can't be transformed by mask: it is no JSON"),
        ),
        _fault(
            "the target knows no zstd",
            "parked-refused",
            with_parked(Cause.REFUSED, "UNSUPPORTED_COMPRESSION_TYPE", 3),
        ),
        _fault(
            "the segments topic lost its newest claims",
            "parked-claims-lost",
            with_parked(Cause.CLAIMS_LOST, "target offset 67 is no copy of source offset 68"),
        ),
        _fault(
            "where MirrorMaker 2's copy ended can't be told",
            "parked-takeover",
            with_parked(Cause.TAKEOVER, "the copy's end is not in the source"),
        ),
        _fault(
            "a quota and a deletion at once: nothing moves, and the source will delete it",
            "throttled-target",
            dataclasses.replace(
                behind,
                target=ClusterFigures(alias="B", bytes=100_000, requests=90, throttle_s=130.0),
                retention_s=600.0,
                retention_of="orders-0",
            ),
            earlier(behind),
        ),
        _fault(
            "a throttle of next to nothing: no position moves, retention will win",
            "cap-too-low",
            dataclasses.replace(behind, bytes_per_s_cap=10.0, retention_s=600.0, retention_of="orders-0"),
            earlier(copying(19_000, lag_s=900.0)),
        ),
        _fault(
            "the disks of the source are slow, and retention will win",
            "slow-fetches",
            copying(
                20_000,
                pumps=pumps(2, in_flight=3_000, fetch_ms=2_500.0),
                retention_s=600.0,
                retention_of="orders-0",
            ),
        ),
        _fault(
            "no leader for two partitions, a group that can't be set, and no process stands by",
            "parked-no-leader",
            with_parked(
                Cause.NO_LEADER,
                "A: orders-0 has no leader now",
                2,
                processes=1,
                groups=(group(state=GroupState.NOT_SYNCED, reason="orders-0 is not copied"), late_group),
            ),
        ),
        _fault(
            "a batch is too large, its topic's oldest records will be deleted, and a certificate ends in five days",
            "parked-too-large",
            with_parked(
                Cause.TOO_LARGE,
                "MESSAGE_SIZE_TOO_LARGE",
                retention_s=600.0,
                retention_of="orders-0",
                processes=1,
                target=ClusterFigures(alias="B", bytes=100_000, requests=90, certificate_ends_ms=NOW_MS + 12 * DAY_MS),
            ),
        ),
        # --- groups, duties, clocks ---
        _fault(
            "checkpoints may not be written: groups are late",
            "duty-failing",
            flow(
                duties=(
                    duty("checkpoints", 900_000, failing="TOPIC_AUTHORIZATION_FAILED", failures=15),
                    duty("group offsets", 900_000, failing="no checkpoints", failures=15),
                ),
                groups=(late_group,),
            ),
        ),
        _fault(
            "the thread that sets groups' offsets hangs",
            "duty-late",
            flow(
                duties=(duty("group offsets", 900_000),),
                groups=(late_group,),
            ),
        ),
        _fault(
            "12,000 groups: a turn takes longer than its interval",
            "many-groups",
            flow(
                groups=tuple(
                    Group(group=f"g{n}", state=GroupState.SYNCED, synced_ms=NOW_MS - 900_000) for n in range(12_000)
                ),
                duties=(duty("group offsets", 900_000, took_s=400.0),),
            ),
        ),
        _fault(
            "topic properties take longer than their interval",
            "duty-slow",
            flow(duties=(duty("x", 0, interval_s=1.0, took_s=9.0),)),
        ),
        _fault(
            "a live member at the target: its group can't be set",
            "group-not-synced",
            flow(
                groups=(
                    group(),
                    group(
                        "bill",
                        state=GroupState.NOT_SYNCED,
                        reason="it has members at B (Stable)",
                        synced_ms=LONG_AGO_MS,
                    ),
                )
            ),
        ),
        _fault(
            "a group was set back at the source after its offsets had been set at the target",
            "group-would-skip",
            flow(groups=(group("other"), group(partitions=(set_back,))), duties=syncing),
        ),
        _fault(
            "a group was set to an offset that the source does not have",
            "group-beyond-end",
            flow(
                groups=(
                    group("other"),
                    group(
                        state=GroupState.BEYOND_END,
                        reason="orders-0: at 999999, and the source ends at 1000",
                        partitions=(too_far,),
                        synced_ms=NOW_MS - 900_000,
                    ),
                ),
                duties=syncing,
            ),
        ),
        _fault(
            "a group reads on faster than its offsets are set",
            "group-would-reread",
            flow(groups=(far_group,), duties=syncing),
        ),
        _fault(
            "a group was left out of the last turns",
            "group-sync-late",
            flow(groups=(group("other"), late_group), duties=syncing),
        ),
        _fault(
            "the mirror that beats into the source has stopped", "heartbeats-missing", heartbeats, earlier(heartbeats)
        ),
        _fault("a producer's clock is ahead", "clock-ahead", flow(topics=(topic("a", partition(latency_ms=ahead)),))),
        _fault(
            "a producer writes seconds for milliseconds",
            "timestamps-absurd",
            flow(topics=(topic("a", partition(latency_ms=absurd)),)),
        ),
        _fault(
            "brokers too old to tell of unclean elections",
            "exactness-weaker",
            flow(weaker=("brokers before 2.3 don't tell leader epochs",)),
        ),
        _fault(
            "the segments topic allows unclean elections",
            "own-topics-unsafe",
            flow(unsafe_topics=("topic mm2-sparkmirror-segments.A.internal may lose records",)),
        ),
        _fault(
            "a standby process was started on another file",
            "other-settings",
            flow(**standby, differs=("topics: `orders` there, `bills` here",)),
        ),
    ]


FAULTS: Sequence[Fault] = _faults()
