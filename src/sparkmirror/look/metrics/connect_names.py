"""Metrics of Kafka Connect's worker, connectors and tasks, in the profiles' names."""

from __future__ import annotations

from collections import Counter

from sparkmirror.look.metrics.client_names import NAN
from sparkmirror.look.metrics.connector_states import PACKAGE, SOURCE, WRITERS, ConnectorMetrics, connectors
from sparkmirror.look.metrics.profile import Beans, Labels, Profile, Spelling
from sparkmirror.mirror.engine.flow_duties import CONNECT_OFFSETS
from sparkmirror.snapshot.snapshot import Flow, Process, Role, Snapshot

_WORKER = Beans("connect", "connect_worker")
_REBALANCE = Beans("connect", "connect_worker_rebalance")
_COORDINATOR = Beans("connect", "connect_coordinator")
_TASK = Beans("connect", "connector_task")
_SOURCE_TASK = Beans("connect", "source_task")
_ERRORS = Beans("connect", "task_error")

_STATES = ("running", "paused", "failed", "unassigned", "destroyed", "restarting")
_TOLD = "1; the label tells it."


def add_connect(spelling: Spelling, snapshot: Snapshot) -> None:
    """Add worker, connectors, tasks and the process."""
    known = [(flow, connector) for flow in snapshot.flows for connector in connectors(flow)]
    for flow, connector in known:
        of = spelling.connector(flow, connector.kind)
        _statuses(spelling, of, connector, snapshot.process)
        _tasks(spelling, of, connector)
        _written(spelling, of, flow, connector)
        if connector.kind == SOURCE:
            _copying(spelling, of, flow, connector)
    _worker(spelling, snapshot, known)
    _process(spelling, snapshot.process)


def _statuses(spelling: Spelling, of: Labels, connector: ConnectorMetrics, process: Process) -> None:
    families, profiles = spelling.families, spelling.profiles
    facts = {"class": PACKAGE + connector.kind, "type": "source", "version": process.version}
    for name, word in facts.items():
        labelled = of.and_(**{f"connector_{name}": word})
        if Profile.STRIMZI in profiles:
            families.declare(f"kafka_connect_connector_connector_{name}", "gauge", _TOLD).add(labelled.short, 1)
        if Profile.STRIMZI_REPORTER in profiles:
            info = f"kafka_connect_connector_metrics_connector_{name}_info"
            families.declare(info, "gauge", _TOLD).add(labelled.full, 1)
    labelled = of.and_(status=connector.status)
    if Profile.STRIMZI in profiles:
        families.declare("kafka_connect_connector_status", "gauge", _TOLD).add(labelled.short, 1)
    if Profile.STRIMZI_REPORTER in profiles:
        families.declare("kafka_connect_connector_metrics_status_info", "gauge", _TOLD).add(labelled.full, 1)
    for task, status in connector.tasks.items():
        labelled = of.and_(task=task, status=status)
        if Profile.AWS in profiles:
            families.declare("kafka_connect_connector_status", "gauge", _TOLD).add(labelled.short, 1)
        if Profile.STRIMZI in profiles:
            families.declare("kafka_connect_connector_task_status", "gauge", _TOLD).add(labelled.short, 1)
        if Profile.STRIMZI_REPORTER in profiles:
            families.declare("kafka_connect_connector_task_metrics_status_info", "gauge", _TOLD).add(labelled.full, 1)


def _tasks(spelling: Spelling, of: Labels, connector: ConnectorMetrics) -> None:
    """Add what every task has.

    Nothing is skipped because of an error, and there is no dead letter queue: these counts are 0 for good.
    """
    for task, status in connector.tasks.items():
        task_of = of.and_(task=task)
        for ratio, state in (("running_ratio", "running"), ("pause_ratio", "paused")):
            spelling.add(_TASK, ratio, f"1 while the task is {state}, else 0.", task_of, int(status == state))
        stuck = connector.stuck.get(task, 0)
        for name in ("total_record_failures", "total_record_errors"):
            spelling.add(_ERRORS, name, "Partitions at a bad record.", task_of, stuck)
        spelling.add(_ERRORS, "total_records_skipped", "Always 0: no record is skipped.", task_of, 0)
        for name in ("deadletterqueue_produce_requests", "deadletterqueue_produce_failures"):
            spelling.add(_ERRORS, name, "Always 0: there is no dead letter queue.", task_of, 0)


