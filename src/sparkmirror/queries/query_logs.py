"""Look at the logs of a query's topics at both clusters. Blocking."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from sparkmirror.errors import ClusterTrouble
from sparkmirror.exact.durable.losses import Loss, LossLedger, halted_at_target
from sparkmirror.exact.position.cause import Cause
from sparkmirror.exact.position.loss_detection import target_truncated_for_good
from sparkmirror.exact.position.route import PartitionPair
from sparkmirror.kafka.cluster.client import ClusterClient, TopicLeaders
from sparkmirror.kafka.cluster.epoch_history import EpochHistories, epochs_in
from sparkmirror.kafka.cluster.error_names import error_name
from sparkmirror.kafka.cluster.list_offsets import DEBUG_CONSUMER, LATEST, list_offsets, offsets_by_leader
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.queries.copied_logs import CopiedLog, LogsNow, cut_offsets
from sparkmirror.queries.plan_log import NOT_KNOWN, PlanLog, PlannedBatch, TargetEnd
from sparkmirror.queries.source_ranges import Halt, QueriedLog
from sparkmirror.sink.order import AppendedRange
from sparkmirror.source.source_logs import SourceLogs

_NO_LEADER = "its leader at the {} isn't known now"


class QueryLogs:
    """A query's logs, asked over connections that are kept. For one thread."""

    def __init__(self, source: SourceLogs, target: ClusterClient, ledger: LossLedger) -> None:
        self.source, self._target, self._ledger = source, target, ledger
        self._histories = EpochHistories(target)
        self._there = LogsNow({}, {}, self._log_end)
        """The target's logs at the last look."""
        self.target_ends: Mapping[TopicPartition, TargetEnd] = {}
        """Known ends of the target's logs, before the last look's end."""
        self.ends: Mapping[TopicPartition, int] = {}
        """Known ends of the source's logs at the last look."""
        self.held_up: dict[TopicPartition, Halt] = {}
        """Source partitions without a leader that tells, at the last look."""
        self.lost: dict[TopicPartition, Loss] = {}
        """Losses of the target's partitions that halt them, at the last look."""
        self.lost_elsewhere: list[Loss] = []
        """Losses of partitions to which only records of other names, or numbers, go."""

    @property
    def _target_ids(self) -> dict[str, str]:
        """Ids of the target's topics at the last look, as hexadecimal digits."""
        return {name: topic.topic_id.hex() for name, topic in self._there.topics.items() if not topic.error}

    def look(
        self,
        names: Mapping[PartitionPair, Iterable[str]],
        before: PlannedBatch | None,
        plans: PlanLog,
        until: Callable[[TopicPartition], int],
    ) -> dict[TopicPartition, QueriedLog]:
        """Return the logs of all partitions whose leaders tell; note the others.

        `names` has the topics to which each partition's records go; `before` is the newest batch. The end of a topic of
        another name doesn't count if the query itself has written there. Raises `ConnectionError`.
        """
        topics = self.source.topics({route.source_topic for route in names})
        starts, self.ends = self.source.bounds(route.source for route in names if route.source_topic in topics)
        copies = {(name, route.partition) for route, each in names.items() for name in (*each, route.target_topic)}
        copies |= plans.ends.keys()
        wanted = {topic for topic, _ in copies} | {route.target_topic for route in names}
        unknown = wanted - self._there.topics.keys()
        earlier = {**self._there.topics, **(self._target.metadata(unknown) if unknown else {})}
        target_ends = offsets_by_leader(self._target, copies, LATEST, read_committed=False)
        self._there = LogsNow(self._target.metadata(wanted) if wanted else {}, target_ends, self._log_end)
        self.target_ends = self._ends_since(earlier)
        silent = self._look_for_losses(names, plans.ends)
        cuts = self._cuts(names, before, plans, topics)
        histories = self.source.histories.read(
            topics, {at: max(cuts[at] - 1, 0) if at in cuts else starts[at] for at in self.ends}
        )
        self.held_up = {}
        logs: dict[TopicPartition, QueriedLog] = {}
        for route, goes_to in names.items():
            at = route.source
            if at not in self.ends or at not in histories or cuts.get(at, 0) < 0:
                self.held_up[at] = Halt(Cause.NO_LEADER, _NO_LEADER.format("source"))
                continue
            if self._there.topics[route.target_topic].error:  # without its id it would look like another topic
                self.held_up[at] = Halt(Cause.NO_LEADER, f"target topic {route.target_topic} can't be seen now")
                continue
            if route.target in silent:
                self.held_up[at] = Halt(Cause.NO_LEADER, _NO_LEADER.format("target"))
            others = {name for name in goes_to if name == route.target_topic or (name, at[1]) not in plans.ends}
            known_end, ends_in = max(((target_ends.get((name, at[1]), 0), name) for name in others), default=(0, ""))
            logs[at] = QueriedLog(
                route=route,
                topic_id=topics[route.source_topic].topic_id.hex(),
                start=starts[at],
                end=self.ends[at],
                until=until(at),
                target_topic_id=self._there.topics[route.target_topic].topic_id,
                target_end=known_end if route.target in target_ends else -1,
                history=histories[at],
                cut_at=cuts.get(at),
                lost=self.lost.get(route.target),
                ends_in=ends_in,
            )
        return logs

    def created_again(
        self, before: PlannedBatch | None, plans: PlanLog, copies: Mapping[TopicPartition, str]
    ) -> Halt | None:
        """Return why nothing may be copied if a copy was created again.

        Topics of other names may have rows of the copy's records, and would get the rows twice. `copies` are the
        copies' names by source partition, also of former partitions.
        """
        ids = self._target_ids
        written = {topic for (topic, _), end in plans.ends.items() if ids.get(topic) == end.topic_id}
        known = () if before is None else before.ranges.items()
        copied = [(copies[at], each.target_id) for at, each in known if each.target_id != NOT_KNOWN]
        again = sorted({name for name, its in copied if ids.get(name, its) != its})
        if not again or not written - set(copies.values()):
            return None
        return Halt(
            Cause.RECREATED,
            f"target topic {again[0]} was deleted and created again, and others may have rows of its records: stop the "
            f"flow, delete {', '.join(sorted(written | set(again)))}, and start it to have all of them copied again",
        )

    def _cuts(
        self,
        routes: Iterable[PartitionPair],
        before: PlannedBatch | None,
        plans: PlanLog,
        topics: Mapping[str, TopicLeaders],
    ) -> dict[TopicPartition, int]:
        """Return up to which offset the source's logs are those that were planned.

        -1: the leader doesn't tell now.
        """
        known = {} if before is None else before.ranges
        copied = {
            route.source: plans.copied(route.source, known[route.source])
            for route in routes
            if route.source in self.ends
            and route.source in known
            and known[route.source].is_of(topics[route.source_topic].topic_id)
        }
        now = LogsNow(topics, self.ends, self.source.log_end)
        return dict.fromkeys(copied, -1) | cut_offsets(self.source.histories, now, copied)

    def _ends_since(self, earlier: Mapping[str, TopicLeaders]) -> dict[TopicPartition, TargetEnd]:
        """Return ends of the target's logs that have the leaders of earlier metadata."""
        ends = {
            at: end
            for at, end in self._there.ends.items()
            if (now := self._there.topics[at[0]]).topic_id == (before := earlier[at[0]]).topic_id
            and now.partitions.get(at[1]) == before.partitions.get(at[1])
        }
        histories = self._histories.read(self._there.topics, {at: max(end - 1, 0) for at, end in ends.items()})
        return {
            at: TargetEnd(
                self._there.topics[at[0]].topic_id.hex(),
                CopiedLog(ends[at], epochs_in(history, ends[at] - 1, ends[at])),
            )
            for at, history in histories.items()
        }

    def _look_for_losses(
        self,
        routes: Iterable[PartitionPair],
        ends: Mapping[TopicPartition, TargetEnd],
    ) -> set[TopicPartition]:
        """Note what the target has lost. Return the partitions whose leaders don't tell.

        A loss of a partition to which no partition of its number and name leads is told of the first source topic.
        """
        own = {route.target: route for route in routes}
        others = next(iter(own.values()), None)
        ids = self._target_ids
        written = {at: each.log for at, each in ends.items() if ids.get(at[0]) == each.topic_id}
        cuts = cut_offsets(self._histories, self._there, written)
        copies = {at[0] for at in own}
        topics = (copies | {at[0] for at in written}) & ids.keys()
        self.lost = {}
        for at in own.keys() | written.keys():
            if at[0] not in ids:
                continue
            known = halted_at_target(self._ledger.known(ids[at[0]], at[1]))
            if known:
                self.lost[at] = known[-1]
            elif at in cuts and cuts[at] < written[at].end and others is not None:
                pair = own.get(at, PartitionPair(others.source_topic, *at))
                topic_id = self._there.topics[at[0]].topic_id
                self.lost[at] = target_truncated_for_good(
                    pair, topic_id, cuts[at], written[at].end, topics if topics - copies else ()
                )
        self.lost_elsewhere = [loss for at, loss in self.lost.items() if at not in own]
        return written.keys() - cuts.keys()

    def _log_end(self, at: TopicPartition) -> int:
        leader = self._there.topics[at[0]].partitions[at[1]].leader
        listed = list_offsets(self._target, leader, {at[0]: [at[1]]}, LATEST, replica_id=DEBUG_CONSUMER)[at]
        if listed.error:
            raise ClusterTrouble(
                f"{at[0]}-{at[1]}: its leader can't tell where its log ends: {error_name(listed.error)}"
            )
        return listed.offset

    def begins(self, batch: PlannedBatch) -> dict[TopicPartition, int]:
        """Return target offsets before which a micro-batch has no records.

        An unclean election may have cut a log after the plan. Topics that were created again since are left out.
        Raises `ClusterTrouble` for a partition whose leader doesn't tell now.
        """
        ids = self._target_ids
        planned = {at: begin.log for at, begin in batch.begins.items() if ids.get(at[0]) == begin.topic_id}
        begins = cut_offsets(self._histories, self._there, planned)
        for topic, partition in planned.keys() - begins.keys():
            raise ClusterTrouble(f"{topic}-{partition}: {_NO_LEADER.format('target')}")
        return begins

    def ends_after(self, appended: Iterable[AppendedRange]) -> dict[TopicPartition, TargetEnd]:
        """Return where the query's records end after a micro-batch.

        Raises `ClusterTrouble` for a partition whose leader has changed since the last look: it may have lost some of
        them. The micro-batch is run again then, and the sink compares.
        """
        lasts = {(each.topic, each.partition): each.last_offset for each in appended}
        topics = self._target.metadata({topic for topic, _ in lasts}) if lasts else {}
        histories = self._histories.read(topics, lasts)
        ends: dict[TopicPartition, TargetEnd] = {}
        for at, last in lasts.items():
            before, now = self._there.topics.get(at[0]), topics[at[0]]
            moved = before is not None and (before.topic_id, before.partitions.get(at[1])) != (
                now.topic_id,
                now.partitions.get(at[1]),
            )
            if moved or at not in histories:
                raise ClusterTrouble(
                    f"{at[0]}-{at[1]}: its leader at the target has changed: the micro-batch is compared with its log"
                )
            epochs = epochs_in(histories[at], last, last + 1)
            ends[at] = TargetEnd(now.topic_id.hex(), CopiedLog(last + 1, epochs))
        return ends
