"""Offsets of topics with turns where the opposite flow's map can't be read; two stand-ins answer for the maps."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.kafka.cluster.range_reader import OffsetBounds
from sparkmirror.mirror.sync.application_translator import ApplicationTranslator, Stored, Translation
from sparkmirror.mirror.sync.turn_translator import TurnTranslator

A, B = (ClusterConfig(alias=alias, bootstrap_servers=("127.0.0.1:1",)) for alias in "AB")
UNKNOWN = Translation("orders", 0, None, "nothing was copied yet")


class PlayedMap(ApplicationTranslator):
    """A map that knows the offsets below 10, in one direction, or a cluster that is gone."""

    def __init__(self, *, is_gone: bool) -> None:
        self._is_gone = is_gone

    def translate_each(self, stored: Sequence[Stored], *, reverse: bool = False) -> list[Translation]:
        if self._is_gone:
            raise ClusterUnreachable("cluster A: no broker answers")
        return [
            Translation("orders", 0, one.offset + 100) if one.offset < 10 and not reverse else UNKNOWN for one in stored
        ]

    def passed_over(self, stored: Sequence[Stored]) -> list[OffsetBounds | None]:
        if self._is_gone:
            raise ClusterUnreachable("cluster A: no broker answers")
        return [OffsetBounds(one.offset, 3) if one.offset < 3 else None for one in stored]

    def close(self) -> None:
        """Close nothing."""


def translator(monkeypatch: pytest.MonkeyPatch, gone: str) -> TurnTranslator:
    def played(flow: FlowConfig) -> PlayedMap:
        return PlayedMap(is_gone=flow.target.alias == gone)

    monkeypatch.setattr(ApplicationTranslator, "of", played)
    return TurnTranslator(FlowConfig(source=A, target=B, turn="first"))


def test_what_the_own_map_tells_counts_without_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a failover; what it lacks says that the opposite flow's map was not read."""
    with translator(monkeypatch, "A") as turns:
        known, unknown = turns.translate_each([Stored("orders", 0, 5), Stored("orders", 0, 50)])
    assert known == Translation("orders", 0, 105)
    reason = "nothing was copied yet; the opposite flow's map: cluster A: no broker answers"
    assert unknown == UNKNOWN._replace(reason=reason)


def test_what_the_target_lacks_is_in_the_own_map(monkeypatch: pytest.MonkeyPatch) -> None:
    with translator(monkeypatch, "A") as turns:
        assert turns.passed_over([Stored("orders", 0, 2), Stored("orders", 0, 5)]) == [(2, 3), None]


def test_without_the_own_map_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with translator(monkeypatch, "B") as turns, pytest.raises(ClusterUnreachable):
        turns.translate("orders", 0, 5)
