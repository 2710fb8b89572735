"""Control topic: what driver, operators and tasks say to running pumps.

Each flow has a small compacted topic with one partition at the target. The key is plain text, the value is JSON:

    leader    {"incarnation": …, "host": …, "pid": …}     driver at work; the record's offset is the driver's rank
    epoch     {"incarnation": …, "number": n, "phase": "running" | "ending" | "ended"}
              repeated every `TICK_S` while the driver lives
    routes:WRITER  {"incarnation": …, "epoch": n, "routes": {task: […]}, "shares": {task: …}}
              more partitions for running tasks (`orders.AddedRoutes`)
    moves:WRITER  {"incarnation": …, "epoch": n, "moves": […], "shares": {task: …}}
              partitions that go from one running task to another (`moves.RouteMoves`)
    task:TASK:WRITER  {"incarnation": …, "epoch": n, "task": n, "attempt": n, "ready": n, "releases": […]}
              a task's words on moves: which ones it is ready for, what it has released (`moves.TaskWords`)
    pause     {"topics": [regex, …]}                       source topics to leave alone; [] for none
    done:TOPIC  {"source_topic_id": …, "ends": {partition: offset}, "reached": {partition: offset},
               "beyond": {partition: offset}, "accepted": {partition: offset}}
              source topic with writers moved to the copy (`DoneTopic`)
    accepted:TOPIC  {"source_topic_id": …, "ends": {partition: offset}}
              late records that stay at the source after the flow's turn (`AcceptedLate`)
    turn:TOPIC  {"number": n, "starts": {partition: [upstream, downstream, records]},
               "sequences": {partition: n}}
              a turn of the flow begins in a topic that a migration moves there and back (`TurnStart`)
    throttle  {"bytes_per_second": n | null,               for the whole flow
               "backfill_bytes_per_second": n | null}      for partitions far behind
    retry     {"names": ["orders", "stock:3", …]}          topics and partitions to try again now; [] for all
    log:PACKAGE  {"level": "DEBUG"} or {}                  lowest level logged; {}: the level at the process's start

Words on routes and moves must outlive compaction, which keeps a key's newest record. So each writer has its own random
keys, and takes others once a record may still arrive late. With each round the driver takes earlier rounds' keys back.
Releases up to 0.2 wrote `routes`, `moves` and `task:TASK`, which are read as well.
"""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

import regex
from pydantic import BaseModel, ConfigDict, Field, field_validator

from sparkmirror.errors import ConfigError
from sparkmirror.events import Event
from sparkmirror.kafka.cluster.topic_log import LogEntry, TopicLog
from sparkmirror.kafka.wire.topic_ids import NO_ID, same_topic
from sparkmirror.log_levels import LEVELS, is_settable
from sparkmirror.policy.java_regex import compile_java
from sparkmirror.pump.messages.moves import RouteMoves, TaskWords
from sparkmirror.pump.messages.orders import AddedRoutes

_DONE = "done:"
_ACCEPTED = "accepted:"
_TURN = "turn:"
_LOG = "log:"
_ROUTES, _MOVES, _TASK = "routes", "moves", "task"
_OF_A_ROUND = {kind.encode() for kind in (_ROUTES, _MOVES, _TASK)}
"""Kinds of words that mean nothing to another round.

A key begins with its kind, up to the first colon.
"""

log = logging.getLogger(__name__)

_Word = TypeVar("_Word")

Phase = Literal["running", "ending", "ended"]

TICK_S = 2.0
"""Interval at which a living driver repeats its round record."""

SILENCE_S = 8.0
"""The driver's longest silence before a pump ends by itself.

A silent driver is dead, stopped or cut off.
"""


class Leader(BaseModel):
    """Driver at work.

    `rank` is the record's offset: a leader with a higher rank fences the pumps with lower ranks.
    """

    model_config = ConfigDict(frozen=True)
    incarnation: str
    host: str = ""
    pid: int = 0
    rank: int = -1


class Round(BaseModel):
    """A driver's newest word on its rounds; the record's key is `epoch`."""

    model_config = ConfigDict(frozen=True)
    incarnation: str
    number: int
    phase: Phase


