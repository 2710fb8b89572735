"""The status topic: a flow's snapshot at its target, for terminals anywhere.

The topic has one compacted partition, with a record for the flow's summary, and one or a few for each topic and group.
A topic's or group's records are written after a change, and become tombstones once the topic or group is gone.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Protocol

from pydantic import TypeAdapter, ValidationError

from sparkmirror.config import FlowConfig
from sparkmirror.config.flow_settings import differences
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import LogEntry, TopicLog
from sparkmirror.pump.messages.status_topic import status_topic
from sparkmirror.snapshot.snapshot import Flow, Group, Role, Topic

VERSION = 1
"""The records' version; a reader leaves out all other versions."""
INTERVAL_S = 5.0
"""Seconds between the publisher's turns."""
FRESH_S = 15.0
"""Greatest age in seconds of a status from a mirror at work.

Three turns of the publisher.
"""
RECORD_BYTES = 900_000
"""Largest record: brokers take 1 MB unless told otherwise."""
TURN_BYTES = 1_000_000
"""Approximate bytes per turn for topics and groups.

The topics and groups written longest ago come first.
"""
_LONGEST_REASON = 2_000
_SUMMARY = b"flow"


class Log(Protocol):
    """The part of a `TopicLog` that the publisher needs."""

    def append(self, partition: int, entries: Sequence[tuple[bytes, bytes | None]]) -> int: ...

    def read(self, partition: int, offset: int) -> tuple[list[LogEntry], int]: ...


class StatusPublisher:
    """Publish changes since the last turn; for one thread.

    Only the leader's turns write.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._published: dict[bytes, Topic | Group] | None = None
        self._keys: dict[bytes, set[bytes]] = {}
        """Record keys in the topic, by topic or group."""
        self._turns: dict[bytes, int] = {}
        self._turn = 0

    def turn(self, flow: Flow) -> None:
        """Publish a snapshot.

        Raises `ConnectionError` or `ClusterUnreachable`; the next turn then begins again.
        """
        if flow.role is not Role.LEADER:
            self._published = None
            return
        try:
            self._publish(flow)
        except (ConnectionError, ClusterUnreachable):
            self._published = None
            raise

    def _publish(self, flow: Flow) -> None:
        published = self._take_over() if self._published is None else self._published
        self._turn += 1
        units = _units(flow)
        entries: list[tuple[bytes, bytes | None]] = []
        for gone in self._keys.keys() - units.keys():
            entries += [(key, None) for key in self._keys.pop(gone)]
            published.pop(gone, None)
            self._turns.pop(gone, None)
        changed = [name for name, unit in units.items() if published.get(name) != unit]
        changed.sort(key=lambda name: self._turns.get(name, 0))
        left = TURN_BYTES
        for name in changed:
            if left <= 0:
                break
            pieces = dict(_pieces(name, units[name]))
            left -= sum(map(len, pieces.values()))
            entries += pieces.items()
            entries += [(key, None) for key in self._keys.get(name, set()) - pieces.keys()]
            self._keys[name], published[name], self._turns[name] = set(pieces), units[name], self._turn
        summary = replace(flow, topics=(), groups=(), loss_entries=())
        entries.append((_SUMMARY, _record(_flow_adapter().dump_json(summary, exclude_defaults=True))))
        self._log.append(0, entries)
        self._published = published

    def _take_over(self) -> dict[bytes, Topic | Group]:
        """Learn which records an earlier leader left, whatever their version."""
        self._keys, self._turns = {}, {}
        for key in _newest(self._log.read(0, 0)[0]):
            if key != _SUMMARY:
                self._keys.setdefault(key.rpartition(b"/")[0], set()).add(key)
        return {}


@dataclass(frozen=True, slots=True)
class Status:
    """Contents of a flow's status topic."""

    flow: Flow | None
    """The flow; None: no record of this version was published."""
    left_out: int
    """Number of records that can't be read, from other sparkmirror versions."""

    def age_s(self, now_ms: int | None = None) -> float | None:
        """The flow snapshot's age by this machine's clock; never negative."""
        if self.flow is None:
            return None
        now_ms = int(time.time() * 1000) if now_ms is None else now_ms
        return max(0.0, (now_ms - self.flow.at_ms) / 1000)

    @property
    def at_work(self) -> Flow | None:
        """The flow, if a mirror has published it within `FRESH_S`."""
        age = self.age_s()
        return self.flow if age is not None and age <= FRESH_S else None


def read_status(flow: FlowConfig) -> Status:
    """Read a flow's status from the target, and compare the reader's settings.

    Raises `ClusterUnreachable`.
    """
    client = ClusterClient(flow.target, f"{flow.name}|sparkmirror-cli")
    try:
        entries, _ = TopicLog(client, status_topic(flow.source.alias), may_be_absent=True).read(0, 0)
    except ConnectionError as error:
        raise ClusterUnreachable(f"flow {flow.name}: {error}; has the mirror run before?") from error
    finally:
        client.close()
    status = assembled(entries)
    if status.flow is None:
        return status
    return replace(status, flow=replace(status.flow, differs=differences(flow, status.flow.settings)))


