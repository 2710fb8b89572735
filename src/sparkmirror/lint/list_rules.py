"""Rules about lists of regular expressions: topics, groups, properties."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from sparkmirror.config.duty_settings import GROUP_SETTINGS, TOPIC_SYNC_SETTINGS
from sparkmirror.config.entries import OLD_NAMES
from sparkmirror.config.settings import FLOW_SETTINGS
from sparkmirror.lint.findings import LintRule, LintSeverity, Spot, at
from sparkmirror.lint.subject import Subject

_DEFAULTS: dict[str, tuple[str, ...]] = {
    setting.name: cast("tuple[str, ...]", setting.default)
    for setting in (*FLOW_SETTINGS, *GROUP_SETTINGS, *TOPIC_SYNC_SETTINGS)
    if setting.name in OLD_NAMES.values()
}
"""Exclusion lists with defaults."""
_LISTS = ("topics", "groups", *_DEFAULTS, *OLD_NAMES)


def lost_backslash(subject: Subject) -> Iterator[Spot]:
    """Yield lists in properties files with a dropped backslash."""
    for entry in subject.named(*_LISTS):
        if entry.lost:
            read = entry.lost.removeprefix("\\")
            yield at(entry, f"{entry.lost} is read as {read}, and the value as {entry.value}")


def default_replaced(subject: Subject) -> Iterator[Spot]:
    """Yield exclusions without the default items."""
    for entry in subject.named(*_DEFAULTS):
        default = next(default for name, default in _DEFAULTS.items() if entry.key.endswith(name))
        items = [item.strip() for item in entry.value.split(",")]
        left_out = [item for item in default if item not in items]
        if left_out and not any(item.startswith("+") for item in items):
            yield at(entry, ", ".join(left_out))


LIST_RULES: tuple[LintRule[Subject], ...] = (
    LintRule(
        name="lost-backslash",
        severity=LintSeverity.WARNING,
        what="a single backslash is lost in a properties file",
        effect="the expression means something else, here and in MirrorMaker 2: a dot for any character, a letter d for"
        " digits",
        fix="write two backslashes for one",
        look=lost_backslash,
    ),
    LintRule(
        name="default-replaced",
        severity=LintSeverity.INFO,
        what="this list replaces the default, which also has",
        effect="names that only those items match are no longer excluded, as in MirrorMaker 2",
        fix="add the items that you want; config.properties.exclude takes a + before each item of yours and keeps the "
        "default",
        look=default_replaced,
    ),
)
"""The rules."""
