"""One cluster's share groups (KIP-932): reading and setting start offsets.

An administrator's requests: DescribeShareGroupOffsets and AlterShareGroupOffsets, both in version 0; kafka-python lacks
them. The broker refuses to set offsets for a group with members. Blocking.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.coordinators import PASSING, Coordinators
from sparkmirror.kafka.cluster.error_names import error_name
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.primitives import (
    INT32,
    INT64,
    NO_TAGS,
    Reader,
    compact_string,
    read_from,
    request_header,
    uvarint,
)
from sparkmirror.kafka.wire.rpc import UnsupportedBroker
from sparkmirror.kafka.wire.topic_partition import TopicPartition

StartOffsets = dict[TopicPartition, int]
"""Start offset by partition: where a group's first unfinished record is."""

SHARE = "share"
"""Type of share groups in a cluster's group list."""

NOT_KNOWN = "its brokers don't know share groups"

_DESCRIBE, _ALTER = 90, 91
_VERSIONS = (0, 0)
_NO_ARRAY = uvarint(0)
_UUID_BYTES = 16


class FetchedStarts(NamedTuple):
    """Share groups' start offsets."""

    offsets: dict[str, StartOffsets]
    """Offsets by group; empty for a missing group, or one that has read nothing yet."""
    refused: dict[str, str]
    """Unreadable groups, with the reason."""


class ShareGroups:
    """One cluster's share groups."""

    def __init__(self, client: ClusterClient) -> None:
        self._client = client
        self._coordinators = Coordinators(client)

    def starts(self, groups: Iterable[str]) -> FetchedStarts:
        """Read these groups' start offsets, by topic and partition."""
        fetched = FetchedStarts({}, {})

        def ask(broker: int, chunk: Sequence[str]) -> dict[str, int]:
            try:
                answer = self._ask(broker, _DESCRIBE, "DescribeShareGroupOffsets", describe_request(chunk))
            except UnsupportedBroker:
                fetched.refused.update(dict.fromkeys(chunk, NOT_KNOWN))
                return {}
            failed = {}
            with read_from("an answer to DescribeShareGroupOffsets"):
                described = read_described(answer)
            for group, (code, offsets) in described.items():
                if code in PASSING:
                    failed[group] = code
                elif code and code != ErrorCode.GROUP_ID_NOT_FOUND:
                    fetched.refused[group] = said(code)
                else:
                    fetched.offsets[group] = offsets
            return failed

        self._coordinators.ask_each(groups, ask, fetched.refused, "reading where its share groups start")
        return fetched

    def set_starts(self, starts: Mapping[str, StartOffsets]) -> dict[str, dict[TopicPartition, int]]:
        """Set start offsets; return Kafka's code for each partition, 0 for success.

        A missing group is created, without members. The coordinator refuses the request (68, NON_EMPTY_GROUP) for a
        group with members.
        """
        outcomes: dict[str, dict[TopicPartition, int]] = {}

        def ask(broker: int, chunk: Sequence[str]) -> dict[str, int]:
            failed = {}
            for group in chunk:
                try:
                    answer = self._ask(broker, _ALTER, "AlterShareGroupOffsets", alter_request(group, starts[group]))
                except UnsupportedBroker:
                    outcomes[group] = dict.fromkeys(starts[group], ErrorCode.UNSUPPORTED_VERSION)
                    continue
                with read_from("an answer to AlterShareGroupOffsets"):
                    code, codes = read_altered(answer)
                passing = next((error for error in (code, *codes.values()) if error in PASSING), 0)
                if passing:
                    failed[group] = passing
                else:
                    outcomes[group] = dict.fromkeys(starts[group], code) if code else codes
            return failed

        lost = self._coordinators.ask_each(starts, ask, {}, "setting where its share groups start")
        for group, code in lost.items():
            outcomes[group] = dict.fromkeys(starts[group], code)
        return outcomes

    def _ask(self, broker: int, api_key: int, name: str, body: bytes) -> Reader:
        """Send a request; return the answer after its header."""
        try:
            connection = self._client.broker(broker)
            version = connection.version(api_key, _VERSIONS, name)
            header = request_header(api_key, version, 0, self._client.client_id.encode())
            answer = Reader(connection.exchange_raw([header, body]))
        except UnsupportedBroker:
            raise
        except ConnectionError:
            self._client.hang_up(broker)
            raise
        with read_from(f"an answer to {name}"):
            answer.int32()  # the correlation id
            answer.tags()
        return answer


def said(code: int) -> str:
    """Return the words for an error code.

    UNSUPPORTED_VERSION also comes from a broker that has the feature `share.version` switched off.
    """
    return NOT_KNOWN if code == ErrorCode.UNSUPPORTED_VERSION else error_name(code)


# --- messages, version 0 -------------------------------------------------------------------------


def describe_request(groups: Sequence[str]) -> bytes:
    named = b"".join(compact_string(group) + _NO_ARRAY + NO_TAGS for group in groups)
    return uvarint(len(groups) + 1) + named + NO_TAGS


def read_described(answer: Reader) -> dict[str, tuple[int, StartOffsets]]:
    """Decode each group's error code and start offsets, by group.

    Partitions with an error, or without an offset, are left out.
    """
    answer.int32()  # the throttle time
    described: dict[str, tuple[int, StartOffsets]] = {}
    for _ in range(answer.compact_length()):
        group = answer.compact_text() or ""
        offsets: StartOffsets = {}

        def partition(topic: str, offsets: StartOffsets = offsets) -> None:
            index, offset, _, code = answer.int32(), answer.int64(), answer.int32(), answer.int16()
            if not code and offset >= 0:
                offsets[topic, index] = offset

        _read_topics(answer, partition)
        described[group] = answer.int16(), offsets
        answer.compact_text()
        answer.tags()
    return described


def alter_request(group: str, starts: StartOffsets) -> bytes:
    """Encode a request that sets one group's start offsets."""
    topics: dict[str, list[bytes]] = defaultdict(list)
    for (topic, index), offset in starts.items():
        topics[topic].append(INT32.pack(index) + INT64.pack(offset) + NO_TAGS)
    named = b"".join(
        compact_string(topic) + uvarint(len(partitions) + 1) + b"".join(partitions) + NO_TAGS
        for topic, partitions in topics.items()
    )
    return compact_string(group) + uvarint(len(topics) + 1) + named + NO_TAGS


def read_altered(answer: Reader) -> tuple[int, dict[TopicPartition, int]]:
    """Decode the group's error code, and the partitions' error codes."""
    answer.int32()  # the throttle time
    code = answer.int16()
    answer.compact_text()
    codes: dict[TopicPartition, int] = {}

    def partition(topic: str) -> None:
        index = answer.int32()
        codes[topic, index] = answer.int16()

    _read_topics(answer, partition)
    return code, codes


def _read_topics(answer: Reader, partition: Callable[[str], None]) -> None:
    """Walk through topics and partitions; `partition` reads one up to its message."""
    for _ in range(answer.compact_length()):
        topic = answer.compact_text() or ""
        answer.slice(_UUID_BYTES)
        for _ in range(answer.compact_length()):
            partition(topic)
            answer.compact_text()
            answer.tags()
        answer.tags()
