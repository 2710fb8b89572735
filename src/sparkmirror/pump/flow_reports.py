"""One flow's receipts and figures in one pump, with the reasons for long waits.

A receipt is made again only for a partition that had an event, or with something under way: thousands of receipts for
partitions at rest, each second, were an idle pump's largest cost.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from sparkmirror.exact.position.cause import Cause
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.pump.broker_connection import BrokerConnection
from sparkmirror.pump.copies import PartitionCopies
from sparkmirror.pump.loop import Loop
from sparkmirror.pump.messages.control import ControlState
from sparkmirror.pump.messages.figures import PartitionFigures
from sparkmirror.pump.messages.orders import PartitionState, Receipt, RouteOrder
from sparkmirror.pump.partition import PartitionCopy
from sparkmirror.pump.receipt_of import STATES, receipt_of
from sparkmirror.pump.source_connections import SourceConnections
from sparkmirror.pump.stage import Stage
from sparkmirror.pump.tally import Tally
from sparkmirror.pump.target_connections import TargetConnections

SLOW_S = 5.0
"""Time after which a reading, connection or throttle is worth telling as a reason."""

_LEFT = "another task copies it from now on"


class FlowNews(NamedTuple):
    """Changes since the last report, and figures for the whole flow."""

    changed: list[Receipt]
    """Receipts that differ from the last report's."""
    lag: int
    """Upstream offsets without acknowledgement, in all partitions together."""
    waiting: str
    """Reason why a partition is not copied now, if any."""
    in_flight: int
    """Number of records fetched and not yet acknowledged."""


