"""Messages about mm2.properties keys, in the words of the user's files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from sparkmirror.config.effective import EffectiveValue
from sparkmirror.config.entries import Entry
from sparkmirror.config.formats.reading import Reading
from sparkmirror.config.formats.written import as_written
from sparkmirror.errors import ConfigError, ConfigErrors

_NAME = r"[a-z][a-z0-9._-]*"
_STORES = re.compile(r"(offset|config|status)\.storage\..*|offset\.flush\..*")


@dataclass(frozen=True, slots=True)
class Wording:
    """Connectors' words, or a Strimzi resource's, for mm2.properties keys."""

    flows: tuple[tuple[str, str], ...]
    """Each flow's source and target."""
    files: Mapping[str, str]
    """File that says most about each alias."""
    fields: Mapping[str, str]
    """Each alias's place in a Strimzi resource, such as `spec.target`.

    Empty for connectors.
    """

    def error(self, error: ConfigError) -> ConfigError:
        return in_order(map(self._each, error.mistakes))

    def _each(self, error: ConfigError) -> ConfigError:
        alias, dot, _ = (error.key or "").partition(".")
        path = self.files.get(alias, error.origin) if dot else error.origin
        return ConfigError(self.text(error.reason), origin=path, key=error.key and self.key(error.key))

    def value(self, value: EffectiveValue, written: Mapping[str, str]) -> EffectiveValue:
        """Return the same value, with its origin in the user's words.

        `written` has each place and key as the user wrote it, by place and key as read.
        """
        place, equals, references = value.where.partition(" = ")
        return replace(value, where=written.get(place, place) + equals + references)

    def key(self, key: str) -> str:
        """Return a key by itself, in the user's words."""
        alias, _, name = key.partition(".")
        field = self.fields.get(alias)
        return self._in_resource(field, name) if field is not None else self.text(key)

    def warning(self, line: str) -> str:
        """Return a line that has place, key and reason, in the user's words.

        Only the reason still needs a change.
        """
        place, key, reason = (["", "", *line.split(": ", 2)])[-3:]
        return ": ".join(filter(None, (place, key, self.text(reason))))

    def text(self, text: str) -> str:
        """Return a sentence with its keys in the user's words."""
        for source, target in (*self.flows, ("<source>", "<target>")):
            pair = f"{re.escape(source)}->{re.escape(target)}"
            text = re.sub(rf"(?<![\w.]){pair}\.(?={_NAME})", "", text)
        aliases = {alias: self._end(alias) for flow in self.flows for alias in flow}
        aliases |= {"<source>": "source", "<target>": "target"}
        for alias, end in aliases.items():
            text = re.sub(rf"(?<![\w./>-]){re.escape(alias)}\.({_NAME})", partial(_own, end), text)
        text = re.sub(r"([\w.-]+) or \1(?![\w.-])", r"\1", text)
        return re.sub(r"\bwrite security\.protocol\b", "write tls", text) if self.fields else text

    def _end(self, alias: str) -> str:
        return "source" if any(alias == source for source, _ in self.flows) else "target"

    def _in_resource(self, field: str, name: str) -> str:
        if name == "bootstrap.servers":
            return f"{field}.bootstrapServers"
        if name.startswith("sasl."):
            return f"{field}.authentication.config.{name}"
        return f"{field}.tls" if name.startswith(("ssl.", "security.")) else f"{field}.config.{name}"


def wording_of(reading: Reading) -> Wording | None:
    """Return the words for a reading; None for MirrorMaker 2's own file."""
    connectors = [connector for cluster in reading.connect for connector in cluster.connectors]
    if not connectors:
        return None
    flows = tuple(dict.fromkeys(connector.flow for connector in connectors))
    files: dict[str, str] = {}
    for connector in connectors:
        for alias in connector.flow:
            files.setdefault(alias, connector.path)
    return Wording(flows, files, reading.fields)


def _own(end: str, key: re.Match[str]) -> str:
    """Return a cluster's key as a connector has it."""
    name = key[1]
    if name.startswith(("consumer.", "admin.")) or _STORES.fullmatch(name):
        return name if _STORES.fullmatch(name) else f"{end}.{name}"
    if name.startswith("producer."):
        return f"producer.override.{name.removeprefix('producer.')}"
    return f"{end}.cluster.{name}"


def in_order(errors: Iterable[ConfigError]) -> ConfigError:
    """Join errors, each once, in the order of their files' lines."""
    each = list({str(error): error for error in errors}.values())
    if len(each) == 1:
        return each[0]
    files = list(dict.fromkeys(error.origin.rpartition(", line ")[0] or error.origin for error in each))
    return ConfigErrors(sorted(each, key=partial(_spot, files)))


def _spot(files: Sequence[str], error: ConfigError) -> tuple[int, int]:
    path, _, line = error.origin.rpartition(", line ")
    return (files.index(path), int(line)) if path and line.isdigit() else (files.index(error.origin), 0)


def places(entries: Iterable[Entry]) -> dict[str, str]:
    """Map each entry's place and key as read to place and key as written."""
    return {f"{entry.where}: {entry.key}": f"{entry.where}: {as_written(entry)}" for entry in entries}
