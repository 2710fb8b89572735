"""A flow as its driver sees it.

The driver has the flow's clusters, lease, identity and topics, and reads the pumps' reports.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import socket
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import closing

from sparkmirror.cluster.admin import ClusterAdmin
from sparkmirror.cluster.broker_versions import producer_state_ms, see_that_brokers_serve
from sparkmirror.cluster.client import ClusterClient
from sparkmirror.cluster.topic_log import TopicLog
from sparkmirror.config import FlowConfig
from sparkmirror.durable.claim_log import SegmentLog
from sparkmirror.durable.claims import segments_topic
from sparkmirror.durable.identity import Identity
from sparkmirror.durable.known_topics import TopicMemory
from sparkmirror.durable.losses import Loss, LossLedger, losses_topic
from sparkmirror.durable.progress import StandingLog, Stood
from sparkmirror.engine.assignment import PartitionKey, PartitionLoad
from sparkmirror.engine.done_topics import DoneTopics
from sparkmirror.engine.duties import LAST_TURNS_S, Duties
from sparkmirror.engine.flow_duties import FlowDuties, FlowGroups
from sparkmirror.engine.flow_view import FlowView, PartitionView
from sparkmirror.engine.identity import agree_identity
from sparkmirror.engine.lease import Lease
from sparkmirror.engine.lookout import Lookout
from sparkmirror.engine.loss_watch import LossWatch
from sparkmirror.engine.own_topics import create_own_topics
from sparkmirror.engine.snapshot import ELSEWHERE
from sparkmirror.engine.target_proof import TargetProof
from sparkmirror.engine.weaknesses import Weaknesses
from sparkmirror.errors import ConfigError
from sparkmirror.log_levels import asked_levels
from sparkmirror.messages.control import TICK_S, Control, ControlState, Epoch, Leader, Phase, control_topic
from sparkmirror.messages.orders import AddedRoutes, FlowOrder, FlowReport, Receipt, RouteOrder
from sparkmirror.messages.receipts import read_reports, receipts_topic
from sparkmirror.position.route import PartitionPair
from sparkmirror.pump.quiet import GRACE_S
from sparkmirror.sync.other_flows import OtherFlows
from sparkmirror.sync.topic_rules import group_filter, topic_rules
from sparkmirror.sync.topic_sentinel import TopicSentinel
from sparkmirror.sync.topics import TopicDuty, TopicSync
from sparkmirror.takeover.from_mm1 import GroupTakeover
from sparkmirror.takeover.from_mm2 import Takeover
from sparkmirror.wire.topic_partition import TopicPartition

CONNECT_TIMEOUT_S = 15.0

STATE_LIFETIME_DEFAULT_MS = 86_400_000
"""Lifetime of an idle producer's state at a target whose brokers don't tell.

Kafka's default since 3.4; the default was longer before.
"""
WATCH_S = 0.4
IDLE_AFTER_S = 30.0
"""Seconds until an unreported partition counts as idle: pumps report changes only."""

LOOK_S = 5.0
"""Seconds between readings of the source's ends, for the lag."""

CLOCKS_MS = 60_000
"""Milliseconds by which the driver's clock may be ahead of the pumps' clocks.

Reports of other drivers' pumps are left out anyway.
"""

_FAILED_WATCH_PAUSE_S = 1.0
_UNKNOWN = Stood(-1, -1, -1)

log = logging.getLogger(__name__)


