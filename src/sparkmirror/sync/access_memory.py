"""Which ACLs and quotas the mirror itself has added at the target: durable beside the losses.

Only these are ever removed again. Nothing at the target tells who added an ACL, so it is written down before.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from sparkmirror.cluster.topic_log import TopicLog


class Added(BaseModel):
    """One thing that was added, and what at the source it was added for."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    added: str
    origins: tuple[str, ...]

    @property
    def key(self) -> bytes:
        """In the topic."""
        return json.dumps(["added", self.added]).encode()


Kind = Literal["acl", "quota"]


class AccessMemory:
    """What one flow knows of one kind; kept in memory once it was read."""

    def __init__(self, log: TopicLog, kind: Kind) -> None:
        self._log = log
        self._kind = kind
        self._known: dict[str, frozenset[str]] | None = None

    @property
    def known(self) -> Mapping[str, frozenset[str]]:
        """Origins, by what was added for them."""
        if self._known is None:
            by_key: dict[bytes, Added] = {}
            for _, key, value in self._log.read(0, 0)[0]:
                added = _read(value)
                if added is not None:
                    by_key[added.key] = added
                elif key is not None and value is None:
                    by_key.pop(key, None)
            start = f"{self._kind} "
            self._known = {
                entry.added.removeprefix(start): frozenset(entry.origins)
                for entry in by_key.values()
                if entry.added.startswith(start)
            }
        return self._known

    def learn(self, added: Mapping[str, Iterable[str]]) -> None:
        """Remember these, before they are added."""
        known = dict(self.known)
        news = {name: frozenset(origins) for name, origins in added.items()}
        news = {name: origins for name, origins in news.items() if known.get(name) != origins}
        if news:
            records = [Added(added=f"{self._kind} {name}", origins=tuple(sorted(o))) for name, o in news.items()]
            self._log.append(0, [(entry.key, entry.model_dump_json().encode()) for entry in records])
            self._known = known | news

    def forget(self, names: Iterable[str]) -> None:
        """They are gone, or were not added."""
        doomed = set(names) & self.known.keys()
        if doomed:
            self._log.append(
                0, [(Added(added=f"{self._kind} {name}", origins=()).key, None) for name in sorted(doomed)]
            )
            self._known = {name: origins for name, origins in self.known.items() if name not in doomed}


def _read(value: bytes | None) -> Added | None:
    """None for what else lies in the same topic, and for what another version wrote."""
    try:
        return None if value is None else Added.model_validate_json(value)
    except ValidationError:
        return None
