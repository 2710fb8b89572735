"""Everything that is to be compared of one topic, read when nothing is broken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafka import TopicPartition

from chaos.arena import Arena
from chaos.checker import TopicLogs
from chaos.cuts import Election
from chaos.history import BILL, DRAFT, NOTE, OLD, PLAIN, bait
from chaos.ledger import read_cuts
from chaos.load import TRANSACTIONAL
from chaos.mirror import remote
from chaos.records import read_topic, without_strangers

PRODUCERS = {
    "orders": frozenset({PLAIN, bait("orders")}),
    "payments": frozenset({*TRANSACTIONAL, bait("payments")}),
    "archive": frozenset({OLD, bait("archive")}),
    "drafts": frozenset({DRAFT}),
    "notes": frozenset({NOTE, bait("notes")}),
    "bills": frozenset({BILL}),
}
"""Who writes to which kind of topic."""
WRITTEN = frozenset({"orders", "payments", "archive", "drafts"})
"""Kinds that the load writes to all the time; to the others only faults do."""


def read_logs(
    arena: Arena, kind: str, topic: str, partitions: int, elections: Mapping[TopicPartition, Sequence[Election]]
) -> tuple[TopicLogs, int]:
    """Return the logs of a topic of that kind, and how many records of strangers were left out of the copy's.

    `elections` are those in which the source took back what it had acknowledged, by partition.
    Raises CopyIncomplete if one can't be read to its end.
    """
    source = arena.source.direct_servers
    copy = read_topic(arena.target.direct_servers, remote(topic), partitions, "read_uncommitted")
    ours = without_strangers(copy)
    logs = TopicLogs(
        topic,
        PRODUCERS[kind],
        uncommitted=read_topic(source, topic, partitions, "read_uncommitted"),
        committed=read_topic(source, topic, partitions, "read_committed"),
        copy=ours,
        cuts=read_cuts(arena.target, topic) if kind == "drafts" else {},
        elections={part.partition: seen for part, seen in elections.items() if part.topic == topic},
    )
    return logs, sum(len(log) - len(ours[partition]) for partition, log in copy.items())
