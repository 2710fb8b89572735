"""Maker of the snapshot.

Sources are the drivers' knowledge, the pumps' reports, and facts that are looked up now and then.
"""

from __future__ import annotations

import os
import platform
import socket
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import NamedTuple

from sparkmirror import __version__
from sparkmirror.cluster.tool_commands import tool_options
from sparkmirror.config import ClusterConfig
from sparkmirror.config.flow_settings import flow_settings
from sparkmirror.engine.assignment import PartitionKey
from sparkmirror.engine.catching_up import PartitionLag
from sparkmirror.engine.cluster_watch import Away, KnownBrokers
from sparkmirror.engine.flow_counts import FlowCounts
from sparkmirror.engine.flow_driver import FlowDriver
from sparkmirror.engine.flow_view import FlowView, PartitionView, SourceEnd
from sparkmirror.engine.history import FlowHistory
from sparkmirror.engine.late_offsets import LateOffsets
from sparkmirror.engine.progress import ProgressMeter
from sparkmirror.engine.snapshot import (
    BrokerLine,
    Cause,
    ClusterFigures,
    Duty,
    Flow,
    FlowState,
    Group,
    GroupPartition,
    Histogram,
    Partition,
    PartitionState,
    Process,
    Pump,
    Role,
    Snapshot,
    Spread,
    Topic,
)
from sparkmirror.engine.still_look import StillLook
from sparkmirror.engine.surroundings import Surroundings
from sparkmirror.engine.transaction_watch import HeldBack
from sparkmirror.engine.waits import Waits
from sparkmirror.messages.figures import Latencies, PartitionFigures, TrafficTotals
from sparkmirror.messages.orders import Receipt
from sparkmirror.pump.pump import resident_bytes
from sparkmirror.pump.tally import SAMPLE_S
from sparkmirror.sync.group_standing import GroupState
from sparkmirror.veil import VEIL

FRESH_S = 1.0
"""Age in seconds from which a request makes a new snapshot."""

MOST_SINKS = 20
"""Most groups of sink connectors named as excluded."""

UNKNOWN = -1
"""Offset that was not read yet, in receipts and in rows that are being made."""

MOVES_S = 2.5
"""Seconds without a report after which a partition counts as still."""

_STATES = {
    "running": PartitionState.RUNNING,
    "done": PartitionState.DONE,
    "parked": PartitionState.PARKED,
    "waiting": PartitionState.WAITING,
}


class Observer:
    """Observer of one mirror; for any thread.

    Without requests there is no cost.
    """

    def __init__(
        self,
        drivers: Callable[[], Sequence[FlowDriver]],
        meters: Mapping[str, ProgressMeter],
        state: Callable[[FlowDriver], str],
        surroundings: Surroundings,
    ) -> None:
        """Prepare the observer.

        `state` returns a flow's state if its figures don't show it, as `ProgressMeter.read` takes it.
        """
        self._drivers = drivers
        self._meters = meters
        self._state = state
        self._surroundings = surroundings
        self._began_ms = int(time.time() * 1000)
        self._lock = threading.Lock()
        self._newest: Snapshot | None = None
        self._made_at = float("-inf")
        self._flows: dict[str, _FlowObserver] = {}
        self.history = FlowHistory()
        self.mode = "run"
        self.page = ""
        """Address of this process's live page; empty: it has none."""
        self.slots = self.tasks = 0
        """Spark tasks: `slots` can run at once, `tasks` do run."""

    def snapshot(self) -> Snapshot:
        """Return the present state, at most `FRESH_S` old."""
        with self._lock:
            if self._newest is None or time.monotonic() - self._made_at >= FRESH_S:
                self._newest = self._make()
                self._made_at = time.monotonic()
            return self._newest

    def _make(self) -> Snapshot:
        flows = []
        for driver in list(self._drivers()):
            meter = self._meters.get(driver.name)
            if meter is None:  # the driver is being exchanged
                continue
            observer = self._flows.setdefault(driver.name, _FlowObserver())
            seen = observer.look(driver, meter, self._state(driver), self._surroundings)
            flows.append(replace(seen, page=self.page) if seen.role is Role.LEADER else seen)
        self.history.take(flows)
        jvm = self._surroundings.jvm
        process = Process(
            host=socket.gethostname(),
            pid=os.getpid(),
            version=__version__,
            started_ms=self._began_ms,
            spark_version=jvm.version,
            kafka_python_version=version("kafka-python"),
            python_version=platform.python_version(),
            mode=self.mode,
            slots=self.slots,
            tasks=self.tasks,
            cpu_s=time.process_time(),
            memory_bytes=resident_bytes(),
            jvm_memory_bytes=jvm.memory_bytes,
            jvm_threads=jvm.threads,
            jvm_gc_s=jvm.gc_s,
        )
        return Snapshot(process, int(time.time() * 1000), tuple(flows))


