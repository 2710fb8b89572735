"""A query survives an outage of any length, and tells of what it could not copy."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sparkmirror.config import ClusterConfig, FlowConfig, LossPolicy
from sparkmirror.config.model import TransformQuery
from sparkmirror.errors import ClusterUnreachable, RecordsGone, RowsChanged
from sparkmirror.exact.durable.losses import Loss, LossLedger
from sparkmirror.exact.position.cause import Cause
from sparkmirror.exact.position.loss_detection import LedgerPosition, expired_loss, truncated_loss
from sparkmirror.exact.position.route import PartitionPair
from sparkmirror.kafka.cluster.client import TopicLeaders
from sparkmirror.kafka.cluster.topic_descriptions import PartitionDescription, TopicDescription
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.mirror.engine.completion import Completion
from sparkmirror.mirror.engine.flow_view import FlowView
from sparkmirror.mirror.engine.queried_topics import QueriedTopics
from sparkmirror.mirror.sync.topics import MirroredTopic, TopicSync
from sparkmirror.pump.retry import PATIENCE_S, Retry
from sparkmirror.queries import query_worker
from sparkmirror.queries.gone_records import GoneRecords
from sparkmirror.queries.plan_log import PlanLog, PlannedBatch, PlannedRange
from sparkmirror.queries.query_worker import QueryHalted, QueryWorker, WrittenBatch
from sparkmirror.queries.source_ranges import Halt, NextRanges, QueriedLog
from sparkmirror.sink.order import AppendedRange
from sparkmirror.source.source_logs import SourceLogs


class Pauses(threading.Event):
    """It notes the pauses and lets none last."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.seconds.append(timeout)
        return False


def test_pauses_between_failures_double_up_to_half_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """2 to the number of failures is more than a float holds after 1,024 of them: a night without the target."""
    worker = QueryWorker.__new__(QueryWorker)
    pauses = worker.stopping = Pauses()
    worker.driver = SimpleNamespace(topics=SimpleNamespace(ends=None))  # type: ignore[assignment]

    def fail() -> bool:
        raise ClusterUnreachable("the target is down")

    monkeypatch.setattr(worker, "_copy", fail)
    monkeypatch.setattr(worker, "_told", lambda error: None)
    monkeypatch.setattr(worker, "_goes_on", lambda: len(pauses.seconds) < 1_100)
    worker.run()
    assert pauses.seconds[:6] == [1, 2, 4, 8, 16, 30]
    assert set(pauses.seconds[5:]) == {30}
    assert len(pauses.seconds) == 1_100


def test_once_ends_with_the_reason_if_a_query_fails_before_it_looks_at_its_logs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its driver and Spark's session are stand-ins."""
    part = PartitionDescription(partition=0, leader=1, leader_epoch=0, replicas=(1,), in_sync=(1,))
    mirrored = MirroredTopic(*(TopicDescription(name, b"1" * 16, (part,)) for name in ("t", "A.t")))
    query = TransformQuery(name="q", topics=("t",), sql="SELECT * FROM records")
    side = ClusterConfig(alias="A", bootstrap_servers=("a:1",))
    driver: Any = SimpleNamespace(
        name="A->B",
        flow=FlowConfig(source=side, target=side.model_copy(update={"alias": "B"})),
        topics=SimpleNamespace(
            ends={("t", 0): 50},
            owed={},
            newest=TopicSync(mirrored=(mirrored,), created=(), grown=(), refused={}),
            queried=QueriedTopics([query], lambda _: False),
        ),
        view=FlowView(),
        reports=SimpleNamespace(loss_watch=SimpleNamespace(added=())),
        held=lambda: True,
    )
    spark: Any = None
    monkeypatch.setattr(query_worker, "SparkSession", lambda _: SimpleNamespace(newSession=lambda: None))
    worker = QueryWorker(driver, "q", lambda records: records, spark)
    worker.stopping = Pauses()

    def fail() -> bool:
        raise ClusterUnreachable("its topic of plans can't be created")

    monkeypatch.setattr(worker, "_copy", fail)
    worker.run()
    assert worker.is_done
    assert Completion().missing(driver) == ["A->B: t-0 is not copied: its topic of plans can't be created"]


