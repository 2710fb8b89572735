"""ACLs and quotas that the mirror added at the target, durable next to the losses.

The mirror removes only these ACLs and quotas again. Since no record at the target tells who added an ACL, the mirror
writes each one down before adding it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from sparkmirror.kafka.cluster.topic_log import TopicLog


class Added(BaseModel):
    """One added ACL or quota, with the source's entries that are the reason."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    added: str
    origins: tuple[str, ...]

    @property
    def key(self) -> bytes:
        return json.dumps(["added", self.added]).encode()


Kind = Literal["acl", "quota"]


class AccessMemory:
    """ACLs or quotas that one flow added, read from the topic once and then kept."""

    def __init__(self, log: TopicLog, kind: Kind) -> None:
        self._log = log
        self._kind = kind
        self._known: dict[str, frozenset[str]] | None = None

    @property
    def known(self) -> Mapping[str, frozenset[str]]:
        """Origins at the source, by the added entry's name."""
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
        """Write down entries with their origins, before they are added at the target."""
        known = dict(self.known)
        news = {name: frozenset(origins) for name, origins in added.items()}
        news = {name: origins for name, origins in news.items() if known.get(name) != origins}
        if news:
            records = [Added(added=f"{self._kind} {name}", origins=tuple(sorted(o))) for name, o in news.items()]
            self._log.append(0, [(entry.key, entry.model_dump_json().encode()) for entry in records])
            self._known = known | news

    def forget(self, names: Iterable[str]) -> None:
        """Retract entries that were removed at the target, or could not be added."""
        doomed = set(names) & self.known.keys()
        if doomed:
            self._log.append(
                0, [(Added(added=f"{self._kind} {name}", origins=()).key, None) for name in sorted(doomed)]
            )
            self._known = {name: origins for name, origins in self.known.items() if name not in doomed}


def _read(value: bytes | None) -> Added | None:
    """Parse a record; return `None` for records of another kind or another version."""
    try:
        return None if value is None else Added.model_validate_json(value)
    except ValidationError:
        return None
