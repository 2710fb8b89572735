"""JSON read and written as Jackson does within Connect's `JsonConverter`."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.transforms.both_ways import assert_same, ours, record, stage
from tests.transforms.java_transforms import JavaTransforms
from tests.transforms.made_json import DATA

HOISTED = stage("HoistField$Value", field="x")
MANY = settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])

ODD = [
    *(
        "",
        " ",
        "\t\r\n",
        "null",
        "{}x",
        '{"a":1} xyz',
        "1 2",
        "1x",
        "1,",
        "1]",
        "1:",
        "true]",
        "true,",
        "true_",
        "null$",
    ),
    *("truefalse", "truE", '"a"b', "007", "-007", "00.5", "00", "-00.10e-01", "1e5", "01e05", "-0.0", "-0", "0x10"),
    *("1e999", "-1e999", "9223372036854775807", "9223372036854775808", "-9223372036854775809", "1e", "1e+", "1.5.2"),
    *("--1", "1.", ".5", "+1", "-", "-a", "/*c*/1", "[1,]", '{"a":1,}', "{'a':1}", "NaN", "Infinity", '{"a"}', '"abc'),
    *(
        '{"a":1',
        '{"a":1,"b":2,"a":3}',
        '"\\u001f\\n\\/\\b\\f\\r\\t\\""',
        '"\\ud83d"',
        '"\\ud83d\\ude00"',
        '"\\x"',
        '"\\u12"',
    ),
    *(
        '"\x01"',
        '"\x7f\u2028"',
        '"😀é"',
        '{"😀":1}',
        "1e2147483647",
        "1e99999999999",
        "[00,01]",
        '"00" 00',
        '"a\\"00" ',
        '{"":1}',
    ),
    *("1" * 1000, "1" * 1001, "0." + "1" * 998, "0." + "1" * 1000, "\u00a01", "\x0c1", "\x00", "[" * 200 + "]" * 200),
    *(
        "true\u00e9",
        "1\x00",
        "[true,null,false]",
        '{"a" : [1 , 2.50 ]}',
        "4.9E-324",
        "2e22",
        "1.0E7",
        "0.001",
        "0.0001",
    ),
]
"""Texts at the edges of what Jackson takes."""


@pytest.mark.parametrize("text", ODD, ids=lambda text: ascii(text[:24]))
def test_odd_texts(java_transforms: JavaTransforms, text: str) -> None:
    assert_same(java_transforms, record(text.encode()), HOISTED)


@pytest.mark.parametrize("code", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"])
def test_other_encodings(java_transforms: JavaTransforms, code: str) -> None:
    assert_same(java_transforms, record('{"a":"é"}'.encode(code)), HOISTED)


@pytest.mark.parametrize("content", [b"\xff", b'"\xc3"', b'"\xed\xa0\xbd"', b'"\x80"', b'{"a":"\xf8\x88\x80\x80\x80"}'])
def test_bytes_that_are_no_text(java_transforms: JavaTransforms, content: bytes) -> None:
    assert assert_same(java_transforms, record(content), HOISTED).error == "record"


@MANY
@given(text=DATA)
def test_made_up_json(java_transforms: JavaTransforms, text: str) -> None:
    assert_same(java_transforms, record(text.encode()), HOISTED)


@MANY
@given(text=DATA, at=st.integers(0, 40), put=st.sampled_from(list('0019-+.eE"\\{}[],: \tntx')), cut=st.booleans())
def test_damaged_json(java_transforms: JavaTransforms, text: str, at: int, put: str, cut: bool) -> None:
    assert_same(java_transforms, record((text[:at] + put + text[at + cut :]).encode()), HOISTED)


@MANY
@given(number=st.floats(allow_nan=False, allow_infinity=False))
@example(number=2e-323)
@example(number=9.999999999999999e22)
@example(number=2.0**-44)
@example(number=-1e-3)
@example(number=9999999.999999998)
def test_doubles(java_transforms: JavaTransforms, number: float) -> None:
    answer = assert_same(java_transforms, record(repr(number).encode()), HOISTED)
    assert answer.record is not None
    assert answer.record.value is not None
    assert json.loads(answer.record.value)["x"] == number


@pytest.mark.parametrize("deep", [b"[" * 5000 + b"]" * 5000, b"[01," + b"[" * 5000], ids=["whole", "read twice"])
def test_what_is_nested_too_deeply(deep: bytes) -> None:
    """Leading zeros are taken out for a second reading."""
    assert "nested too deeply" in ours(record(deep), [HOISTED]).words


def test_an_error_shows_nothing_of_the_record() -> None:
    words = ours(record(b'{"secret-name":secret-value}', offset=42), [HOISTED]).words
    assert words.startswith(
        "transforms.t0: the record of us.orders-3 at offset 42 can't be transformed: it is no JSON: "
    )
    assert "secret" not in words