def test_failures_that_pass_are_not_in_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each move of a target's leader fails a micro-batch of a long run: the run does not end for them."""
    worker = QueryWorker.__new__(QueryWorker)
    pauses = worker.stopping = Pauses()
    done: Any = SimpleNamespace(end_of=lambda *_: None)
    worker.driver = SimpleNamespace(topics=SimpleNamespace(ends={}, done_topics=done))  # type: ignore[assignment]
    worker.is_done = False
    worker._progress = SimpleNamespace(stand=lambda *_: None)  # type: ignore[assignment]  # noqa: SLF001
    worker._held_up = {("t", 0): query_worker.PAUSED}  # noqa: SLF001
    worker._retry = Retry(0)  # noqa: SLF001

    def copy() -> bool:
        worker._rest(None, NextRanges(None, (), {}))  # noqa: SLF001 - a look, and then a fault
        raise ClusterUnreachable("its leader at the target has changed")

    monkeypatch.setattr(worker, "_copy", copy)
    monkeypatch.setattr(worker, "_told", lambda error: None)
    monkeypatch.setattr(worker, "_goes_on", lambda: len(pauses.seconds) < 100)
    worker.run()
    assert set(pauses.seconds) == {query_worker.IDLE_S, 1.0}
    assert not worker.is_done


