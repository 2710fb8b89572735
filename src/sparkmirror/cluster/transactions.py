"""Transactional ids at their coordinators, for fences (R16): no data is ever sent in a transaction of ours.

Blocking. A coordinator that is loading, has moved or is still at work is asked again until `PATIENCE_S` are over.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from kafka.protocol.metadata import FindCoordinatorRequest
from kafka.protocol.producer import AddPartitionsToTxnRequest, EndTxnRequest, InitProducerIdRequest

from sparkmirror.cluster.client import ClusterClient
from sparkmirror.cluster.coordinators import NOT_AVAILABLE, PASSING, SEVERAL_KEYS
from sparkmirror.cluster.error_codes import error_name
from sparkmirror.wire.topic_partition import TopicPartition

PATIENCE_S = 5.0
_PAUSE_S = 0.05
TIMEOUT_MS = 60_000
"""After which the coordinator aborts a transaction whose beginner is gone."""

_TRANSACTION_KEY = 1
_LAST_FOR_CLIENTS = 3
"""Of AddPartitionsToTxn: newer versions are for brokers."""
_LAST_WITHOUT_BUMP = 4
"""Of EndTxn: from version 5 on each one bumps the epoch (KIP-890)."""
_LAST_WITHOUT_2PC = 5
_STILL_AT_WORK = 51
_NOT_TRIED = 55
_NOT_AUTHORIZED = 53


class TransactionRefused(ConnectionError):
    """A coordinator did not do what it was asked for; `code` is Kafka's error."""

    def __init__(self, transactional_id: str, what: str, code: int) -> None:
        self.code = code
        help_ = f"; grant our principal WRITE on TransactionalId {transactional_id}" if code == _NOT_AUTHORIZED else ""
        super().__init__(f"transactional id {transactional_id}: {what}: {error_name(code)}{help_}")


class Given(NamedTuple):
    """What a transactional id has now; every earlier epoch of the producer id is fenced wherever a marker bears it."""

    producer_id: int
    producer_epoch: int


class TransactionalId:
    """One transactional id of one cluster."""

    def __init__(self, client: ClusterClient, name: str) -> None:
        self._client = client
        self.name = name
        self._coordinator: int | None = None

    def begin(self) -> Given:
        """Its producer id, with an epoch that nobody has had; a transaction that somebody left open is aborted."""
        answer = self._ask(
            "no producer id",
            lambda: InitProducerIdRequest(
                transactional_id=self.name, transaction_timeout_ms=TIMEOUT_MS, producer_id=-1, producer_epoch=-1
            ),
            newest=_LAST_WITHOUT_2PC,
        )
        return Given(answer.producer_id, answer.producer_epoch)

    def may_be_written(self) -> bool:
        """Whether our principal may. Asked for is the end of a transaction that nobody has begun: nothing changes."""
        try:
            self._end(Given(0, 0))
        except TransactionRefused as refused:
            return refused.code != _NOT_AUTHORIZED
        return True

    def mark(self, given: Given, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Have the coordinator write an abort marker into each partition, soon; those it may not, by Kafka's code."""
        left = set(partitions)
        refused: dict[TopicPartition, int] = {}
        while left:
            codes = self._add(given, left)
            failed = {where: code for where, code in codes.items() if code}
            if not failed:
                break
            causes = {where: code for where, code in failed.items() if code != _NOT_TRIED}
            if not causes:
                raise TransactionRefused(self.name, "no transaction was begun", _NOT_TRIED)
            refused |= causes
            left -= causes.keys()
        if left:
            self._end(given)
        return refused

    def _end(self, given: Given) -> None:
        self._ask(
            "the transaction did not end",
            lambda: EndTxnRequest(
                transactional_id=self.name,
                producer_id=given.producer_id,
                producer_epoch=given.producer_epoch,
                committed=False,
            ),
            newest=_LAST_WITHOUT_BUMP,
        )

    def _add(self, given: Given, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        topics: dict[str, list[int]] = {}
        for topic, partition in sorted(partitions):
            topics.setdefault(topic, []).append(partition)
        answer = self._ask(
            "no transaction was begun",
            lambda: AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.name,
                v3_and_below_producer_id=given.producer_id,
                v3_and_below_producer_epoch=given.producer_epoch,
                v3_and_below_topics=[
                    AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=indexes)
                    for topic, indexes in topics.items()
                ],
            ),
            newest=_LAST_FOR_CLIENTS,
            code=_first_general,
        )
        return {
            (topic.name, one.partition_index): one.partition_error_code
            for topic in answer.results_by_topic_v3_and_below
            for one in topic.results_by_partition
        }

    def _ask(
        self,
        what: str,
        request: Callable[[], Any],
        *,
        newest: int,
        code: Callable[[Any], int] = lambda answer: int(answer.error_code),
    ) -> Any:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                answer = self._client.ask(self._located(), request(), newest=newest)
                error = code(answer)
            except TransactionRefused as refused:
                error = refused.code
            except ConnectionError:
                error = NOT_AVAILABLE
                if time.monotonic() > deadline:
                    raise
            if not error:
                return answer
            if error in PASSING:
                self._coordinator = None
                self._client.metadata([])
            elif error != _STILL_AT_WORK:
                raise TransactionRefused(self.name, what, error)
            if time.monotonic() > deadline:
                raise TransactionRefused(self.name, what, error)
            time.sleep(_PAUSE_S)

    def _located(self) -> int:
        if self._coordinator is None:
            if not self._client.brokers:
                self._client.metadata([])
            broker = next(iter(self._client.brokers), None)
            if broker is None:
                raise TransactionRefused(self.name, "no coordinator", NOT_AVAILABLE)
            newest = self._client.broker(broker).version(
                FindCoordinatorRequest.API_KEY, (0, FindCoordinatorRequest.max_version), "FindCoordinator"
            )
            if newest < SEVERAL_KEYS:
                found = self._client.ask_any(lambda: FindCoordinatorRequest(key=self.name, key_type=_TRANSACTION_KEY))
            else:
                found = self._client.ask_any(
                    lambda: FindCoordinatorRequest(key_type=_TRANSACTION_KEY, coordinator_keys=[self.name])
                ).coordinators[0]
            if found.error_code:
                raise TransactionRefused(self.name, "no coordinator", found.error_code)
            self._coordinator = found.node_id
        return self._coordinator


def _first_general(answer: Any) -> int:
    """An error that stands for the whole request, if there is one: it says so at each partition."""
    codes = {
        one.partition_error_code for topic in answer.results_by_topic_v3_and_below for one in topic.results_by_partition
    }
    return next((code for code in codes if code in PASSING or code in _GENERAL), 0)


_GENERAL = frozenset({_STILL_AT_WORK, 47, 48, 49, _NOT_AUTHORIZED, 90})
"""CONCURRENT_TRANSACTIONS, INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE, INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED."""
