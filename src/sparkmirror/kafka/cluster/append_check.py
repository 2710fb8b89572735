"""Prove at a cluster that a leader accepts an idempotent batch only in sequence.

Exactness rests on the leader's check. The proof appends to a scratch topic, which exists for a moment only
(`scratch_topic`), with new producer ids, and expects Apache Kafka's behaviour (`exactness.md`, the append check). Each
check has separate producers, so that a check that fails does not make another check fail. Blocking: some 60 small
requests, 0.15 s at a broker nearby.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from sparkmirror.errors import SparkMirrorError
from sparkmirror.kafka.cluster.append_trial import AppendTrial, CannotTell, Sent, Writer
from sparkmirror.kafka.cluster.broker_versions import producer_state_ms
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.error_names import error_name
from sparkmirror.kafka.cluster.scratch_topic import scratch_topic, what_to_grant
from sparkmirror.kafka.wire.batches import SEQUENCE_MODULUS
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.rpc import UnsupportedBroker
from sparkmirror.kafka.wire.topic_ids import NO_ID

ANY_SEQUENCE = 1000
"""First batches' sequence.

A flow's sequence is its record count. So the first batch after a leader has lost its state has any sequence.
"""
REMEMBERED = 5
"""Number of a producer's newest batches whose repeats a leader recognises."""

_GAP_ERRORS = (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,)
_OLD_EPOCH_ERRORS = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED)
_UNITS = ((86_400_000, "day"), (3_600_000, "hour"), (60_000, "minute"), (1000, "second"), (1, "ms"))


class AppendVerdict(StrEnum):
    """A check's outcome."""

    HOLDS = "holds"
    FAILS = "fails"
    UNTRIED = "untried"
    """Untried check: another check failed, which makes it impossible."""
    NOTED = "noted"
    """Difference from Apache Kafka, on which alone exactness does not depend."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One check, its outcome, and a line about the outcome."""

    name: str
    verdict: AppendVerdict
    words: str


@dataclass(frozen=True, slots=True)
class AppendCheck:
    """All checks at one cluster."""

    checks: tuple[Trial, ...] = ()
    untold: str = ""
    """Reason why the checks could prove neither success nor failure, in one line."""

    @property
    def holds(self) -> bool:
        """True if a flow to this cluster can be exact."""
        return not self.untold and not self.failures

    @property
    def failures(self) -> tuple[Trial, ...]:
        """Failed and untried checks: the reasons why a flow can't be exact."""
        return tuple(check for check in self.checks if check.verdict in (AppendVerdict.FAILS, AppendVerdict.UNTRIED))

    @property
    def words(self) -> str:
        """One line with the failed checks, or with all checks if none failed."""
        return self.untold or "; ".join(check.words for check in self.failures or self.checks)


def check_appends(client: ClusterClient) -> AppendCheck:
    """Run all checks; raise nothing."""
    try:
        with scratch_topic(client, partitions=2) as topic:
            trial = AppendTrial(client, topic.name)
            return AppendCheck((*_Checks(trial).run(), _topic_ids(topic.topic_id), _lifetime(client)))
    except UnsupportedBroker as error:
        return AppendCheck((Trial("requests", AppendVerdict.FAILS, str(error)),))
    except (ConnectionError, SparkMirrorError) as error:
        return AppendCheck(untold=" ".join(str(error).split()))
    except (ValueError, LookupError, struct.error) as error:  # a broker of another make answers in another format
        return AppendCheck(untold=f"an answer can't be read: {type(error).__name__}: {error}")