def _written(spelling: Spelling, of: Labels, flow: Flow, connector: ConnectorMetrics) -> None:
    for task, count in _counts(flow, connector).items():
        for name in ("source_record_write", "source_record_poll"):
            text = "Records that the task has written."
            spelling.add(_SOURCE_TASK, name, text, of.and_(task=task), count, counts=True)


def _counts(flow: Flow, connector: ConnectorMetrics) -> dict[int, int | None]:
    if connector.kind == SOURCE:
        return {pump.task: pump.records for pump in flow.pumps}
    return {0: next((duty.written for duty in flow.duties if duty.duty == WRITERS[connector.kind]), None)}


def _copying(spelling: Spelling, of: Labels, flow: Flow, connector: ConnectorMetrics) -> None:
    """Add what only the source connector's tasks have."""
    rates = dict.fromkeys(connector.tasks, 0.0)
    for topic in flow.topics:
        for partition in topic.partitions:
            if partition.records_per_s and partition.task in rates:
                rates[partition.task] += partition.records_per_s
    active = {pump.task: pump.in_flight for pump in flow.pumps}
    took_ms, failed = _last_commit(flow)
    for task, rate in rates.items():
        task_of = of.and_(task=task)
        for name in ("source_record_write_rate", "source_record_poll_rate"):
            spelling.add(_SOURCE_TASK, name, "Records that the task writes in a second.", task_of, rate)
        text = "Records not acknowledged."
        spelling.add(_SOURCE_TASK, "source_record_active_count", text, task_of, active.get(task, 0))
        for name in ("offset_commit_avg_time_ms", "offset_commit_max_time_ms"):
            spelling.add(_TASK, name, "Duration of the last write of Connect's offsets, in ms.", task_of, took_ms)
        for name, share in (("success", 1 - failed), ("failure", failed)):
            text = f"1 if the last write of Connect's offsets was a {name}, else 0."
            spelling.add(_TASK, f"offset_commit_{name}_percentage", text, task_of, share)


def _last_commit(flow: Flow) -> tuple[float, float]:
    """Return the last write of Connect's offsets: duration, and failure.

    The duration is the last good write's, in ms. The failure is 1.0 or 0.0. NaN: no write yet.
    """
    commit = next((duty for duty in flow.duties if duty.duty == CONNECT_OFFSETS), None)
    if commit is None or (commit.took_s is None and not commit.failing):
        return NAN, NAN
    return NAN if commit.took_s is None else commit.took_s * 1000, float(bool(commit.failing))


def _worker(spelling: Spelling, snapshot: Snapshot, known: list[tuple[Flow, ConnectorMetrics]]) -> None:
    joining = int(any(flow.role is Role.JOINING for flow in snapshot.flows))
    tasks = sum(len(connector.tasks) for _, connector in known)
    rounds = sum(sum(flow.epochs.values()) for flow in snapshot.flows)
    nothing = Labels()
    spelling.add(_WORKER, "connector_count", "Three a flow, as MirrorMaker 2 runs them.", nothing, len(known))
    spelling.add(_WORKER, "task_count", "Pumps, and two a flow for checkpoints and heartbeats.", nothing, tasks)
    spelling.add(_REBALANCE, "rebalancing", "1 while a flow's lease is waited for.", nothing, joining)
    spelling.add(_REBALANCE, "completed_rebalances", "Ended rounds of all flows.", nothing, rounds, counts=True)
    spelling.add(_COORDINATOR, "assigned_connectors", "Connectors of this process.", nothing, len(known))
    spelling.add(_COORDINATOR, "assigned_tasks", "Tasks of this process.", nothing, tasks)
    for flow, connector in known:
        of = spelling.connector(flow, connector.kind)
        counts = Counter(connector.tasks.values())
        for state in ("total", *_STATES):
            count = len(connector.tasks) if state == "total" else counts[state]
            spelling.add(_WORKER, f"connector_{state}_task_count", "Tasks of a connector, by state.", of, count)


def _process(spelling: Spelling, process: Process) -> None:
    families = spelling.families
    for name in ("jvm_memory_used_bytes", "jvm_memory_bytes_used"):
        families.declare(name, "gauge", "Memory that Spark's JVM uses.").add("", process.jvm_memory_bytes)
    families.declare("jvm_threads_current", "gauge", "Threads of Spark's JVM.").add("", process.jvm_threads)
    collection = families.declare("jvm_gc_collection_seconds", "summary", "Time of garbage collection.")
    collection.add("", process.jvm_gc_s, "_sum")
    families.declare("process_cpu_seconds_total", "counter", "CPU time of the driver process.").add("", process.cpu_s)
