"""The ledger and the memory of topics, in one real topic."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from lab import KafkaCluster

from sparkmirror.config import ClusterConfig
from sparkmirror.exact.durable.known_topics import KnownTopic, TopicMemory
from sparkmirror.exact.durable.losses import Loss, LossKind, LossLedger, standing_notes
from sparkmirror.exact.durable.noted_progress import ProgressLog, ReportedProgress, TopicProgress
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog

pytestmark = pytest.mark.broker

OpenLog = Callable[[], TopicLog]


@pytest.fixture
def open_log(target_cluster: KafkaCluster, topic_name: str) -> Iterator[OpenLog]:
    """Each call is another process that looks at the same topic."""
    config = ClusterConfig(alias="B", bootstrap_servers=(target_cluster.bootstrap_servers,))
    with ClusterAdmin.connect(config, "test") as admin:
        admin.create_compacted_topic(topic_name, 1, 1)
    clients: list[ClusterClient] = []

    def opened() -> TopicLog:
        clients.append(ClusterClient(config, "test"))
        return TopicLog(clients[-1], topic_name)

    yield opened
    for client in clients:
        client.close()


def loss(**changed: object) -> Loss:
    values: dict[str, object] = {
        "kind": LossKind.EXPIRED,
        "source_topic": "orders",
        "target_topic": "A.orders",
        "partition": 3,
        "first": 30,
        "end": 42,
        "downstream": 28,
        "target_topic_id": bytes(range(16)).hex(),
        "action": "halted",
        "words": "twelve are gone",
        "at_ms": 1_000,
        **changed,
    }
    return Loss.model_validate(values)


def test_what_another_process_has_written_since_is_read_when_it_matters(open_log: OpenLog) -> None:
    """A partition goes from task to task: the next one would write its losses down again."""
    former, following = LossLedger(open_log()), LossLedger(open_log())
    first, second, third = loss(), loss(downstream=60), loss(downstream=90, partition=4)
    former.record(first)
    at = first.target_topic_id, first.partition
    assert following.known(*at) == [first]
    following.record(third)
    former.record(second)
    assert following.known(*at) == [first]
    following.outdate()
    assert following.known(*at) == [first, second]
    following.record(second.model_copy(update={"at_ms": 5_000}))
    assert following.read() == [first, third, second], "as it was"
    former.outdate()
    assert former.known(third.target_topic_id, 4) == [third]


def test_a_loss_that_is_met_again_keeps_its_date(open_log: OpenLog) -> None:
    for at_ms in (1_000, 2_000):  # a new process each time
        ledger = LossLedger(open_log())
        ledger.record(loss(at_ms=at_ms))
        ledger.record(loss(at_ms=at_ms + 1))
    assert LossLedger(open_log()).read() == [loss()]
    assert open_log().end(0) == 1


def test_what_was_written_since_a_time_is_found(open_log: OpenLog) -> None:
    log = open_log()
    assert log.since(0, 1_000) == log.end(0) == 0
    for at_ms in (1_000, 2_000, 3_000):
        log.append(0, [(b"key-%d" % at_ms, b"value")], timestamp_ms=at_ms)
    assert [log.since(0, at_ms) for at_ms in (0, 1_000, 1_001, 3_000, 3_001)] == [0, 0, 1, 2, 3]


def test_the_newest_word_on_a_loss_counts(open_log: OpenLog) -> None:
    """It grows while it halts the copy, and then the policy is changed."""
    said = [loss(), loss(end=50), loss(end=50, action="continued")]
    for one in said:
        LossLedger(open_log()).record(one)
    assert LossLedger(open_log()).read() == [said[-1]]
    assert said[-1].offsets == 20


@pytest.mark.parametrize(
    "other",
    [
        {"kind": LossKind.RECREATED},
        {"partition": 4},
        {"source_topic": "payments"},
        {"downstream": 29},
        {"target_topic_id": bytes(16).hex()},
    ],
    ids=lambda other: next(iter(other)),
)
def test_another_loss_stands_beside_it(open_log: OpenLog, other: dict[str, object]) -> None:
    ledger = LossLedger(open_log())
    ledger.record(loss())
    ledger.record(loss(**other))
    assert LossLedger(open_log()).read() == [loss(), loss(**other)]


def test_topics_are_learned_and_forgotten_beside_the_losses(open_log: OpenLog) -> None:
    orders, payments = (
        KnownTopic(source_topic=name, target_topic=f"A.{name}", target_topic_id=number * 16)
        for name, number in (("orders", "01"), ("payments", "02"))
    )
    memory = TopicMemory(open_log())
    assert memory.known == {}
    memory.learn([orders, payments])
    LossLedger(open_log()).record(loss())
    written = open_log().end(0)
    memory.learn([orders, payments])
    TopicMemory(open_log()).learn([payments])
    assert open_log().end(0) == written, "what is known was written again"

    new = orders.model_copy(update={"target_topic_id": "03" * 16})
    memory.learn([new])
    assert memory.known == TopicMemory(open_log()).known == {"A.orders": new, "A.payments": payments}
    memory.forget([payments])
    assert memory.known == TopicMemory(open_log()).known == {"A.orders": new}
    assert LossLedger(open_log()).read() == [loss()]


def test_a_targets_loss_does_not_become_smaller(open_log: OpenLog) -> None:
    """What pumps acknowledged tells more than claims do; whoever looks next knows the claims alone."""
    ledger = LossLedger(open_log())
    for end in (40, 42, 35):
        ledger.record(loss(kind=LossKind.TARGET_TRUNCATED, end=end, action="healed"))
    (found,) = LossLedger(open_log()).read()
    assert found.end == 42


@pytest.mark.parametrize(
    ("kind", "action"), [(LossKind.TARGET_TRUNCATED, "halted"), (LossKind.TARGET_RECREATED, "healed")]
)
def test_of_another_loss_the_newest_word_counts(open_log: OpenLog, kind: LossKind, action: str) -> None:
    """What halts is never taken for an older one that was healed."""
    ledger = LossLedger(open_log())
    ledger.record(loss(kind=kind, end=42, action="healed"))
    ledger.record(loss(kind=kind, end=35, action=action))
    (found,) = LossLedger(open_log()).read()
    assert (found.end, found.action) == (35, action)


def test_what_was_noted_and_is_lost_can_be_noted_again(open_log: OpenLog) -> None:
    def note(first: int, end: int, **changed: object) -> Loss:
        return loss(kind=LossKind.FOREIGN, first=first, end=end, downstream=first, action="continued", **changed)

    def known() -> list[tuple[int, int]]:
        found = [(one.first, one.end) for one in standing_notes(ledger.known(loss().target_topic_id, 3))]
        assert [(one.first, one.end) for one in standing_notes(LossLedger(open_log()).read())] == found
        return found

    ledger = LossLedger(open_log())
    cut = loss(kind=LossKind.TARGET_TRUNCATED, first=90, end=130, downstream=90, action="healed")
    for one in (note(80, 100), note(110, 120), note(140, 150)):
        ledger.record(one)
    ledger.record(cut)
    assert known() == [(80, 90), (140, 150)]
    for _ in range(2):
        ledger.record(note(110, 120))
        ledger.record(note(140, 150))
    assert sorted(known()) == [(80, 90), (110, 120), (140, 150)]
    assert open_log().end(0) == 5, "what stands is not written again"
    ledger = LossLedger(open_log())
    ledger.record(cut.model_copy(update={"end": 115}))
    assert known() == [(80, 90), (140, 150)]
    assert ledger.known(loss().target_topic_id, 4) == []


def test_how_far_was_copied_is_known_to_the_next_process(open_log: OpenLog) -> None:
    def topic(topic_id: str, partitions: dict[int, ReportedProgress]) -> TopicProgress:
        return TopicProgress(target_topic="A.orders", standing_of=topic_id, partitions=partitions)

    LossLedger(open_log()).record(loss())
    standing = ProgressLog(open_log())
    assert standing.of(("A.orders", 0)) is None
    standing.learn([topic("1" * 32, {0: ReportedProgress(7, 5, 5), 1: ReportedProgress(9, 9, -1)})])
    standing.learn([topic("1" * 32, {0: ReportedProgress(8, 6, 6)})])
    heir = ProgressLog(open_log())
    assert heir.of(("A.orders", 0)) == ReportedProgress(8, 6, 6, "1" * 32)
    assert heir.of(("A.orders", 1)) == ReportedProgress(9, 9, -1, "1" * 32)
    heir.learn([topic("2" * 32, {1: ReportedProgress(1, 1, 1)})])
    assert ProgressLog(open_log()).of(("A.orders", 0)) is None
    assert len(LossLedger(open_log()).read()) == 1
    assert not TopicMemory(open_log()).known
