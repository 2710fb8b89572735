"""Mistakes in a file, gathered during a reading, each once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from sparkmirror.errors import ConfigError, ConfigErrors
from sparkmirror.veil import Veil


class Mistakes:
    """Mistakes in order of discovery.

    A mistake in a line that several flows read counts once.
    """

    def __init__(self) -> None:
        self._errors: dict[str, ConfigError] = {}

    @property
    def all(self) -> tuple[ConfigError, ...]:
        return tuple(self._errors.values())

    def add(self, error: ConfigError) -> None:
        """Add an error, which may hold one mistake or several."""
        for mistake in error.mistakes:
            self._errors.setdefault(str(mistake), mistake)

    @contextmanager
    def gathered(self) -> Iterator[None]:
        """End the block at its first `ConfigError`, and add the error."""
        try:
            yield
        except ConfigError as error:
            self.add(error)

    @contextmanager
    def apart(self) -> Iterator[list[ConfigError]]:
        """Keep the block's mistakes out: the list has them when the block has ended."""
        outside, self._errors = self._errors, {}
        mistakes: list[ConfigError] = []
        try:
            yield mistakes
        finally:
            mistakes += self._errors.values()
            self._errors = outside

    def stop(self, keys: Iterable[str] = ()) -> None:
        """Raise the mistakes, if there are any.

        A single mistake is raised itself, several as `ConfigErrors`, in the order of `keys`.
        """
        order = {key: number for number, key in enumerate(keys)}
        errors = sorted(self._errors.values(), key=lambda error: order.get(error.key or "", -1))
        if len(errors) == 1:
            raise errors[0]
        if errors:
            raise ConfigErrors(errors)


def veiled(error: ConfigError, veil: Veil) -> ConfigError:
    """Return the same error without values behind references."""
    each = [
        ConfigError(veil.over(mistake.reason), origin=mistake.origin, key=mistake.key and veil.over(mistake.key))
        for mistake in error.mistakes
    ]
    return each[0] if len(each) == 1 else ConfigErrors(each)
