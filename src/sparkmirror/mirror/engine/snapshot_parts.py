"""Parts of a flow's snapshot that need no memory of the last look."""

from __future__ import annotations

from sparkmirror.config import ClusterConfig
from sparkmirror.kafka.cluster.tool_commands import tool_options
from sparkmirror.mirror.engine.assignment import PartitionKey
from sparkmirror.mirror.engine.cluster_watch import Away, KnownBrokers
from sparkmirror.mirror.engine.flow_driver import FlowDriver
from sparkmirror.mirror.engine.flow_view import FlowView, PartitionView
from sparkmirror.pump.messages.figures import Latencies, TrafficTotals
from sparkmirror.snapshot.snapshot import (
    BrokerLine,
    ClusterFigures,
    Duty,
    GroupPartition,
    Histogram,
    Pump,
    Role,
)
from sparkmirror.veil import VEIL


def group_partitions(driver: FlowDriver, group: str) -> tuple[GroupPartition, ...]:
    """Return a group's places in its partitions, on both sides."""
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


def side_figures(
    cluster: ClusterConfig,
    totals: TrafficTotals,
    connections: int,
    ends_ms: int | None,
    away: Away | None,
    brokers: KnownBrokers | None,
) -> ClusterFigures:
    """Return the figures for one side of a flow."""
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


def role_of(driver: FlowDriver) -> Role:
    """Return this process's part in a flow."""
    if driver.held():
        return Role.LEADER
    return Role.STANDBY if driver.leadership.elsewhere else Role.JOINING


def histogram(latencies: Latencies) -> Histogram:
    """Return latencies as a histogram."""
    return Histogram(latencies.counts, latencies.sum_ms / 1000)


def duties_of(driver: FlowDriver) -> tuple[Duty, ...]:
    """Return the flow's duties, with their last turns."""
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


def pumps_of(view: FlowView) -> tuple[Pump, ...]:
    """Return the pumps at work, by task."""
    return tuple(
        Pump(
            task=report.task,
            host=report.host,
            pid=report.pid,
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
        for report in view.live
    )
