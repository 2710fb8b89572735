"""Entries under mm2.properties keys, named as in the user's file."""

from __future__ import annotations

from dataclasses import dataclass

from sparkmirror.config.entries import Entry
from sparkmirror.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Written(Entry):
    """Entry read as `key`, which the user knows as `written`."""

    written: str = ""

    def error(self, reason: str) -> ConfigError:
        """Return an error that names the key as written."""
        return ConfigError(reason, origin=self.spot, key=self.written)

    def note(self, text: str) -> str:
        """Return a warning that names the key as written."""
        return f"{self.where}: {self.written}: {text}"


def as_written(entry: Entry) -> str:
    """Return an entry's name in its own file: a connector's key or a resource's field."""
    return entry.written if isinstance(entry, Written) else entry.key
