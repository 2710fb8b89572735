"""Any offset of a flow, both ways: for applications that keep their offsets in a database of their own.

The same maps as for consumer groups. An application that stopped at the source goes on at the target where this says,
with no record read twice and none skipped; and back.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import NamedTuple, Self

from sparkmirror.cluster.client import ClusterClient
from sparkmirror.cluster.topic_log import LogUnavailable, TopicLog
from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.messages.receipts import read_reports, receipts_topic
from sparkmirror.policy import ReplicationPolicy
from sparkmirror.sync.topic_rules import topic_rules
from sparkmirror.translation.map_keeper import MapKeeper, PartitionMap, Reached, Unmapped
from sparkmirror.wire.topic_partition import TopicPartition

_UNKNOWN_TOPIC = 3


class Stored(NamedTuple):
    """The offset of the record that an application would read next."""

    topic: str
    partition: int
    offset: int


class Translation(NamedTuple):
    """Where it goes on in the other cluster."""

    topic: str
    """The other cluster's name for it."""
    partition: int
    offset: int | None
    """None: it can't be told."""
    reason: str = ""
    """Why it can't."""


class Translator:
    """Translates between one source and one target. Maps are kept, so the second question is answered sooner.

    For one thread. A context manager.
    """

    def __init__(self, target: ClusterConfig, source_alias: str, policy: ReplicationPolicy) -> None:
        self._source_alias = source_alias
        self._policy = policy
        self._client = ClusterClient(target, f"{source_alias}->{target.alias}|sparkmirror-translator")
        self._maps = MapKeeper(self._client, source_alias)
        self._receipts = TopicLog(self._client, receipts_topic(source_alias))
        self._receipts_read_to = 0
        self._reached: dict[TopicPartition, Reached] = {}

    @classmethod
    def of(cls, flow: FlowConfig) -> Self:
        """For a flow of an mm2.properties; only its target is asked."""
        return cls(flow.target, flow.source.alias, topic_rules(flow, flow.originals).policy)

    def translate(self, topic: str, partition: int, offset: int, *, reverse: bool = False) -> Translation:
        """Where a consumer that would read `offset` at the source next goes on at the target, or in reverse."""
        return self.translate_each([Stored(topic, partition, offset)], reverse=reverse)[0]

    def translate_each(self, stored: Sequence[Stored], *, reverse: bool = False) -> list[Translation]:
        """`translate` of many, in the order given. `topic` is the source's name, in reverse the target's.

        Raises `ClusterUnreachable`.
        """
        targets = [one.topic if reverse else self._remote(one.topic) for one in stored]
        try:
            self._read_receipts()
            wanted = {(topic, one.partition): None for topic, one in zip(targets, stored, strict=True)}
            maps = self._maps.refresh({where: self._reached.get(where) for where in wanted})
        except ConnectionError as error:
            raise ClusterUnreachable(f"cluster {self._client.config.alias}: {error}") from error
        return [
            self._back(one, maps[topic, one.partition]) if reverse else _forth(topic, one, maps[topic, one.partition])
            for topic, one in zip(targets, stored, strict=True)
        ]

    def _remote(self, topic: str) -> str:
        return self._policy.format_remote_topic(self._source_alias, topic)

    def _back(self, stored: Stored, found: PartitionMap | Unmapped) -> Translation:
        topic = self._policy.upstream_topic(stored.topic) or ""
        if self._policy.topic_source(stored.topic) != self._source_alias or not topic:
            no_copy = f"it is no copy of a topic of {self._source_alias}: in reverse, give its name at the target"
            return Translation(topic, stored.partition, None, no_copy)
        if isinstance(found, Unmapped):
            return Translation(topic, stored.partition, None, found.reason)
        if others := found.by_others(downstream=stored.offset):
            return Translation(topic, stored.partition, None, others.reason)
        offset = found.upstream(stored.offset)
        reason = "" if offset is not None else f"nothing is there yet: the copy ends at {found.end}"
        return Translation(topic, stored.partition, offset, reason)

    def _read_receipts(self) -> None:
        """What pumps have said lately: they alone know that only markers follow the last record."""
        try:
            entries, self._receipts_read_to = self._receipts.read(0, self._receipts_read_to)
        except LogUnavailable as error:
            if error.code != _UNKNOWN_TOPIC:
                raise
            return
        for report in read_reports(entries):
            for one in report.receipts:
                if one.upstream >= 0 and one.downstream >= 0:
                    said = Reached(one.upstream, one.downstream, one.target_topic_id)
                    self._reached[one.target_topic, one.partition] = said

    def close(self) -> None:
        """Hang up, and free what the maps hold."""
        self._maps.close()
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _forth(topic: str, stored: Stored, found: PartitionMap | Unmapped) -> Translation:
    if isinstance(found, Unmapped):
        return Translation(topic, stored.partition, None, found.reason)
    if others := found.by_others(upstream=stored.offset):
        return Translation(topic, stored.partition, None, others.reason)
    offset = found.downstream(stored.offset)
    copied = found.offsets.copied.upstream
    reason = "" if offset is not None else f"not copied yet: everything below {copied} is"
    return Translation(topic, stored.partition, offset, reason)
