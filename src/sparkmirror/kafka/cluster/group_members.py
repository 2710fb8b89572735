"""Group members in classic, `consumer` (KIP-848) and `streams` (KIP-1071) groups.

A coordinator describes a group only by the request of the group's type, and the type may change while members roll to
the newer protocol. So DescribeGroups comes first, and groups that are no classic ones are asked for again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from kafka.protocol.admin import DescribeGroupsRequest

from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.coordinators import PASSING, Coordinators, group_refusal
from sparkmirror.kafka.wire import described_groups
from sparkmirror.kafka.wire.described_groups import (
    CONSUMER_GROUP_DESCRIBE,
    STREAMS_GROUP_DESCRIBE,
    WireGroup,
    WireMember,
    classic_assignment,
)
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.primitives import Garbled
from sparkmirror.kafka.wire.rpc import UnsupportedBroker
from sparkmirror.kafka.wire.topic_partition import TopicPartition

CLASSIC, CONSUMER, STREAMS = "classic", "consumer", "streams"
"""Group types, as `ListedGroup.type` has them."""
STREAMS_PROTOCOL = "stream"
"""Protocol that Kafka Streams chooses in a classic group."""
_DEAD = "Dead"
_CONSUMERS = "consumer"
_TYPES = {CONSUMER_GROUP_DESCRIBE: CONSUMER, STREAMS_GROUP_DESCRIBE: STREAMS}


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember:
    """One member of a group."""

    member_id: str
    client_id: str
    host: str
    """Address as the coordinator saw it, such as `10.0.0.7`."""
    assigned: frozenset[TopicPartition]
    """Partitions that the member reads.

    Empty for Connect workers, and for clients whose assignments have a format of their own.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedGroup:
    """A group with its members, as its coordinator knows them."""

    type: str = ""
    """`classic`, `consumer` or `streams`; empty for a missing group."""
    protocol: str = ""
    """Protocol of a classic group with members, such as `range` or `stream`."""
    state: str = ""
    members: tuple[GroupMember, ...] = ()
    internal: frozenset[str] = frozenset()
    """Changelog and repartition topics of a streams group; empty for other types."""

    @property
    def is_streams(self) -> bool:
        """True if the group is a Kafka Streams application, by type or protocol."""
        return self.type == STREAMS or self.protocol == STREAMS_PROTOCOL


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedGroups:
    """Groups with their members."""

    groups: Mapping[str, DescribedGroup]
    """All groups that the coordinators told of; a missing group has no members."""
    refused: Mapping[str, str]
    """Groups whose members can't be read, with the reason."""


def describe_groups(
    client: ClusterClient, groups: Iterable[str], *, coordinators: Coordinators | None = None
) -> DescribedGroups:
    """Read the members in groups with any type but `share`.

    A broker that lacks a newer request has no group with the type. Raises `ConnectionError`s and `ClusterUnreachable`.
    """
    wanted = list(dict.fromkeys(groups))
    coordinators = coordinators or Coordinators(client)
    known: dict[str, DescribedGroup] = {}
    refused: dict[str, str] = {}

    def take(told: Mapping[str, tuple[int, DescribedGroup]]) -> dict[str, int]:
        """Sort the answers; return the groups to retry."""
        passing = {}
        for group, (code, described) in told.items():
            if code in PASSING:
                passing[group] = code
            elif code == ErrorCode.GROUP_ID_NOT_FOUND:
                known.setdefault(group, DescribedGroup())
            elif code:
                refused[group] = group_refusal(code)
            else:
                known[group] = described
        return passing

    def by(ask: Callable[[int, Sequence[str]], Mapping[str, tuple[int, DescribedGroup]]]) -> None:
        left = [group for group in wanted if group not in refused and not (known.get(group) or DescribedGroup()).type]
        coordinators.ask_each(left, lambda broker, chunk: take(ask(broker, chunk)), refused, "reading groups' members")

    by(lambda broker, chunk: _classic(client, broker, chunk))
    for api_key in (CONSUMER_GROUP_DESCRIBE, STREAMS_GROUP_DESCRIBE):
        by(lambda broker, chunk, api_key=api_key: _newer(client, broker, chunk, api_key))  # type: ignore[misc]
    return DescribedGroups(groups=known, refused=refused)


def _classic(client: ClusterClient, broker: int, groups: Sequence[str]) -> dict[str, tuple[int, DescribedGroup]]:
    """Ask by DescribeGroups.

    A `Dead` group is missing, or has another type; since version 6 the answer is an error instead (KIP-1043).
    """
    told = {}
    for entry in client.ask(broker, DescribeGroupsRequest(groups=list(groups))).groups:
        code = entry.error_code or (ErrorCode.GROUP_ID_NOT_FOUND if entry.group_state == _DEAD else 0)
        described = DescribedGroup(
            type=CLASSIC,
            protocol=entry.protocol_data or "",
            state=entry.group_state or "",
            members=tuple(_classic_member(entry.protocol_type, member) for member in entry.members or ()),
        )
        told[entry.group_id] = code, described
    return told


def _classic_member(protocol_type: str, member: Any) -> GroupMember:
    assigned = frozenset[TopicPartition]()
    if protocol_type == _CONSUMERS:
        with suppress(Garbled):
            assigned = classic_assignment(bytes(member.member_assignment or b""))
    return _member(WireMember(member.member_id, member.client_id, member.client_host, assigned))


def _newer(
    client: ClusterClient, broker: int, groups: Sequence[str], api_key: int
) -> dict[str, tuple[int, DescribedGroup]]:
    missing = ErrorCode.GROUP_ID_NOT_FOUND, DescribedGroup()
    try:
        connection = client.broker(broker)
        version = connection.version(api_key, described_groups.VERSIONS[api_key], described_groups.NAMES[api_key])
        request = described_groups.encode(api_key, version, client.client_id.encode(), groups)
        answer = described_groups.decode(api_key, version, connection.exchange_raw([request]))
    except UnsupportedBroker:
        return dict.fromkeys(groups, missing)
    except ConnectionError:
        client.hang_up(broker)
        raise
    return {told.group: (_code(told), _described(told, _TYPES[api_key])) for told in answer}


def _code(told: WireGroup) -> int:
    """Return the group's error.

    A feature that the cluster has switched off has no groups.
    """
    return ErrorCode.GROUP_ID_NOT_FOUND if told.error == ErrorCode.UNSUPPORTED_VERSION else told.error


def _described(told: WireGroup, kind: str) -> DescribedGroup:
    return DescribedGroup(
        type=kind, state=told.state, members=tuple(map(_member, told.members)), internal=told.internal
    )


def _member(member: WireMember) -> GroupMember:
    return GroupMember(
        member_id=member.member_id,
        client_id=member.client_id,
        host=member.host.removeprefix("/"),
        assigned=member.assigned,
    )