class Pause(BaseModel):
    """Source topics to leave alone, as regular expressions for full matches."""

    model_config = ConfigDict(frozen=True, strict=True)
    topics: list[str] = []


class Throttle(BaseModel):
    """The flow's bandwidth caps; None means no cap."""

    model_config = ConfigDict(frozen=True, strict=True)
    bytes_per_second: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    backfill_bytes_per_second: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Cap for partitions far behind; the live tail gets the rest."""


class TryNow(BaseModel):
    """Word to try parked partitions again at once.

    `rank` is the record's offset: a pump obeys each word once.
    """

    model_config = ConfigDict(frozen=True)
    names: list[str] = []
    """Source topics, and partitions as `topic:number`; none stands for all."""
    rank: int = -1

    def is_about(self, topic: str, partition: int) -> bool:
        return not self.names or topic in self.names or f"{topic}:{partition}" in self.names


class LogLevel(BaseModel):
    """Lowest level at which a package is logged."""

    model_config = ConfigDict(frozen=True)
    level: str

    @field_validator("level")
    @classmethod
    def _is_known(cls, level: str) -> str:
        if level not in LEVELS:
            raise ValueError(f"there is no such level; there are {', '.join(LEVELS)}")
        return level


class DoneTopic(BaseModel):
    """Source topic with writers moved to the copy.

    The pumps copy the topic up to `ends`, then the mirror leaves the topic alone. A topic that is created again under
    the same name is another topic: its records are not copied.
    """

    model_config = ConfigDict(frozen=True)
    source_topic_id: str = ""
    """Topic id as hexadecimal digits; a topic created again has a new id."""
    ends: dict[int, int]
    """Each partition's end at the source when the operator gave the word."""
    reached: dict[int, int] = {}
    """Each copy's end at the target once the pump had come to the source's end."""
    beyond: dict[int, int] = {}
    """Each copy's next source offset, if it had gone beyond its end.

    A pump hears about the end after the operator has given the word.
    """
    accepted: dict[int, int] = {}
    """Source offset below which the operator leaves late records at the source.

    Releases up to 0.2 pass over it.
    """

    def is_of(self, topic_id: bytes) -> bool:
        """True if the word may be about the topic with this id; it was given by name."""
        return same_topic(bytes.fromhex(self.source_topic_id) or NO_ID, topic_id)

    @property
    def released(self) -> bool:
        """True if all partitions are copied, so that the mirror leaves the topic alone."""
        return self.ends.keys() <= self.reached.keys()

    def end_of(self, partition: int, topic_id: bytes = NO_ID) -> int:
        """Return the end to be copied; 0 for a partition that the source got later.

        Another topic under the name has end 0, too; without an id the topic counts as the same.
        """
        return self.ends.get(partition, 0) if self.is_of(topic_id) else 0

    def copied_to(self, partition: int) -> int:
        """Return the source offset up to which all is copied or passed over.

        The end is reached.
        """
        return max(self.end_of(partition), self.beyond.get(partition, 0))

    def late_from(self, partition: int) -> int:
        """Return the source offset from which on records are late.

        The end is reached.
        """
        return max(self.copied_to(partition), self.accepted.get(partition, 0))

    def left_below(self, partition: int, later: AcceptedLate | None) -> int:
        """Return the source offset below which the operator leaves late records.

        `later` is the operator's word after the flow's turn.
        """
        after = later.ends.get(partition, 0) if later and self.is_of(bytes.fromhex(later.source_topic_id)) else 0
        return max(after, self.accepted.get(partition, 0))


class AcceptedLate(BaseModel):
    """Late records of a topic that the operator leaves at the source.

    The flow's turn is over. The word on its end is not written again: a next turn, which takes that word back, may
    begin at the same time.
    """

    model_config = ConfigDict(frozen=True)
    source_topic_id: str
    ends: dict[int, int]
    """Source offset below which late records stay at the source."""


class Border(NamedTuple):
    """Border between two turns of a migration in a partition (M1).

    The flow whose turn ended has copied all that is below.
    """

    upstream: int
    """End of the ended flow's copy: source offset where the next turn begins."""
    downstream: int
    """End of the ended flow's source: the next turn's first record lands there."""
    records: int
    """Number of records of the flow whose turn ended: its next sequence."""