class _FlowObserver:
    """Observer of a flow over time.

    A new driver of the same flow goes on counting from the counts of the last driver.
    """

    def __init__(self) -> None:
        self._driver: FlowDriver | None = None
        self._past = FlowCounts()
        """Counts of earlier drivers."""
        self._past_of: dict[PartitionKey, tuple[int, int]] = {}
        """Records and bytes of each partition, copied by pumps of earlier drivers."""
        self._past_failures: Counter[str] = Counter()
        """Failed turns of each duty of earlier drivers."""
        self._state: FlowState | None = None
        self._state_since_ms = 0
        self._waits: Waits[PartitionKey] = Waits()
        self._starts: dict[PartitionKey, int] = {}
        """Starts of the source's logs, as last read."""
        self._rows: dict[PartitionKey, _Row] = {}
        """Newest row of each partition: a partition that stands still is made only once."""
        self._made: dict[str, Topic] = {}
        self._synced_ms: dict[str, int] = {}
        self._looks: StillLook[tuple[Topic, ...]] = StillLook()

    def look(self, driver: FlowDriver, meter: ProgressMeter, state: str, surroundings: Surroundings) -> Flow:
        now_ms = int(time.time() * 1000)
        if driver is not self._driver:
            if self._driver is not None:
                self._count_on_from(self._driver)
            self._driver = driver
            self._rows.clear()
            self._made.clear()
        progress = meter.read(state, FRESH_S / 2)
        counts = self._past.plus(FlowCounts.of(driver.view))
        words, _, why = progress.state.partition(": ")
        flow_state = FlowState(words)
        if flow_state is not self._state:
            self._state, self._state_since_ms = flow_state, now_ms
        topics = self._looks.at(driver, lambda: self._look(driver, now_ms / 1000))
        lags = [partition.lag_s for topic in topics for partition in topic.partitions if partition.lag]
        ends = surroundings.certificates.get(driver.name, (None, None))
        admin, away = driver.view.admin_connections, driver.view.away
        brokers = driver.view.brokers
        forecast = driver.view.forecast
        leader = driver.reports.heard.leader
        flow = driver.flow
        return Flow(
            flow=driver.name,
            source=_side(flow.source, counts.totals.source, admin[0], ends[0], away[0], brokers[0]),
            target=_side(flow.target, counts.totals.target, admin[1], ends[1], away[1], brokers[1]),
            state=flow_state,
            role=_role(driver),
            at_ms=now_ms,
            state_since_ms=self._state_since_ms,
            reason=why,
            waiting=progress.waiting,
            leader=f"{leader.host}:{leader.pid}" if leader is not None else "",
            leader_silent_ms=surroundings.silent_ms.get(driver.name),
            page=surroundings.pages.get(driver.name, ""),
            processes=surroundings.processes.get(driver.name),
            epoch=max((report.epoch for report in list(driver.view.pumps.values())), default=0),
            epochs=counts.rounds,
            records=counts.records,
            bytes=counts.bytes,
            records_per_s=progress.records_per_s,
            bytes_per_s=progress.bytes_per_s,
            lag=progress.lag,
            lag_s=None if progress.lag is None else max((lag for lag in lags if lag), default=0.0),
            eta_s=progress.eta_s,
            unknown=progress.unknown,
            latency=_histogram(counts.totals.latencies),
            heartbeat_latency=_histogram(counts.totals.heartbeats),
            recent_latency_ms=progress.latency_ms,
            topics=topics,
            groups=self._groups(driver),
            excluded_sinks=driver.groups.excluded_sinks[:MOST_SINKS],
            duties=self._duties(driver),
            losses=driver.reports.loss_watch.counts,
            loss_entries=driver.reports.loss_watch.rows,
            pumps=_pumps(driver.view),
            retention_s=forecast.minutes * 60 if forecast is not None else None,
            retention_of=f"{forecast.topic}-{forecast.partition}" if forecast is not None else "",
            paused=tuple(pattern.pattern for pattern in driver.reports.heard.paused),
            bytes_per_s_cap=driver.reports.heard.bytes_per_second,
            backfill_per_s_cap=driver.reports.heard.backfill_bytes_per_second,
            objective_s=flow.objective_seconds or None,
            tasks_max=flow.tasks_max,
            unmatched=driver.topics.matches.unmatched + driver.groups.matches.unmatched,
            no_group=driver.groups.matches.nothing,
            weaker=driver.topics.weaknesses.lines,
            unsynced=driver.topics.unsynced,
            unsafe_topics=driver.unsafe_topics,
            settings=flow_settings(flow),
            differs=surroundings.differences.get(driver.name, ()),
        )

    def _count_on_from(self, driver: FlowDriver) -> None:
        """Keep the counts of a replaced driver."""
        self._past = self._past.plus(FlowCounts.of(driver.view))
        for key, view in list(driver.view.partitions.items()):
            self._past_of[key] = self._count(key, view)
        for duty in _duties(driver):
            self._past_failures[duty.duty] += duty.failures

    def _count(self, key: PartitionKey, view: PartitionView) -> tuple[int, int]:
        """Return records and bytes copied of a partition by all drivers."""
        (past_records, past_size), (records, size) = self._past_of.get(key, (0, 0)), view.counts.total
        return past_records + records, past_size + size

    def _duties(self, driver: FlowDriver) -> tuple[Duty, ...]:
        return tuple(replace(duty, failures=duty.failures + self._past_failures[duty.duty]) for duty in _duties(driver))

    # --- topics ---------------------------------------------------------------------------------

    def _look(self, driver: FlowDriver, now: float) -> tuple[tuple[Topic, ...], bool]:
        """Look at all topics; they stand still if no partition lags or has moved lately."""
        topics = self._topics(driver, now)
        moving = any(row.seen.moves or row.seen.figures is not None for row in self._rows.values())
        return topics, not moving and not any(row.lag != 0 for topic in topics for row in topic.partitions)

    def _topics(self, driver: FlowDriver, now: float) -> tuple[Topic, ...]:
        view, done = driver.view, driver.topics.done_topics
        tasks = {(key.topic, key.partition): task for key, task in driver.orders.tasks.items()}
        late: dict[str, list[LateOffsets]] = defaultdict(list)
        refused = driver.topics.newest.refused
        for each in done.late_offsets(view.source_ends):
            late[each.topic].append(each)
        rows: dict[str, list[Partition]] = defaultdict(list)
        targets: dict[str, str] = {}
        views, starts, held_back = view.partitions, view.source_starts, view.held_back
        ends = view.known_ends(time.monotonic())
        seen = set()
        for key, (target, leader) in driver.partitions().items():
            targets[key.topic] = target
            seen.add(key)
            partition_view = views.get(key) or PartitionView()
            at = key.topic, key.partition
            start = starts.get(at)
            if start is not None:
                self._starts[key] = start
            place = _PartitionPlace(
                end=view.end_of(key, ends),
                start=start or 0,
                leader=leader,
                task=tasks.get(at),
                held_back=held_back.get(at),
            )
            rows[key.topic].append(self._partition(key, partition_view, place, now))
        for gone in self._rows.keys() - seen:
            del self._rows[gone]
            self._waits.forget(gone)
            self._starts.pop(gone, None)
        ended: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
        for key, partition_view in list(views.items()):
            if key not in seen:
                (records, size), (more_records, more_size) = ended[key.topic], self._count(key, partition_view)
                ended[key.topic] = records + more_records, size + more_size
        for name, partitions in rows.items():
            partitions.sort(key=_number)
            made = Topic(
                topic=name,
                target_topic=targets[name],
                partitions=tuple(partitions),
                refused=refused.get(name, ""),
                ended_records=ended[name][0],
                ended_bytes=ended[name][1],
            )
            made = _with_late(made, late[name])
            if self._made.get(name) != made:
                self._made[name] = made
        self._made = {name: self._made[name] for name in rows}
        topics = list(self._made.values())
        topics += [
            _with_late(
                Topic(
                    topic=name,
                    target_topic="",
                    released=True,
                    ended_records=ended[name][0],
                    ended_bytes=ended[name][1],
                ),
                late[name],
            )
            for name in done.released
            if name not in rows
        ]
        topics += [Topic(topic=name, target_topic="", gone=True) for name in view.gone if name not in rows]
        topics += [Topic(topic=name, target_topic="", refused=why) for name, why in refused.items() if name not in rows]
        return tuple(sorted(topics, key=lambda topic: topic.topic))

    def _partition(self, key: PartitionKey, view: PartitionView, place: _PartitionPlace, now: float) -> Partition:
        moves, fresh = now - view.seen_at < MOVES_S, now - view.seen_at < 2 * SAMPLE_S
        seen = _Seen(
            receipt=view.receipt,
            counted=view.counts.changes,
            figures=view.figures if fresh else None,
            place=place,
            moves=moves,
        )
        row = self._rows.get(key)
        if row is None or row.seen != seen or row.partition.lag:
            row = _Row(seen, self._make(key, view, seen, now))
            self._rows[key] = row
        return row.partition

    def _make(self, key: PartitionKey, view: PartitionView, seen: _Seen, now: float) -> Partition:
        (end, readable), start, leader, task, behind = seen.place
        figures, receipt, (records, size) = seen.figures, seen.receipt, self._count(key, view)
        if receipt is None:
            self._waits.forget(key)
            return Partition(
                partition=key.partition,
                state=PartitionState.UNKNOWN,
                end=end,
                records=records,
                bytes=size,
                task=task,
                leader=leader,
            )
        position = receipt.upstream if receipt.upstream > UNKNOWN else None
        lag = PartitionLag(key=key, position=position, end=end, parked=False, start=start).lag
        waiting = min(lag, max(end - readable, 0)) if lag and end is not None and readable is not None else 0
        rate = view.records_per_s if seen.moves else 0.0
        paused = receipt.cause is Cause.PAUSED
        state = PartitionState.PAUSED if paused else _STATES[receipt.state]
        cause, reason = receipt.cause, (f"halted ({receipt.halted}): " if receipt.halted else "") + receipt.reason
        held_back = behind if waiting and state is PartitionState.RUNNING else None
        if held_back is not None:
            offsets = "1 offset waits" if waiting == 1 else f"{waiting:,} offsets wait"
            state, cause = PartitionState.WAITING, Cause.OPEN_TRANSACTION
            reason = f"{offsets} for the end of {held_back.words}"
        return Partition(
            partition=key.partition,
            state=state,
            cause=cause,
            reason=reason,
            remedy=held_back.remedy if held_back is not None else "",
            position=position,
            end=end,
            start=self._starts.get(key),
            lag=lag,
            held_back=waiting,
            lag_s=self._lag_s(key, lag, end or 0, figures.oldest_ms if figures is not None else UNKNOWN, now),
            downstream=receipt.downstream if receipt.downstream > UNKNOWN else None,
            records=records,
            bytes=size,
            records_per_s=rate,
            bytes_per_s=view.bytes_per_s if seen.moves else 0.0,
            eta_s=lag / rate if lag and rate > 0 else None,
            latency_ms=Spread(*figures.latency_ms) if figures is not None and figures.latency_ms else None,
            age_ms=Spread(*figures.age_ms) if figures is not None and figures.age_ms else None,
            copied_ms=receipt.timestamp_ms if receipt.timestamp_ms >= 0 else None,
            task=task,
            leader=leader,
        )

    def _lag_s(self, key: PartitionKey, lag: int | None, end: int, oldest_ms: int, now: float) -> float | None:
        """Return the age of the oldest waiting record, in seconds.

        The age follows from the record's timestamp if the record was fetched; else from the moment when it was first
        seen to wait, which gives less.
        """
        if not lag:
            self._waits.forget(key)
            return None if lag is None else 0.0
        since = self._waits.since_s(key, end - lag, end, now)
        return max(now - (min(oldest_ms / 1000, since) if oldest_ms >= 0 else since), 0.0)

    # --- groups ---------------------------------------------------------------------------------

    def _groups(self, driver: FlowDriver) -> tuple[Group, ...]:
        groups, duties = driver.groups, driver.duties
        if duties is None:
            return ()
        took_s = duties.record("checkpoints").took_s
        newest, watched = dict(groups.newest), groups.watched
        for name in self._synced_ms.keys() - newest.keys():
            del self._synced_ms[name]
        result = []
        for name, standing in sorted(newest.items()):
            if standing.state is not GroupState.NOT_SYNCED and standing.synced_ms is not None:
                self._synced_ms[name] = standing.synced_ms
            result.append(
                Group(
                    group=name,
                    state=standing.state,
                    reason=standing.reason,
                    synced_ms=self._synced_ms.get(name),
                    checkpoint_ms=took_s * 1000 if took_s is not None else None,
                    partitions=_group_partitions(driver, name),
                    looked_at=name in groups.whereabouts or name not in watched,
                )
            )
        return tuple(result)


