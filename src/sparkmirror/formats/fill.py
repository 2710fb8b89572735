"""`${NAME}` in files, filled from the environment; references to config providers, which have a colon, stay.

What was filled in may be secret, whatever its name: it goes into the file that is written, and into no message.
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
"""Characters; a shorter value is hidden only if its name says that it is secret, as it is part of many words."""
_WORDS = ("true", "false")


class Filling:
    """Fills the texts of files, and keeps what it has filled in out of messages."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._filled: dict[str, str] = {}
        self._missing = Mistakes()

    def of(self, path: str) -> Fill:
        """What fills each text of one file."""
        return partial(self._text, path)

    def stop(self) -> None:
        """Raise `ConfigError` for all that is not set."""
        self._missing.stop()

    def _text(self, path: str, text: str) -> str:
        return _VARIABLE.sub(partial(self._value, path, text), text)

    def _value(self, path: str, text: str, found: re.Match[str]) -> str:
        name = found[1]
        if name not in self._environment:
            self._missing.add(ConfigError("is not set in the environment", where=path, key=found[0]))
            return found[0]
        value = self._filled[name] = self._environment[name]
        before = text[: found.start()].replace('\\"', "")
        # Between the quotes of a login module's option.
        return re.sub(r'(["\\])', r"\\\1", value) if before.count('"') % 2 else value

    def hidden(self, text: str) -> str:
        """A message without what was filled in."""
        for name, value in sorted(self._filled.items(), key=lambda one: -len(one[1])):
            if value and value not in _WORDS and (len(value) >= _SHORT or is_secret(name)):
                for spelling in (value, repr(value)[1:-1], json.dumps(value)[1:-1]):
                    text = text.replace(spelling, f"${{{name}}}")
        return text

    def hidden_note(self, note: Note) -> Note:
        """A note without what was filled in."""
        return replace(note, key=self.hidden(note.key), reason=self.hidden(note.reason))

    def hidden_error(self, error: ConfigError) -> ConfigError:
        """The same error, without what was filled in."""
        each = [
            ConfigError(self.hidden(one.reason), where=one.where, key=one.key and self.hidden(one.key))
            for one in error.mistakes
        ]
        return each[0] if len(each) == 1 else ConfigErrors(each)
