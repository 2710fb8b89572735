"""The cluster and software for which the append check was proven, as a record.

One record a flow, in the loss ledger's topic. With the record, a start needs no trial for a known cluster and software;
nothing else depends on the record.
"""

from __future__ import annotations

import json

from pydantic import BaseModel, ConfigDict, ValidationError

from sparkmirror.kafka.cluster.append_proof import Software
from sparkmirror.kafka.cluster.topic_log import TopicLog

_KEY = json.dumps(["append check"]).encode()


class _Proven(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    append_check_holds_at: str
    """Target cluster's id."""
    spoken: tuple[str, ...]


class ProofMemory:
    """Store for one flow's newest proof for its target."""

    def __init__(self, log: TopicLog) -> None:
        self._log = log

    def read(self) -> Software | None:
        proven = None
        for _, key, value in self._log.read(0, 0)[0]:
            if key == _KEY:
                proven = _read(value)
        return proven

    def learn(self, proven: Software) -> None:
        record = _Proven(append_check_holds_at=proven.cluster_id, spoken=proven.spoken)
        self._log.append(0, [(_KEY, record.model_dump_json().encode())])


def _read(value: bytes | None) -> Software | None:
    try:
        record = None if value is None else _Proven.model_validate_json(value)
    except ValidationError:  # written by another version of sparkmirror
        return None
    return None if record is None else Software(record.append_check_holds_at, record.spoken)
