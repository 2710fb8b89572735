"""Consumer groups of one cluster: which there are, what they have committed, and committing in their stead.

Many groups a request, each asked of its own coordinator, so that ten thousand groups take a few requests (KIP-699,
KIP-709); brokers before Kafka 3.0 are asked group by group. Blocking.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from kafka.protocol.admin import DescribeGroupsRequest, ListGroupsRequest
from kafka.protocol.consumer import OffsetCommitRequest, OffsetFetchRequest

from sparkmirror.cluster.client import ClusterClient
from sparkmirror.cluster.coordinators import (
    GROUP_ID_NOT_FOUND,
    NOT_AVAILABLE,
    PASSING,
    PATIENCE_S,
    Coordinators,
    group_refusal,
)
from sparkmirror.wire.topic_partition import TopicPartition

BY_NAME = 9
"""From version 10 on OffsetFetch and OffsetCommit tell topics by id: a group may have offsets of topics long gone."""
SEVERAL_GROUPS = 8
"""Since this version a request may name several groups."""

_NO_OFFSET = -1


class ListedGroup(NamedTuple):
    """A group as its coordinator lists it. Empty strings: an older broker doesn't say."""

    group: str
    protocol: str
    """`consumer`; empty for one that only commits; `connect` and others are no consumers."""
    state: str
    """Kafka's word: `Empty`, `Stable`, `Dead`, `Assigning`, ..."""
    type: str
    """`classic`, `consumer` (KIP-848), `share` (KIP-932) or `streams` (KIP-1071)."""


class Committed(NamedTuple):
    """An offset that a group has committed, or shall have."""

    offset: int
    metadata: str = ""


Offsets = dict[TopicPartition, Committed]


class FetchedOffsets(NamedTuple):
    """What groups have committed."""

    offsets: dict[str, Offsets]
    """By group. A group that has none, or that isn't there, has an empty entry."""
    refused: dict[str, str]
    """Groups that may not be read, and why."""


class Groups:
    """The groups of one cluster."""

    def __init__(self, client: ClusterClient) -> None:
        self._client = client
        self._coordinators = Coordinators(client)

    @property
    def alias(self) -> str:
        """Of the cluster."""
        return self._client.config.alias

    def listed(self) -> dict[str, ListedGroup]:
        """All groups of all coordinators, by name. Incomplete lists are errors: what is missing would seem new."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            self._client.metadata([])
            answers = [self._client.ask(broker, ListGroupsRequest()) for broker in self._client.brokers]
            code = next((answer.error_code for answer in answers if answer.error_code), 0 if answers else NOT_AVAILABLE)
            if not code:  # a controller that fences all brokers for a moment leaves none to be asked
                return {one.group: one for answer in answers for one in map(_listed, answer.groups)}
            self._coordinators.pause(code, "listing its groups", deadline)

    def members(self, group: str) -> int | None:
        """How many members a classic group has; None: its coordinator does not say. Raises `ConnectionError`s."""
        found: list[int] = []

        def ask(broker: int, some: Sequence[str]) -> dict[str, int]:
            passing = {}
            for one in self._client.ask(broker, DescribeGroupsRequest(groups=list(some))).groups:
                if one.error_code in PASSING:
                    passing[one.group_id] = one.error_code
                elif not one.error_code:
                    found.append(len(one.members))
            return passing

        self._coordinators.ask_each([group], ask, {}, "reading who is in a group")
        return found[0] if found else None

    def committed(self, groups: Iterable[str]) -> FetchedOffsets:
        """What these groups have committed, by topic and partition."""
        found = FetchedOffsets({}, {})

        def ask(broker: int, some: Sequence[str]) -> dict[str, int]:
            failed = {}
            for group, code, offsets in self._fetch(broker, some):
                if code in PASSING:
                    failed[group] = code
                elif code and code != GROUP_ID_NOT_FOUND:
                    found.refused[group] = group_refusal(code)
                else:
                    found.offsets[group] = offsets
            return failed

        self._coordinators.ask_each(groups, ask, found.refused, "reading what its groups have committed")
        return found

    def commit(self, offsets: Mapping[str, Offsets]) -> dict[str, dict[TopicPartition, int]]:
        """Commit for groups without being their member: Kafka's code for each partition, 0 where it is done.

        The coordinator refuses it (25, UNKNOWN_MEMBER_ID) for a group that has members, so nobody is overwritten.
        """
        outcomes: dict[str, dict[TopicPartition, int]] = {}

        def ask(broker: int, some: Sequence[str]) -> dict[str, int]:
            failed = {}
            for group in some:
                codes = self._commit(broker, group, offsets[group])
                passing = next((code for code in codes.values() if code in PASSING), 0)
                if passing:
                    failed[group] = passing
                else:
                    outcomes[group] = codes
            return failed

        refused: dict[str, str] = {}
        lost = self._coordinators.ask_each(offsets, ask, refused, "committing for its groups")
        for group, code in lost.items():
            outcomes[group] = dict.fromkeys(offsets[group], code)
        return outcomes

    # --- requests -------------------------------------------------------------------------------

    def _fetch(self, broker: int, groups: Sequence[str]) -> Iterator[tuple[str, int, Offsets]]:
        """Group, error, offsets."""
        if self._coordinators.version(broker, OffsetFetchRequest, BY_NAME) < SEVERAL_GROUPS:
            for group in groups:
                answer = self._client.ask(broker, OffsetFetchRequest(group_id=group, topics=None), newest=BY_NAME)
                yield group, answer.error_code, _offsets(answer.topics)
            return
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=None) for group in groups]
        )
        for one in self._client.ask(broker, request, newest=BY_NAME).groups:
            yield one.group_id, one.error_code, _offsets(one.topics)

    def _commit(self, broker: int, group: str, offsets: Offsets) -> dict[TopicPartition, int]:
        topic_of, partition_of = (
            OffsetCommitRequest.OffsetCommitRequestTopic,
            OffsetCommitRequest.OffsetCommitRequestTopic.OffsetCommitRequestPartition,
        )
        topics: dict[str, list[Any]] = defaultdict(list)
        for (topic, partition), committed in offsets.items():
            topics[topic].append(
                partition_of(
                    partition_index=partition,
                    committed_offset=committed.offset,
                    committed_leader_epoch=-1,
                    committed_metadata=committed.metadata,
                )
            )
        request = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=-1,
            member_id="",
            group_instance_id=None,
            retention_time_ms=-1,
            topics=[topic_of(name=topic, partitions=partitions) for topic, partitions in topics.items()],
        )
        return {
            (topic.name, part.partition_index): part.error_code
            for topic in self._client.ask(broker, request, newest=BY_NAME).topics
            for part in topic.partitions
        }


def _listed(group: Any) -> ListedGroup:
    return ListedGroup(group.group_id, group.protocol_type, group.group_state or "", (group.group_type or "").lower())


def _offsets(topics: Iterable[Any] | None) -> Offsets:
    """Without partitions that have none, or an error; some clients commit -1."""
    return {
        (topic.name, part.partition_index): Committed(part.committed_offset, part.metadata or "")
        for topic in topics or ()
        for part in topic.partitions
        if not part.error_code and part.committed_offset > _NO_OFFSET
    }
