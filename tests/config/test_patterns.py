"""Lists of regular expressions: a comma splits them, and what is none stops the run before anything is asked."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sparkmirror.config import MirrorConfig
from sparkmirror.errors import ConfigError

Load = Callable[..., MirrorConfig]


@pytest.mark.parametrize(
    ("key", "text", "written"),
    [
        ("topics", "topic[0-9]{1,3}", "topic[0-9][0-9]?[0-9]?"),
        ("topics", "orders, topic[0-9]{1,3}, x", "topic[0-9][0-9]?[0-9]?"),
        ("us->eu.topics", r"topic\\d{2,}", r"topic\\d\\d+"),
        ("topics", "a{0,}", "a*"),
        ("topics", "a{0,2}b", "a?a?"),
        ("topics.exclude", r"\\p{Alpha}{1,2}", r"\\p{Alpha}\\p{Alpha}?"),
        ("groups", "(ab){2,3}", "(ab)(ab)(ab)?"),
        ("us->eu.groups.exclude", ".{1,3}", "..?.?"),
        ("config.properties.exclude", "retention.{1,2}", "retention..?"),
        ("topics.blacklist", "x{1,2}", "xx?"),
        ("topics", "[a-z]{3,200}", "the repetitions out, as in xx?x? for one to three"),
    ],
)
def test_a_comma_breaks_an_expression(load: Load, key: str, text: str, written: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(f"{key} = {text}")
    assert ", line 5: " in caught.value.origin + ": "
    assert caught.value.key == key
    assert " splits the list, as it does for MirrorMaker 2, and its parts are no regular expression" in str(
        caught.value
    )
    assert str(caught.value).endswith(f": write {written}")


@pytest.mark.parametrize(
    ("key", "text", "reads"),
    [
        ("topics", "[a,b].*", "[a|b].*"),
        ("groups", r"\\Qa,b\\E", r"\Qa|b\E"),
        ("topics.exclude", "x[^,]", "x[^|]"),
    ],
)
def test_a_comma_makes_another_expression(load: Load, key: str, text: str, reads: str) -> None:
    (warning,) = load(f"{key} = {text}").warnings
    assert f" splits the list, as it does for MirrorMaker 2, which reads {reads}: write " in warning


@pytest.mark.parametrize("text", ["a, b", "(a,b)", "a|b", r"a\\{1, b", "[a-z]{3}, [{], x", ".*"])
def test_a_comma_that_does_what_it_looks_like(load: Load, text: str) -> None:
    assert load(f"topics = {text}").warnings == ()


@pytest.mark.parametrize(
    "key", ["topics", "us->eu.topics.exclude", "groups", "groups.exclude", "config.properties.exclude"]
)
@pytest.mark.parametrize("text", ["a(", "*", "[b-a]", "(?z)a"])
def test_what_is_no_expression(load: Load, key: str, text: str) -> None:
    with pytest.raises(ConfigError, match="is no regular expression: ") as caught:
        load(f"{key} = {text}")
    assert caught.value.key == key


def test_an_unset_list_is_nobodys_mistake(load: Load) -> None:
    with pytest.raises(ConfigError) as caught:
        load("topics = a(\ngroups = b(")
    assert [mistake.key for mistake in caught.value.mistakes] == ["topics", "groups"]


def test_a_filter_of_the_users_own_takes_what_it_likes(load: Load) -> None:
    config = load("topic.filter.class = mine:Globs\ntopics = *-dev, {a,b}")
    assert config.flows[0].topics == ("*-dev", "{a", "b}")
