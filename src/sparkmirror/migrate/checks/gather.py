"""Gather the facts of checks; only lint's append check writes, to scratch topics."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from sparkmirror.config import MirrorConfig
from sparkmirror.config.model import SchemasConfig
from sparkmirror.errors import ClusterUnreachable, SparkMirrorError
from sparkmirror.kafka.cluster.group_permissions import group_operations
from sparkmirror.kafka.cluster.groups import Groups, ListedGroup
from sparkmirror.kafka.cluster.share_groups import SHARE, FetchedStarts, ShareGroups
from sparkmirror.kafka.cluster.super_users import names_super_users
from sparkmirror.kafka.cluster.topic_log import LogUnavailable
from sparkmirror.lint.check import compare
from sparkmirror.lint.probe import FlowProbe, probe
from sparkmirror.migrate.atomic_sets import atomic_sets
from sparkmirror.migrate.checks.facts import Facts, OutsideGroup, still_to_move
from sparkmirror.migrate.evidence import Evidence
from sparkmirror.migrate.file import Fence, MigrationFile, Set
from sparkmirror.migrate.observation import Observation, Side
from sparkmirror.migrate.pair import Pair
from sparkmirror.migrate.verifications import verifications
from sparkmirror.mirror.sync.topic_rules import group_filter
from sparkmirror.schemas import Registry, SchemaCheck, check_flow
from sparkmirror.snapshot.snapshot import Flow
from sparkmirror.snapshot.status_topic import read_status

TIMEOUT_S = 15.0
"""Longest wait for one cluster's answer to lint's survey."""
_PLACES = 20
"""Places in each partition's log where schema ids are looked for."""


def gather(
    file: MigrationFile, sets: tuple[Set, ...], pair: Pair, mirror: MirrorConfig, look: Callable[[], Observation]
) -> Facts:
    """Ask both clusters. Raises `ClusterUnreachable`, and other `ConnectionError`s."""
    earlier = look()
    facts = Facts(file=file, sets=still_to_move(earlier, sets), seen=earlier, earlier=earlier)
    if not facts.sets:
        return facts
    listed = {side: Groups(client).listed() for side, client in pair.clients.items()}
    groups = [group for each in facts.sets for group in each.groups]
    outside = {side: outside_groups(file, pair, side, listed[side]) for side in facts.sides}
    facts = dataclasses.replace(
        facts,
        probes=_probes(pair),
        status=dict(_status(pair)),
        listed=listed,
        readers={side: each.readers for side, each in outside.items()},
        unread={side: each.unread for side, each in outside.items()},
        group_rights={side: group_operations(client, groups) for side, client in pair.clients.items()},
        ties={side: atomic_sets(pair.clients[side]) for side in facts.sides},
        super_users={side: _super_users(file, pair, side) for side in Side},
        schemas=_schemas(pair, mirror, facts),
    )
    try:
        lines = list(Evidence(pair.clients[Side.TARGET], file.name).read())
    except LogUnavailable as error:  # such as a right that is missing
        facts = dataclasses.replace(facts, verified_untold=str(error))
    else:
        facts = dataclasses.replace(facts, verified=verifications(lines, file))
    return dataclasses.replace(facts, seen=look())


def _probes(pair: Pair) -> dict[Side, FlowProbe]:
    probes = {side: probe(flow, TIMEOUT_S) for side, flow in pair.flows.items()}
    compare(list(probes.values()))
    return probes


def _status(pair: Pair) -> Iterator[tuple[Side, Flow]]:
    for side, flow in pair.flows.items():
        with suppress(ClusterUnreachable):  # no mirror has run yet
            if (at_work := read_status(flow).at_work) is not None:
                yield side, at_work


class _Outside(NamedTuple):
    readers: tuple[OutsideGroup, ...]
    unread: Mapping[str, str]


def outside_groups(file: MigrationFile, pair: Pair, side: Side, listed: Mapping[str, ListedGroup]) -> _Outside:
    """Return groups outside all sets that have offsets in their topics, or in copies."""
    topics = {topic for each in file.sets for topic in each.topics}
    topics |= {pair.copy_of(side.other, topic) for topic in topics}
    known = {group for each in file.sets for group in each.groups}
    others = {name: entry for name, entry in listed.items() if name not in known}
    shares = [name for name, entry in others.items() if entry.type == SHARE]
    committed = Groups(pair.clients[side]).committed(set(others) - set(shares))
    starts = ShareGroups(pair.clients[side]).starts(shares) if shares else FetchedStarts({}, {})
    topics_read = {name: {topic for topic, _ in offsets} & topics for name, offsets in committed.offsets.items()}
    topics_read |= {name: {topic for topic, _ in offsets} & topics for name, offsets in starts.offsets.items()}
    flow = pair.flows.get(side)
    wanted = group_filter(flow) if flow else None
    readers = tuple(
        OutsideGroup(
            group=name,
            topics=tuple(sorted(read)),
            active=others[name].state not in ("", "Empty", "Dead"),
            share=name in starts.offsets,
            excluded=wanted is not None and not wanted.should_replicate_group(name),
        )
        for name, read in sorted(topics_read.items())
        if read
    )
    return _Outside(readers, {**committed.refused, **starts.refused})


def _super_users(file: MigrationFile, pair: Pair, side: Side) -> bool | None:
    return names_super_users(pair.clients[side]) if file.fence is Fence.ACL else False


def _schemas(pair: Pair, mirror: MirrorConfig, facts: Facts) -> SchemaCheck | str | None:
    flow = pair.flows[Side.SOURCE]
    registries = mirror.schemas.get(flow.name, SchemasConfig())
    if not registries.source.url or not registries.target.url:
        return None
    topics = {topic for each in facts.sets for topic in each.topics}
    try:
        return check_flow(
            flow,
            Registry(registries.source, "source"),
            Registry(registries.target, "target"),
            chosen=topics.__contains__,
            at="source",
            places=_PLACES,
            tell=lambda _, __: None,
        )
    except SparkMirrorError as error:
        return " ".join(str(error).split())
