"""Routers next to Java's own: regexes with replacements, and topics by time."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.transforms.both_ways import assert_same, ours, record, stage
from tests.transforms.java_transforms import JavaTransforms

FEW = settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
TOPICS = ("us.orders", "orders", "us", "us-orders", "a", "ab", "aab", "topic12", "x_y.z", "a$b")
ATOMS = st.sampled_from(
    ["a", "b", "us", ".", r"\.", "orders", "[a-z]", r"\w", "(a)", "(us)?", "(?<n>.)", "(?:b)", "-", "x|"]
)
REGEX = st.lists(st.tuples(ATOMS, st.sampled_from(["", "", "*", "+", "?", "*?", "|"])).map("".join), max_size=4).map(
    "".join
)


@FEW
@given(
    regex=REGEX,
    replacement=st.lists(
        st.sampled_from(["$0", "$1", "$2", "$11", "$01", "${n}", "x", ".", r"\$", r"\\", "-", "$1a"]), max_size=3
    ).map("".join),
    topic=st.sampled_from(TOPICS),
)
@example(regex="a|ab", replacement="x", topic="ab")
@example(regex="us|us-orders", replacement="x", topic="us-orders")
@example(regex="(?:a|(b))+", replacement="[$1]", topic="aab")
@example(regex="(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.)", replacement="$11$12$110$0", topic="orders")
@example(regex="(.*)", replacement="$12", topic="orders")
@example(regex=".*", replacement="", topic="orders")
def test_regex_router(java_transforms: JavaTransforms, regex: str, replacement: str, topic: str) -> None:
    """Where Java stops at the first topic that matches, for a group that isn't there, the chain is refused."""
    asked = stage("RegexRouter", regex=regex, replacement=replacement)
    given_record = record(b"v", topic=topic)
    own = ours(given_record, [asked])
    if own.error == "config" and "replacement: " in own.words:
        theirs = java_transforms.ask(given_record, [asked])
        assert theirs.error == "record" or (theirs.record is not None and theirs.record.topic == topic)
    else:
        assert_same(java_transforms, given_record, asked)


@pytest.mark.parametrize("replacement", ["$1", "$", "\\", "${m}", "${1}", "${n", "${}", "$x", "a$", "${n.}", "${é}"])
def test_replacements_without_a_group(java_transforms: JavaTransforms, replacement: str) -> None:
    regex = "(?<n>t)" if "{" in replacement or replacement == "$x" else "t"
    asked = stage("RegexRouter", regex=regex, replacement=replacement)
    assert java_transforms.ask(record(b"v", topic="t"), [asked]).error == "record"
    own = ours(record(b"v", topic="t"), [asked])
    assert own.error == "config"
    assert own.words.startswith("configuration: transforms.t0.replacement: ")


def test_a_regex_that_takes_for_ever() -> None:
    own = ours(record(b"v", topic="a" * 60 + "!"), [stage("RegexRouter", regex="(a|aa)+[bc]", replacement="x")])
    assert own.error == "record"
    assert "the regex takes more than 2 s for its topic" in own.words


LETTERS = "GyYMLwWDdFEuaHkKhmsSzZX"
FORMATS = st.lists(
    st.tuples(st.sampled_from([*LETTERS]), st.integers(1, 5)).map(lambda pair: pair[0] * pair[1])
    | st.sampled_from(["-", "'T'", "''", "'o''clock'", " ", ".", "é", "'", "b", "_", "1"]),
    max_size=6,
).map("".join)
TIMES = st.integers(0, 4_102_444_800_000) | st.integers(-12_212_553_600_000, 253_402_300_800_000)


@FEW
@given(form=FORMATS, time=TIMES)
@example(form="yyyyMMdd", time=0)
@example(form="YYYY-'W'ww-u", time=1_767_139_200_000)
@example(form="YYYY w W F", time=-1)
@example(form="y D", time=951_782_400_000)
@example(form="G yyyyyyy", time=253_402_300_800_000)
def test_timestamp_formats(java_transforms: JavaTransforms, form: str, time: int) -> None:
    """What Java refuses at the first record is refused at once."""
    asked = stage("TimestampRouter", timestamp_format=form, topic_format="${timestamp}")
    theirs, own = (
        java_transforms.ask(record(b"v", timestamp=time), [asked]),
        ours(record(b"v", timestamp=time), [asked]),
    )
    assert bool(theirs.error) == bool(own.error), (theirs, own)
    if own.error:
        assert own.words.startswith("configuration: transforms.t0.timestamp.format: ")
    else:
        assert own.record == theirs.record


def test_each_day_of_many_years(java_transforms: JavaTransforms) -> None:
    asked = stage("TimestampRouter", timestamp_format="yyyy-MM-dd D EEE u w W F YYYY", topic_format="${timestamp}")
    for day in (
        *range(-400, 4000, 7),
        *range(10_950, 11_400),
        *range(46_000, 46_900, 3),
        *range(-141_349, -141_000, 40),
    ):
        assert_same(java_transforms, record(b"v", timestamp=day * 86_400_000 + 1), asked)


@pytest.mark.parametrize("form", ["${topic}-${timestamp}", "${timestamp}${topic}${topic}", "x", "", "$topic ${TOPIC}"])
@pytest.mark.parametrize("topic", ["orders", "${timestamp}", "a$1\\b"])
def test_topic_formats(java_transforms: JavaTransforms, form: str, topic: str) -> None:
    assert_same(java_transforms, record(b"v", topic=topic), stage("TimestampRouter", topic_format=form))


def test_topics_by_day_without_options(java_transforms: JavaTransforms) -> None:
    answer = assert_same(java_transforms, record(b"v"), stage("TimestampRouter"))
    assert answer.record is not None
    assert answer.record.topic == "us.orders-20231114"


def test_a_record_without_a_time(java_transforms: JavaTransforms) -> None:
    answer = assert_same(java_transforms, record(b"v", timestamp=None), stage("TimestampRouter"))
    assert "it has no timestamp" in answer.words


def test_times_before_1583() -> None:
    answer = ours(record(b"v", timestamp=-12_212_553_600_001), [stage("TimestampRouter")])
    assert "before 1583" in answer.words
