"""Rules on bandwidth: the operator's caps, and bytes fetched but not written."""

from __future__ import annotations

from collections.abc import Iterator

from sparkmirror.look.doctor.amounts import size
from sparkmirror.look.doctor.case import Case
from sparkmirror.look.doctor.finding import Severity
from sparkmirror.look.doctor.rule import LATE, Rule, Sign

FETCHED_TIMES = 3.0
"""Fetched bytes of a finding, as a multiple of written bytes.

Fetching a batch twice is normal: after a refused batch, or at a takeover.
"""
FETCHED_BYTES = 10_000_000
"""Fewest fetched bytes of a finding: the ratio of few bytes tells too little."""
LEAST_S = 5.0
"""Shortest interval of a measured rate, in seconds."""


def _cap(case: Case) -> Iterator[Sign]:
    flow, before = case.flow, case.before(LEAST_S)
    if flow.bytes_per_s_cap is None or before is None or flow.records <= 0 or not case.lagging:
        return
    then = before.case.partitions
    more = 0
    for place, (_, now) in case.partitions.items():
        old = then.get(place)
        if now.end is not None and old is not None and old[1].end is not None:
            more += max(now.end - old[1].end, 0)
    produced = more / before.seconds * flow.bytes / flow.records
    if produced > flow.bytes_per_s_cap:
        yield Sign(
            subject="",
            evidence=f"{size(produced)}/s come, {size(flow.bytes_per_s_cap)}/s may be copied",
        )


def _fetched(case: Case) -> Iterator[Sign]:
    before = case.before(LEAST_S)
    if before is None:
        return
    fetched = case.flow.source.bytes - before.flow.source.bytes
    written = case.flow.target.bytes - before.flow.target.bytes
    if fetched > FETCHED_BYTES and fetched > FETCHED_TIMES * written:
        yield Sign(
            subject=case.flow.target.alias,
            evidence=f"{size(fetched)} fetched, {size(written)} written in {before.seconds:,.0f} s",
            action=_why_not_written(case.flow.target.tools),
        )


def _why_not_written(tools: str) -> str:
    quotas = " ".join(filter(None, ("kafka-configs.sh", tools, "--describe --entity-type users")))
    return (
        f"Raise the target's quota, which `{quotas}` shows, or follow the findings on parked partitions. Else "
        "they belong to aborted transactions."
    )


LIMITS = (
    Rule(
        name="cap-too-low",
        severity=Severity.WARNING,
        title="The flow may copy less than is written at the source",
        when="`sparkmirror throttle`'s cap is below the bytes that came to the source since a sample at least 5 s old "
        "(offsets, times the copied records' mean size).",
        cause="The cap was set for another load, or was meant for a while.",
        action="Raise the cap or remove it: `sparkmirror throttle FILE off`.",
        look=_cap,
        explains=LATE,
    ),
    Rule(
        name="fetched-not-written",
        severity=Severity.WARNING,
        title="Far more is fetched than written",
        when="Since a sample at least 5 s old over 10 MB were fetched, and over 3 times the written bytes.",
        cause="The target refuses or throttles the fetched records, or most of them belong to aborted transactions.",
        action=_why_not_written(""),
        look=_fetched,
        explains=LATE,
    ),
)
