"""Which consumer groups are translated: MirrorMaker 2's `DefaultGroupFilter` (`mm2.md` 1.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from sparkmirror.policy.loading import load
from sparkmirror.policy.name_patterns import NamePatterns, names_in

DEFAULT = "org.apache.kafka.connect.mirror.DefaultGroupFilter"


class GroupFilter(Protocol):
    """What `group.filter.class` stands for."""

    def should_replicate_group(self, group: str) -> bool:
        """Whether the positions of a consumer group of the source are translated."""


class DefaultGroupFilter:
    """`groups` and not `groups.exclude`; raises `ValueError` for what is no regex, or can't be translated."""

    def __init__(self, include: Sequence[str] = (), exclude: Sequence[str] = ()) -> None:
        self._patterns = NamePatterns(include, exclude)

    def configure(self, settings: Mapping[str, str]) -> None:
        """Take the regexes from a connector's settings, as a filter that inherits from this one gets them."""
        self._patterns = NamePatterns(names_in(settings, "groups"), names_in(settings, "groups.exclude"))

    def should_replicate_group(self, group: str) -> bool:
        """Whether `group` is included and not excluded."""
        return self._patterns.accepts(group)


def group_filter_for(
    filter_class: str, include: Sequence[str], exclude: Sequence[str], originals: Mapping[str, str]
) -> GroupFilter:
    """The filter that stands for a Java class, or one written in Python; raises `ValueError` if there is none."""
    if filter_class == DEFAULT:
        return DefaultGroupFilter(include, exclude)
    groups: GroupFilter = load(filter_class, GroupFilter, originals, instead=[DEFAULT])
    return groups
