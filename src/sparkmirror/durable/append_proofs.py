"""For which cluster and software the append check was proven: durable beside the losses.

One record a flow. It saves starts the trial of what was tried before; nothing else depends on it.
"""

from __future__ import annotations

import json

from pydantic import BaseModel, ConfigDict, ValidationError

from sparkmirror.cluster.append_proof import Software
from sparkmirror.cluster.topic_log import TopicLog

_KEY = json.dumps(["append check"]).encode()


class _Proven(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    append_check_holds_at: str
    """The cluster's id."""
    spoken: tuple[str, ...]


class ProofMemory:
    """What one flow knows of its target."""

    def __init__(self, log: TopicLog) -> None:
        self._log = log

    def read(self) -> Software | None:
        """What it was proven for last."""
        proven = None
        for _, key, value in self._log.read(0, 0)[0]:
            if key == _KEY:
                proven = _read(value)
        return proven

    def learn(self, proven: Software) -> None:
        """Write it down."""
        record = _Proven(append_check_holds_at=proven.cluster_id, spoken=proven.spoken)
        self._log.append(0, [(_KEY, record.model_dump_json().encode())])


def _read(value: bytes | None) -> Software | None:
    try:
        record = None if value is None else _Proven.model_validate_json(value)
    except ValidationError:  # of another version
        return None
    return None if record is None else Software(record.append_check_holds_at, record.spoken)
