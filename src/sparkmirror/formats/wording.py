"""Messages about an mm2.properties file's keys, in the words of the files that these were made of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from sparkmirror.config import EffectiveValue, Entry
from sparkmirror.errors import ConfigError, ConfigErrors
from sparkmirror.formats.reading import Reading
from sparkmirror.formats.written import as_written

_NAME = r"[a-z][a-z0-9._-]*"
_STORES = re.compile(r"(offset|config|status)\.storage\..*|offset\.flush\..*")


@dataclass(frozen=True, slots=True)
class Wording:
    """How connectors, or a Strimzi resource, say what an mm2.properties file would."""

    flows: tuple[tuple[str, str], ...]
    """Source and target of each."""
    files: Mapping[str, str]
    """The file that says most about each alias."""
    fields: Mapping[str, str]
    """Where in a Strimzi resource each alias is, such as `spec.target`; nothing for connectors."""

    def error(self, error: ConfigError) -> ConfigError:
        """The same error, or errors."""
        return in_order(map(self._each, error.mistakes))

    def _each(self, error: ConfigError) -> ConfigError:
        alias, dot, _ = (error.key or "").partition(".")
        where = self.files.get(alias, error.where) if dot else error.where
        return ConfigError(self.text(error.reason), where=where, key=error.key and self.key(error.key))

    def value(self, value: EffectiveValue, written: Mapping[str, str]) -> EffectiveValue:
        """The same, with the key that set it; `written` has each place and key, as it is read and as it was."""
        place, equals, references = value.where.partition(" = ")
        return replace(value, where=written.get(place, place) + equals + references)

    def key(self, key: str) -> str:
        """A key by itself."""
        alias, _, name = key.partition(".")
        field = self.fields.get(alias)
        return self._in_resource(field, name) if field is not None else self.text(key)

    def warning(self, line: str) -> str:
        """A line of a place, a key and a reason: only the last is not yet in these words."""
        place, key, reason = (["", "", *line.split(": ", 2)])[-3:]
        return ": ".join(filter(None, (place, key, self.text(reason))))

    def text(self, text: str) -> str:
        """Keys in a sentence."""
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
    """The words for what was read; none are needed for MirrorMaker 2's own file."""
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
    """A cluster's key as a connector has it."""
    name = key[1]
    if name.startswith(("consumer.", "admin.")) or _STORES.fullmatch(name):
        return name if _STORES.fullmatch(name) else f"{end}.{name}"
    if name.startswith("producer."):
        return f"producer.override.{name.removeprefix('producer.')}"
    return f"{end}.cluster.{name}"


def in_order(errors: Iterable[ConfigError]) -> ConfigError:
    """One error of all, each once, in the order of their files' lines."""
    each = list({str(one): one for one in errors}.values())
    if len(each) == 1:
        return each[0]
    files = list(dict.fromkeys(one.where.rpartition(", line ")[0] or one.where for one in each))
    return ConfigErrors(sorted(each, key=partial(_spot, files)))


def _spot(files: Sequence[str], error: ConfigError) -> tuple[int, int]:
    path, _, line = error.where.rpartition(", line ")
    return (files.index(path), int(line)) if path and line.isdigit() else (files.index(error.where), 0)


def places(entries: Iterable[Entry]) -> dict[str, str]:
    """Each entry's place and key as it is read, and as it was written."""
    return {f"{one.where}: {one.key}": f"{one.where}: {as_written(one)}" for one in entries}