class _PartitionPlace(NamedTuple):
    """Facts about a partition that its pump does not tell."""

    end: SourceEnd
    start: int
    leader: int
    task: int | None
    held_back: HeldBack | None


class _Seen(NamedTuple):
    """Facts that a partition's row depends on, except the time that it lags."""

    receipt: Receipt | None
    counted: int
    """Number of times that the partition's counts grew."""
    figures: PartitionFigures | None
    place: _PartitionPlace
    moves: bool


class _Row(NamedTuple):
    seen: _Seen
    partition: Partition


def _with_late(topic: Topic, late: Sequence[LateOffsets]) -> Topic:
    return replace(
        topic,
        late_in={each.partition: each.missing for each in late if each.missing},
        late_copied_in={each.partition: each.copied for each in late if each.copied},
        recreated=any(each.recreated for each in late),
    )


def _number(partition: Partition) -> int:
    return partition.partition


def _group_partitions(driver: FlowDriver, group: str) -> tuple[GroupPartition, ...]:
    ends, views = driver.view.source_ends, driver.view.partitions
    partitions = []
    for (topic, partition), at in sorted(driver.groups.whereabouts.get(group, {}).items()):
        end = ends.get((topic, partition))
        receipt = views.get(PartitionKey(driver.name, topic, partition), PartitionView()).receipt
        copied = receipt.downstream if receipt is not None and receipt.downstream >= 0 else None
        partitions.append(
            GroupPartition(
                topic=topic,
                partition=partition,
                target_topic=at.remote[0],
                source_offset=at.source,
                source_lag=max(end - at.source, 0) if end is not None and not at.beyond_end else None,
                target_offset=at.target,
                target_lag=max(copied - at.target, 0) if copied is not None and at.target is not None else None,
                skipped=at.skipped,
                reread=at.reread,
                beyond_end=at.beyond_end,
            )
        )
    return tuple(partitions)


