"""A server of the page whose snapshots a test decides, and scenes to show."""

from __future__ import annotations

import dataclasses
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from fastapi import FastAPI
from snapshot_samples import NOW_MS, flow, group, partition, snapshot, topic

from sparkmirror.durable.loss_kinds import LossOutcome
from sparkmirror.engine.snapshot import (
    Cause,
    ClusterFigures,
    Duty,
    Flow,
    FlowState,
    Group,
    GroupPartition,
    LossCount,
    LossRow,
    Partition,
    PartitionState,
    Pump,
    Role,
    Snapshot,
    Topic,
)
from sparkmirror.page.router import page_router
from sparkmirror.sync.group_standing import GroupState
from sparkmirror.web.listener import Listener, listening, serving


class Stage:
    """What the server's snapshots show, moved to the present; None: it fails."""

    def __init__(self, shown: Snapshot | None = None) -> None:
        self.shown: Snapshot | None = shown if shown is not None else snapshot()
        self.told: list[tuple[object, ...]] = []

    def __call__(self) -> Snapshot:
        if self.shown is None:
            raise RuntimeError("on purpose: nothing to show")
        return moved(self.shown, int(time.time() * 1000))

    def show(self, *flows: Flow) -> float:
        """From now on; returns when that was, by `time.monotonic`."""
        self.shown = snapshot(*flows)
        return time.monotonic()

    def pause(self, flow: str, topics: Sequence[str]) -> str:
        self.told.append(("pause", flow, *topics))
        return f"{flow}: paused {', '.join(topics)}"

    def resume(self, flow: str, topics: Sequence[str]) -> str:
        self.told.append(("resume", flow, *topics))
        return f"{flow}: resumed"

    def throttle(self, flow: str, bytes_per_s: float | None, backfill: float | None) -> str:
        self.told.append(("throttle", flow, bytes_per_s, backfill))
        return f"{flow}: throttled"


def moved(shown: Snapshot, at_ms: int) -> Snapshot:
    """The same at another time: whatever was a while ago is so still."""
    by = at_ms - shown.at_ms

    def later(one: Flow) -> Flow:
        return dataclasses.replace(
            one,
            at_ms=one.at_ms + by,
            state_since_ms=one.state_since_ms + by,
            groups=tuple(
                dataclasses.replace(each, synced_ms=each.synced_ms + by) if each.synced_ms is not None else each
                for each in one.groups
            ),
            duties=tuple(
                dataclasses.replace(each, succeeded_ms=each.succeeded_ms + by)
                if each.succeeded_ms is not None
                else each
                for each in one.duties
            ),
            pumps=tuple(dataclasses.replace(each, at_ms=each.at_ms + by) for each in one.pumps),
        )

    process = dataclasses.replace(shown.process, started_ms=shown.process.started_ms + by)
    return Snapshot(process, at_ms, tuple(later(one) for one in shown.flows))


@contextmanager
def staged(stage: Stage, *, acts: bool = True, port: int = 0) -> Iterator[str]:
    """Serve the page; its address."""
    app = FastAPI()
    app.include_router(page_router(stage, stage if acts else None))
    with listening(Listener("http", "127.0.0.1", port), "test") as bound, serving(app, bound, None):
        yield f"http://127.0.0.1:{bound.getsockname()[1]}/"


# --- scenes -------------------------------------------------------------------------------------


def many(topics: int, partitions: int, turn: int = 0) -> Flow:
    """A flow whose partitions have all moved with each turn."""
    chance = random.Random(turn)

    def row(number: int) -> Partition:
        lag = chance.randrange(100_000)
        return partition(number, lag=lag, lag_s=lag / 900, records_per_s=chance.uniform(100, 5_000), position=turn)

    some = tuple(topic(f"events.{name:05}", *(row(number) for number in range(partitions))) for name in range(topics))
    lag = sum(one.lag or 0 for each in some for one in each.partitions)
    return flow(state=FlowState.COPYING, topics=some, lag=lag, lag_s=111.0, records_per_s=2.2e6, eta_s=lag / 2.2e6)


