"""The Fetch request, its answer and its sessions, with kafka-python's own codecs as the other side."""

from __future__ import annotations

import struct
import uuid
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from kafka.protocol.consumer import FetchRequest, FetchResponse

from sparkmirror.kafka.wire.fetch_format import SESSIONS_FROM
from sparkmirror.kafka.wire.fetch_session import (
    BY_ID_FROM,
    VERSIONS,
    FetchAnswer,
    FetchedPartition,
    FetchPosition,
    FetchSession,
)
from sparkmirror.kafka.wire.primitives import Garbled
from sparkmirror.kafka.wire.topic_ids import NO_ID

modest = settings(max_examples=60, deadline=None)
every_version = pytest.mark.parametrize("version", range(VERSIONS[0], VERSIONS[1] + 1))

SESSION_ID_NOT_FOUND, INVALID_SESSION_EPOCH = 70, 71
LARGEST_EPOCH = 2**31 - 1
MAX_BYTES = 50_000_000

Partition = tuple[str, bytes, int]
"""Topic, its id, partition."""

versions = st.integers(*VERSIONS)
offsets = st.integers(0, 2**63 - 1)
epochs = st.integers(-1, 2**31 - 1)
positions = st.builds(FetchPosition, offsets, epochs, epochs)


def new_session(version: int = 16, **settings: Any) -> FetchSession:
    fixed: dict[str, Any] = {
        "client_id": "us->eu",
        "max_wait_ms": 500,
        "min_bytes": 1,
        "max_bytes": MAX_BYTES,
        "partition_max_bytes": 1 << 20,
    }
    return FetchSession(version, **(fixed | settings))


def topic_id(name: str, generation: int = 0) -> bytes:
    return f"{name}/{generation}".encode().ljust(16, b".")


def decoded(session: FetchSession, correlation_id: int = 1) -> Any:
    """The next request, read in the version that it says it has."""
    sent = session.request(correlation_id)
    (version,) = struct.unpack_from(">h", sent, 2)
    assert version <= session.version
    return FetchRequest.decode(sent, version=version, header=True)


def sayable(version: int, position: FetchPosition) -> FetchPosition:
    """What of a position a request of this version can say."""
    leader_epoch = position.current_leader_epoch if version >= 9 else -1
    return FetchPosition(position.offset, leader_epoch, position.last_fetched_epoch if version >= 12 else -1)


def who(version: int, topic: Any) -> Any:
    """What a decoded message names a topic by in this version."""
    return topic.topic_id.bytes if version >= BY_ID_FROM else topic.topic


def listed(version: int, request: Any) -> dict[tuple[Any, int], FetchPosition]:
    """What a request asks for; a partition that it lists twice is an error."""
    asked = [
        ((who(version, topic), part.partition), part.fetch_offset, part.current_leader_epoch, part.last_fetched_epoch)
        for topic in request.topics
        for part in topic.partitions
    ]
    assert len({key for key, *_ in asked}) == len(asked)
    return {key: FetchPosition(*position) for key, *position in asked}


def forgotten(version: int, request: Any) -> list[tuple[Any, int]]:
    return [(who(version, topic), index) for topic in request.forgotten_topics_data for index in topic.partitions]


# --- out ----------------------------------------------------------------------------------------------