class _Checks:
    """All checks in order; each notes a fault in `_wrong`, under the check's name."""

    def __init__(self, trial: AppendTrial) -> None:
        self._trial = trial
        self._wrong: dict[str, str] = {}
        self._start = ANY_SEQUENCE
        self._main = trial.writer(0, 0)
        self._tells_repeats = True

    def run(self) -> list[Trial]:
        wrap_words = f"sequences continue at 0 after {SEQUENCE_MODULUS - 1}"
        first = self._tried("first batch", f"a first batch is taken at any sequence, {ANY_SEQUENCE} here", self._first)
        checks = [
            first,
            self._tried("repeat", "a repeat of the last batch is answered with its own offset", self._repeat),
            self._tried("older repeats", f"so are repeats up to {REMEMBERED} batches back", self._older_repeats),
            self._tried("gap", f"a gap is refused ({_GAP_ERRORS[0]}), and an overlap", self._gap),
            self._tried("old epoch", f"an old epoch is refused ({_OLD_EPOCH_ERRORS[0]})", self._old_epoch),
            self._tried("wrap", wrap_words, self._wrap),
            self._tried("apart", "partitions and producers don't disturb each other", self._apart),
            self._tried("DescribeProducers", "DescribeProducers tells the last sequence and epoch", self._described),
        ]
        self._read_log()
        log = Trial("log", AppendVerdict.HOLDS, "batches are in the log once, as sent, at the offsets acknowledged")
        checks = [self._judged(check) for check in (*checks, log)]
        if first.verdict is AppendVerdict.FAILS:
            wrap = next(check for check in checks if check.name == "wrap")
            checks[checks.index(wrap)] = Trial(
                "wrap", AppendVerdict.UNTRIED, f"whether {wrap_words} could not be tried"
            )
        if not self._tells_repeats:
            checks.append(
                Trial("told apart", AppendVerdict.NOTED, "a repeat can't be told from an append by its answer")
            )
        return checks

    def _tried(self, name: str, words: str, attempt: Callable[[str], None]) -> Trial:
        attempt(name)
        return self._judged(Trial(name, AppendVerdict.HOLDS, words))

    def _judged(self, check: Trial) -> Trial:
        wrong = self._wrong.get(check.name)
        return Trial(check.name, AppendVerdict.FAILS, wrong) if wrong else check

    def _note(self, name: str, words: str) -> None:
        """Note a check's fault; the first counts, later ones may follow from it."""
        self._wrong.setdefault(name, words)

    # --- the checks -----------------------------------------------------------------------------

    def _first(self, name: str) -> None:
        ack = self._main.first(ANY_SEQUENCE, name)
        if ack.error:
            self._start = 0
            self._main = self._trial.writer(0, 0)
            at_0 = self._main.first(0, name)
            if at_0.error:
                raise CannotTell(f"a first batch at sequence 0 is refused: {_answer(at_0)}{what_to_grant(at_0.error)}")
            self._note(name, f"a first batch at sequence {ANY_SEQUENCE} is refused: {_answer(ack)}")

    def _repeat(self, name: str) -> None:
        for count in (1, 2, 3, 1, 2):
            self._takes(self._main, count, name)
        ack = self._repeated(self._main, self._main.sent[-1], name)
        self._tells_repeats = ack.error != ErrorCode.NONE or ack.append_time_ms >= 0

    def _older_repeats(self, name: str) -> None:
        for batch in reversed(self._main.sent[-REMEMBERED:-1]):
            self._repeated(self._main, batch, name)
        self._takes(self._main, 1, name)

    def _gap(self, name: str) -> None:
        writer = self._begun(0, self._start, name)
        self._refuses(writer, writer.next_sequence + 1, _GAP_ERRORS, "a batch that leaves a gap", name)
        overlap = (writer.next_sequence - 1) % SEQUENCE_MODULUS
        self._refuses(writer, overlap, _GAP_ERRORS, "a batch that overlaps the one before", name)
        self._takes(writer, 1, name)

    def _old_epoch(self, name: str) -> None:
        old = self._begun(0, self._start, name)
        new = self._trial.writer(0, old.epoch + 1, old.producer_id)
        ack = new.first(0, name)
        if ack.error:
            self._note(name, f"a first batch of the next epoch, at sequence 0, is refused: {_answer(ack)}")
        self._refuses(old, old.next_sequence, _OLD_EPOCH_ERRORS, "a batch of an old epoch", name)

    def _wrap(self, name: str) -> None:
        last = SEQUENCE_MODULUS - 1
        if self._start == 0:
            return
        for first, count in ((last - 1, 3), (last - 1, 2)):  # inside a batch, and between two
            writer = self._trial.writer(0, 0)
            ack = writer.append(first, count, name)
            if ack.error:
                self._note(name, f"a batch from sequence {first} on, of {count} records, is refused: {_answer(ack)}")
                continue
            self._takes(writer, 2, name, "after the wrap ")
            if self._wrong.keys().isdisjoint(("repeat", "older repeats")):
                self._repeated(writer, ack, name)

    def _apart(self, name: str) -> None:
        here = self._begun(0, self._start, name)
        there = self._trial.writer(1, here.epoch, here.producer_id)
        ack = there.first(7 * self._start, name)
        if ack.error:
            self._note(name, f"a producer's first batch in a second partition is refused: {_answer(ack)}")
        else:
            self._takes(there, 2, name)
        self._begun(1, self._start, name)
        self._takes(here, 1, name)

    def _described(self, name: str) -> None:
        try:
            reported = self._trial.reported()
        except UnsupportedBroker:
            self._note(name, "the brokers don't know DescribeProducers, which tells how far a copy is")
            return
        for place, last in self._trial.expected().items():
            entry = reported.get(place)
            if entry != last:
                said = f"sequence {entry[1]} of epoch {entry[0]}" if entry else "nothing"
                self._note(
                    name,
                    f"DescribeProducers tells {said} of a producer whose last sequence is {last[1]} of epoch {last[0]}",
                )

    def _read_log(self) -> None:
        """Compare the sent batches with the log: a broker's log may belie its answers."""
        stored = self._trial.stored()
        seen: set[tuple[int, int, int, int]] = set()
        for sent in self._trial.sent:
            places = stored.get(sent.key, [])
            taken = self._trial.taken(sent.key)
            if taken is None:
                if places:
                    self._note(sent.check, f"{sent.what} was refused, and is in the log all the same")
            elif sent.key in seen:
                if len(places) > 1:
                    self._note(sent.check, f"{sent.what} is in the log twice, at offsets {_offsets(places)}")
            elif not places:
                self._note("log", f"a batch that was acknowledged at offset {taken} is not in the log")
            elif places[0][0] != taken:
                self._note("log", f"a batch was acknowledged at offset {taken}, and is at {places[0][0]} in the log")
            elif places[0][1] != sent.body:
                self._note("log", f"the batch at offset {taken} is not stored as it was sent")
            seen.add(sent.key)

    # --- steps of the checks --------------------------------------------------------------------

    def _begun(self, partition: int, sequence: int, name: str) -> Writer:
        writer = self._trial.writer(partition, 0)
        ack = writer.first(sequence, name)
        if ack.error:
            self._note(name, f"another producer's first batch is refused: {_answer(ack)}")
        return writer

    def _takes(self, writer: Writer, count: int, name: str, when: str = "") -> None:
        ack = writer.append(writer.next_sequence, count, name)
        if ack.error:
            self._note(name, f"the next batch {when}is refused: {_answer(ack)}")

    def _repeated(self, writer: Writer, batch: Sent, name: str) -> Sent:
        back = len(writer.sent) - writer.sent.index(batch)
        what = "a repeat of the last batch" if back == 1 else f"a repeat of the batch {back} back"
        ack = writer.repeat(batch, name, what)
        if ack.error not in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            self._note(name, f"{what} is not recognised: {_answer(ack)}")
        elif not ack.error and ack.base_offset != batch.base_offset:
            self._note(name, f"{what} is answered with offset {ack.base_offset}, its own is {batch.base_offset}")
        return ack

    def _refuses(self, writer: Writer, sequence: int, codes: Sequence[int], what: str, name: str) -> None:
        ack = writer.try_at(sequence, name, what)
        if not ack.error:
            self._note(name, f"{what} is taken")
        elif ack.error not in codes:
            self._note(name, f"{what} is refused, but by {_answer(ack)} and not {error_name(codes[0])}")


def _topic_ids(topic_id: bytes) -> Trial:
    if topic_id == NO_ID:
        return Trial(
            "topic ids",
            AppendVerdict.FAILS,
            "topics have no ids, so a topic that is deleted and created again is not noticed",
        )
    return Trial("topic ids", AppendVerdict.HOLDS, "topics have ids")


def _lifetime(client: ClusterClient) -> Trial:
    try:
        lifetime_ms = producer_state_ms(client)
    except ConnectionError:
        lifetime_ms = None
    if lifetime_ms is None:
        return Trial("state", AppendVerdict.NOTED, "the brokers don't say how long they keep producer state")
    return Trial("state", AppendVerdict.HOLDS, f"producer state kept for {_period(lifetime_ms)}")


def _answer(ack: Sent) -> str:
    return error_name(ack.error)


def _offsets(places: Sequence[tuple[int, bytes]]) -> str:
    return " and ".join(str(offset) for offset, _ in places[:2])


def _period(ms: int) -> str:
    """Write milliseconds in the largest whole unit, such as `1 day` or `36 hours`."""
    size, unit = next((size, unit) for size, unit in _UNITS if ms % size == 0)
    count = ms // size
    return f"{count} {unit}" + ("s" if count != 1 and unit != "ms" else "")
