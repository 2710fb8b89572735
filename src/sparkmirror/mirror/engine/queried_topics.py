"""Topics that Spark queries copy in the place of pumps."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sparkmirror.config.model import TransformQuery
from sparkmirror.policy.java_regex import compile_java


class QueriedTopics:
    """Choice of a query for each topic: the first by name whose patterns match.

    Connect's transforms come last. Pumps copy heartbeats, for which MirrorMaker 2's clients look.
    """

    def __init__(self, queries: Sequence[TransformQuery], is_heartbeats: Callable[[str], bool]) -> None:
        self._is_heartbeats = is_heartbeats
        self._patterns = [
            (query.name, [compile_java(pattern) for pattern in query.topics])
            for query in sorted(queries, key=lambda query: (query.is_connect, query.name))
        ]

    def query_of(self, topic: str) -> str:
        """Return the name of the query that copies a source topic; empty: pumps do."""
        query = next(
            (name for name, patterns in self._patterns if any(pattern.fullmatch(topic) for pattern in patterns)), ""
        )
        return "" if query and self._is_heartbeats(topic) else query
