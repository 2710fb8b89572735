"""Metrics of Kafka Connect and its clients, in the profiles' names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from sparkmirror.engine.flow_duties import CONNECT_OFFSETS
from sparkmirror.engine.snapshot import Flow, Process, Role, Snapshot
from sparkmirror.metrics.connector_states import PACKAGE, SOURCE, ConnectorMetrics, connectors
from sparkmirror.metrics.profile import JMX, Profile, clients, connector_name
from sparkmirror.metrics.series import Families, labels

NAN = float("nan")

BUFFER_BYTES = 33_554_432
"""Kafka's default of `buffer.memory`.

Dashboards compare a producer's free buffer with this value.
"""

_STATES = ("running", "paused", "failed", "unassigned", "destroyed", "restarting")


def add_connect(families: Families, snapshot: Snapshot, profiles: Collection[Profile]) -> None:
    """Add workers, connectors, tasks, clients and the process."""
    known = [(flow, connectors(flow)) for flow in snapshot.flows]
    for flow, flow_connectors in known:
        for connector in flow_connectors:
            _connector(families, flow, connector, snapshot.process, profiles)
        if flow.role is Role.LEADER:
            _clients(families, flow, profiles)
    _worker(families, snapshot, known, profiles)
    _process(families, snapshot.process)


def _connector(
    families: Families, flow: Flow, connector: ConnectorMetrics, process: Process, profiles: Collection[Profile]
) -> None:
    of = labels(connector=connector_name(flow, connector.kind, profiles))
    text = "1; the label tells it."
    if Profile.STRIMZI in profiles:
        for name, word in (("class", PACKAGE + connector.kind), ("type", "source"), ("version", process.version)):
            told = labels(**{f"connector_{name}": word})
            families.declare(f"kafka_connect_connector_connector_{name}", "gauge", text).add(f"{of},{told}", 1)
        families.declare("kafka_connect_connector_status", "gauge", text).add(
            f"{of},{labels(status=connector.status)}", 1
        )
    pumps = {pump.task: pump for pump in flow.pumps} if connector.kind == SOURCE else {}
    commit = next((duty.took_s for duty in flow.duties if duty.duty == CONNECT_OFFSETS), None)
    for task, status in connector.tasks.items():
        task_of = f"{of},{labels(task=task)}"
        told = f"{task_of},{labels(status=status)}"
        if Profile.AWS in profiles:
            families.declare("kafka_connect_connector_status", "gauge", text).add(told, 1)
        if Profile.STRIMZI in profiles:
            families.declare("kafka_connect_connector_task_status", "gauge", text).add(told, 1)
        values = [
            (
                "kafka_connect_task_error_total_record_failures",
                connector.stuck.get(task, 0),
                "Partitions at a bad record.",
            ),
        ]
        if connector.kind == SOURCE:
            # The reporter's dashboard asks for this metric under its JMX name, too
            active = pumps[task].in_flight if task in pumps else 0
            values.append(("kafka_connect_source_task_source_record_active_count", active, "Records not acknowledged."))
        for name, value, help_text in values:
            families.declare(name, "gauge", help_text).add(task_of, value)
        if connector.kind == SOURCE:
            _commits(families, task_of, NAN if commit is None else commit * 1000, profiles)


def _commits(families: Families, of: str, took_ms: float, profiles: Collection[Profile]) -> None:
    text = "Duration of the last write of Connect's offsets, in ms."
    if not JMX.isdisjoint(profiles):
        families.declare("kafka_connect_connector_task_offset_commit_avg_time_ms", "gauge", text).add(of, took_ms)
    if Profile.STRIMZI_REPORTER in profiles:
        name = "kafka_connect_connector_task_metrics_offset_commit_avg_time_ms"
        families.declare(name, "gauge", text).add(of, took_ms)


def _clients(families: Families, flow: Flow, profiles: Collection[Profile]) -> None:
    latencies = [pump.fetch_ms for pump in flow.pumps if pump.fetch_ms is not None]
    fetch = sum(latencies) / len(latencies) if latencies else NAN
    for prefix, total, of in clients(flow, profiles, "consumer", "fetch_manager"):
        text = "Mean time from a fetch to its answer, in ms."
        families.declare(f"{prefix}_fetch_latency_avg", "gauge", text).add(of, fetch)
        _count(families, f"{prefix}_records_consumed", total, of, flow.records, "Records copied.")
    for prefix, total, of in clients(flow, profiles, "consumer"):
        _count(families, f"{prefix}_incoming_byte", total, of, flow.source.bytes, "Bytes fetched.")
        _connections(families, prefix, of, sum(pump.connections[0] for pump in flow.pumps))
    for prefix, total, of in clients(flow, profiles, "producer"):
        _count(families, f"{prefix}_outgoing_byte", total, of, flow.target.bytes, "Bytes written.")
        _connections(families, prefix, of, sum(pump.connections[1] for pump in flow.pumps))
        text = (
            "32 MiB, Kafka's default, less the records that were fetched and are not acknowledged, by their mean size."
        )
        families.declare(f"{prefix}_buffer_available_bytes", "gauge", text).add(of, _free(flow))
    asked = flow.source.admin_connections + flow.target.admin_connections
    for prefix, _, of in clients(flow, profiles, "admin_client"):
        families.declare(f"{prefix}_connection_count", "gauge", "Open connections of the duties.").add(of, asked)


def _connections(families: Families, prefix: str, of: str, count: int) -> None:
    families.declare(f"{prefix}_connection_count", "gauge", "Open connections over which records go.").add(of, count)


def _count(families: Families, name: str, total: str, of: str, value: int, text: str) -> None:
    """Add a counter; the reporter's counters lack `_total`, and become gauges.

    The text format has no counters without `_total`.
    """
    families.declare(name + total, "counter" if total else "gauge", text).add(of, value)


def _free(flow: Flow) -> float:
    waiting = sum(pump.in_flight for pump in flow.pumps)
    mean = flow.bytes / flow.records if flow.records else 0.0
    return max(BUFFER_BYTES - waiting * mean, 0.0)


def _worker(
    families: Families,
    snapshot: Snapshot,
    known: list[tuple[Flow, tuple[ConnectorMetrics, ...]]],
    profiles: Collection[Profile],
) -> None:
    joining = int(any(flow.role is Role.JOINING for flow in snapshot.flows))
    every = [(flow, connector) for flow, flow_connectors in known for connector in flow_connectors]
    tasks = sum(len(connector.tasks) for _, connector in every)
    prefixes = []
    if not JMX.isdisjoint(profiles):
        prefixes.append(("kafka_connect_worker", "kafka_connect_worker_rebalance", "kafka_connect_coordinator"))
    if Profile.STRIMZI_REPORTER in profiles:
        start = "kafka_connect_connect_"
        prefixes.append((f"{start}worker_metrics", f"{start}worker_rebalance_metrics", f"{start}coordinator_metrics"))
    for worker, rebalance, coordinator in prefixes:
        for name, value, text in (
            (f"{worker}_connector_count", len(every), "Three a flow, as MirrorMaker 2 runs them."),
            (f"{worker}_task_count", tasks, "Pumps, and two a flow for checkpoints and heartbeats."),
            (f"{rebalance}_rebalancing", joining, "1 while a flow's lease is waited for."),
            (f"{coordinator}_assigned_connectors", len(every), "Connectors of this process."),
            (f"{coordinator}_assigned_tasks", tasks, "Tasks of this process."),
        ):
            families.declare(name, "gauge", text).add("", value)
        for flow, connector in every:
            of = labels(connector=connector_name(flow, connector.kind, profiles))
            counts = Counter(connector.tasks.values())
            for state in ("total", *_STATES):
                count = len(connector.tasks) if state == "total" else counts[state]
                name = f"{worker}_connector_{state}_task_count"
                families.declare(name, "gauge", "Tasks of a connector, by state.").add(of, count)


def _process(families: Families, process: Process) -> None:
    for name in ("jvm_memory_used_bytes", "jvm_memory_bytes_used"):
        families.declare(name, "gauge", "Memory that Spark's JVM uses.").add("", process.jvm_memory_bytes)
    families.declare("jvm_threads_current", "gauge", "Threads of Spark's JVM.").add("", process.jvm_threads)
    collection = families.declare("jvm_gc_collection_seconds", "summary", "Time of garbage collection.")
    collection.add("", process.jvm_gc_s, "_sum")
    families.declare("process_cpu_seconds_total", "counter", "CPU time of the driver process.").add("", process.cpu_s)
