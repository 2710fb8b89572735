"""One cluster's consumer groups: listing, reading offsets, committing for them.

Requests go to the groups' coordinators, with many groups in each request, so that ten thousand groups take a few
requests (KIP-699, KIP-709). Brokers before Kafka 3.0 are asked group by group. Blocking.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from kafka.protocol.admin import ListGroupsRequest
from kafka.protocol.consumer import OffsetCommitRequest, OffsetFetchRequest

from sparkmirror.chunks import chunks
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.coordinators import PASSING, PATIENCE_S, Coordinators, group_refusal
from sparkmirror.kafka.cluster.group_members import DescribedGroups, describe_groups
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.rpc import AnswerTooLarge
from sparkmirror.kafka.wire.topic_partition import TopicPartition

BY_NAME = 9
"""Newest version in which OffsetFetch and OffsetCommit name topics.

From version 10 on topics are identified by id, but a group may have offsets in deleted topics.
"""
SEVERAL_GROUPS = 8
"""First OffsetFetch version that takes several groups."""

_NO_OFFSET = -1


class ListedGroup(NamedTuple):
    """A group in its coordinator's list; old brokers leave strings empty."""

    group: str
    protocol: str
    """Protocol type: `consumer`, or empty for a group that only commits.

    `connect` and other types are no consumer groups.
    """
    state: str
    """The group's state in Kafka: `Empty`, `Stable`, `Dead`, `Assigning`, ..."""
    type: str
    """Group type: `classic`, `consumer`, `share` or `streams`.

    By KIP-848 (`consumer`), KIP-932 (`share`) and KIP-1071 (`streams`).
    """


class Committed(NamedTuple):
    """An offset that a group has committed, or is to commit."""

    offset: int
    metadata: str = ""


Offsets = dict[TopicPartition, Committed]


class FetchedOffsets(NamedTuple):
    """Groups' committed offsets."""

    offsets: dict[str, Offsets]
    """Offsets by group; empty for a missing group, or a group without offsets."""
    refused: dict[str, str]
    """Unreadable groups, with the reason."""


SINKS = "connect-"
"""Prefix that Kafka Connect gives to sink connectors' groups."""


class Groups:
    """One cluster's groups."""

    def __init__(self, client: ClusterClient) -> None:
        self._client = client
        self._coordinators = Coordinators(client)

    @property
    def alias(self) -> str:
        return self._client.config.alias

    def listed(self) -> dict[str, ListedGroup]:
        """Read all coordinators' groups, by name.

        An incomplete list raises an error: a missing group would seem new later.
        """
        deadline = time.monotonic() + PATIENCE_S
        while True:
            self._client.metadata([])
            answers = [self._client.ask(broker, ListGroupsRequest()) for broker in self._client.brokers]
            code = next(
                (answer.error_code for answer in answers if answer.error_code),
                0 if answers else ErrorCode.COORDINATOR_NOT_AVAILABLE,
            )
            if not code:  # there is no answer while a controller fences all brokers: no broker is left to ask
                return {listed.group: listed for answer in answers for listed in map(_listed, answer.groups)}
            self._coordinators.pause(code, "listing its groups", deadline)

    def described(self, groups: Iterable[str]) -> DescribedGroups:
        """Read these groups' members, as `describe_groups` does."""
        return describe_groups(self._client, groups, coordinators=self._coordinators)

    def committed(self, groups: Iterable[str]) -> FetchedOffsets:
        """Read these groups' committed offsets, by topic and partition."""
        fetched = FetchedOffsets({}, {})

        def ask(broker: int, chunk: Sequence[str]) -> dict[str, int]:
            failed = {}
            for group, code, offsets in self._fetch(broker, chunk):
                if code in PASSING:
                    failed[group] = code
                elif code and code != ErrorCode.GROUP_ID_NOT_FOUND:
                    fetched.refused[group] = group_refusal(code)
                else:
                    fetched.offsets[group] = offsets
            return failed

        self._coordinators.ask_each(groups, ask, fetched.refused, "reading the committed offsets of its groups")
        return fetched

    def commit(self, offsets: Mapping[str, Offsets]) -> dict[str, dict[TopicPartition, int]]:
        """Commit for groups without being a member; return Kafka's code by partition.

        Code 0: committed. The coordinator refuses commits for a group with members (25, UNKNOWN_MEMBER_ID), so an
        active consumer's offset is never overwritten.
        """
        outcomes: dict[str, dict[TopicPartition, int]] = {}

        def ask(broker: int, chunk: Sequence[str]) -> dict[str, int]:
            failed = {}
            for group in chunk:
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
        """Yield group, error code and committed offsets.

        Groups whose offsets are too many for one answer are asked for in halves.
        """
        if self._coordinators.version(broker, OffsetFetchRequest, BY_NAME) < SEVERAL_GROUPS:
            for group in groups:
                answer = self._client.ask(broker, OffsetFetchRequest(group_id=group, topics=None), newest=BY_NAME)
                yield group, answer.error_code, _offsets(answer.topics)
            return
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=None) for group in groups]
        )
        try:
            answer = self._client.ask(broker, request, newest=BY_NAME)
        except AnswerTooLarge:
            if len(groups) == 1:
                raise
            for half in chunks(groups, (len(groups) + 1) // 2):
                yield from self._fetch(broker, half)
            return
        for fetched in answer.groups:
            yield fetched.group_id, fetched.error_code, _offsets(fetched.topics)

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
    """Return the committed offsets of partitions without an error.

    Partitions without an offset are left out; -1, committed by some clients, counts as none.
    """
    return {
        (topic.name, part.partition_index): Committed(part.committed_offset, part.metadata or "")
        for topic in topics or ()
        for part in topic.partitions
        if not part.error_code and part.committed_offset > _NO_OFFSET
    }