@modest
@given(
    versions,
    st.dictionaries(st.tuples(st.sampled_from("abc"), st.integers(0, 2**31 - 1)), positions, max_size=6),
    st.integers(-(2**31), 2**31 - 1),
    st.text(max_size=30),
    st.tuples(*[st.integers(0, 2**31 - 1)] * 4),
    st.integers(0, 1),
    st.text(max_size=200),
)
def test_a_broker_reads_what_was_meant(
    version: int,
    wanted: dict[tuple[str, int], FetchPosition],
    correlation_id: int,
    client_id: str,
    limits: tuple[int, int, int, int],
    isolation_level: int,
    rack: str,
) -> None:
    max_wait_ms, min_bytes, max_bytes, partition_max_bytes = limits
    session = FetchSession(
        version,
        client_id=client_id,
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        partition_max_bytes=partition_max_bytes,
        isolation_level=isolation_level,
        rack=rack,
    )
    for (name, index), position in wanted.items():
        session.want(name, topic_id(name), index, position)
    assert len(session) == len(wanted)
    sent = session.request(correlation_id)
    read = FetchRequest.decode(sent, version=version, header=True)
    head = read.header
    assert (head.request_api_key, head.request_api_version) == (1, version)
    assert (head.correlation_id, head.client_id) == (correlation_id, client_id)
    assert (read.max_wait_ms, read.min_bytes, read.max_bytes) == (max_wait_ms, min_bytes, max_bytes)
    assert (read.isolation_level, read.rack_id) == (isolation_level, rack if version >= 11 else "")
    assert (read.session_id, read.session_epoch) == (0, 0 if version >= 7 else -1)
    assert (read.replica_id, read.cluster_id, read.replica_state) == (-1, None, None)
    assert listed(version, read) == {
        (topic_id(name) if version >= BY_ID_FROM else name, index): sayable(version, position)
        for (name, index), position in wanted.items()
    }
    for topic in read.topics:
        assert all(
            (one.log_start_offset, one.partition_max_bytes) == (-1, partition_max_bytes) for one in topic.partitions
        )
    assert read.encode(version=version, header=True) == sent


def test_the_next_request_has_the_present_limits() -> None:
    session = new_session()
    assert decoded(session).max_bytes == MAX_BYTES
    session.max_bytes, session.partition_max_bytes = 1000, 100
    session.want("a", topic_id("a"), 0, FetchPosition(0, 0, 0))
    read = decoded(session)
    assert read.max_bytes == 1000
    assert [part.partition_max_bytes for topic in read.topics for part in topic.partitions] == [100]


def test_a_session_tells_what_its_last_request_asked_for() -> None:
    session = new_session()
    session.want("a", topic_id("a"), 0, FetchPosition(0, 0, 0))
    assert not session.asks_for(("a", 0))
    session.request(1)
    assert session.asks_for(("a", 0))
    session.forget("a", 0)
    assert session.asks_for(("a", 0)), "the broker may answer for it"
    session.accept(FetchAnswer(0, 0, 7))
    session.request(2)
    assert not session.asks_for(("a", 0))


# --- back ---------------------------------------------------------------------------------------------

TopicAnswer = FetchResponse.FetchableTopicResponse
PartitionAnswer = TopicAnswer.PartitionData


def encoded(
    version: int, partitions: list[tuple[Partition, Any]], *, correlation_id: int = 1, **head: Any
) -> memoryview:
    topics: dict[tuple[str, bytes], list[Any]] = {}
    for (name, its_id, _), part in partitions:
        topics.setdefault((name, its_id), []).append(part)
    response = FetchResponse(
        responses=[
            TopicAnswer(topic=name, topic_id=uuid.UUID(bytes=its_id), partitions=parts)
            for (name, its_id), parts in topics.items()
        ],
        **head,
    )
    response.API_VERSION = version
    response.with_header(correlation_id=correlation_id)
    return memoryview(response.encode(header=True))


marks = st.integers(-1, 2**63 - 1)
pairs = st.none() | st.tuples(st.integers(-1, 2**31 - 1), marks)
partition_answers = st.tuples(
    st.sampled_from([0, 1, 3, 6, 74, 75, 100]),
    st.tuples(marks, marks, marks),
    st.none() | st.binary(max_size=300),
    pairs,
    pairs,
    st.none() | st.lists(st.tuples(st.integers(0, 2**63 - 1), offsets), max_size=3),
    st.integers(-1, 9),
)


