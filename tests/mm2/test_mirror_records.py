"""MirrorMaker 2's records against the golden bytes of `mm2.md` section 2, and any others there and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.exact.mm2.record_formats import Checkpoint, Heartbeat, Malformed, OffsetSync

GOLDEN = [
    (Heartbeat("A", "B", 1_700_000_000_000), "000141000142", "00000000018bcfe56800"),
    (
        Checkpoint(group="group-1", topic="A.topic-2", partition=3, upstream=4, downstream=5, metadata=""),
        "000767726f75702d310009412e746f7069632d3200000003",
        "0000000000000000000400000000000000050000",
    ),
    (
        Checkpoint(
            group="g", topic="A.t", partition=0, upstream=1_234_567_890_123, downstream=987_654_321, metadata="meta"
        ),
        "0001670003412e7400000000",
        "00000000011f71fb04cb000000003ade68b100046d657461",
    ),
    (OffsetSync("topic-1", 2, 3, 4), "0007746f7069632d3100000002", "00000000000000030000000000000004"),
]

text = st.text(max_size=50)
offset = st.integers(-(2**63), 2**63 - 1)
partition = st.integers(-(2**31), 2**31 - 1)
records = (
    st.builds(Heartbeat, text, text, offset)
    | st.builds(
        Checkpoint, group=text, topic=text, partition=partition, upstream=offset, downstream=offset, metadata=text
    )
    | st.builds(OffsetSync, text, partition, offset, offset)
)


@pytest.mark.parametrize(("record", "key", "value"), GOLDEN)
def test_golden_bytes(record: Heartbeat | Checkpoint | OffsetSync, key: str, value: str) -> None:
    assert (record.key().hex(), record.value().hex()) == (key, value)
    assert type(record).read(bytes.fromhex(key), bytes.fromhex(value)) == record


@given(records)
def test_there_and_back(record: Heartbeat | Checkpoint | OffsetSync) -> None:
    assert type(record).read(record.key(), record.value()) == record


@given(records, st.data())
def test_what_ends_too_early_is_malformed(record: Heartbeat | Checkpoint | OffsetSync, data: st.DataObject) -> None:
    value = record.value()
    with pytest.raises(Malformed):
        type(record).read(record.key(), value[: data.draw(st.integers(0, len(value) - 1))])
    with pytest.raises(Malformed):
        type(record).read(record.key()[:-1], value)


def test_other_versions_and_tombstones_are_malformed() -> None:
    heartbeat = Heartbeat("A", "B", 0)
    for value in (b"\x00\x01" + heartbeat.value()[2:], None):
        with pytest.raises(Malformed):
            Heartbeat.read(heartbeat.key(), value)


def test_a_string_too_long_is_refused() -> None:
    with pytest.raises(ValueError, match="40000 bytes are too many"):
        Checkpoint(group="g" * 40_000, topic="t", partition=0, upstream=0, downstream=0).key()
