"""Summary that every viewer is sent each second: all but the tables' rows."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from sparkmirror.look.doctor.findings import Finding, diagnose
from sparkmirror.look.page.cut_over import cut_over
from sparkmirror.look.page.problems import Problem, problems
from sparkmirror.look.page.rows import partition_state, rounded, total
from sparkmirror.look.page.sentences import headline
from sparkmirror.snapshot.snapshot import Flow, FlowState, Histogram, Role, Snapshot

MOST_FINDINGS = 100
MOST_EFFECTS = 20
MOST_PUMPS = 200


def summary(now: Snapshot, before: Sequence[Snapshot] = (), now_ms: int | None = None) -> dict[str, Any]:
    """Return process, flows with sentences, and findings, the worst first, as JSON."""
    now_ms = int(time.time() * 1000) if now_ms is None else now_ms
    findings = diagnose(now, before)
    causes = problems(findings)
    process = now.process
    name = f"{process.host}:{process.pid}"
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
        "flows": [
            _flow(flow, now_ms, [each for each in findings if each.flow == flow.flow], name) for flow in now.flows
        ],
        "findings": [_problem(problem) for problem in causes[:MOST_FINDINGS]],
        "more_findings": max(len(causes) - MOST_FINDINGS, 0),
    }


def _problem(problem: Problem) -> dict[str, Any]:
    return {
        **_finding(problem.finding),
        "severity": problem.severity.value,
        "effects": [_finding(finding) for finding in problem.effects[:MOST_EFFECTS]],
        "more_effects": max(len(problem.effects) - MOST_EFFECTS, 0),
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


def _flow(flow: Flow, now_ms: int, findings: Sequence[Finding], process: str) -> dict[str, Any]:
    said, board = headline(flow, now_ms, findings, process), cut_over(flow, now_ms)
    leads = flow.role is Role.LEADER
    return {
        "flow": flow.flow,
        "source": flow.source.alias,
        "target": flow.target.alias,
        "state": flow.state.value,
        "tone": said.tone.value,
        "what": said.what,
        "then": said.then,
        "role": flow.role.value,
        "leader": flow.leader,
        "processes": flow.processes,
        "epoch": flow.epoch,
        "page": flow.page if not leads else "",
        "lag": flow.lag if leads else None,
        "unknown": flow.unknown if leads else 0,
        "lag_s": rounded(flow.lag_s) if leads else None,
        "records_per_s": rounded(flow.records_per_s) if leads else None,
        "bytes_per_s": rounded(flow.bytes_per_s) if leads else None,
        "eta_s": rounded(flow.eta_s) if leads and flow.state is not FlowState.HELD_UP else None,
        "records": flow.records,
        "bytes": flow.bytes,
        "latency_ms": [rounded(latency) for latency in flow.recent_latency_ms or ()] if leads else [],
        "heartbeat_p99_s": _finite(flow.heartbeat_latency),
        "topics": len(flow.topics) if leads else 0,
        "partitions": Counter(partition_state(row) for topic in flow.topics for row in topic.partitions if leads),
        "groups": Counter(group.state.value for group in flow.groups if leads),
        "skipped": total([group.skipped for group in flow.groups]),
        "reread": total([group.reread for group in flow.groups]),
        "cut_over": {
            "verdict": board.verdict.value,
            "words": board.words,
            "conditions": [[each.name, each.mark.value, each.words] for each in board.conditions],
        },
        "paused": flow.paused,
        "bytes_per_s_cap": flow.bytes_per_s_cap,
        "backfill_per_s_cap": flow.backfill_per_s_cap,
        "objective_s": flow.objective_s,
        "sides": [
            {
                "alias": side.alias,
                "servers": side.servers,
                "release": side.release,
                "brokers": [side.brokers_up, side.brokers_known],
                "away": side.away,
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
