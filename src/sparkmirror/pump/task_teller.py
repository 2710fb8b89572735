"""Publish a task's words on moves, over a separate thread and connection.

Both are made at the first need, since most rounds have no moves.
"""

from __future__ import annotations

from collections.abc import Callable

from sparkmirror.config import FlowConfig
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.pump.background import Background
from sparkmirror.pump.loop import Loop
from sparkmirror.pump.messages.control import Control, control_topic
from sparkmirror.pump.messages.moves import TaskWords


class TaskTeller:
    """Publishes one task's words on one flow's moves."""

    def __init__(self, flow: FlowConfig, loop: Loop) -> None:
        self._flow = flow
        self._loop = loop
        self._made: tuple[Control, Background] | None = None

    def reach(self) -> None:
        """Connect, since there will be words soon."""
        if self._made is None:
            control, background = self._writer()
            background.do(control.reach, lambda _: None, lambda _: None)

    def tell(self, words: TaskWords, failed: Callable[[], None]) -> None:
        """Begin to write words; `failed` is called if they could not be written."""
        control, background = self._writer()
        background.do(lambda: control.tell(words), lambda _: None, lambda _: failed())

    def _writer(self) -> tuple[Control, Background]:
        if self._made is None:
            client = ClusterClient(self._flow.target, f"{self._flow.name}|sparkmirror-moves")
            control = Control(TopicLog(client, control_topic(self._flow.source.alias)))
            self._made = control, Background(self._loop, f"sparkmirror moves {self._flow.name}", (client,))
        return self._made

    def close(self) -> None:
        if self._made is not None:
            self._made[1].close()
