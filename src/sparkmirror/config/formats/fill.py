"""Placeholders `${NAME}` in files, filled from the environment.

References to config providers have a colon, and stay. A filled-in value may be secret, whatever its name: it goes into
the written file, and into no message.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from sparkmirror.config.formats.reading import Note
from sparkmirror.config.formats.yaml_files import Fill
from sparkmirror.config.originals import is_secret
from sparkmirror.errors import ConfigError
from sparkmirror.mistakes import Mistakes, veiled
from sparkmirror.veil import Veil

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class Filling:
    """Filler for file texts; it keeps the values out of messages."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._veil = Veil()
        self._missing = Mistakes()

    def of(self, path: str) -> Fill:
        """Return the function that fills each text in a file."""
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
        value = self._environment[name]
        self._veil.put(match[0], value, short=is_secret(name))
        before = text[: match.start()].replace('\\"', "")
        # An odd number of quotes before: within the quotes of a login module's option.
        return re.sub(r'(["\\])', r"\\\1", value) if before.count('"') % 2 else value

    def hidden(self, text: str) -> str:
        """Return a message without the filled-in values."""
        return self._veil.over(text)

    def hidden_note(self, note: Note) -> Note:
        return replace(note, key=self.hidden(note.key), reason=self.hidden(note.reason))

    def hidden_error(self, error: ConfigError) -> ConfigError:
        return veiled(error, self._veil)
