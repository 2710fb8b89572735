"""Records that a transform changes or drops on their way through an intake."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_end_of_copy import NOW, plain, stored, taken
from tests.support.built import LZ4, Content, contents

from sparkmirror.exact.position.cause import Cause
from sparkmirror.kafka.wire import pieces, records, splice
from sparkmirror.kafka.wire.codecs import Codec
from sparkmirror.kafka.wire.pieces import RawRecord
from sparkmirror.kafka.wire.record_body import Body, decoded, encoded
from sparkmirror.kafka.wire.records import NotChanged, Records
from sparkmirror.pump.intake import Intake, Obstacle

ADDED = (b"seen", None)


def change(keep: Callable[[int], bool], refuse: int = -1) -> Callable[[Records, int], None]:
    """Add a header to each record that is kept: whoever changes a record twice is seen."""

    def changed(batch: Records, start: int) -> None:
        made = Records(unpacked=batch.unpacked)
        for at in range(len(batch)):
            offset, body = batch.offsets[at], batch.bodies[at]
            if at >= start:
                if offset == refuse:
                    raise NotChanged(offset, "is not liked")
                if not keep(offset):
                    continue
                key, value, headers = decoded(body)
                body = encoded(Body(key, value, (*headers, ADDED)))
            made.append(offset, batch.timestamps[at], batch.attributes[at], body)
        batch.offsets, batch.timestamps, batch.bodies = made.offsets, made.timestamps, made.bodies
        batch.attributes = made.attributes

    return changed


@pytest.fixture(params=["at once", "piece by piece", "large records"])
def _in_pieces(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module in (records, pieces) if request.param != "at once" else ():
            patch.setattr(module, "PIECE_RECORDS", 5)
            patch.setattr(module, "PIECE_BYTES", 2000 if request.param == "piece by piece" else 8)
        yield


@pytest.mark.usefixtures("_in_pieces")
@pytest.mark.parametrize("codec", [None, Codec(LZ4)], ids=["kept", "lz4"])
@settings(max_examples=60, deadline=None)
@given(source=contents(), merge_tiny=st.booleans(), place=st.integers(0, 1 << 30), every=st.integers(1, 4))
def test_each_record_is_changed_once_or_dropped_and_the_next_offset_is_right(
    codec: Codec | None, source: list[Content], merge_tiny: bool, place: int, every: int
) -> None:
    """Formats of all ages, gaps anywhere; a pump that begins inside gets the rest, and the end is an end."""
    log, last = stored(source), source[-1].next_offset
    begin = min((each.offset for content in source for each in content.records), default=last - 3)
    until = begin + place % (last - begin + 2)
    kept = [
        each._replace(headers=(*each.headers, ADDED))
        for content in source
        for each in content.consumed()
        if each.offset % every == 0
    ]
    changing = change(lambda offset: offset % every == 0)
    before, upstream = taken(log, 0, until, codec=codec, merge_tiny=merge_tiny, change=changing)
    assert before == [each for each in kept if each.offset < until]
    assert upstream == until or last < until, "else the same is fetched again and again"
    after = (
        taken(log, upstream, splice.NO_END, codec=codec, merge_tiny=merge_tiny, change=changing)[0]
        if upstream < last
        else []
    )
    assert before + after == kept


@pytest.mark.usefixtures("_in_pieces")
@pytest.mark.parametrize("merge_tiny", [True, False])
@pytest.mark.parametrize("refuse", [0, 4, 9, 10, 14, 19])
def test_records_before_one_that_can_not_be_changed_are_sent(refuse: int, merge_tiny: bool) -> None:
    log = stored([plain(10), plain(10, 10)])
    told: list[RawRecord] = []
    steps: list[int] = [0]
    with pytest.raises(Obstacle, match=f"the record at source offset {refuse} is not liked") as refusal:
        taken(
            log, 0, splice.NO_END, into=told, steps=steps, merge_tiny=merge_tiny, change=change(lambda _: True, refuse)
        )
    assert refusal.value.cause is Cause.TRANSFORM
    assert steps[-1] <= refuse, "the copy continues there"
    assert [(each.offset, each.headers) for each in told] == [(offset, (ADDED,)) for offset in range(refuse)]


@pytest.mark.usefixtures("_in_pieces")
def test_what_is_below_the_begin_is_not_changed() -> None:
    found, _ = taken(stored([plain(10)]), 5, splice.NO_END, change=change(lambda _: True, refuse=4))
    assert [each.offset for each in found] == [*range(5, 10)]


@pytest.mark.parametrize("codec", [None, Codec(LZ4)], ids=["kept", "lz4"])
def test_batches_with_one_record_each_are_changed(codec: Codec | None) -> None:
    """They are joined without a look at their bodies where nothing changes them."""
    log = stored([plain(1, at) for at in range(200)])
    found, upstream = taken(log, 0, splice.NO_END, codec=codec, change=change(lambda offset: offset % 5 > 0))
    assert ([each.offset for each in found], upstream) == ([at for at in range(200) if at % 5], 200)
    assert {each.headers for each in found} == {(ADDED,)}


def test_a_batch_that_the_target_finds_too_large_is_cut_and_changed_once() -> None:
    large = [RawRecord(at, NOW, None, b"%05d" % at * 100, ()) for at in range(50)]
    log = stored([Content(2, 0, large, 50)])

    class Split(Intake):
        def __init__(self, **given: Any) -> None:
            super().__init__(**given)
            self.split(3000)

    found, upstream = taken(log, 0, splice.NO_END, made_by=Split, change=change(lambda offset: offset % 3 > 0))
    assert upstream == 50
    assert found == [each._replace(headers=(ADDED,)) for each in large if each.offset % 3]


@settings(max_examples=200)
@given(
    st.builds(
        Body,
        st.none() | st.binary(max_size=300),
        st.none() | st.binary(max_size=20_000),
        st.lists(st.tuples(st.binary(max_size=20), st.none() | st.binary(max_size=200)), max_size=4).map(tuple),
    )
)
def test_an_encoded_body_is_decoded_to_the_same(body: Body) -> None:
    assert decoded(encoded(body)) == body
