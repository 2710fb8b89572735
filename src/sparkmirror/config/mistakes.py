"""Mistakes in a file, gathered during a reading, each once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from sparkmirror.errors import ConfigError, ConfigErrors


class Mistakes:
    """Mistakes in the order of discovery.

    A mistake in a line that several flows read counts once.
    """

    def __init__(self) -> None:
        self._errors: dict[str, ConfigError] = {}

    @property
    def all(self) -> tuple[ConfigError, ...]:
        """Mistakes so far."""
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
        """Keep the mistakes of the block out: the list has them when the block has ended."""
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
