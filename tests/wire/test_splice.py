"""Spliced batches hold the records they should, as kafka-python and a real broker read them."""

from __future__ import annotations

import contextlib
import random
import struct
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka import KafkaConsumer
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.structs import TopicPartition
from lab import KafkaCluster
from tests.support.built import GZIP, LEADER_EPOCH, LZ4, ZSTD, Content, build, contents, read_back, source_batches

from sparkmirror.config import ClusterConfig
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.wire import produce
from sparkmirror.kafka.wire.batches import CODECS, HEADER, HEADER_SIZE, BatchHeader, batch_headers, rewrite
from sparkmirror.kafka.wire.codecs import Codec
from sparkmirror.kafka.wire.fetch_session import VERSIONS as FETCH_VERSIONS
from sparkmirror.kafka.wire.fetch_session import FetchPosition, FetchSession
from sparkmirror.kafka.wire.pieces import RawRecord
from sparkmirror.kafka.wire.splice import RecordTooLarge, Run, Spliced, splice

modest = settings(max_examples=80, deadline=None)
NOW = 1_700_000_000_000
NOT_LEADER = 6
any_codec = st.none() | st.sampled_from([*map(Codec, range(5)), Codec(GZIP, 1), Codec(LZ4, 12), Codec(ZSTD, 19)])


def sent(made: Spliced, *, producer_id: int = 7, sequence: int = 0) -> bytearray:
    """The batch as the pump sends it."""
    data = bytearray(made.data)
    attributes = BatchHeader._make(HEADER.unpack_from(data)).attributes
    rewrite(memoryview(data), 0, len(data), attributes, producer_id, 0, sequence)
    return data


def came_out(made: Sequence[Spliced]) -> list[RawRecord]:
    """All records with their source offsets, after everything that is said of them was found true."""
    found = []
    for one in made:
        header = BatchHeader._make(HEADER.unpack_from(one.data))
        records = read_back(sent(one))
        assert [record.offset for record in records] == list(range(one.count))
        assert (header.size, header.magic, header.records) == (len(one.data), 2, one.count)
        assert (header.base_offset, header.last_offset_delta) == (0, one.count - 1)
        assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, -1)
        assert header.attributes < len(CODECS)
        assert (header.base_timestamp, header.max_timestamp) == (one.base_timestamp, one.max_timestamp)
        assert one.max_timestamp == max(record.timestamp for record in records)
        assert all(run.length > 0 for run in one.runs)
        assert all(run.upstream + run.length < following.upstream for run, following in pairwise(one.runs))
        upstream = [run.upstream + at for run in one.runs for at in range(run.length)]
        found += [record._replace(offset=offset) for record, offset in zip(records, upstream, strict=True)]
    return found


def wanted(source: Sequence[Content], from_offset: int = 0) -> list[RawRecord]:
    return [record for content in source for record in content.consumed() if record.offset >= from_offset]


def plain(count: int, first: int = 0, *, codec: int = 0, size: int = 100, step: int = 1) -> Content:
    """Records with values of `size` bytes, every `step`th offset, a ms apart."""
    records = [
        RawRecord(first + at * step, NOW + at, b"key", bytes(str(at), "ascii").ljust(size, b"."), ())
        for at in range(count)
    ]
    return Content(2, codec, records, first + count * step)


# --- records ------------------------------------------------------------------------------------------