class FlowReports:
    """Makes one flow's receipts and figures."""

    def __init__(
        self,
        flow: str,
        loop: Loop,
        copies: PartitionCopies,
        tally: Tally,
        sources: SourceConnections,
        targets: TargetConnections,
    ) -> None:
        self._flow = flow
        self._loop = loop
        self._copies = copies
        self._tally = tally
        self._sources = sources
        self._targets = targets
        self._began = loop.now
        self.touched: set[PartitionCopy] = set()
        """Partitions with an event since the last `news`, or not at rest then."""
        self._left: dict[TopicPartition, Receipt] = {}
        """Each partition's last receipt, once it has left for another task.

        It stays if the partition comes back.
        """
        self._left_untold: list[Receipt] = []
        self._told: dict[PartitionCopy, Receipt] = {}
        """Each partition's newest reported receipt."""
        self._reasons: dict[PartitionCopy, str] = {}
        """Reasons why partitions are not copied now."""
        self._lag = 0
        self._were_slow = True

    def news(self, control: ControlState | None, *, all_again: bool) -> FlowNews:
        """Return what has changed since the last call.

        With `all_again` no partition counts as unchanged because nothing happened to it.
        """
        slow = control is None or self._sources.is_any_slow(SLOW_S) or self._targets.is_any_slow(SLOW_S)
        copies = self._copies.all if all_again or slow or self._were_slow else list(self.touched)
        self._were_slow = slow  # the reasons that a slow connection gave end with no event of the partitions
        self.touched = {copy for copy in copies if not copy.is_at_rest}
        changed, self._left_untold = self._left_untold, []
        for copy in copies:
            receipt, before = self._receipt(copy, control), self._told.get(copy)
            if receipt == before:
                continue
            changed.append(receipt)
            self._told[copy] = receipt
            self._lag += _lag(receipt) - (_lag(before) if before is not None else 0)
            if receipt.reason and receipt.state != "done":
                self._reasons[copy] = receipt.reason
            else:
                self._reasons.pop(copy, None)
        waiting = min(self._reasons.values(), default="")
        return FlowNews(changed, self._lag, waiting, sum(copy.waiting_records for copy in self.touched))

    def tell_again(self) -> None:
        """Have the next news tell each partition's receipt: the driver lacks some."""
        present = {copy.route.source for copy in self._copies.all}
        self._left_untold = [receipt for source, receipt in self._left.items() if source not in present]
        self._told.clear()
        self._reasons.clear()
        self._lag = 0
        self.touched.update(self._copies.all)

    def receipts(self, control: ControlState | None) -> list[Receipt]:
        """Return each partition's present receipt; `control` is None if not read yet.

        A partition that had left and is here again has two, of which the newest counts all records.
        """
        back = {copy.route.source for copy in self._copies.all}
        left = [
            receipt.model_copy(update={"records": 0, "bytes": 0}) if source in back else receipt
            for source, receipt in self._left.items()
        ]
        return [*left, *(self._receipt(copy, control) for copy in self._copies.all)]

    def leave(self, copy: PartitionCopy) -> None:
        """Keep the last receipt of a partition that another task copies from now on."""
        last = self._receipt_of(copy, "waiting", _LEFT, Cause.POSITION).model_copy(update={"released": True})
        self._left[copy.route.source] = last
        self._left_untold.append(last)
        self.touched.discard(copy)
        self._reasons.pop(copy, None)
        if (told := self._told.pop(copy, None)) is not None:
            self._lag -= _lag(told)

    def pass_on(self, route: RouteOrder) -> None:
        """Keep a receipt for a partition that was released, but never copied here.

        An earlier attempt may have copied it, so the round's end may be in doubt.
        """
        receipt = Receipt(
            flow=self._flow,
            source_topic=route.source_topic,
            target_topic=route.target_topic,
            partition=route.partition,
            state="waiting",
            reason=_LEFT,
            cause=Cause.POSITION,
            upstream=route.passed[0],
            downstream=route.passed[1],
            target_topic_id=route.target_topic_id,
            appended=route.appended,
            released=True,
        )
        self._left.setdefault(route.route.source, receipt)

    def _receipt(self, copy: PartitionCopy, control: ControlState | None) -> Receipt:
        if copy.stage is Stage.RUNNING and control and control.is_paused(copy.route.source_topic):
            return self._receipt_of(copy, "waiting", "paused", Cause.PAUSED)
        trouble = copy.trouble
        reason, cause = (trouble.reason, trouble.cause) if trouble.reason else self._wait(copy, control)
        return self._receipt_of(copy, STATES[copy.stage], reason, cause)

    def _receipt_of(self, copy: PartitionCopy, state: PartitionState, reason: str, cause: Cause) -> Receipt:
        receipt = receipt_of(self._flow, copy, state, reason, cause, self._copies.moves[copy])
        before = self._left.get(copy.route.source)
        if before is None:
            return receipt
        counts = {"records": receipt.records + before.records, "bytes": receipt.bytes + before.bytes}
        return receipt.model_copy(update=counts)

    def figures(self, receipts: Iterable[Receipt]) -> list[PartitionFigures]:
        copies = [self._copies.of((receipt.source_topic, receipt.partition)) for receipt in receipts]
        return [
            self._tally.figures(copy.route.source, copy.oldest_ms, self._loop.now)
            for copy in copies
            if copy is not None
        ]

    def _wait(self, copy: PartitionCopy, control: ControlState | None) -> tuple[str, Cause]:
        """Return the reason and the cause if a wait is long."""
        now = self._loop.now
        if copy.asked_at is not None and now - copy.asked_at > SLOW_S:
            return "its position is being read", Cause.POSITION
        if control is None and now - self._began > SLOW_S:
            return "pauses and caps are not known yet: the flow's control topic is being read", Cause.POSITION
        source = self._sources.fetching.get(copy)
        if source is not None and source.refusal:
            return source.refusal, Cause.BROKER
        connections: list[BrokerConnection | None] = [source]
        if copy.queue:
            connections.insert(0, self._targets.of(copy))
        for connection in filter(None, connections):
            if connection.throttled_s > SLOW_S:
                asked = f"it is asked again in {connection.throttled_s:.0f} s"
                return f"{connection.peer} throttles sparkmirror (a quota there): {asked}", Cause.THROTTLED
            if connection.dialing_s > SLOW_S:
                return f"{connection.peer} is being connected to", Cause.UNREACHABLE
        return "", Cause.NONE


def _lag(receipt: Receipt) -> int:
    return max(receipt.source_end - receipt.upstream, 0) if receipt.upstream >= 0 else 0
