"""A verification's options and progress."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sparkmirror.config import FlowConfig
from sparkmirror.errors import ConfigError
from sparkmirror.frames.ranges import Window
from sparkmirror.frames.survey import Scope
from sparkmirror.policy import NamePatterns


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """A verification's options; by default, all the flows' copies are compared."""

    topics: str | tuple[str, ...] = ()
    """Regexes, or a single one; a source topic's whole name must match one."""
    from_offset: int | None = None
    """First source offset to compare."""
    to_offset: int | None = None
    """First source offset not to compare."""
    from_time: datetime | None = None
    """Earliest time, by the source's timestamps.

    The offset is found as `KafkaConsumer.offsets_for_times` does.
    """
    to_time: datetime | None = None
    sample: float | None = None
    """Share of the ranges to compare, chosen at random."""
    seed: int = 0
    """Seed for the random choice."""
    resume: Path | None = None
    """Journal to resume; ranges in the journal are not compared again."""
    limit: int = 100
    """Most differences to list for each partition; all differences are counted."""

    def __post_init__(self) -> None:
        if self.sample is not None and not 0 < self.sample <= 1:
            raise ConfigError("a share must be above 0 and at most 1", origin="--sample", key=str(self.sample))
        if (self.from_offset is not None or self.to_offset is not None) and (self.from_time or self.to_time):
            raise ConfigError("give offsets or times, not both", origin="--from-offset, --from-time")
        if self.from_offset is not None and self.to_offset is not None and self.from_offset >= self.to_offset:
            raise ConfigError("no offset is from there to there", origin="--from-offset, --to-offset")
        if self.from_time is not None and self.to_time is not None and self.from_time >= self.to_time:
            raise ConfigError("no time is from there to there", origin="--from-time, --to-time")

    @property
    def is_of_now(self) -> bool:
        """True if all offsets are compared, and none was before."""
        bounds = (self.from_offset, self.to_offset, self.from_time, self.to_time, self.resume)
        return all(bound is None for bound in bounds)

    @property
    def _patterns(self) -> tuple[str, ...]:
        return (self.topics,) if isinstance(self.topics, str) else self.topics

    def scope(self) -> Scope:
        try:
            topics = NamePatterns(self._patterns or (".*",))
        except ValueError as error:
            raise ConfigError(str(error), origin="--topics") from error
        return Scope(
            topics=topics.accepts,
            offsets=Window(self.from_offset, self.to_offset),
            from_ms=_millis(self.from_time),
            to_ms=_millis(self.to_time),
        )

    def words(self, flows: Iterable[FlowConfig]) -> str:
        """Return a text that is equal for equal verifications."""
        named = {flow.name: [*flow.source.bootstrap_servers, *flow.target.bootstrap_servers] for flow in flows}
        times = [str(self.from_time), str(self.to_time)]
        offsets = [self.from_offset, self.to_offset]
        return json.dumps([named, self._patterns, offsets, times, self.sample, self.seed])


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A verification's progress; rates are since its begin."""

    phase: str
    """`comparing` or `looking into differences`."""
    done: int
    """Number of finished tasks, including tasks in the journal."""
    total: int
    records: int
    bytes: int
    """Source bytes that were read in this run."""
    unmatched: int
    elapsed_s: float
    eta_s: float | None


def _millis(when: datetime | None) -> int | None:
    return None if when is None else int(when.timestamp() * 1000)
