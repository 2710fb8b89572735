"""A flow's control topic, as its driver writes it.

All writes go through one client and one lock, so that no repeated record stands behind a newer record.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Callable, Iterable

from sparkmirror.config import FlowConfig
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.mirror.engine.done_topics import DoneTopics
from sparkmirror.pump.messages.control import TICK_S, Control, ControlState, Leader, Phase, Round, control_topic
from sparkmirror.pump.messages.moves import RouteMoves
from sparkmirror.pump.messages.orders import AddedRoutes, Receipt

log = logging.getLogger(__name__)


class DriverControl:
    """Write a flow's control topic for one driver; for any thread.

    The driver announces itself and its rounds' phases, and repeats the newest phase while it lives.
    """

    def __init__(self, flow: FlowConfig, incarnation: str, held: Callable[[], bool]) -> None:
        """Prepare the writer.

        `held` returns True while this process works on the flow; only then phases are repeated.
        """
        self.first_round: int | None = None
        """The driver's first round; the flow may have had another driver before."""
        self.done_topics = DoneTopics(lambda topic, done: self._control.done(topic, done))
        self._name = flow.name
        self._incarnation = incarnation
        self._held = held
        self._client = ClusterClient(flow.target, f"{flow.name}|sparkmirror-driver")
        self._log = TopicLog(self._client, control_topic(flow.source.alias))
        self._control = Control(self._log)
        self._rank: int | None = None
        """The process's rank as the leader; None without an announcement."""
        self._phase: tuple[int, Phase] | None = None
        """Round and phase to repeat; None before the first round and after an end."""
        self._lock = threading.Lock()

    def begin(self, *, announce: bool) -> tuple[ControlState, int | None]:
        """Read the topic; then, with `announce`, announce this process as the leader.

        Returns the topic's content before the announcement, and the leader's rank if announced.
        """
        state = ControlState()
        rank = None
        with self._lock:
            self._phase = None
            entries, offset = self._log.read(0, 0)
            state.apply(entries)
            self.done_topics.follow(self._log, ())
            if announce:
                self._demand_lease()
                rank = self._control.lead(
                    Leader(incarnation=self._incarnation, host=socket.gethostname(), pid=os.getpid())
                )
                # This process may have stood still since it read, while another had the lease.
                entries, _ = self._log.read(0, offset)
                state.apply(entry for entry in entries if entry.offset < rank)
                self._rank = rank
        return state, rank

    def say(self, round_number: int, phase: Phase) -> None:
        """Order a round's pumps to run or to end, or say that the round has ended.

        Raises `ConnectionError` for a round to be begun without the lease.
        """
        with self._lock:
            begins = phase == "running" and (round_number, phase) != self._phase
            if begins:
                self._demand_lease()
            if self.first_round is None:
                self.first_round = round_number
            self._phase = (round_number, phase) if phase != "ended" else None
            self._control.round(Round(incarnation=self._incarnation, number=round_number, phase=phase))
            if begins and self._rank is not None:
                self._take_back(self._rank)

    def _take_back(self, rank: int) -> None:
        """Take back what was said in earlier rounds.

        If that fails, the next round does it.
        """
        try:
            entries, _ = self._log.read(0, 0)
            self._control.take_back(entries, rank)
        except ConnectionError as error:
            log.debug("flow %s: words of earlier rounds stay: %s", self._name, error)

    def add(self, added: AddedRoutes) -> None:
        """Have running tasks copy more partitions.

        Raises `ConnectionError` without the lease.
        """
        with self._lock:
            self._demand_lease()
            self._control.add(added)

    def move(self, moves: RouteMoves) -> None:
        """Have running tasks release and copy partitions.

        Raises `ConnectionError` without the lease.
        """
        with self._lock:
            self._demand_lease()
            self._control.move(moves)

    def _demand_lease(self) -> None:
        """Keep words that waited for the lock from hiding a successor's words."""
        if not self._held():
            raise ConnectionError("the lease is no longer held")

    def follow_done_topics(self, reader: TopicLog, receipts: Iterable[Receipt]) -> None:
        """Have the done topics follow the control topic and the newest receipts."""
        with self._lock:
            self.done_topics.follow(reader, receipts)

    def beat(self, closing: threading.Event) -> None:
        """Repeat the newest phase until `closing` is set, and do no other work.

        Whatever else hangs, the pumps must hear that the driver lives.
        """
        while not closing.wait(TICK_S):
            try:
                self._repeat()
            except Exception as error:  # without ticks the pumps end by themselves (`SILENCE_S`)
                log.debug("flow %s: no tick: %s", self._name, error)

    def _repeat(self) -> None:
        with self._lock:
            if self._phase is not None and self._held():
                number, phase = self._phase
                self._control.round(Round(incarnation=self._incarnation, number=number, phase=phase))

    def finish(self) -> None:
        """Write the done topics' last progress, if this process works on the flow."""
        with self._lock:
            if self._held():
                self.done_topics.close(self._log)

    def close(self) -> None:
        self._client.close()
