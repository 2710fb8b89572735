"""Members of KIP-848 and streams groups: two requests that kafka-python lacks.

ConsumerGroupDescribe (KIP-848) in versions 0 and 1, StreamsGroupDescribe (KIP-1071) in version 0; and the assignment in
a classic member's DescribeGroups entry, in the consumer protocol's own format.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sparkmirror.kafka.wire.primitives import NO_TAGS, Reader, compact_string, read_from, request_header, uvarint
from sparkmirror.kafka.wire.topic_partition import TopicPartition

CONSUMER_GROUP_DESCRIBE, STREAMS_GROUP_DESCRIBE = 69, 89
NAMES = {CONSUMER_GROUP_DESCRIBE: "ConsumerGroupDescribe", STREAMS_GROUP_DESCRIBE: "StreamsGroupDescribe"}
VERSIONS = {CONSUMER_GROUP_DESCRIBE: (0, 1), STREAMS_GROUP_DESCRIBE: (0, 0)}
_MEMBER_TYPE_FROM = 1
"""First ConsumerGroupDescribe version with the member's type."""
_WITHOUT_OPERATIONS = b"\x00"


class WireMember(NamedTuple):
    """A group's member, as the coordinator describes it."""

    member_id: str
    client_id: str
    host: str
    """Address as the coordinator saw it, such as `/10.0.0.7`."""
    assigned: frozenset[TopicPartition]


class WireGroup(NamedTuple):
    """A group's part of an answer."""

    group: str
    error: int
    state: str
    members: tuple[WireMember, ...]
    internal: frozenset[str] = frozenset()
    """A streams group's changelog and repartition topics."""


def encode(api_key: int, version: int, client_id: bytes, groups: Sequence[str]) -> bytes:
    """Encode a request that describes these groups."""
    head = request_header(api_key, version, 0, client_id)
    named = b"".join(map(compact_string, groups))
    return head + uvarint(len(groups) + 1) + named + _WITHOUT_OPERATIONS + NO_TAGS


def decode(api_key: int, version: int, frame: memoryview) -> list[WireGroup]:
    """Return the answer's groups; raises `Garbled`."""
    reader = Reader(frame)
    with read_from(f"an answer to {NAMES[api_key]}"):
        reader.int32()  # correlation id: the connection has compared it
        reader.tags()
        reader.int32()  # throttle time
        count = reader.compact_length()
        if api_key == STREAMS_GROUP_DESCRIBE:
            return [_streams_group(reader) for _ in range(count)]
        return [_consumer_group(reader, version) for _ in range(count)]


def classic_assignment(data: bytes) -> frozenset[TopicPartition]:
    """Decode a classic consumer's assignment; raises `Garbled`.

    Empty bytes are a member's without an assignment.
    """
    if not data:
        return frozenset()
    reader = Reader(memoryview(data))
    with read_from("a group member's assignment"):
        reader.int16()  # version: later ones only add fields behind
        assigned = set()
        for _ in range(reader.int32()):
            topic = reader.text() or ""
            assigned |= {(topic, reader.int32()) for _ in range(reader.int32())}
        return frozenset(assigned)


def _consumer_group(reader: Reader, version: int) -> WireGroup:
    error = reader.int16()
    reader.compact_text()  # message
    group, state = _text(reader), _text(reader)
    reader.int32()  # group epoch
    reader.int32()  # assignment epoch
    _text(reader)  # assignor
    members = tuple(_consumer_member(reader, version) for _ in range(reader.compact_length()))
    reader.int32()  # authorized operations
    reader.tags()
    return WireGroup(group, error, state, members)


def _consumer_member(reader: Reader, version: int) -> WireMember:
    member_id = _text(reader)
    reader.compact_text()  # instance
    reader.compact_text()  # rack
    reader.int32()  # member epoch
    client_id, host = _text(reader), _text(reader)
    _texts(reader)  # subscribed topics
    reader.compact_text()  # subscribed pattern
    assigned = _partitions(reader)
    _partitions(reader)  # target assignment
    if version >= _MEMBER_TYPE_FROM:
        reader.int8()
    reader.tags()
    return WireMember(member_id, client_id, host, assigned)


