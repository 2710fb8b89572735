"""A Java properties file's entries, and the keys that count in the end.

Kafka reads its files with `java.util.Properties`: Latin-1, `#` only at a line's start, a key's last entry wins.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import javaproperties

from sparkmirror.config.settings import CLUSTERS_KEY
from sparkmirror.errors import ConfigError

COMMAND_LINE = "command line"
SERVERS = ".bootstrap.servers"
MARK = b"\xef\xbb\xbf"
"""Byte order mark, which editors put before a text to say that it is UTF-8.

The mark belongs to no line of the file.
"""

_MARKED = (
    "stands after a byte order mark, which MirrorMaker 2 takes for a part of this key, so that it doesn't know the key:"
    " save the file without the mark"
)
OLD_NAMES = {
    "topics.blacklist": "topics.exclude",
    "groups.blacklist": "groups.exclude",
    "config.properties.blacklist": "config.properties.exclude",
}
"""Old list names in Kafka 2.4 to 3.9 (KIP-629), with the new names.

From 4.0 on MirrorMaker 2 ignores the old names.
"""


_LOST = re.compile(r"(?<!\\)(?:\\\\)*(\\[^\\tnrfu\s=:#!])")
"""A backslash that has no meaning in a properties file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Key and value, with their place: `where` is the file's path or `COMMAND_LINE`."""

    key: str
    value: str
    where: str
    line: int = 0
    """Line in the file, from 1; 0: no line."""
    written: str = ""
    """Key as the user wrote it, if `key` is another name for it."""
    aside: str = ""
    """Remark on how MirrorMaker 2 reads this line, if it reads something else."""
    lost: str = ""
    r"""The line's first dropped backslash, with the next character, such as `\.`."""

    @property
    def spot(self) -> str:
        """File, with the line if the line is known."""
        line = f", line {self.line}"
        return self.where if not self.line or self.where.endswith(line) else self.where + line

    def error(self, reason: str) -> ConfigError:
        """Return an error that names this key; `reason` must not hold a secret."""
        return ConfigError(reason, origin=self.spot, key=self.written or self.key)

    def note(self, text: str) -> str:
        """Return a warning that names this key; `text` must not hold a secret."""
        return f"{self.where}: {self.written or self.key}: {text}"


def read_entries(path: str) -> list[Entry]:
    """Return all entries in the file at `path`, in order, repetitions included.

    Raise `ConfigError` if the file can't be read as properties.
    """
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        raise ConfigError("there is no such file", origin=path) from None
    except IsADirectoryError:
        raise ConfigError("is a directory, not a properties file", origin=path) from None
    except OSError as error:
        raise ConfigError(f"can't be read: {error.strerror}", origin=path) from None
    return entries_of(path, content)


def entries_of(path: str, content: bytes) -> list[Entry]:
    """Return all entries in a file's content, as `read_entries` does."""
    if b"\0" in content:
        raise ConfigError("is not a plain properties file: save it as ASCII or Latin-1 text", origin=path)
    try:
        entries = list(_numbered(path, javaproperties.parse(BytesIO(content.removeprefix(MARK)))))
    except javaproperties.InvalidUEscapeError:
        raise ConfigError(r"has a \u that four hexadecimal digits don't follow", origin=path) from None
    if content.startswith(MARK) and re.match(rb"[^\s#!]|\\\s", content.removeprefix(MARK)):
        entries[:1] = [replace(entry, aside=_MARKED) for entry in entries[:1]]
    return entries


def _numbered(path: str, parts: Iterable[Any]) -> Iterator[Entry]:
    """Yield the entries among a file's parts.

    A value may go over several lines; the first line counts as its line.
    """
    line = 1
    for part in parts:
        if isinstance(part, javaproperties.KeyValue):
            lost = _LOST.search(part.source)
            yield Entry(key=part.key, value=part.value, where=path, line=line, lost=lost[1] if lost else "")
        line += len(re.findall(r"\r\n|\r|\n", part.source))


def seen_aliases(entries: Iterable[Entry]) -> list[str]:
    """Return the clusters that have brokers in the file, in order.

    They are the candidates for `clusters`.
    """
    heads = (entry.key.removesuffix(SERVERS) for entry in entries if entry.key.endswith(SERVERS))
    return list(dict.fromkeys(head for head in heads if re.fullmatch(r"[\w-]+", head)))


def _new_name(key: str) -> str | None:
    """Return a list's new name, for a single flow or for all flows.

    None if the key is no old name.
    """
    for old, new in OLD_NAMES.items():
        if key == old or ("->" in key and key.endswith(f".{old}")):
            return key.removesuffix(old) + new
    return None


class Properties(Mapping[str, Entry]):
    """Keys that count: each key's last entry in the file, or the command line's.

    `warnings` lists the corrections that were made.
    """

    def __init__(self, in_file: Iterable[Entry], on_top: Iterable[Entry], aliases: Sequence[str]) -> None:
        self.warnings: list[str] = []
        self._entries: dict[str, Entry] = {}
        for entry in self._renamed([self._joined(entry, aliases) for entry in in_file]):
            if entry.key in self._entries:
                self.warnings.append(entry.note("is set more than once; the last one counts"))
            if entry.aside:
                self.warnings.append(entry.note(entry.aside))
            if re.search(r"\s#", entry.value) and entry.key != CLUSTERS_KEY:
                self.warnings.append(entry.note("holds a #, which does not start a comment after a value"))
            self._entries[entry.key] = entry
        self._entries.update((entry.key, entry) for entry in self._renamed(list(on_top)))

    def __getitem__(self, key: str) -> Entry:
        return self._entries[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def _renamed(self, entries: Sequence[Entry]) -> Iterator[Entry]:
        """Yield the entries, with lists under their new names.

        A list that stands under its old and its new name excludes all that either value excludes.
        """
        stated = {entry.key: entry for entry in entries}
        replaced = {new for key in stated if (new := _new_name(key)) is not None}
        for entry in entries:
            new = _new_name(entry.key)
            if new is None:
                if entry.key not in replaced:
                    yield entry
                continue
            items, newer = entry.value.strip(), stated.get(new)
            what = (
                f"is read as {new}, as up to Kafka 3.9; MirrorMaker 2 ignores it since 4.0, and copies the names that "
                "it excludes"
            )
            if newer is not None and newer.value.strip() != items:
                self.warnings.append(
                    entry.note(f"{what}: names that either key excludes are left out; write all into {new}")
                )
                items = ",".join(filter(None, (newer.value.strip(), items)))
            else:
                self.warnings.append(entry.note(f"{what}: write {new}"))
            yield Entry(key=new, value=items, where=entry.where, line=entry.line, written=entry.key, lost=entry.lost)

    def _joined(self, entry: Entry, aliases: Sequence[str]) -> Entry:
        """Rejoin a key with spaces around `->`: Java ends a key at its first space."""
        source = entry.key.removesuffix("->")
        rest = ("->" if source != entry.key else "") + entry.value
        match = re.fullmatch(r"->\s*([^\s=:]+)\s*[=:]?\s*(.*)", rest, re.DOTALL)
        if source not in aliases or match is None:
            return entry
        key = f"{source}->{match[1]}"
        self.warnings.append(
            entry.note(f"MirrorMaker 2 reads this line as a key {entry.key!r} and ignores it; write {key}")
        )
        return Entry(key=key, value=match[2], where=entry.where, line=entry.line)
