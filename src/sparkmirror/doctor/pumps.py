"""Rules on the pumps: life, reports and memory."""

from __future__ import annotations

from collections.abc import Iterator

from sparkmirror.doctor.case import Case
from sparkmirror.doctor.finding import Severity
from sparkmirror.doctor.rule import LATE, Rule, Sign
from sparkmirror.engine.snapshot import FlowState

SILENT_S = 30.0
"""Seconds without a report that make a pump silent.

Pumps report each second. After 30 s the observer also takes log ends for too old.
"""
ROW = 3
"""Number of consecutive failed rounds of a finding."""
MEMORY_BYTES = 300_000_000
"""Most memory of a healthy pump, in bytes.

Batches that unpack to a gigabyte fit, too (TESTING.md, hostile batches).
"""
_AT_WORK = (FlowState.COPYING, FlowState.HELD_UP, FlowState.CAUGHT_UP, FlowState.FINDING_OUT)


def _rounds(case: Case) -> Iterator[Sign]:
    then = case.oldest.flow.epochs if case.oldest is not None else {}
    ended = {why: count - then.get(why, 0) for why, count in case.flow.epochs.items()}
    failed = ended.get("failed", 0) + ended.get("pump", 0)
    if failed >= ROW and failed == sum(ended.values()):
        yield Sign(
            subject="",
            evidence=f"the last {failed:,} rounds failed, none ended well",
            cause=case.flow.reason or case.flow.waiting,
        )


def _silent(case: Case) -> Iterator[Sign]:
    flow = case.flow
    silent = [pump for pump in flow.pumps if flow.at_ms - pump.at_ms > SILENT_S * 1000]
    if silent and flow.state in _AT_WORK:
        longest = max(flow.at_ms - pump.at_ms for pump in silent) / 1000
        first = silent[0]
        yield Sign(
            subject=f"task {first.task}",
            evidence=f"{len(silent):,} of {len(flow.pumps):,} pumps, for {longest:,.0f} s, the first at {first.host}",
            severity=Severity.CRITICAL if len(silent) == len(flow.pumps) else None,
        )


def _memory(case: Case) -> Iterator[Sign]:
    for pump in case.flow.pumps:
        if pump.memory_bytes > MEMORY_BYTES:
            yield Sign(subject=f"task {pump.task}", evidence=f"{pump.memory_bytes / 1e6:,.0f} MB at {pump.host}")


PUMPS = (
    Rule(
        name="pump-memory",
        severity=Severity.WARNING,
        title="A pump holds more memory than it should",
        when="More than 300 MB: hostile batches of a gigabyte stay below that (TESTING.md).",
        cause="Very large batches, or a fault of sparkmirror.",
        action="Give Spark's executors more memory (spark.executor.memoryOverhead), and report it.",
        look=_memory,
        explains=("epochs-failing",),
    ),
    Rule(
        name="epochs-failing",
        severity=Severity.CRITICAL,
        title="Spark's jobs for this flow fail one after the other",
        when="Three or more rounds (Spark jobs) ended by failure since the first sample (or since the process began), "
        "none otherwise.",
        cause="Executors or pumps end by themselves: memory, a host, a missing library.",
        action="Look at Spark's driver log and the executors' stderr for the first failure.",
        look=_rounds,
        explains=("pumps-silent", "long-starting", "long-finding-out", *LATE),
    ),
    Rule(
        name="pumps-silent",
        severity=Severity.WARNING,
        title="Pumps don't report",
        when="A pump's last report is older than 30 s (they report each second). All of them: critical.",
        cause="The executor's host is gone, stopped, or can't reach the target, where reports are written.",
        action="Look at that host, and at the log of its executor.",
        look=_silent,
        explains=LATE,
    ),
)