@pytest.mark.parametrize(
    "error",
    [RecordsGone("t has no leader"), QueryHalted(Halt(Cause.NO_LEADER, "t-0 has no leader")), ConnectionError("down")],
    ids=["begun", "first", "other"],
)
def test_once_waits_for_the_leader_of_a_micro_batch_as_pumps_do(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """Other failures that pass meanwhile don't end it; but several in a row do."""
    worker = QueryWorker.__new__(QueryWorker)
    pauses = worker.stopping = Pauses()
    worker.driver = SimpleNamespace(topics=SimpleNamespace(ends={("t", 0): 50}))  # type: ignore[assignment]
    worker.is_done = False
    worker._retry = Retry(0)  # noqa: SLF001
    monkeypatch.setattr(query_worker, "now_s", lambda: 7 + sum(pauses.seconds))
    failures = [*[error] * 5, ConnectionError("its leader has changed"), *[error] * 20]

    def fail() -> bool:
        raise failures.pop(0)

    monkeypatch.setattr(worker, "_copy", fail)
    monkeypatch.setattr(worker, "_told", lambda error: None)
    monkeypatch.setattr(worker, "_goes_on", lambda: True)
    worker.run()
    assert worker.is_done
    assert sum(pauses.seconds) == (15 if isinstance(error, ConnectionError) else 1 + 2 + 4 + 8 + 16 + 30)


@pytest.mark.parametrize("copied", [3, 50])
def test_once_waits_for_a_leader_as_pumps_do(monkeypatch: pytest.MonkeyPatch, copied: int) -> None:
    """Not for that of a partition that is copied to its wanted end."""
    worker = QueryWorker.__new__(QueryWorker)
    pauses = worker.stopping = Pauses()
    done: Any = SimpleNamespace(end_of=lambda *_: None)
    worker.driver = SimpleNamespace(topics=SimpleNamespace(ends={("t", 0): 50}, done_topics=done))  # type: ignore[assignment]
    worker._progress = SimpleNamespace(stand=lambda *_: None)  # type: ignore[assignment]  # noqa: SLF001
    worker._held_up = {("t", 0): Halt(Cause.NO_LEADER, "no leader")}  # noqa: SLF001
    worker._retry = Retry(0)  # noqa: SLF001
    monkeypatch.setattr(query_worker, "now_s", lambda: 7 + sum(pauses.seconds))
    newest = PlannedBatch(0, {("t", 0): PlannedRange(0, copied, SOURCE_ID.hex(), TARGET_ID.hex())})
    while not worker._rest(newest, NextRanges(None, (), {})):  # noqa: SLF001
        assert not worker.is_done
    assert worker.is_done
    assert sum(pauses.seconds) == (0 if copied == 50 else PATIENCE_S + query_worker.IDLE_S)


def test_a_loss_counts_as_noted_once_it_is_in_the_ledger() -> None:
    """Else the query would copy on past records that nothing tells of."""
    worker = QueryWorker.__new__(QueryWorker)
    worker._flow = SimpleNamespace(name="A->B")  # type: ignore[assignment]  # noqa: SLF001
    worker._noted = set()  # noqa: SLF001
    failures = [ConnectionError("no leader"), None, None]
    written: list[Loss] = []

    def record(loss: Loss) -> None:
        if (error := failures.pop(0)) is not None:
            raise error
        written.append(loss)

    route, ledger = PartitionPair("t", "A.t", 0), cast("LossLedger", SimpleNamespace(record=record))
    losses = [expired_loss(route, LedgerPosition(ids, 5), 10, 20, LossPolicy()) for ids in (b"3" * 16, b"4" * 16)]
    with pytest.raises(ConnectionError):
        worker._note(losses, ledger)  # noqa: SLF001
    for _ in range(2):
        worker._note(losses, ledger)  # noqa: SLF001
    assert written == losses, "the same words about another topic are another loss"


SOURCE_ID, TARGET_ID = b"1" * 16, b"2" * 16
BEGUN = PlannedBatch(7, {("t", 0): PlannedRange(100, 1000, SOURCE_ID.hex(), TARGET_ID.hex())})


def a_worker() -> QueryWorker:
    worker = QueryWorker.__new__(QueryWorker)
    worker.name, side = "q", ClusterConfig(alias="A", bootstrap_servers=("a:1",))
    rules = SimpleNamespace(remote_name=lambda topic: f"A.{topic}")
    worker.driver = SimpleNamespace(topics=SimpleNamespace(rules=rules))  # type: ignore[assignment]
    worker._flow = FlowConfig(source=side, target=side.model_copy(update={"alias": "B"}))  # noqa: SLF001
    worker._missing_since = {}  # noqa: SLF001
    return worker


@pytest.mark.parametrize("error", [ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.LEADER_NOT_AVAILABLE])
def test_a_begun_micro_batch_waits_for_a_topic_that_cant_be_seen(error: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a topic that is gone has no records left to copy."""
    logs = SourceLogs.__new__(SourceLogs)

    def answer(names: Iterable[str]) -> dict[str, TopicLeaders]:
        return {name: TopicLeaders(name, bytes(16), answered, {}) for name in names}

    logs._client = SimpleNamespace(metadata=answer)  # type: ignore[assignment]  # noqa: SLF001
    answered: int = error
    with pytest.raises(RecordsGone, match="t is no topic of this query any more, has no leader, or can't be seen"):
        a_worker()._demand_topics(BEGUN, {}, logs)  # noqa: SLF001
    answered, worker = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, a_worker()
    with pytest.raises(RecordsGone):
        worker._demand_topics(BEGUN, {}, logs)  # noqa: SLF001 - perhaps a broker that has just started
    monkeypatch.setattr(query_worker, "GONE_S", -1.0)
    assert worker._demand_topics(BEGUN, {}, logs) == {("t", 0)}  # noqa: SLF001


@pytest.mark.parametrize("comes_back", [True, False])
def test_what_was_planned_of_a_topic_that_is_gone_is_not_copied(comes_back: bool) -> None:
    """What comes back under its id is copied from there; another one tells the true place."""
    known = QueriedLog(
        route=PartitionPair("t", "A.t", 0),
        topic_id=(b"3" * 16).hex(),
        start=0,
        end=50,
        until=1 << 60,
        target_topic_id=TARGET_ID,
        target_end=100,
    )
    there = {("t", 0): known} if comes_back else {}
    plans: Any = PlanLog.__new__(PlanLog)
    plans.last_places = lambda target, before: None
    written = WrittenBatch(appended={}, runs={}, keeps_places=True)
    (places,) = a_worker()._places(BEGUN, BEGUN, there, written, plans)  # noqa: SLF001
    assert (places.target, places.batch, places.upstream_end, places.runs) == ((TARGET_ID, 0), 7, 100, ())
    plans.last_places = lambda target, before: places
    assert plans.reached(BEGUN).ranges["t", 0].end == 100


@pytest.mark.parametrize("comes_back", [True, False])
def test_the_copied_records_of_a_topic_that_is_gone_count(comes_back: bool) -> None:
    """Their places aren't known, but that they are at the target."""
    other = QueriedLog(PartitionPair("t", "A.t", 0), (b"3" * 16).hex(), 0, 50, 1 << 60, TARGET_ID, 100)
    plans: Any = PlanLog.__new__(PlanLog)
    plans.last_places = lambda target, before: None
    copied = AppendedRange("A.t", 0, records=40, first_offset=60, last_offset=99, gone=40)
    written = WrittenBatch(appended={("A.t", 0): copied}, runs={("A.t", 0): b""}, keeps_places=True)
    there = {("t", 0): other} if comes_back else {}
    (places,) = a_worker()._places(BEGUN, BEGUN, there, written, plans)  # noqa: SLF001
    assert (places.upstream_end, places.downstream, places.runs, places.is_known) == (140, 60, (), False)


def halted_by(
    monkeypatch: pytest.MonkeyPatch,
    refused: str,
    gone: Iterable[str],
    written: Iterable[str] = (),
    *,
    disowned: Iterable[str] = (),
    ledger: list[Loss] | None = None,
) -> Exception:
    """Return what a query ends with as a partition's rows are refused; it copies a and b."""
    worker = a_worker()
    worker._noted = set()  # noqa: SLF001
    routes = [PartitionPair(name, f"A.{name}", 0) for name in "ab"]
    monkeypatch.setattr(worker, "_routes", lambda _: routes)
    monkeypatch.setattr(worker, "_topics", dict)
    monkeypatch.setattr(QueryWorker, "_id", "q")
    records = [
        GoneRecords(
            at=route.source,
            target=route.target,
            begin=0,
            end=5,
            is_all=False,
            log=QueriedLog(route, SOURCE_ID.hex(), 5, 50, 1 << 60, TARGET_ID, 10),
            is_expired=True,
        )
        for route in routes
        if route.source_topic in gone
    ]
    anything: Any = SimpleNamespace(topics=lambda _: ["A.a", "A.b", *written])
    error = RowsChanged(f"{refused}: 3 records that an earlier attempt appended are not among this attempt's rows")
    at, policy = LedgerPosition(TARGET_ID, 10), LossPolicy(truncated="halt")
    lost = [truncated_loss(route, at, 3, 5, policy) for route in routes if route.source_topic in disowned]
    noted: Any = SimpleNamespace(record=([] if ledger is None else ledger).append)
    return worker._halted_by(error, lost, records, anything, BEGUN, noted)  # noqa: SLF001


def test_a_halt_names_the_partition_whose_rows_were_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever deletes another topic loses records."""
    ended = halted_by(monkeypatch, "A.b-0", "ab")
    assert isinstance(ended, QueryHalted)
    assert str(ended).startswith("A.b-0: 3 records that an earlier attempt appended")
    assert "offsets 0 to 4 of source b-0 are gone" in str(ended)
    assert "nothing more is copied until A.b is deleted" in str(ended)
    assert "A.a" not in str(ended)
    ended = halted_by(monkeypatch, "all-3", "ab", ["all"])
    assert "until the flow is stopped, A.a, A.b, all are deleted" in str(ended), "any record's rows may be there"


def test_rows_that_changed_where_nothing_is_gone_are_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = halted_by(monkeypatch, "A.b-0", "a")
    assert isinstance(ended, RowsChanged)
    assert ended.place == ("A.b", 0)


def test_a_halt_blames_the_log_that_took_back_the_refused_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not another log that was cut: whoever deletes the other's copy gets no further."""
    ledger: list[Loss] = []
    ended = halted_by(monkeypatch, "A.b-0", "", disowned="ab", ledger=ledger)
    assert isinstance(ended, QueryHalted)
    assert ended.halt.cause is Cause.TRUNCATED
    assert str(ended).startswith("the log of source b-0 was cut at offset 3")
    assert "nothing more is copied until A.b is deleted" in str(ended)
    assert "a-0" not in str(ended)
    assert [loss.source_topic for loss in ledger] == ["b"], "nobody knows whether the other's records were copied"
    ended = halted_by(monkeypatch, "A.b-0", "b", disowned="a")
    assert "offsets 0 to 4 of source b-0 are gone" in str(ended)
    assert isinstance(halted_by(monkeypatch, "A.b-0", "", disowned="a"), RowsChanged)
    ended = halted_by(monkeypatch, "all-3", "", ["all"], disowned="ab", ledger=ledger)
    assert "the log of source a-0 was cut" in str(ended)
    assert "the log of source b-0 was cut" in str(ended), "any record's rows may be there"
    assert "until the flow is stopped, A.a, A.b, all are deleted" in str(ended)
    assert [loss.source_topic for loss in ledger] == ["b", "a", "b"]
