"""Publish each flow's snapshot at its target, every few seconds.

Terminals anywhere can show the snapshot.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import closing

from sparkmirror.config import FlowConfig
from sparkmirror.errors import SparkMirrorError
from sparkmirror.events import Event
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.pump.messages.status_topic import status_topic
from sparkmirror.snapshot.snapshot import Snapshot
from sparkmirror.snapshot.status_topic import INTERVAL_S, StatusPublisher

MOST_SHARE = 0.02
"""Largest share of a core for making and writing snapshots.

Large snapshots come less often.
"""

_LOOK_S = 0.5

log = logging.getLogger(__name__)


class Publishing:
    """Publish one mirror's flows: `follow`, then `close`.

    Each flow has a thread, so that no target holds up another flow's snapshot.
    """

    def __init__(self, snapshot: Callable[[], Snapshot]) -> None:
        self._snapshot = snapshot
        self._closing = threading.Event()
        self._threads: list[threading.Thread] = []
        self._flows: dict[str, FlowConfig] = {}
        self._failing: dict[str, set[str]] = defaultdict(set)
        """Reasons that were told since a flow's status was last published."""

    def follow(self, flows: Iterable[FlowConfig]) -> None:
        """Publish exactly these flows from now on; cheap if nothing changed."""
        before, self._flows = self._flows, {flow.name: flow for flow in flows}
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        for name, flow in self._flows.items():
            if before.get(name) is not flow:
                self._failing.pop(name, None)
                self._threads.append(
                    threading.Thread(target=self._run, args=(flow,), name=f"status {name}", daemon=True)
                )
                self._threads[-1].start()

    def close(self, timeout_s: float = 2.0) -> None:
        """Publish once more, and stop."""
        self._closing.set()
        deadline = time.monotonic() + timeout_s
        for thread in self._threads:
            thread.join(max(deadline - time.monotonic(), 0.0))

    def _run(self, flow: FlowConfig) -> None:
        with closing(ClusterClient(flow.target, f"{flow.name}|sparkmirror-status")) as client:
            publisher = StatusPublisher(TopicLog(client, status_topic(flow.source.alias)))
            due = 0.0
            while self._flows.get(flow.name) is flow:
                last = self._closing.wait(_LOOK_S)
                if time.monotonic() < due and not last:
                    continue
                began = time.thread_time()
                self._turn(publisher, flow.name)
                due = time.monotonic() + max(INTERVAL_S, (time.thread_time() - began) / MOST_SHARE)
                if last:
                    return

    def _turn(self, publisher: StatusPublisher, name: str) -> None:
        try:
            for flow in self._snapshot().flows:
                if flow.flow == name:
                    publisher.turn(flow)
            self._failing.pop(name, None)
        except (ConnectionError, SparkMirrorError) as error:
            if str(error) not in self._failing[name]:
                log.warning(
                    "flow %s: its status can't be published, so that status, top, doctor and groups don't know it: %s",
                    name,
                    error,
                    extra=Event.STATUS_NOT_PUBLISHED.extra,
                )
            self._failing[name].add(str(error))
        except Exception:  # this thread must not end
            log.exception("flow %s: publishing its status", name, extra=Event.BACKGROUND_WORK_FAILED.extra)
