"""A source whose answers are damaged or absurd, for one partition of three or as a whole: the others are copied."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import pytest
from crc32c import crc32c
from kafka.protocol.consumer import FetchRequest, FetchResponse
from kafka.protocol.producer import ProduceRequest, ProduceResponse
from kafka.record import MemoryRecords
from model_broker import FRESH_MS, Source, batch_of
from model_pump import World
from tests.support.bombs import ZSTD, batch_of_section, bomb
from told_receipts import ToldReceipts

from sparkmirror.config import ClusterConfig, FlowConfig, ProduceConfig
from sparkmirror.exact.durable.claim_log import ClaimLog
from sparkmirror.exact.durable.claims import Claim
from sparkmirror.exact.position.reader import PositionReader
from sparkmirror.exact.position.route import PartitionPair, PartitionReading, Refusal
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.wire.answer_bounds import LARGEST_BATCH
from sparkmirror.kafka.wire.batches import batch_headers
from sparkmirror.pump.flow_pump import FlowPump
from sparkmirror.pump.loop import Loop
from sparkmirror.pump.messages.control import ControlState
from sparkmirror.pump.messages.orders import FlowOrder, Receipt, RouteOrder

VERSION = 13
"""Of Fetch and Produce: both with topic ids."""
END = 40
GOOD = Source([(10, FRESH_MS)] * 4)
LAST_OFFSET_DELTA_AT, BASE_TIMESTAMP_AT, COUNT_AT = 23, 27, 57
MB = 1 << 20

Answer = Callable[[FetchRequest, int], bytes]


class Played:
    """A broker behind a socket pair: requests in, what `answer` says out."""

    renewal_due = False
    round_trip_s = 0.001

    def __init__(self, answer: Callable[[bytes], bytes]) -> None:
        self.socket, self._theirs = socket.socketpair()
        self._answer = answer
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError, ValueError), self._theirs.makefile("rb") as requests:
            while size := requests.read(4):
                self._theirs.sendall(self._answer(requests.read(struct.unpack(">i", size)[0])))

    def version(self, *_: object) -> int:
        return VERSION

    def close(self) -> None:
        self.socket.close()
        self._theirs.close()


def framed(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


class PlayedSource:
    """Three partitions; `first` gives the records of partition 0, `instead` may answer for all of them."""

    def __init__(self, first: Callable[[int], bytes], instead: Sequence[bytes] = (), throttle_ms: int = 0) -> None:
        self._first = first
        self._instead = list(instead)
        self._throttle_ms = throttle_ms
        self.fetches = 0

    def answer(self, data: bytes) -> bytes:
        self.fetches += 1
        if self._instead:
            return self._instead.pop(0)
        request = FetchRequest.decode(data, version=VERSION, header=True)
        topic = FetchResponse.FetchableTopicResponse
        answer = FetchResponse(
            throttle_time_ms=self._throttle_ms,
            responses=[
                topic(
                    topic_id=asked.topic_id,
                    partitions=[
                        topic.PartitionData(
                            partition_index=part.partition,
                            high_watermark=END,
                            records=self._records(part.partition, part.fetch_offset),
                        )
                        for part in asked.partitions
                    ],
                )
                for asked in request.topics
            ],
        )
        answer.API_VERSION = VERSION
        answer.with_header(correlation_id=request.header.correlation_id)
        return framed(bytes(answer.encode(header=True)))

    def _records(self, partition: int, offset: int) -> bytes:
        time.sleep(0.01)
        return self._first(offset) if partition == 0 else GOOD.fetch(offset, 2)


class PlayedTarget:
    """Appends what comes; `garble` may spoil an answer."""

    def __init__(self, garble: Callable[[int, ProduceResponse], bytes | None] = lambda _, answer: None) -> None:
        self.records: dict[int, list[bytes]] = defaultdict(list)
        self._ends: dict[int, int] = defaultdict(int)
        self._garble = garble
        self.answered = 0

    def answer(self, data: bytes) -> bytes:
        request = ProduceRequest.decode(data, version=VERSION, header=True)
        topic = ProduceResponse.TopicProduceResponse
        answer = ProduceResponse(
            responses=[
                topic(
                    topic_id=sent.topic_id,
                    partition_responses=[
                        topic.PartitionProduceResponse(
                            index=part.index,
                            base_offset=self._append(part.index, bytes(part.records)),
                            log_append_time_ms=-1,
                        )
                        for part in sent.partition_data
                    ],
                )
                for sent in request.topic_data
            ]
        )
        answer.API_VERSION = VERSION
        answer.with_header(correlation_id=request.header.correlation_id)
        self.answered += 1
        garbled = self._garble(self.answered, answer)
        return framed(bytes(answer.encode(header=True))) if garbled is None else garbled

    def _append(self, partition: int, batch: bytes) -> int:
        ((_, header),) = batch_headers(memoryview(batch))
        base = self._ends[partition]
        self._ends[partition] += header.records
        self.records[partition].append(batch)
        return base

    def values(self, partition: int) -> list[int]:
        """The records in the log's order: each is its offset at the source."""
        return [
            int(record.value)
            for data in self.records[partition]
            for batch in [MemoryRecords(data).next_batch()]
            for record in batch
        ]

    def count(self, partition: int) -> int:
        return self._ends[partition]


