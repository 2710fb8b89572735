"""Work through a flow's query: plan a micro-batch, run it in Spark, note its end.

The process with the flow's lease has a thread for each query. The next process may repeat the work: plans are agreed,
and the sink appends each row once.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, create_map, lit

from sparkmirror.clock import now_s
from sparkmirror.config import FlowConfig
from sparkmirror.errors import (
    HandledError,
    RecordsGone,
    RowsChanged,
    RowsRefused,
    SparkMirrorError,
    TransformFailed,
)
from sparkmirror.events import Event
from sparkmirror.exact.durable.claims import TargetPartition
from sparkmirror.exact.durable.losses import Loss, LossLedger, losses_topic
from sparkmirror.exact.durable.query_places import QueryPlaces, plans_topic
from sparkmirror.exact.position.cause import Cause, cause_of_loss
from sparkmirror.exact.position.route import PartitionPair
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.new_topics import NewTopicSpec
from sparkmirror.kafka.cluster.refusal_lines import refusal
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.kafka.wire.codecs import Codec
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.mirror.engine.flow_driver import FlowDriver
from sparkmirror.mirror.engine.session import in_one_line
from sparkmirror.mirror.sync.own_settings import safe_settings
from sparkmirror.mirror.sync.topics import MirroredTopic
from sparkmirror.pump.copies import wanted_codec
from sparkmirror.pump.retry import Retry
from sparkmirror.queries.begun_writing import BegunBatch, BegunWriter, earlier_records
from sparkmirror.queries.changed_rows import blamed, halt_for_changed_rows
from sparkmirror.queries.gone_records import GoneRecords, gone_records
from sparkmirror.queries.kept_places import keeps_places
from sparkmirror.queries.plan_log import PlanLog, PlannedBatch
from sparkmirror.queries.progress import QueryProgress, end_wanted
from sparkmirror.queries.query_logs import QueryLogs
from sparkmirror.queries.source_ranges import (
    Halt,
    NextRanges,
    QueriedLog,
    due_logs,
    next_ranges,
    present,
    shortened,
    shrunk_losses,
    unknown_end,
)
from sparkmirror.sink.agreement import MicroBatch
from sparkmirror.sink.order import AppendedRange
from sparkmirror.sink.source_offsets import read_runs
from sparkmirror.sink.writing import BatchWriter
from sparkmirror.source.frames import read_parts, table_schema
from sparkmirror.source.read_options import RECORDS, ReadOptions
from sparkmirror.source.source_logs import OffsetRange, SourceLogs
from sparkmirror.transforms import Chain, apply_to_batches, parse_chain

Change = Callable[[DataFrame], DataFrame]
"""Function from a micro-batch's records to rows."""

LZ4 = Codec(3)
PAUSED = Halt(Cause.PAUSED, "paused")
IDLE_S = 0.5
GONE_S = 10.0
"""Time for which brokers must miss a topic; a starting broker knows no topics."""
MOST_FAILURES = 5
"""Failures in a row with which a query ends, with `once`.

Waits for a leader, or for a topic that can't be seen, don't count: pumps have patience with them, too.
"""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S, _DOUBLINGS = 0.5, 30.0, 6
_ROLE = "sparkmirror-query"
_CONNECT_S = 15.0
"""Most seconds for an admin request."""

log = logging.getLogger(__name__)


class QueryHalted(HandledError):
    """Error for a query that waits for an operator; `halt` is told of its partitions."""

    def __init__(self, halt: Halt) -> None:
        super().__init__(halt.reason)
        self.halt = halt


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenBatch:
    """A micro-batch's rows at the target."""

    appended: Mapping[TopicPartition, AppendedRange]
    runs: Mapping[TopicPartition, bytes]
    """Source offsets of the rows, as `SourceOffsets.runs` has them."""
    keeps_places: bool


