"""A cluster of one broker that is played: the requests that an append check needs, by kafka-python's own codecs.

It does with idempotent batches exactly what Apache Kafka's leaders do (`exactness.md`, the append check), but for the
faults that it is made with: those that a broker of another make might have.
"""

from __future__ import annotations

import contextlib
import socket
import socketserver
import struct
import threading
import uuid
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from enum import StrEnum, auto
from typing import Any, NamedTuple, Self

from kafka.protocol.admin import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeProducersRequest,
    DescribeProducersResponse,
    IncrementalAlterConfigsRequest,
)
from kafka.protocol.consumer import FetchRequest, FetchResponse, ListOffsetsRequest, ListOffsetsResponse
from kafka.protocol.metadata import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    MetadataRequest,
    MetadataResponse,
)
from kafka.protocol.producer import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    ProduceRequest,
    ProduceResponse,
)

from sparkmirror.kafka.wire.batches import SEQUENCE_MODULUS, batch_headers

UNKNOWN_TOPIC, NOT_AUTHORIZED, OUT_OF_ORDER, DUPLICATE, OLD_EPOCH, UNKNOWN_PRODUCER = 3, 29, 45, 46, 47, 59
NO_ID = uuid.UUID(int=0)
REMEMBERED = 5
LAST_WITHOUT_IDS = {
    ProduceRequest.API_KEY: 12,
    FetchRequest.API_KEY: 12,
    MetadataRequest.API_KEY: 9,
    CreateTopicsRequest.API_KEY: 6,
    DeleteTopicsRequest.API_KEY: 5,
}
NEEDED_BESIDES = (IncrementalAlterConfigsRequest,)
"""What a target must know, and nothing here asks for."""
_CRC_AT = 17


class Fault(StrEnum):
    """What it does otherwise than Apache Kafka."""

    TAKES_GAPS = auto()
    TAKES_OVERLAPS = auto()
    APPENDS_REPEATS = auto()
    APPENDS_REPEATS_SILENTLY = auto()
    """It answers as if it did not."""
    WRONG_OFFSETS_FOR_REPEATS = auto()
    REMEMBERS_ONE_BATCH = auto()
    TAKES_OLD_EPOCHS = auto()
    IGNORES_EPOCHS = auto()
    REFUSES_FIRST_BATCHES = auto()
    """Those that don't begin at 0."""
    ACKNOWLEDGES_WRONG_OFFSETS = auto()
    DESCRIBES_NO_PRODUCERS = auto()
    DESCRIBES_WRONGLY = auto()
    FORGETS_AT_ONCE = auto()
    NO_TOPIC_IDS = auto()
    DOES_NOT_WRAP = auto()
    ONE_STATE_FOR_ALL_PARTITIONS = auto()
    APPENDS_WHAT_IT_REFUSES = auto()
    LOSES_BATCHES = auto()
    ALTERS_BATCHES = auto()
    ANSWERS_REPEATS_BY_46 = auto()
    TELLS_NO_REPEATS = auto()
    TELLS_NO_LIFETIME = auto()
    IS_BEFORE_3_4 = auto()
    """It has no `producer.id.expiration.ms`."""
    ALLOWS_NO_DELETION = auto()
    ALLOWS_NO_CREATION = auto()
    ALLOWS_NO_WRITING = auto()
    HANGS_UP_AT_BATCHES = auto()
    """At the fifth one and every one behind it."""
    GIVES_NO_PRODUCER_IDS = auto()
    KNOWS_NO_PRODUCER_IDS = auto()
    DELETES_NO_TOPICS = auto()
    """It does not know the request."""
    LOSES_AN_ANSWER = auto()
    """The connection breaks once, behind an append."""


UNKNOWN_REQUESTS = {
    Fault.DESCRIBES_NO_PRODUCERS: DescribeProducersRequest,
    Fault.KNOWS_NO_PRODUCER_IDS: InitProducerIdRequest,
    Fault.DELETES_NO_TOPICS: DeleteTopicsRequest,
}


class _Batch(NamedTuple):
    first: int
    last: int
    base_offset: int
    max_timestamp: int


@dataclass
class _State:
    epoch: int
    batches: deque[_Batch]


class _Answer(NamedTuple):
    error: int
    base_offset: int = -1
    append_time_ms: int = -1


@dataclass
class _Partition:
    log: list[bytes] = field(default_factory=list)
    end: int = 0
    states: dict[int, _State] = field(default_factory=dict)


@dataclass
class _Topic:
    topic_id: uuid.UUID
    partitions: list[_Partition]