class Flow:
    """A pump between the two."""

    def __init__(self, loop: Loop, source: PlayedSource, target: PlayedTarget, codec: str) -> None:
        self.loop, self.source, self.target = loop, source, target
        clusters = [ClusterConfig(alias=alias, bootstrap_servers=("127.0.0.1:1",)) for alias in "AB"]
        flow = FlowConfig(source=clusters[0], target=clusters[1], produce=ProduceConfig(compression_type=codec))
        routes = tuple(RouteOrder(source_topic="t", target_topic="A.t", partition=at, until=END) for at in range(3))
        order = FlowOrder(flow=flow, cluster_id="c", producer_id=4000, producer_epoch=0, leader_rank=-1, routes=routes)
        self.pump = FlowPump(order, loop, memory_bytes=8 * MB)
        self.pump.control(ControlState())
        self._told = ToldReceipts(self.pump)
        self.played: list[Played] = []

    def dial(self, client: ClusterClient) -> Played:
        side = self.source if client is self.pump.clients.source else self.target
        self.played.append(Played(side.answer))
        return self.played[-1]

    def turn(self, enough: Callable[[Sequence[Receipt]], bool], seconds: float = 60.0) -> Sequence[Receipt]:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.pump.flush()
            self.loop.turn(0.05)
            if enough(receipts := self._told.receipts()):
                return receipts
        raise AssertionError([(receipt.state, receipt.reason) for receipt in self.pump.receipts()])

    def close(self) -> None:
        self.pump.close()
        for played in self.played:
            played.close()


Make = Callable[..., Flow]


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    loop = Loop()
    flows: list[Flow] = []
    claims: list[Claim] = []

    def read(
        _: PositionReader,
        routes: Mapping[PartitionPair, object],
        ready: Callable[[Mapping[PartitionPair, PartitionReading | Refusal]], None],
    ) -> None:
        found: dict[PartitionPair, PartitionReading | Refusal] = {}
        for route in routes:
            world = World(Source([(10, FRESH_MS)] * 4))
            world.target.claims = [
                replace(claim, partition=0) for claim in claims if claim.partition == route.partition
            ]
            for batch in flows[0].target.records[route.partition]:
                world.target.append(batch, loop.now)
            found[route] = world.target.partition_reading(world.source, loop.now)
        ready(found)

    def claim_each(_: ClaimLog, segments: Sequence[Claim]) -> dict[int, ConnectionError]:
        claims.extend(segments)
        return {}

    monkeypatch.setattr(PositionReader, "read", read)
    monkeypatch.setattr(ClaimLog, "claim_each", claim_each)
    monkeypatch.setattr(ClusterClient, "dial", lambda client, *_, **__: flows[0].dial(client))

    def made(source: PlayedSource, target: PlayedTarget | None = None, codec: str = "none") -> Flow:
        flows.append(Flow(loop, source, target or PlayedTarget(), codec))
        return flows[0]

    yield made
    for flow in flows:
        flow.close()
    loop.close()


