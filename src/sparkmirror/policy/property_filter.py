"""Which properties of a topic are copied: MirrorMaker 2's `DefaultConfigPropertyFilter` (`mm2.md` 1.5, KIP-894)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from sparkmirror.policy.loading import load
from sparkmirror.policy.name_patterns import NamePatterns, names_in

DEFAULT = "org.apache.kafka.connect.mirror.DefaultConfigPropertyFilter"
ANY = (".*",)


class ConfigPropertyFilter(Protocol):
    """What `config.property.filter.class` stands for."""

    def should_replicate_config_property(self, name: str) -> bool:
        """Whether a property is kept as it is at the source."""

    def should_replicate_source_default(self, name: str) -> bool:
        """Whether a property that nobody set at the source gets the source's default, instead of the target's."""


class DefaultConfigPropertyFilter:
    """All but `config.properties.exclude`; `use.defaults.from` is `source` or `target`.

    Raises `ValueError` for what is no regex, or can't be translated.
    """

    def __init__(self, exclude: Sequence[str] = (), use_defaults_from: str = "target") -> None:
        self._patterns = NamePatterns(ANY, exclude)
        self._source_defaults = use_defaults_from == "source"

    def configure(self, settings: Mapping[str, str]) -> None:
        """Take both from a connector's settings, as a filter that inherits from this one gets them."""
        self._patterns = NamePatterns(ANY, names_in(settings, "config.properties.exclude"))
        self._source_defaults = settings.get("use.defaults.from") == "source"

    def should_replicate_config_property(self, name: str) -> bool:
        """Whether it isn't excluded."""
        return self._patterns.accepts(name)

    def should_replicate_source_default(self, name: str) -> bool:
        """The same for all properties."""
        return self._source_defaults


def property_filter_for(
    filter_class: str, exclude: Sequence[str], use_defaults_from: str, originals: Mapping[str, str]
) -> ConfigPropertyFilter:
    """The filter that stands for a Java class, or one written in Python; raises `ValueError` if there is none."""
    if filter_class == DEFAULT:
        return DefaultConfigPropertyFilter(exclude, use_defaults_from)
    properties: ConfigPropertyFilter = load(filter_class, ConfigPropertyFilter, originals, instead=[DEFAULT])
    return properties
