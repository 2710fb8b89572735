"""Topics that may hold offsets of a MirrorMaker 2 and can't be read: named once, in one line."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import cast

import pytest

from sparkmirror.config import ClusterConfig
from sparkmirror.exact.mm2 import stored_offsets
from sparkmirror.exact.mm2.stored_offsets import StoredOffsets, read_stored_offsets
from sparkmirror.kafka.cluster.client import ClusterClient, TopicLeaders
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.topic_ids import NO_ID

FORBIDDEN, MISSING = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class Described:
    """A client that only describes topics."""

    config = ClusterConfig(alias="dc2", bootstrap_servers=("dc2:9092",))

    def __init__(self, errors: dict[str, int]) -> None:
        self._errors = errors

    def metadata(self, topics: Iterable[str]) -> dict[str, TopicLeaders]:
        return {topic: TopicLeaders(topic, NO_ID, self._errors[topic], {}) for topic in topics}


def test_they_are_named_once(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver looks at each start of a flow; without the right nothing tells that they are not even there."""
    monkeypatch.setattr(stored_offsets, "_named", set())
    caplog.set_level(logging.WARNING)
    client = cast("ClusterClient", Described({"b-offsets": FORBIDDEN, "a-offsets": FORBIDDEN, "c-offsets": MISSING}))
    for _ in range(2):
        stored = read_stored_offsets(client, ["b-offsets", "a-offsets", "c-offsets"], "dc1")
        assert stored == StoredOffsets({}, frozenset({"a-offsets", "b-offsets"}))
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith(
        "cluster dc2: topic a-offsets and topic b-offsets can't be read, or isn't there: if a MirrorM"
    )
    assert "c-offsets" not in line