def partition_answer(index: int, answered: Any) -> Any:
    error, (high_watermark, stable, start), records, diverging, leader, aborted, replica = answered
    return PartitionAnswer(
        partition_index=index,
        error_code=error,
        high_watermark=high_watermark,
        last_stable_offset=stable,
        log_start_offset=start,
        records=records,
        diverging_epoch=diverging and PartitionAnswer.EpochEndOffset(epoch=diverging[0], end_offset=diverging[1]),
        current_leader=leader and PartitionAnswer.LeaderIdAndEpoch(leader_id=leader[0], leader_epoch=leader[1] % 1000),
        aborted_transactions=aborted
        and [PartitionAnswer.AbortedTransaction(producer_id=one, first_offset=first) for one, first in aborted],
        preferred_read_replica=replica,
    )


@modest
@given(
    versions,
    st.dictionaries(
        st.tuples(st.sampled_from("abc"), st.integers(0, 9)), st.tuples(positions, partition_answers), max_size=5
    ),
    st.integers(0, 2**31 - 1),
    st.integers(0, 2**31 - 1),
    st.booleans(),
)
def test_an_answer_is_read_as_the_broker_meant_it(
    version: int,
    answered: dict[tuple[str, int], tuple[FetchPosition, Any]],
    throttle_ms: int,
    session_id: int,
    moved: bool,
) -> None:
    """With all that may be between the fields that matter: the new leader and where it is."""
    session = new_session(version)
    partitions = []
    for (name, index), (position, answer) in answered.items():
        session.want(name, topic_id(name), index, position)
        partitions.append(((name, topic_id(name), index), partition_answer(index, answer)))
    session.request(1)
    nodes = [FetchResponse.NodeEndpoint(node_id=3, host="broker-3", port=9092, rack=None)] if moved else []
    frame = encoded(
        version, partitions, throttle_time_ms=throttle_ms, error_code=0, session_id=session_id, node_endpoints=nodes
    )
    head, parts = session.read(frame)
    assert head == FetchAnswer(throttle_ms, 0, session_id if version >= 7 else 0)
    assert session.accept(head)
    found = {(part.topic, part.partition): part for part in parts}
    assert found == {
        (name, index): FetchedPartition(
            name,
            index,
            position.offset,
            error,
            high,
            stable,
            start,
            memoryview(records or b""),
            diverging if version >= 12 else None,
            tuple(aborted or ()),
            replica if version >= 11 else -1,
        )
        for (name, index), (
            position,
            (error, (high, stable, start), records, diverging, _, aborted, replica),
        ) in answered.items()
    }
    assert all(part.records.obj is frame.obj for part in found.values() if part.records)


@every_version
@pytest.mark.parametrize("size", [126, 127, 128, 16382, 16383, 16384, 2097151])
def test_every_length_of_a_length_is_right(version: int, size: int) -> None:
    records = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    where = "a", topic_id("a"), 1
    answer = (0, (9, 8, 7), records, (3, 4), None, None, -1)
    session = new_session(version)
    session.want(*where, FetchPosition(5, 0, -1))
    (part,) = session.read(encoded(version, [(where, partition_answer(1, answer))]))[1]
    assert part.records == records
    assert part.diverging == ((3, 4) if version >= 12 else None)


@every_version
def test_a_cut_off_answer_is_not_taken_for_a_whole_one(version: int) -> None:
    session = new_session(version)
    answer = (0, (9, 8, 7), b"records", (3, 4), (5, 6), [(1, 2)], -1)
    frame = encoded(version, [(("a", topic_id("a"), 1), partition_answer(1, answer))])
    assert len(list(session.read(frame)[1])) == 1
    for end in range(len(frame) - (version >= 12)):  # the last byte counts tagged fields, which nobody reads
        with pytest.raises(Garbled):
            list(session.read(frame[:end])[1])


# --- sessions (KIP-227) -------------------------------------------------------------------------------