@modest
@given(contents(), st.data())
def test_every_wanted_record_comes_out_once_and_unchanged(source: list[Content], data: st.DataObject) -> None:
    first, end = build_bounds(source)
    from_offset = data.draw(st.just(0) | st.integers(first, end), "from_offset")
    codec = data.draw(any_codec, "codec")
    max_records = data.draw(st.none() | st.integers(1, 20), "max_records")
    made = splice(source_batches(source), from_offset=from_offset, codec=codec, max_records=max_records)
    assert came_out(made) == wanted(source, from_offset)
    assert {one.data[22] for one in made} <= {source[0].codec if codec is None else codec.number}
    assert len(made) == (-(-len(wanted(source, from_offset)) // max_records) if max_records else bool(made))


def build_bounds(source: Sequence[Content]) -> tuple[int, int]:
    return min((record.offset for content in source for record in content.records), default=0), source[-1].next_offset


@modest
@given(contents(min_batches=2), st.data())
def test_where_the_source_is_read_on(source: list[Content], data: st.DataObject) -> None:
    first, end = build_bounds(source)
    from_offset = data.draw(st.just(0) | st.integers(first, end), "from_offset")
    max_records = data.draw(st.integers(1, 9), "max_records")
    ends = {content.records[-1].offset: content.next_offset for content in source if content.records}
    last = 0
    for content in source:  # emptied batches are over as soon as the records before them are
        last = content.records[-1].offset if content.records else last
        if last in ends:
            ends[last] = content.next_offset
    made = splice(source_batches(source), from_offset=from_offset, max_records=max_records)
    for one in made:
        last = one.runs[-1].upstream + one.runs[-1].length - 1
        assert one.next_upstream == ends.get(last, last + 1)
    assert not made or made[-1].next_upstream == source[-1].next_offset


@modest
@given(contents(magics=(0, 1, 2)), st.lists(st.integers(0, 2**31 - 1), min_size=5, max_size=5), st.integers(1, 9))
def test_the_leader_epoch_is_that_of_the_first_record(source: list[Content], epochs: list[int], most: int) -> None:
    batches = [
        (header._replace(leader_epoch=epoch), batch)
        for (header, batch), epoch in zip(source_batches(source), epochs, strict=False)
    ]
    expected = {
        record.offset: epoch if content.magic == 2 else -1
        for content, epoch in zip(source, epochs, strict=False)
        for record in content.records
    }
    for one in splice(batches, from_offset=0, max_records=most):
        assert one.leader_epoch == expected[one.runs[0].upstream]


def test_what_is_fine_is_not_touched() -> None:
    content = plain(5, 100, codec=LZ4)
    ((header, batch),) = source_batches([content])
    (made,) = splice([(header, batch)], from_offset=100)
    assert made.data[HEADER_SIZE:] == batch[HEADER_SIZE:]
    assert (made.runs, made.count, made.next_upstream) == ((Run(100, 5),), 5, 105)
    assert (made.base_timestamp, made.max_timestamp, made.leader_epoch) == (NOW, NOW + 4, LEADER_EPOCH)
    (unpacked,) = splice([(header, batch)], from_offset=0, codec=Codec(0))
    assert unpacked.data[HEADER_SIZE:] == build(content._replace(codec=0))[HEADER_SIZE:]


def test_gaps_are_closed_and_told() -> None:
    records = [RawRecord(offset, NOW, b"k", None, ()) for offset in (10, 11, 12, 20, 30, 31)]
    (made,) = splice(source_batches([Content(2, 0, records, 40)]), from_offset=11)
    assert made.runs == (Run(11, 2), Run(20, 1), Run(30, 2))
    assert (made.count, made.next_upstream) == (5, 40)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("codec", range(len(CODECS)), ids=CODECS)
def test_a_stamped_batch_with_no_gaps_is_rewritten_too(codec: int, count: int) -> None:
    content = plain(count, codec=codec)._replace(append_time=NOW + 5000)
    made = splice(source_batches([content]), from_offset=0)
    assert [record.timestamp for record in came_out(made)] == [NOW + 5000] * count


def test_more_records_than_short_numbers_reach() -> None:
    """Offset deltas of one, two and three bytes; lengths, too."""
    content = plain(20_000, size=5, step=2)
    content.records[-1] = content.records[-1]._replace(value=b"v" * 20_000)
    (made,) = splice(source_batches([content]), from_offset=0)
    assert came_out([made]) == content.records


def test_the_base_timestamp_is_the_first_records() -> None:
    records = [RawRecord(at, NOW - 1000 * at, b"k", None, ()) for at in range(5)]
    (made,) = splice(source_batches([Content(2, 0, records, 5)]), from_offset=2)
    assert (made.base_timestamp, made.max_timestamp) == (NOW - 2000, NOW - 2000)


@pytest.mark.parametrize("from_offset", [5, 6, 1000])
def test_nothing_left_is_nothing(from_offset: int) -> None:
    source = [plain(5), Content(2, 0, [], 8)]
    assert splice(source_batches(source), from_offset=from_offset) == []
    assert splice([], from_offset=0) == []


def test_record_attributes_are_kept() -> None:
    """Kafka has no use for them yet."""
    data = bytearray(build(plain(3, step=2)))
    data[HEADER_SIZE + 2] = 0x81  # after a length of two bytes
    ((_, header),) = batch_headers(memoryview(data))
    (made,) = splice([(header, memoryview(data))], from_offset=0)
    assert made.data[HEADER_SIZE + 2] == 0x81


# --- sizes --------------------------------------------------------------------------------------------


@modest
@given(contents(), st.integers(1, 25_000), any_codec)
def test_no_batch_is_larger_than_allowed(source: list[Content], max_bytes: int, codec: Codec | None) -> None:
    made: list[Spliced] = []
    refused: RecordTooLarge | None = None
    try:
        made = splice(source_batches(source), from_offset=0, codec=codec, max_bytes=max_bytes)
    except RecordTooLarge as error:
        refused = error
    if refused:
        alone = [
            content._replace(records=[one])
            for content in source
            for one in content.records
            if one.offset == refused.upstream
        ]
        kept = Codec(source[0].codec) if codec is None else codec
        (whole,) = splice(source_batches(alone), from_offset=0, codec=kept, max_bytes=refused.size)
        assert max_bytes < len(whole.data) <= refused.size
        assert came_out(refused.before) == [record for record in wanted(source) if record.offset < refused.upstream]
        return
    assert came_out(made) == wanted(source)
    assert all(len(one.data) <= max_bytes for one in made)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 3000), min_size=1, max_size=80), st.integers(3100, 9000), st.integers(0, 2))
