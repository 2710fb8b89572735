"""A mirror in a notebook or a job: start it, wait for it, ask it, stop it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import reduce
from types import MappingProxyType, TracebackType
from typing import Any, Self

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit

from sparkmirror.api.caught_up import CatchUp
from sparkmirror.api.configured import File, Properties, Route, chosen, configured, only
from sparkmirror.api.shown_status import MirrorStatus, published_status, status_of
from sparkmirror.api.spark import session_for
from sparkmirror.api.status_frames import group_frame, loss_frame
from sparkmirror.api.verification import Verification, verify_flows
from sparkmirror.config import FlowConfig, MirrorConfig
from sparkmirror.config.model import TransformQuery
from sparkmirror.config.transforms import REROUTED
from sparkmirror.errors import ConfigError, CopyIncomplete
from sparkmirror.frames import Options, offset_runs, receipts
from sparkmirror.mirror.engine.mirror import Mirror as Engine
from sparkmirror.mirror.sync.application_translator import Translation
from sparkmirror.mirror.sync.turn_translator import translator_of
from sparkmirror.policy.java_regex import compile_java
from sparkmirror.queries.query_worker import Change
from sparkmirror.queries.runner import QueryRunner

STOP_S = 60.0
"""Seconds to wait in `stop`, while batches in flight are acknowledged."""
_LOOK_S = 0.2
_SHOWN = 5
"""Partitions that an error names."""


class Mirror:
    """A mirror of a file, of properties, or from one cluster to another.

        with sm.Mirror("mm2.properties") as mirror:
            mirror.await_caught_up(timeout=600)

    `config` is a file as `sparkmirror run` takes it, or a mapping with MirrorMaker 2's keys; `properties` replace
    single keys. `source` and `target` (bootstrap servers) with `topics` and `groups` are a flow without a file; the
    copies' names begin with `source.` unless `replication.policy.class` says otherwise. `spark` is the session to
    work in: else the active one, else a new one, which stays open. `once`: copy up to the present ends.

    The mirror works in a thread between `start` and `stop`, as a context manager too. If the mirror fails, the next
    call raises the error, once. Questions (`status`, `losses`, `groups`, `verify`, `receipts`, `offset_map`,
    `translate`) also serve a mirror that runs elsewhere.
    """

    def __init__(
        self,
        config: File | Properties | None = None,
        *,
        source: str = "",
        target: str = "",
        topics: str | Sequence[str] = (),
        groups: str | Sequence[str] = (),
        properties: Properties = MappingProxyType({}),
        spark: SparkSession | None = None,
        once: bool = False,
    ) -> None:
        """Read the configuration. Raises `ConfigError`; no cluster is asked."""
        self.config: MirrorConfig = configured(config, Route(source, target, topics, groups), properties)
        self._once = once
        self._functions: dict[str, Change] = {}
        self._session = spark
        self._engine: Engine | None = None
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def transform(
        self, topics: str | Sequence[str], change: Change, *, name: str = "transform", flow: str | None = None
    ) -> Self:
        """Have a Spark query copy topics and change their records; return this mirror.

            mirror.transform("orders.*", lambda records: records.where("key is not null"))

        `topics` are regexes of source topics. `change` gets each micro-batch as a DataFrame with the columns of Spark's
        Kafka source, `headers` among them, and the topics' names at the target; it returns rows with `topic`, `value`,
        and what else shall be kept. It must give the same rows for the same records. Rows are appended once, those that
        keep `partition` and `offset` in order. Other topics are copied as before. Raises `ConfigError`.
        """
        if self._thread is not None:
            raise RuntimeError("this mirror was started before: name its transforms first")
        patterns = (topics,) if isinstance(topics, str) else tuple(topics)
        for pattern in patterns:
            try:
                compile_java(pattern)
            except ValueError as error:
                raise ConfigError(str(error), origin="transform", key=pattern) from None
        query = TransformQuery(name=name, topics=patterns)
        flows = {each.name for each in chosen(self.config, flow)}
        if name == REROUTED.name or any(
            query.name == known.name for each in self.config.flows for known in each.transform_queries
        ):
            raise ConfigError("there is a query of this name", origin="transform", key=name)
        self._functions[name] = change
        self.config = self.config.model_copy(
            update={
                "flows": tuple(
                    each.model_copy(update={"transform_queries": (*each.transform_queries, query)})
                    if each.name in flows
                    else each
                    for each in self.config.flows
                )
            }
        )
        return self

    # --- the work -------------------------------------------------------------------------------

    def start(self) -> Self:
        """Begin to mirror in a thread, and return at once.

        A mirror that was started can't be started again.
        """
        if self._thread is not None:
            raise RuntimeError("this mirror was started before: make another one")
        queries = QueryRunner(self._functions) if any(flow.transform_queries for flow in self.config.flows) else None
        self._engine = Engine(self.config, once=self._once, spark=self.spark, queries=queries)
        self._thread = threading.Thread(target=self._run, args=(self._engine,), name="sparkmirror", daemon=True)
        self._thread.start()
        return self

    def stop(self, timeout: float = STOP_S) -> None:
        """End the mirror in order, with all records in flight acknowledged.

        Raises the mirror's error, if it failed, and `TimeoutError`.
        """
        if self._engine is None or self._thread is None:
            return
        self._engine.stop()
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise TimeoutError(f"the mirror has not ended within {timeout:,.0f} s; it still tries to")
        self._raise()

    def await_caught_up(self, timeout: float | None = None) -> None:
        """Wait until all records that the sources have now are copied.

        Later records don't count. Raises `TimeoutError` with the partitions that are behind, the mirror's error if the
        mirror fails, and `CopyIncomplete` if the mirror was stopped before, or a source no longer has the records.
        """
        if self._engine is None or self._thread is None:
            raise RuntimeError("the mirror is not started: use `with`, or `start`")
        goal = CatchUp(self.config.flows)
        until = None if timeout is None else time.monotonic() + timeout
        while missing := goal.missing(self._engine.observer.snapshot(newest=True)):
            self._raise()
            if goal.gone:
                raise CopyIncomplete(f"not known to be copied, and gone from the source: {_few(goal.gone)}")
            if not self._thread.is_alive():
                raise CopyIncomplete(f"the mirror has ended before: {_few(missing)}")
            if until is not None and time.monotonic() > until:
                raise TimeoutError(f"not caught up after {timeout:,.0f} s: {_few(missing)}")
            self._thread.join(_LOOK_S)
        self._raise()

    @property
    def is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _run(self, engine: Engine) -> None:
        try:
            engine.run()
        except BaseException as error:
            self._error = error

    def _raise(self) -> None:
        """Raise the mirror's error, once."""
        error, self._error = self._error, None
        if error is not None:
            raise error

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # --- questions ------------------------------------------------------------------------------

    @property
    def spark(self) -> SparkSession:
        """The session that the mirror and its DataFrames use."""
        self._session = session_for(self.config, self._session)
        return self._session

    @property
    def flows(self) -> tuple[str, ...]:
        """Names of the flows, as `source->target`."""
        return tuple(flow.name for flow in self.config.flows)

    def status(self) -> MirrorStatus:
        """Return state and figures of each flow.

        If this mirror isn't running, these are what a running one publishes. Raises the mirror's error, if it failed,
        and `ClusterUnreachable`.
        """
        self._raise()
        if self._engine is not None and self.is_running:
            return status_of(self._engine.observer.snapshot(newest=True))
        return published_status(self.config.flows)

    def losses(self) -> DataFrame:
        """Return the loss ledgers: a row for each entry. Raises `ClusterUnreachable`."""
        self._raise()
        return loss_frame(self.spark, self.config.flows)

    def groups(self) -> DataFrame:
        """Return consumer groups' offsets and lags at both clusters (`GROUPS`)."""
        return group_frame(self.spark, self.status())

    def verify(self, **options: Any) -> Verification:
        """Compare sources and targets record by record.

        Keywords are the fields of `frames.Options`, such as `topics` and `sample`.
        """
        self._raise()
        return verify_flows(self.spark, self.config, Options(**options))

    def receipts(self, flow: str | None = None, *, streaming: bool = False) -> DataFrame:
        """Return the records copied in each minute (`frames.RECEIPTS`), with the flow."""
        return self._of_flows(flow, lambda each: receipts(self.spark, each, streaming=streaming))

    def offset_map(self, flow: str | None = None) -> DataFrame:
        """Return the exact offset map in runs (`frames.OFFSET_RUNS`), with the flow."""
        return self._of_flows(flow, lambda each: offset_runs(self.spark, each))

    def translate(
        self, topic: str, partition: int, offset: int, *, reverse: bool = False, flow: str | None = None
    ) -> Translation:
        """Translate a consumer's next offset to the other cluster.

        `Translator` is made for many offsets. Raises `ClusterUnreachable`.
        """
        self._raise()
        with translator_of(only(self.config, flow)) as translator:
            return translator.translate(topic, partition, offset, reverse=reverse)

    def _of_flows(self, flow: str | None, frame: Callable[[FlowConfig], DataFrame]) -> DataFrame:
        self._raise()
        frames = [frame(each).select(lit(each.name).alias("flow"), "*") for each in chosen(self.config, flow)]
        return reduce(DataFrame.unionByName, frames)

    def __repr__(self) -> str:
        return f"<sparkmirror.Mirror {', '.join(self.flows)} ({'running' if self.is_running else 'not running'})>"

    def _repr_html_(self) -> str:
        if self.is_running:
            return self.status()._repr_html_()
        return f"<code>{repr(self).strip('<>')}</code>"


def _few(lines: Sequence[str]) -> str:
    more = f"; and {len(lines) - _SHOWN:,} more" if len(lines) > _SHOWN else ""
    return "; ".join(lines[:_SHOWN]) + more
