"""Schema ids before keys and values, and next to them: every header is recognised, and nothing else is."""

from __future__ import annotations

from itertools import pairwise
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.built import Content, source_batches

from sparkmirror.kafka.cluster.log_range import LogBatch
from sparkmirror.kafka.wire.pieces import RawRecord, raw_parts
from sparkmirror.kafka.wire.unpacking import PIECE_BYTES
from sparkmirror.schemas.header import NULL, PLAIN, Field, IdKind, SchemaId, fields, large_fields, schema_id
from sparkmirror.schemas.scan import Scan, TopicField

numbers = st.integers(1, 2**31 - 1)
uuids = st.uuids()
content = st.binary(max_size=40)
texts = st.none() | st.binary(max_size=60)


def framed(number: int, rest: bytes = b"") -> bytes:
    return b"\0" + number.to_bytes(4, "big") + rest


def glued(uuid: UUID, compression: int, rest: bytes = b"") -> bytes:
    return bytes((3, compression)) + uuid.bytes + rest


fields_with_ids = st.one_of(
    st.tuples(numbers, content).map(lambda one: (framed(*one), SchemaId(IdKind.CONFLUENT, str(one[0])))),
    st.tuples(uuids, st.sampled_from((0, 5)), content).map(
        lambda one: (glued(*one), SchemaId(IdKind.GLUE, str(one[0])))
    ),
)


@given(fields_with_ids)
def test_a_header_is_recognised(one: tuple[bytes, SchemaId]) -> None:
    assert schema_id(one[0]) == one[1]


@given(st.binary(max_size=40))
def test_what_is_taken_for_one_is_one(field: bytes) -> None:
    found = schema_id(field)
    if found is None:
        assert not (len(field) >= 5 and field[0] == 0 and 0 < int.from_bytes(field[1:5], "big") < 2**31)
        assert not (len(field) >= 18 and field[0] == 3 and field[1] in (0, 5))
    elif found.kind is IdKind.CONFLUENT:
        assert field.startswith(framed(int(found.text)))
    else:
        assert field.startswith((glued(UUID(found.text), 0), glued(UUID(found.text), 5)))


@pytest.mark.parametrize(
    "field",
    [
        b"",
        b"\0",
        framed(1)[:4],
        framed(0, b"x"),
        (5).to_bytes(8, "big"),
        b"\0\xff\xff\xff\xffx",
        b'{"a": 1}',
        b"\x03\0short",
    ],
    ids=["empty", "one byte", "cut off", "id 0", "a small long", "negative", "JSON", "short"],
)
def test_what_is_none(field: bytes) -> None:
    assert schema_id(field) is None


def body(record: RawRecord) -> bytes:
    ((header, view),) = source_batches([Content(2, 0, [record], record.offset + 1)])
    ((_, _, found),) = raw_parts(header, view)
    return found


def field_of(text: bytes | None) -> Field:
    return NULL if text is None else Field(True, schema_id(text), len(text)) if schema_id(text) else PLAIN


@given(texts | fields_with_ids.map(lambda one: one[0]), texts | fields_with_ids.map(lambda one: one[0]))
def test_both_fields_of_a_record(key: bytes | None, value: bytes | None) -> None:
    found = body(RawRecord(7, 0, key, value, ((b"h", b"x"), (b"n", None))))
    assert fields(found) == (field_of(key), field_of(value))


@given(texts, texts, st.binary(min_size=16, max_size=16))
def test_record_headers_have_the_last_word(key: bytes | None, value: bytes | None, guid: bytes) -> None:
    headers = ((b"__key_schema_id", framed(9)), (b"__value_schema_id", b"\x01" + guid), (b"__key_schema_id", b"odd"))
    found = fields(body(RawRecord(7, 0, key, value, headers)))
    assert found is not None
    assert [(one.there, one.schema) for one in found] == [
        (key is not None, SchemaId(IdKind.CONFLUENT, "9")),
        (value is not None, SchemaId(IdKind.GUID, str(UUID(bytes=guid)))),
    ]


@given(st.data())
def test_a_damaged_body_is_said_to_be_one(data: st.DataObject) -> None:
    whole = body(RawRecord(7, 0, b"key", framed(1, b"value"), ((b"h", b"x"),)))
    cut = whole[: data.draw(st.integers(0, 12))]
    with pytest.raises(ValueError, match=r"cut off|announced"):
        fields(cut)


@given(
    st.none() | content | fields_with_ids.map(lambda one: one[0]),
    st.none() | fields_with_ids.map(lambda one: one[0]),
    st.lists(st.integers(0, 200), max_size=6),
)
def test_a_large_body_in_parts(key: bytes | None, value: bytes | None, cuts: list[int]) -> None:
    whole = body(RawRecord(7, 0, key, value, ()))
    at = sorted({0, len(whole), *(min(cut, len(whole)) for cut in cuts)})
    parts = [whole[start:end] for start, end in pairwise(at)]
    assert large_fields(parts) == (field_of(key), field_of(value))


# --- whole batches ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("codec", range(5), ids=["none", "gzip", "snappy", "lz4", "zstd"])
def test_batches_of_every_codec_and_format(codec: int, magic: int) -> None:
    if magic < 2 and codec == 4:
        pytest.skip("zstd came with magic 2")
    records = [
        RawRecord(n, 5 if magic else -1, framed(1 + n % 2, b"k"), framed(3, b"v") if n % 3 else None, ())
        for n in range(9)
    ]
    scan = Scan()
    alone = magic < 2 and not codec  # each message is a batch of its own
    contents = [Content(magic, codec, [one], 9) for one in records] if alone else [Content(magic, codec, records, 9)]
    for batch in source_batches(contents):
        scan.take(("t", 4), LogBatch(*batch))
    keys, values = scan.parts[TopicField("t", "key")], scan.parts[TopicField("t", "value")]
    assert (keys.records, keys.with_id, values.records) == (9, 9, 6)
    assert {one.text: (sight.records, sight.partition, sight.offset) for one, sight in keys.ids.items()} == {
        "1": (5, 4, 0),
        "2": (4, 4, 1),
    }
    assert not scan.unread


def test_a_record_that_is_larger_than_a_piece() -> None:
    records = [
        RawRecord(0, 0, framed(1), framed(2, bytes(PIECE_BYTES + 100)), ()),
        RawRecord(1, 0, None, framed(2), ()),
    ]
    scan = Scan()
    ((header, view),) = source_batches([Content(2, 1, records, 2)])
    scan.take(("t", 0), LogBatch(header, view))
    assert [sight.records for sight in scan.parts[TopicField("t", "value")].ids.values()] == [2]
    assert not scan.unread


def test_a_damaged_batch_is_told() -> None:
    ((header, view),) = source_batches([Content(2, 0, [RawRecord(0, 0, b"k", framed(1, b"v"), ())], 1)])
    damaged = bytearray(view)
    damaged[61] = 0x7F
    scan = Scan()
    scan.take(("t", 3), LogBatch(header, memoryview(damaged)))
    assert scan.unread["t"].startswith("partition 3: the batch at offset 0 can't be read")