def test_uncompressed_batches_are_as_few_as_can_be(sizes: list[int], max_bytes: int, gap: int) -> None:
    records = [RawRecord(at * (gap + 1), NOW + at * 700, b"k", b"v" * size, ()) for at, size in enumerate(sizes)]
    made = splice(source_batches([Content(2, 0, records, 10_000)]), from_offset=0, max_bytes=max_bytes)
    assert came_out(made) == records
    start = 0
    for one in made[:-1]:
        with_the_next = splice(
            source_batches([Content(2, 0, records[start : start + one.count + 1], 10_000)]), from_offset=0
        )
        assert len(with_the_next[0].data) > max_bytes
        start += one.count


@pytest.mark.parametrize("codec", range(1, len(CODECS)))
def test_compressed_batches_are_well_filled(codec: int) -> None:
    """Even where one half of a batch compresses much better than the other."""
    randomness = random.Random(5)
    records = [
        RawRecord(at, NOW + at, b"k", randomness.randbytes(500) if at < 1000 else b"v" * 500, ()) for at in range(2000)
    ]
    source = source_batches([Content(2, codec, records, 2000)])
    made = splice(source, from_offset=0, max_bytes=100_000)
    assert came_out(made) == records
    assert all(len(one.data) <= 100_000 for one in made)
    assert all(len(one.data) > 93_000 for one in made[:-1])


def test_a_batch_that_is_exactly_as_large_is_allowed() -> None:
    batches = source_batches([plain(3, step=2)])
    (made,) = splice(batches, from_offset=0)
    size = len(made.data)
    assert len(splice(batches, from_offset=0, max_bytes=size)) == 1
    assert [one.count for one in splice(batches, from_offset=0, max_bytes=size - 1)] == [2, 1]


def test_a_record_that_is_too_large_alone_is_named() -> None:
    small, large = plain(3), plain(1, 3, size=5000)
    with pytest.raises(RecordTooLarge, match="offset 3 makes a batch of 50") as caught:
        splice(source_batches([small, large]), from_offset=0, max_bytes=4000)
    assert caught.value.upstream == 3
    assert came_out(caught.value.before) == small.records
    assert [one.next_upstream for one in caught.value.before] == [3]
    assert caught.value.size == len(splice(source_batches([large]), from_offset=0)[0].data)


# --- what can't be read -------------------------------------------------------------------------------


def damaged(content: Content, at: int, value: int, layout: str = ">i") -> list[tuple[BatchHeader, memoryview]]:
    data = bytearray(build(content))
    struct.pack_into(layout, data, at, value)
    ((_, header),) = batch_headers(memoryview(data))
    return [(header, memoryview(data))]


@pytest.mark.parametrize("count", [1, 2, 4, -1, 2**31 - 1])
def test_a_wrong_count_is_noticed(count: int) -> None:
    with pytest.raises(ValueError, match=f"the batch at offset 0 can't be read: {count} records announced, 3 found"):
        splice(damaged(plain(3, step=2), 57, count), from_offset=0)


@pytest.mark.parametrize("magic", [-1, 3, 127])
def test_a_format_that_is_not_known_is_refused(magic: int) -> None:
    with pytest.raises(ValueError, match=f"message format v{magic}"):
        splice(damaged(plain(3), 16, magic, ">b"), from_offset=0)


def test_an_offset_after_the_batch_is_noticed() -> None:
    with pytest.raises(ValueError, match="3 records announced, 3 found"):
        splice(damaged(plain(3, step=2), 23, 3), from_offset=0)