class QueryWorker:
    """A query at work for one flow and lease; `run` in a thread of its own."""

    def __init__(self, driver: FlowDriver, name: str, change: Change, spark: SparkContext) -> None:
        self.driver = driver
        self.name = name
        self.is_done = False
        """True with `once` when all records up to the wanted ends are copied."""
        self.stopping = threading.Event()
        self._change = change
        self._session = SparkSession(spark).newSession()
        self._flow: FlowConfig = driver.flow
        self._chain = parse_chain(self._flow.connect_transforms)
        self._held_up: dict[TopicPartition, Halt] = {}
        """Partitions that can't be planned now."""
        self._missing_since: dict[TopicPartition, float] = {}
        """Partitions of a begun micro-batch that the source misses, with times."""
        self._noted: set[tuple[str, str]] = set()
        """Losses that are in the ledger: keys and words."""
        self._failures = 0
        """Failures since the last micro-batch, or look at logs without new records."""
        self._retry = Retry(now_s())
        """Patience with partitions that have no leader."""
        self._routed_to: dict[str, int] = {}
        """Existing topics to which transforms send records by name, with partitions."""
        self._group = f"{driver.name} {name}"
        self._progress = QueryProgress(driver)
        self._codec = wanted_codec(self._flow.produce) or LZ4

    def run(self) -> None:
        """Copy until stopped, or until another process has the flow."""
        self._failures = counted = 0
        while self._goes_on():
            try:
                if self._copy():
                    return
            except Exception as error:  # Spark's own errors have no common root; any may pass
                waits = _waits(error)
                counted = (counted if self._failures else 0) + (not waits)
                self._failures += 1
                self._told(error)
                is_over = self._retry.is_out_of_patience(now_s()) if waits else counted >= MOST_FAILURES
                if self.driver.topics.ends is not None and is_over:
                    self.is_done = True
                    return
            if self.stopping.wait(min(_FIRST_PAUSE_S * 2 ** min(self._failures, _DOUBLINGS), _LONGEST_PAUSE_S)):
                return

    def _told(self, error: Exception) -> None:
        known = isinstance(error, ConnectionError | SparkMirrorError | QueryHalted)
        words = str(error) if known else in_one_line(error)
        log.warning(
            "flow %s: query %s: %s",
            *self._who,
            words,
            exc_info=None if known else error,
            extra=Event.QUERY_FAILED.extra,
        )
        self._progress.see(self._routes(self._topics()), {})  # the failure may be older than the first look
        self._progress.halt_all(_halt_of(error, words))

    def stop(self) -> None:
        """Let `run` return after the present micro-batch."""
        self.stopping.set()

    def cancel(self) -> None:
        """End the present micro-batch; the next process repeats the micro-batch."""
        self._session.sparkContext.cancelJobGroup(self._group)

    @property
    def _who(self) -> tuple[str, str]:
        return self._flow.name, self.name

    def _goes_on(self) -> bool:
        return not self.stopping.is_set() and self.driver.held()

    def _copy(self) -> bool:
        """Copy micro-batch after micro-batch; True when `once` has nothing left."""
        self._session.sparkContext.setJobGroup(self._group, f"query {self.name} of {self._flow.name}")
        writer = BatchWriter(self._flow.target, "", self._codec, is_gathered=False, in_order=True)
        options = ReadOptions(
            table=RECORDS,
            cluster=self._flow.source,
            include_headers=True,
            read_committed=self._flow.fetch.isolation_level == "read_committed",
        )
        source = SourceLogs(options)
        target = ClusterClient(self._flow.target, _ROLE)
        ledger = LossLedger(TopicLog(target, losses_topic(self._flow.source.alias)))
        logs = QueryLogs(source, target, ledger)
        self._routed_to = {}  # one of them may have been deleted since
        try:
            self._create_plans()
            plans = PlanLog(target, plans_topic(self._flow.source.alias), self.name)
            while self._goes_on():
                topics = self._topics()
                newest = plans.newest()
                is_finished = newest is not None and plans.is_finished(newest)
                before = plans.reached(newest) if newest is not None and is_finished else newest
                there = self._look(topics, logs, before, plans)
                if before is not None and is_finished:
                    self._note(shrunk_losses(before, _only_at_target(topics), plans.ends), ledger)
                if logs.lost_elsewhere:
                    self._note(logs.lost_elsewhere, ledger)
                    raise QueryHalted(_halt_for(logs.lost_elsewhere[0]))
                everything = {route.source for route in self._routes(topics)}
                known = everything if before is None else everything | before.ranges.keys()
                copies = {at: self.driver.topics.rules.remote_name(at[0]) for at in known}
                if (halt := logs.created_again(before, plans, copies)) is not None:
                    raise QueryHalted(halt)
                if (halt := unknown_end(before, there, logs.held_up, self._flow)) is not None:
                    raise QueryHalted(halt)
                is_taken_up = newest is not None and not is_finished
                if newest is None or is_finished:
                    wanted = there.keys() if self.driver.topics.ends is None else self.driver.topics.ends.keys()
                    due = due_logs(before, there, wanted - self._held_up.keys(), self._flow)
                    following = next_ranges(before, due, self._flow)
                    self._note(following.losses, ledger)
                    if following.batch is None:
                        if self._rest(before, following):
                            return True
                        continue
                    newest, is_own = plans.agree(replace(following.batch, begins=logs.target_ends))
                    if plans.is_finished(newest):  # by another process, while this one stood still
                        continue
                    is_taken_up = not is_own
                    self._progress.halt({**following.halted, **self._held_up})
                    there = {at: log._replace(cut_at=None) for at, log in there.items()}
                begun, disowned = shortened(newest, there, self._flow.loss)
                ranges, losses = present(begun, there, self._flow.loss)
                absent = self._demand_topics(newest, there, source)
                self._note(logs.lost.values(), ledger)
                reached = partial(self._reached, newest, plans)
                gone = [*gone_records(begun, there, losses, reached), *self._copies_left(absent, newest, target)]
                parts = [source.range_of(at, *span, begun.ranges[at].epochs) for at, span in sorted(ranges.items())]
                writer.expect(logs.begins(newest), plans.first_attempt_ms(newest), is_repeated=is_taken_up)
                try:
                    written = self._write(
                        writer, parts, options, newest, topics, gone, disowned, ledger, is_taken_up=is_taken_up
                    )
                except RowsChanged as error:
                    raise self._halted_by(error, disowned, gone, writer, newest, ledger) from error
                ends = logs.ends_after(written.appended.values())
                plans.demand_newest(newest)
                plans.place(self._places(newest, begun, there, written, plans), ends)
                plans.finish(newest)
                self._failures = 0
                self._retry.progressed()
                read = {(each.topic, each.partition): each.end - each.first for each in parts}
                self._progress.take(begun, read, written.appended.values())
            return False
        finally:
            source.close()
            target.close()

    def _halted_by(
        self,
        error: RowsChanged,
        disowned: list[Loss],
        gone: list[GoneRecords],
        writer: BatchWriter,
        batch: PlannedBatch,
        ledger: LossLedger,
    ) -> Exception:
        """Return the error for rows that only an earlier attempt can have appended."""
        copies = {route.target_topic for route in self._routes(self._topics())}
        lost = blamed(error.place, disowned, copies)
        self._note(lost, ledger)
        written = writer.topics(MicroBatch(self._id, batch.number))
        halt = halt_for_changed_rows(error, lost, gone, copies, set(written))
        return error if halt is None else QueryHalted(halt)

    def _copies_left(
        self, absent: Iterable[TopicPartition], batch: PlannedBatch, target: ClusterClient
    ) -> list[GoneRecords]:
        """Return the records of topics that are gone for good: the copies stay."""
        names = {at: self.driver.topics.rules.remote_name(at[0]) for at in absent}
        topics = target.metadata(set(names.values())) if names else {}
        return [
            GoneRecords(
                at=at, target=(name, at[1]), begin=batch.ranges[at].begin, end=batch.ranges[at].end, is_all=True
            )
            for at, name in names.items()
            if not topics[name].error and topics[name].topic_id.hex() == batch.ranges[at].target_id
        ]

    @staticmethod
    def _reached(batch: PlannedBatch, plans: PlanLog, target: TargetPartition) -> int:
        places = plans.last_places(target, batch.number)
        return 0 if places is None else places.progress.downstream

    @staticmethod
    def _known(gone: GoneRecords, ledger: LossLedger) -> list[Loss]:
        return [] if gone.log is None else ledger.known(gone.log.target_id, gone.at[1])

    def _tell(self, gone: Iterable[GoneRecords], copied: Mapping[TopicPartition, int], ledger: LossLedger) -> None:
        """Note the losses among gone records; raises `QueryHalted` for a halting loss."""
        losses = []
        for each in gone:
            known = self._known(each, ledger)
            if (loss := each.loss(copied.get(each.target, 0), known, self._flow.loss)) is not None:
                losses.append(loss)
        self._note(losses, ledger)
        if halting := [loss for loss in losses if loss.action == "halted"]:
            raise QueryHalted(_halt_for(halting[0]))

    def _admin(self) -> ClusterAdmin:
        return ClusterAdmin.connect(self._flow.target, _ROLE, min(self._flow.admin_timeout_ms / 1000, _CONNECT_S))

    def _create_plans(self) -> None:
        with self._admin() as admin:
            factor = self._flow.replication_factor
            admin.create_compacted_topic(plans_topic(self._flow.source.alias), 1, factor, wished=safe_settings(factor))

    def _note(self, losses: Iterable[Loss], ledger: LossLedger) -> None:
        for loss in losses:
            if (loss.key, loss.words) not in self._noted:
                ledger.record(loss)  # if that fails, nothing is copied past the loss
                log.warning("flow %s: %s", self._flow.name, loss.words, extra=Event.LOSS.extra)
                self._noted.add((loss.key, loss.words))

    def _rest(self, newest: PlannedBatch | None, following: NextRanges) -> bool:
        """Wait for new records; True to end, as with `once`.

        As pumps do, `once` waits for a leader, though not for long.
        """
        self._failures = 0
        copied, halted = newest.ends if newest else {}, {**following.halted, **self._held_up}
        self._progress.stand(copied, halted)
        paused = any(halt.cause is Cause.PAUSED for halt in self._held_up.values())
        causes = {halt.cause for at, halt in halted.items() if copied.get(at, 0) < end_wanted(self.driver, at)}
        if Cause.NO_LEADER not in causes:
            self._retry.progressed()
        is_awaited = Cause.NO_LEADER in causes and not self._retry.is_out_of_patience(now_s())
        self.is_done = self.driver.topics.ends is not None and not paused and not is_awaited
        return self.is_done or self.stopping.wait(IDLE_S)

    def _topics(self) -> dict[str, MirroredTopic]:
        """Return the query's topics on both sides, by the source's name."""
        topics = self.driver.topics
        return {
            topic.source.name: topic
            for topic in topics.newest.mirrored
            if topics.queried.query_of(topic.source.name) == self.name
        }

    def _look(
        self,
        topics: Mapping[str, MirroredTopic],
        logs: QueryLogs,
        before: PlannedBatch | None,
        plans: PlanLog,
    ) -> dict[TopicPartition, QueriedLog]:
        """Return the logs of all partitions with leaders, and note the others.

        In front of a partition's first range the topics count, too, to which transforms send its records by name.
        """
        routes = self._routes(topics)
        begun = {} if before is None else {at: each for at, each in before.ranges.items() if each.target_id}
        names = {
            route: {route.target_topic} if route.source in begun else self._chain.targets_of(route.target_topic)
            for route in routes
        }
        there = logs.look(names, before, plans, lambda at: end_wanted(self.driver, at))
        self._progress.see(routes, logs.ends)
        paused = {at: PAUSED for at in (route.source for route in routes) if self._is_paused(at[0])}
        self._held_up = {**paused, **logs.held_up}
        return there

    def _routes(self, topics: Mapping[str, MirroredTopic]) -> list[PartitionPair]:
        return [
            PartitionPair(name, topic.remote.name, partition)
            for name, topic in sorted(topics.items())
            for partition in topic.partitions
        ]

    def _is_paused(self, topic: str) -> bool:
        return self.driver.reports.heard.is_paused(topic)

    def _demand_topics(
        self, batch: PlannedBatch, there: Mapping[TopicPartition, QueriedLog], logs: SourceLogs
    ) -> set[TopicPartition]:
        """Return the batch's partitions that the source no longer has.

        Raises `RecordsGone` for a range that can't be read now, but perhaps later.
        """
        missing = {at for at, each in batch.ranges.items() if each.begin < each.end and at not in there}
        now = now_s()
        self._missing_since = {at: self._missing_since.get(at, now) for at in logs.gone(missing)}
        gone = {at for at, since in self._missing_since.items() if now - since > GONE_S}
        if waiting := sorted(missing - gone):
            raise RecordsGone(
                f"{waiting[0][0]} is no topic of this query any more, has no leader, or can't be seen, and micro-batch "
                f"{batch.number:,} with its records is begun: it waits until the topic is back"
            )
        for topic in sorted({topic for topic, _ in gone}):
            log.warning(
                "flow %s: query %s: the source has no topic %s any more: micro-batch %d ends without the rest of its "
                "records",
                *self._who,
                topic,
                batch.number,
                extra=Event.LOSS.extra,
            )
        return gone

    def _write(
        self,
        writer: BatchWriter,
        ranges: list[OffsetRange],
        options: ReadOptions,
        planned: PlannedBatch,
        topics: dict[str, MirroredTopic],
        gone: list[GoneRecords],
        disowned: list[Loss],
        ledger: LossLedger,
        *,
        is_taken_up: bool,
    ) -> WrittenBatch:
        self._create_routed(topics)
        names = {name: topic.remote.name for name, topic in topics.items()}
        batch = MicroBatch(self._id, planned.number)
        is_compacted = any(each.compacted for each in ranges)
        copied = earlier_records(
            writer, batch, lacks=bool(gone or disowned), is_taken_up=is_taken_up, is_compacted=is_compacted
        )
        if not ranges and not copied:
            self._tell(gone, {}, ledger)
            return WrittenBatch(appended={}, runs={}, keeps_places=True)
        records = _records(self._session, options, ranges, names)
        if any(self._chain.may_change(name) for name in names.values()):
            records = _transformed(records, self._chain)
        rows = self._changed(records)
        are_places_kept = self._chain.is_order_keeping and keeps_places(records, rows)
        begun = BegunBatch(
            batch=batch,
            gone=gone,
            compacted={(names[each.topic], each.partition): each.end - each.first for each in ranges if each.compacted},
            copied=copied,
            is_exact=are_places_kept and not disowned,
            halts=any(each.halts(self._flow.loss) for each in gone),
            lost={each.target: each.lost(self._known(each, ledger)) for each in gone},
        )
        tell = partial(self._tell, ledger=ledger)
        appended = BegunWriter(writer, tell).write(rows if ranges else None, begun)
        return WrittenBatch(
            appended={(each.topic, each.partition): each for each in appended},
            runs=begun.runs(writer.runs, appended),
            keeps_places=are_places_kept,
        )

    def _places(
        self,
        planned: PlannedBatch,
        batch: PlannedBatch,
        there: Mapping[TopicPartition, QueriedLog],
        written: WrittenBatch,
        plans: PlanLog,
    ) -> Iterator[QueryPlaces]:
        """Yield the places of a batch's records, by partition, as far as the batch got.

        Places are not known behind records without places, or where other producers' records are between.
        """
        for at, each in batch.ranges.items():
            log = there.get(at)
            if planned.ranges[at].begin == planned.ranges[at].end or (log and log.target_id != each.target_id):
                continue
            target = bytes.fromhex(each.target_id), at[1]
            before = plans.last_places(target, batch.number)
            copy = log.route.target if log else (self.driver.topics.rules.remote_name(at[0]), at[1])
            appended = written.appended.get(copy)
            if log is None and appended is not None and not appended.gone:
                appended = None  # these are other topics' records
            # Of a topic that is gone, or is another one since, only an earlier attempt has copied records.
            known_to = each.begin + (0 if appended is None else appended.gone)
            copied = each if log and log.is_of(each) else each.up_to(known_to)
            told = written.runs.get(copy, b"") if appended is not None else b""
            end = 0 if before is None else before.progress.downstream
            is_known = written.keeps_places and (before is None or before.is_known)
            if appended is not None:
                in_one = appended.last_offset - appended.first_offset + 1 == appended.records
                is_known = is_known and bool(told) and in_one and (before is not None or not appended.first_offset)
                end = appended.first_offset
            yield QueryPlaces(
                query=self.name,
                target=target,
                batch=batch.number,
                part=0,
                source_topic_id=bytes.fromhex(each.topic_id),
                sequence=0 if before is None else before.sequence + before.records,
                downstream=end,
                runs=read_runs(told) if is_known else (),
                upstream_end=copied.end,
                is_known=is_known,
                epochs=copied.epochs,
            )

    def _create_routed(self, topics: Mapping[str, MirroredTopic]) -> None:
        """Create the topics to which transforms send records by name.

        A topic gets as many partitions as the largest of the records' own topics.
        """
        due: dict[str, int] = {}
        for topic in topics.values():
            for name in self._chain.targets_of(topic.remote.name) - {topic.remote.name}:
                due[name] = max(due.get(name, 0), len(topic.partitions))
        if due == self._routed_to:
            return
        factor = self._flow.replication_factor
        with self._admin() as admin:
            there = admin.topics(due)
            specs = [NewTopicSpec(name, count, factor) for name, count in due.items() if name not in there]
            grown = {name: due[name] for name, topic in there.items() if len(topic.partitions) < due[name]}
            answers = (admin.creations(specs) if specs else {}) | (admin.create_partitions(grown) if grown else {})
        for name, (code, words) in answers.items():
            if code and code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise RowsRefused("topic", f"{name} can't be created, or get partitions: {refusal(code, words)}")
        self._routed_to = due

    def _changed(self, records: DataFrame) -> DataFrame:
        try:
            return self._change(records)
        except SparkMirrorError:
            raise
        except Exception as error:
            raise RowsRefused(self.name, f"the query's own function failed: {in_one_line(error)}") from error

    @property
    def _id(self) -> str:
        """The query's name for brokers: another flow or source is another query."""
        return f"{self._flow.name}|{self.name}|{self.driver.cluster_ids[self._flow.source.alias]}"


