"""Topic property filters: MirrorMaker 2's `DefaultConfigPropertyFilter`.

Source: `mm2.md` 1.5, KIP-894.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from sparkmirror.policy.loading import load
from sparkmirror.policy.name_patterns import NamePatterns, names_in

DEFAULT = "org.apache.kafka.connect.mirror.DefaultConfigPropertyFilter"
ANY = (".*",)


class ConfigPropertyFilter(Protocol):
    """Interface for the classes that `config.property.filter.class` may name."""

    def should_replicate_config_property(self, name: str) -> bool:
        """True if the target topic gets the source's value of this property."""

    def should_replicate_source_default(self, name: str) -> bool:
        """True if a property unset at the source gets the source's default.

        Otherwise the target's default holds.
        """


class DefaultConfigPropertyFilter:
    """Accepts all properties but `config.properties.exclude`.

    `use.defaults.from` is `source` or `target`. Raises `ValueError` for an invalid regex, and for a regex that can't be
    translated to Python.
    """

    def __init__(self, exclude: Sequence[str] = (), use_defaults_from: str = "target") -> None:
        self._patterns = NamePatterns(ANY, exclude)
        self._source_defaults = use_defaults_from == "source"

    def configure(self, settings: Mapping[str, str]) -> None:
        """Take regexes and defaults from a connector's settings, as subclasses get them."""
        self._patterns = NamePatterns(ANY, names_in(settings, "config.properties.exclude"))
        self._source_defaults = settings.get("use.defaults.from") == "source"

    def should_replicate_config_property(self, name: str) -> bool:
        """True if `name` is not excluded."""
        return self._patterns.accepts(name)

    def should_replicate_source_default(self, name: str) -> bool:
        """True for all properties if `use.defaults.from` is `source`."""
        return self._source_defaults


def property_filter_for(
    filter_class: str, exclude: Sequence[str], use_defaults_from: str, originals: Mapping[str, str]
) -> ConfigPropertyFilter:
    """Return the filter for a Java class, or a filter written in Python.

    Raises `ValueError` if there is no such filter.
    """
    if filter_class == DEFAULT:
        return DefaultConfigPropertyFilter(exclude, use_defaults_from)
    properties: ConfigPropertyFilter = load(filter_class, ConfigPropertyFilter, originals, instead=[DEFAULT])
    return properties
