"""Watch over partitions that an open transaction at the source holds back.

With read_committed a partition may be read up to its last stable offset, where its first open transaction begins. Every
transactional producer holds readers back for a moment. A transaction open for long is told with its producer, and with
the command to end it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from sparkmirror.clock import utc
from sparkmirror.config import ClusterConfig
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.open_transactions import OpenTransaction
from sparkmirror.kafka.cluster.tool_commands import tool_options
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.veil import VEIL

LONG_S = 60.0
"""Seconds for which a transaction may stay open without a word.

Kafka's default for a producer's `transaction.timeout.ms`.
"""

ASK_S = 30.0
"""Seconds between questions about the same open transactions."""

MOST_ASKED = 20
"""Most partitions in one question: the same producers hold the others back, too."""

ABORT_LATE_S = 30.0
"""Seconds after a transaction's timeout from which on it hangs.

A coordinator looks for such transactions every 10 s by default (`transaction.abort.timed.out.transaction.cleanup.
interval.ms`), and clocks differ.
"""


class HeldBack(NamedTuple):
    """Transaction that holds a partition back."""

    words: str
    remedy: str
    """Complete command that ends the transaction."""


class TransactionWatch:
    """Watch over one flow's source; for one thread.

    Partitions without an open transaction cost nothing.
    """

    def __init__(self, source: ClusterAdmin, clock: Callable[[], float] = time.time) -> None:
        self._source = source
        self._clock = clock
        self._since: dict[TopicPartition, tuple[int, float]] = {}
        """Each partition's last stable offset, and since when it has not moved."""
        self._told: dict[TopicPartition, OpenTransaction | str] = {}
        self._ask_at = 0.0

    def look(self, stable: Mapping[TopicPartition, int]) -> dict[TopicPartition, HeldBack]:
        """Return the partitions that have been held back for `LONG_S`.

        `stable` has each partition's last stable offset where it is below the end.
        """
        now_s = self._clock()
        self._since = {
            partition: known if (known := self._since.get(partition)) and known[0] == offset else (offset, now_s)
            for partition, offset in stable.items()
        }
        due = [partition for partition, (_, since_s) in self._since.items() if now_s - since_s >= LONG_S]
        self._told = {partition: told for partition, told in self._told.items() if partition in due}
        asked = list(islice(due, MOST_ASKED))
        if asked and (now_s >= self._ask_at or not self._told.keys() >= set(asked)):
            self._ask(asked)
            self._ask_at = self._clock() + ASK_S
        return {partition: self._held_back(partition, now_s) for partition in due}

    def _ask(self, partitions: Sequence[TopicPartition]) -> None:
        try:
            told = self._source.open_transactions(partitions)
        except (ConnectionError, ClusterUnreachable) as error:
            told = dict.fromkeys(partitions, str(error))
        ended = "no producer has an open one there now"
        self._told = {partition: told.get(partition, ended) for partition in partitions}

    def _held_back(self, partition: TopicPartition, now_s: float) -> HeldBack:
        offset, since_s = self._since[partition]
        told = self._told.get(partition)
        return HeldBack(_words(told, offset, since_s, now_s), abort_command(self._source.config, partition, offset))


def _words(told: OpenTransaction | str | None, offset: int, since_s: float, now_s: float) -> str:
    """Return the words on a transaction, after how many offsets wait."""
    if told is None or isinstance(told, str):
        unknown = f"; whose is not known: {told}" if told else ""
        return f"a transaction that is open from source offset {offset} on, since {utc(since_s)}{unknown}"
    coordinated = told.coordinated
    began_s = since_s if told.last_ms < 0 else told.last_ms / 1000
    if told.unasked:
        who = f"producer {told.producer_id}"
        then = "its coordinator could not be asked, which takes Kafka 3.0"
    elif coordinated is None:
        who = f"producer {told.producer_id}"
        then = (
            "no coordinator names it: it hangs, or sparkmirror's principal lacks DESCRIBE on its transactional id at "
            "the source"
        )
    else:
        who = f"producer {told.producer_id}, transactional id {coordinated.transactional_id}"
        began_s = coordinated.began_ms / 1000
        ends_s = began_s + coordinated.timeout_ms / 1000
        then = f"its coordinator aborts it at {utc(ends_s)}, if its producer does not end it before"
        if ends_s + ABORT_LATE_S < now_s:
            then = f"it hangs: its timeout was over at {utc(ends_s)}"
    at = f"from source offset {told.start_offset} on, since {utc(began_s)}"
    return f"a transaction of {who}, which is open {at}; {then}"


def abort_command(source: ClusterConfig, partition: TopicPartition, start_offset: int) -> str:
    """Return the command that aborts the transaction at an offset (KIP-664)."""
    topic, index = partition
    options = VEIL.over(tool_options(source))
    return f"kafka-transactions.sh {options} abort --topic {topic} --partition {index} --start-offset {start_offset}"