class ModelBroker:
    """A broker's fetch sessions: one at a time, lost whenever it likes."""

    def __init__(self) -> None:
        self.by_id = False
        self.session_id = self.lost_id = 0
        self.epoch = 0
        self.positions: dict[tuple[Any, int], FetchPosition] = {}
        self._last_id = 100

    def lose(self) -> None:
        self.session_id, self.lost_id = 0, self.session_id or self.lost_id

    def serve(self, request: Any, *, without_session: bool = False) -> tuple[int, int]:
        """Take a request; error and session id of the answer. What is in `positions` then is fetched."""
        version = request.header.request_api_version
        asked, dropped = listed(version, request), forgotten(version, request)
        assert request.session_epoch <= 0 or (version >= BY_ID_FROM) == self.by_id, "Kafka refuses it (106)"
        self.by_id = version >= BY_ID_FROM
        if request.session_epoch <= 0:
            # An id ends a session and begins another one; Kafka does not mind if it had lost that session.
            assert request.session_id in (0, self.session_id, self.lost_id)
            assert not dropped
            self.positions = asked
            self.session_id = 0
            if request.session_epoch == 0 and not without_session:
                self._last_id += 1
                self.session_id, self.epoch = self._last_id, 1
            return 0, self.session_id
        if request.session_id != self.session_id:
            return SESSION_ID_NOT_FOUND, 0
        if request.session_epoch != self.epoch:
            return INVALID_SESSION_EPOCH, 0
        self.epoch = 1 if self.epoch == LARGEST_EPOCH else self.epoch + 1
        self.positions |= asked
        for key in dropped:
            self.positions.pop(key, None)
        return 0, self.session_id


TOPICS = st.sampled_from(["orders", "payments"])
INDEXES = st.integers(0, 2)
NOTHING = (0, (9, 9, 0), None, None, None, None, -1)


class Sessions(RuleBasedStateMachine):
    """Whatever is wanted, forgotten or lost: a request that is served leaves the broker with just what is wanted."""

    @initialize(version=versions)
    def start(self, version: int) -> None:
        self.session = new_session(version)
        self.broker = ModelBroker()
        self.generations = {"orders": 0, "payments": 0}
        self.wanted: dict[tuple[str, int], tuple[bytes, FetchPosition]] = {}
        self.without_ids: frozenset[str] = frozenset()

    @rule(name=TOPICS, index=INDEXES, position=positions)
    def want(self, name: str, index: int, position: FetchPosition) -> None:
        its_id = NO_ID if name in self.without_ids else topic_id(name, self.generations[name])
        self.session.want(name, its_id, index, position)
        self.wanted[name, index] = its_id, position

    @rule(name=TOPICS, index=INDEXES)
    def forget(self, name: str, index: int) -> None:
        self.session.forget(name, index)
        self.wanted.pop((name, index), None)

    @rule(name=TOPICS)
    def topic_is_created_again(self, name: str) -> None:
        """Its partitions are wanted by the old id until they are wanted again."""
        self.generations[name] += 1

    @rule(name=TOPICS, known=st.booleans())
    def cluster_is_upgraded_or_downgraded(self, name: str, known: bool) -> None:
        """Its topics get ids, or lose them, in any order."""
        self.without_ids = self.without_ids - {name} if known else self.without_ids | {name}

    @rule()
    def broker_loses_the_session(self) -> None:
        self.broker.lose()

    @rule()
    def broker_is_at_another_epoch(self) -> None:
        self.broker.epoch += 1

    @rule(
        without_session=st.booleans(),
        wanted_meanwhile=st.lists(st.tuples(TOPICS, INDEXES), max_size=2),
        forgotten_meanwhile=st.lists(st.tuples(TOPICS, INDEXES), max_size=1),
    )
    def fetch(
        self,
        without_session: bool,
        wanted_meanwhile: list[tuple[str, int]],
        forgotten_meanwhile: list[tuple[str, int]],
    ) -> None:
        if not self.fetch_once(without_session, wanted_meanwhile, forgotten_meanwhile):
            assert self.fetch_once(without_session, [], []), "a new session is never refused"

    def fetch_once(
        self,
        without_session: bool,
        wanted_meanwhile: list[tuple[str, int]],
        forgotten_meanwhile: list[tuple[str, int]],
    ) -> bool:
        by_id = self.session.version >= BY_ID_FROM and NO_ID not in {its_id for its_id, _ in self.wanted.values()}
        version = self.session.version if by_id else min(self.session.version, BY_ID_FROM - 1)
        asked = {
            (its_id if by_id else name, index): ((name, its_id, index), position)
            for (name, index), (its_id, position) in self.wanted.items()
        }
        request = decoded(self.session)
        assert request.header.request_api_version == version
        error, session_id = self.broker.serve(request, without_session=without_session or version < SESSIONS_FROM)
        if not error:
            assert self.broker.positions == {key: sayable(version, position) for key, (_, position) in asked.items()}
        for name, index in wanted_meanwhile:
            self.want(name, index, FetchPosition(1, 2, 3))
        for name, index in forgotten_meanwhile:
            self.forget(name, index)
        served = [] if error else [(where, partition_answer(where[2], NOTHING)) for where, _ in asked.values()]
        frame = encoded(version, served, error_code=error, session_id=session_id)
        head, parts = self.session.read(frame)
        assert self.session.accept(head) == (not error)
        assert {(part.topic, part.partition): part.asked_offset for part in parts} == {
            (name, index): position.offset for (name, _, index), position in asked.values() if not error
        }
        return not error

    @invariant()
    def counts_what_is_wanted(self) -> None:
        assert len(self.session) == len(self.wanted)


