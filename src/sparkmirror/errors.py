"""The error tree: each exception derives from one of two roots.

    SparkMirrorError
    ├── ConfigError            the file or the command line is wrong            exit 2
    │   └── ConfigErrors       several such mistakes                            exit 2
    ├── RowsRefused            a DataFrame's rows can't become records          exit 2
    ├── ClusterUnreachable     a cluster is out of reach, or denies access      exit 3
    │   ├── AnotherCluster     a name leads to another cluster than the flow's  exit 2
    │   └── ClusterTooOld      a cluster answers, but lacks a needed feature    exit 3
    ├── RegistryUnreachable    a schema registry can't be asked                 exit 3
    ├── SetupError             this machine lacks Java, jars or the like        exit 3
    ├── UnfitTarget            exact copies into a cluster are impossible       exit 3
    ├── RecordsGone            records to be read are not in the log any more   exit 1
    ├── CopyIncomplete         the run ended before all was copied              exit 1
    ├── NotAltered             an offset can't be set (takeover)                exit 1
    ├── NotTranslated          an offset has no exact one at the other cluster  exit 1
    ├── NotAtRest              a log still moves, so it has no end to publish   exit 1
    ├── NotTurned              a turn of a migration can't begin or end (sync)  exit 1
    ├── TimeUp                 a switch's step took too long (migrate)         exit 4
    ├── HookRefused            a hook said no, or nothing in time (migrate)    exit 1
    ├── TransformFailed        a transform can't take a record                  exit 1
    ├── RowsChanged            a batch's attempts have different rows           exit 1
    │   └── RowsInDoubt        nothing tells which of them are copied          exit 1
    ├── AttemptFenced          a newer batch of the query has begun             exit 1
    └── ClusterTrouble         a broker does not serve a request now            exit 3
                               (also a `ConnectionError`; wire, cluster, position)

    HandledError               the code itself answers to it, as a state, a refusal or another way

A user meets a `SparkMirrorError`: the program's end, a log line, or a state shows its message. A user never meets a
`HandledError`: its catcher says what follows. A message is one line (mistake, place, reason, and remedy), or a line for
each mistake. A message never holds a secret, nor a value from a config provider: `VEIL` shows the reference.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from sparkmirror.veil import VEIL

_TRANSFORM_FAILED = re.compile(
    r"^transforms\.(.+?): the record of (.+?)(?: at offset (\d+))? can't be transformed: (.*)", re.DOTALL
)
_PLACE = re.compile(r"([\w.-]+)-(\d+): ")


class SparkMirrorError(Exception):
    """Root for all errors that a user can meet; `exit_code` is the exit code."""

    exit_code: ClassVar[int] = 1

    @classmethod
    def of_text(cls, text: str) -> SparkMirrorError:
        """Return the error that has this text, as a task's error reaches the driver."""
        return cls(text)

    def __str__(self) -> str:
        return VEIL.over(super().__str__())


class HandledError(Exception):
    """Root for all errors that the code itself handles, close to their place."""


class ConfigError(SparkMirrorError):
    """The configuration can't be run as it is.

    `origin` is the file (or option). `key` is the key as the user wrote it; None if no key is to blame.
    """

    exit_code = 2

    def __init__(self, reason: str, *, origin: str, key: str | None = None) -> None:
        self.reason = reason
        self.origin = origin
        self.key = key
        super().__init__(f"{origin}: {key}: {reason}" if key else f"{origin}: {reason}")

    @classmethod
    def of_text(cls, text: str) -> SparkMirrorError:
        origin, _, reason = text.partition(": ")
        return ConfigError(reason, origin=origin)

    @property
    def mistakes(self) -> tuple[ConfigError, ...]:
        """All mistakes in this error, each with its own key."""
        return (self,)