def _side(
    cluster: ClusterConfig,
    totals: TrafficTotals,
    connections: int,
    ends_ms: int | None,
    away: Away | None,
    brokers: KnownBrokers | None,
) -> ClusterFigures:
    return ClusterFigures(
        alias=cluster.alias,
        tools=VEIL.over(tool_options(cluster)),
        bytes=totals.bytes,
        requests=totals.requests,
        throttle_s=totals.throttle_ms / 1000,
        errors=totals.errors,
        admin_connections=connections,
        certificate_ends_ms=ends_ms,
        away=away.words if away is not None else "",
        away_since_ms=int(away.since_s * 1000) if away is not None else None,
        servers=",".join(cluster.bootstrap_servers),
        release=brokers.release if brokers is not None else "",
        brokers_up=brokers.up if brokers is not None else None,
        brokers_known=brokers.known if brokers is not None else None,
    )


def _role(driver: FlowDriver) -> Role:
    if driver.held():
        return Role.LEADER
    return Role.STANDBY if driver.leadership.elsewhere else Role.JOINING


def _histogram(latencies: Latencies) -> Histogram:
    return Histogram(latencies.counts, latencies.sum_ms / 1000)


def _duties(driver: FlowDriver) -> tuple[Duty, ...]:
    if driver.duties is None:
        return ()
    failing = driver.duties.failing
    duties = []
    for schedule in driver.duties.schedules:
        record = driver.duties.record(schedule.name)
        duties.append(
            Duty(
                duty=schedule.name,
                interval_s=schedule.interval_s,
                succeeded_ms=record.succeeded_ms,
                took_s=record.took_s,
                failing=failing.get(schedule.name, ""),
                failures=record.failures,
                written=record.written,
            )
        )
    return tuple(duties)


def _pumps(view: FlowView) -> tuple[Pump, ...]:
    live = [report for report in list(view.pumps.values()) if not report.ended]
    return tuple(
        Pump(
            task=report.task,
            host=report.host,
            partitions=report.partitions,
            records=report.records,
            bytes=report.bytes,
            memory_bytes=report.memory_bytes,
            cpu_s=report.cpu_s,
            in_flight=report.in_flight,
            fetch_ms=report.fetch_ms,
            connections=report.connections,
            lines=tuple(BrokerLine(**line.model_dump()) for line in report.lines),
            at_ms=int(view.heard_at[report.pump] * 1000),
        )
        for report in sorted(live, key=lambda report: report.task)
    )