class FlowDriver:
    """Driver of a flow.

    Call `open` and `start`, then while `held`: `take_charge`, `sync_topics`, `order`, `say`.
    """

    def __init__(self, flow: FlowConfig, incarnation: str, *, use_lease: bool, once: bool) -> None:
        self.flow = flow
        self.view = FlowView()
        self.topics = TopicSync((), (), (), {})
        self.synced = False
        """True once the topic duty has run."""
        self.looked_over = False
        """True once the topic duty's newest result was checked for foreign copies.

        Getting the lease resets the flag.
        """
        self.owed: dict[str, str] = {}
        """Topics and partitions left out at the start with `once`, with the reason."""
        self.unclean = False
        """True if pumps of an earlier epoch may still be alive."""
        self._unclean_at = float("-inf")
        self.cluster_ids: dict[str, str] = {}
        """Cluster ids by alias of source and target, once the driver is open."""
        self.done_topics = DoneTopics(lambda topic, done: self._control.done(topic, done))
        rules = topic_rules(flow, flow.originals)
        self._rules = dataclasses.replace(rules, left_alone=self.done_topics.is_released)
        self.weaknesses = Weaknesses(flow)
        self.groups = FlowGroups()
        self.heard = ControlState()
        """State of the control topic, kept also while this process stands by."""
        self.duties: Duties | None = None
        self._incarnation = incarnation
        self._use_lease = use_lease
        self._once = once
        self._started = False
        self.lease: Lease | None = None
        self._rank = -1
        self._identity: Identity | None = None
        self._state_lifetime_ms = STATE_LIFETIME_DEFAULT_MS
        self._until: dict[TopicPartition, int] | None = None
        self._charge_term = -1
        self._made: set[str] = set()
        """Target topics that this process has created."""
        self._told: tuple[Mapping[PartitionKey, str], Mapping[PartitionPair, str]] = {}, {}
        """Last result of `sync_topics`: partitions to pump, and refused partitions."""
        self.tasks: Mapping[PartitionKey, int] = {}
        """Partition to the Spark task that copies it in this epoch."""
        self._ordered: dict[PartitionKey, RouteOrder] = {}
        """Orders to the pumps in this epoch."""
        self._added: dict[int, list[RouteOrder]] = {}
        """Orders that came later in this epoch, by task."""
        self._settled_epoch = 0
        self.loss_watch = LossWatch(flow)
        self._standing: StandingLog
        self._lookout: Lookout | None = None
        self._topic_sentinel: TopicSentinel | None = None
        self.takeover = Takeover(flow) if flow.legacy is None else GroupTakeover(flow, flow.legacy)
        self._topics_client = ClusterClient(flow.target, f"{flow.name}|sparkmirror-topics")
        self._source: ClusterAdmin | None = None
        self._target: ClusterAdmin | None = None
        self._control_client = ClusterClient(flow.target, f"{flow.name}|sparkmirror-driver")
        self._control_log = TopicLog(self._control_client, control_topic(flow.source.alias))
        self._control = Control(self._control_log)
        self._phase: tuple[int, Phase] | None = None
        self._began_ms = int(time.time() * 1000)
        self._first_epoch: int | None = None
        """First epoch of this driver; the flow may have had another driver before."""
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._helpers = [
            threading.Thread(target=work, name=f"{work.__name__} {flow.name}", daemon=True)
            for work in (self._beat, self._look, self._watch)
        ]

    @property
    def name(self) -> str:
        return self.flow.name

    # --- start and lease ------------------------------------------------------------------------

    def open(self) -> None:
        """Connect to both clusters, and create missing internal topics.

        Raises `ClusterUnreachable`, `UnfitTarget`, and `ConfigError` if both aliases are the same cluster.
        """
        timeout_s = min(self.flow.admin_timeout_ms / 1000, CONNECT_TIMEOUT_S)
        self._source = ClusterAdmin.connect(self.flow.source, f"{self.name}|driver", timeout_s)
        self._target = ClusterAdmin.connect(self.flow.target, f"{self.name}|driver", timeout_s)
        source_id, target_id = self._source.cluster_id(), self._target.cluster_id()
        if source_id == target_id:
            raise ConfigError(
                f"both aliases are the same cluster ({source_id}): records would be copied for ever",
                origin=f"flow {self.name}",
            )
        self.cluster_ids = {self.flow.source.alias: source_id, self.flow.target.alias: target_id}
        with closing(ClusterClient(self.flow.source, f"{self.name}|sparkmirror-driver")) as source_client:
            see_that_brokers_serve(source_client, self._topics_client)
        alias = self.flow.source.alias
        # replication.factor is the source connector's; without one the target's own default counts.
        factor = self.flow.replication_factor if self.flow.copies else -1
        proof = TargetProof(self.flow, self._topics_client)
        proof.demand()
        create_own_topics(self._target, alias, factor)
        proof.remember()
        self._lookout = Lookout(self.flow, self._source)
        duties = FlowDuties(
            flow=self.flow,
            rules=self._rules,
            wanted_groups=group_filter(self.flow, self.flow.originals),
            source=self._source,
            target=self._target,
            topics=lambda: self.topics,
            receipts=lambda: self.view.receipts,
            copied=lambda: self.view.copied,
            groups=self.groups,
            once=self._once,
        )
        self.duties = Duties(self.name, duties.schedules(), lambda: self.synced and self.held())
        ledger = TopicLog(self._topics_client, losses_topic(alias))
        self._topic_sentinel = TopicSentinel(
            self._source,
            self._target,
            SegmentLog(TopicLog(self._topics_client, segments_topic(alias))),
            LossLedger(ledger),
            TopicMemory(ledger),
            self._rules.wanted,
            from_start=self.flow.fetch.auto_offset_reset != "latest" and self.flow.legacy is None,
        )

    def start(self, before: FlowDriver | None = None) -> None:
        """Ask for the lease, and watch the pumps' reports.

        The lease of `before`, a driver that has ended, goes on.
        """
        self.lease = before.lease if before is not None else None
        if self._use_lease and self.lease is None:
            self.lease = Lease(
                self.flow.target,
                f"{self.flow.source.alias}-mm2",
                control_topic(self.flow.source.alias),
                self.flow.group_session_timeout_ms,
            )
            self.lease.start()
        self._started = True
        for helper in self._helpers:
            helper.start()
        assert self.duties is not None  # noqa: S101 - open came first
        self.duties.start()

    def held(self) -> bool:
        """True if this process works on the flow now."""
        return self._started and (self.lease is None or self.lease.held())

    @property
    def standing_by(self) -> str:
        """Reason in a few words why this process does not work on the flow."""
        if self.lease is not None and self.lease.refused:
            return f"standing by: {self.lease.refused}"
        if self.lease is not None and self.lease.elsewhere:
            return f"standing by: {ELSEWHERE}"
        return "joining"

    def take_charge(self) -> None:
        """Become the active driver after getting the lease.

        Announces this process, learns how the predecessor ended, and agrees on the identity.
        """
        term = self.lease.term if self.lease else 0
        if term == self._charge_term:
            return
        state = ControlState()
        with self._lock:
            self._phase = None
            entries, _ = self._control_log.read(0, 0)
            state.apply(entries)
            self.done_topics.follow(self._control_log, ())
            if self._use_lease:
                self._rank = self._control.lead(
                    Leader(incarnation=self._incarnation, host=socket.gethostname(), pid=os.getpid())
                )
        self.loss_watch.start()
        self.takeover.begin()
        self.looked_over = False
        for view in list(self.view.partitions.values()):
            view.forget()
        self._standing = StandingLog(TopicLog(self._topics_client, losses_topic(self.flow.source.alias)))
        self._standing.known  # noqa: B018 - read now, before anything is copied
        self.note_end(unclean=state.unclean)
        self._identity = agree_identity(self.flow)
        lifetime_ms = producer_state_ms(self._topics_client)
        self._state_lifetime_ms = STATE_LIFETIME_DEFAULT_MS if lifetime_ms is None else lifetime_ms
        self._charge_term = term

    def note_end(self, *, unclean: bool) -> None:
        """Take note of how the pumps before the next epoch ended.

        After an `unclean` end pumps may still be alive. Such pumps count as alive for `GRACE_S`, even if a later epoch
        has ended in order (R5).
        """
        now = time.monotonic()
        if unclean:
            self._unclean_at = now
        self.unclean = now - self._unclean_at < GRACE_S

    def take_charge_again(self) -> None:
        """Have the next `take_charge` announce this process anew.

        Another driver's late announcement may stand behind the present one.
        """
        self._charge_term = -1

    @property
    def identity(self) -> Identity:
        """Identity of the flow at its target, after `take_charge`."""
        assert self._identity is not None  # noqa: S101 - take_charge came first
        return self._identity

    # --- topics and orders ----------------------------------------------------------------------

    def sync_topics(self) -> bool:
        """Run the topic duty; True if the partitions to pump, or the refusals, changed."""
        if not self.flow.copies:
            self.synced = self.looked_over = True
            return False
        self.looked_over = self.done_topics.changed = False
        others = OtherFlows(self._topics_client, self.flow)
        self.topics = TopicDuty(self._opened(self._source), self._opened(self._target), self._rules, others).sync_once()
        assert self._topic_sentinel is not None  # noqa: S101 - open came first
        self.view.gone = self._topic_sentinel.look(self.topics, self.identity)
        self.weaknesses.say([topic.source.name for topic in self.topics.mirrored])
        if self._once and self._until is None:
            partitions = [(topic.source.name, index) for topic in self.topics.mirrored for index in topic.partitions]
            isolation = self.flow.fetch.isolation_level
            self._until = self._opened(self._source).end_offsets(partitions, isolation=isolation)
            self.owed = dict(self.topics.refused) | {
                f"{topic}-{index}": "it had no leader at the start"
                for topic, index in partitions
                if (topic, index) not in self._until
            }
        now = self._targets()
        for gone in self.view.partitions.keys() - now.keys():
            self.view.partitions.pop(gone, None)
        self._made |= set(self.topics.created)
        routes = [PartitionPair(key.topic, target, key.partition) for key, target in now.items()]
        self.takeover.look(self.identity, routes, made=self._made)
        before, self._told = self._told, (now, self.takeover.refused)
        self.synced = self.looked_over = True
        return self._told != before

    def partitions(self) -> dict[PartitionKey, TopicPartition]:
        """Partitions that can be pumped, with remote topic and source leader."""
        pumpable = {}
        for topic in self.topics.mirrored:
            leaders = {partition.partition: partition.leader for partition in topic.source.partitions}
            for index in topic.partitions:
                if self.done_topics.is_reached(topic.source.name, index):
                    continue
                if self._until is None or (topic.source.name, index) in self._until:
                    pumpable[PartitionKey(self.name, topic.source.name, index)] = (topic.remote.name, leaders[index])
        return pumpable

    def _targets(self) -> dict[PartitionKey, str]:
        """Partitions that can be pumped, with remote topic."""
        return {key: target for key, (target, _) in self.partitions().items()}

    def loads(self) -> list[PartitionLoad]:
        """Return each partition's rate and backlog, for the planner."""
        loads = []
        for key, (_, leader) in self.partitions().items():
            view = self.view.partitions.get(key)
            rate = view.bytes_per_s if view and time.time() - view.seen_at < IDLE_AFTER_S else 0.0
            backlog = 0.0
            if view and view.receipt and view.receipt.records:
                lag = max(view.receipt.source_end - view.receipt.upstream, 0)
                backlog = lag * view.receipt.bytes / view.receipt.records
            loads.append(PartitionLoad(self.name, key.topic, key.partition, leader, rate, backlog))
        return loads

    def forget_orders(self) -> None:
        """Forget the orders, since a new epoch is planned."""
        self._ordered.clear()
        self._added.clear()

    def order(self, keys: Iterable[PartitionKey], share: float = 1.0) -> FlowOrder:
        """Return the flow's part of a task's order.

        `share` is the task's part of the flow's bandwidth cap.
        """
        identity = self.identity
        return FlowOrder(
            flow=self.flow,
            cluster_id=identity.cluster_id,
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            routes=self._order_routes(keys),
            share=share,
            leader_rank=self._rank,
            state_lifetime_ms=self._state_lifetime_ms,
            unclean=self.unclean,
            former=identity.former,
        )

    def _order_routes(self, keys: Iterable[PartitionKey]) -> tuple[RouteOrder, ...]:
        targets = {topic.source.name: topic.remote.name for topic in self.topics.mirrored}
        routes = {key: self._route_order(key, targets[key.topic]) for key in keys}
        self._ordered |= routes
        return tuple(routes.values())

    def _route_order(self, key: PartitionKey, target: str) -> RouteOrder:
        receipt = self.view.partitions.get(key, PartitionView()).receipt
        topic_id, stood = self._stood(receipt, (target, key.partition))
        return RouteOrder(
            source_topic=key.topic,
            target_topic=target,
            partition=key.partition,
            until=None if self._until is None else self._until[key.topic, key.partition],
            done_at=self.done_topics.end_of(key.topic, key.partition),
            target_topic_id=topic_id,
            appended=stood.appended,
            passed=(stood.upstream, stood.downstream),
            refused=self.takeover.refused.get(PartitionPair(key.topic, target, key.partition), ""),
        )

    @property
    def only_grown(self) -> bool:
        """True if every partition ordered in this epoch is still to be copied, unmoved.

        A partition may neither have another remote topic nor another reason of refusal. Partitions that reached their
        end don't count.
        """
        targets, refused = self._targets(), self.takeover.refused
        return all(
            targets.get(key) == route.target_topic and refused.get(route.route, "") == route.refused
            for key, route in self._ordered.items()
            if not self.done_topics.is_reached(key.topic, key.partition)
        )

    def add(self, epoch: int, taken: Mapping[int, Iterable[PartitionKey]], shares: Mapping[int, float]) -> None:
        """Order running tasks to copy more partitions; `shares` as in `AddedRoutes`."""
        for task, keys in taken.items():
            self._added.setdefault(task, []).extend(self._order_routes(keys))
        routes = {task: tuple(added) for task, added in self._added.items()}
        with self._lock:
            self._control.add(
                AddedRoutes(incarnation=self._incarnation, epoch=epoch, routes=routes, shares=dict(shares))
            )

    def _stood(self, receipt: Receipt | None, target: tuple[str, int]) -> tuple[str, Stood]:
        """Return the topic id and progress of a target partition.

        The newest receipt tells; without one, the progress written down before this process came.
        """
        before = self._standing.of(target)
        if receipt is None or not receipt.target_topic_id:
            return before or ("", _UNKNOWN)
        appended = max(receipt.appended, -1)
        if receipt.upstream < 0 and before is not None and before[0] == receipt.target_topic_id:
            return before[0], before[1]._replace(appended=appended)
        return receipt.target_topic_id, Stood(receipt.upstream, receipt.downstream, appended)

    # --- while an epoch runs --------------------------------------------------------------------

    def say(self, epoch: int, phase: Phase) -> None:
        """Order the pumps of an epoch to run or to end, or say that the epoch has ended."""
        with self._lock:
            if self._first_epoch is None:
                self._first_epoch = epoch
            self._phase = (epoch, phase) if phase != "ended" else None
            self._control.epoch(Epoch(incarnation=self._incarnation, number=epoch, phase=phase))

    def started_tasks(self, epoch: int) -> set[int]:
        """Return the tasks of an epoch that have reported."""
        return {
            report.task
            for report in list(self.view.pumps.values())
            if report.epoch == epoch and report.incarnation == self._incarnation
        }

    def ended_early(self, epoch: int) -> str:
        """Return why a pump of an epoch ended this flow by itself; empty if none did."""
        reports = [report for report in list(self.view.pumps.values()) if report.epoch == epoch]
        return next((report.ended_because for report in reports if report.ended and report.ended_because), "")

    def _is_mine(self, epoch: int) -> bool:
        return self._first_epoch is not None and epoch >= self._first_epoch

    def _watch(self) -> None:
        client = ClusterClient(self.flow.target, f"{self.name}|sparkmirror-watch")
        control = TopicLog(client, control_topic(self.flow.source.alias))
        follow_at, heard_at, control_offset = 0.0, 0.0, 0
        receipts = TopicLog(client, receipts_topic(self.flow.source.alias))
        offset: int | None = None
        while not self._closing.wait(WATCH_S):
            try:
                if offset is None:  # pumps may have reported already, and later report only changes
                    offset = receipts.since(0, self._began_ms - CLOCKS_MS)
                entries, offset = receipts.read(0, offset)
                for report in read_reports(entries):
                    if report.incarnation == self._incarnation and self._is_mine(report.epoch):
                        self._note(report)
                self.loss_watch.read()
                if time.monotonic() >= heard_at:
                    heard_at = time.monotonic() + TICK_S
                    entries, control_offset = control.read(0, control_offset)
                    self.heard.apply(entries)
                    asked_levels.follow(self.name, self.heard.log_levels)
                if self.held() and time.monotonic() >= follow_at:
                    follow_at = time.monotonic() + TICK_S
                    with self._lock:
                        self.done_topics.follow(control, self.view.receipts)
            except Exception as error:  # figures may be late, but this thread must not end
                log.debug("flow %s: %s", self.name, error)
                self._closing.wait(_FAILED_WATCH_PAUSE_S)
        client.close()

    def _beat(self) -> None:
        """Send ticks, and do no other work.

        Whatever else hangs, the pumps must hear that the driver lives.
        """
        while not self._closing.wait(TICK_S):
            try:
                self._tick()
            except Exception as error:  # without ticks the pumps end by themselves (`SILENCE_S`)
                log.debug("flow %s: no tick: %s", self.name, error)

    def _look(self) -> None:
        """Read the source's ends and starts, for the lag and the forecast."""
        while not self._closing.wait(LOOK_S if self.view.source_ends else WATCH_S):
            try:
                assert self._lookout is not None  # noqa: S101 - open came first
                views = list(self.view.partitions.items())
                receipts = {(key.topic, key.partition): view.receipt for key, view in views if view.receipt}
                done = self.done_topics.partitions
                self._lookout.look([*((key.topic, key.partition) for key in self.partitions()), *done], receipts)
                self.view.take_look(self._lookout.ends, self._lookout.starts)
                self.view.forecast = self._lookout.forecast
                source, target = self._opened(self._source), self._opened(self._target)
                self.view.admin_connections = source.connections, target.connections
            except Exception as error:  # the lag then rests on the pumps' reports
                self.view.ends_trouble = str(error)
                log.debug("flow %s: the source's offsets can't be read: %s", self.name, error)

    def _tick(self) -> None:
        with self._lock:
            if self._phase is not None and self.held():
                number, phase = self._phase
                self._control.epoch(Epoch(incarnation=self._incarnation, number=number, phase=phase))

    def _note(self, report: FlowReport) -> None:
        self.view.note(report)
        if report.epoch <= self._settled_epoch:
            return  # late: the final receipts of that epoch are known
        self.view.take_report(self.name, report)
        for receipt in report.receipts:
            self.done_topics.reach(receipt)

    def take_receipts(self, epoch: int, receipts: Mapping[PartitionKey, Receipt]) -> None:
        """Take the final receipts of an epoch."""
        self._settled_epoch = epoch
        for key, receipt in receipts.items():
            self.view.partitions.setdefault(key, PartitionView()).end_with(receipt)
            self.done_topics.reach(receipt)
        self.view.settle(epoch, receipts.values())

    @property
    def failing(self) -> Mapping[str, str]:
        """Duties whose last turn failed, with the reason in a single line."""
        return self.duties.failing if self.duties is not None else {}

    @property
    def send_failure(self) -> str:
        """A partition that can't be copied, with reason, if that must end the mirror.

        Empty if there is none, and without `abort.on.send.failure`.
        """
        if self.flow.legacy is None or not self.flow.legacy.abort_on_send_failure:
            return ""
        awaited = self.takeover.awaited if isinstance(self.takeover, GroupTakeover) else ()
        parked = [
            receipt for receipt in self.view.receipts if receipt.state == "parked" and receipt.reason not in awaited
        ]
        return next((f"{receipt.source_topic}-{receipt.partition}: {receipt.reason}" for receipt in parked), "")

    @property
    def losses(self) -> list[Loss]:
        """Losses recorded since this process took charge; `loss_watch.ledger` has all."""
        return self.loss_watch.losses

    def read_losses(self) -> None:
        """Read the ledger, so that `losses` is complete now; raises as the ledger does."""
        self.loss_watch.read()

    def close(self, duties_s: float = LAST_TURNS_S, *, keep_lease: bool = False) -> None:
        """End the duties within `duties_s`, and give up the lease.

        With `keep_lease` the next driver has the lease. Pumps must have ended before.
        """
        self._closing.set()
        with self._lock:
            if self.held():
                self.done_topics.close()
        if self.duties is not None:
            self.duties.close(duties_s)
        if self.lease is not None and not keep_lease:
            self.lease.release()
        for helper in filter(threading.Thread.is_alive, self._helpers):
            helper.join(1.0)
        for admin in filter(None, (self._source, self._target)):
            admin.close()
        for client in (self._control_client, self._topics_client, self.loss_watch, self.takeover):
            client.close()

    def _opened(self, admin: ClusterAdmin | None) -> ClusterAdmin:
        assert admin is not None  # noqa: S101 - open came first
        return admin
