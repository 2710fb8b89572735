"""TimestampConverter next to Java's own."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.transforms.both_ways import assert_same, ours, record, stage
from tests.transforms.java_transforms import Answer, JavaTransforms
from tests.transforms.made_json import CONTENTS

FEW = settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
WIDER_NUMBERS = 23
"""Java's first version that reads all digits of a number before a word, as in `dMMM`."""
PRECISION = st.sampled_from(["nanoseconds", "microseconds", "milliseconds", "seconds"])
NUMBERS = st.integers(-10_000_000_000, 4_102_444_800_000) | st.sampled_from(
    [0, -1, 1, 2**63 - 1, -(2**63), 1999, -1999]
)


def is_known_difference(own: Answer) -> bool:
    """True where the page says that a text is an error here."""
    return any(words in own.words for words in ("can't be read", "before 1583", "too large"))


@FEW
@given(number=NUMBERS, precision=PRECISION)
@example(number=2**63 - 1, precision="seconds")
@example(number=-(2**63), precision="seconds")
@example(number=-1999, precision="microseconds")
def test_numbers(java_transforms: JavaTransforms, number: int, precision: str) -> None:
    asked = stage("TimestampConverter$Value", field="a", target_type="unix", unix_precision=precision)
    assert_same(java_transforms, record(f'{{"a":{number}}}'.encode()), asked)


@FEW
@given(number=st.integers(-10_000_000_000, 4_102_444_800), precision=PRECISION)
def test_numbers_to_texts(java_transforms: JavaTransforms, number: int, precision: str) -> None:
    form = "yyyy-MM-dd'T'HH:mm:ss.SSSXXX EEE"
    field = stage("TimestampConverter$Value", field="a", target_type="string", format=form, unix_precision=precision)
    assert_same(java_transforms, record(f'{{"b":1,"a":{number}}}'.encode()), field)
    whole = stage("TimestampConverter$Key", target_type="string", format=form, unix_precision=precision)
    assert_same(java_transforms, record(key=str(number).encode()), whole)


@FEW
@given(content=CONTENTS, target=st.sampled_from(["unix", "string"]), field=st.sampled_from(["a", "", "b"]))
def test_made_up_records(java_transforms: JavaTransforms, content: bytes | None, target: str, field: str) -> None:
    for side in ("Key", "Value"):
        asked = stage(f"TimestampConverter${side}", field=field, target_type=target, format="yyyy")
        given_record = record(content) if side == "Value" else record(key=content)
        if not is_known_difference(ours(given_record, [asked])):
            assert_same(java_transforms, given_record, asked)


FIELDS = {
    "yyyy": ["2024", "1999", "02024", "1970", "20240"],
    "MM": ["01", "12", "7", "13", "0", "-1", "x"],
    "M": ["1", "12", "007"],
    "MMM": ["Jan", "dec", "SEPTEMBER", "May", "Ma", "x"],
    "MMMM": ["Jan", "May", "november"],
    "dd": ["01", "31", "32", "0", "5"],
    "d": ["29", "30"],
    "HH": ["00", "23", "24", "7"],
    "mm": ["00", "59", "61"],
    "ss": ["00", "60"],
    "SSS": ["000", "5", "999", "1234"],
    "XXX": ["Z", "+01:00", "-11:30", "+1:00", "+24:00", "+01", "z", "+0100"],
    "XX": ["Z", "+0100", "-1130", "+01:00"],
    "X": ["Z", "+01", "-11", "+1", "+0130"],
    "Z": ["+0100", "-1130", "+01:00"],
    "'T'": ["T", "t"],
    "-": ["-", " - ", ""],
    ":": [":"],
    " ": [" ", "  ", "\t"],
    ".": ["."],
    "''": ["'"],
}


@st.composite
def texts_of_formats(draw: st.DrawFn) -> tuple[str, str]:
    """A format, and a text that is nearly of this format."""
    parts = draw(st.lists(st.sampled_from([*FIELDS]), min_size=1, max_size=7))
    text = "".join(draw(st.sampled_from(FIELDS[part])) for part in parts)
    return "".join(parts), draw(st.sampled_from(["", "", "", " "])) + text + draw(
        st.sampled_from(["", "", "", "x", " "])
    )


@settings(max_examples=600, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pair=texts_of_formats())
@example(pair=("yyyyMMddHHmmss", "20240229235959"))
@example(pair=("yyyy-MM-dd", "2024-02-30"))
@example(pair=("yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "2024-02-29T23:59:59.5+01:00 and more"))
@example(pair=("yyyyMMdd", "2024-1-1"))
def test_texts(java_transforms: JavaTransforms, pair: tuple[str, str]) -> None:
    form, text = pair
    asked = stage("TimestampConverter$Value", target_type="unix", format=form)
    written = '"' + text.replace("\t", "\\t") + '"'
    if is_known_difference(ours(record(written.encode()), [asked])):
        return
    if java_transforms.version < WIDER_NUMBERS and java_transforms.ask(record(written.encode()), [asked]).error:
        return
    assert_same(java_transforms, record(written.encode()), asked)


@pytest.mark.parametrize("form", ["yy-MM-dd", "EEE yyyy", "hh:mm a", "yyyy-DDD", "yyyy z"])
def test_formats_that_are_only_written(form: str) -> None:
    whole = stage("TimestampConverter$Value", target_type="string", format=form)
    assert ours(record(b"0"), [whole]).record is not None
    assert "can't be read" in ours(record(b'"70-01-01"'), [whole]).words


def test_a_text_without_a_format(java_transforms: JavaTransforms) -> None:
    whole = stage("TimestampConverter$Value", target_type="unix")
    assert assert_same(java_transforms, record(b'"2024"'), whole).error == "record"


@pytest.mark.parametrize("target", ["Date", "Time", "Timestamp"])
def test_targets_that_json_has_not(java_transforms: JavaTransforms, target: str) -> None:
    """Java stops at the first record."""
    whole = stage("TimestampConverter$Value", target_type=target)
    assert java_transforms.ask(record(b"0"), [whole]).error == "record"
    assert ours(record(b"0"), [whole]).words == (
        f"configuration: transforms.t0.target.type: JSON has no {target}: write string or unix"
    )
