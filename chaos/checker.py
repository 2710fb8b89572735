"""What became of the records, in Jepsen's words. The truth is the source's log after the end of the round.

lost            in the source's log, not at the target
duplicate       at the target more often than in the source's log
reordered       at the target behind a record that it precedes in the source's log
aborted read    at the target, though its transaction was aborted, in a flow that reads committed records only
changed         at the target with another key, value, header or timestamp
phantom         at the target, and nowhere in the source's log
unseen          acknowledged to its producer, but not in the source's log (or committed there and not readable, or
                aborted and readable): the source's own loss, no mirror can help it

What the source took back after it had been copied stays in the copy. It is right there if the loss ledger names exactly
that (`cuts.py`), where the nemesis saw it happen, and if it is what the source had; else it is a phantom, or lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from chaos.cuts import Cut, Election, Wrong, without_taken_back
from chaos.history import History, partition_of, transaction_of
from chaos.records import Isolation, Log, LoggedRecord

_MOST_EXAMPLES = 20


class Anomaly(StrEnum):
    LOST = "lost"
    DUPLICATE = "duplicate"
    REORDERED = "reordered"
    ABORTED_READ = "aborted read"
    CHANGED = "changed"
    PHANTOM = "phantom"
    UNSEEN = "unseen"


OF_THE_MIRROR = tuple(anomaly for anomaly in Anomaly if anomaly is not Anomaly.UNSEEN)


@dataclass(slots=True)
class Findings:
    """How many records of each kind, and the first few of them in words."""

    records: int = 0
    """Records that the target must have."""
    counts: Counter[Anomaly] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)
    taken_back: int = 0
    """Records in the copy that the source took back later, as the loss ledger says."""
    disowned: int = 0
    """Records that the source acknowledged and took back, copied or not."""

    def add(self, anomaly: Anomaly, what: str, times: int = 1) -> None:
        self.counts[anomaly] += times
        if len(self.examples) < _MOST_EXAMPLES:
            self.examples.append(f"{anomaly}: {what}")

    def merge(self, other: Findings) -> None:
        self.records += other.records
        self.taken_back += other.taken_back
        self.disowned += other.disowned
        self.counts.update(other.counts)
        self.examples = (self.examples + other.examples)[:_MOST_EXAMPLES]

    @property
    def clean(self) -> bool:
        """Whether the mirror did all right."""
        return not any(self.counts[anomaly] for anomaly in OF_THE_MIRROR)


@dataclass(frozen=True, slots=True)
class TopicLogs:
    """One topic's logs after the end, by partition: all of the source's, the committed ones, and the copy's.

    `producers` are the names of those who write to it.
    """

    topic: str
    producers: frozenset[str]
    uncommitted: Mapping[int, Log]
    committed: Mapping[int, Log]
    copy: Mapping[int, Log]
    cuts: Mapping[int, Sequence[Cut]] = field(default_factory=dict)
    """Where the source took records back after they had been copied, as the loss ledger says, in the copy's order."""
    elections: Mapping[int, Sequence[Election]] = field(default_factory=dict)
    """Where the source took back what it had acknowledged, copied or not, as the nemesis saw it."""


def check(logs: TopicLogs, isolation: Isolation, history: History) -> Findings:
    """Compare the copy with the source's log, and the source's log with what its producers were told."""
    findings = Findings()
    for partition, everything in logs.uncommitted.items():
        truth = everything if isolation == "read_uncommitted" else logs.committed[partition]
        where, copy = f"{logs.topic}-{partition}", logs.copy.get(partition, ())
        copy, taken_back, wrong = without_taken_back(
            copy, logs.cuts.get(partition, ()), logs.elections.get(partition, ())
        )
        for one in taken_back:
            findings.taken_back += len(one.records)
            findings.merge(replace(compare(f"{where}, taken back", one.truth, (), one.records), records=0))
        for entry in wrong:
            _add_wrong(findings, where, entry)
        findings.merge(compare(where, truth, everything, copy))
    findings.merge(_unseen(logs, history))
    return findings


