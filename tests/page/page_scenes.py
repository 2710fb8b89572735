"""A server of the page whose snapshots a test decides, and scenes to show."""

from __future__ import annotations

import dataclasses
import random
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from fastapi import FastAPI
from tests.support.snapshot_samples import (
    NOW_MS,
    duty,
    flow,
    group,
    level_group,
    partition,
    place,
    pump,
    snapshot,
    topic,
)

from sparkmirror.clock import utc
from sparkmirror.exact.durable.loss_kinds import LossOutcome
from sparkmirror.look.page.router import page_router
from sparkmirror.snapshot.group_standing import GroupState
from sparkmirror.snapshot.history import STEP_S, FlowHistory
from sparkmirror.snapshot.snapshot import (
    Cause,
    ClusterFigures,
    Flow,
    FlowState,
    Group,
    LossCount,
    LossRow,
    Partition,
    PartitionState,
    Role,
    Snapshot,
    Topic,
)
from sparkmirror.web.listener import Listener, listening, serving

_SINCE = re.compile(r"since \S+Z")


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

    def side(one: ClusterFigures) -> ClusterFigures:
        away_ms = one.away_since_ms + by if one.away_since_ms is not None else None
        away = one.away if away_ms is None else _SINCE.sub(f"since {utc(away_ms / 1000)}", one.away)
        ends_ms = one.certificate_ends_ms + by if one.certificate_ends_ms is not None else None
        return dataclasses.replace(one, away=away, away_since_ms=away_ms, certificate_ends_ms=ends_ms)

    def later(one: Flow) -> Flow:
        topics = one.topics
        if one.state is FlowState.UNREACHABLE:
            topics = tuple(
                dataclasses.replace(
                    each,
                    partitions=tuple(
                        dataclasses.replace(row, copied_ms=(row.copied_ms or 0) + by) for row in each.partitions
                    ),
                )
                for each in topics
            )
        return dataclasses.replace(
            one,
            at_ms=one.at_ms + by,
            topics=topics,
            losses=tuple(dataclasses.replace(each, newest_ms=each.newest_ms + by) for each in one.losses),
            state_since_ms=one.state_since_ms + by,
            source=side(one.source),
            target=side(one.target),
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
def staged(stage: Stage, *, acts: bool = True, port: int = 0, history: FlowHistory | None = None) -> Iterator[str]:
    """Serve the page; its address."""
    app = FastAPI()
    app.include_router(page_router(stage, stage if acts else None, history=history))
    with listening(Listener("http", "127.0.0.1", port), "test") as bound, serving(app, bound, None):
        yield f"http://127.0.0.1:{bound.getsockname()[1]}/"


def some_past(hours: float, *flows: Flow) -> FlowHistory:
    """A past of these flows up to now: backlogs come and go, and ten minutes of it are an outage."""
    history, chance, now_ms = FlowHistory(), random.Random(7), int(time.time() * 1000)
    steps = int(hours * 3600 / STEP_S)
    lag_s = 0.3
    for step in range(steps):
        lag_s = max(0.2, lag_s + chance.uniform(-14.0, 13.0)) if step % 160 > 60 else 0.3
        away = steps - 100 < step < steps - 80
        leads = [
            dataclasses.replace(
                each,
                at_ms=now_ms - (steps - step) * STEP_S * 1000,
                state=FlowState.UNREACHABLE if away else FlowState.COPYING if lag_s > 1 else FlowState.CAUGHT_UP,
                role=Role.LEADER,
                lag=None if away else int(lag_s * 900),
                lag_s=None if away else lag_s,
                unknown=0,
                topics=(),
                records_per_s=0.0 if away else 900.0 + chance.uniform(-80.0, 80.0),
            )
            for each in flows
        ]
        history.take(leads)
    return history


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
            place(
                target_topic="east.orders",
                source_offset=5_000,
                source_lag=12,
                target_offset=4_990,
                target_lag=14,
                skipped=skipped,
                reread=reread,
            ),
            place(
                partition=1,
                target_topic="east.orders",
                source_offset=7_000,
                source_lag=0,
                target_offset=7_000,
                target_lag=0,
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
        source=ClusterFigures(
            alias="east",
            bytes=812_000_000_000,
            requests=4_100_000,
            throttle_s=12.4,
            errors=3,
            servers="kafka-1.east:9092,kafka-2.east:9092",
            release="3.9",
            brokers_up=5,
            brokers_known=6,
        ),
        target=ClusterFigures(
            alias="west",
            bytes=809_000_000_000,
            requests=3_900_000,
            throttle_s=411.0,
            errors=1,
            servers="kafka-1.west:9092,kafka-2.west:9092",
            release="4.1",
            brokers_up=6,
            brokers_known=6,
        ),
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
            duty("topic settings", 200_000, interval_s=600.0, took_s=1.2),
            duty(
                "ACLs",
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
            pump(
                task,
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


def scenes() -> dict[str, tuple[Flow, ...]]:
    """States that people meet at night, one or two flows each."""
    minute = 60_000
    brokers: dict[str, Any] = {
        "servers": "kafka-1:9092,kafka-2:9092",
        "release": "3.9",
        "brokers_up": 3,
        "brokers_known": 3,
    }
    east, west = ClusterFigures(alias="east", **brokers), ClusterFigures(alias="west", **brokers)
    sides: dict[str, Any] = {"flow": "east->west", "source": east, "target": west}
    unknown = topic(
        "orders", *(partition(number, state=PartitionState.UNKNOWN, lag=None, lag_s=None) for number in (0, 1))
    )
    started = flow(
        **sides,
        state=FlowState.STARTING,
        state_since_ms=NOW_MS - 9_000,
        lag=None,
        lag_s=None,
        unknown=2,
        topics=(unknown,),
        groups=(),
        pumps=(),
    )
    moving = [
        topic(
            name,
            *(
                partition(number, lag=lag, lag_s=lag / 300, records_per_s=900.0, bytes_per_s=455_000.0, eta_s=lag / 900)
                for number in range(3)
            ),
        )
        for name, lag in (("orders", 40_000), ("payments", 12), ("stores", 0))
    ]
    behind = flow(
        **sides,
        state=FlowState.COPYING,
        lag=120_036,
        lag_s=133.0,
        records_per_s=8_100.0,
        bytes_per_s=9 * 455_000.0,
        eta_s=44.0,
        topics=tuple(moving),
        recent_latency_ms=(31.0, 212.0),
        objective_s=30.0,
    )

    def held_up(cause: Cause, reason: str) -> Flow:
        """One partition of three is parked."""
        stopped = partition(3, state=PartitionState.PARKED, cause=cause, reason=reason, lag=18_221, lag_s=731.0)
        moves = partition(0, lag=3, lag_s=0.2, records_per_s=40.0, bytes_per_s=16_000.0)
        return flow(
            **sides,
            state=FlowState.HELD_UP,
            state_since_ms=NOW_MS - 12 * minute,
            lag=18_224,
            lag_s=731.0,
            records_per_s=40.0,
            bytes_per_s=16_000.0,
            eta_s=0.2,
            topics=(topic("orders"), topic("payments.card.authorized", moves, stopped)),
            groups=(level_group("billing", state=GroupState.CATCHING_UP), level_group("shop")),
        )

    parked = held_up(
        Cause.TOO_LARGE,
        "source offset 5019377: MESSAGE_TOO_LARGE (10), the batch of 1922004 bytes is larger than the target's "
        "max.message.bytes; topic A.payments.card.authorized has max.message.bytes=1048588; its topic at the source "
        "has max.message.bytes=2097164",
    )
    unchanged = held_up(
        Cause.TRANSFORM, "the record at source offset 5019377 can't be transformed by mask: its value is no JSON"
    )
    away = "cluster east has not answered since 2026-11-30T09:53:04Z: kafka-1:9092: connection refused"
    failing = "cluster east: no broker of kafka-1:9092,kafka-2:9092 answers"
    down = flow(
        **{**sides, "source": dataclasses.replace(east, away=away, away_since_ms=NOW_MS - 7 * minute, brokers_up=0)},
        state=FlowState.UNREACHABLE,
        state_since_ms=NOW_MS - 7 * minute,
        lag=None,
        lag_s=None,
        unknown=1,
        reason=away,
        waiting=failing,
        topics=(topic("orders", partition(lag=None, lag_s=None, copied_ms=NOW_MS - 7 * minute - 400)),),
        duties=tuple(
            duty(name, 8 * minute, failing=failing, failures=7)
            for name in ("checkpoints", "group watch", "share groups")
        ),
    )
    silent = away.replace("east", "west")
    waits = partition(
        state=PartitionState.WAITING,
        cause=Cause.UNREACHABLE,
        reason="the target's broker 2 can't be reached",
        lag=512,
        lag_s=5.4,
        copied_ms=NOW_MS - 5_400,
    )
    target_down = flow(
        **{**sides, "target": dataclasses.replace(west, away=silent, away_since_ms=NOW_MS - 5_000, brokers_up=0)},
        state=FlowState.UNREACHABLE,
        state_since_ms=NOW_MS - 5_000,
        lag=512,
        lag_s=5.4,
        reason=silent,
        topics=(topic("orders", waits),),
    )
    lost_lease = flow(
        **{**sides, "target": dataclasses.replace(west, brokers_up=0)},
        state=FlowState.STANDING_BY,
        role=Role.JOINING,
        state_since_ms=NOW_MS - 12_000,
        reason="east-mm2: no answer from kafka-1:9092, kafka-2:9092",
        leader="host-1:4711",
        lag=9_684,
        lag_s=158.0,
        processes=None,
    )
    standby = flow(
        flow="west->east",
        source=west,
        target=east,
        state=FlowState.STANDING_BY,
        role=Role.STANDBY,
        state_since_ms=NOW_MS - 90 * minute,
        reason="another process works on it",
        leader="mirror-2:311",
        page="http://mirror-2:9404/",
        lag=9_684,
        lag_s=158.0,
    )
    lost = flow(
        **sides,
        losses=(
            LossCount(
                kind="expired",
                entries=2,
                offsets=2_120,
                newest_ms=NOW_MS - 5 * minute,
                words="audit.log-2: offsets 881,002 to 883,118 had expired before they were copied",
            ),
        ),
        loss_entries=tuple(
            LossRow(
                number=number,
                kind="expired",
                outcome=LossOutcome.LOST,
                at_ms=int(time.time() * 1000) - ago * minute,
                topic="audit.log",
                partition=at,
                first=881_002,
                offsets=offsets,
                action="continued",
                words=f"audit.log-{at}: {offsets:,} offsets had expired at the source before they were copied",
            )
            for number, ago, at, offsets in (("3f2a9c01", 5, 2, 2_117), ("77ab0c3d", 61, 0, 3))
        ),
    )
    ready = flow(**sides, groups=(level_group("billing"), level_group("shop")), recent_latency_ms=(9.0, 31.0))
    return {
        "started": (started,), "lag": (behind,), "parked": (parked,), "source down": (down,),
        "transform": (unchanged,), "target down": (target_down,), "lease lost": (lost_lease, standby), "lost": (lost,),
        "ready": (ready,),
    }  # fmt: skip
