"""The offsets of one connector: read, altered and reset (KIP-875), and what that means for a copy that is exact."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from sparkmirror.config import FlowConfig
from sparkmirror.connect.model import Offset
from sparkmirror.connect.offset_store import OffsetStore
from sparkmirror.engine.flow_driver import FlowDriver
from sparkmirror.engine.mirror import Mirror
from sparkmirror.formats.connect import ConnectorRole
from sparkmirror.sync.topic_rules import topic_rules
from sparkmirror.takeover.altered_offsets import AlteredOffsets, NotAltered
from sparkmirror.wire.topic_partition import TopicPartition

SETTLED_S = 30.0
"""How long a connector that was stopped may take to have ended, and then the flow's lease to be got."""

_WAIT_S = 0.1


class ConnectorOffsets:
    """Blocking; raises `ValueError` for what can't be done, with the reason, and `ConnectionError`s.

    To alter them, the connector must be stopped already.
    """

    def __init__(
        self, mirror: Mirror, flow: FlowConfig, connector: str, role: ConnectorRole, *, use_lease: bool = True
    ) -> None:
        self._mirror = mirror
        self._flow = flow
        self._connector = connector
        self._role = role
        self._use_lease = use_lease

    def read(self) -> list[Offset]:
        """What Connect's topic has; of a copy that runs, what is copied since it was written."""
        with OffsetStore(self._flow, self._connector, self._role) as store:
            found = {frozen(partition): (partition, offset) for partition, offset in store.read()}
        driver = self._driver()
        if self._role is ConnectorRole.SOURCE and driver is not None and driver.flow.copies:
            for (topic, index), upstream in driver.view.copied.items():
                partition = {"cluster": self._flow.mm2_source, "partition": index, "topic": topic}
                found[frozen(partition)] = partition, {"offset": upstream}
        return list(found.values())

    def alter(self, offsets: Sequence[Offset]) -> None:
        """Set these, which are as the connector's are; the copy of a source connector goes on behind them."""
        if self._role is ConnectorRole.SOURCE:
            self._go_on_at(dict(self._wanted(offsets)))
        self._store(offsets)

    def reset(self) -> None:
        """Remove all; a source connector copies as if it never had."""
        stored = self.read()
        if self._role is ConnectorRole.SOURCE:
            self._go_on_at(None)
            stored += self.read()  # the last turn of the flow that has ended may have stored more
        gone = {frozen(partition): partition for partition, _ in stored}
        self._store([(partition, None) for partition in gone.values()])

    def _wanted(self, offsets: Sequence[Offset]) -> Iterator[tuple[TopicPartition, int | None]]:
        """The upstream offset that is next, by source partition."""
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
                    pass  # nothing of this connector's, and it is to be gone
                case _:
                    named = alias or "a source whose alias is empty"
                    raise ValueError(f"{self._connector} copies from {named}, and has no partition {partition}")

    def _go_on_at(self, wanted: Mapping[TopicPartition, int | None] | None) -> None:
        """Have the copy go on elsewhere; None: all of it begins anew."""
        deadline = time.monotonic() + SETTLED_S
        while not self._mirror.roster.is_settled:
            if time.monotonic() > deadline:
                raise ValueError(f"flow {self._flow.name} has not ended yet; try again in a moment")
            time.sleep(_WAIT_S)
        policy = topic_rules(self._flow, self._flow.originals).policy
        try:
            with self._in_charge() as driver, AlteredOffsets(self._flow, policy, driver.identity) as altered:
                if wanted is None:
                    wanted = dict.fromkeys(altered.copied())
                altered.go_on_at(wanted, unclean=driver.unclean)
        except NotAltered as error:
            raise ValueError(str(error)) from error

    @contextmanager
    def _in_charge(self) -> Iterator[FlowDriver]:
        """The flow's driver, or one for this moment: with its lease, so that nobody else works on it."""
        driver = self._driver()
        own = None
        if driver is None:
            driver = own = FlowDriver(_resting(self._flow), uuid.uuid4().hex, use_lease=self._use_lease, once=False)
        try:
            if own is not None:
                own.open()
                own.start()
            deadline = time.monotonic() + SETTLED_S
            while not driver.held():
                if time.monotonic() > deadline:
                    raise NotAltered(f"flow {self._flow.name}: {driver.standing_by}")
                time.sleep(_WAIT_S)
            driver.take_charge()
            yield driver
        finally:
            if own is not None:
                own.close()

    def _driver(self) -> FlowDriver | None:
        return next((driver for driver in self._mirror.drivers if driver.name == self._flow.name), None)

    def _store(self, offsets: Sequence[Offset]) -> None:
        with OffsetStore(self._flow, self._connector, self._role) as store:
            store.write(offsets)


class ZeroOffsets:
    """Checkpoint and heartbeat connectors store offsets too, which are always 0 and say nothing but for what."""

    def __init__(self) -> None:
        self._stored: set[tuple[str, str]] = set()
        """By connector and partition."""

    def store(self, flow: FlowConfig, connector: str, role: ConnectorRole, driver: FlowDriver | None) -> None:
        """Those that are new; raises as `OffsetStore`."""
        partitions: list[dict[str, object]] = []
        if role is ConnectorRole.HEARTBEAT:
            partitions = [{"sourceClusterAlias": flow.mm2_source, "targetClusterAlias": flow.mm2_target}]
        elif role is ConnectorRole.CHECKPOINT and driver is not None:
            partitions = [
                {"partition": index, "topic": topic, "group": group}
                for group, places in driver.groups.current.items()
                for topic, index in places
            ]
        news = [one for one in partitions if (connector, frozen(one)) not in self._stored]
        if news:
            with OffsetStore(flow, connector, role) as store:
                store.write([(one, {"offset": 0}) for one in news])
            self._stored |= {(connector, frozen(one)) for one in news}

    def forget(self, connector: str) -> None:
        """They may be altered."""
        self._stored = {one for one in self._stored if one[0] != connector}


def frozen(partition: Mapping[str, object] | None) -> str:
    """A source partition as a key."""
    return repr(sorted(partition.items())) if partition is not None else ""


def _resting(flow: FlowConfig) -> FlowConfig:
    """The flow with nothing to do."""
    return flow.model_copy(
        update={
            "copies": False,
            "group": flow.group.model_copy(update={"emit_checkpoints_enabled": False}),
            "heartbeat": flow.heartbeat.model_copy(update={"emit_heartbeats_enabled": False}),
        }
    )
