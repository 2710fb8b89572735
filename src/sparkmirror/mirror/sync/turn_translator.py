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
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.kafka.cluster.range_reader import OffsetBounds
from sparkmirror.mirror.sync.application_translator import ApplicationTranslator, Stored, Translation


def opposite_of(flow: FlowConfig) -> FlowConfig:
    """Return the flow in the other direction, with the same settings otherwise.

    Its turn is the other one, if the flow takes turns.
    """
    turn = {"first": "second", "second": "first"}.get(flow.turn, "")
    return flow.model_copy(update={"source": flow.target, "target": flow.source, "turn": turn})


class TurnTranslator:
    """Translator of a flow that takes turns, by both flows' maps; a context manager.

    For one thread. The cluster with the opposite flow's map is asked for what the flow's own map lacks.
    """

    def __init__(self, flow: FlowConfig) -> None:
        self._stack = ExitStack()
        self._own = self._stack.enter_context(ApplicationTranslator.of(flow))
        self._opposite = self._stack.enter_context(ApplicationTranslator.of(opposite_of(flow)))

    def translate(self, topic: str, partition: int, offset: int, *, reverse: bool = False) -> Translation:
        """Translate one position; as `translate_each`."""
        return self.translate_each([Stored(topic, partition, offset)], reverse=reverse)[0]

    def translate_each(self, stored: Sequence[Stored], *, reverse: bool = False) -> list[Translation]:
        """Translate positions at the flow's source to its target, or back with `reverse`.

        The results are in the order given. If the opposite flow's map can't be read, reasons say so. Raises
        `ClusterUnreachable`.
        """
        answers = self._own.translate_each(stored, reverse=reverse)
        left = [number for number, answer in enumerate(answers) if answer.offset is None]
        if left:
            try:
                others = self._opposite.translate_each([stored[number] for number in left], reverse=not reverse)
            except ClusterUnreachable as error:  # as in a failover: what the own map tells counts
                for number in left:
                    mine = answers[number]
                    answers[number] = mine._replace(reason=f"{mine.reason}; the opposite flow's map: {error}")
                return answers
            for number, other in zip(left, others, strict=True):
                if other.offset is not None or answers[number].reason == "":
                    answers[number] = other
        return answers

    def passed_over(self, stored: Sequence[Stored]) -> list[OffsetBounds | None]:
        """Return the source offsets that a move from each position passes over.

        The own map tells: what has its place from the opposite flow's map was not copied to the target. Raises
        `ClusterUnreachable`.
        """
        return self._own.passed_over(stored)

    def close(self) -> None:
        """Close the connections, and free the maps."""
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


FlowTranslator = ApplicationTranslator | TurnTranslator


def translator_of(flow: FlowConfig) -> FlowTranslator:
    """Return the translator between a flow's clusters, by all maps that tell."""
    return TurnTranslator(flow) if flow.turn else ApplicationTranslator.of(flow)
