"""Watch over copies at rest: the target may lose records that it had acknowledged.

An unclean election takes acknowledged records away. A partition that sends notices it by the next answer; a partition
at rest would be told as caught up until its next record. So the high watermarks of copies at rest are compared with
what is known of them (R10).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from sparkmirror.exact.position.cause import Cause, cause_of_error
from sparkmirror.exact.position.target_reading import by_topic
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.error_names import error_name
from sparkmirror.kafka.cluster.list_offsets import LATEST, ListedOffset, list_offsets
from sparkmirror.pump.background import Background
from sparkmirror.pump.loop import Loop
from sparkmirror.pump.partition import PartitionCopy

LOOK_S = 2.0
"""Seconds between two looks."""

AT_ONCE = 100
"""Most partitions in one look; the looks go through all copies in turn.

So a look's cost does not grow with the number of partitions: 4,000 of them in four tasks are all seen in 20 s.
"""


class IdleWatch:
    """Watch one flow's copies at rest, in a separate thread.

    A hanging broker must not delay the reading of other brokers' partitions. `on_doubt` is called with a copy whose
    high watermark is too low or can't be read, with the reason and the cause.
    """

    def __init__(
        self,
        name: str,
        loop: Loop,
        client: ClusterClient,
        copies: Sequence[PartitionCopy],
        on_doubt: Callable[[PartitionCopy, str, Cause], None],
    ) -> None:
        self._loop = loop
        self._client = client
        self._copies = copies
        self._on_doubt = on_doubt
        self._background = Background(loop, f"sparkmirror idle {name}", (client,))
        self._look_at = loop.now + LOOK_S
        self._next = 0
        """Index of the copy at which the next look begins."""

    def check(self) -> None:
        """Begin a look, if it is time."""
        if self._loop.now < self._look_at:
            return
        asked = {copy: copy.rests_at for copy in self._pick()}
        led: dict[int, list[PartitionCopy]] = defaultdict(list)
        for copy, rests_at in asked.items():
            if copy.reading is not None and rests_at is not None:
                led[copy.reading.target_leader].append(copy)
        self._look_at = float("inf") if led else self._loop.now + LOOK_S
        if led:
            self._background.do(
                lambda: self._marks(led),
                lambda marks: self._compare(asked, marks),
                lambda _: self._compare(asked, {}),
            )

    def _pick(self) -> Sequence[PartitionCopy]:
        begin = self._next if self._next < len(self._copies) else 0
        picked = self._copies[begin : begin + AT_ONCE]
        self._next = begin + len(picked)
        return picked

    def _marks(self, led: Mapping[int, Sequence[PartitionCopy]]) -> dict[PartitionCopy, ListedOffset | str]:
        """Return each copy's high watermark, or the reason why it can't be had."""
        marks: dict[PartitionCopy, ListedOffset | str] = {}
        for leader, copies in led.items():
            try:
                if leader not in self._client.brokers:
                    self._client.metadata(())
                listed = list_offsets(self._client, leader, by_topic(copy.route.target for copy in copies), LATEST)
            except ConnectionError as error:
                marks |= dict.fromkeys(copies, str(error))
            else:
                marks |= {copy: listed[copy.route.target] for copy in copies}
        return marks

    def _compare(
        self, asked: Mapping[PartitionCopy, int | None], marks: Mapping[PartitionCopy, ListedOffset | str]
    ) -> None:
        self._look_at = self._loop.now + LOOK_S
        for copy, mark in marks.items():
            rests_at = asked[copy]
            if rests_at is None or copy.rests_at != rests_at:
                continue  # the copy has sent or read since
            if isinstance(mark, str):
                self._on_doubt(copy, mark, Cause.UNREACHABLE)
            elif mark.error:
                self._on_doubt(copy, f"the target's leader: {error_name(mark.error)}", cause_of_error(mark.error))
            elif mark.offset < rests_at:
                why = f"the target's high watermark is at {mark.offset}, below offset {rests_at} that was acknowledged"
                self._on_doubt(copy, why, Cause.POSITION)

    def close(self) -> None:
        self._background.close()
