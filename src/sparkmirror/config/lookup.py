"""Look up settings in a file: the key that counts, its value, the messages."""

from __future__ import annotations

from collections.abc import Sequence

from sparkmirror.config.entries import Entry, Properties
from sparkmirror.config.model import ProviderConfig
from sparkmirror.config.providers import references, resolve
from sparkmirror.config.setting import Setting
from sparkmirror.errors import ConfigError
from sparkmirror.mistakes import Mistakes
from sparkmirror.values import Flag, Hidden, Value, repeated
from sparkmirror.veil import NAMES_VEIL, VEIL, Veil

_NAMES = frozenset(("topics", "topics.exclude", "groups", "groups.exclude"))
"""Settings whose names people must see in the log, even from a config provider."""

Pair = tuple[str, str]
"""Source and target aliases."""


class Lookup:
    """Look-up in a file; it records the keys looked up and all mistakes.

    Keys without a look-up are explained later. `declared` is None if the config providers' settings are wrong: then
    values with references are ignored. In a `sealed` look-up no reference is ever resolved: secrets stay references,
    and other values with references are ignored.
    """

    def __init__(
        self, path: str, properties: Properties, declared: Sequence[ProviderConfig] | None, *, sealed: bool = False
    ) -> None:
        self.path = path
        self.properties = properties
        self.declared = tuple(declared or ())
        self.providers = () if sealed else self.declared
        """Config providers that may resolve references; none in a sealed look-up."""
        self._no_references = declared is None
        self._sealed = sealed
        self.looked_up: set[str] = set()
        self.warnings = properties.warnings
        self.mistakes = Mistakes()
        self.veil = Veil()
        """Values behind this file's references."""

    def entry(self, setting: Setting, pair: Pair) -> Entry | None:
        """Return the entry of the setting's strongest key in the file; None without a key."""
        keys = setting.place.keys(setting.name, *pair)
        self.looked_up.update(keys)
        return next((self.properties[key] for key in keys if key in self.properties), None)

    def given(self, settings: Sequence[Setting], pair: Pair) -> dict[str, Value]:
        """Return the values of the settings that the file sets, by the model's fields."""
        values = ((setting.field, self.value(setting, pair)) for setting in settings)
        return {field: value for field, value in values if value is not None}

    def value(self, setting: Setting, pair: Pair) -> Value | None:
        """Return the value of the setting's strongest key in the file.

        None if there is no key, or the value is wrong; `mistakes` has the error. A secret behind a reference is looked
        for, but stays a reference.
        """
        entry = self.entry(setting, pair)
        if entry is None or (self._no_references and references(entry.value, ())[1]):
            return None
        return self.parsed(setting, entry)

    def parsed(self, setting: Setting, entry: Entry) -> Value | None:
        """Return an entry's value, read as this setting.

        None if the value is wrong; `mistakes` has the error.
        """
        try:
            return self._parsed(setting, entry)
        except ConfigError as error:
            self.mistakes.add(error)
            return None

    def _parsed(self, setting: Setting, entry: Entry) -> Value | None:
        text = self.text(entry, any_text=isinstance(setting.kind, Hidden))
        for reference in self.references(entry):
            (NAMES_VEIL if setting.name in _NAMES else VEIL).put(reference, self.veil.value(reference))
        if self._sealed and not setting.secret and self.references(entry):
            return None
        try:
            value = setting.kind.parse(entry.value if setting.secret else text)
            if isinstance(setting.kind, Flag) and not self.references(entry) and (odd := setting.kind.odd(text)):
                self.warn(entry.note(odd))
        except ValueError as error:
            reason = "its value from the config provider is not allowed" if self.references(entry) else str(error)
            raise entry.error(reason) from None
        return self._without_repetitions(entry, value) if isinstance(value, tuple) else value

    def references(self, entry: Entry) -> list[str]:
        return references(entry.value, self.declared)[0]

    def text(self, entry: Entry, *, any_text: bool = False) -> str:
        """Return an entry's value with its references resolved; raise `ConfigError`.

        With `any_text`, text that looks like a reference and names no provider stays as it is, with a warning.
        """
        _, unknown = references(entry.value, self.declared)
        if unknown:
            name = unknown[0][2:].partition(":")[0]
            hint = f"{unknown[0]} names no config provider: write config.providers = {name}"
            if not any_text:
                raise entry.error(f"{hint} and config.providers.{name}.class")
            self.warn(entry.note(f"holds what looks like a reference, but {name} is not among config.providers"))
        try:
            return resolve(entry.value, self.providers, self.veil)
        except ValueError as error:
            raise entry.error(str(error)) from None

    def warn(self, text: str) -> None:
        """Add a warning, unless the same warning is there already."""
        if text not in self.warnings:
            self.warnings.append(text)

    def _without_repetitions(self, entry: Entry, items: tuple[str, ...]) -> tuple[str, ...]:
        """Remove repeated items from a list with a warning, as Kafka 4.2 and later do."""
        if again := repeated(items):
            what = "something" if self.references(entry) else ", ".join(again)
            self.warn(entry.note(f"names {what} more than once"))
        return tuple(dict.fromkeys(items))
