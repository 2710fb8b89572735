"""Entries under the keys that mm2.properties has for them, named as they stand in the file they come from."""

from __future__ import annotations

from dataclasses import dataclass

from sparkmirror.config import Entry
from sparkmirror.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Written(Entry):
    """An entry read as `key`; who wrote it knows it as `written`."""

    written: str = ""

    def error(self, reason: str) -> ConfigError:
        """An error that names what was written."""
        return ConfigError(reason, where=self.spot, key=self.written)

    def note(self, text: str) -> str:
        """A warning that names what was written."""
        return f"{self.where}: {self.written}: {text}"


def as_written(entry: Entry) -> str:
    """The entry's name in its own file: a connector's key, or a resource's field."""
    return entry.written if isinstance(entry, Written) else entry.key
