"""Rule on open transactions at the source, which hold back what may be read."""

from __future__ import annotations

from collections.abc import Iterator

from sparkmirror.look.doctor.case import Case, name_of
from sparkmirror.look.doctor.finding import Severity
from sparkmirror.look.doctor.parked import action, general_action
from sparkmirror.look.doctor.rule import LATE, Rule, Sign, counted
from sparkmirror.mirror.engine.transaction_watch import LONG_S
from sparkmirror.snapshot.snapshot import Cause

NAMED = 20
"""Number of findings: each partition has a command of its own."""


def _open(case: Case) -> Iterator[Sign]:
    for topic, partition in case.flow.open_transactions[:NAMED]:
        waits = "waits" if partition.held_back == 1 else "wait"
        yield Sign(
            subject=name_of((topic.topic, partition.partition)),
            evidence=f"{counted(partition.held_back, 'offset')} {waits}",
            cause=partition.reason,
            action=action(case.flow, topic, partition),
        )


TRANSACTIONS = (
    Rule(
        name="open-transaction",
        severity=Severity.CRITICAL,
        title="An open transaction holds a partition back",
        when="The isolation level is read_committed, and the last stable offset of the source's partition is below its "
        f"end, and has not moved for {LONG_S:.0f} s, the default of a producer's transaction.timeout.ms. Records of "
        f"other producers after it wait, too. A finding for each partition, {NAMED} at most.",
        cause="A producer has not ended its transaction: it works in long transactions, is gone, or its transaction "
        "hangs.",
        action=general_action(Cause.OPEN_TRANSACTION),
        look=_open,
        explains=(*LATE, "group-not-synced"),
    ),
)
