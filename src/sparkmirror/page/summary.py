"""What every viewer is sent each second: all but the rows of large tables."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from sparkmirror.doctor.findings import Finding, diagnose
from sparkmirror.engine.snapshot import Flow, Histogram, Role, Snapshot
from sparkmirror.page.cut_over import cut_over
from sparkmirror.page.rows import partition_state, rounded
from sparkmirror.page.sentences import sentence

MOST_FINDINGS = 100
MOST_PUMPS = 200


def summary(now: Snapshot, before: Sequence[Snapshot] = (), now_ms: int | None = None) -> dict[str, Any]:
    """As JSON: process, flows with their sentences, findings with the worst first."""
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
        "findings": [_finding(one) for one in findings[:MOST_FINDINGS]],
        "more_findings": max(len(findings) - MOST_FINDINGS, 0),
    }


def _finding(one: Finding) -> dict[str, str]:
    return {
        "rule": one.rule,
        "severity": one.severity.value,
        "flow": one.flow,
        "subject": one.subject,
        "title": one.title,
        "evidence": one.evidence,
        "cause": one.cause,
        "action": one.action,
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
        "lag_s": rounded(flow.lag_s),
        "records_per_s": rounded(flow.records_per_s) if leads else None,
        "bytes_per_s": rounded(flow.bytes_per_s) if leads else None,
        "eta_s": rounded(flow.eta_s),
        "records": flow.records,
        "bytes": flow.bytes,
        "latency_ms": [rounded(one) for one in flow.recent_latency_ms] if flow.recent_latency_ms else None,
        "heartbeat_p99_s": _finite(flow.heartbeat_latency),
        "topics": len(flow.topics),
        "partitions": Counter(partition_state(one) for topic in flow.topics for one in topic.partitions),
        "groups": Counter(group.state.value for group in flow.groups),
        "reread": _reread(flow),
        "cut_over": {"verdict": board.verdict.value, "words": board.words, "reasons": board.reasons},
        "paused": flow.paused,
        "bytes_per_s_cap": flow.bytes_per_s_cap,
        "backfill_per_s_cap": flow.backfill_per_s_cap,
        "objective_s": flow.objective_s,
        "sides": [
            {
                "alias": one.alias,
                "bytes": one.bytes,
                "requests": one.requests,
                "throttle_s": rounded(one.throttle_s),
                "errors": one.errors,
            }
            for one in (flow.source, flow.target)
        ],
        "duties": [
            {
                "duty": one.duty,
                "interval_s": one.interval_s,
                "ago_s": rounded((flow.at_ms - one.succeeded_ms) / 1000) if one.succeeded_ms is not None else None,
                "took_s": rounded(one.took_s),
                "failing": one.failing,
                "failures": one.failures,
            }
            for one in flow.duties
        ],
        "losses": [
            {
                "kind": one.kind,
                "entries": one.entries,
                "offsets": one.offsets,
                "newest_ms": one.newest_ms,
                "words": one.words,
                "is_loss": one.is_loss,
            }
            for one in flow.losses
        ],
        "pumps": [
            {
                "task": one.task,
                "host": one.host,
                "partitions": one.partitions,
                "records": one.records,
                "bytes": one.bytes,
                "memory_bytes": one.memory_bytes,
                "cpu_s": rounded(one.cpu_s),
                "in_flight": one.in_flight,
                "fetch_ms": rounded(one.fetch_ms),
                "ago_s": rounded((flow.at_ms - one.at_ms) / 1000) if one.at_ms else None,
            }
            for one in flow.pumps[:MOST_PUMPS]
        ],
        "more_pumps": max(len(flow.pumps) - MOST_PUMPS, 0),
        "settings": flow.settings,
    }


def _finite(latency: Histogram) -> float | None:
    bound = latency.quantile(0.99)
    return None if bound is None or bound == float("inf") else bound


def _reread(flow: Flow) -> int | None:
    some = [group.reread for group in flow.groups]
    return None if None in some else sum(count or 0 for count in some)
