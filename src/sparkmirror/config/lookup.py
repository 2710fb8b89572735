"""Looking up settings in a file: which key counts, what its value is, and what was said about it."""

from __future__ import annotations

from collections.abc import Sequence

from sparkmirror.config.entries import Entry, Properties
from sparkmirror.config.mistakes import Mistakes
from sparkmirror.config.model import ProviderConfig
from sparkmirror.config.providers import references, resolve
from sparkmirror.config.setting import Setting
from sparkmirror.config.values import Flag, Hidden, Value, repeated
from sparkmirror.errors import ConfigError

Pair = tuple[str, str]
"""Source and target."""


class Lookup:
    """Remembers which keys were looked up, so that the others can be explained, and all mistakes.

    `providers` is None if their own settings are wrong: then no reference is looked at.
    """

    def __init__(self, path: str, properties: Properties, providers: Sequence[ProviderConfig] | None) -> None:
        self.path = path
        self.properties = properties
        self.providers = tuple(providers or ())
        self._no_references = providers is None
        self.looked_up: set[str] = set()
        self.warnings = properties.warnings
        self.mistakes = Mistakes()

    def entry(self, setting: Setting, pair: Pair) -> Entry | None:
        """The strongest of the setting's keys that is there."""
        keys = setting.place.keys(setting.name, *pair)
        self.looked_up.update(keys)
        return next((self.properties[key] for key in keys if key in self.properties), None)

    def given(self, settings: Sequence[Setting], pair: Pair) -> dict[str, Value]:
        """The values of those that are set, by the model's fields."""
        values = ((setting.field, self.value(setting, pair)) for setting in settings)
        return {field: value for field, value in values if value is not None}

    def value(self, setting: Setting, pair: Pair) -> Value | None:
        """What the strongest key says; None if none is there, or it says something wrong, which is among `mistakes`.

        A secret that stands elsewhere is looked for, but stays a reference.
        """
        entry = self.entry(setting, pair)
        if entry is None or (self._no_references and references(entry.value, ())[1]):
            return None
        return self.parsed(setting, entry)

    def parsed(self, setting: Setting, entry: Entry) -> Value | None:
        """What an entry says, read as this setting; None if it is wrong, which is among `mistakes`."""
        try:
            return self._parsed(setting, entry)
        except ConfigError as error:
            self.mistakes.add(error)
            return None

    def _parsed(self, setting: Setting, entry: Entry) -> Value:
        text = self.text(entry, any_text=isinstance(setting.kind, Hidden))
        try:
            value = setting.kind.parse(entry.value if setting.secret else text)
            if isinstance(setting.kind, Flag) and not self.references(entry) and (odd := setting.kind.odd(text)):
                self.warn(entry.note(odd))
        except ValueError as error:
            reason = "its value from the config provider is not allowed" if self.references(entry) else str(error)
            raise entry.error(reason) from None
        return self._without_repetitions(entry, value) if isinstance(value, tuple) else value

    def references(self, entry: Entry) -> list[str]:
        """The references to config providers in its value."""
        return references(entry.value, self.providers)[0]

    def text(self, entry: Entry, *, any_text: bool = False) -> str:
        """Its value with references resolved; `any_text`: what looks like one to no provider may be meant so."""
        _, unknown = references(entry.value, self.providers)
        if unknown:
            name = unknown[0][2:].partition(":")[0]
            hint = f"{unknown[0]} names no config provider: write config.providers = {name}"
            if not any_text:
                raise entry.error(f"{hint} and config.providers.{name}.class")
            self.warn(entry.note(f"holds what looks like a reference, but {name} is not among config.providers"))
        try:
            return resolve(entry.value, self.providers)
        except ValueError as error:
            raise entry.error(str(error)) from None

    def warn(self, text: str) -> None:
        """Say it, once."""
        if text not in self.warnings:
            self.warnings.append(text)

    def _without_repetitions(self, entry: Entry, items: tuple[str, ...]) -> tuple[str, ...]:
        """Kafka 4.2 and later take repeated items out of a list and warn."""
        if again := repeated(items):
            what = "something" if self.references(entry) else ", ".join(again)
            self.warn(entry.note(f"names {what} more than once"))
        return tuple(dict.fromkeys(items))
