"""Places of queries' records, written and read back, whole or in parts."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.exact.durable import query_places
from sparkmirror.exact.durable.query_places import QueryPlaces, read_places
from sparkmirror.kafka.cluster.leader_epochs import EpochStart
from sparkmirror.kafka.wire.splice import Run


@st.composite
def places(draw: st.DrawFn) -> QueryPlaces:
    at = draw(st.integers(0, 1 << 40))
    runs = []
    for gap, length in draw(st.lists(st.tuples(st.integers(1, 1 << 33), st.integers(1, 1 << 20)), max_size=30)):
        runs.append(Run(at + gap, length))
        at += gap + length
    return QueryPlaces(
        query=draw(st.text(max_size=5)),
        target=(draw(st.binary(min_size=16, max_size=16)), draw(st.integers(0, 9))),
        batch=draw(st.integers(0, 1 << 20)),
        part=0,
        source_topic_id=draw(st.binary(min_size=16, max_size=16)),
        sequence=draw(st.integers(0, 1 << 40)),
        downstream=draw(st.integers(0, 1 << 40)),
        runs=tuple(runs),
        upstream_end=at + draw(st.integers(0, 5)),
        is_known=draw(st.booleans()),
        epochs=tuple(EpochStart(*each) for each in draw(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 99))))),
    )


@settings(max_examples=100)
@given(places())
def test_they_are_read_back_as_they_were(made: QueryPlaces) -> None:
    assert read_places(*made.record()) == made


def test_places_without_epochs_are_read() -> None:
    """As they were written before a query kept leader epochs."""
    key, value = QueryPlaces(
        query="q",
        target=(bytes(16), 0),
        batch=3,
        part=0,
        source_topic_id=bytes(16),
        sequence=5,
        downstream=5,
        runs=(Run(7, 2),),
        upstream_end=9,
    ).record()
    fields = json.loads(value)
    read = read_places(key, json.dumps(fields[:6]).encode())
    assert read is not None
    assert (read.runs, read.upstream_end, read.epochs) == ((Run(7, 2),), 9, ())


@settings(max_examples=100)
@given(places(), st.integers(1, 7))
def test_parts_say_the_same(made: QueryPlaces, most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(query_places, "MOST_RUNS", most)
        parts = [part for part in made.parts() if read_places(*part.record()) == part]
    assert [run for part in parts for run in part.runs] == list(made.runs)
    assert [part.part for part in parts] == list(range(len(parts)))
    assert (parts[0].sequence, parts[0].downstream) == (made.sequence, made.downstream)
    for before, after in pairwise(parts):
        assert len(before.runs) == most
        assert after.sequence == before.sequence + before.records
        assert (before.progress.upstream, before.progress.downstream) == (sum(before.runs[-1]), after.downstream)
    assert parts[-1].progress == made.progress


@pytest.mark.parametrize("key", [None, b"", b"{", b"[1]", b'["q", "plan", 3, "x"]', b'["q", "copied", 1]'])
def test_other_records_are_none(key: bytes | None) -> None:
    assert read_places(key, b"[]") is None
