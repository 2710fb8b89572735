"""Transforms of headers next to Java's own, and what MirrorMaker 2's converter makes of new headers."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.transforms.both_ways import assert_same, ours, record, stage
from tests.transforms.java_transforms import JavaTransforms
from tests.transforms.made_json import CONTENTS, NAME, OBJECTS, PLAIN_NAME

FEW = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
HEADERS = st.lists(
    st.tuples(st.sampled_from(["h", "a", "b", "é", ""]), st.none() | st.binary(max_size=4)), max_size=5
).map(tuple)
LITERALS = (
    "x",
    "",
    "null",
    " null ",
    "\tnull",
    "NULL",
    "null,",
    "nullx",
    "1",
    "1.0",
    "true",
    "[1, 2]",
    "é 😀",
    '"a"',
    "{}",
)


@pytest.mark.parametrize("literal", LITERALS)
def test_insert_header(java_transforms: JavaTransforms, literal: str) -> None:
    """Java's task stops at what isn't null; here the header has the literal."""
    asked = stage("InsertHeader", header=" new ", value_literal=literal)
    theirs, own = java_transforms.ask(record(b"v"), [asked]), ours(record(b"v"), [asked])
    assert theirs.record is not None
    assert own.record is not None
    assert [name for name, _ in own.record.headers] == [name for name, _ in theirs.record.headers] == ["h", "new"]
    if theirs.taken[-1]:
        assert own.record == theirs.record
        assert literal.strip() == "null"
    else:
        assert own.record.headers[-1] == ("new", literal.strip().encode())


@FEW
@given(headers=HEADERS, names=st.lists(st.sampled_from(["h", "a", "é", "other"]), min_size=1, max_size=3))
def test_drop_headers(
    java_transforms: JavaTransforms, headers: tuple[tuple[str, bytes | None], ...], names: list[str]
) -> None:
    assert_same(java_transforms, record(b"v", headers=headers), stage("DropHeaders", headers=",".join(names)))


@FEW
@given(
    content=CONTENTS | OBJECTS.map(str.encode),
    pairs=st.lists(st.tuples(PLAIN_NAME, NAME), min_size=1, max_size=3),
    operation=st.sampled_from(["copy", "move"]),
    side=st.sampled_from(["Key", "Value"]),
)
def test_header_from(
    java_transforms: JavaTransforms, content: bytes | None, pairs: list[tuple[str, str]], operation: str, side: str
) -> None:
    """Headers are as Connect's own default, `SimpleHeaderConverter`, writes them; objects and lists are JSON."""
    fields, headers = (",".join(names) for names in zip(*pairs, strict=True))
    asked = stage(f"HeaderFrom${side}", fields=fields, headers=headers, operation=operation)
    if not headers.strip(", "):
        return
    assert_same(java_transforms, record(content) if side == "Value" else record(key=content), asked)


@pytest.mark.parametrize("text", ["1e999", "-1e999", "-0.0", "1e7", "true", '"1e7"', "null", "[]", '{"a":"\\n"}'])
def test_each_kind_becomes_a_header(java_transforms: JavaTransforms, text: str) -> None:
    asked = stage("HeaderFrom$Value", fields="a", headers="x", operation="copy")
    assert_same(java_transforms, record(f'{{"a":{text}}}'.encode()), asked)


def test_only_null_and_bytes_are_taken_by_mirror_maker(java_transforms: JavaTransforms) -> None:
    asked = stage("HeaderFrom$Value", fields="a,b,c", headers="x,y,z", operation="copy")
    assert java_transforms.ask(record(b'{"a":1,"b":null,"c":"t"}'), [asked]).taken == (True, False, True, False)


def test_a_field_may_go_into_two_headers(java_transforms: JavaTransforms) -> None:
    asked = stage("HeaderFrom$Value", fields="a,a", headers="x,y", operation="move")
    answer = assert_same(java_transforms, record(b'{"a":"t"}'), asked)
    assert answer.record is not None
    assert answer.record.headers == (("h", b"1"), ("x", b"t"), ("y", b"t"))
    assert answer.record.value == b"{}"
