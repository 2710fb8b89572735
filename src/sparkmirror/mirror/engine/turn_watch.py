"""Watch of the opposite flow's words, where two flows take turns (M1).

The opposite flow's control topic is at this flow's source.
"""

from __future__ import annotations

import logging
import threading

from sparkmirror.config import FlowConfig
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.exact.durable.claim_log import ClaimLog
from sparkmirror.exact.durable.claims import segments_topic
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import LogUnavailable, TopicLog
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.mirror.engine.done_topics import DoneTopics
from sparkmirror.mirror.sync.turn_order import FlowWords, TurnSide, whose_turn, words_in
from sparkmirror.pump.messages.control import ControlState, control_topic

LOOK_S = 1.0
"""Seconds between two looks at the opposite flow's words."""

FIRST_S = 15.0
"""Longest wait for the first look, in seconds."""

log = logging.getLogger(__name__)


class TurnWatch:
    """A flow's view of whose turn it is; `watch` runs in its own thread.

    Until the opposite flow's words are read, all topics of a flow with turns wait.
    """

    def __init__(self, flow: FlowConfig, own: DoneTopics) -> None:
        """Take the flow, and its own words."""
        self.changed = False
        """True if the opposite flow has said something since the flow's last look."""
        self.opposite: int | None = None
        """The opposite flow's producer id at this flow's source; None: it has none yet."""
        self._flow = flow
        self._side = TurnSide(flow.turn) if flow.turn else None
        self._own = own
        self._theirs = ControlState()
        self._is_read = threading.Event()
        self._trouble = ""

    def waits(self, topic: str) -> bool:
        """True if a source topic is not to be copied, as it is not the flow's turn.

        A later turn needs the opposite flow's producer id: its copies must not go back.
        """
        if self._side is None:
            return False
        if not self._is_read.is_set():
            return True
        own, theirs = self._own.words(topic), words_in(self._theirs, topic)
        if own.begun is not None and own.begun.starts and self.opposite is None:
            return True
        return not whose_turn(*self._in_order(own, theirs)).copies(self._side)

    def _in_order(self, own: FlowWords, theirs: FlowWords) -> tuple[FlowWords, FlowWords]:
        return (own, theirs) if self._side is TurnSide.FIRST else (theirs, own)

    def await_words(self) -> None:
        """Wait until the opposite flow's words are read for the first time.

        Raises `ClusterUnreachable` if that takes long. Without words a run with `once` would copy nothing.
        """
        if self._side is not None and not self._is_read.wait(FIRST_S):
            raise ClusterUnreachable(
                f"flow {self._flow.name}: whose turn it is can't be read at {self._flow.source.alias}: "
                f"{self._trouble or f'no answer within {FIRST_S:.0f} s'}"
            )

    def watch(self, closing: threading.Event) -> None:
        """Read the opposite flow's words until `closing` is set."""
        client = ClusterClient(self._flow.source, f"{self._flow.name}|sparkmirror-turns")
        control = TopicLog(client, control_topic(self._flow.target.alias))
        claims = ClaimLog(TopicLog(client, segments_topic(self._flow.target.alias)))
        offset = 0
        while True:
            try:
                offset = self.read(control, offset)
                if self.opposite is None:
                    self._learn_opposite(client, claims)
            except Exception as error:  # the thread must not end; until it reads, topics wait or go on as they did
                self._trouble = str(error)
                log.debug("flow %s: the opposite flow's words can't be read: %s", self._flow.name, error)
            if closing.wait(LOOK_S):
                break
        client.close()

    def read(self, control: TopicLog, offset: int) -> int:
        """Read on in the opposite flow's control topic; return the next offset to read."""
        try:
            entries, offset = control.read(0, offset)
        except LogUnavailable as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            entries = []  # the opposite flow never ran
        before = self._is_read.is_set(), dict(self._theirs.turns), dict(self._theirs.done)
        self._theirs.apply(entries)
        self.changed |= before != (True, self._theirs.turns, self._theirs.done)
        self._is_read.set()
        for topic, begun in self._theirs.turns.items():
            self._own.overtake(topic, begun)
        return offset

    def _learn_opposite(self, client: ClusterClient, claims: ClaimLog) -> None:
        try:
            identity = claims.agree(client.cluster_id, None)
        except LogUnavailable as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            return
        if identity is not None:
            self.opposite, self.changed = identity.producer_id, True