TestSessions = Sessions.TestCase
TestSessions.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)


def test_a_session_that_was_lost_while_its_topics_lost_their_ids_begins_again() -> None:
    run = Sessions()
    run.start(version=BY_ID_FROM)
    run.fetch(without_session=False, wanted_meanwhile=[("orders", 0)], forgotten_meanwhile=[])
    run.cluster_is_upgraded_or_downgraded(name="orders", known=False)
    run.want("orders", 0, FetchPosition(1, 2, 3))
    run.broker_loses_the_session()
    run.fetch(without_session=False, wanted_meanwhile=[], forgotten_meanwhile=[])
    assert run.broker.session_id == 102


def accepted(session: FetchSession, session_id: int, error: int = 0) -> bool:
    return session.accept(FetchAnswer(0, error, session_id))


@pytest.mark.parametrize("version", range(SESSIONS_FROM, VERSIONS[1] + 1))
def test_only_what_changed_goes_out(version: int) -> None:
    session = new_session(version)
    for index in range(3):
        session.want("orders", topic_id("orders"), index, FetchPosition(index, 0, -1))
    assert len(listed(version, decoded(session))) == 3
    accepted(session, 7)
    session.want("orders", topic_id("orders"), 1, FetchPosition(50, 0, 0))
    session.forget("orders", 2)
    request = decoded(session)
    field = topic_id("orders") if version >= BY_ID_FROM else "orders"
    assert listed(version, request) == {(field, 1): sayable(version, FetchPosition(50, 0, 0))}
    assert forgotten(version, request) == [(field, 2)]
    assert (request.session_id, request.session_epoch) == (7, 1)
    accepted(session, 7)
    request = decoded(session)
    assert (request.session_id, request.session_epoch) == (7, 2)
    assert not request.topics
    assert not request.forgotten_topics_data


@pytest.mark.parametrize("error", [SESSION_ID_NOT_FOUND, INVALID_SESSION_EPOCH])
def test_a_lost_session_begins_again_with_everything(error: int) -> None:
    session = new_session()
    for index in range(3):
        session.want("orders", topic_id("orders"), index, FetchPosition(index, 0, -1))
    session.request(1)
    accepted(session, 7)
    session.forget("orders", 2)
    session.request(2)
    assert not accepted(session, 0, error)
    request = decoded(session)
    assert (request.session_id, request.session_epoch) == (0, 0)
    assert len(listed(16, request)) == 2
    assert not request.forgotten_topics_data