def test_offsets_that_go_back_are_noticed() -> None:
    with pytest.raises(ValueError, match="offset 2 follows 4"):
        splice(source_batches([plain(5), plain(5, 2)]), from_offset=0)


def test_a_batch_that_is_cut_off_is_noticed() -> None:
    for count, batches in ((1, source_batches([plain(3)])), (2, source_batches([plain(3), plain(3, 3)]))):
        header, batch = batches[-1]
        with pytest.raises(ValueError, match=f"the batch at offset {3 * count - 3} can't be read: it is cut off"):
            splice([*batches[:-1], (header, batch[:-1])], from_offset=0)


def test_timestamps_that_no_batch_can_span_are_noticed() -> None:
    records = [RawRecord(at, timestamp, b"k", None, ()) for at, timestamp in enumerate((-2, 2**63 - 1))]
    with pytest.raises(ValueError, match="timestamps from -2 to 9223372036854775807"):
        splice(source_batches([Content(1, 1, records, 2)]), from_offset=0)
    for base, said in ((2**63 - 2, "to 9223372036854775808"), (-(2**63), "from -9223372036854775809")):
        falling = [RawRecord(2 * at, 5 - at if base < 0 else 5 + at, b"k", None, ()) for at in range(3)]
        with pytest.raises(ValueError, match=said):
            splice(damaged(Content(2, 0, falling, 6), 27, base + (base < 0), ">q"), from_offset=0)


@settings(max_examples=150, deadline=None)
@given(contents(), st.data())
def test_whatever_bytes_come_nothing_else_is_raised(source: list[Content], data: st.DataObject) -> None:
    log = bytearray(b"".join(map(build, source)))
    batches = [(header, position) for position, header in batch_headers(memoryview(log))]
    for _ in range(data.draw(st.integers(1, 3), "flips")):
        log[data.draw(st.integers(0, len(log) - 1), "at")] ^= data.draw(st.integers(1, 255), "bits")
    again = []
    for header, position in batches:
        size = header.size
        padded = bytes(log[position : position + max(size, HEADER_SIZE)]).ljust(HEADER_SIZE, b"\0")
        again.append((BatchHeader._make(HEADER.unpack_from(padded)), memoryview(log)[position : position + size]))
    with contextlib.suppress(ValueError):
        splice(again, from_offset=0, codec=Codec(0))


# --- real brokers -------------------------------------------------------------------------------------


class Broker:
    """The one leader there is, asked by the wire's own requests."""

    def __init__(self, cluster: KafkaCluster) -> None:
        servers = cluster.bootstrap_servers
        self.client = ClusterClient(ClusterConfig(alias="it", bootstrap_servers=tuple(servers.split(","))), "test")
        self.admin = KafkaAdminClient(bootstrap_servers=servers)
        self.consumer = KafkaConsumer(bootstrap_servers=servers, auto_offset_reset="earliest", check_crcs=True)

    def close(self) -> None:
        self.client.close()
        self.admin.close()
        self.consumer.close()

    def create(self, topic: str, **settings: str) -> None:
        self.admin.create_topics([NewTopic(topic, 1, 1, topic_configs=settings)])
        deadline = time.monotonic() + 20
        while (found := self.client.metadata([topic])[topic]).error or found.partitions[0].leader < 0:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        self.leader, self.topic_id = found.partitions[0].leader, found.topic_id

    def append(self, topic: str, batch: bytearray) -> produce.Ack:
        connection = self.client.broker(self.leader)
        version = connection.version(produce.API_KEY, produce.VERSIONS, "Produce")
        field = produce.topic_field(version, topic, self.topic_id)
        request = produce.produce_request(version, 1, b"test", 10_000, {field: {0: memoryview(batch)}})
        while True:
            (ack,) = produce.read_answer(version, connection.exchange_raw(request))[1]
            if ack.error != NOT_LEADER:  # a broker may hear later than the metadata that it leads a new topic
                return ack
            time.sleep(0.1)

    def stored(self, topic: str) -> memoryview:
        connection = self.client.broker(self.leader)
        session = FetchSession(
            connection.version(1, FETCH_VERSIONS, "Fetch"),
            client_id="test",
            max_wait_ms=100,
            min_bytes=1,
            max_bytes=1 << 24,
            partition_max_bytes=1 << 24,
            incremental=False,
        )
        session.want(topic, self.topic_id, 0, FetchPosition(0, -1, -1))
        _, (partition,) = session.read(connection.exchange_raw([session.request(1)]))
        return partition.records

    def consumed(self, topic: str, count: int) -> list[RawRecord]:
        partition = TopicPartition(topic, 0)
        self.consumer.assign([partition])
        self.consumer.seek_to_beginning(partition)
        found: list[RawRecord] = []
        deadline = time.monotonic() + 30
        while len(found) < count and time.monotonic() < deadline:
            for one in self.consumer.poll(timeout_ms=500).get(partition, ()):
                headers = tuple((name.encode(), value) for name, value in one.headers)
                found.append(RawRecord(one.offset, one.timestamp, one.key, one.value, headers))
        return found