def _records(
    session: SparkSession, options: ReadOptions, ranges: list[OffsetRange], names: dict[str, str]
) -> DataFrame:
    """Return ranges' records, with the columns of Spark's Kafka source.

    Topics have the names at the target.
    """
    frame = read_parts(session, options, ranges, table_schema(session, options))
    if not names:
        return frame
    renamed = create_map([lit(text) for pair in sorted(names.items()) for text in pair])
    return frame.withColumn("topic", renamed[col("topic")])


def _transformed(records: DataFrame, chain: Chain) -> DataFrame:
    """Return what Connect's transforms make of the records."""

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return apply_to_batches(batches, chain)

    return records.mapInArrow(rows, records.schema)


def _only_at_target(topics: Mapping[str, MirroredTopic]) -> Iterator[tuple[PartitionPair, bytes]]:
    for name, topic in topics.items():
        for partition in topic.only_at_target:
            yield PartitionPair(name, topic.remote.name, partition), topic.source.topic_id


def _waits(error: Exception) -> bool:
    """Tell whether a query waits for a leader, or for a topic of a begun micro-batch."""
    if isinstance(error, QueryHalted):
        return error.halt.cause is Cause.NO_LEADER
    return isinstance(error, RecordsGone)


def _halt_for(loss: Loss) -> Halt:
    return Halt(cause_of_loss(loss.kind), loss.words)


def _halt_of(error: Exception, words: str) -> Halt:
    if isinstance(error, QueryHalted):
        return error.halt
    if isinstance(error, RowsRefused | RowsChanged | TransformFailed):
        return Halt(Cause.TRANSFORM, words)
    if isinstance(error, RecordsGone):
        return Halt(Cause.EXPIRED, words)
    return Halt(Cause.UNREACHABLE if isinstance(error, ConnectionError) else Cause.OTHER, words)
