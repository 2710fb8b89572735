"""The control topic: what the driver and operators tell running pumps.

One small compacted topic a flow, on its target, one partition; key and value are JSON text:

    leader    {"incarnation": …, "host": …, "pid": …}     who works; its offset is its rank
    epoch     {"incarnation": …, "number": n, "phase": "running" | "ending" | "ended"}
              written again every few seconds while the driver lives
    routes    {"incarnation": …, "epoch": n, "routes": {task: […]}, "shares": {task: …}}
              partitions for tasks that run already (`orders.AddedRoutes`)
    pause     {"topics": [regex, …]}                       source topics to leave alone; [] for none
    done:TOPIC  {"source_topic_id": …, "ends": {partition: offset}, "reached": {partition: offset}}
              a source topic whose writers have moved to its copy (`DoneTopic`)
    throttle  {"bytes_per_second": n | null,               for the whole flow
               "backfill_bytes_per_second": n | null}      for partitions that are far behind
    log:PACKAGE  {"level": "DEBUG"} or {}                  from which level on the package is logged; {}: as it was
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from sparkmirror.cluster.topic_log import LogEntry, TopicLog
from sparkmirror.events import Event
from sparkmirror.log_levels import LEVELS, is_settable
from sparkmirror.messages.orders import AddedRoutes

_DONE = "done:"
_LOG = "log:"

log = logging.getLogger(__name__)

Phase = Literal["running", "ending", "ended"]

TICK_S = 2.0
"""How often a living driver repeats its epoch record."""

SILENCE_S = 8.0
"""Without a tick for so long a pump ends by itself: its driver is dead, stopped or cut off."""


class Leader(BaseModel):
    """Who works. `rank` is the record's offset: a higher one fences the lower."""

    model_config = ConfigDict(frozen=True)
    incarnation: str
    host: str = ""
    pid: int = 0
    rank: int = -1


class Epoch(BaseModel):
    """The driver's newest word on its epochs."""

    model_config = ConfigDict(frozen=True)
    incarnation: str
    number: int
    phase: Phase


class Pause(BaseModel):
    """Source topics to leave alone: regular expressions, full match."""

    model_config = ConfigDict(frozen=True, strict=True)
    topics: list[str] = []


class Throttle(BaseModel):
    """The flow's bandwidth cap; None: no cap."""

    model_config = ConfigDict(frozen=True, strict=True)
    bytes_per_second: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    backfill_bytes_per_second: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """For the partitions that are far behind; the rest is the live tail's."""


class LogLevel(BaseModel):
    """From which level on a package is logged."""

    model_config = ConfigDict(frozen=True)
    level: str

    @field_validator("level")
    @classmethod
    def _is_known(cls, level: str) -> str:
        if level not in LEVELS:
            raise ValueError(f"there is no such level; there are {', '.join(LEVELS)}")
        return level


class DoneTopic(BaseModel):
    """A source topic whose writers have moved to its copy. It is copied up to its ends, and then left alone."""

    model_config = ConfigDict(frozen=True)
    source_topic_id: str = ""
    """As hexadecimal digits; a topic that is created again is another one."""
    ends: dict[int, int]
    """Where each partition ended at the source when the operator said so."""
    reached: dict[int, int] = {}
    """Where its copy ended at the target when the pump had got there."""

    @property
    def released(self) -> bool:
        """Whether all of it was copied: the mirror leaves the topic alone."""
        return self.ends.keys() <= self.reached.keys()


def control_topic(source_alias: str) -> str:
    """Its name ends so that no MirrorMaker 2 mirrors it."""
    return f"mm2-sparkmirror-control.{source_alias}.internal"


