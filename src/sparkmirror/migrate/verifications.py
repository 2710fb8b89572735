"""Verifications in a migration's evidence: `sparkmirror verify --migration`.

A line has a flow's verdicts by topic. It counts until producers of the topic's set next begin to move: what was equal
then says nothing of the records since.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from sparkmirror.migrate.file import MigrationFile

VERIFIED = "verified"
_PRODUCERS = ("producers", "all")


class TopicVerdict(BaseModel):
    """A topic's verdict."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    words: str
    """The verdict, for example `equal so far`."""
    good: bool
    """False if a record differs, or the target has deleted kept records."""


class VerifiedFlow(BaseModel):
    """A verification of one flow, by source topic."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    flow: str
    began_ms: int
    ranges: int
    """Number of compared ranges; with a sample, fewer than all."""
    all_ranges: int
    topics: Mapping[str, TopicVerdict]

    def line(self, file: MigrationFile) -> dict[str, object]:
        """Return the line of evidence: the topics of the migration's sets only."""
        told = self.model_dump(mode="json")
        topics = {topic: verdict for topic, verdict in told["topics"].items() if topic in _sets(file)}
        return {"what": VERIFIED, **told, "topics": topics}


def verifications(lines: Iterable[Mapping[str, Any]], file: MigrationFile) -> dict[tuple[str, str], VerifiedFlow]:
    """Return each topic's last verification that still counts, by flow and topic."""
    sets = _sets(file)
    known: dict[tuple[str, str], VerifiedFlow] = {}
    for line in lines:
        if line.get("what") == VERIFIED:
            try:
                read = VerifiedFlow.model_validate(line)
            except ValidationError:
                continue  # another version's line
            known |= {(read.flow, topic): read for topic in read.topics}
        elif line.get("what") == "begins" and line.get("who") in _PRODUCERS:
            known = {place: read for place, read in known.items() if sets.get(place[1]) != line.get("set")}
    return known


def _sets(file: MigrationFile) -> dict[str, str]:
    return {topic: moving.name for moving in file.sets for topic in moving.topics}