def others_done(receipts: Sequence[Receipt]) -> bool:
    return [receipt.state for receipt in receipts[1:]] == ["done", "done"]


def all_settled(receipts: Sequence[Receipt]) -> bool:
    return others_done(receipts) and receipts[0].state in ("done", "parked")


def changed(batch: bytes, at: int, layout: str, value: int, *, mended: bool = True) -> bytes:
    """With another number, its CRC right for it."""
    data = bytearray(batch)
    struct.pack_into(layout, data, at, value)
    if mended:
        struct.pack_into(">I", data, 17, crc32c(data[21:]))
    return bytes(data)


BATCH = batch_of(0, tuple(range(10)), 10, FRESH_MS)
GAPS = batch_of(0, (0, 2, 9), 10, FRESH_MS)
ABSURD = {
    "a wrong CRC": (changed(BATCH, 30, ">b", 7, mended=False), "its CRC does not match"),
    "a length of -1": (changed(BATCH, 8, ">i", -1), "a batch of 11 bytes"),
    "a length of 20": (changed(BATCH, 8, ">i", 20), "a batch of 32 bytes"),
    "an offset of -5": (changed(BATCH, 0, ">q", -5), "a batch at offset -5"),
    "the last offset there is": (changed(BATCH, 0, ">q", 2**63 - 1), "a batch at offset 9223372036854775807"),
    "a negative span": (changed(BATCH, LAST_OFFSET_DELTA_AT, ">i", -7), "whose last one is -7 further"),
    "a format that is not known": (changed(BATCH, 16, ">b", 3), "message format v3 is not known"),
    "a codec that is not known": (changed(GAPS, 21, ">h", 7), "codec 7, which Kafka does not have"),
    "too large a count": (changed(GAPS, COUNT_AT, ">i", 2**31 - 1), "2147483647 records announced, 3 found"),
    "a negative count": (changed(GAPS, COUNT_AT, ">i", -3), "-3 records announced, 3 found"),
    "no records in its bytes": (batch_of_section(b"\xff" * 40, 3, span=9), "a number of more than 64 bits"),
    "a record of 2 GB": (batch_of_section(b"\xfe\xff\xff\xff\x0f\0\0\0" * 4, 3, span=9), "3 records announced"),
    "no lz4": (batch_of_section(b"junk" * 9, 3, attributes=3, span=9), "its lz4 data can't be decompressed"),
    "a snappy block that lies": (
        batch_of_section(b"\xff\xff\xff\xff\x0f" + b"junk", 3, attributes=2, span=9),
        "its snappy data can't be decompressed: 9 bytes that say they were 4294967295",
    ),
    "a marker without content": (batch_of_section(b"", 1, attributes=0x30), ""),
    "timestamps beyond all numbers": (changed(GAPS, BASE_TIMESTAMP_AT, ">q", 2**63 - 1), ""),
    "half a batch": (BATCH[:70], ""),
}


@pytest.mark.parametrize("case", ABSURD)
def test_a_batch_that_is_damaged_parks_its_partition_alone(make: Make, case: str) -> None:
    batch, why = ABSURD[case]
    flow = make(PlayedSource(lambda offset: batch))
    receipts = flow.turn(all_settled if why else others_done)
    assert [flow.target.count(partition) for partition in (1, 2)] == [END, END]
    if why:
        assert receipts[0].state == "parked"
        assert why in receipts[0].reason
        assert flow.target.count(0) == 0