class TurnStart(BaseModel):
    """A flow's turn that has begun in a topic (M1).

    The flow's first turn has no such word if the migration begins with that flow.
    """

    model_config = ConfigDict(frozen=True)
    number: int = Field(ge=1)
    """Number of the turn among both flows' turns.

    The flow where the migration begins has the odd ones.
    """
    starts: dict[int, Border] = {}
    """Each partition's start."""
    sequences: dict[int, int] = {}
    """Number of the flow's own records in each partition before the turn."""


def done_key(topic: str) -> str:
    """Return the record key for a source topic with moved writers."""
    return _DONE + topic


def control_topic(source_alias: str) -> str:
    """Return the topic's name, with an ending that MirrorMaker 2 never mirrors.

    See "Internal topics" in docs/design.md.
    """
    return f"mm2-sparkmirror-control.{source_alias}.internal"


class ControlState:
    """The control topic's present content; newer records replace older records."""

    def __init__(self) -> None:
        self.leader: Leader | None = None
        self.rounds: dict[str, Round] = {}
        """Each incarnation's newest round record."""
        self.spoke_at: dict[str, int] = {}
        """Offset of each driver's newest round record, by the driver's incarnation.

        A living driver repeats the record.
        """
        self.last_round: Round | None = None
        self.added: dict[str, AddedRoutes] = {}
        """Newest added routes by the driver's incarnation."""
        self.moves: dict[str, RouteMoves] = {}
        """Newest moves by the driver's incarnation."""
        self.words: dict[tuple[str, int], TaskWords] = {}
        """Tasks' words, by the driver's incarnation and the task."""
        self.shares: dict[str, AddedRoutes | RouteMoves] = {}
        """Newest record with shares of the bandwidth cap, by the driver's incarnation."""
        self.paused: dict[str, regex.Pattern[str]] = {}
        """Paused topics, by the operator's regular expressions (Java's)."""
        self.bytes_per_second: float | None = None
        self.backfill_bytes_per_second: float | None = None
        self.try_now: TryNow | None = None
        """Newest word to try parked partitions again."""
        self.done: dict[str, DoneTopic] = {}
        """Topics with moved writers, by source topic."""
        self.accepted: dict[str, AcceptedLate] = {}
        """Late records that stay at the source, by source topic."""
        self.turns: dict[str, TurnStart] = {}
        """Newest turn that has begun, by source topic."""
        self.log_levels: dict[str, str] = {}
        """Levels set by the operator, by package."""

    def apply(self, entries: Iterable[LogEntry]) -> bool:
        """Take records in order; return True if pumps must act on a change.

        An unreadable record is left out with a warning.
        """
        changed = False
        for offset, key, value in entries:
            if key is None:
                continue
            try:
                changed |= self._apply(key.decode(), json.loads(value) if value else {}, offset)
            except (ValueError, TypeError, AttributeError, RecursionError, regex.error) as error:
                log.warning(
                    "control record at offset %d can't be read and is left out: %s",
                    offset,
                    error,
                    extra=Event.CONTROL_RECORD_UNREADABLE.extra,
                )
        return changed

    def _apply(self, key: str, said: dict[str, Any], offset: int) -> bool:
        kind = key.partition(":")[0]
        if key == "leader" and said:
            self.leader = Leader(**{**said, "rank": offset})
        elif key == "epoch" and said:
            newest = Round(**said)
            changed = self.rounds.get(newest.incarnation) != newest
            self.rounds[newest.incarnation] = self.last_round = newest
            self.spoke_at[newest.incarnation] = offset
            return changed
        elif kind == _ROUTES and said:
            added = AddedRoutes(**said)
            if added.is_older_than(self.added.get(added.incarnation)):
                return False
            self.added[added.incarnation] = self.shares[added.incarnation] = added
        elif kind == _MOVES and said:
            moves = RouteMoves(**said)
            if moves.is_older_than(self.moves.get(moves.incarnation)):
                return False
            self.moves[moves.incarnation] = self.shares[moves.incarnation] = moves
        elif kind == _TASK and said:
            words = TaskWords(**said)
            speaker = words.incarnation, words.task
            self.words[speaker] = words.after(self.words.get(speaker))
        elif key.startswith(_DONE):
            _keep(self.done, key.removeprefix(_DONE), DoneTopic(**said) if said else None)
        elif key.startswith(_ACCEPTED):
            _keep(self.accepted, key.removeprefix(_ACCEPTED), AcceptedLate(**said) if said else None)
            return False
        elif key.startswith(_TURN):
            _keep(self.turns, key.removeprefix(_TURN), TurnStart(**said) if said else None)
        elif key.startswith(_LOG):
            package = key.removeprefix(_LOG)
            _keep(self.log_levels, package, LogLevel(**said).level if said and is_settable(package) else None)
        elif key == "pause":
            self.paused = {topic: _pattern(topic) for topic in Pause(**said).topics}
        elif key == "retry" and said:
            self.try_now = TryNow(**{**said, "rank": offset})
        elif key == "throttle":
            throttle = Throttle(**said)
            self.bytes_per_second = throttle.bytes_per_second
            self.backfill_bytes_per_second = throttle.backfill_bytes_per_second
        else:
            return False
        return True

    @property
    def unclean(self) -> bool:
        """True if pumps may still be alive, as a driver did not report its round's end.

        Both the newest round record and the leader's count: a driver that woke up late may have its words behind the
        leader's, and compaction leaves only those.
        """
        leading = self.rounds.get(self.leader.incarnation) if self.leader else None
        if self.leader and self.last_round and not leading:
            return self.last_round.phase != "ended" or self.spoke_at[self.last_round.incarnation] > self.leader.rank
        return any(word is not None and word.phase != "ended" for word in (self.last_round, leading))

    def added_to(self, incarnation: str, round_number: int) -> AddedRoutes | None:
        """Return the routes added since the given driver's round began, if any."""
        added = self.added.get(incarnation)
        return added if added is not None and added.epoch == round_number else None

    def moves_in(self, incarnation: str, round_number: int) -> RouteMoves | None:
        """Return the moves since the given driver's round began, if any."""
        moves = self.moves.get(incarnation)
        return moves if moves is not None and moves.epoch == round_number else None

    def words_of(self, task: int, incarnation: str, round_number: int) -> TaskWords:
        """Return a task's words in the given driver's round, perhaps none."""
        words = self.words.get((incarnation, task))
        if words is None or words.epoch != round_number:
            return TaskWords(incarnation=incarnation, epoch=round_number, task=task)
        return words

    def share_of(self, task: int, incarnation: str, round_number: int) -> float | None:
        """Return a task's newest share of the bandwidth cap; None: as in its order."""
        newest = self.shares.get(incarnation)
        if newest is None or newest.epoch != round_number:
            return None
        return newest.shares.get(task)

    def end_of(self, topic: str, partition: int, topic_id: bytes = NO_ID) -> int | None:
        """Return where copying ends for a source partition with moved writers, or None.

        The end is 0 if the topic has another id than the topic whose writers have moved.
        """
        done = self.done.get(topic)
        return done.end_of(partition, topic_id) if done is not None else None

    def is_paused(self, topic: str) -> bool:
        """True if pumps must leave a source topic alone."""
        return any(pattern.fullmatch(topic) for pattern in self.paused.values())


