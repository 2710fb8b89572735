"""Publishing the snapshot of each flow at its target, every few seconds, so that terminals anywhere can show it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import closing

from sparkmirror.cluster.client import ClusterClient
from sparkmirror.cluster.topic_log import TopicLog
from sparkmirror.config import FlowConfig
from sparkmirror.engine.snapshot import Snapshot
from sparkmirror.engine.status_topic import INTERVAL_S, StatusPublisher
from sparkmirror.errors import SparkMirrorError
from sparkmirror.events import Event
from sparkmirror.messages.status_topic import status_topic

MOST_SHARE = 0.02
"""Of a core, for making snapshots and writing them: where they are large they come less often."""

_LOOK_S = 0.5

log = logging.getLogger(__name__)


class Publishing:
    """For one mirror: `follow` its flows, and `close`. A thread each, so that no target holds up another's."""

    def __init__(self, snapshot: Callable[[], Snapshot]) -> None:
        self._snapshot = snapshot
        self._closing = threading.Event()
        self._threads: list[threading.Thread] = []
        self._flows: dict[str, FlowConfig] = {}

    def follow(self, flows: Iterable[FlowConfig]) -> None:
        """Publish these flows from now on, and no others; cheap where they are the same."""
        before, self._flows = self._flows, {flow.name: flow for flow in flows}
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        for name, flow in self._flows.items():
            if before.get(name) is not flow:
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
        except (ConnectionError, SparkMirrorError) as error:
            log.debug("flow %s: its status can't be published: %s", name, error)
        except Exception:  # this thread must not end
            log.exception("flow %s: publishing its status", name, extra=Event.BACKGROUND_WORK_FAILED.extra)
