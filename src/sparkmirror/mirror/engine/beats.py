"""Heartbeats of a pair of clusters that copies nothing (`mm2.md` 1.4, 1.6).

Heartbeats that arrive along a flow show that the flow works. The pair in the other direction writes them into the
flow's source. As in MirrorMaker 2, a single process sends them, even if several run.
"""

from __future__ import annotations

import logging
import threading
from contextlib import closing

from sparkmirror.config import FlowConfig
from sparkmirror.errors import SparkMirrorError
from sparkmirror.events import Event
from sparkmirror.mirror.engine.duties import LONGEST_RETRY_S, Duties, Schedule
from sparkmirror.mirror.engine.lease import Lease
from sparkmirror.mirror.sync.heartbeat_duty import Heartbeats
from sparkmirror.mirror.sync.topic_rules import topic_rules

HEARTBEATS = "heartbeats"

log = logging.getLogger(__name__)


class Beats:
    """Send a pair's heartbeats: `start`, then `close`.

    Failures are tried again and hold up no caller.
    """

    def __init__(self, flow: FlowConfig) -> None:
        self.flow = flow
        self._policy = topic_rules(flow).policy
        self._closing = threading.Event()
        self._why = ""
        self._lease = Lease(
            flow.target,
            f"{flow.source.alias}-mm2",
            self._policy.heartbeats_topic(),
            flow.group_session_timeout_ms,
        )
        schedule = Schedule(
            name=HEARTBEATS, interval_s=flow.heartbeat.emit_heartbeats_interval_seconds, make=self._heartbeats
        )
        self._duties = Duties(flow.name, [schedule], self._lease.held)
        self._thread = threading.Thread(target=self._begin, name=f"{HEARTBEATS} {flow.name}", daemon=True)

    @property
    def name(self) -> str:
        return self.flow.name

    def held(self) -> bool:
        """True if this process sends the heartbeats."""
        return self._lease.held()

    @property
    def standing_by(self) -> str:
        """Reason in a few words why this process does not send the heartbeats."""
        if self._lease.refused:
            return f"standing by: {self._lease.refused}"
        return "standing by: another process sends the heartbeats" if self._lease.elsewhere else "joining"

    @property
    def failing(self) -> str:
        """Reason in a single line why the last heartbeat failed; empty after a success."""
        return self._duties.failing.get(HEARTBEATS, self._why)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Stop sending, and give up the lease to another process."""
        self._closing.set()
        self._duties.close(1.0)
        self._lease.release(1.0)

    def _begin(self) -> None:
        """Create the heartbeats topic, then start: the lease needs an existing topic."""
        pause_s = 1.0
        while not self._closing.is_set():
            why, unforeseen = "", False
            try:
                with closing(self._heartbeats()) as heartbeats:
                    heartbeats.create()
            except (ConnectionError, SparkMirrorError) as error:
                why = str(error)
            except Exception as error:  # a policy's class may raise anything
                why, unforeseen = repr(error), True
            if why and why != self._why:
                words = "pair %s: %s: %s", self.flow.name, HEARTBEATS, why
                log.warning(*words, exc_info=unforeseen, extra=Event.HEARTBEATS_FAILED.extra)
            self._why = why
            if not why:
                self._lease.start()
                self._duties.start()
                return
            self._closing.wait(pause_s)
            pause_s = min(2 * pause_s, LONGEST_RETRY_S)

    def _heartbeats(self) -> Heartbeats:
        return Heartbeats(self.flow, self._policy)
