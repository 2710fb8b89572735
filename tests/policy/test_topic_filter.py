"""Which topics are copied, and Java's regular expressions in Python (`mm2.md` sections 1.5, 3.2)."""

from __future__ import annotations

import re
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.policy.replicated import replicated

from sparkmirror.errors import SparkMirrorError
from sparkmirror.policy import (
    DefaultReplicationPolicy,
    DefaultTopicFilter,
    IdentityReplicationPolicy,
    ReplicationPolicy,
    compile_java,
    is_cycle,
)

DEFAULT_EXCLUDE = (r"mm2.*\.internal", r".*\.replica", r"__.*")


@pytest.mark.parametrize(
    ("include", "exclude", "topic", "accepted"),
    [
        ([".*"], DEFAULT_EXCLUDE, "orders", True),
        ([".*"], DEFAULT_EXCLUDE, "mm2-configs.a.internal", False),
        ([".*"], DEFAULT_EXCLUDE, "x.replica", False),
        ([".*"], DEFAULT_EXCLUDE, "x.replica2", True),
        ([".*"], DEFAULT_EXCLUDE, "__consumer_offsets", False),
        (["orders"], [], "orders", True),
        (["orders"], [], "orders2", False),
        (["orders"], [], "my-orders", False),
        (["a", "b"], [], "b", True),
        (["a|bc", "d"], [], "bc", True),
        ([], [], "orders", False),
        ([], ["orders"], "x", False),
        (["(orders", "payments)"], [], "payments", True),
        (["a"], ["b", "a"], "a", False),
        (["ab?c|(?i)X", "y"], [], "Y", True),
    ],
)
def test_filter(include: list[str], exclude: list[str], topic: str, accepted: bool) -> None:
    assert DefaultTopicFilter(include, exclude).should_replicate_topic(topic) is accepted


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        (r"\Qa.b\E.*", ["a.b", "a.bc"], ["axb"]),
        (r"\Qa.b", ["a.b"], ["axb"]),
        (r"[\Q.^]\E]+", [".^]"], ["a"]),
        (r"\p{Alpha}\p{Digit}+", ["a1", "Z99"], ["1", "é1"]),
        (r"\P{Upper}+", ["ab1"], ["aB"]),
        (r"[\p{Lower}_]+", ["a_b"], ["A"]),
        (r"[\p{Punct}]", [".", "-", "_", "[", "]", "^", "~"], ["a"]),
        (r"[\w-.]+", ["a-b.c"], ["a b"]),
        (r"[\w.-]+", ["a-b.c"], ["a b"]),
        (r"[]a]+", ["a]"], ["b"]),
        (r"[^]a]", ["b"], ["]", "a"]),
        (r"[a|~&]+", ["a|~&"], ["b"]),
        (r"a++b", ["aab"], ["b"]),
        (r"a*+a", [], ["aaa"]),
        (r"(?>a|ab)c", ["ac"], ["abc"]),
        (r"(?i)ab", ["aB"], ["b"]),
        (r"a(?i)b|c", ["aB", "C"], ["AB"]),
        (r"(a(?i)b)c|d", ["aBc"], ["aBC", "D"]),
        (r"(?i)a(?-i)b", ["Ab"], ["AB"]),
        (r"(?i:a)b", ["Ab"], ["AB"]),
        (r"(?!x).*", ["a"], ["xa"]),
        (r".*(?<!-dlq)", ["a"], ["a-dlq"]),
        (r"(?<n>a|b)\k<n>", ["aa", "bb"], ["ab"]),
        (r"(a|b)\1", ["aa"], ["ab"]),
        (r"a\z", ["a"], ["a\n"]),
        (r"\d{2,3}", ["12", "123"], ["1", "٣٣"]),
        (r"a}", ["a}"], ["a"]),
        (r"\_\-\.", ["_-."], ["a"]),
    ],
)
def test_java_regex(pattern: str, matching: list[str], others: list[str]) -> None:
    compiled = compile_java(pattern)
    assert [text for text in matching if compiled.fullmatch(text) is None] == []
    assert [text for text in others if compiled.fullmatch(text) is not None] == []


@pytest.mark.parametrize(
    "pattern",
    [
        "*",
        "(a",
        "a)",
        "[a",
        "a{",
        "a{,3}",
        "a{1",
        "[a--b]",
        r"\0",
        r"a\E",
        "(?P<n>a)",
        "(?#note)a",
        "[b-a]",
        "a{99999999999}",
        "\\",
    ],
)
def test_regex_that_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=re.escape(repr(pattern))):
        DefaultTopicFilter([pattern])
    with pytest.raises(ValueError, match=re.escape(repr(pattern))):
        DefaultTopicFilter([".*"], [pattern])


@given(st.text("ab.*+?{},12|()[]^$\\-&~QEpwzi:<>=!", max_size=12))
def test_any_text_is_a_regex_or_a_value_error(pattern: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            compile_java(pattern).fullmatch("ab")
        except ValueError as error:
            assert repr(pattern) in str(error)  # noqa: PT017  # either outcome is right


@given(st.text(min_size=1, max_size=8))
def test_quoted_text_matches_itself(text: str) -> None:
    if "\\E" not in text:
        assert compile_java(rf"\Q{text}\E").fullmatch(text)
        assert not compile_java(rf"\Q{text}\E").fullmatch(text + "x")


DEFAULT = DefaultReplicationPolicy()
IDENTITY = IdentityReplicationPolicy("source")


@pytest.mark.parametrize(
    ("policy", "topic", "expected"),
    [
        (DEFAULT, "topic", False),
        (DEFAULT, "target.topic", True),
        (DEFAULT, "x.target.topic", True),
        (DEFAULT, "source.topic", False),
        (DEFAULT, "x.y.topic", False),
        (DEFAULT, "x.target", False),
        (DEFAULT, "target.", False),
        (IDENTITY, "target.topic", False),
        (IDENTITY, "topic", False),
        (IDENTITY, "target.heartbeats", True),
        (IDENTITY, "heartbeats", False),
        (IdentityReplicationPolicy("target"), "topic", True),
    ],
)
def test_cycles(policy: ReplicationPolicy, topic: str, expected: bool) -> None:
    assert is_cycle(policy, topic, "target") is expected


@pytest.mark.parametrize(
    ("topic", "heartbeats", "expected"),
    [
        ("orders", True, True),
        ("other", True, False),
        ("heartbeats", True, True),
        ("heartbeats", False, False),
        ("x.heartbeats", True, True),
        ("target.heartbeats", True, False),
        ("target.orders", True, False),
        ("orders-mm2.internal", True, True),
        ("mm2-orders.internal", True, False),
    ],
)
def test_should_replicate(topic: str, heartbeats: bool, expected: bool) -> None:
    topics = DefaultTopicFilter([".*orders.*"], ["secret"])
    assert replicated(topic, DEFAULT, topics, heartbeats=heartbeats) is expected


def test_default_policy_copies_copies() -> None:
    """`x.topic` at the source came from elsewhere, and is copied on to the target."""
    assert replicated("x.topic", DEFAULT, DefaultTopicFilter([".*"]))


def test_an_expression_that_would_never_end() -> None:
    """Java's would not end either."""
    topics = DefaultTopicFilter(["(a|aa)+b"])
    with pytest.raises(SparkMirrorError, match="write it without a repetition within a repetition"):
        topics.should_replicate_topic("a" * 240)
