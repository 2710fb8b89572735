"""Orders and partitions that tasks find for themselves, without a cluster: what they asked is known already."""

from __future__ import annotations

import pyarrow as pa
import pytest
from kafka.partitioner.default import murmur2

from sparkmirror.client.settings import CONSUMER, cluster_config
from sparkmirror.clock import wall_ms
from sparkmirror.errors import (
    ClusterTrouble,
    ClusterUnreachable,
    ConfigError,
    ConfigErrors,
    RowsRefused,
    SparkMirrorError,
    TransformFailed,
    UnfitTarget,
)
from sparkmirror.kafka.cluster import broker_versions
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.wire.codecs import Codec
from sparkmirror.sink import gathering, preparing, task_writing
from sparkmirror.sink.agreement import EPOCHS, AgreedProducer, MicroBatch
from sparkmirror.sink.task_writing import TaskWriter, _placed
from sparkmirror.sink.writing import _told

# ruff: noqa: SLF001 - what a process keeps between its tasks

CLUSTER = cluster_config({"bootstrap.servers": "127.0.0.1:1"}, CONSUMER)
QUERY = CLUSTER.bootstrap_servers, "query"
WRITER = TaskWriter(cluster=CLUSTER, topic="orders", codec=Codec(0), in_turn=True)


@pytest.fixture(autouse=True)
def _asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_writing, "_lifetimes", {CLUSTER.bootstrap_servers: (86_400_000, wall_ms())})
    monkeypatch.setattr(task_writing, "_producers", {(QUERY, 0): AgreedProducer(7, 1_000)})
    monkeypatch.setattr(task_writing, "_newest", {QUERY: (4, 5_000)})
    monkeypatch.setattr(gathering, "_counts", {(*QUERY, 0, "orders"): 3, (*QUERY, 0, "returns"): 2})


def test_no_attempt_is_older_than_a_batch_before() -> None:
    """The same batch may have been tried at any time, also by this process."""

    def first_attempt_ms(number: int, *, in_turn: bool = True) -> int:
        return WRITER._replace(in_turn=in_turn)._order(MicroBatch("query", number)).first_attempt_ms

    assert [first_attempt_ms(number) for number in (3, 4, 5, 9)] == [1_000, 1_000, 5_000, 5_000]
    assert first_attempt_ms(5, in_turn=False) == 1_000, "jobs of one name may run in any order"


def test_another_generation_is_asked_for() -> None:
    with pytest.raises(ClusterUnreachable, match="no broker of"):
        WRITER._order(MicroBatch("query", EPOCHS))


def test_brokers_that_do_not_tell_how_long_they_remember_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """As without DESCRIBE_CONFIGS: a lifetime taken for granted may be too long, and then rows come twice."""
    monkeypatch.setattr(preparing, "producer_state_ms", lambda _: None)
    client = ClusterClient(CLUSTER, "test-sink")
    with pytest.raises(UnfitTarget, match=r"doesn't tell how long it remembers .* grant DESCRIBE_CONFIGS"):
        preparing.prepared(client)


def test_brokers_that_do_not_answer_are_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Brokers that restart have taken no right away."""
    monkeypatch.setattr(broker_versions, "_each", lambda *_: iter(()))
    with pytest.raises(ClusterTrouble, match="no broker answers"):
        preparing.prepared(ClusterClient(CLUSTER, "test-sink"))


def rows(**columns: object) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({name: pa.array(values) for name, values in columns.items()})


def test_rows_without_a_partition_get_kafkas() -> None:
    order = WRITER._order(MicroBatch("query", 0))
    keys = ["a", "b", None, None, "e"]
    given = rows(value=list("vwxxz"), key=keys, partition=[None, 1, None, None, 0], left_out=[1] * 5)
    placed = _placed(order, given)
    assert placed.schema.names == ["key", "value", "partition"]
    first, *others = placed["partition"].to_pylist()
    assert first == (murmur2(b"a") & 0x7FFFFFFF) % 3
    assert others[0] == 1
    assert others[1] == others[2], "equal rows without a key have one place, in each attempt"
    assert others[3] == 0


def test_rows_name_their_topics() -> None:
    order = WRITER._replace(topic="")._order(MicroBatch("query", 0))
    placed = _placed(order, rows(value=list("vw"), key=list("ab"), topic=["orders", "returns"]))
    assert placed["partition"].to_pylist() == [
        (murmur2(b"a") & 0x7FFFFFFF) % 3,
        (murmur2(b"b") & 0x7FFFFFFF) % 2,
    ]
    with pytest.raises(RowsRefused, match="column topic: a row has none"):
        _placed(order, rows(value=["v", "w"], topic=["orders", None]))


@pytest.mark.parametrize(
    ("error", "arrives_as"),
    [
        (TransformFailed("mask", "us.a-b", 3, 12, "it is null: what"), TransformFailed),
        (TransformFailed("mask", "us.a-b", None, None, "it is null"), TransformFailed),
        (ConfigError("no file /x: key y", origin="mm2.properties", key="A.sasl.jaas.config"), ConfigError),
        (ConfigErrors([ConfigError("no", origin="option"), ConfigError("nor", origin="x")]), ConfigError),
        (RowsRefused("partition", "none: of it"), RowsRefused),
        (ClusterUnreachable("cluster B: gone"), ClusterUnreachable),
    ],
)
def test_a_tasks_own_error_arrives(error: SparkMirrorError, arrives_as: type[SparkMirrorError]) -> None:
    """Spark hands on a task's traceback, as text."""
    text = f"Job aborted: Traceback:\n  File x\n{type(error).__module__}.{type(error).__name__}: {error}\n\tat java"
    told = _told(Exception(text))
    assert (type(told), str(told)) == (arrives_as, str(error).splitlines()[0])