def _partitions(reader: Reader) -> frozenset[TopicPartition]:
    assigned: set[TopicPartition] = set()
    for _ in range(reader.compact_length()):
        reader.uuid()
        topic = _text(reader)
        assigned |= {(topic, index) for index in _indexes(reader)}
        reader.tags()
    reader.tags()
    return frozenset(assigned)


def _streams_group(reader: Reader) -> WireGroup:
    error = reader.int16()
    reader.compact_text()  # message
    group, state = _text(reader), _text(reader)
    reader.int32()  # group epoch
    reader.int32()  # assignment epoch
    sources: dict[str, tuple[str, ...]] = {}
    internal: set[str] = set()
    if reader.int8() >= 0:  # a topology, not null
        reader.int32()  # topology epoch
        for _ in range(reader.compact_length()):
            _subtopology(reader, sources, internal)
        reader.tags()
    members = tuple(_streams_member(reader, sources) for _ in range(reader.compact_length()))
    reader.int32()  # authorized operations
    reader.tags()
    return WireGroup(group, error, state, members, frozenset(internal))


def _subtopology(reader: Reader, sources: dict[str, tuple[str, ...]], internal: set[str]) -> None:
    name = _text(reader)
    read = _texts(reader)
    internal.update(_texts(reader))  # repartition topics that it writes
    internal.update(_topic_infos(reader))  # changelogs
    repartitioned = _topic_infos(reader)
    internal.update(repartitioned)
    sources[name] = (*read, *repartitioned)
    reader.tags()


def _topic_infos(reader: Reader) -> list[str]:
    names = []
    for _ in range(reader.compact_length()):
        names.append(_text(reader))
        reader.int32()  # partitions
        reader.int16()  # replication factor
        _pairs(reader)
        reader.tags()
    return names


def _streams_member(reader: Reader, sources: dict[str, tuple[str, ...]]) -> WireMember:
    member_id = _text(reader)
    reader.int32()  # member epoch
    reader.compact_text()  # instance
    reader.compact_text()  # rack
    client_id, host = _text(reader), _text(reader)
    reader.int32()  # topology epoch
    _text(reader)  # process
    if reader.int8() >= 0:  # an endpoint, not null
        _text(reader)
        reader.int16()  # port
        reader.tags()
    _pairs(reader)  # client tags
    for _ in range(2):  # task offsets, and end offsets
        for _ in range(reader.compact_length()):
            _text(reader)
            reader.int32()
            reader.int64()
            reader.tags()
    tasks = _tasks(reader)
    _tasks(reader)  # target assignment
    reader.int8()  # whether it speaks the classic protocol
    reader.tags()
    assigned = frozenset(
        (topic, index) for name, indexes in tasks for topic in sources.get(name, ()) for index in indexes
    )
    return WireMember(member_id, client_id, host, assigned)


def _tasks(reader: Reader) -> list[tuple[str, list[int]]]:
    """Return the active tasks; standby and warm-up tasks read no source topic."""
    kinds = []
    for _ in range(3):
        named = []
        for _ in range(reader.compact_length()):
            named.append((_text(reader), _indexes(reader)))
            reader.tags()
        kinds.append(named)
    reader.tags()
    return kinds[0]


def _pairs(reader: Reader) -> None:
    for _ in range(reader.compact_length()):
        _text(reader)
        _text(reader)
        reader.tags()


def _indexes(reader: Reader) -> list[int]:
    return [reader.int32() for _ in range(reader.compact_length())]


def _texts(reader: Reader) -> list[str]:
    return [_text(reader) for _ in range(reader.compact_length())]


def _text(reader: Reader) -> str:
    return reader.compact_text() or ""
