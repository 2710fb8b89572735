"""Transactions that stay open: when they are told, in which words, with which command, and how seldom anybody asks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from kafka.protocol.admin import ListTransactionsResponse

from sparkmirror.clock import utc
from sparkmirror.config import ClusterConfig
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.kafka.cluster import open_transactions as module
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.open_transactions import Coordinated, OpenTransaction, open_transactions
from sparkmirror.kafka.cluster.producers import DescribedPartition, ProducerEntry
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.rpc import UnsupportedBroker
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.mirror.engine.transaction_watch import (
    ABORT_LATE_S,
    ASK_S,
    LONG_S,
    MOST_ASKED,
    TransactionWatch,
    abort_command,
)

PAY = ("pay", 0)
BEGAN_S = 1_764_000_000.0
CONFIG = ClusterConfig(alias="A", bootstrap_servers=("a:9092", "b:9092"))


class PlayedSource(ClusterAdmin):
    """What it says of transactions, and how often it was asked."""

    def __init__(self, told: OpenTransaction | str | None = None) -> None:
        super().__init__(CONFIG, "played", 1.0)
        self.told, self.asked = told, list[Sequence[TopicPartition]]()

    def open_transactions(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, OpenTransaction | str]:
        self.asked.append(list(partitions))
        if self.told == "away":
            raise ClusterUnreachable("cluster A: no broker answers")
        return dict.fromkeys(self.asked[-1], self.told) if self.told is not None else {}


class PlayedTime:
    def __init__(self) -> None:
        self.now_s = BEGAN_S

    def __call__(self) -> float:
        return self.now_s


def after_long(told: OpenTransaction | str | None, more_s: float = 0.0) -> str:
    """The words after `LONG_S` and more."""
    clock = PlayedTime()
    watch = TransactionWatch(PlayedSource(told), clock)
    assert watch.look({PAY: 3}) == {}
    clock.now_s += LONG_S + more_s
    held_back = watch.look({PAY: 3})[PAY]
    assert held_back.remedy == (
        "kafka-transactions.sh --bootstrap-server a:9092,b:9092 abort --topic pay --partition 0 --start-offset 3"
    )
    return held_back.words


def test_short_ones_are_not_told_and_nobody_is_asked() -> None:
    clock, source = PlayedTime(), PlayedSource()
    watch = TransactionWatch(source, clock)
    for stable in range(20):
        assert watch.look({PAY: stable}) == {}, "the last stable offset moves"
        clock.now_s += LONG_S - 1
    assert watch.look({}) == {}
    assert source.asked == []


def test_its_producer_its_name_and_its_end_are_told() -> None:
    open_one = OpenTransaction(4000, 3, int(BEGAN_S * 1000), Coordinated("stuck", int(BEGAN_S * 1000) - 5_000, 900_000))
    assert after_long(open_one) == (
        f"a transaction of producer 4000, transactional id stuck, which is open from source offset 3 on, since "
        f"{utc(BEGAN_S - 5)}; its coordinator aborts it at {utc(BEGAN_S + 895)}, if its producer does not end it before"
    )
    assert "; its coordinator aborts it at" in after_long(open_one, 895 - LONG_S + ABORT_LATE_S), "it comes by"
    assert after_long(open_one, 900).endswith(f"it hangs: its timeout was over at {utc(BEGAN_S + 895)}")


def test_what_no_coordinator_tells_is_said() -> None:
    words = after_long(OpenTransaction(4000, 3, int(BEGAN_S * 1000) - 7_000))
    assert f"producer 4000, which is open from source offset 3 on, since {utc(BEGAN_S - 7)}; no coordinator" in words
    assert "lacks DESCRIBE on its transactional id" in words
    assert f"since {utc(BEGAN_S)};" in after_long(OpenTransaction(4000, 3, -1)), "since it was seen"


def test_a_coordinator_that_could_not_be_asked_does_not_let_it_hang() -> None:
    words = after_long(OpenTransaction(4000, 3, -1, unasked=True))
    assert words.endswith(f"since {utc(BEGAN_S)}; its coordinator could not be asked, which takes Kafka 3.0")


class PlayedBrokers:
    """Two brokers of a source, of which the second has its own answer to who coordinates."""

    brokers = (1, 2)

    def __init__(self, second: ListTransactionsResponse | ConnectionError) -> None:
        self.second = second

    def ask(self, broker: int, request: object, newest: int) -> ListTransactionsResponse:
        if broker == 1:
            return listing(0)
        if isinstance(self.second, ConnectionError):
            raise self.second
        return self.second


def listing(error: int) -> ListTransactionsResponse:
    return ListTransactionsResponse(error_code=error, transaction_states=[])


@pytest.mark.parametrize(
    ("second", "unasked"),
    [
        (UnsupportedBroker("older than Kafka 3.0"), True),
        (ConnectionError("no answer"), True),
        (listing(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), True),
        (listing(0), False),
    ],
    ids=["too old", "away", "loading", "asked"],
)
def test_whether_each_broker_could_be_asked_is_known(
    monkeypatch: pytest.MonkeyPatch, second: ListTransactionsResponse | ConnectionError, unasked: bool
) -> None:
    entry = ProducerEntry(producer_id=4000, producer_epoch=0, last_sequence=1, last_timestamp_ms=2, transaction_start=3)
    monkeypatch.setattr(module, "_described", lambda *_: {PAY: DescribedPartition(0, (entry,))})
    client: Any = PlayedBrokers(second)
    assert open_transactions(client, [PAY]) == {PAY: OpenTransaction(4000, 3, 2, unasked=unasked)}


@pytest.mark.parametrize(
    ("told", "says"),
    [
        (
            "TOPIC_AUTHORIZATION_FAILED (29); grant READ",
            "whose is not known: TOPIC_AUTHORIZATION_FAILED (29); grant READ",
        ),
        ("away", "whose is not known: cluster A: no broker answers"),
        (None, "whose is not known: no producer has an open one there now"),
    ],
)
def test_what_can_not_be_known_is_said(told: str | None, says: str) -> None:
    words = after_long(told)
    assert words.startswith(f"a transaction that is open from source offset 3 on, since {utc(BEGAN_S)}; ")
    assert words.endswith(says)


def test_the_same_question_is_asked_seldom_and_about_few() -> None:
    clock, source = PlayedTime(), PlayedSource()
    watch = TransactionWatch(source, clock)
    stable = {("pay", index): 3 for index in range(MOST_ASKED + 5)}
    watch.look(stable)
    clock.now_s += LONG_S
    for _ in range(int(ASK_S / 5)):
        assert watch.look(stable).keys() == stable.keys(), "each is held back, whoever was asked for"
        clock.now_s += 5
    assert [len(asked) for asked in source.asked] == [MOST_ASKED]
    watch.look(stable)
    assert len(source.asked) == 2
    assert watch.look({}) == {}, "they have ended"


def test_the_command_of_a_secured_cluster_asks_for_the_clients_settings() -> None:
    secured = CONFIG.model_copy(update={"security_protocol": "SASL_SSL"})
    assert "--bootstrap-server a:9092,b:9092 --command-config admin.properties abort" in abort_command(secured, PAY, 3)
