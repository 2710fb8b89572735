"""Record of the cluster and software for which the append check was proven.

One record a flow, in the topic of the loss ledger. The record saves a start the trial of a known cluster and software;
nothing else depends on the record.
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
    """Id of the target cluster."""
    spoken: tuple[str, ...]


class ProofMemory:
    """Store of one flow's newest proof for its target."""

    def __init__(self, log: TopicLog) -> None:
        self._log = log

    def read(self) -> Software | None:
        """Return the software of the last proof, or None."""
        proven = None
        for _, key, value in self._log.read(0, 0)[0]:
            if key == _KEY:
                proven = _read(value)
        return proven

    def learn(self, proven: Software) -> None:
        """Append the proof to the log."""
        record = _Proven(append_check_holds_at=proven.cluster_id, spoken=proven.spoken)
        self._log.append(0, [(_KEY, record.model_dump_json().encode())])


def _read(value: bytes | None) -> Software | None:
    try:
        record = None if value is None else _Proven.model_validate_json(value)
    except ValidationError:  # written by another version of sparkmirror
        return None
    return None if record is None else Software(record.append_check_holds_at, record.spoken)