def test_what_stands_before_a_damaged_batch_is_copied(make: Make) -> None:
    damaged = changed(batch_of(20, tuple(range(20, 30)), 10, FRESH_MS), 30, ">b", 7, mended=False)
    flow = make(
        PlayedSource(lambda offset: GOOD.fetch(offset, 2)[: 2 * len(BATCH) + 20] + damaged if offset < 20 else damaged)
    )
    receipts = flow.turn(all_settled)
    assert receipts[0].state == "parked"
    assert "the batch at source offset 20 is corrupt" in receipts[0].reason
    assert flow.target.count(0) == 20


GARBLED = {
    "nothing in it": framed(b""),
    "junk": framed(b"junk" * 100),
    "zeros": framed(bytes(1000)),
    "numbers without an end": framed(b"\0" * 15 + b"\xff" * MB),
    "a negative size": struct.pack(">i", -1),
    "two gigabytes": struct.pack(">i", 2**31 - 1) + b"x" * 100,
    "another protocol": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "more than was asked for": struct.pack(">i", LARGEST_BATCH + 5 * MB) + b"x" * 100,
}


@pytest.mark.parametrize("case", GARBLED)
def test_an_answer_that_is_none_costs_the_connection(make: Make, case: str) -> None:
    """Twice; then the broker is itself again."""
    flow = make(PlayedSource(lambda offset: GOOD.fetch(offset, 2), instead=[GARBLED[case]] * 2))
    receipts = flow.turn(lambda receipts: all(receipt.state == "done" for receipt in receipts))
    assert [flow.target.count(partition) for partition in range(3)] == [END] * 3
    assert {receipt.records for receipt in receipts} == {END}


def test_acknowledgements_that_are_none_cost_the_connection(make: Make) -> None:
    """What was in flight is looked up at the target, and nothing is written twice."""

    def garble(number: int, answer: ProduceResponse) -> bytes | None:
        partitions = answer.responses[0].partition_responses
        match number:
            case 1:
                return framed(b"junk")
            case 2:
                return framed(bytes(answer.encode(header=True))) * 2
            case 3:
                partitions[0].index = 77
            case 4:
                answer.responses = []
            case 5:
                return struct.pack(">i", 40 * MB)
        return None

    target = PlayedTarget(garble)
    flow = make(PlayedSource(lambda offset: GOOD.fetch(offset, 1)), target)
    flow.turn(lambda receipts: all(receipt.state == "done" for receipt in receipts))
    assert [target.count(partition) for partition in range(3)] == [END] * 3


class Unasked(PlayedSource):
    """It adds records of partitions that it was not asked for: one of the topic, and of another topic."""

    def answer(self, data: bytes) -> bytes:
        size = struct.calcsize(">i")
        honest = FetchResponse.decode(super().answer(data)[size:], version=VERSION, header=True)
        topic = FetchResponse.FetchableTopicResponse
        more = topic.PartitionData(partition_index=7, high_watermark=END, records=GOOD.fetch(0, 4))
        honest.responses[0].partitions.append(more)
        honest.responses.append(topic(topic_id=uuid.uuid4(), partitions=[*honest.responses[0].partitions]))
        return framed(bytes(honest.encode(header=True)))


def test_records_of_partitions_that_were_not_asked_for_are_passed_over(make: Make) -> None:
    flow = make(Unasked(lambda offset: GOOD.fetch(offset, 1)))
    flow.turn(lambda receipts: all(receipt.state == "done" for receipt in receipts))
    assert flow.target.records.keys() == {0, 1, 2}
    assert [flow.target.values(partition) for partition in range(3)] == [list(range(END))] * 3


def batches_at(*bases: int) -> bytes:
    return b"".join(batch_of(base, tuple(range(base, base + 10)), 10, FRESH_MS) for base in bases)


