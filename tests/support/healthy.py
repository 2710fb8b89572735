"""Healthy mirrors of many kinds."""

from __future__ import annotations

import dataclasses

from tests.support.planted_flows import DAY_MS, Fault, copying, earlier, moved, parts, pumps
from tests.support.snapshot_samples import NOW_MS, flow, group, partition, topic

from sparkmirror.exact.durable.loss_kinds import LossOutcome
from sparkmirror.snapshot.snapshot import (
    ELSEWHERE,
    Cause,
    ClusterFigures,
    Duty,
    FlowState,
    GroupPartition,
    Histogram,
    LossCount,
    PartitionState,
    Role,
    Spread,
)


def healthy() -> list[tuple[str, Fault]]:
    """Mirrors that are well, with nothing to say of any."""
    big = flow(topics=(topic("orders", *parts(40)),), tasks_max=4, pumps=pumps(4, cpu_s=9.0), processes=3)
    backlog = copying(2_000)
    gap = copying(400)
    idle = flow(heartbeat_latency=Histogram((500,) + (0,) * 16, 1.0), topics=(topic("heartbeats"), topic()))
    beaten = dataclasses.replace(idle, heartbeat_latency=Histogram((400,) + (0,) * 16, 1.0))
    standby = flow(role=Role.STANDBY, state=FlowState.STANDING_BY, reason=ELSEWHERE, topics=(), groups=(), pumps=())
    little_was_fetched = moved(
        copying(400, source=ClusterFigures(alias="A", bytes=120_000), target=ClusterFigures(alias="B", bytes=100_000))
    )
    known = {
        "caught up": (flow(), moved(flow())),
        "caught up, nothing comes": (flow(), earlier(flow())),
        "many partitions": (big, moved(big)),
        "copying a small backlog": (backlog, moved(backlog)),
        "copying a large backlog within the promise, both samples far apart": (
            copying(20_000, count=12, pumps=pumps(2, in_flight=8_000, fetch_ms=540.0, cpu_s=20.0)),
            moved(copying(20_000, count=12, pumps=pumps(2, in_flight=8_000, fetch_ms=540.0, cpu_s=2.0))),
        ),
        "positions move through a gap of aborted records, and nothing is written": (
            gap,
            moved(gap, records=gap.records),
        ),
        "nothing moved for ten seconds": (gap, earlier(gap, 10_000)),
        "a transaction is open for a moment": (
            flow(lag=6, topics=(topic("orders", partition(end=1_006, lag=6, held_back=6, lag_s=30.0)),)),
            earlier(flow(lag=6, topics=(topic("orders", partition(end=1_006, lag=6, held_back=6, lag_s=1.0)),))),
        ),
        "throttled a little": (
            dataclasses.replace(backlog, target=ClusterFigures(alias="B", bytes=100_000, requests=90, throttle_s=9.0)),
            moved(backlog),
        ),
        "a duty's turn is due": (
            flow(duties=(Duty(duty="checkpoints", interval_s=60.0, succeeded_ms=NOW_MS - 100_000, took_s=0.1),)),
            moved(flow()),
        ),
        "a round failed once": (flow(epochs={"planned": 3, "failed": 1}), moved(flow(epochs={"planned": 3}))),
        "a partition waits for a broker a moment": (
            flow(topics=(topic("a", partition(state=PartitionState.WAITING, cause=Cause.UNREACHABLE, lag=5)),)),
            moved(flow(topics=(topic("a", partition()),))),
        ),
        "paused, and nothing to copy": (
            flow(topics=(topic("a", partition(state=PartitionState.PAUSED, cause=Cause.PAUSED)),), paused=("a",)),
            moved(flow()),
        ),
        "heartbeats come": (idle, earlier(beaten)),
        "markers in the ledger": (
            flow(
                losses=(
                    LossCount(
                        kind="fenced",
                        entries=3,
                        offsets=3,
                        newest_ms=NOW_MS,
                        words="3 markers",
                        outcome=LossOutcome.EXPECTED,
                    ),
                )
            ),
            moved(flow()),
        ),
        "clocks differ by half a second": (
            flow(topics=(topic("a", partition(latency_ms=Spread(-400.0, -500.0, 9.0, -100.0))),)),
            moved(flow()),
        ),
        "records of last month": (
            flow(topics=(topic("a", partition(latency_ms=Spread(30.0 * DAY_MS, 3.0, 31.0 * DAY_MS, 1e6))),)),
            moved(flow()),
        ),
        "no heartbeat for ten seconds": (idle, earlier(idle, 10_000)),
        "a duty of each second had two failures": (
            flow(
                duties=(
                    Duty(duty="offset syncs", interval_s=1.0, succeeded_ms=NOW_MS - 25_000, took_s=0.01, failures=2),
                )
            ),
            moved(flow()),
        ),
        "a group would read a few thousand again": (
            flow(
                groups=(
                    group(
                        partitions=(
                            GroupPartition(
                                topic="orders",
                                partition=0,
                                target_topic="A.orders",
                                source_offset=9_000,
                                source_lag=0,
                                target_offset=985,
                                target_lag=0,
                                skipped=0,
                                reread=8_015,
                            ),
                        )
                    ),
                )
            ),
            moved(flow()),
        ),
        "checkpoints are due every ten minutes, and a group's offsets were there at the last of them": (
            flow(
                groups=(group(synced_ms=NOW_MS - 590_000),),
                duties=(
                    Duty(duty="checkpoints", interval_s=600.0, succeeded_ms=NOW_MS - 590_000, took_s=0.1),
                    Duty(duty="group offsets", interval_s=60.0, succeeded_ms=NOW_MS - 5_000, took_s=0.1),
                ),
            ),
            moved(flow()),
        ),
        "a little lag grows": (copying(7_000, objective_s=None), moved(copying(6_000))),
        "a batch was fetched twice": (
            copying(
                400,
                source=ClusterFigures(alias="A", bytes=50_000_000, requests=100),
                target=ClusterFigures(alias="B", bytes=25_000_000, requests=90),
            ),
            little_was_fetched,
        ),
        "a few megabytes were fetched, and nothing written yet": (
            copying(
                400,
                source=ClusterFigures(alias="A", bytes=5_000_000, requests=100),
                target=ClusterFigures(alias="B", bytes=100_000, requests=90),
            ),
            little_was_fetched,
        ),
        "a certificate of a year": (
            flow(
                source=ClusterFigures(alias="A", bytes=120_000, requests=100, certificate_ends_ms=NOW_MS + 365 * DAY_MS)
            ),
            moved(flow()),
        ),
        "starting": (flow(state=FlowState.STARTING, pumps=(), lag=None, lag_s=None), flow()),
        "joining for a moment": (
            flow(role=Role.JOINING, state=FlowState.JOINING, leader="", state_since_ms=NOW_MS - 5_000),
            flow(),
        ),
        "standing by": (standby, earlier(standby)),
        "standing by since yesterday": (dataclasses.replace(standby, state_since_ms=NOW_MS - DAY_MS), earlier(standby)),
        "nothing to copy at all": (flow(topics=(), groups=(), tasks_max=4), flow(topics=())),
        "a new leader counts from nothing": (flow(leader="host-2:1", records=5), moved(flow(records=9_000))),
    }
    return [(words, Fault(words, "", now, before)) for words, (now, before) in known.items()]
