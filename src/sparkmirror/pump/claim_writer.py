"""Writer of one flow's claims, before their batches, and again once acknowledged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain

from sparkmirror.cluster.client import ClusterClient
from sparkmirror.cluster.topic_log import TopicLog
from sparkmirror.config import FlowConfig
from sparkmirror.durable.claim_log import SegmentLog
from sparkmirror.durable.claims import Segment, segments_topic
from sparkmirror.pump.background import Background
from sparkmirror.pump.batch import Claim
from sparkmirror.pump.loop import Loop
from sparkmirror.pump.partition import PartitionCopy

CONFIRM_S = 1.0
"""Interval of writing confirmed claims, their greatest distance behind the copy."""


class ClaimWriter:
    """Writer of one flow's claims.

    The thread is for claims only, since a live tail with gaps waits for claims. Claims that come while others are being
    written are written next, all at once.
    `on_claimed` is called for each partition with a claim that has become durable, `on_unclaimed` with the reason.
    """

    def __init__(
        self,
        flow: FlowConfig,
        loop: Loop,
        client: ClusterClient,
        *,
        on_claimed: Callable[[PartitionCopy], None],
        on_unclaimed: Callable[[PartitionCopy, str], None],
    ) -> None:
        self._loop = loop
        self._log = SegmentLog(TopicLog(client, segments_topic(flow.source.alias)))
        self._background = Background(loop, f"sparkmirror claims {flow.name}", (client,))
        self._on_claimed = on_claimed
        self._on_unclaimed = on_unclaimed
        self.wanted: dict[PartitionCopy, tuple[Claim, ...]] = {}
        """Claims to write at the next `flush`."""
        self._writing = False
        """True while claims are being written."""
        self._to_confirm: dict[PartitionCopy, list[Segment]] = {}
        self._confirm_at = 0.0

    def want(self, copy: PartitionCopy, claims: tuple[Claim, ...]) -> None:
        """Have these claims of a partition written next, and no others."""
        if claims:
            self.wanted[copy] = claims
        elif copy in self.wanted:
            del self.wanted[copy]

    def confirm(self, copy: PartitionCopy, claims: Iterable[Segment]) -> None:
        """Have acknowledged claims written again, soon."""
        self._to_confirm.setdefault(copy, []).extend(claims)

    def confirm_only(self, copy: PartitionCopy, end: int) -> None:
        """Keep for confirmation only claims up to `end`; records beyond may be lost since."""
        claims = self._to_confirm.pop(copy, ())
        if kept := [claim for claim in claims if claim.sequence + claim.announced <= end]:
            self._to_confirm[copy] = kept

    def confirm_none_at(self, broker: int) -> None:
        """Keep no claims on partitions of a target broker: their leader may change."""
        for copy in [copy for copy in self._to_confirm if copy.is_led_by(broker)]:
            del self._to_confirm[copy]

    def flush(self) -> None:
        """Begin to write what is wanted."""
        if self.wanted and not self._writing:
            self._writing = True
            begun, self.wanted = self.wanted, {}
            for copy, claims in begun.items():
                copy.claiming(len(claims))
            segments = [claim.segment for claim in chain.from_iterable(begun.values())]
            self._background.do(
                lambda: self._log.claim(segments),
                lambda _: self._claimed(begun),
                lambda error: self._unclaimed(list(begun), error),
            )
        if self._to_confirm and self._loop.now >= self._confirm_at:
            self._write_confirmed()

    def _write_confirmed(self) -> None:
        """Write acknowledged claims again, confirmed; failures cost a look at the log."""
        segments = list(chain.from_iterable(self._to_confirm.values()))
        self._to_confirm.clear()
        self._confirm_at = self._loop.now + CONFIRM_S
        self._background.do(lambda: self._log.claim(segments), lambda _: None, lambda _: None)

    def _claimed(self, claims: dict[PartitionCopy, tuple[Claim, ...]]) -> None:
        self._writing = False
        for copy, written in claims.items():
            for claim in written:
                claim.durable = True
            self._on_claimed(copy)

    def _unclaimed(self, copies: Sequence[PartitionCopy], error: Exception) -> None:
        self._writing = False
        for copy in copies:
            self._on_unclaimed(copy, f"its claim could not be written: {error}")

    def close(self) -> None:
        self._background.close()
