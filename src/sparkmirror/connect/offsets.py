"""One connector's offsets: read, altered and reset (KIP-875), in an exact copy."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager

from sparkmirror.config import FlowConfig
from sparkmirror.config.formats.connect_files import ConnectorRole
from sparkmirror.connect.connector_model import Offset
from sparkmirror.connect.errors import conflict
from sparkmirror.connect.offset_store import OffsetStore
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.mirror.engine.flow_driver import FlowDriver
from sparkmirror.mirror.engine.flow_duties import CONNECT_OFFSETS
from sparkmirror.mirror.engine.leadership import lease_of
from sparkmirror.mirror.engine.mirror import Mirror
from sparkmirror.mirror.sync.topic_rules import topic_rules
from sparkmirror.mirror.takeover.altered_offsets import AlteredOffsets, NotAltered
from sparkmirror.snapshot.snapshot import ELSEWHERE

SETTLED_S = 30.0
"""Longest wait for a stopped connector's flow to end, then again for its lease."""

_WAIT_S = 0.1


class ConnectorOffsets:
    """One connector's offsets; stop the connector before an alteration or a reset.

    Methods block. They raise `ValueError` with the reason for a request that can't be done, and `ConnectionError`.
    """

    def __init__(
        self,
        mirror: Mirror,
        flow: FlowConfig,
        connector: str,
        role: ConnectorRole,
        *,
        use_lease: bool = True,
        ended: set[str] | None = None,
    ) -> None:
        self._mirror = mirror
        self._flow = flow
        self._connector = connector
        self._role = role
        self._use_lease = use_lease
        self._ended = set() if ended is None else ended
        """Flows on which no other process works any more."""

    def read(self) -> list[Offset]:
        """Return the offsets stored in Connect's topic.

        A running copy's own progress replaces a partition's stored offset. An ending copy's progress, here or in
        another process, is stored before the offsets are read. Raises `RestError` if it is not stored yet, or if this
        process could not store it. What another process could not store before it ended is not known here, as after a
        kill.
        """
        flow = self._flow.name
        self._wait_until_settled()
        copies = (driver := self._driver()) is not None and driver.flow.copies
        if self._role is ConnectorRole.SOURCE and not copies:
            self._wait_for_other_processes()
            failure = self._mirror.registry.last_failure(flow, CONNECT_OFFSETS)
            if failure:
                raise conflict(
                    f"flow {flow} could not store its last offsets: {failure}; resume the connector, and stop it again"
                )
        return self._stored()

    def read_stored(self) -> list[Offset]:
        """Return the stored offsets of a connector that can't run.

        Its flow may work for another connector, whose progress does not count. Raises `RestError` while
        the flow is changing, as this connector's last offsets may not be stored yet.
        """
        self._wait_until_settled()
        with OffsetStore(self._flow, self._connector, self._role) as store:
            return store.read()

    def _wait_until_settled(self) -> None:
        if not _wait_for(self._has_settled):
            words = "has not ended yet, so that its last offsets are not stored; try again"
            raise conflict(f"flow {self._flow.name} {words}")

    def _wait_for_other_processes(self) -> None:
        """Wait for the flow's lease: its holder may be storing a copy's last offsets.

        Raises `RestError` if another process keeps it.
        """
        flow = self._flow.name
        if flow in self._ended:
            return
        with self._asked_lease() as (held, refused):
            if not _wait_for(held):
                why = refused() or ELSEWHERE
                raise conflict(f"flow {flow}: {why}, so that its last offsets may not be stored; try again")
        self._ended.add(flow)

    @contextmanager
    def _asked_lease(self) -> Iterator[tuple[Callable[[], bool], Callable[[], str | None]]]:
        """Yield a test for the flow's lease, and the reason why it is refused.

        Without a driver here the lease is asked for.
        """
        driver = self._driver()
        if driver is not None:
            asked = driver.leadership.lease
            yield driver.held, lambda: asked.refused if asked is not None else None
            return
        lease = lease_of(self._flow)
        if not self._use_lease or not self._is_there(lease.topic):  # no process ever had the lease
            yield lambda: True, lambda: None
            return
        lease.start()
        try:
            yield lease.held, lambda: lease.refused
        finally:
            lease.release()

    def _is_there(self, topic: str) -> bool:
        with closing(ClusterClient(self._flow.target, f"{self._flow.name}|sparkmirror-lease")) as client:
            return client.metadata([topic])[topic].error != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def _stored(self) -> list[Offset]:
        driver = self._driver()
        with OffsetStore(self._flow, self._connector, self._role) as store:
            offsets = {frozen(partition): (partition, offset) for partition, offset in store.read()}
        if self._role is ConnectorRole.SOURCE and driver is not None and driver.flow.copies:
            for (topic, index), upstream in driver.view.copied.items():
                partition = {"cluster": self._flow.mm2_source, "partition": index, "topic": topic}
                offsets[frozen(partition)] = partition, {"offset": upstream}
        return list(offsets.values())

    def alter(self, offsets: Sequence[Offset]) -> None:
        """Set offsets in the connector's format.

        A source connector's copy continues behind these offsets.
        """
        if self._role is ConnectorRole.SOURCE:
            self._go_on_at(dict(self._wanted(offsets)))
        self._store(offsets)

    def reset(self) -> None:
        """Remove all offsets; a source connector's copy then begins again."""
        _wait_for(self._has_settled)
        stored = self._stored()
        if self._role is ConnectorRole.SOURCE:
            self._go_on_at(None)
            stored += self._stored()  # the last turn of the flow that has ended may have stored more
        gone = {frozen(partition): partition for partition, _ in stored}
        self._store([(partition, None) for partition in gone.values()])

    def _wanted(self, offsets: Sequence[Offset]) -> Iterator[tuple[TopicPartition, int | None]]:
        """Yield the upstream offset to copy next for each partition; None to begin again."""
        alias = self._flow.mm2_source
        for partition, offset in offsets:
            match partition, offset:
                case {"cluster": str(cluster), "topic": str(topic), "partition": int(index)}, None if cluster == alias:
                    yield (topic, index), None
                case (
                    {"cluster": str(cluster), "topic": str(topic), "partition": int(index)},
                    {"offset": int(upstream)},
                ) if cluster == alias:
                    yield (topic, index), upstream + 1
                case _, None:
                    pass  # a removal of an entry with a foreign format concerns no partition of this connector
                case _:
                    named = alias or "a source whose alias is empty"
                    raise ValueError(f"{self._connector} copies from {named}, and has no partition {partition}")

    def _go_on_at(self, wanted: Mapping[TopicPartition, int | None] | None) -> None:
        """Have the copy continue at these offsets; None begins all partitions again."""
        if not _wait_for(lambda: self._mirror.registry.is_up_to_date and self._has_settled()):
            raise ValueError(f"flow {self._flow.name} has not ended yet; try again in a moment")
        policy = topic_rules(self._flow).policy
        try:
            with (
                self._active_driver() as driver,
                AlteredOffsets(self._flow, policy, driver.leadership.identity) as altered,
            ):
                if wanted is None:
                    wanted = dict.fromkeys(altered.copied())
                altered.go_on_at(wanted, unclean=driver.predecessors.unclean)
        except NotAltered as error:
            raise ValueError(str(error)) from error

    @contextmanager
    def _active_driver(self) -> Iterator[FlowDriver]:
        """Yield the flow's driver, or a temporary driver, once active.

        The driver holds the flow's lease, so that no other process works on the flow.
        """
        driver = self._driver()
        own = None
        if driver is None:
            driver = own = FlowDriver(_resting(self._flow), uuid.uuid4().hex, use_lease=self._use_lease, once=False)
        try:
            if own is not None:
                own.open()
                own.start()
            if not _wait_for(driver.held):
                raise NotAltered(f"flow {self._flow.name}: {driver.leadership.standing_by}")
            driver.become_active()
            yield driver
        finally:
            if own is not None:
                own.close()

    def _has_settled(self) -> bool:
        return not self._mirror.registry.is_changing(self._flow.name)

    def _driver(self) -> FlowDriver | None:
        return next((driver for driver in self._mirror.drivers if driver.name == self._flow.name), None)

    def _store(self, offsets: Sequence[Offset]) -> None:
        with OffsetStore(self._flow, self._connector, self._role) as store:
            store.write(offsets)
        self._mirror.registry.forget_ended(self._flow.name)


