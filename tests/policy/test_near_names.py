"""Patterns that match nothing: spellings that can hardly be meant, and names that are near."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.policy.near_names import hardly_meant, matches_any, nearest_names

NAMES = ["billing", "clicks.web", "orders", "orders.eu", "orders.us", "payments.card", "team-a"]


@pytest.mark.parametrize(
    ("pattern", "of_topics", "of_groups"),
    [
        ("orders payments", "a blank: write commas", ""),
        ('"orders"', "quotes are part of the pattern", "quotes are part of the pattern"),
        ("'orders.*'", "quotes are part of the pattern", "quotes are part of the pattern"),
        ("“orders”", "quotes are part of the pattern", "quotes are part of the pattern"),
        ('orders"', 'a quote (")', ""),
        ("orders;payments", "write commas", "write commas"),
        ("/orders.*/", "slashes are part", "slashes are part"),
        ("team/", "`/`", ""),
        ("a:b", "`:`", ""),
        (r"a\:b", "`:`", ""),
        ("team-*", "write `-.*`", "write `-.*`"),
        ("orders_*|bills", "write `_.*`", "write `_.*`"),
        ("orders*", "write `s.*`", "write `s.*`"),
    ],
)
def test_what_can_hardly_be_meant(pattern: str, of_topics: str, of_groups: str) -> None:
    for said, wanted in (
        (hardly_meant(pattern, of_topics=True), of_topics),
        (hardly_meant(pattern, of_topics=False), of_groups),
    ):
        assert (wanted in said, bool(said)) == (True, bool(wanted))


@pytest.mark.parametrize(
    "pattern",
    [
        ".*",
        "orders",
        r"orders\..*",
        "orders.eu-1_x",
        "(a|b)*",
        r"v\d*",
        "[a-z]*",
        r"[^/ ;'\"]*",
        "(?i)ORDERS",
        "(?!tmp).*",
        "^orders$",
        "a{2}",
        r"\p{Alpha}+",
        "orders?",
        "",
    ],
)
def test_what_may_be_meant(pattern: str) -> None:
    assert hardly_meant(pattern, of_topics=True) == ""


@given(st.text(max_size=30), st.booleans())
def test_any_text_may_be_judged(pattern: str, of_topics: bool) -> None:
    hardly_meant(pattern, of_topics=of_topics)
    matches_any(pattern, NAMES)
    assert set(nearest_names(pattern, NAMES)) <= set(NAMES)


@pytest.mark.parametrize(
    ("pattern", "nearest"),
    [
        (r"ordrs\..*", ("orders", "orders.eu", "orders.us")),
        ("paymnts.*", ("payments.card",)),
        ("ORDERS.EU", ("orders.eu", "orders.us", "orders")),
        ("/orders/", ("orders", "orders.eu", "orders.us")),
        ("orders payments", ("orders", "orders.eu", "orders.us")),
        ("team-*", ("team-a",)),
        ("billng", ("billing",)),
        ("nothing-alike", ()),
        (".*", ()),
        ("ab", ()),
    ],
)
def test_what_was_perhaps_meant(pattern: str, nearest: tuple[str, ...]) -> None:
    assert nearest_names(pattern, NAMES) == nearest


def test_half_of_a_regex_with_a_comma_is_not_judged() -> None:
    assert matches_any("a{1", NAMES)
    assert matches_any("orders.*", NAMES)
    assert matches_any("a.b", ["a.b"])
    assert not matches_any("ordrs.*", NAMES)
