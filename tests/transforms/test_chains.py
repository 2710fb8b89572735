"""Chains: order, predicates, dropped records, and what a chain is besides."""

from __future__ import annotations

import itertools
import pickle

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.transforms.both_ways import TOPIC, assert_same, ours, properties, record, stage
from tests.transforms.java_transforms import Condition, JavaTransforms, Stage
from tests.transforms.made_json import CONTENTS

from sparkmirror.transforms import parse_chain

CONDITIONS = (
    *(
        Condition("TopicNameMatches", {"pattern": pattern})
        for pattern in ("us.*", "us", "orders", r"us\.(orders|x)", "a|us.orders")
    ),
    *(Condition("HasHeaderKey", {"name": name}) for name in ("h", "H", "x", " h ")),
    Condition("RecordIsTombstone", {}),
)
NEGATED = tuple(Condition(each.type, each.options, negate=True) for each in CONDITIONS)
STAGES = (
    stage("MaskField$Value", fields="a"),
    stage("Cast$Value", spec="a:string"),
    stage("ReplaceField$Value", exclude="b", renames="a:b"),
    stage("InsertField$Value", topic_field="a", partition_field="p"),
    stage("InsertField$Key", timestamp_field="t"),
    stage("HoistField$Value", field="a"),
    stage("ExtractField$Value", field="a"),
    stage("Flatten$Value"),
    stage("TimestampConverter$Value", field="p", target_type="string", format="SSS"),
    stage("RegexRouter", regex="us.(.*)", replacement="$1"),
    stage("TimestampRouter"),
    stage("DropHeaders", headers="h"),
    stage("InsertHeader", header="x", value_literal="null"),
    stage("Filter"),
)


@pytest.mark.parametrize("condition", [*CONDITIONS, *NEGATED], ids=repr)
def test_conditions(java_transforms: JavaTransforms, condition: Condition) -> None:
    """A filter drops what the predicate holds for, or with `negate` the others."""
    for value, headers in itertools.product((None, b"", b"{}"), ((), (("h", None),), (("x", b"1"), ("h", b"2")))):
        asked = Stage(type="Filter", options={}, condition=condition)
        assert_same(java_transforms, record(value, headers=headers), asked)


def test_a_filter_alone_drops_all(java_transforms: JavaTransforms) -> None:
    assert assert_same(java_transforms, record(b"v"), stage("Filter")).record is None


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    key=CONTENTS,
    value=CONTENTS,
    picked=st.lists(st.tuples(st.sampled_from(STAGES), st.none() | st.sampled_from(CONDITIONS + NEGATED)), max_size=4),
)
def test_chains(
    java_transforms: JavaTransforms,
    key: bytes | None,
    value: bytes | None,
    picked: list[tuple[Stage, Condition | None]],
) -> None:
    stages = [
        Stage(type=each.type, options=each.options, key=each.key, value=each.value, condition=condition)
        for each, condition in picked
    ]
    assert_same(java_transforms, record(value, key=key), *stages)


def test_an_empty_chain_changes_nothing() -> None:
    for given_properties in ({}, {"transforms": ""}, {"transforms": " ", "predicates": ""}, {"topics": "a"}):
        chain = parse_chain(given_properties)
        assert not chain
        assert chain.is_order_keeping
        assert chain.apply(record(b" 1 ")) == record(b" 1 ")


def test_a_record_that_a_predicate_leaves_out_keeps_its_bytes() -> None:
    asked = Stage(
        type="HoistField$Value",
        options={"field": "x"},
        value="json",
        condition=Condition("TopicNameMatches", {"pattern": "other"}),
    )
    left = record(b"\xff no json", key=b"\xfe")
    assert ours(left, [asked]).record == left


def test_the_other_side_keeps_its_bytes() -> None:
    made = ours(
        record(b' {"a" : 1.50} ', key=b"\xff"), [stage("InsertField$Value", static_field="b", static_value="c")]
    )
    assert made.record is not None
    assert made.record.key == b"\xff"
    assert made.record.value == b'{"a":1.5,"b":"c"}'
    kept = ours(record(b" \xff ", key=b"{}"), [stage("InsertField$Key", static_field="b", static_value="c")])
    assert kept.record is not None
    assert kept.record.value == b" \xff "


def test_a_chain_survives_pickling() -> None:
    stages = [
        Stage(type=each.type, options=each.options, key=each.key, value=each.value, condition=condition)
        for each, condition in itertools.product(STAGES, (None, *CONDITIONS))
    ]
    chain = parse_chain(properties(stages))
    assert len(pickle.loads(pickle.dumps(chain)).links) == len(stages)  # noqa: S301
    routed = parse_chain(properties([stage("RegexRouter", regex="us.(.*)", replacement="$1")]))
    made = pickle.loads(pickle.dumps(routed)).apply(record())  # noqa: S301
    assert made == record(topic="orders")


def test_short_names_of_classes() -> None:
    short = parse_chain({"transforms": "a", "transforms.a.type": "MaskField$Key", "transforms.a.fields": "x"})
    full = parse_chain(properties([stage("MaskField$Key", fields="x")]))
    assert short.links[0].transform == full.links[0].transform


@pytest.mark.parametrize("each", STAGES, ids=lambda each: each.type)
def test_order_is_kept_unless_a_router_is_there(each: Stage) -> None:
    assert parse_chain(properties([each])).is_order_keeping == ("Router" not in each.type)
    assert not parse_chain(properties([each, stage("TimestampRouter"), each])).is_order_keeping


def test_keys_that_no_chain_reads() -> None:
    chain = parse_chain(
        {
            "transforms": "a",
            "transforms.a.type": "Filter",
            "transforms.ab.type": "io.unknown.Class",
            "predicates.p.pattern": "(",
            "topics": "x",
        }
    )
    assert chain.unread == ("transforms.ab.type", "predicates.p.pattern")


def test_names_with_dots() -> None:
    chain = parse_chain(
        {
            "transforms": "a,a.b",
            "transforms.a.type": "MaskField$Value",
            "transforms.a.fields": "x",
            "transforms.a.b.type": "DropHeaders",
            "transforms.a.b.headers": "h",
        }
    )
    made = chain.apply(record(b'{"x":1}'))
    assert made is not None
    assert (made.value, made.headers) == (b'{"x":0}', ())


def test_an_error_names_the_transform_and_the_place() -> None:
    stages = [stage("RegexRouter", regex=".*", replacement="new"), stage("MaskField$Value", fields="card")]
    words = ours(record(b'"4111"', offset=7), stages).words
    assert words == (
        f"transforms.t1: the record of {TOPIC}-3 at offset 7 can't be transformed: "
        "it is no JSON object, but a text, which has no fields"
    )
    assert ours(record(None, partition=None), stages[1:]).words == (
        f"transforms.t0: the record of {TOPIC} can't be transformed: "
        "it is null: leave tombstones out with a predicate RecordIsTombstone and negate=true"
    )
