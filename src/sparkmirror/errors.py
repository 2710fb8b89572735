"""Every error a user can meet.

    SparkMirrorError
    ├── ConfigError            the file or the command line is wrong            exit 2
    │   └── ConfigErrors       it has several mistakes                          exit 2
    ├── ClusterUnreachable     a cluster can't be reached or won't let us in    exit 3
    │   └── ClusterTooOld      it is reached, and can't be used as it is        exit 3
    ├── RegistryUnreachable    a schema registry can't be asked                 exit 3
    ├── SetupError             something this machine lacks (Java, jars)        exit 3
    ├── UnfitTarget            a cluster can't be copied to exactly             exit 3
    └── CopyIncomplete         the run ended and something was not copied       exit 1

A message is one line: what, where, why, and what to do; of several mistakes, a line each. It never holds a secret.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar


class SparkMirrorError(Exception):
    """Root of all errors that a user can meet; `exit_code` is what the command line returns."""

    exit_code: ClassVar[int] = 1


class ConfigError(SparkMirrorError):
    """The configuration can't be run as it is.

    `where` is the file (or option), `key` the key as the user wrote it, if one is to blame.
    """

    exit_code = 2

    def __init__(self, reason: str, *, where: str, key: str | None = None) -> None:
        self.reason = reason
        self.where = where
        self.key = key
        super().__init__(f"{where}: {key}: {reason}" if key else f"{where}: {reason}")

    @property
    def mistakes(self) -> tuple[ConfigError, ...]:
        """All that it stands for, each with its own key."""
        return (self,)


class ConfigErrors(ConfigError):
    """Several mistakes, in the order in which they were met; as text, a line each.

    `reason`, `where` and `key` are the first one's.
    """

    def __init__(self, errors: Sequence[ConfigError]) -> None:
        first = errors[0]
        super().__init__(first.reason, where=first.where, key=first.key)
        self._mistakes = tuple(errors)

    @property
    def mistakes(self) -> tuple[ConfigError, ...]:
        return self._mistakes

    def __str__(self) -> str:
        return "\n".join(map(str, self._mistakes))


class ClusterUnreachable(SparkMirrorError):
    """A cluster can't be reached, or refuses us, and nothing can go on."""

    exit_code = 3


class ClusterTooOld(ClusterUnreachable):
    """A cluster's brokers, or the protocol version that they are set to, lack what a flow needs."""


class RegistryUnreachable(SparkMirrorError):
    """A schema registry can't be reached, refuses us, or doesn't answer as one."""

    exit_code = 3


class SetupError(SparkMirrorError):
    """Something that this machine needs is missing and could not be installed."""

    exit_code = 3


class UnfitTarget(SparkMirrorError):
    """A cluster's brokers don't do what exactness rests on."""

    exit_code = 3


class CopyIncomplete(SparkMirrorError):
    """A run ended as asked, but some partitions were not copied to the end."""

    exit_code = 1
