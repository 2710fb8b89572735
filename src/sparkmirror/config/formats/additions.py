"""Additions to `config.properties.exclude` (`+name`), turned into whole lists.

MirrorMaker 2 understands whole lists only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sparkmirror.config.duty_settings import CONFIG_EXCLUDE
from sparkmirror.config.entries import Entry
from sparkmirror.values import Names


def in_full(text: str) -> str:
    """Return the setting's value with additions replaced by the whole list.

    A value without additions stays as it is. Raise `ValueError`.
    """
    items = CONFIG_EXCLUDE.kind.parse(text)
    return text if items == Names().parse(text) or not isinstance(items, tuple) else ",".join(items)


def entries_in_full(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Return an mm2.properties file's entries with whole lists.

    The setting may be for a single flow or for all flows. Raise `ConfigError`.
    """
    return tuple(map(_entry_in_full, entries))


def _entry_in_full(entry: Entry) -> Entry:
    if entry.key != CONFIG_EXCLUDE.name and not entry.key.endswith(f".{CONFIG_EXCLUDE.name}"):
        return entry
    try:
        return replace(entry, value=in_full(entry.value))
    except ValueError as error:
        raise entry.error(str(error)) from None