def _add_wrong(findings: Findings, where: str, entry: Wrong) -> None:
    cut, copied = entry
    if copied is None:
        said = f"{where}: the ledger says that the source took back what is from {cut.first} on, which it did not"
        findings.add(Anomaly.LOST, said, max(cut.end - cut.first, 1))
    else:
        said = f"{where}: the ledger says that offsets up to {cut.end} were copied, {copied} were"
        findings.add(Anomaly.PHANTOM if copied > cut.end else Anomaly.LOST, said, abs(copied - cut.end))


def check_beginning(logs: TopicLogs, isolation: Isolation) -> Findings:
    """Check a copy that has not come to its end: whether it is what the source's log begins with."""
    copied = {partition: {record.id for record in copy} for partition, copy in logs.copy.items()}
    uncommitted = {partition: _until(log, copied[partition]) for partition, log in logs.uncommitted.items()}
    committed = {partition: _until(log, copied[partition]) for partition, log in logs.committed.items()}
    findings = check(replace(logs, uncommitted=uncommitted, committed=committed), isolation, History())
    findings.records = 0
    return findings


def _until(log: Log, names: Container[str]) -> Log:
    """The log up to the last record that has one of these names."""
    last = max((place for place, record in enumerate(log) if record.id in names), default=-1)
    return log[: last + 1]


def compare(where: str, truth: Log, everything: Log, copy: Log) -> Findings:
    """Compare one partition's copy with what it must hold; `everything` has the aborted records, too."""
    findings = Findings(records=len(truth))
    places = {occurrence: place for place, occurrence in enumerate(_occurrences(truth))}
    written = {record.id for record in everything}
    furthest = -1
    seen: set[tuple[str, int]] = set()
    for record, occurrence in zip(copy, _occurrences(copy), strict=True):
        what = f"{where}, target offset {record.offset}: {record.id or 'a record without a name'}"
        place = places.get(occurrence)
        if place is not None:
            seen.add(occurrence)
            if record.content != truth[place].content:
                findings.add(Anomaly.CHANGED, f"{what}: {_difference(truth[place], record)}")
            if place < furthest:
                findings.add(Anomaly.REORDERED, f"{what} comes after {truth[furthest].id}")
            furthest = max(furthest, place)
        elif (record.id, 0) in places:
            findings.add(Anomaly.DUPLICATE, f"{what}, copy {occurrence[1] + 1}")
        elif record.id in written:
            findings.add(Anomaly.ABORTED_READ, what)
        else:
            findings.add(Anomaly.PHANTOM, what)
    for occurrence, place in places.items():
        if occurrence not in seen:
            findings.add(Anomaly.LOST, f"{where}, source offset {truth[place].offset}: {occurrence[0]}")
    return findings


def _occurrences(log: Log) -> Iterator[tuple[str, int]]:
    """Each record's name, and how often that name came before: a source may itself hold a record twice."""
    counts: Counter[str] = Counter()
    for record in log:
        yield record.id, counts[record.id]
        counts[record.id] += 1


def _difference(ours: LoggedRecord, theirs: LoggedRecord) -> str:
    return "; ".join(
        f"{name} {mine!r}, target {other!r}"
        for name, mine, other in zip(LoggedRecord._fields[2:], ours[2:], theirs[2:], strict=True)
        if mine != other
    )


def _unseen(logs: TopicLogs, history: History) -> Findings:
    """Whether the source kept what it promised."""
    findings = Findings()
    written = {record.id for log in logs.uncommitted.values() for record in log}
    readable = {record.id for log in logs.committed.values() for record in log}
    for name in sorted(history.sent):
        if name.partition("-")[0] not in logs.producers:
            continue  # another topic's
        where = f"{logs.topic}-{partition_of(name)}: {name}"
        fate = history.ended.get(transaction_of(name) or "")
        if name not in written and logs.elections.get(partition_of(name)):
            findings.disowned += 1
        elif name not in written:
            findings.add(Anomaly.UNSEEN, f"{where} was acknowledged and is not in the source's log")
        elif fate == "committed" and name not in readable:
            findings.add(Anomaly.UNSEEN, f"{where} was committed and can't be read")
        elif fate == "aborted" and name in readable:
            findings.add(Anomaly.UNSEEN, f"{where} was aborted and can be read at the source")
    return findings
