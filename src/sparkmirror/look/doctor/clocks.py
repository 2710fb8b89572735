"""Rules on clocks, and on heartbeats, whose latency is measured by clocks."""

from __future__ import annotations

from collections.abc import Iterator

from sparkmirror.look.doctor.case import Case, name_of
from sparkmirror.look.doctor.finding import Severity
from sparkmirror.look.doctor.rule import Rule, Sign

AHEAD_MS = -1_000.0
"""Latency in milliseconds; a clock is ahead below this.

NTP keeps clocks within less than a second.
"""
ABSURD_MS = 10 * 365 * 86_400_000.0
"""Ten years in milliseconds.

A timestamp in seconds instead of milliseconds is from January 1970.
"""
SILENT_S = 60.0
"""Seconds without a heartbeat that make a finding.

By default a heartbeat comes each second (emit.heartbeats.interval.seconds).
"""
_START_IT = (
    "Run `sparkmirror status FILE` with the file of the mirror that has this source as its target. If its last status "
    "is old, start that mirror again: `sparkmirror run FILE`. If it runs, `sparkmirror doctor FILE` with the same file "
    "tells of its duty `heartbeats`, and with this mirror's file what holds the topic `heartbeats` up."
)


def _ahead(case: Case) -> Iterator[Sign]:
    measured = [
        (place, partition.latency_ms)
        for place, (_, partition) in case.partitions.items()
        if partition.latency_ms is not None
    ]
    ahead = [(place, spread) for place, spread in measured if spread.least < AHEAD_MS]
    if ahead:
        place, spread = min(ahead, key=lambda entry: entry[1].least)
        all_of_them = len(ahead) == len(measured) and len(measured) > 1
        yield Sign(
            subject=name_of(place),
            evidence=f"up to {-spread.least / 1000:,.1f} s ahead, in {len(ahead):,} of {len(measured):,} partitions",
            cause="The clock of this host's executors is behind." if all_of_them else "",
        )


def _absurd(case: Case) -> Iterator[Sign]:
    for place, (_, partition) in case.partitions.items():
        if partition.latency_ms is not None and partition.latency_ms.last > ABSURD_MS:
            name = name_of(place)
            races = name == case.flow.retention_of
            days = partition.latency_ms.last / 86_400_000
            yield Sign(
                subject=name, evidence=f"{days:,.0f} days old when it was copied", explains=None if races else ()
            )
            return


def _heartbeats(case: Case) -> Iterator[Sign]:
    before = case.before(SILENT_S)
    if before is None or not any(topic.topic == "heartbeats" for topic in case.flow.topics):
        return
    then, now = before.flow.heartbeat_latency.total, case.flow.heartbeat_latency.total
    if now == then > 0:
        evidence = f"none for {before.seconds:,.0f} s, {now:,} before"
        yield Sign(subject=case.flow.source.alias, evidence=evidence, action=_START_IT)


CLOCKS = (
    Rule(
        name="clock-ahead",
        severity=Severity.NOTICE,
        title="Records come from the future",
        when="A record's latency is below -1 s: its timestamp is later than its acknowledgement.",
        cause="The clock of a producer is ahead, or it writes timestamps of its own.",
        action="Set the clocks right (NTP). Until then latency, lag in seconds and retention by time are wrong there.",
        look=_ahead,
    ),
    Rule(
        name="timestamps-absurd",
        severity=Severity.NOTICE,
        title="Records are said to be older than ten years",
        when="A record's latency is above ten years.",
        cause="A producer writes timestamps in seconds instead of milliseconds, or zeros.",
        action="Correct the producer. Retention by time deletes such records at once, here and at the source.",
        look=_absurd,
        explains=("retention-race",),
    ),
    Rule(
        name="heartbeats-missing",
        severity=Severity.WARNING,
        title="No heartbeats come from the source any more",
        when="The topic `heartbeats` is copied, some came before, and none since a sample at least 60 s old.",
        cause="The mirror that writes heartbeats into the source has stopped, or its topic `heartbeats` is held up.",
        action="Run `sparkmirror status FILE` for the mirror that has this source as its target, and start it again.",
        look=_heartbeats,
    ),
)
