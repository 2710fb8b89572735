"""All queries of a mirror's flows, a thread each."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from pyspark import SparkContext
from pyspark.sql import DataFrame

from sparkmirror.config.model import TransformQuery
from sparkmirror.errors import RowsRefused
from sparkmirror.events import Event
from sparkmirror.mirror.engine.flow_driver import FlowDriver
from sparkmirror.mirror.engine.session import in_one_line
from sparkmirror.queries.query_worker import Change, QueryWorker

STOP_S = 20.0
"""Seconds for present micro-batches at an orderly end."""
_CANCEL_S = 5.0

log = logging.getLogger(__name__)


class _Running(NamedTuple):
    worker: QueryWorker
    thread: threading.Thread


class QueryRunner:
    """Runner for all queries, as the engine's `Queries` wants.

    `functions` has a function by name for each query without SQL.
    """

    def __init__(self, functions: Mapping[str, Change] = MappingProxyType({})) -> None:
        self._functions = functions
        self._running: dict[tuple[str, str], _Running] = {}

    def keep(self, driver: FlowDriver, spark: SparkContext) -> None:
        """Begin a flow's queries, unless they are at work."""
        names = {query.name for query in driver.flow.transform_queries}
        self._end([name for name in self._running if name[0] == driver.name and name[1] not in names])
        for query in driver.flow.transform_queries:
            known = self._running.get((driver.name, query.name))
            if (
                known is not None
                and known.worker.driver is driver
                and (known.thread.is_alive() or known.worker.is_done)
            ):
                continue
            self._end([(driver.name, query.name)] if known is not None else [])
            worker = QueryWorker(driver, query.name, self._change(query), spark)
            thread = threading.Thread(target=_run, args=(worker,), name=f"query {query.name}", daemon=True)
            self._running[driver.name, query.name] = _Running(worker, thread)
            thread.start()

    def are_done(self, driver: FlowDriver) -> bool:
        """True if all the flow's queries are done with `once`."""
        names = [(driver.name, query.name) for query in driver.flow.transform_queries]
        return all(name in self._running and self._running[name].worker.is_done for name in names)

    def close(self) -> None:
        """End all queries; present micro-batches have some seconds."""
        self._end(list(self._running))

    def _end(self, names: Sequence[tuple[str, str]]) -> None:
        ended = [self._running.pop(name) for name in names]
        for running in ended:
            running.worker.stop()
        for running in ended:
            running.thread.join(STOP_S)
            if running.thread.is_alive():
                running.worker.cancel()
                running.thread.join(_CANCEL_S)

    def _change(self, query: TransformQuery) -> Change:
        if query.is_connect:
            return lambda records: records  # Connect's transforms come before any query
        return _of_sql(query) if query.sql else self._functions[query.name]


def _run(worker: QueryWorker) -> None:
    try:
        worker.run()
    except Exception as error:
        log.exception("flow %s: query %s: %s", worker.driver.name, worker.name, error, extra=Event.QUERY_FAILED.extra)


def _of_sql(query: TransformQuery) -> Change:
    def change(records: DataFrame) -> DataFrame:
        records.createOrReplaceTempView("records")
        try:
            return records.sparkSession.sql(query.sql)
        except Exception as error:
            raise RowsRefused("sql", f"query {query.name}: Spark refuses it: {in_one_line(error)}") from error

    return change
