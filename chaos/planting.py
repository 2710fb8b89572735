"""Proof of the checker: copies made by hand, each with one anomaly planted in it, and whether it is found.

The logs are real: a topic of the source with plain, committed and aborted records, and for each anomaly a topic of
the target that a plain producer fills. The faithful copy is among them, and nothing may be found there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kafka import KafkaProducer

from chaos.arena import Arena
from chaos.checker import Anomaly, Findings, TopicLogs, check
from chaos.history import PLAIN, History, HistoryWriter, read_history, record_id
from chaos.load import TRANSACTIONAL, send_named
from chaos.records import ID_HEADER, Log, LoggedRecord, read_topic

TOPIC = "planted"
RECORDS = 40
_ABORTED = range(10, 15)
_COMMITTED = range(20, 25)
_TIMEOUT_S = 30.0

Planter = Callable[[list[LoggedRecord], Log], list[LoggedRecord]]


def _lost(copy: list[LoggedRecord], _: Log) -> list[LoggedRecord]:
    return copy[:7] + copy[8:]


def _duplicate(copy: list[LoggedRecord], _: Log) -> list[LoggedRecord]:
    return [*copy[:9], copy[7], *copy[9:]]


def _reordered(copy: list[LoggedRecord], _: Log) -> list[LoggedRecord]:
    return [*copy[:7], copy[8], copy[7], *copy[9:]]


def _aborted_read(copy: list[LoggedRecord], everything: Log) -> list[LoggedRecord]:
    kept = {record.id for record in copy}
    aborted = next(record for record in everything if record.id not in kept)
    return [*copy[:7], aborted, *copy[7:]]


def _changed(copy: list[LoggedRecord], _: Log) -> list[LoggedRecord]:
    return [*copy[:7], copy[7]._replace(value=b"another value"), *copy[8:]]


def _phantom(copy: list[LoggedRecord], _: Log) -> list[LoggedRecord]:
    nobody = ((ID_HEADER, b"nobody-0-1"),)
    return [*copy, copy[-1]._replace(id="nobody-0-1", headers=nobody)]


def _nothing(copy: list[LoggedRecord], _: Log) -> list[LoggedRecord]:
    return copy


PLANTERS: dict[Anomaly | None, Planter] = {
    None: _nothing,
    Anomaly.LOST: _lost,
    Anomaly.DUPLICATE: _duplicate,
    Anomaly.REORDERED: _reordered,
    Anomaly.ABORTED_READ: _aborted_read,
    Anomaly.CHANGED: _changed,
    Anomaly.PHANTOM: _phantom,
    Anomaly.UNSEEN: _nothing,  # planted in the history
}
"""How a copy is falsified; None is the faithful one."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What was planted, and what the checker said."""

    expected: Mapping[Anomaly, int]
    """Exactly what has to be found, the anomaly that was planted first."""
    findings: Findings
    how: str = ""
    """In which way, where there is more than one."""

    @property
    def planted(self) -> Anomaly | None:
        return next(iter(self.expected), None)

    @property
    def name(self) -> str:
        return f"{self.planted or 'nothing'}{self.how and f' ({self.how})'}"

    @property
    def caught(self) -> bool:
        """Whether exactly that was found."""
        return {anomaly: count for anomaly, count in self.findings.counts.items() if count} == self.expected


def prove_checker(arena: Arena, anomalies: Sequence[Anomaly | None] = tuple(PLANTERS)) -> list[Proof]:
    """Plant these anomalies and look whether the checker finds each."""
    history = _write_source(arena, arena.directory / "planted.history")
    source = TopicLogs(
        TOPIC,
        frozenset({PLAIN, TRANSACTIONAL[0]}),
        read_topic(arena.source.direct_servers, TOPIC, 1, "read_uncommitted"),
        read_topic(arena.source.direct_servers, TOPIC, 1, "read_committed"),
        copy={},
    )
    return [Proof({planted: 1} if planted else {}, _judge(arena, source, history, planted)) for planted in anomalies]


def _judge(arena: Arena, source: TopicLogs, history: History, planted: Anomaly | None) -> Findings:
    topic = f"{TOPIC}.{(planted or 'nothing').replace(' ', '-')}"
    arena.create_topic(arena.target, topic, 1)
    falsified = PLANTERS[planted](list(source.committed[0]), source.uncommitted[0])
    write_copy(arena.target.direct_servers, topic, falsified)
    copy = read_topic(arena.target.direct_servers, topic, 1, "read_committed")
    if planted is Anomaly.UNSEEN:
        history = replace(history, sent=history.sent | {record_id(PLAIN, 0, RECORDS + 1)})
    return check(replace(source, copy=copy), "read_committed", history)


def _write_source(arena: Arena, path: Path) -> History:
    arena.create_topic(arena.source, TOPIC, 1)
    history = HistoryWriter(path)
    name = TRANSACTIONAL[0]
    servers = arena.source.direct_servers
    plain = KafkaProducer(bootstrap_servers=servers)
    transactional = KafkaProducer(bootstrap_servers=servers, transactional_id=f"{TOPIC}-{name}")
    transactional.init_transactions()
    for number in range(RECORDS):
        send_named(plain, history, TOPIC, 0, record_id(PLAIN, 0, number), b"plain %d" % number).get(_TIMEOUT_S)
        for numbers, transaction, fate in ((_ABORTED, 1, "abort"), (_COMMITTED, 2, "commit")):
            if number not in numbers:
                continue
            if number == numbers[0]:
                transactional.begin_transaction()
            named = record_id(name, 0, number, transaction, fate)
            send_named(transactional, history, TOPIC, 0, named, b"%d" % number).get(_TIMEOUT_S)
            if number == numbers[-1] and fate == "abort":
                transactional.abort_transaction()
                history.ended(f"{name}-{transaction}", "aborted")
            elif number == numbers[-1]:
                transactional.commit_transaction()
                history.ended(f"{name}-{transaction}", "committed")
    plain.close()
    transactional.close()
    # A commit is answered before its markers are written; who begins again waits for them.
    ending = KafkaProducer(bootstrap_servers=servers, transactional_id=f"{TOPIC}-{name}")
    ending.init_transactions()
    ending.close()
    return read_history(path)


def write_copy(servers: str, topic: str, records: Sequence[LoggedRecord]) -> None:
    """Write these records to partition 0."""
    producer = KafkaProducer(bootstrap_servers=servers)
    for record in records:
        producer.send(
            topic,
            value=record.value,
            key=record.key,
            headers=list(record.headers),
            partition=0,
            timestamp_ms=record.timestamp,
        )
    producer.close()
