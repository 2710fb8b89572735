"""A run's completion: finished flows, and records that were not copied."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from sparkmirror.errors import CopyIncomplete, SparkMirrorError
from sparkmirror.exact.durable.losses import LossKind
from sparkmirror.mirror.engine.flow_driver import FlowDriver
from sparkmirror.mirror.takeover.from_mm1 import GroupTakeover
from sparkmirror.pump.messages.orders import Receipt

INCOMPLETE = frozenset({LossKind.EXPIRED, LossKind.TRUNCATED})
"""Losses that make the copy incomplete with `once`.

The copy continued behind such losses (`docs/losses.md`).
"""


class Completion:
    """Flows finished with `once`, and failures that end the run."""

    def __init__(self) -> None:
        self._finished: set[str] = set()
        self._notes: defaultdict[str, list[str]] = defaultdict(list)
        """Lines on things that were not copied, by flow."""
        self._aborted: list[str] = []

    def finish(self, driver: FlowDriver) -> None:
        """Finish a flow with `once`: no work is left."""
        self._finished.add(driver.name)
        try:
            driver.reports.loss_watch.read()
        except (ConnectionError, SparkMirrorError) as error:
            self._notes[driver.name].append(
                f"{driver.name}: the loss ledger can't be read, so losses are not known: {error}"
            )
        topics = driver.topics
        nothing = topics.matches.nothing  # topics that wait for their turn match
        if nothing and not driver.partitions() and not topics.owed and not topics.done_topics.released:
            self._notes[driver.name].append(f"{driver.name}: {nothing}")

    def is_finished(self, flow: str) -> bool:
        return flow in self._finished

    def are_finished(self, drivers: Sequence[FlowDriver]) -> bool:
        return len(self._finished) == len(drivers)

    def abort(self, lines: list[str]) -> None:
        """Note partitions whose failure ends the run, a line each."""
        self._aborted = lines

    def demand_no_abort(self) -> None:
        """Raise `CopyIncomplete` if a partition's failure ended the run."""
        if self._aborted:
            raise CopyIncomplete("\n".join(f"{line}; stopped (abort.on.send.failure)" for line in self._aborted))

    def demand_all_copied(self, drivers: Iterable[FlowDriver]) -> None:
        """Raise `CopyIncomplete` if anything was not copied."""
        lines = [line for driver in drivers for line in self.missing(driver)]
        if lines:
            raise CopyIncomplete("\n".join(lines))

    def missing(self, driver: FlowDriver) -> list[str]:
        """Return a line for each thing that a flow has not copied."""
        return [*self._notes.get(driver.name, ()), *_missing(driver)]


def _missing(driver: FlowDriver) -> Iterator[str]:
    for what, why in sorted(driver.topics.owed.items()):
        yield f"{driver.name}: {what} was not copied: {why}"
    for receipt in driver.view.receipts:
        if receipt.state == "parked":
            yield _stopped(driver.name, receipt)
    for loss in driver.reports.loss_watch.added:
        if loss.kind in INCOMPLETE and loss.action != "halted":
            yield f"{driver.name}: {loss.kind}: {loss.words}"


def _stopped(flow: str, receipt: Receipt) -> str:
    partition = f"{flow}: {receipt.source_topic}-{receipt.partition}"
    if receipt.halted:
        return f"{partition} is halted ({receipt.halted}): {receipt.reason}"
    if receipt.upstream < 0:
        return f"{partition} is not copied: {receipt.reason}"
    return f"{partition} stopped at offset {receipt.upstream}: {receipt.reason}"


def send_failure(driver: FlowDriver) -> str:
    """Return a partition whose failure must end the mirror, with the reason.

    Empty if there is none, and without `abort.on.send.failure`.
    """
    legacy, takeover = driver.flow.legacy, driver.topics.takeover
    if legacy is None or not legacy.abort_on_send_failure:
        return ""
    awaited = takeover.awaited if isinstance(takeover, GroupTakeover) else ()
    parked = [
        receipt for receipt in driver.view.receipts if receipt.state == "parked" and receipt.reason not in awaited
    ]
    return next((f"{receipt.source_topic}-{receipt.partition}: {receipt.reason}" for receipt in parked), "")