class ModelCluster:
    """Listens while it is open; `topics` by name, `created` is how many there ever were."""

    def __init__(self, *faults: Fault) -> None:
        self.cluster_id = uuid.uuid4().hex
        self.topics: dict[str, _Topic] = {}
        self.created = 0
        self.faults: Collection[Fault] = faults
        self.clients: set[str] = set()
        self._producers = 4000
        self._batches = self._stored = 0
        self._shared: dict[int, _State] = {}
        self._lock = threading.Lock()
        self._handlers: dict[int, tuple[Any, Callable[[Any], Any]]] = {
            kind.API_KEY: (kind, handler)
            for kind, handler in (
                (ApiVersionsRequest, self._api_versions),
                (MetadataRequest, self._metadata),
                (CreateTopicsRequest, self._create),
                (DeleteTopicsRequest, self._delete),
                (InitProducerIdRequest, self._producer_id),
                (ProduceRequest, self._produce),
                (FetchRequest, self._fetch),
                (ListOffsetsRequest, self._offsets),
                (DescribeProducersRequest, self._describe),
                (DescribeConfigsRequest, self._configs),
            )
        }
        for fault, kind in UNKNOWN_REQUESTS.items():
            if fault in faults:
                del self._handlers[kind.API_KEY]
        cluster = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                with contextlib.suppress(OSError, _HangUp):
                    cluster._serve(self.request)

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    # --- requests -------------------------------------------------------------------------------

    def _serve(self, sock: socket.socket) -> None:
        while True:
            (size,) = struct.unpack(">i", _receive(sock, 4))
            data = _receive(sock, size)
            key, version, correlation_id = struct.unpack_from(">hhi", data)
            kind, handler = self._handlers[key]
            request = kind.decode(data, version=version, header=True)
            self.clients.add(request.header.client_id)
            request.API_VERSION = version
            with self._lock:
                answer = handler(request)
            answer.API_VERSION = version
            answer.with_header(correlation_id=correlation_id)
            sock.sendall(answer.encode(framed=True, header=True))

    def _newest(self, key: int, kind: Any) -> int:
        newest = int(kind.max_version)
        return min(newest, LAST_WITHOUT_IDS.get(key, newest)) if Fault.NO_TOPIC_IDS in self.faults else newest

    def _api_versions(self, _: Any) -> Any:
        spoken = [
            ApiVersionsResponse.ApiVersion(api_key=key, min_version=0, max_version=self._newest(key, kind))
            for key, (kind, _) in self._handlers.items()
        ]
        spoken += [
            ApiVersionsResponse.ApiVersion(api_key=kind.API_KEY, min_version=0, max_version=kind.max_version)
            for kind in NEEDED_BESIDES
        ]
        return ApiVersionsResponse(error_code=0, api_keys=spoken, throttle_time_ms=0)

    def _metadata(self, request: Any) -> Any:
        names = list(self.topics) if request.topics is None else [topic.name for topic in request.topics]
        return MetadataResponse(
            throttle_time_ms=0,
            brokers=[MetadataResponse.MetadataResponseBroker(node_id=1, host="127.0.0.1", port=self.port, rack=None)],
            cluster_id=self.cluster_id,
            controller_id=1,
            topics=[self._described(name) for name in names],
        )

    def _described(self, name: str) -> Any:
        kind = MetadataResponse.MetadataResponseTopic
        topic = self.topics.get(name)
        if topic is None:
            return kind(error_code=UNKNOWN_TOPIC, name=name, topic_id=NO_ID, is_internal=False, partitions=[])
        partitions = [
            kind.MetadataResponsePartition(
                error_code=0,
                partition_index=index,
                leader_id=1,
                leader_epoch=0,
                replica_nodes=[1],
                isr_nodes=[1],
                offline_replicas=[],
            )
            for index in range(len(topic.partitions))
        ]
        return kind(error_code=0, name=name, topic_id=topic.topic_id, is_internal=False, partitions=partitions)

    def _create(self, request: Any) -> Any:
        results = []
        for wanted in request.topics:
            code = NOT_AUTHORIZED if Fault.ALLOWS_NO_CREATION in self.faults else 0
            topic = _Topic(uuid.uuid4(), [_Partition() for _ in range(wanted.num_partitions)])
            if not code and not request.validate_only:
                self.topics[wanted.name] = topic
                self.created += 1
            results.append(
                CreateTopicsResponse.CreatableTopicResult(
                    name=wanted.name, topic_id=topic.topic_id, error_code=code, error_message=None, configs=[]
                )
            )
        return CreateTopicsResponse(throttle_time_ms=0, topics=results)

    def _delete(self, request: Any) -> Any:
        names = [topic.name for topic in request.topics] if request.topics else request.topic_names
        results = []
        for name in names:
            code = 0 if name in self.topics else UNKNOWN_TOPIC
            if Fault.ALLOWS_NO_DELETION in self.faults:
                code = NOT_AUTHORIZED
            else:
                self.topics.pop(name, None)
            results.append(
                DeleteTopicsResponse.DeletableTopicResult(
                    name=name, topic_id=NO_ID, error_code=code, error_message=None
                )
            )
        return DeleteTopicsResponse(throttle_time_ms=0, responses=results)

    def _producer_id(self, _: Any) -> Any:
        self._producers += 1
        code = 31 if Fault.GIVES_NO_PRODUCER_IDS in self.faults else 0
        return InitProducerIdResponse(
            throttle_time_ms=0, error_code=code, producer_id=self._producers, producer_epoch=0
        )

    def _produce(self, request: Any) -> Any:
        responses = []
        for asked in request.topic_data:
            topic = self._topic(asked, asked.name)
            answers = [
                (part.index, self._append(topic.partitions[part.index], bytes(part.records)))
                for part in asked.partition_data
            ]
            responses.append(
                ProduceResponse.TopicProduceResponse(
                    name=asked.name,
                    topic_id=asked.topic_id,
                    partition_responses=[
                        ProduceResponse.TopicProduceResponse.PartitionProduceResponse(
                            index=index,
                            error_code=answer.error,
                            base_offset=answer.base_offset,
                            log_append_time_ms=answer.append_time_ms,
                            log_start_offset=0,
                            record_errors=[],
                            error_message=None,
                        )
                        for index, answer in answers
                    ],
                )
            )
        if Fault.LOSES_AN_ANSWER in self.faults and self._batches == 4:
            raise _HangUp
        return ProduceResponse(responses=responses, throttle_time_ms=0)

    def _topic(self, asked: Any, name: str) -> _Topic:
        return self.topics.get(name) or next(
            topic for topic in self.topics.values() if topic.topic_id == asked.topic_id
        )

    def _append(self, partition: _Partition, batch: bytes) -> _Answer:
        """Compare and append."""
        self._batches += 1
        if Fault.HANGS_UP_AT_BATCHES in self.faults and self._batches > 4:
            raise _HangUp
        if Fault.ALLOWS_NO_WRITING in self.faults:
            return _Answer(NOT_AUTHORIZED)
        ((_, header),) = batch_headers(memoryview(batch))
        assert not header.is_corrupt(memoryview(batch), 0)
        first = header.base_sequence
        last = (first + header.last_offset_delta) % SEQUENCE_MODULUS
        states = self._shared if Fault.ONE_STATE_FOR_ALL_PARTITIONS in self.faults else partition.states
        state = states.get(header.producer_id)
        answer = self._judged(state, header.producer_epoch, first, last)
        if answer is not None and not answer.error and self._has(Fault.APPENDS_REPEATS):
            answer = None
        elif answer is not None and (
            (answer.error and self._has(Fault.APPENDS_WHAT_IT_REFUSES))
            or (not answer.error and self._has(Fault.APPENDS_REPEATS_SILENTLY))
        ):
            self._store(partition, batch)
        if answer is not None:
            return answer
        base = self._store(partition, batch)
        if state is None or header.producer_epoch > state.epoch:
            remembered = 1 if self._has(Fault.REMEMBERS_ONE_BATCH) else REMEMBERED
            state = states[header.producer_id] = _State(header.producer_epoch, deque(maxlen=remembered))
        state.batches.append(_Batch(first, last, base, header.max_timestamp))
        if self._has(Fault.FORGETS_AT_ONCE):
            del states[header.producer_id]
        return _Answer(0, base + 1 if self._has(Fault.ACKNOWLEDGES_WRONG_OFFSETS) else base)

    def _judged(self, state: _State | None, epoch: int, first: int, last: int) -> _Answer | None:
        """What is answered without appending; None: it is appended."""
        if state is None:
            return _Answer(UNKNOWN_PRODUCER) if first and self._has(Fault.REFUSES_FIRST_BATCHES) else None
        if self._has(Fault.IGNORES_EPOCHS):
            epoch = state.epoch
        if epoch < state.epoch:
            return None if self._has(Fault.TAKES_OLD_EPOCHS) else _Answer(OLD_EPOCH)
        if epoch > state.epoch:
            return _Answer(OUT_OF_ORDER) if first else None
        for known in state.batches:
            if (known.first, known.last) == (first, last):
                if self._has(Fault.ANSWERS_REPEATS_BY_46):
                    return _Answer(DUPLICATE)
                time_ms = -1 if self._has(Fault.TELLS_NO_REPEATS) else known.max_timestamp
                wrong = self._has(Fault.WRONG_OFFSETS_FOR_REPEATS)
                if self._has(Fault.ACKNOWLEDGES_WRONG_OFFSETS):
                    wrong = not wrong
                return _Answer(0, known.base_offset + wrong, time_ms)
        due = state.batches[-1].last + 1
        if not self._has(Fault.DOES_NOT_WRAP):
            due %= SEQUENCE_MODULUS
        missing = (first - due) % SEQUENCE_MODULUS < SEQUENCE_MODULUS // 2
        taken = self._has(Fault.TAKES_GAPS if missing else Fault.TAKES_OVERLAPS)
        return None if first == due or taken else _Answer(OUT_OF_ORDER)

    def _has(self, fault: Fault) -> bool:
        return fault in self.faults

    def _store(self, partition: _Partition, batch: bytes) -> int:
        base = partition.end
        ((_, header),) = batch_headers(memoryview(batch))
        partition.end += header.records
        self._stored += 1
        if self._has(Fault.LOSES_BATCHES) and self._stored == 3:
            return base
        stored = bytearray(batch)
        struct.pack_into(">q", stored, 0, base)
        if self._has(Fault.ALTERS_BATCHES):
            stored[_CRC_AT] ^= 1
        partition.log.append(bytes(stored))
        return base

    def _fetch(self, request: Any) -> Any:
        responses = []
        for asked in request.topics:
            topic = self._topic(asked, asked.topic)
            kind = FetchResponse.FetchableTopicResponse
            parts = []
            for part in asked.partitions:
                partition = topic.partitions[part.partition]
                records = b"".join(
                    stored
                    for stored in partition.log
                    for _, header in batch_headers(memoryview(stored))
                    if header.next_offset > part.fetch_offset
                )
                parts.append(
                    kind.PartitionData(
                        partition_index=part.partition,
                        error_code=0,
                        high_watermark=partition.end,
                        last_stable_offset=partition.end,
                        log_start_offset=0,
                        aborted_transactions=None,
                        preferred_read_replica=-1,
                        records=records,
                    )
                )
            responses.append(kind(topic=asked.topic, topic_id=asked.topic_id, partitions=parts))
        return FetchResponse(throttle_time_ms=0, error_code=0, session_id=0, responses=responses)

    def _offsets(self, request: Any) -> Any:
        kind = ListOffsetsResponse.ListOffsetsTopicResponse
        topics = [
            kind(
                name=asked.name,
                partitions=[
                    kind.ListOffsetsPartitionResponse(
                        partition_index=part.partition_index,
                        error_code=0,
                        timestamp=-1,
                        offset=self.topics[asked.name].partitions[part.partition_index].end,
                        leader_epoch=0,
                    )
                    for part in asked.partitions
                ],
            )
            for asked in request.topics
        ]
        return ListOffsetsResponse(throttle_time_ms=0, topics=topics)

    def _describe(self, request: Any) -> Any:
        topics = []
        for asked in request.topics:
            kind = DescribeProducersResponse.TopicResponse
            partitions = []
            for index in asked.partition_indexes:
                states = self.topics[asked.name].partitions[index].states
                if self._has(Fault.ONE_STATE_FOR_ALL_PARTITIONS):
                    states = self._shared
                wrong = 1 if self._has(Fault.DESCRIBES_WRONGLY) else 0
                producers = [
                    kind.PartitionResponse.ProducerState(
                        producer_id=producer_id,
                        producer_epoch=state.epoch,
                        last_sequence=state.batches[-1].last - wrong,
                        last_timestamp=state.batches[-1].max_timestamp,
                        coordinator_epoch=-1,
                        current_txn_start_offset=-1,
                    )
                    for producer_id, state in states.items()
                ]
                partitions.append(
                    kind.PartitionResponse(
                        partition_index=index, error_code=0, error_message=None, active_producers=producers
                    )
                )
            topics.append(kind(name=asked.name, partitions=partitions))
        return DescribeProducersResponse(throttle_time_ms=0, topics=topics)

    def _configs(self, request: Any) -> Any:
        values = {"producer.id.expiration.ms": "86400000", "transactional.id.expiration.ms": "604800000"}
        if self._has(Fault.TELLS_NO_LIFETIME):
            values = {}
        elif self._has(Fault.IS_BEFORE_3_4):
            del values["producer.id.expiration.ms"]
        kind = DescribeConfigsResponse.DescribeConfigsResult
        results = [
            kind(
                error_code=0,
                error_message=None,
                resource_type=asked.resource_type,
                resource_name=asked.resource_name,
                configs=[
                    kind.DescribeConfigsResourceResult(
                        name=name,
                        value=value,
                        read_only=False,
                        config_source=5,
                        is_sensitive=False,
                        synonyms=[],
                        config_type=0,
                        documentation=None,
                    )
                    for name, value in values.items()
                    if asked.configuration_keys is None or name in asked.configuration_keys
                ],
            )
            for asked in request.resources
        ]
        return DescribeConfigsResponse(throttle_time_ms=0, results=results)


class _HangUp(Exception):
    """It closes the connection without an answer."""


def _receive(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = sock.recv(size - len(data))
        if not part:
            raise _HangUp
        data += part
    return data