@pytest.fixture
def source_broker(source_cluster: KafkaCluster) -> Iterator[Broker]:
    broker = Broker(source_cluster)
    yield broker
    broker.close()


@pytest.fixture
def target_broker(target_cluster: KafkaCluster) -> Iterator[Broker]:
    broker = Broker(target_cluster)
    yield broker
    broker.close()


def varied(magic: int, codec: int, first: int) -> Content:
    """Twenty records (one, if it is an old message alone) with gaps and timestamps to and fro."""
    count = 20 if codec or magic == 2 else 1
    records = [
        RawRecord(
            first + at * 3,
            int(time.time() * 1000) - at * 7 % 60_000 if magic else -1,
            b"key%d" % at if at % 5 else None,
            b"v" * at * 200 if at % 7 else None,
            ((b"h", b"x"), (b"n", None)) if magic == 2 and at % 3 else (),
        )
        for at in range(count)
    ]
    return Content(magic, codec, records, records[-1].offset + 1)


@pytest.mark.broker
@pytest.mark.parametrize(
    "codec",
    [
        *map(Codec, range(len(CODECS))),
        Codec(GZIP, 9),
        Codec(LZ4, 1),
        Codec(LZ4, 17),
        Codec(ZSTD, -131_072),
        Codec(ZSTD, 22),
    ],
    ids=lambda codec: CODECS[codec.number] + ("" if codec.level is None else f" {codec.level}"),
)
def test_a_broker_takes_them_and_a_consumer_reads_them(target_broker: Broker, topic_name: str, codec: Codec) -> None:
    """The broker's reader, which is Java's, looks into each batch of a producer with sequences."""
    target_broker.create(topic_name)
    source, first = [], 5
    for magic in (2, 1, 0, 2):
        for old_codec in range(4):
            source.append(varied(magic, old_codec, first))
            first = source[-1].next_offset
    sequence = 0
    made = [
        *splice(source_batches(source), from_offset=0, codec=codec, max_bytes=20_000),
        *splice(source_batches(source), from_offset=10, codec=codec),
    ]
    assert len(made) > (1 if codec.number else 5)
    for one in made:
        ack = target_broker.append(topic_name, sent(one, sequence=sequence))
        assert (ack.error, ack.record_errors, ack.message, ack.base_offset) == (0, (), "", sequence)
        sequence += one.count
    expected = [*wanted(source), *wanted(source, 10)]
    assert target_broker.consumed(topic_name, sequence) == [
        record._replace(offset=offset) for offset, record in enumerate(expected)
    ]


@pytest.mark.broker
@pytest.mark.parametrize("codec", range(len(CODECS)), ids=CODECS)
def test_what_a_broker_has_stamped(source_broker: Broker, target_broker: Broker, topic_name: str, codec: int) -> None:
    """From a LogAppendTime topic to a CreateTime topic, which must bear the same timestamps."""
    stored_as = {
        "message.timestamp.type": "LogAppendTime",
        "compression.type": CODECS[codec] if codec else "uncompressed",
    }
    source_broker.create(topic_name, **stored_as)
    target_broker.create(topic_name)
    for first in (0, 20):  # sequences, too: another batch with the same one would be a duplicate
        (made,) = splice(source_batches([varied(2, ZSTD, first)]), from_offset=0)
        assert source_broker.append(topic_name, sent(made, sequence=first)).error == 0
        time.sleep(0.02)
    stamped = source_broker.consumed(topic_name, 40)
    assert len({record.timestamp for record in stamped}) == 2
    log = source_broker.stored(topic_name)
    batches = [(header, log[position : position + header.size]) for position, header in batch_headers(log)]
    assert {header.codec for header, _ in batches} == {CODECS[codec]}
    (made,) = splice(batches, from_offset=0)
    assert target_broker.append(topic_name, sent(made)).error == 0
    assert target_broker.consumed(topic_name, 40) == stamped
