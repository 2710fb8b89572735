"""Look at whether the clusters of flows that a round leaves out answer again.

The look has its own thread and connections: a cluster that hangs delays no flow that works.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence

from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.errors import SparkMirrorError
from sparkmirror.kafka.cluster.client import ClusterClient

PAUSE_S = 5.0
"""Seconds between two looks."""


class LeftOutFlows:
    """Watch over flows whose clusters could not be reached.

    A context manager. `is_back` becomes true at the earliest `first_s` seconds after the beginning.
    """

    def __init__(self, flows: Sequence[FlowConfig], first_s: float) -> None:
        self.is_back = False
        """True once both clusters of a flow answer."""
        self._flows = flows
        self._first_s = first_s
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sparkmirror left-out flows", daemon=True)

    def __enter__(self) -> LeftOutFlows:
        if self._flows:
            self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._closing.set()

    def _run(self) -> None:
        pause_s = self._first_s
        while not self._closing.wait(pause_s):
            pause_s = PAUSE_S
            if any(_answers(flow.source) and _answers(flow.target) for flow in self._flows):
                self.is_back = True
                return


def _answers(cluster: ClusterConfig) -> bool:
    with contextlib.closing(ClusterClient(cluster, "sparkmirror-left-out")) as client:
        try:
            client.metadata([])
        except (ConnectionError, SparkMirrorError):
            return False
    return True
