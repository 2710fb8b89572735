"""Lines on what a flow has not copied at the end of a run, for `--once`."""

from __future__ import annotations

from collections.abc import Iterable

from sparkmirror.durable.losses import LossKind
from sparkmirror.engine.flow_driver import FlowDriver
from sparkmirror.messages.orders import Receipt

INCOMPLETE = frozenset({LossKind.EXPIRED, LossKind.TRUNCATED})
"""Losses that make the copy incomplete with `once`.

The copy went on behind such losses (`docs/losses.md`).
"""


def missing_of(driver: FlowDriver, known: Iterable[str]) -> list[str]:
    """Return a line for each thing that a flow has not copied, `known` lines first."""
    return [
        *known,
        *(f"{driver.name}: {what} was not copied: {why}" for what, why in sorted(driver.owed.items())),
        *(_stopped(driver.name, receipt) for receipt in driver.view.receipts if receipt.state == "parked"),
        *(
            f"{driver.name}: {loss.kind}: {loss.words}"
            for loss in driver.losses
            if loss.kind in INCOMPLETE and loss.action != "halted"
        ),
    ]


def _stopped(flow: str, receipt: Receipt) -> str:
    partition = f"{flow}: {receipt.source_topic}-{receipt.partition}"
    if receipt.halted:
        return f"{partition} is halted ({receipt.halted}): {receipt.reason}"
    return f"{partition} stopped at offset {receipt.upstream}: {receipt.reason}"