class ControlState:
    """All that the control topic says, newest first where it matters."""

    def __init__(self) -> None:
        self.leader: Leader | None = None
        self.epochs: dict[str, Epoch] = {}
        """The newest epoch record of each incarnation."""
        self.last_epoch: Epoch | None = None
        self.added: AddedRoutes | None = None
        """The newest; it may be of another driver's epoch."""
        self.paused: tuple[re.Pattern[str], ...] = ()
        self.bytes_per_second: float | None = None
        self.backfill_bytes_per_second: float | None = None
        self.done: dict[str, DoneTopic] = {}
        """By source topic."""
        self.log_levels: dict[str, str] = {}
        """By package."""

    def apply(self, entries: Iterable[LogEntry]) -> bool:
        """Take records in order; whether anything changed that a pump must act on."""
        changed = False
        for offset, key, value in entries:
            if key is None:
                continue
            try:
                changed |= self._apply(key.decode(), json.loads(value) if value else {}, offset)
            except (ValueError, TypeError, AttributeError, RecursionError, re.error) as error:
                log.warning(
                    "control record at offset %d can't be read and is left out: %s",
                    offset,
                    error,
                    extra=Event.CONTROL_RECORD_UNREADABLE.extra,
                )
        return changed

    def _apply(self, key: str, said: dict[str, Any], offset: int) -> bool:
        if key == "leader" and said:
            self.leader = Leader(**{**said, "rank": offset})
        elif key == "epoch" and said:
            epoch = Epoch(**said)
            changed = self.epochs.get(epoch.incarnation) != epoch
            self.epochs[epoch.incarnation] = self.last_epoch = epoch
            return changed
        elif key == "routes" and said:
            self.added = AddedRoutes(**said)
        elif key.startswith(_DONE):
            topic = key.removeprefix(_DONE)
            if said:
                self.done[topic] = DoneTopic(**said)
            else:
                self.done.pop(topic, None)
        elif key.startswith(_LOG):
            package = key.removeprefix(_LOG)
            if said and is_settable(package):
                self.log_levels[package] = LogLevel(**said).level
            else:
                self.log_levels.pop(package, None)
        elif key == "pause":
            self.paused = tuple(re.compile(topic) for topic in Pause(**said).topics)
        elif key == "throttle":
            throttle = Throttle(**said)
            self.bytes_per_second = throttle.bytes_per_second
            self.backfill_bytes_per_second = throttle.backfill_bytes_per_second
        else:
            return False
        return True

    @property
    def unclean(self) -> bool:
        """Whether pumps may still be alive: a driver did not say that its last epoch had ended.

        Asked is the one that leads, too: what a driver says that woke up late stands behind the leader's word.
        """
        leading = self.epochs.get(self.leader.incarnation) if self.leader else None
        return any(epoch is not None and epoch.phase != "ended" for epoch in (self.last_epoch, leading))

    def added_to(self, incarnation: str, epoch: int) -> AddedRoutes | None:
        """What was added since that epoch of that driver began, if anything was."""
        mine = self.added is not None and (self.added.incarnation, self.added.epoch) == (incarnation, epoch)
        return self.added if mine else None

    def end_of(self, topic: str, partition: int) -> int | None:
        """Up to where a partition of the source is to be copied, if its writers have moved."""
        done = self.done.get(topic)
        return done.ends.get(partition) if done is not None else None

    def is_paused(self, topic: str) -> bool:
        """Whether a source topic is to be left alone."""
        return any(pattern.fullmatch(topic) for pattern in self.paused)


class Control:
    """Writing to the control topic."""

    def __init__(self, log: TopicLog) -> None:
        self._log = log

    def lead(self, leader: Leader) -> int:
        """Announce that we work now; returns our rank."""
        return self._say("leader", leader.model_dump(exclude={"rank"}))

    def epoch(self, epoch: Epoch) -> None:
        """Say (again) in what phase our epoch is."""
        self._say("epoch", epoch.model_dump())

    def add(self, added: AddedRoutes) -> None:
        """Have running tasks copy more partitions."""
        self._say("routes", added.model_dump())

    def pause(self, topics: Iterable[str]) -> None:
        """Leave these source topics alone (regular expressions, full match); none: leave none alone."""
        self._say("pause", Pause(topics=list(topics)).model_dump())

    def done(self, topic: str, done: DoneTopic | None) -> None:
        """Say that a source topic's writers have moved to its copy; None: they have not."""
        self._say(_DONE + topic, {} if done is None else done.model_dump())

    def throttle(self, bytes_per_second: float | None, backfill_bytes_per_second: float | None = None) -> None:
        """Cap the flow's bandwidth, and that of its backfill; None takes a cap away."""
        throttle = Throttle(bytes_per_second=bytes_per_second, backfill_bytes_per_second=backfill_bytes_per_second)
        self._say("throttle", throttle.model_dump())

    def log_level(self, package: str, level: str | None) -> None:
        """Have a package logged from that level on (`log_levels.LEVELS`); None: as when the process was started."""
        self._say(_LOG + package, {} if level is None else LogLevel(level=level).model_dump())

    def _say(self, key: str, value: dict[str, Any]) -> int:
        return self._log.append(0, [(key.encode(), json.dumps(value).encode())])