def test_a_broker_without_room_for_sessions_is_told_everything_each_time() -> None:
    session = new_session()
    session.want("orders", topic_id("orders"), 0, FetchPosition(5, 0, -1))
    for _ in range(3):
        request = decoded(session)
        assert (request.session_id, request.session_epoch) == (0, 0)
        assert len(listed(16, request)) == 1
        assert accepted(session, 0)


def test_a_session_that_the_broker_ends_is_not_asked_again() -> None:
    session = new_session()
    session.want("orders", topic_id("orders"), 0, FetchPosition(5, 0, -1))
    accepted(session, 7)
    assert decoded(session).session_epoch == 1
    assert accepted(session, 0)
    request = decoded(session)
    assert (request.session_id, request.session_epoch) == (0, 0)
    assert len(listed(16, request)) == 1


def test_a_request_that_stands_alone_never_opens_a_session() -> None:
    session = new_session(incremental=False)
    session.want("orders", topic_id("orders"), 0, FetchPosition(5, 0, -1))
    for error in (0, INVALID_SESSION_EPOCH, 0):
        request = decoded(session)
        assert (request.session_id, request.session_epoch) == (0, -1)
        assert len(listed(16, request)) == 1
        accepted(session, 0, error)


def test_the_epoch_wraps_to_one() -> None:
    session = new_session()
    accepted(session, 7)
    session._mark = session._mark._replace(epoch=LARGEST_EPOCH)  # noqa: SLF001 - two thousand million requests later
    assert decoded(session).session_epoch == LARGEST_EPOCH
    accepted(session, 7)
    assert decoded(session).session_epoch == 1


def test_the_asked_offset_is_that_of_the_request() -> None:
    session = new_session()
    session.want("orders", topic_id("orders"), 0, FetchPosition(5, 0, -1))
    session.request(1)
    session.want("orders", topic_id("orders"), 0, FetchPosition(80, 0, -1))
    answer = [(("orders", topic_id("orders"), 0), partition_answer(0, NOTHING))]
    assert [part.asked_offset for part in session.read(encoded(16, answer))[1]] == [5]
    accepted(session, 7)
    session.request(2)
    assert [part.asked_offset for part in session.read(encoded(16, answer))[1]] == [80]


def test_a_topic_created_again_is_another_one() -> None:
    session = new_session()
    session.want("orders", topic_id("orders", 0), 0, FetchPosition(5, 0, -1))
    session.request(1)
    accepted(session, 7)
    session.want("orders", topic_id("orders", 1), 0, FetchPosition(0, 0, -1))
    request = decoded(session)
    assert listed(16, request) == {(topic_id("orders", 1), 0): FetchPosition(0, 0, -1)}
    assert forgotten(16, request) == [(topic_id("orders", 0), 0)]
    answer = [(("orders", topic_id("orders", 1), 0), partition_answer(0, NOTHING))]
    (part,) = session.read(encoded(16, answer))[1]
    assert (part.topic, part.asked_offset) == ("orders", 0)


def test_a_topic_that_gets_an_id_begins_another_session() -> None:
    """As in a rolling upgrade: first the brokers speak v13, then topics get ids; Kafka's consumer does the same."""
    session = new_session()
    session.want("orders", NO_ID, 0, FetchPosition(5, 0, -1))
    session.want("payments", topic_id("payments"), 0, FetchPosition(6, 0, -1))
    request = decoded(session)
    assert (request.header.request_api_version, request.session_id, request.session_epoch) == (12, 0, 0)
    assert listed(12, request).keys() == {("orders", 0), ("payments", 0)}
    accepted(session, 7)
    session.want("orders", topic_id("orders"), 0, FetchPosition(5, 0, -1))
    request = decoded(session)
    assert (request.header.request_api_version, request.session_id, request.session_epoch) == (16, 7, 0)
    assert listed(16, request).keys() == {(topic_id("orders"), 0), (topic_id("payments"), 0)}
    accepted(session, 8)
    assert decoded(session).session_epoch == 1