def assert_patterns(topics: Iterable[str], origin: str) -> None:
    """Raise `ConfigError` unless all these topics to pause are regular expressions."""
    for pattern in topics:
        try:
            compile_java(pattern)
        except ValueError as error:
            raise ConfigError(str(error), origin=origin) from error


def _pattern(topics: str) -> regex.Pattern[str]:
    try:
        return compile_java(topics)
    except ValueError:  # from a release up to 0.2, in Python's dialect
        return regex.compile(topics)


def _keep(words: dict[str, _Word], name: str, word: _Word | None) -> None:
    """Keep the newest word under a name; None takes it back."""
    if word is None:
        words.pop(name, None)
    else:
        words[name] = word


class Control:
    """Write the control topic."""

    def __init__(self, log: TopicLog) -> None:
        self._log = log
        self._writer = secrets.token_hex(8)
        """Random end of the keys that only this writer uses."""

    def lead(self, leader: Leader) -> int:
        """Announce the driver as the leader; return the driver's rank."""
        return self._say("leader", leader.model_dump(exclude={"rank"}))

    def round(self, word: Round) -> None:
        """Announce or repeat the phase of the driver's round."""
        self._say("epoch", word.model_dump())

    def add(self, added: AddedRoutes) -> None:
        """Have running tasks copy more partitions."""
        self._say(f"{_ROUTES}:{self._writer}", added.model_dump())

    def move(self, moves: RouteMoves) -> None:
        """Have running tasks release and copy partitions."""
        self._say(f"{_MOVES}:{self._writer}", moves.model_dump())

    def tell(self, words: TaskWords) -> None:
        self._say(f"{_TASK}:{words.task}:{self._writer}", words.model_dump())

    def take_back(self, entries: Iterable[LogEntry], rank: int) -> None:
        """Take back all words on routes and moves, when a round begins.

        `entries` is the topic's content. If another driver has announced itself since the driver with this `rank`,
        nothing is taken back: the other's round may be running.
        """
        newest = {entry.key: entry for entry in entries if entry.key is not None}
        words = {key: entry for key, entry in newest.items() if key.partition(b":")[0] in _OF_A_ROUND}
        gone = [key for key, entry in words.items() if entry.value is not None]
        leader = newest.get(b"leader")
        if gone and leader is not None and leader.offset == rank:
            self._write([(key, None) for key in gone])

    def reach(self) -> None:
        """Connect to the topic's leader, since there will be something to say soon."""
        self._log.reach()

    def pause(self, topics: Iterable[str]) -> None:
        """Pause the given source topics, and no more than the given topics.

        Topics are regular expressions for full matches; an empty list ends all pauses.
        """
        self._say("pause", Pause(topics=list(topics)).model_dump())

    def done(self, topic: str, done: DoneTopic | None) -> int:
        """Announce that a source topic's writers have moved; return the record's offset.

        None takes the announcement back.
        """
        return self._say(done_key(topic), {} if done is None else done.model_dump())

    def accept(self, topic: str, late: AcceptedLate) -> None:
        """Announce that a source topic's late records stay at the source."""
        self._say(_ACCEPTED + topic, late.model_dump())

    def turn(self, topic: str, begun: TurnStart | None, done: DoneTopic | None) -> None:
        """Announce that a turn has begun in a source topic, with the end of a turn before.

        Both words are in one batch. None takes a word back.
        """
        words = {_TURN + topic: begun, done_key(topic): done}
        values = {key: {} if word is None else word.model_dump() for key, word in words.items()}
        self._write([(key.encode(), json.dumps(value).encode()) for key, value in values.items()])

    def throttle(self, bytes_per_second: float | None, backfill_bytes_per_second: float | None = None) -> None:
        """Cap the flow's bandwidth and the backfill's; None takes a cap away."""
        throttle = Throttle(bytes_per_second=bytes_per_second, backfill_bytes_per_second=backfill_bytes_per_second)
        self._say("throttle", throttle.model_dump())

    def try_again(self, names: Sequence[str]) -> None:
        """Have parked partitions tried again now: the named ones, or all."""
        self._say("retry", TryNow(names=list(names)).model_dump(exclude={"rank"}))

    def log_level(self, package: str, level: str | None) -> None:
        """Have a package logged from a level on (`log_levels.LEVELS`).

        None brings back the level at the process's start.
        """
        self._say(_LOG + package, {} if level is None else LogLevel(level=level).model_dump())

    def _say(self, key: str, value: dict[str, Any]) -> int:
        return self._write([(key.encode(), json.dumps(value).encode())])

    def _write(self, records: Sequence[tuple[bytes, bytes | None]]) -> int:
        failures = self._log.failures
        try:
            return self._log.append(0, records)
        finally:
            if self._log.failures != failures:  # a copy of these records may come late, and hide newer ones
                self._writer = secrets.token_hex(8)
