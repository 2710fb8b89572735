"""Rules of the AWS kit's latency runbook.

Active records, CPU, and fetch latency against lag.
"""

from __future__ import annotations

from collections.abc import Iterator

from sparkmirror.doctor.case import Case
from sparkmirror.doctor.finding import Severity
from sparkmirror.doctor.rule import LATE, Rule, Sign, counted

LEAST_ACTIVE, MOST_ACTIVE = 2_000, 20_000
"""Fewest and most active records of a task.

Active records are fetched by the task, and not acknowledged by the target yet (the AWS kit:
source_record_active_count).
"""
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
            "pumps, with "
            f"{case.waiting_records:,} records waiting",
        )


def _starved(case: Case) -> Iterator[Sign]:
    pumps = case.flow.pumps
    if case.slow and pumps and all(pump.in_flight < LEAST_ACTIVE for pump in pumps) and _goes_on(case):
        most = max(pump.in_flight for pump in pumps)
        yield Sign(
            subject="", evidence=f"{most:,} active records at most in a task, {case.waiting_records:,} records waiting"
        )


def _goes_on(case: Case) -> bool:
    before = case.before(LEAST_S)
    return before is not None and all(pump.in_flight < LEAST_ACTIVE for pump in before.flow.pumps)


def _flooded(case: Case) -> Iterator[Sign]:
    full = [pump for pump in case.flow.pumps if pump.in_flight > MOST_ACTIVE]
    if full and case.slow:
        most = max(full, key=lambda pump: pump.in_flight)
        yield Sign(subject=f"task {most.task}", evidence=f"{most.in_flight:,} active records, {len(full):,} such tasks")


LATENCY = (
    Rule(
        name="pump-cpu",
        severity=Severity.WARNING,
        title="Pumps have no CPU left",
        when="While over 10,000 records wait or the objective is missed, a pump takes over 70 % of a core over at "
        "least 5 s "
        "(the AWS kit's runbook).",
        cause="The cores are too few for the load; recompression (compression.type) and conversion of old formats "
        "cost most.",
        action="Raise tasks.max and give Spark more cores, or take compression.type out of the flow's producer "
        "settings.",
        look=_cpu,
        explains=("active-records-low", *LATE),
    ),
    Rule(
        name="slow-fetches",
        severity=Severity.WARNING,
        title="The source answers slowly though records wait",
        when="A fetch takes over 1,000 ms on average (twice fetch.max.wait.ms) while over 10,000 records wait or the "
        "objective is missed (the AWS kit: fetch latency against lag).",
        cause="The source's brokers read from disk, are loaded, or are far away.",
        action="Look at the source's brokers (disk, network, request queue); over a long line raise "
        "max.partition.fetch.bytes and receive.buffer.bytes of the source's consumer.",
        look=_fetches,
        explains=("active-records-low", *LATE),
    ),
    Rule(
        name="active-records-low",
        severity=Severity.NOTICE,
        title="Tasks have little in hand though records wait",
        when="Fewer than 2,000 active records in every task, in two samples, while over 10,000 records wait (the "
        "AWS kit's "
        "runbook: 2,000 to 20,000).",
        cause="The source gives less than the pumps could take: small fetches, slow answers, or batches with few "
        "records.",
        action="Look at the source's brokers first, then at max.partition.fetch.bytes; check max.message.bytes last.",
        look=_starved,
        explains=LATE,
    ),
    Rule(
        name="active-records-high",
        severity=Severity.WARNING,
        title="Tasks wait for the target",
        when="Over 20,000 active records in a task while over 10,000 records wait (the AWS kit's runbook: 2,000 to "
        "20,000).",
        cause="The target acknowledges slowly: its disks, its replicas, a far line, or its limits on sizes.",
        action="Look at the target's brokers, "
        "then spread the load over more tasks and partitions; check max.message.bytes last.",
        look=_flooded,
        explains=LATE,
    ),
)
