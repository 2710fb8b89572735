"""Rules on the pumps: life, reports and memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sparkmirror.look.doctor.case import Case
from sparkmirror.look.doctor.finding import Severity
from sparkmirror.look.doctor.rule import LATE, Rule, Sign
from sparkmirror.snapshot.snapshot import FlowState, Pump

SILENT_S = 30.0
"""Seconds without a report that make a pump silent.

Pumps report each second. After 30 s the observer also takes log ends for too old.
"""
FRESH_S = 5.0
"""Seconds since the last report of a pump that is surely at work."""
ROW = 3
"""Number of consecutive failed rounds of a finding."""
MEMORY_BYTES = 300_000_000
"""Most memory of a healthy pump, in bytes.

Batches that unpack to a gigabyte fit, too (TESTING.md, hostile batches).
"""
_SMALLER = (
    "Take compression.type out of the flow's producer settings, and start the process again: batches then pass through "
    "whole. Or lower batch.size of the topics' producers, if their batches have many megabytes. Until then a larger "
    "spark.executor.memoryOverhead keeps executors from being killed. If it is neither, report it."
)
_FIRST_ERROR = (
    "Look at the process's log for `[epoch-failed]`, and for what workers printed before it (`[spark-output]`; on a "
    "cluster that is in the executor's stderr): they have the error. Mend that; the mirror tries again by itself, "
    "after 30 s at most."
)
_AT_WORK = (FlowState.COPYING, FlowState.HELD_UP, FlowState.CAUGHT_UP, FlowState.FINDING_OUT)


def _rounds(case: Case) -> Iterator[Sign]:
    failed = max(_failed_since({}, case.flow.epochs), _failed_since(_oldest_rounds(case), case.flow.epochs))
    if failed >= ROW and not _one_lasts(case):
        yield Sign(
            subject="",
            evidence=f"the last {failed:,} rounds failed, none ended well",
            cause=case.flow.reason or case.flow.waiting,
            action=_FIRST_ERROR,
        )


def _oldest_rounds(case: Case) -> Mapping[str, int]:
    return case.oldest.flow.epochs if case.oldest is not None else {}


def _failed_since(then: Mapping[str, int], now: Mapping[str, int]) -> int:
    """Return the number of rounds that failed since; 0 if others ended, too."""
    ended = {why: count - then.get(why, 0) for why, count in now.items()}
    failed = ended.get("failed", 0) + ended.get("pump", 0)
    return failed if failed == sum(ended.values()) else 0


def _one_lasts(case: Case) -> bool:
    """True if the round that runs now ran at the first sample, too."""
    flow, oldest = case.flow, case.oldest
    reports = bool(flow.pumps) and all(flow.at_ms - pump.at_ms <= FRESH_S * 1000 for pump in flow.pumps)
    return flow.state in _AT_WORK and reports and oldest is not None and oldest.flow.epoch == flow.epoch


def look_at_process(pids: Sequence[int]) -> str:
    """Return the command that shows processes' state; PID if none is known."""
    return f"`ps -o pid,stat,etime,args -p {','.join(map(str, pids)) or 'PID'}`"


def end_process(pids: Sequence[int]) -> str:
    """Return the command that ends processes; PID if none is known."""
    return f"`kill -KILL {' '.join(map(str, pids)) or 'PID'}`"


def _silent_action(silent: Sequence[Pump]) -> str:
    """Return what to do at the first silent pump's host."""
    host = silent[0].host
    pids = [pump.pid for pump in silent if pump.host == host and pump.pid]
    signalled = " ".join(map(str, pids)) or "PID"
    return (
        f"Look at the pump's process there: {look_at_process(pids)}. State T is a stopped process: `kill -CONT "
        f"{signalled}` lets it continue. In any other state end it, and Spark starts the task again: "
        f"{end_process(pids)}. If the new one is silent too, `sparkmirror lint FILE --connect` on that host, and the "
        "executor's stderr, say what it can't reach. If the host is gone, Spark gives its tasks to other executors "
        "once it notices (spark.network.timeout)."
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
            action=_silent_action(silent),
            severity=Severity.CRITICAL if len(silent) == len(flow.pumps) else None,
        )


def _memory(case: Case) -> Iterator[Sign]:
    for pump in case.flow.pumps:
        if pump.memory_bytes > MEMORY_BYTES:
            held = f"{pump.memory_bytes / 1e6:,.0f} MB at {pump.host}"
            yield Sign(subject=f"task {pump.task}", evidence=held, action=_SMALLER)


PUMPS = (
    Rule(
        name="pump-memory",
        severity=Severity.WARNING,
        title="A pump holds more memory than it should",
        when="More than 300 MB; hostile batches of a gigabyte stay below that.",
        cause="Very large batches, of which recompression (compression.type) holds several, or a fault of sparkmirror.",
        action="Take compression.type out of the flow's producer settings, or lower batch.size of the producers.",
        look=_memory,
        explains=("epochs-failing",),
    ),
    Rule(
        name="epochs-failing",
        severity=Severity.CRITICAL,
        title="Spark's jobs for this flow fail one after the other",
        when="Three or more rounds (Spark jobs), and no other, failed since the process's start or the first sample, "
        "and none runs since then.",
        cause="Executors or pumps end by themselves: memory, a host, a missing library.",
        action="Mend what `[epoch-failed]` and `[spark-output]` in the process's log, or executors' stderr, name.",
        look=_rounds,
        explains=("pumps-silent", "long-starting", "long-finding-out", *LATE),
    ),
    Rule(
        name="pumps-silent",
        severity=Severity.WARNING,
        title="Pumps don't report",
        when="A pump's last report is older than 30 s (they report each second). All of them: critical.",
        cause="The executor's host is gone, stopped, or can't reach the target, where reports are written.",
        action="Look at the pump's process there by `ps`, and continue or end it by `kill`.",
        look=_silent,
        explains=LATE,
    ),
)
