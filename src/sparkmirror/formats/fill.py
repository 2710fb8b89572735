"""Placeholders `${NAME}` in files, filled from the environment.

References to config providers have a colon, and stay. A filled-in value may be secret, whatever its name: it goes into
the written file, and into no message.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from sparkmirror.config.mistakes import Mistakes
from sparkmirror.config.originals import is_secret
from sparkmirror.errors import ConfigError, ConfigErrors
from sparkmirror.formats.reading import Note
from sparkmirror.formats.yaml_files import Fill

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SHORT = 4
"""Characters of the shortest value that is hidden in every case.

A shorter value is hidden only if its name tells of a secret, as it is part of many words.
"""
_WORDS = ("true", "false")


class Filling:
    """Filler of the texts of files; it keeps the values out of messages."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._filled: dict[str, str] = {}
        self._missing = Mistakes()

    def of(self, path: str) -> Fill:
        """Return the function that fills each text of a file."""
        return partial(self._text, path)

    def stop(self) -> None:
        """Raise `ConfigError` for all variables that are not set."""
        self._missing.stop()

    def _text(self, path: str, text: str) -> str:
        return _VARIABLE.sub(partial(self._value, path, text), text)

    def _value(self, path: str, text: str, match: re.Match[str]) -> str:
        name = match[1]
        if name not in self._environment:
            self._missing.add(ConfigError("is not set in the environment", origin=path, key=match[0]))
            return match[0]
        value = self._filled[name] = self._environment[name]
        before = text[: match.start()].replace('\\"', "")
        # An odd number of quotes before: within the quotes of a login module's option.
        return re.sub(r'(["\\])', r"\\\1", value) if before.count('"') % 2 else value

    def hidden(self, text: str) -> str:
        """Return a message without the filled-in values."""
        for name, value in sorted(self._filled.items(), key=lambda item: -len(item[1])):
            if value and value not in _WORDS and (len(value) >= _SHORT or is_secret(name)):
                for spelling in (value, repr(value)[1:-1], json.dumps(value)[1:-1]):
                    text = text.replace(spelling, f"${{{name}}}")
        return text

    def hidden_note(self, note: Note) -> Note:
        """Return a note without the filled-in values."""
        return replace(note, key=self.hidden(note.key), reason=self.hidden(note.reason))

    def hidden_error(self, error: ConfigError) -> ConfigError:
        """Return the same error without the filled-in values."""
        each = [
            ConfigError(
                self.hidden(mistake.reason), origin=mistake.origin, key=mistake.key and self.hidden(mistake.key)
            )
            for mistake in error.mistakes
        ]
        return each[0] if len(each) == 1 else ConfigErrors(each)
