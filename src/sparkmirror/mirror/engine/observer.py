"""Builds the snapshot on demand.

Sources are the drivers' knowledge, the pumps' reports, and facts that are looked up now and then.
"""

from __future__ import annotations

import os
import platform
import socket
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.metadata import version
from itertools import islice
from typing import NamedTuple

from sparkmirror import __version__
from sparkmirror.config.flow_settings import flow_settings
from sparkmirror.mirror.engine.assignment import PartitionKey
from sparkmirror.mirror.engine.catching_up import PartitionLag
from sparkmirror.mirror.engine.flow_counts import FlowCounts
from sparkmirror.mirror.engine.flow_driver import FlowDriver
from sparkmirror.mirror.engine.flow_figures import FlowLag, RateMeter, StateWatch, flow_lag, flow_state
from sparkmirror.mirror.engine.flow_view import PartitionView, SourceEnd
from sparkmirror.mirror.engine.snapshot_parts import (
    duties_of,
    group_partitions,
    histogram,
    pumps_of,
    role_of,
    side_figures,
)
from sparkmirror.mirror.engine.still_look import StillLook
from sparkmirror.mirror.engine.surroundings import Surroundings
from sparkmirror.mirror.engine.transaction_watch import HeldBack
from sparkmirror.mirror.engine.waits import Waits
from sparkmirror.pump.messages.figures import PartitionFigures
from sparkmirror.pump.messages.orders import Receipt
from sparkmirror.pump.pump import resident_bytes
from sparkmirror.pump.tally import SAMPLE_S
from sparkmirror.snapshot.flow_state import SaidState
from sparkmirror.snapshot.group_standing import GroupState
from sparkmirror.snapshot.history import FlowHistory
from sparkmirror.snapshot.late_offsets import LateOffsets
from sparkmirror.snapshot.snapshot import (
    Cause,
    Duty,
    Flow,
    FlowState,
    Group,
    Partition,
    PartitionState,
    Process,
    Role,
    Snapshot,
    Spread,
    Topic,
)

FRESH_S = 1.0
"""Age in seconds from which a request makes a new snapshot."""