def assembled(entries: Iterable[LogEntry]) -> Status:
    """Return the flow that the topic's records describe.

    Records that can't be understood are left out and counted.
    """
    summary: Flow | None = None
    topics: dict[str, list[Topic]] = {}
    groups: dict[str, list[Group]] = {}
    left_out = 0
    for key, value in _newest(entries).items():
        body = _body(value)
        try:
            if body is None:
                left_out += 1
            elif key == _SUMMARY:
                summary = _flow_adapter().validate_python(body)
            elif key.startswith(b"topic/"):
                topic = _topic_adapter().validate_python(body)
                topics.setdefault(topic.topic, []).append(topic)
            elif key.startswith(b"group/"):
                group = _group_adapter().validate_python(body)
                groups.setdefault(group.group, []).append(group)
            else:
                left_out += 1
        except ValidationError:
            left_out += 1
    if summary is None:
        return Status(None, left_out)
    whole = replace(
        summary,
        topics=tuple(
            replace(
                parts[0], partitions=tuple(sorted((p for t in parts for p in t.partitions), key=lambda p: p.partition))
            )
            for _, parts in sorted(topics.items())
        ),
        groups=tuple(
            replace(
                parts[0],
                partitions=tuple(
                    sorted((p for g in parts for p in g.partitions), key=lambda p: (p.topic, p.partition))
                ),
            )
            for _, parts in sorted(groups.items())
        ),
    )
    return Status(whole, left_out)


def _units(flow: Flow) -> dict[bytes, Topic | Group]:
    units: dict[bytes, Topic | Group] = {b"topic/" + topic.topic.encode(): topic for topic in flow.topics}
    units.update((b"group/" + group.group.encode(), group) for group in flow.groups)
    return units


def _pieces(name: bytes, unit: Topic | Group) -> Iterator[tuple[bytes, bytes]]:
    """Yield records of at most `RECORD_BYTES`, each with a share of the partitions."""
    waiting, number = [unit], 0
    while waiting:
        piece = waiting.pop()
        record = _encoded(piece)
        middle = len(piece.partitions) // 2
        if len(record) > RECORD_BYTES:
            if middle:
                waiting += _halves(piece, middle)
                continue
            record = _encoded(_shortened(piece))
        yield name + b"/%d" % number, record
        number += 1


def _halves(unit: Topic | Group, middle: int) -> list[Topic | Group]:
    if isinstance(unit, Topic):
        return [replace(unit, partitions=half) for half in (unit.partitions[middle:], unit.partitions[:middle])]
    return [replace(unit, partitions=half) for half in (unit.partitions[middle:], unit.partitions[:middle])]


def _shortened(unit: Topic | Group) -> Topic | Group:
    if isinstance(unit, Group):
        return replace(unit, reason=unit.reason[:_LONGEST_REASON])
    partitions = tuple(replace(partition, reason=partition.reason[:_LONGEST_REASON]) for partition in unit.partitions)
    return replace(unit, refused=unit.refused[:_LONGEST_REASON], partitions=partitions)


def _encoded(unit: Topic | Group) -> bytes:
    if isinstance(unit, Topic):
        return _record(_topic_adapter().dump_json(unit, exclude_defaults=True))
    return _record(_group_adapter().dump_json(unit, exclude_defaults=True))


def _record(body: bytes) -> bytes:
    return b'{"version":%d,"body":%s}' % (VERSION, body)


def _body(value: bytes) -> object:
    """Return a record's body; None for anything but a record of this version."""
    try:
        record = json.loads(value)
    except ValueError:
        return None
    return record.get("body") if isinstance(record, dict) and record.get("version") == VERSION else None


def _newest(entries: Iterable[LogEntry]) -> dict[bytes, bytes]:
    newest: dict[bytes, bytes] = {}
    for _, key, value in entries:
        if key is None:
            continue
        if value is None:
            newest.pop(key, None)
        else:
            newest[key] = value
    return newest


@cache
def _flow_adapter() -> TypeAdapter[Flow]:
    return TypeAdapter(Flow)


@cache
def _topic_adapter() -> TypeAdapter[Topic]:
    return TypeAdapter(Topic)


@cache
def _group_adapter() -> TypeAdapter[Group]:
    return TypeAdapter(Group)


def fresh(flow: FlowConfig, status: Status, stale_s: float) -> tuple[Flow, float]:
    """Return the flow and the age of its status in seconds.

    Raises `ClusterUnreachable` if the status is missing or too old.
    """
    age_s = status.age_s()
    if status.flow is None or age_s is None:
        why = (
            "another version of sparkmirror published it; ask with the version that runs the mirror"
            if status.left_out
            else "no mirror has published it; is the mirror running?"
        )
        raise ClusterUnreachable(f"flow {flow.name}: its status is not known: {why}")
    if age_s > stale_s:
        raise ClusterUnreachable(
            f"flow {flow.name}: its last status is {age_s:,.0f} s old ({status.flow.state}); is the mirror running?"
        )
    return status.flow, age_s
