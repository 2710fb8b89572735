"""A micro-batch written by tasks that ask for their own orders.

In a data source the driver runs no code of the sink before them. A worker process asks the cluster once, and keeps what
it learned for its next tasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from sparkmirror.arrow.row_columns import RowColumns
from sparkmirror.clock import wall_ms
from sparkmirror.config import ClusterConfig
from sparkmirror.errors import ClusterTrouble, ClusterUnreachable, RowsChanged, RowsInDoubt
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.wire.codecs import Codec
from sparkmirror.sink.agreement import AgreedProducer, MicroBatch, SinkAgreement
from sparkmirror.sink.appender import TaskAppender
from sparkmirror.sink.audit import audit
from sparkmirror.sink.columns import COLUMNS
from sparkmirror.sink.gathering import places, tell_topics
from sparkmirror.sink.order import AppendedRange, AppendOrder
from sparkmirror.sink.preparing import ASK_MS, prepared

GATHER = (
    "rows of one Kafka partition must be in one task: .repartition(n, 'partition') gathers them by a column, and "
    "foreachBatch(sm.Sink(...)) without one"
)
_ROLE = "sparkmirror-sink"
_Query = tuple[tuple[str, ...], str]
_lifetimes: dict[tuple[str, ...], tuple[int, int]] = {}
"""Producers' lifetime in ms, by cluster, and the time of asking."""
_producers: dict[tuple[_Query, int], AgreedProducer] = {}
_newest: dict[_Query, tuple[int, int]] = {}
"""Newest batch that this process has written, by query, and its task's start."""


class TaskWriter(NamedTuple):
    """Writer of a query's rows, the same in each task."""

    cluster: ClusterConfig
    topic: str
    codec: Codec
    in_turn: bool
    """True if the query's batches run in turn.

    Then no attempt is older than a task of an earlier batch.
    """

    def append(self, batch: MicroBatch, rows: Iterable[pa.RecordBatch]) -> tuple[AppendOrder, list[AppendedRange]]:
        """Append a task's rows that no earlier attempt has appended.

        Raises `RowsRefused`, `RowsChanged`, `AttemptFenced`, `UnfitTarget` and `ClusterUnreachable`.
        """
        began_ms = wall_ms()
        order = self._order(batch)
        appender = TaskAppender(order)
        try:
            for each in rows:
                if each.num_rows:
                    appender.take(_placed(order, each))
            ranges = appender.finish()
        except RowsInDoubt:
            raise
        except RowsChanged as error:
            raise RowsChanged(f"{error}; {GATHER}") from error
        finally:
            appender.close()
        if self.in_turn and any(each.is_fresh for each in ranges):
            _newest[self.cluster.bootstrap_servers, batch.query] = batch.number, began_ms
        return order, ranges

    def _order(self, batch: MicroBatch) -> AppendOrder:
        servers = self.cluster.bootstrap_servers
        query = servers, batch.query
        scope = query, batch.generation
        if scope not in _producers or wall_ms() - _lifetimes[servers][1] > ASK_MS:
            client = ClusterClient(self.cluster, _ROLE)
            try:
                _lifetimes[servers] = prepared(client), wall_ms()
                _producers[scope] = SinkAgreement(client, batch.query, batch.generation).producer()
            except ClusterTrouble as error:
                raise ClusterUnreachable(f"cluster {self.cluster.alias}: {error}") from error
            finally:
                client.close()
        producer = _producers[scope]
        number, began_ms = _newest.get(query, (0, 0))
        return AppendOrder(
            cluster=self.cluster,
            batch=batch,
            producer_id=producer.producer_id,
            codec=self.codec,
            topic=self.topic,
            state_ms=_lifetimes[servers][0],
            first_attempt_ms=max(producer.created_ms, began_ms if self.in_turn and number < batch.number else 0),
        )


def audit_tasks(order: AppendOrder, ranges: Sequence[AppendedRange]) -> None:
    """Compare the leaders' counts with the tasks', in the driver.

    Raises `RowsChanged` and `ClusterUnreachable`.
    """
    client = ClusterClient(order.cluster, _ROLE)
    try:
        batch = order.batch
        topics = () if order.topic else SinkAgreement(client, batch.query, batch.generation).topics()
        audit(client, order, ranges, topics)
    except RowsInDoubt:
        raise
    except RowsChanged as error:
        raise RowsChanged(f"{error}; {GATHER}") from error
    except ClusterTrouble as error:
        raise ClusterUnreachable(f"cluster {order.cluster.alias}: {error}") from error
    finally:
        client.close()


def _placed(order: AppendOrder, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows' columns for records, each row with its partition."""
    names = [name for name in COLUMNS if name in batch.schema.names and not (order.topic and name == "topic")]
    batch = batch.select(names)
    columns = RowColumns.of(batch, 0)
    topics = columns.topic if columns.topic is not None else np.full(batch.num_rows, order.topic, object)
    given = columns.partition
    if given is not None and int(given.min()) >= 0:
        tell_topics(order, set(topics))
        return batch
    chosen = places(order, topics, RowColumns.of(batch.select([name for name in names if name in ("key", "value")]), 0))
    if given is not None:
        chosen = np.where(given < 0, chosen, given)
    kept = batch.select([name for name in names if name != "partition"])
    return pa.RecordBatch.from_arrays([*kept.columns, pa.array(chosen)], names=[*kept.schema.names, "partition"])