MOST_SHORTER = 20
"""Most copies named as keeping less than their sources."""

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
    """Observe one mirror; for any thread.

    Without requests there is no cost.
    """

    def __init__(
        self,
        drivers: Callable[[], Sequence[FlowDriver]],
        state: Callable[[FlowDriver], SaidState | None],
        surroundings: Surroundings,
    ) -> None:
        """Prepare the observer.

        `state` returns a flow's state if its partitions don't show it.
        """
        self._drivers = drivers
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
        """The process's live page address; empty without a page."""
        self.slots = self.tasks = 0
        """Spark tasks: `slots` can run at once, `tasks` do run."""

    def snapshot(self, *, newest: bool = False) -> Snapshot:
        """Return the present state, at most `FRESH_S` old; with `newest` it is made now."""
        with self._lock:
            if newest or self._newest is None or time.monotonic() - self._made_at >= FRESH_S:
                self._newest = self._make()
                self._made_at = time.monotonic()
            return self._newest

    def _make(self) -> Snapshot:
        flows = []
        for driver in list(self._drivers()):
            observer = self._flows.setdefault(driver.name, _FlowObserver())
            seen = observer.look(driver, self._state(driver), self._surroundings)
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
    """Observe a flow over time.

    A flow's new driver continues counting from its last driver's counts.
    """

    def __init__(self) -> None:
        self._driver: FlowDriver | None = None
        self._past = FlowCounts()
        """Earlier drivers' counts."""
        self._past_of: dict[PartitionKey, tuple[int, int]] = {}
        """Records and bytes copied by earlier drivers' pumps, by partition."""
        self._past_failures: Counter[str] = Counter()
        """Failed turns by duty, from earlier drivers."""
        self._state: FlowState | None = None
        self._state_since_ms = 0
        self._waits: Waits[PartitionKey] = Waits()
        self._starts: dict[PartitionKey, int] = {}
        """Source log starts, as last read."""
        self._rows: dict[PartitionKey, _Row] = {}
        """Each partition's newest row: a partition that stands still is made only once."""
        self._made: dict[str, Topic] = {}
        self._synced_ms: dict[str, int] = {}
        self._looks: StillLook[_Look] = StillLook()
        self._states = StateWatch()
        self._rates = RateMeter()

    def look(self, driver: FlowDriver, said: SaidState | None, surroundings: Surroundings) -> Flow:
        now, now_ms = time.monotonic(), int(time.time() * 1000)
        if driver is not self._driver:
            if self._driver is not None:
                self._count_on_from(self._driver)
            self._driver = driver
            self._rows.clear()
            self._made.clear()
            self._states = StateWatch()
        counts = self._past.plus(FlowCounts.of(driver.view))
        topics, shown, sums = self._looks.at(driver, lambda: self._look(driver, now_ms / 1000))
        state, why = said or flow_state(driver, shown)
        if state is not self._state:
            self._state, self._state_since_ms = state, now_ms
        lag = sums.lag if driver.topics.synced else None
        rates = self._rates.read(counts.records, counts.bytes, now)
        live = driver.view.live
        latencies = [report.latency_ms for report in live if report.latency_ms is not None]
        waiting = next((report.waiting for report in live if report.waiting), "")
        lags = [partition.lag_s for topic in topics for partition in topic.partitions if partition.lag]
        ends = surroundings.certificates.get(driver.name, (None, None))
        admin, away = driver.view.admin_connections, driver.view.away
        brokers = driver.view.brokers
        forecast = driver.view.forecast
        leader = driver.reports.heard.leader
        flow = driver.flow
        return Flow(
            flow=driver.name,
            source=side_figures(flow.source, counts.totals.source, admin[0], ends[0], away[0], brokers[0]),
            target=side_figures(flow.target, counts.totals.target, admin[1], ends[1], away[1], brokers[1]),
            state=state,
            role=role_of(driver),
            at_ms=now_ms,
            state_since_ms=self._state_since_ms,
            reason=why,
            waiting=waiting or driver.view.silence(flow.source.alias, now),
            leader=f"{leader.host}:{leader.pid}" if leader is not None else "",
            leader_silent_ms=surroundings.silent_ms.get(driver.name),
            page=surroundings.pages.get(driver.name, ""),
            processes=surroundings.processes.get(driver.name),
            epoch=max((report.epoch for report in list(driver.view.pumps.values())), default=0),
            epochs=counts.rounds,
            records=counts.records,
            bytes=counts.bytes,
            records_per_s=rates.records_per_s,
            bytes_per_s=rates.bytes_per_s,
            lag=lag,
            lag_s=None if lag is None else max((lag for lag in lags if lag), default=0.0),
            eta_s=_eta_s(driver, state, sums.moving, rates.records_per_s),
            unknown=sums.unknown,
            latency=histogram(counts.totals.latencies),
            heartbeat_latency=histogram(counts.totals.heartbeats),
            recent_latency_ms=_most(latencies),
            topics=topics,
            groups=self._groups(driver),
            excluded_sinks=driver.groups.excluded_sinks[:MOST_SINKS],
            duties=self._duties(driver),
            losses=driver.reports.loss_watch.counts,
            loss_entries=driver.reports.loss_watch.rows,
            pumps=pumps_of(driver.view),
            retention_s=forecast.minutes * 60 if forecast is not None else None,
            retention_of=f"{forecast.topic}-{forecast.partition}" if forecast is not None else "",
            paused=tuple(driver.reports.heard.paused),
            bytes_per_s_cap=driver.reports.heard.bytes_per_second,
            backfill_per_s_cap=driver.reports.heard.backfill_bytes_per_second,
            objective_s=flow.objective_seconds or None,
            tasks_max=flow.tasks_max,
            unmatched=driver.topics.matches.unmatched + driver.groups.matches.unmatched,
            no_group=driver.groups.matches.nothing,
            weaker=driver.topics.weaknesses.lines,
            unsynced=driver.topics.unsynced,
            keeping_less=dict(islice(driver.shorter_copies.reasons.items(), MOST_SHORTER)),
            unsafe_topics=driver.unsafe_topics,
            settings=flow_settings(flow),
            differs=surroundings.differences.get(driver.name, ()),
        )

    def _count_on_from(self, driver: FlowDriver) -> None:
        """Keep a replaced driver's counts."""
        self._past = self._past.plus(FlowCounts.of(driver.view))
        for key, view in list(driver.view.partitions.items()):
            self._past_of[key] = self._count(key, view)
        for duty in duties_of(driver):
            self._past_failures[duty.duty] += duty.failures

    def _count(self, key: PartitionKey, view: PartitionView) -> tuple[int, int]:
        """Return a partition's records and bytes copied by all drivers."""
        (past_records, past_size), (records, size) = self._past_of.get(key, (0, 0)), view.counts.total
        return past_records + records, past_size + size

    def _duties(self, driver: FlowDriver) -> tuple[Duty, ...]:
        return tuple(
            replace(duty, failures=duty.failures + self._past_failures[duty.duty]) for duty in duties_of(driver)
        )

    # --- topics ---------------------------------------------------------------------------------

    def _look(self, driver: FlowDriver, now: float) -> tuple[_Look, bool]:
        """Look at all topics; they stand still if no partition lags or has moved lately."""
        topics = self._topics(driver, now)
        look = _Look(topics, self._states.look(driver.name, topics, time.monotonic()), flow_lag(topics))
        moving = any(row.seen.moves or row.seen.figures is not None for row in self._rows.values())
        return look, not moving and not any(row.lag != 0 for topic in topics for row in topic.partitions)

    def _topics(self, driver: FlowDriver, now: float) -> tuple[Topic, ...]:
        view, done = driver.view, driver.topics.done_topics
        tasks = {(key.topic, key.partition): task for key, task in driver.orders.tasks.items()}
        late: dict[str, list[LateOffsets]] = defaultdict(list)
        refused = driver.topics.newest.refused
        for each in done.late_offsets(view.source_ends, view.late):
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
        topics += [Topic(topic=name, target_topic="", waits=True) for name in driver.topics.waiting if name not in rows]
        copy_of = driver.topics.rules.remote_name
        topics += [Topic(topic=name, target_topic=copy_of(name), gone=True) for name in view.gone if name not in rows]
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
        """Return the oldest waiting record's age, in seconds.

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
                    # The mirror sets no offsets of such a group any more.
                    synced_ms=None if standing.state is GroupState.MOVED else self._synced_ms.get(name),
                    checkpoint_ms=took_s * 1000 if took_s is not None else None,
                    partitions=group_partitions(driver, name),
                    looked_at=name in groups.whereabouts or name not in watched,
                )
            )
        return tuple(result)


class _Look(NamedTuple):
    """A flow's topics, and what their partitions show together."""

    topics: tuple[Topic, ...]
    state: FlowState
    lag: FlowLag


class _PartitionPlace(NamedTuple):
    """Facts about a partition that its pump does not tell."""

    end: SourceEnd
    start: int
    leader: int
    task: int | None
    held_back: HeldBack | None


class _Seen(NamedTuple):
    """Facts behind a partition's row, except the time of its lag."""

    receipt: Receipt | None
    counted: int
    """Number of times the partition's counts grew."""
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


def _most(latencies: Sequence[tuple[float, float]]) -> tuple[float, float] | None:
    return (max(p50 for p50, _ in latencies), max(p99 for _, p99 in latencies)) if latencies else None


def _eta_s(driver: FlowDriver, state: FlowState, moving: int | None, records_per_s: float) -> float | None:
    lags = driver.topics.synced and state not in (FlowState.CAUGHT_UP, FlowState.HELD_UP)
    return moving / records_per_s if lags and moving and records_per_s > 0 else None


def _number(partition: Partition) -> int:
    return partition.partition
