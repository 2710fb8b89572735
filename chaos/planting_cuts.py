"""Proof of the checker where the source takes back what was copied: real logs, a real ledger, and what it leaves out.

A source partition without gaps, and copies of it that hold records in the middle which the source has no more. The
ledger names all of them, or one too many, or one too few; or it names some that the source still has, and the copy has
them twice, so that ledger and copy fit each other; or one of them is not what the source had.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from kafka import KafkaProducer

from chaos.arena import Arena
from chaos.checker import Anomaly, TopicLogs, check
from chaos.cuts import Cut, Election
from chaos.history import DRAFT, HistoryWriter, read_history, record_id
from chaos.ledger import read_cuts, write_cut
from chaos.load import send_named
from chaos.mirror import remote
from chaos.planting import Proof, write_copy
from chaos.records import ID_HEADER, LoggedRecord, read_topic
from sparkmirror.exact.durable.losses import losses_topic

RECORDS = 30
TAKEN_BACK = 5
_FIRST = 11
_TIMEOUT_S = 30.0
_ALIAS = "planted"
"""The ledger is none of the mirror's."""


class _Plant(NamedTuple):
    """What is falsified, and what must be found."""

    name: str
    expected: Mapping[Anomaly, int]
    cut: Cut
    """As the ledger has it."""
    falsify: Callable[[list[LoggedRecord]], object] = lambda _: None
    """Changes the copy."""


def _again(copy: list[LoggedRecord]) -> None:
    """Copied again from one record further back, as the ledger says."""
    copy.insert(_END, copy[_FIRST - 1])


def _twice(copy: list[LoggedRecord]) -> None:
    copy[_END - 1] = copy[_END - 2]


_END = _FIRST + TAKEN_BACK
_TRUE, _TOO_MANY, _TOO_FEW = (Cut(first, _END, _END) for first in (_FIRST, _FIRST - 1, _FIRST + 1))
PLANTS = (
    _Plant("named", {}, _TRUE),
    _Plant("one too many is named", {Anomaly.LOST: TAKEN_BACK + 1, Anomaly.PHANTOM: TAKEN_BACK}, _TOO_MANY),
    _Plant(
        "one too many is named and copied again",
        {Anomaly.DUPLICATE: 1, Anomaly.LOST: TAKEN_BACK + 1, Anomaly.PHANTOM: TAKEN_BACK},
        _TOO_MANY,
        _again,
    ),
    _Plant("one too few is named", {Anomaly.PHANTOM: TAKEN_BACK, Anomaly.LOST: TAKEN_BACK - 1}, _TOO_FEW),
    _Plant("one of them is twice", {Anomaly.DUPLICATE: 1, Anomaly.LOST: 1}, _TRUE, _twice),
    _Plant("lost behind it", {Anomaly.LOST: 1}, _TRUE, lambda copy: copy.pop(_END + 3)),
)
"""An entry of offsets at which the source was not cut counts for nothing: what it names is as lost, what was taken back
as if nobody had said so."""


def prove_cuts(arena: Arena, anomalies: Sequence[Anomaly | None]) -> list[Proof]:
    """Plant what is taken back, with these anomalies, and look whether the checker finds each."""
    arena.create_topic(arena.target, losses_topic(_ALIAS), 1)
    return [
        _prove(arena, number, plant)
        for number, plant in enumerate(PLANTS)
        if next(iter(plant.expected), None) in anomalies
    ]


def _prove(arena: Arena, number: int, plant: _Plant) -> Proof:
    topic = f"planted-cut-{number}"
    for cluster, name in ((arena.source, topic), (arena.target, remote(topic))):
        arena.create_topic(cluster, name, 1)
    path = arena.directory / f"{topic}.history"
    history = HistoryWriter(path)
    producer = KafkaProducer(bootstrap_servers=arena.source.direct_servers)
    for count in range(RECORDS):
        send_named(producer, history, topic, 0, record_id(DRAFT, 0, count), b"draft %d" % count).get(_TIMEOUT_S)
    producer.close()
    truth = read_topic(arena.source.direct_servers, topic, 1, "read_uncommitted")
    before = [*truth[0][:_FIRST], *map(_taken_back, range(TAKEN_BACK))]
    copy = [*before, *truth[0][_FIRST:]]
    plant.falsify(copy)
    write_copy(arena.target.direct_servers, remote(topic), copy)
    write_cut(arena.target, topic, plant.cut, _ALIAS)
    logs = TopicLogs(
        topic,
        frozenset({DRAFT}),
        uncommitted=truth,
        committed=truth,
        copy=read_topic(arena.target.direct_servers, remote(topic), 1, "read_uncommitted"),
        cuts=read_cuts(arena.target, topic, _ALIAS),
        elections={0: [Election(_FIRST, before)]},
    )
    return Proof(plant.expected, check(logs, "read_uncommitted", read_history(path)), f"taken back, {plant.name}")


def _taken_back(number: int) -> LoggedRecord:
    name = record_id(DRAFT, 0, RECORDS + number)
    return LoggedRecord(0, name, 1_000_000_000_000 + number, 0, None, b"taken back", ((ID_HEADER, name.encode()),))
