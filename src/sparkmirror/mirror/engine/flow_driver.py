"""A flow as its driver sees it.

The driver owns the flow's connections and the parts that do its work: its `leadership`, `predecessors`, `topics`,
`orders` to pumps, and pumps' `reports`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import NamedTuple

from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.errors import ConfigError
from sparkmirror.events import Event
from sparkmirror.exact.durable.losses import losses_topic
from sparkmirror.exact.durable.noted_progress import ProgressLog
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.broker_versions import see_that_brokers_serve
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.expected_clusters import EXPECTED
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.mirror.engine.agreed_clusters import agreed_source_id
from sparkmirror.mirror.engine.assignment import PartitionKey
from sparkmirror.mirror.engine.cluster_watch import ClusterWatch
from sparkmirror.mirror.engine.driver_control import DriverControl
from sparkmirror.mirror.engine.duties import LAST_TURNS_S, Duties
from sparkmirror.mirror.engine.flow_duties import FlowDuties, FlowGroups
from sparkmirror.mirror.engine.flow_topics import FlowTopics
from sparkmirror.mirror.engine.flow_view import FlowView
from sparkmirror.mirror.engine.lag_monitor import LagMonitor
from sparkmirror.mirror.engine.leadership import Leadership
from sparkmirror.mirror.engine.opposite_copies import OppositeCopies
from sparkmirror.mirror.engine.order_book import OrderBook
from sparkmirror.mirror.engine.own_topics import create_own_topics, unsafe_own_topics
from sparkmirror.mirror.engine.predecessors import Predecessors
from sparkmirror.mirror.engine.report_watch import ReportWatch
from sparkmirror.mirror.engine.target_proof import TargetProof
from sparkmirror.mirror.engine.turn_watch import TurnWatch
from sparkmirror.mirror.sync.copy_retention import ShorterCopies
from sparkmirror.mirror.sync.topic_rules import group_filter

log = logging.getLogger(__name__)

CONNECT_TIMEOUT_S = 15.0

QUOTA_S = 5.0
"""Longest wait of a turn for the target's creation quota, in seconds.

