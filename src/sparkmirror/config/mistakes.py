"""What is wrong in one reading of a file: gathered while it goes on, each mistake once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from sparkmirror.errors import ConfigError, ConfigErrors


class Mistakes:
    """Mistakes in the order in which they were met; what several flows read in one line counts once."""

    def __init__(self) -> None:
        self._errors: dict[str, ConfigError] = {}

    @property
    def all(self) -> tuple[ConfigError, ...]:
        """What there is so far."""
        return tuple(self._errors.values())

    def add(self, error: ConfigError) -> None:
        """Take in one or several."""
        for mistake in error.mistakes:
            self._errors.setdefault(str(mistake), mistake)

    @contextmanager
    def gathered(self) -> Iterator[None]:
        """End the block at its first mistake, and take that in."""
        try:
            yield
        except ConfigError as error:
            self.add(error)

    @contextmanager
    def apart(self) -> Iterator[list[ConfigError]]:
        """Keep what is met in the block out: the list has it when the block has ended."""
        outside, self._errors = self._errors, {}
        found: list[ConfigError] = []
        try:
            yield found
        finally:
            found += self._errors.values()
            self._errors = outside

    def stop(self, keys: Iterable[str] = ()) -> None:
        """Raise what there is: one as it is, several as `ConfigErrors`, in the order of `keys`."""
        order = {key: number for number, key in enumerate(keys)}
        errors = sorted(self._errors.values(), key=lambda error: order.get(error.key or "", -1))
        if len(errors) == 1:
            raise errors[0]
        if errors:
            raise ConfigErrors(errors)
