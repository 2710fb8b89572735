"""docs/transforms.md has each class, each option and each default."""

from __future__ import annotations

import re
from pathlib import Path

from sparkmirror.transforms import parse_chain
from sparkmirror.transforms.catalogue import PREDICATES, TRANSFORMS
from sparkmirror.transforms.options import NULL_REPLACED, Option

PAGE = (Path(__file__).parents[2] / "docs" / "transforms.md").read_text("utf-8")
LEFT_OUT = {NULL_REPLACED.name, "offset.field"}
"""Options of which the page has a sentence."""


def words_of(option: Option) -> str:
    if option.required:
        return f"**`{option.name}`**"
    return f"`{option.name}` (`{option.default}`)" if option.default else f"`{option.name}`"


def test_classes_and_options() -> None:
    rows = re.findall(r"^\| `(\w+)`(\*?) \| ([^|]*)\|", PAGE.partition("## What a transform sees")[0], re.MULTILINE)
    listed = {name: (bool(star), options) for name, star, options in rows}
    assert list(listed) == sorted(listed)
    assert set(listed) == {name.partition("$")[0] for name in TRANSFORMS}
    for name, known in TRANSFORMS.items():
        sided, options = listed[name.partition("$")[0]]
        assert sided == ("$" in name), name
        for option in known.options:
            assert (words_of(option) in options) == (option.name not in LEFT_OUT), (name, option)
        named = re.findall(r"`([a-z.]+)`", re.sub(r"\([^)]*\)", "", options))
        assert set(named) == {option.name for option in known.options} - LEFT_OUT, name


def test_the_example_masks_what_it_names() -> None:
    """With names at the target, as a flow from A to B has them by default."""
    (example,) = re.findall(r"```properties\n(transforms = .*?)```", PAGE, re.DOTALL)
    keys = dict(re.split(" *= *", line, maxsplit=1) for line in example.splitlines())
    mask = parse_chain(keys).links[0]
    assert mask.may_apply("A.orders-v1")
    assert not mask.may_apply("A.payments")


def test_predicates() -> None:
    for name, known in PREDICATES.items():
        options = "".join(f" ({words_of(option)})" for option in known.options)
        assert f"`{name}`{options}" in PAGE


def test_options_with_a_sentence() -> None:
    assert all(f"`{name}`" in PAGE for name in LEFT_OUT)
