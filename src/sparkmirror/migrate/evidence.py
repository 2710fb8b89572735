"""The evidence of a migration: a line for each step, in a topic at the target.

`mm2-sparkmirror-migration.<name>.internal`, one partition, kept for ever. It is for people and auditors: no plan reads
it, so a lost topic changes nothing but the check `verify-fresh`.
"""

from __future__ import annotations

import getpass
import json
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from sparkmirror.errors import ClusterUnreachable
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.new_topics import NewTopicSpec, create_topics
from sparkmirror.kafka.cluster.refusal_lines import refusal
from sparkmirror.kafka.cluster.topic_log import LogUnavailable, TopicLog
from sparkmirror.kafka.wire.error_codes import ErrorCode


def evidence_topic(name: str) -> str:
    """Return the topic's name for a migration's name."""
    return f"mm2-sparkmirror-migration.{name}.internal"


class Evidence:
    """Writer and reader of one migration's evidence; for one thread."""

    def __init__(self, client: ClusterClient, name: str) -> None:
        self._client = client
        self._topic = evidence_topic(name)
        self._log = TopicLog(client, self._topic)

    def write(self, told: Mapping[str, object]) -> None:
        """Append a line, and create the topic if it is missing.

        Raises `ConnectionError`s and `ClusterUnreachable`.
        """
        line = {"at_ms": int(time.time() * 1000), "by": f"{_user()}@{socket.gethostname()}", **told}
        record = (b"line", json.dumps(line, ensure_ascii=False).encode())
        try:
            self._log.append(0, [record])
        except LogUnavailable as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            self._create()
            self._log.append(0, [record])

    def read(self) -> Iterator[Mapping[str, Any]]:
        """Yield all lines, the oldest first; none without the topic.

        Raises `ConnectionError`s.
        """
        try:
            entries, _ = self._log.read(0, 0)
        except LogUnavailable as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            return
        for entry in entries:
            with suppress(ValueError):  # somebody else's record
                line = json.loads(entry.value or b"")
                if isinstance(line, dict):
                    yield line

    def _create(self) -> None:
        spec = NewTopicSpec(self._topic, 1, configs={"cleanup.policy": "delete", "retention.ms": "-1"})
        for name, (code, why) in create_topics(self._client, [spec]).items():
            if code not in (0, ErrorCode.TOPIC_ALREADY_EXISTS):
                reason = refusal(code, why, {})
                raise ClusterUnreachable(f"cluster {self._client.config.alias}: creating topic {name} failed: {reason}")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return "unknown"
