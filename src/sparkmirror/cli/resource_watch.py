"""Strimzi resource of a run, taken over when its file has changed.

The file is looked at every two seconds. An mm2.properties is not watched: as with MirrorMaker 2 a restart reads it.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from sparkmirror.config import MirrorConfig
from sparkmirror.config.effective import EffectiveValue
from sparkmirror.config.formats import Reading
from sparkmirror.config.formats.files import files_below
from sparkmirror.errors import ConfigError
from sparkmirror.events import Event

LOOK_S = 2.0
"""Seconds between two looks.

A changed file is taken over when it stayed the same from one look to the next.
"""

_SPARK = "*"
_MOST = 12
"""Most keys named in a line."""

log = logging.getLogger(__name__)

Stamp = tuple[tuple[str, int, int, int], ...] | None


@dataclass(frozen=True, slots=True)
class Taken:
    """One state of the file: the reading, and the configuration made of it."""

    reading: Reading
    config: MirrorConfig
    values: tuple[EffectiveValue, ...]


class ResourceWatch:
    """Watch over the resource of a run, a context manager.

    `read` reads the file again, `take` runs the new state; both raise `ConfigError`.
    """

    def __init__(
        self, path: str, now: Taken, read: Callable[[], Taken], take: Callable[[Taken], None], look_s: float = LOOK_S
    ) -> None:
        self._path = path
        self._now = now
        self._read = read
        self._take = take
        self._look_s = look_s
        self._stamp = _stamp(path)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="file", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()

    def _run(self) -> None:
        before = self._stamp
        while not self._ended.wait(self._look_s):
            stamp = _stamp(self._path)
            if stamp is not None and stamp == before and stamp != self._stamp:
                self._stamp = stamp
                self._try()
            before = stamp

    def _try(self) -> None:
        try:
            new = self._read()
            words = differences(self._now, new)
            if words:
                self._take(new)
        except ConfigError as error:
            reason = "; ".join(map(str, error.mistakes))
            log.warning(
                "%s has changed and is not taken: %s; the mirror continues as before",
                self._path,
                reason,
                extra=Event.FILE_NOT_TAKEN.extra,
            )
            return
        except Exception:
            log.exception("%s has changed and can't be taken", self._path, extra=Event.FILE_NOT_TAKEN.extra)
            return
        self._now = new
        if words:
            log.info("%s has changed: %s", self._path, "; ".join(words), extra=Event.FILE_CHANGED.extra)


def differences(before: Taken, after: Taken) -> list[str]:
    """Return the differences in words: flows that come and go, keys by flow.

    Names the keys of secrets, never their values.
    """
    old, new = _by_flow(before.values), _by_flow(after.values)
    words = [f"flow {flow} is new" for flow in new if flow not in old and flow != _SPARK]
    words += [f"flow {flow} is no longer there" for flow in old if flow not in new and flow != _SPARK]
    copied = {flow.name: flow.copies for flow in before.config.flows}
    for kept in after.config.flows:
        if kept.copies != copied.get(kept.name, kept.copies):
            words.append(f"flow {kept.name}: {'records are copied again' if kept.copies else 'no records are copied'}")
    for flow in new:
        if flow not in old:
            continue
        keys = [key for key, value in new[flow].items() if old[flow].get(key) != value]
        keys += [key for key in old[flow] if key not in new[flow]]
        if keys and flow == _SPARK:
            words.append(f"{_listed(keys)}: they count from the next start on")
        elif keys:
            words.append(f"flow {flow}: {_listed([key.removeprefix(f'{flow}.') for key in keys])}")
    if not words and _flows(before.config) != _flows(after.config):
        words.append("values of secrets or references")
    return words


def _flows(config: MirrorConfig) -> tuple[object, ...]:
    return config.flows, config.beats


def _by_flow(values: Iterable[EffectiveValue]) -> dict[str, dict[str, str]]:
    result: dict[str, dict[str, str]] = {}
    for value in values:
        result.setdefault(value.flow, {})[value.key] = value.value
    return result


def _listed(keys: Sequence[str]) -> str:
    more = len(keys) - _MOST
    return ", ".join(keys[:_MOST]) + (f" and {more} more" if more > 0 else "")


def _stamp(path: str) -> Stamp:
    """Return the stamp of the files behind all links.

    Kubernetes replaces a ConfigMap's files by changing a link.
    """
    stamps = []
    try:
        for file in files_below(path):
            stat = os.stat(file)
            stamps.append((file, stat.st_mtime_ns, stat.st_ino, stat.st_size))
    except (OSError, ConfigError):  # the file is being replaced
        return None
    return tuple(stamps)
