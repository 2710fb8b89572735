"""Rules of the AWS kit's latency runbook: CPU, and fetch latency against lag."""

from __future__ import annotations

from collections.abc import Iterator

from sparkmirror.look.doctor.case import Case
from sparkmirror.look.doctor.finding import Severity
from sparkmirror.look.doctor.rule import LATE, Rule, Sign, counted

CPU_SHARE = 0.7
"""Share of a core; a pump is busy above this.

The AWS kit: size the machines for about 70 % CPU.
"""
FETCH_MS = 1_000.0
"""Milliseconds of a slow fetch: twice fetch.max.wait.ms.

A broker without records to send answers after fetch.max.wait.ms.
"""
LEAST_S = 5.0


def _cpu(case: Case) -> Iterator[Sign]:
    before = case.before(LEAST_S)
    if before is None or not case.slow:
        return
    shares = [((now.cpu_s - then.cpu_s) / before.seconds, now) for now, then in case.pumps_then(before)]
    busy = [entry for entry in shares if entry[0] > CPU_SHARE]
    if busy:
        share, pump = max(busy, key=lambda entry: entry[0])
        yield Sign(
            subject=f"task {pump.task}",
            evidence=f"{counted(len(busy), 'pump')}, the busiest {100 * share:,.0f} % of a core at {pump.host}",
        )


def _fetches(case: Case) -> Iterator[Sign]:
    if not case.slow:
        return
    slow = [pump for pump in case.flow.pumps if pump.fetch_ms is not None and pump.fetch_ms > FETCH_MS]
    if slow:
        most = max(pump.fetch_ms or 0.0 for pump in slow)
        yield Sign(
            subject=case.flow.source.alias,
            evidence=f"{most:,.0f} ms from a fetch to its answer in {len(slow):,} of {len(case.flow.pumps):,} "
            f"pumps, with {case.waiting_records:,} records waiting",
        )


LATENCY = (
    Rule(
        name="pump-cpu",
        severity=Severity.WARNING,
        title="Pumps have no CPU left",
        when="While over 10,000 records wait or the objective is missed, a pump takes over 70 % of a core over"
        " at least 5 s.",
        cause="The cores are too few for the load; recompression (compression.type) and conversion of old formats "
        "cost most.",
        action="Take producer.compression.type out of the file, or raise tasks.max and give Spark more cores.",
        look=_cpu,
        explains=LATE,
    ),
    Rule(
        name="slow-fetches",
        severity=Severity.WARNING,
        title="The source answers slowly though records wait",
        when="A fetch takes over 1,000 ms on average (twice fetch.max.wait.ms) while over 10,000 records wait "
        "or the objective is missed.",
        cause="The source's brokers read from disk, are loaded, or are far away.",
        action="Look at the source's brokers (disk, network, request queue); over a long line take the "
        "consumer's max.partition.fetch.bytes and receive.buffer.bytes out of the file, or raise them.",
        look=_fetches,
        explains=LATE,
    ),
)
