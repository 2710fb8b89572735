"""Cast next to Java's own: all types to all types, at the edges of their ranges."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.transforms.both_ways import assert_same, ours, record, stage
from tests.transforms.java_transforms import JavaTransforms
from tests.transforms.made_json import CONTENTS, NAMES, SCALAR_OBJECTS, TEXTS, words

FEW = settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
TYPE = st.sampled_from(["int8", "int16", "int32", "int64", "float32", "float64", "boolean", "string"])
NUMBERS = words("""
0 -0 1 +1 -1 127 128 -128 -129 255 32767 32768 -32769 2147483647 2147483648 -2147483649 9223372036854775807
9223372036854775808 16777217 0.1 1.5 -2.5 1e5 1E+5 1e-7 1.e3 .5 5. . 1e 3.4028235e38 3.4028236e38 3.5e38 1e39 1e400
4.9e-324 1.4e-45 7e-46 7.1e-46 0x1p3 -0x1.8p1f 0x1p99999 0x.8p0 0x1.000001p0 0x1.0000010000000001p0 0x1.000003p0
0x8.000010p-150 0x1p-200 0x1 1f 1d 1e5D NaN -NaN Infinity -Infinity +Infinity infinity inf nan 1_0 ٣ true TRUE
false yes 16777217.0 1.00000005960464477539062500001 1.000000059604644775390625 abc
""")


@FEW
@given(
    content=SCALAR_OBJECTS.map(str.encode) | CONTENTS, types=st.dictionaries(st.sampled_from(NAMES), TYPE, min_size=1)
)
def test_fields(java_transforms: JavaTransforms, content: bytes | None, types: dict[str, str]) -> None:
    spec = ",".join(f"{name}:{kind}" for name, kind in types.items())
    for side in ("Key", "Value"):
        given_record = record(content) if side == "Value" else record(key=content)
        assert_same(java_transforms, given_record, stage(f"Cast${side}", spec=spec))


@pytest.mark.parametrize("kind", ["int8", "int16", "int32", "int64", "float32", "float64", "boolean", "string"])
def test_edges(java_transforms: JavaTransforms, kind: str) -> None:
    whole, field = stage("Cast$Value", "string", spec=kind), stage("Cast$Value", spec=f"a:{kind}")
    for text in (*NUMBERS, "\uff11\uff12", "", " 1d\t", "\u00a01", " 7", "a b", "\U0001d7d5"):
        assert_same(java_transforms, record(text.encode()), whole)
    for text in NUMBERS:
        assert_same(java_transforms, record(f'{{"a":{text}}}'.encode()), field)


@FEW
@given(text=TEXTS | st.from_regex(r"\A[+-]?[0-9]{0,12}[.]?[0-9]{0,12}([eE][+-]?[0-9]{1,3})?[fd]?\Z"), kind=TYPE)
def test_the_whole(java_transforms: JavaTransforms, text: str, kind: str) -> None:
    assert_same(java_transforms, record(text.encode()), stage("Cast$Value", "string", spec=kind))
    assert_same(java_transforms, record(key=text.encode()), stage("Cast$Key", "string", spec=kind))


@FEW
@given(bits=st.integers(0, 0x7F7FFFFF), off=st.sampled_from([-1, 0, 1]), places=st.sampled_from([60, 120, 190]))
@example(bits=0x7F7FFFFF, off=-1, places=60)
@example(bits=0x7F7FFFFF, off=0, places=60)
@example(bits=0x00000000, off=1, places=190)
@example(bits=0x3F800000, off=-1, places=60)
@example(bits=0x3F800001, off=0, places=60)
def test_texts_between_two_floats(java_transforms: JavaTransforms, bits: int, off: int, places: int) -> None:
    """Rounded once: a text next to the middle of two 32-bit floats goes to the nearer."""
    low, high = (float(np.array([bits + step], np.uint32).view(np.float32)[0]) for step in (0, 1))
    middle = (Fraction(low) + Fraction(high if np.isfinite(high) else 2.0**128)) / 2
    scaled = middle * 10**places
    text = f"{int(scaled) + off}e-{places}" if scaled.denominator == 1 else repr(float(middle))
    assert_same(java_transforms, record(text.encode()), stage("Cast$Value", "string", spec="float32"))


@FEW
@given(number=st.integers(-(2**63), 2**63 - 1))
@example(number=2**60 + 2**36 + 1)
@example(number=-(2**62) - 2**38 - 1)
def test_longs_as_floats(java_transforms: JavaTransforms, number: int) -> None:
    assert_same(java_transforms, record(f'{{"a":{number}}}'.encode()), stage("Cast$Value", spec="a:float32"))


@FEW
@given(number=st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_floats_as_text(java_transforms: JavaTransforms, number: float) -> None:
    assert_same(java_transforms, record(repr(number).encode()), stage("Cast$Value", "string", spec="float32"))


@pytest.mark.parametrize("side", ["Key", "Value"])
def test_tombstones(java_transforms: JavaTransforms, side: str) -> None:
    for asked in (stage(f"Cast${side}", "string", spec="int8"), stage(f"Cast${side}", spec="a:int8")):
        answer = assert_same(java_transforms, record(None, key=None), asked)
        assert answer.record == record(None, key=None)


def test_text_that_is_none(java_transforms: JavaTransforms) -> None:
    """Java puts replacement characters; here it is an error, so that no byte is lost."""
    whole = stage("Cast$Value", "string", spec="string")
    assert java_transforms.ask(record(b"\xff"), [whole]).record is not None
    assert "its bytes are no text in UTF-8" in ours(record(b"\xff"), [whole]).words


@pytest.mark.parametrize(
    "spec", [" a : INT8 ", "a:int8:", ":int8", "int8", " Boolean ", "a:int8,a:string", "a:int8:,b:string"]
)
def test_spellings(java_transforms: JavaTransforms, spec: str) -> None:
    side = "json" if ":" in spec else "string"
    value = b'{"a":1,"":2}' if ":" in spec else b"12"
    assert_same(java_transforms, record(value), stage("Cast$Value", side, spec=spec))


@pytest.mark.parametrize(
    "spec", ["", ",", "a:bytes", "a:int", "int8,int8", "a:int8,int8", "a:", ":", "a:int8,", "a:b:int8", "::", "array"]
)
def test_refused_spellings(java_transforms: JavaTransforms, spec: str) -> None:
    assert assert_same(java_transforms, record(b"{}"), stage("Cast$Value", spec=spec)).error == "config"
