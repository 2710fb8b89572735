"""Summary that every viewer is sent each second: all but the rows of tables."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from sparkmirror.doctor.findings import Finding, diagnose
from sparkmirror.engine.snapshot import Flow, Histogram, Role, Snapshot
from sparkmirror.page.cut_over import cut_over
from sparkmirror.page.rows import partition_state, rounded, total
from sparkmirror.page.sentences import sentence

MOST_FINDINGS = 100
MOST_PUMPS = 200


def summary(now: Snapshot, before: Sequence[Snapshot] = (), now_ms: int | None = None) -> dict[str, Any]:
    """Return process, flows with sentences, and findings, the worst first, as JSON."""
    now_ms = int(time.time() * 1000) if now_ms is None else now_ms
    findings = diagnose(now, before)
    process = now.process
    return {
        "age_s": round(max(now_ms - now.at_ms, 0) / 1000, 1),
        "process": {
            "host": process.host,
            "pid": process.pid,
            "version": process.version,
            "mode": process.mode,
            "up_s": max(now.at_ms - process.started_ms, 0) // 1000,
            "spark": process.spark_version,
            "slots": process.slots,
            "tasks": process.tasks,
            "cpu_s": rounded(process.cpu_s),
            "memory_bytes": process.memory_bytes,
        },
        "flows": [_flow(flow, now_ms) for flow in now.flows],
        "findings": [_finding(finding) for finding in findings[:MOST_FINDINGS]],
        "more_findings": max(len(findings) - MOST_FINDINGS, 0),
    }


def _finding(finding: Finding) -> dict[str, str]:
    return {
        "rule": finding.rule,
        "severity": finding.severity.value,
        "flow": finding.flow,
        "subject": finding.subject,
        "title": finding.title,
        "evidence": finding.evidence,
        "cause": finding.cause,
        "action": finding.action,
    }


def _flow(flow: Flow, now_ms: int) -> dict[str, Any]:
    said, board = sentence(flow, now_ms), cut_over(flow, now_ms)
    leads = flow.role is Role.LEADER
    return {
        "flow": flow.flow,
        "source": flow.source.alias,
        "target": flow.target.alias,
        "state": flow.state.value,
        "tone": said.tone.value,
        "words": said.words,
        "role": flow.role.value,
        "leader": flow.leader,
        "processes": flow.processes,
        "epoch": flow.epoch,
        "lag": flow.lag,
        "unknown": flow.unknown,
        "lag_s": rounded(flow.lag_s),
        "records_per_s": rounded(flow.records_per_s) if leads else None,
        "bytes_per_s": rounded(flow.bytes_per_s) if leads else None,
        "eta_s": rounded(flow.eta_s),
        "records": flow.records,
        "bytes": flow.bytes,
        "latency_ms": [rounded(latency) for latency in flow.recent_latency_ms] if flow.recent_latency_ms else None,
        "heartbeat_p99_s": _finite(flow.heartbeat_latency),
        "topics": len(flow.topics),
        "partitions": Counter(partition_state(row) for topic in flow.topics for row in topic.partitions),
        "groups": Counter(group.state.value for group in flow.groups),
        "skipped": total([group.skipped for group in flow.groups]),
        "reread": total([group.reread for group in flow.groups]),
        "cut_over": {"verdict": board.verdict.value, "words": board.words, "reasons": board.reasons},
        "paused": flow.paused,
        "bytes_per_s_cap": flow.bytes_per_s_cap,
        "backfill_per_s_cap": flow.backfill_per_s_cap,
        "objective_s": flow.objective_s,
        "sides": [
            {
                "alias": side.alias,
                "bytes": side.bytes,
                "requests": side.requests,
                "throttle_s": rounded(side.throttle_s),
                "errors": side.errors,
            }
            for side in (flow.source, flow.target)
        ],
        "duties": [
            {
                "duty": duty.duty,
                "interval_s": duty.interval_s,
                "ago_s": rounded((flow.at_ms - duty.succeeded_ms) / 1000) if duty.succeeded_ms is not None else None,
                "took_s": rounded(duty.took_s),
                "failing": duty.failing,
                "failures": duty.failures,
            }
            for duty in flow.duties
        ],
        "losses": sum(loss.entries for loss in flow.losses),
        "pumps": [
            {
                "task": pump.task,
                "host": pump.host,
                "partitions": pump.partitions,
                "records": pump.records,
                "bytes": pump.bytes,
                "memory_bytes": pump.memory_bytes,
                "cpu_s": rounded(pump.cpu_s),
                "in_flight": pump.in_flight,
                "fetch_ms": rounded(pump.fetch_ms),
                "ago_s": rounded((flow.at_ms - pump.at_ms) / 1000) if pump.at_ms else None,
            }
            for pump in flow.pumps[:MOST_PUMPS]
        ],
        "more_pumps": max(len(flow.pumps) - MOST_PUMPS, 0),
        "settings": flow.settings,
    }


def _finite(latency: Histogram) -> float | None:
    bound = latency.quantile(0.99)
    return None if bound is None or bound == float("inf") else bound