class ZeroOffsets:
    """Checkpoint and heartbeat connectors' stored offsets.

    The offset is always 0; only the partitions tell something: checkpointed groups, and pairs with heartbeats.
    """

    def __init__(self) -> None:
        self._stored: set[tuple[str, str]] = set()
        """Stored entries, by connector and partition."""

    def store(self, flow: FlowConfig, connector: str, role: ConnectorRole, driver: FlowDriver | None) -> None:
        """Store the entries that are new; raise the errors of `OffsetStore`."""
        partitions: list[dict[str, object]] = []
        if role is ConnectorRole.HEARTBEAT:
            partitions = [{"sourceClusterAlias": flow.mm2_source, "targetClusterAlias": flow.mm2_target}]
        elif role is ConnectorRole.CHECKPOINT and driver is not None:
            partitions = [
                {"partition": index, "topic": topic, "group": group}
                for group, places in driver.groups.current.items()
                for topic, index in places
            ]
        news = [partition for partition in partitions if (connector, frozen(partition)) not in self._stored]
        if news:
            with OffsetStore(flow, connector, role) as store:
                store.write([(partition, {"offset": 0}) for partition in news])
            self._stored |= {(connector, frozen(partition)) for partition in news}

    def forget(self, connector: str) -> None:
        """Forget a connector's stored entries if its offsets may be altered."""
        self._stored = {entry for entry in self._stored if entry[0] != connector}


def _wait_for(condition: Callable[[], bool]) -> bool:
    """Wait for a condition, for at most `SETTLED_S`; return True if it came true."""
    deadline = time.monotonic() + SETTLED_S
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_WAIT_S)
    return True


def frozen(partition: Mapping[str, object] | None) -> str:
    """Return a source partition as a dictionary key."""
    return repr(sorted(partition.items())) if partition is not None else ""


def _resting(flow: FlowConfig) -> FlowConfig:
    """Return the flow without any work: no copy, no checkpoints, no heartbeats."""
    return flow.model_copy(
        update={
            "copies": False,
            "group": flow.group.model_copy(update={"emit_checkpoints_enabled": False}),
            "heartbeat": flow.heartbeat.model_copy(update={"emit_heartbeats_enabled": False}),
        }
    )
