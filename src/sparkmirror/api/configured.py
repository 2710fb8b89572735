"""A mirror's configuration from a file, a mapping or keywords."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sparkmirror.config import FlowConfig, MirrorConfig
from sparkmirror.config.entries import Entry
from sparkmirror.config.formats import model_of, read
from sparkmirror.config.properties import explain_entries
from sparkmirror.errors import ConfigError
from sparkmirror.events import Event

Properties = Mapping[str, object]
File = str | os.PathLike[str]
log = logging.getLogger(__name__)
_KEYWORDS = "sm.Mirror(source=…, target=…)"


class Route(NamedTuple):
    """One flow in words: addresses and topics, in place of a file."""

    source: str = ""
    target: str = ""
    topics: str | Sequence[str] = ()
    groups: str | Sequence[str] = ()

    @property
    def is_empty(self) -> bool:
        return not any(self)

    def properties(self) -> dict[str, object]:
        """Return the flow in MirrorMaker 2's keys; the aliases are `source` and `target`."""
        if not (self.source and self.target):
            raise ConfigError("both source and target are needed: HOST:PORT,… of each", origin=_KEYWORDS)
        named = {
            "clusters": "source, target",
            "source.bootstrap.servers": self.source,
            "target.bootstrap.servers": self.target,
            "source->target.enabled": "true",
            "source->target.topics": self.topics,
            "source->target.groups": self.groups,
        }
        return {key: value for key, value in named.items() if value}


def configured(file: File | Properties | None, route: Route, properties: Properties) -> MirrorConfig:
    """Return the configuration of a file of any kind, of properties, or of a route.

    `properties` replace single keys. Warnings are logged, such as keys without effect. Raises `ConfigError`.
    """
    config = _read(file, route, {key: _text(value) for key, value in properties.items()})
    for line in config.warnings:
        log.warning("%s", line, extra=Event.CONFIG_WARNING.extra)
    return config


def _read(file: File | Properties | None, route: Route, on_top: Mapping[str, str]) -> MirrorConfig:
    if file is not None and not route.is_empty:
        raise ConfigError("give a file or properties, or source and target, not both", origin=_KEYWORDS)
    if file is None or isinstance(file, Mapping):
        origin, given = ("properties", file) if file is not None else (_KEYWORDS, route.properties())
        entries = [Entry(key=key, value=_text(value), where=origin) for key, value in given.items()]
        return explain_entries(origin, entries, overrides=on_top)[0]
    return model_of(read([os.fspath(file)]), overrides=on_top)[0]


def chosen(config: MirrorConfig, flow: str | None) -> tuple[FlowConfig, ...]:
    """Return the named flow, or all without a name. Raises `ConfigError`."""
    flows = tuple(each for each in config.flows if flow in (None, each.name))
    if not flows:
        names = ", ".join(each.name for each in config.flows)
        raise ConfigError(f"there is no such flow; there are {names}", origin="flow", key=flow)
    return flows


def only(config: MirrorConfig, flow: str | None) -> FlowConfig:
    """Return the named flow, or the only one. Raises `ConfigError`."""
    flows = chosen(config, flow)
    if len(flows) > 1:
        names = ", ".join(each.name for each in flows)
        raise ConfigError(f"there are several flows: {names}; choose one", origin="flow")
    return flows[0]


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(_text, value))
    return str(value)
