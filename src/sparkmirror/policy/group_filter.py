"""Consumer group filters: MirrorMaker 2's `DefaultGroupFilter` (`mm2.md` 1.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from sparkmirror.policy.loading import load
from sparkmirror.policy.name_patterns import NamePatterns, names_in

DEFAULT = "org.apache.kafka.connect.mirror.DefaultGroupFilter"


class GroupFilter(Protocol):
    """Interface for the classes that `group.filter.class` may name."""

    def should_replicate_group(self, group: str) -> bool:
        """True if the flow translates this source consumer group's positions."""


class DefaultGroupFilter:
    """Accepts `groups` without `groups.exclude`.

    Raises `ValueError` for an invalid regex, and for a regex that can't be translated to Python.
    """

    def __init__(self, include: Sequence[str] = (), exclude: Sequence[str] = ()) -> None:
        self._patterns = NamePatterns(include, exclude)

    def configure(self, settings: Mapping[str, str]) -> None:
        """Take the regexes from a connector's settings, as subclasses get them."""
        self._patterns = NamePatterns(names_in(settings, "groups"), names_in(settings, "groups.exclude"))

    def should_replicate_group(self, group: str) -> bool:
        """True if `group` is included and not excluded."""
        return self._patterns.accepts(group)


def group_filter_for(
    filter_class: str, include: Sequence[str], exclude: Sequence[str], originals: Mapping[str, str]
) -> GroupFilter:
    """Return the filter for a Java class, or a filter written in Python.

    Raises `ValueError` if there is no such filter.
    """
    if filter_class == DEFAULT:
        return DefaultGroupFilter(include, exclude)
    groups: GroupFilter = load(filter_class, GroupFilter, originals, instead=[DEFAULT])
    return groups