The next turn comes soon and continues. Existing topics are copied meanwhile.
"""

ONCE_QUOTA_S = 600.0
"""The same with `once`, for which the first turn decides about the copied topics."""

SEE_DONE_S = 30.0
"""Seconds between looks at the topics whose writers have moved."""


class _OpenedFlow(NamedTuple):
    duties: Duties
    monitor: LagMonitor


class FlowDriver:
    """A flow's driver.

    Call `open` and `start`, then while `held`: `become_active`, `sync_topics`, `orders.order`, `control.say`.
    """

    def __init__(self, flow: FlowConfig, incarnation: str, *, use_lease: bool, once: bool) -> None:
        self.flow = flow
        self._watches = (
            ClusterWatch(flow.source, f"{flow.name}|sparkmirror-watch"),
            ClusterWatch(flow.target, f"{flow.name}|sparkmirror-watch"),
        )
        self.view = FlowView(watches=self._watches)
        self.groups = FlowGroups()
        self.cluster_ids: dict[str, str] = {}
        """Cluster ids by source and target alias, once the driver is open."""
        self.shorter_copies = ShorterCopies()
        self.unsafe_topics: tuple[str, ...] = ()
        """Own topics with settings by which records may be lost, a line each."""
        self._once = once
        self._client = ClusterClient(flow.target, f"{flow.name}|sparkmirror-topics")
        self.control = DriverControl(flow, incarnation, self.held)
        self.leadership = Leadership(flow, self.control, use_lease=use_lease)
        self.predecessors = Predecessors()
        self.turns = TurnWatch(flow, self.control.done_topics)
        self.topics = FlowTopics(flow, self.view, self._client, self.control.done_topics, self.turns, once=once)
        self.orders = OrderBook(
            flow, incarnation, self.view, self.control, self.leadership, self.predecessors, self.topics
        )
        self.reports = ReportWatch(flow, incarnation, self.view, self.control, self.held)
        self._admins: list[ClusterAdmin] = []
        self._opened: _OpenedFlow | None = None
        self._see_done_at = 0.0
        self._opposite: OppositeCopies | None = None
        """Made when a done topic first outgrows its end; for the lag monitor's thread."""
        self._threads: list[threading.Thread] = []
        self._closing = threading.Event()

    @property
    def name(self) -> str:
        return self.flow.name

    # --- start and end --------------------------------------------------------------------------

    def open(self) -> None:
        """Connect to both clusters, and create missing internal topics.

        Raises `ClusterUnreachable`, `UnfitTarget`, and `ConfigError` if both aliases are the same cluster.
        `AnotherCluster` says that the flow copies from another cluster (R20).
        """
        timeout_s = min(self.flow.admin_timeout_ms / 1000, CONNECT_TIMEOUT_S)
        target = self._connect(self.flow.target, timeout_s)
        EXPECTED.expect(self, self.flow, source=agreed_source_id(self.flow))
        source = self._connect(self.flow.source, timeout_s)
        source_id, target_id = source.cluster_id(), target.cluster_id()
        if source_id == target_id:
            raise ConfigError(
                f"both aliases are the same cluster ({source_id}): records would be copied for ever",
                origin=f"flow {self.name}",
            )
        self.cluster_ids = {self.flow.source.alias: source_id, self.flow.target.alias: target_id}
        EXPECTED.expect(self, self.flow, source=source_id, target=target_id)
        with closing(ClusterClient(self.flow.source, f"{self.name}|sparkmirror-driver")) as source_client:
            see_that_brokers_serve(source_client, self._client)
        # replication.factor is the source connector's; without one the target's own default counts.
        factor = self.flow.replication_factor if self.flow.copies else -1
        proof = TargetProof(self.flow, self._client)
        proof.demand()
        create_own_topics(target, self.flow.source.alias, factor)
        self.unsafe_topics = unsafe_own_topics(target, self.flow.source.alias)
        if self.unsafe_topics:
            more = len(self.unsafe_topics) - 1
            others = f" (and {more} more: sparkmirror lint FILE --connect)" if more else ""
            log.warning("flow %s: %s%s", self.name, self.unsafe_topics[0], others, extra=Event.OWN_TOPIC_UNSAFE.extra)
        proof.remember()
        target.quota_patience_s = ONCE_QUOTA_S if self._once else QUOTA_S
        self.topics.open(source, target)
        duties = FlowDuties(
            flow=self.flow,
            rules=self.topics.rules,
            wanted_groups=group_filter(self.flow),
            source=source,
            target=target,
            topics=lambda: self.topics.newest,
            receipts=lambda: self.view.receipts,
            receipts_mark=lambda: self.view.changes,
            copied=lambda: self.view.copied,
            ended=lambda: self.topics.done_topics.ended(self.topics.rules.remote_name),
            groups=self.groups,
            shorter_copies=self.shorter_copies,
            once=self._once,
        )
        self._opened = _OpenedFlow(
            Duties(self.name, duties.schedules(), self.acts),
            LagMonitor(self.flow, self.view, source, target, self._watched, self.acts, self._late),
        )

    def _connect(self, side: ClusterConfig, timeout_s: float) -> ClusterAdmin:
        self._admins.append(ClusterAdmin.connect(side, f"{self.name}|driver", timeout_s))
        return self._admins[-1]

    def start(self, before: FlowDriver | None = None) -> None:
        """Ask for the lease, and watch the pumps' reports.

        The lease of `before`, a driver that has ended, continues.
        """
        assert self._opened is not None  # noqa: S101 - open came first
        self.leadership.start(before.leadership if before is not None else None)
        self._run(self.control.beat, "beat")
        self._run(self._opened.monitor.watch, "lag")
        self._run(self.reports.watch, "reports")
        if self.flow.turn:
            self._run(self.turns.watch, "turns")
        for watch in self._watches:
            self._run(watch.watch, "cluster")
        self._opened.duties.start()

    def _run(self, work: Callable[[threading.Event], None], name: str) -> None:
        thread = threading.Thread(target=work, args=(self._closing,), name=f"{name} {self.name}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def close(self, duties_s: float = LAST_TURNS_S, *, keep_lease: bool = False) -> None:
        """End the duties within `duties_s`, and give up the lease.

        With `keep_lease` the next driver has the lease. Pumps must have ended before. A duty's last turn that takes
        longer keeps the lease, also after this call: the next process finds what it stores.
        """
        self._closing.set()
        self.control.finish()
        if self._opened is not None:
            self._opened.duties.close(duties_s)
        if not keep_lease:
            self._release_after(self.duties)
        for thread in filter(threading.Thread.is_alive, self._threads):
            thread.join(1.0)
        for admin in self._admins:
            admin.close()
        self.control.close()
        self._client.close()
        if self._opposite is not None:
            self._opposite.close()
        self.reports.close()
        self.topics.close()
        EXPECTED.release(self)

    def _release_after(self, duties: Duties | None) -> None:
        if duties is None or not duties.at_work:
            self.leadership.release()
            return

        def release() -> None:
            duties.wait()
            self.leadership.release()

        threading.Thread(target=release, name=f"release {self.name}", daemon=True).start()

    # --- work -----------------------------------------------------------------------------------

    def held(self) -> bool:
        """True if this process works on the flow now."""
        return self.leadership.held()

    def acts(self) -> bool:
        """True if duties may act: topics are known, and all receipts are of this term."""
        return self.topics.synced and self.leadership.is_active()

    def become_active(self) -> None:
        """Become the active driver after getting the lease.

        Announces this process, learns how the predecessor ended, and agrees on the identity.
        """
        term = self.leadership.term
        if term == self.leadership.active_term and not self.leadership.announces_again:
            return
        self.turns.await_words()
        state = self.leadership.announce()
        self.reports.begin()
        self.topics.begin()
        progress = ProgressLog(TopicLog(self._client, losses_topic(self.flow.source.alias)))
        self.predecessors.begin(progress, unclean=state.unclean)
        self.leadership.agree(self._client, self.cluster_ids[self.flow.source.alias])
        self.leadership.active_term, self.leadership.announces_again = term, False

    def reach(self) -> None:
        """Ask both clusters for an answer; raises `ClusterUnreachable`."""
        for admin in self._admins:
            admin.cluster_id()

    def sync_topics(self) -> bool:
        """Run the topic duty; True if the partitions to pump, or the refusals, changed."""
        self.leadership.ask_state_lifetime(self._client)
        return self.topics.sync(self.leadership.identity)

    def partitions(self) -> dict[PartitionKey, TopicPartition]:
        """Partitions that can be copied, with remote topic and source leader."""
        return self.topics.partitions()

    def pumped(self) -> dict[PartitionKey, TopicPartition]:
        """Partitions that pumps copy, with remote topic and source leader."""
        return self.topics.pumped()

    def _watched(self) -> list[TopicPartition]:
        """Source partitions to be copied, and done partitions.

        A done topic that is created again is noticed here, within `SEE_DONE_S`: its offsets mean other records.
        """
        if time.monotonic() >= self._see_done_at:
            self.topics.see_done()
            self._see_done_at = time.monotonic() + SEE_DONE_S
        return [*((key.topic, key.partition) for key in self.partitions()), *self.topics.done_topics.partitions]

    def _late(self, ends: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        outgrown = self.topics.done_topics.outgrown(ends)
        if self._opposite is None:
            if not outgrown:
                return {}
            self._opposite = OppositeCopies(self.flow)
        return self._opposite.late(outgrown)

    # --- facts ----------------------------------------------------------------------------------

    @property
    def duties(self) -> Duties | None:
        """Duties next to the copying, once the driver is open."""
        return self._opened.duties if self._opened is not None else None

    @property
    def failing(self) -> Mapping[str, str]:
        """Duties whose last turn failed, with the reason in a single line."""
        return self._opened.duties.failing if self._opened is not None else {}
