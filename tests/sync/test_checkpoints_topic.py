"""A checkpoints topic that is deleted under a running mirror; stand-ins answer for both clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.kafka.cluster.groups import Committed, Offsets
from sparkmirror.kafka.cluster.topic_log import LogEntry, LogUnavailable, TopicLog
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.mirror.sync import checkpoints as checkpoints_module
from sparkmirror.mirror.sync.checkpoints import Checkpoints
from sparkmirror.mirror.sync.group_maps import TranslatedOffset
from sparkmirror.mirror.sync.internal_topic import InternalTopic
from sparkmirror.mirror.sync.translated_groups import TranslatedGroup
from sparkmirror.policy import DefaultGroupFilter, DefaultReplicationPolicy
from sparkmirror.snapshot.group_standing import standing

A, B = (ClusterConfig(alias=alias, bootstrap_servers=("127.0.0.1:1",)) for alias in "AB")
GROUPS: dict[str, Offsets] = {name: {("orders", 0): Committed(5)} for name in ("billing", "shipping")}


class PlayedTopic:
    """The checkpoints topic, in place of the classes that reach it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.entries: list[tuple[bytes, bytes | None]] | None = None
        """None: there is no topic."""
        monkeypatch.setattr(InternalTopic, "create", lambda _: self.create())
        monkeypatch.setattr(TopicLog, "read_some", lambda *_: self.read())
        monkeypatch.setattr(TopicLog, "append", lambda _, __, entries: self.append(entries))

    def create(self) -> None:
        if self.entries is None:
            self.entries = []

    def read(self) -> tuple[list[LogEntry], int, bool]:
        there = self._there()
        return [LogEntry(at, *entry) for at, entry in enumerate(there)], len(there), False

    def append(self, entries: Sequence[tuple[bytes, bytes | None]]) -> int:
        self._there().extend(entries)
        return 0

    def _there(self) -> list[tuple[bytes, bytes | None]]:
        if self.entries is None:
            raise LogUnavailable("checkpoints", "it isn't there", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return self.entries


class Duty(Checkpoints):
    """Two groups at offset 5 of a topic that is copied up to there."""

    def __init__(self) -> None:
        super().__init__(
            FlowConfig(source=A, target=B), DefaultReplicationPolicy(), DefaultGroupFilter(), lambda _: True
        )
        self.committed = dict(GROUPS)

    def _committed(self) -> dict[str, Offsets]:
        return self.committed


def as_they_are(
    _: object, __: object, offsets: Mapping[str, Mapping[TopicPartition, int]]
) -> dict[str, TranslatedGroup]:
    """Each offset is the same at the target."""
    return {
        group: TranslatedGroup(
            {at: TranslatedOffset((f"A.{at[0]}", at[1]), offset, True, 100) for at, offset in positions.items()},
            standing(group, len(positions)),
        )
        for group, positions in offsets.items()
    }


def test_a_topic_that_was_deleted_is_created_and_filled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = PlayedTopic(monkeypatch)
    monkeypatch.setattr(checkpoints_module, "translate_groups", as_they_are)
    duty = Duty()
    duty.run()
    assert duty.written == 2
    topic.entries = None
    duty.committed["billing"] = {("orders", 0): Committed(6)}
    with pytest.raises(LogUnavailable):
        duty.run()
    duty.run()
    assert (duty.written, len(topic.entries or ())) == (2, 2)
    duty.run()
    assert duty.written == 0
