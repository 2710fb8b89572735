"""Additions to `config.properties.exclude` (`+name`) as MirrorMaker 2 understands them: the whole list."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sparkmirror.config import Entry
from sparkmirror.config.control_settings import CONFIG_EXCLUDE
from sparkmirror.config.values import Names


def in_full(text: str) -> str:
    """The setting's value with the default list in it; as it is if it adds nothing. Raises `ValueError`."""
    items = CONFIG_EXCLUDE.kind.parse(text)
    return text if items == Names().parse(text) or not isinstance(items, tuple) else ",".join(items)


def entries_in_full(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """The same of an mm2.properties file's keys, for one flow or for all. Raises `ConfigError`."""
    return tuple(map(_entry_in_full, entries))


def _entry_in_full(entry: Entry) -> Entry:
    if entry.key != CONFIG_EXCLUDE.name and not entry.key.endswith(f".{CONFIG_EXCLUDE.name}"):
        return entry
    try:
        return replace(entry, value=in_full(entry.value))
    except ValueError as error:
        raise entry.error(str(error)) from None