NAMES = (
    "orders",
    "payments",
    "shipments.eu",
    "shipments.us",
    "clickstream.raw",
    "clickstream.sessions",
    "inventory",
    "customers",
    "invoices",
    "audit.log",
    "prices",
    "returns",
    "carts",
    "search.queries",
    "recommendations",
    "devices.telemetry",
    "emails.sent",
    "fraud.scores",
    "loyalty.points",
    "stores",
)


def shop(turn: int = 0) -> tuple[Flow, Flow, Flow]:
    """Three flows as people have them: one with a backlog and troubles, one that is well, one worked on elsewhere."""
    chance = random.Random(turn)
    topics = []
    for index, name in enumerate(NAMES):
        busy = index in (4, 5, 15)
        rows = []
        for number in range(24 if busy else 6):
            lag = (
                int(900_000 * (1 - turn / 160) * (1 + chance.uniform(-0.02, 0.02)))
                if busy
                else chance.choice((0, 0, 0, 12))
            )
            per_s = chance.uniform(18_000, 21_000) if busy else chance.uniform(10, 400)
            rows.append(
                partition(
                    number,
                    lag=lag,
                    lag_s=lag / 4_000 if lag else 0.0,
                    records_per_s=per_s,
                    bytes_per_s=per_s * 410,
                    position=5_000_000 + 20_000 * turn,
                    end=5_000_000 + 20_000 * turn + lag,
                    downstream=4_999_990 + 20_000 * turn,
                    eta_s=lag / per_s if lag else None,
                    task=number % 4,
                    leader=number % 3 + 1,
                )
            )
        if name == "payments":
            why = "the target's max.message.bytes is 1,048,588, and a batch at offset 5,019,377 has 1,922,004 bytes"
            rows[3] = dataclasses.replace(
                rows[3],
                state=PartitionState.PARKED,
                cause=Cause.TOO_LARGE,
                reason=why,
                lag=18_221,
                lag_s=731.0,
                records_per_s=0.0,
                bytes_per_s=0.0,
                eta_s=None,
            )
        if name == "returns":
            rows = [
                dataclasses.replace(
                    one,
                    state=PartitionState.PAUSED,
                    cause=Cause.PAUSED,
                    reason="paused",
                    lag=4_100,
                    lag_s=1900.0,
                    records_per_s=0.0,
                    bytes_per_s=0.0,
                )
                for one in rows
            ]
        topics.append(topic(name, *rows))
    topics.append(Topic(topic="legacy.export", target_topic="", refused="not authorized to read it at east (error 29)"))
    rows_of_all = [one for each in topics for one in each.partitions]
    lag = sum(one.lag or 0 for one in rows_of_all)
    per_s = sum(one.records_per_s for one in rows_of_all)

    def standing(
        name: str,
        reread: int | None,
        state: GroupState = GroupState.SYNCED,
        reason: str = "",
        skipped: int | None = 0,
    ) -> Group:
        at = (
            GroupPartition(
                topic="orders",
                partition=0,
                target_topic="east.orders",
                source_offset=5_000,
                source_lag=12,
                target_offset=4_990,
                target_lag=14,
                skipped=skipped,
                reread=reread,
            ),
            GroupPartition(
                topic="orders",
                partition=1,
                target_topic="east.orders",
                source_offset=7_000,
                source_lag=0,
                target_offset=7_000,
                target_lag=0,
                skipped=0,
                reread=0,
            ),
        )
        return group(name, state=state, reason=reason, partitions=at)

    groups = (
        standing("checkout", 0),
        standing("billing", 0),
        standing("warehouse", 12),
        standing("search-indexer", 0, skipped=4_990),
        standing("fraud-model", None, GroupState.CATCHING_UP, "payments-3: it has read what isn't copied"),
        standing("old-reports", None, GroupState.NOT_SYNCED, "it has live members at the target"),
    )
    east = flow(
        flow="east->west",
        source=ClusterFigures(alias="east", bytes=812_000_000_000, requests=4_100_000, throttle_s=12.4, errors=3),
        target=ClusterFigures(alias="west", bytes=809_000_000_000, requests=3_900_000, throttle_s=411.0, errors=1),
        state=FlowState.COPYING,
        state_since_ms=NOW_MS - 2_400_000,
        lag=lag,
        lag_s=731.0,
        records=1_942_000_000 + 1_400_000 * turn,
        bytes=809_000_000_000,
        records_per_s=per_s,
        bytes_per_s=per_s * 410,
        eta_s=lag / per_s,
        recent_latency_ms=(41.0, 380.0),
        topics=tuple(topics),
        groups=groups,
        paused=("returns",),
        bytes_per_s_cap=600e6,
        tasks_max=4,
        duties=(
            *flow().duties,
            Duty(duty="topic settings", interval_s=600.0, succeeded_ms=NOW_MS - 200_000, took_s=1.2),
            Duty(
                duty="ACLs",
                interval_s=600.0,
                succeeded_ms=None,
                took_s=None,
                failing="not authorized to describe ACLs at east (error 31)",
                failures=4,
            ),
        ),
        losses=(
            LossCount(
                kind="expired",
                entries=1,
                offsets=2_117,
                newest_ms=NOW_MS - 90_000_000,
                words="audit.log-2: offsets 881,002 to 883,118 had expired",
            ),
        ),
        loss_entries=(
            LossRow(
                number="3f2a9c01",
                kind="expired",
                outcome=LossOutcome.LOST,
                at_ms=NOW_MS - 90_000_000,
                topic="audit.log",
                partition=2,
                first=881_002,
                offsets=2_117,
                action="continued",
                words="audit.log-2: offsets 881,002 to 883,118 had expired",
            ),
            LossRow(
                number="77b0e4d2",
                kind="recreated",
                outcome=LossOutcome.MAY_BE_LOST,
                at_ms=NOW_MS - 190_000_000,
                topic="returns",
                partition=0,
                first=17,
                offsets=0,
                action="restarted",
                words="source topic returns was deleted and created again",
                acknowledged="2025-11-23 08:01:12 UTC by ann@ops-1: the shop was emptied on purpose",
            ),
        ),
        pumps=tuple(
            Pump(
                task=task,
                host=f"worker-{task + 1}",
                partitions=50,
                records=480_000_000,
                bytes=200_000_000_000,
                memory_bytes=190_000_000,
                cpu_s=5_210.0,
                in_flight=18_000,
                fetch_ms=14.0,
                at_ms=NOW_MS - 600,
            )
            for task in range(4)
        ),
        settings={
            "replication.policy.class": "DefaultReplicationPolicy",
            "isolation.level": "read_committed",
            "compression.type": "none",
            "sync.group.offsets.enabled": "true",
        },
    )
    back = flow(
        flow="west->east",
        source=ClusterFigures(alias="west", bytes=1_000_000_000, requests=9_000),
        target=ClusterFigures(alias="east", bytes=1_000_000_000, requests=8_000),
        state_since_ms=NOW_MS - 90_000_000,
        recent_latency_ms=(9.0, 31.0),
        records_per_s=212.0,
        bytes_per_s=88_000.0,
        records=81_000 + 212 * turn,
        state=FlowState.COPYING,
        topics=(topic("orders", partition(lag=31, lag_s=0.2, records_per_s=212.0)),),
        lag=31,
        lag_s=0.2,
        eta_s=0.15,
    )
    lab = flow(
        flow="lab->west",
        source=ClusterFigures(alias="lab"),
        target=ClusterFigures(alias="west"),
        state=FlowState.STANDING_BY,
        role=Role.STANDBY,
        lag=None,
        lag_s=None,
        topics=(),
        groups=(),
        duties=(),
        pumps=(),
        leader="mirror-2:311",
        state_since_ms=NOW_MS - 7_000_000,
    )
    return east, back, lab