class ConfigErrors(ConfigError):
    """Several mistakes, in the order of discovery; as text, a line each.

    `reason`, `origin` and `key` are the first mistake's.
    """

    def __init__(self, errors: Sequence[ConfigError]) -> None:
        first = errors[0]
        super().__init__(first.reason, origin=first.origin, key=first.key)
        self._mistakes = tuple(errors)

    @property
    def mistakes(self) -> tuple[ConfigError, ...]:
        return self._mistakes

    def __str__(self) -> str:
        return "\n".join(map(str, self._mistakes))


class RowsRefused(SparkMirrorError):
    """A DataFrame's rows can't become records: a column is missing or wrong."""

    exit_code = 2

    def __init__(self, column: str, why: str) -> None:
        self.column = column
        super().__init__(f"column {column}: {why}")

    @classmethod
    def of_text(cls, text: str) -> SparkMirrorError:
        column, _, why = text.removeprefix("column ").partition(": ")
        return cls(column, why)


class ClusterUnreachable(SparkMirrorError):
    """A cluster can't be reached, or denies access, and the work can't continue."""

    exit_code = 3


class AnotherCluster(ClusterUnreachable):
    """A cluster's addresses lead to another cluster than the flow's (R20)."""

    exit_code = 2


class ClusterTooOld(ClusterUnreachable):
    """A cluster's brokers, or their protocol version, lack a feature a flow needs.

    The protocol version is the brokers' setting.
    """


class RegistryUnreachable(SparkMirrorError):
    """A schema registry is out of reach, denies access, or gives no valid answer."""

    exit_code = 3


class SetupError(SparkMirrorError):
    """A requirement is missing on this machine, or Spark failed to do the work."""

    exit_code = 3


class UnfitTarget(SparkMirrorError):
    """A cluster's brokers lack the behaviour that exactness rests on."""

    exit_code = 3


class RecordsGone(SparkMirrorError):
    """Records that a query has yet to read are not in the log any more."""

    exit_code = 1


class CopyIncomplete(SparkMirrorError):
    """A run ended as asked, but some partitions were not copied to the end."""

    exit_code = 1


class NotTranslated(SparkMirrorError):
    """An offset has no exact counterpart at the other cluster, now or ever."""

    exit_code = 1


class NotAtRest(SparkMirrorError):
    """A topic's log still moves, so that where copying ends can't be published."""

    exit_code = 1


class TransformFailed(SparkMirrorError):
    """A transform can't take a record, so that the record can't be copied as asked.

    The message has the record's place, and no part of its key, value or headers.
    """

    exit_code = 1

    def __init__(self, transform: str, topic: str, partition: int | None, offset: int | None, why: str) -> None:
        self.transform = transform
        self.why = why
        place = "-".join(str(part) for part in (topic, partition) if part is not None)
        at = "" if offset is None else f" at offset {offset}"
        super().__init__(f"transforms.{transform}: the record of {place}{at} can't be transformed: {why}")

    @classmethod
    def of_text(cls, text: str) -> SparkMirrorError:
        transform, place, offset, why = _TRANSFORM_FAILED.findall(text)[0]
        return cls(transform, place, None, int(offset) if offset else None, why)


class RowsChanged(SparkMirrorError):
    """The attempts of a micro-batch have different rows, so that none can be exact."""

    exit_code = 1

    @property
    def place(self) -> tuple[str, int] | None:
        """The target partition with which the message begins, if with one.

        From a task only the message reaches the driver.
        """
        named = _PLACE.match(str(self))
        return None if named is None else (named[1], int(named[2]))


class RowsInDoubt(RowsChanged):
    """Rows of a micro-batch may be an earlier attempt's, or not: the log doesn't tell."""

    exit_code = 1


class AttemptFenced(SparkMirrorError):
    """A newer micro-batch of the query has begun: this attempt is outdated."""

    exit_code = 1


class ClusterTrouble(SparkMirrorError, ConnectionError):
    """A broker, or the way to it, does not serve a request now.

    Most troubles pass by themselves, and the work is tried again. As a `ConnectionError` the trouble is caught together
    with the operating system's.
    """

    exit_code = 3