OUT_OF_ORDER = "the source's answer is out of order"
LYING: dict[str, tuple[Callable[[int], bytes], list[int], str]] = {
    "the same batch twice": (lambda offset: batches_at(offset, offset), list(range(10)), OUT_OF_ORDER),
    "overlapping batches": (lambda offset: batches_at(offset, offset + 5), list(range(10)), OUT_OF_ORDER),
    "batches that go backwards": (lambda offset: batches_at(offset + 10, offset), list(range(10, 20)), OUT_OF_ORDER),
    "tiny batches that go backwards": (
        lambda offset: b"".join(
            batch_of(base, (base,), 1, FRESH_MS) for base in (*range(offset, offset + 20), *range(offset, offset + 9))
        ),
        list(range(20)),
        OUT_OF_ORDER,
    ),
    "batches before the offset, too": (lambda offset: batches_at(*range(0, offset + 10, 10)), list(range(END)), ""),
    "the first batch for ever": (
        lambda offset: batches_at(0),
        list(range(10)),
        "the source answers with records up to 9 in place of those from 10 on",
    ),
    "records out of order": (lambda offset: batch_of(0, (0, 5, 3), 10, FRESH_MS), [], "can't be read"),
    "a record twice": (lambda offset: batch_of(0, (0, 5, 5), 10, FRESH_MS), [], "can't be read"),
    "records beyond their batch": (lambda offset: batch_of(0, (0, 30), 10, FRESH_MS), [], "can't be read"),
}


@pytest.mark.parametrize("case", LYING)
def test_a_source_that_lies_about_offsets_makes_no_record_come_twice_or_early(make: Make, case: str) -> None:
    """What it leaves out can't be known: it is as if it was compacted."""
    answer, copied, why = LYING[case]
    flow = make(PlayedSource(lambda offset: answer(offset) if offset < END else b""))
    receipts = flow.turn(all_settled)
    assert receipts[0].state == ("parked" if why else "done")
    assert why in receipts[0].reason
    assert flow.target.values(0) == copied
    assert [flow.target.values(partition) for partition in (1, 2)] == [list(range(END))] * 2


def test_a_throttle_of_an_hour_is_shown_and_ends_sooner(make: Make) -> None:
    flow = make(PlayedSource(lambda offset: GOOD.fetch(offset, 1), throttle_ms=3_600_000))
    receipts = flow.turn(lambda receipts: all("throttles sparkmirror" in receipt.reason for receipt in receipts))
    assert flow.source.fetches == 1
    for receipt in receipts:
        assert receipt.state == "running"
        assert receipt.reason.startswith("source broker 1 throttles sparkmirror (a quota there): it is asked again in ")
        assert int(receipt.reason.split()[-2]) <= 300


def test_a_bomb_is_copied_beside_the_others(make: Make) -> None:
    """Twelve megabytes in each of ten records; the codec is another one."""
    packed = bomb(ZSTD, [12 * MB] * 9 + [5], base=0)
    flow = make(PlayedSource(lambda offset: packed if offset < 10 else GOOD.fetch(offset, 2)), codec="gzip")
    flow.turn(lambda receipts: all(receipt.state == "done" for receipt in receipts))
    assert [flow.target.count(partition) for partition in range(3)] == [END] * 3


def test_a_record_that_stays_too_large_parks_its_partition_with_its_size(make: Make) -> None:
    """Snappy makes more of 400 MB than is made of one record; what stands before it is copied."""
    packed = bomb(ZSTD, [5, 5, 400 * MB], base=0)
    flow = make(PlayedSource(lambda offset: packed), codec="snappy")
    receipts = flow.turn(all_settled)
    assert receipts[0].state == "parked"
    assert receipts[0].reason == (
        f"the record at source offset 2, which has {400 * MB + 7} bytes, makes a batch of more than {16 * MB} bytes "
        "with snappy: a pump makes no larger one; set producer.compression.type to none, which leaves batches as they "
        "are"
    )
    assert flow.target.count(0) == 2
