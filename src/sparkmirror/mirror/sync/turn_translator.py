"""Translate offsets of topics that two opposite flows take turns with.

Each offset is in the map of the flow that copied the record there, or from there: the turns divide both logs among the
two maps. At a border between turns both maps agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from sparkmirror.config import FlowConfig
from sparkmirror.mirror.sync.application_translator import ApplicationTranslator, Stored, Translation


def opposite_of(flow: FlowConfig) -> FlowConfig:
    """Return the flow in the other direction, with the same settings otherwise.

    Its turn is the other one, if the flow takes turns.
    """
    turn = {"first": "second", "second": "first"}.get(flow.turn, "")
    return flow.model_copy(update={"source": flow.target, "target": flow.source, "turn": turn})


class TurnTranslator:
    """Translator between the clusters of two opposite flows; a context manager.

    For one thread. Both clusters are asked.
    """

    def __init__(self, flow: FlowConfig) -> None:
        """Take one of both flows."""
        first = flow if flow.turn != "second" else opposite_of(flow)
        self._first_source = first.source.alias
        self._stack = ExitStack()
        self._first = self._stack.enter_context(ApplicationTranslator.of(first))
        self._second = self._stack.enter_context(ApplicationTranslator.of(opposite_of(first)))

    def translate_each(self, stored: Sequence[Stored], cluster: str) -> list[Translation]:
        """Translate positions at a cluster, by its alias, to the other cluster.

        The results are in the order given. Raises `ClusterUnreachable`.
        """
        reverse = cluster != self._first_source
        answers = self._first.translate_each(stored, reverse=reverse)
        left = [number for number, answer in enumerate(answers) if answer.offset is None]
        if left:
            others = self._second.translate_each([stored[number] for number in left], reverse=not reverse)
            for number, other in zip(left, others, strict=True):
                if other.offset is not None or answers[number].reason == "":
                    answers[number] = other
        return answers

    def close(self) -> None:
        """Close the connections, and free the maps."""
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
