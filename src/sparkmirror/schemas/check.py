"""A flow's schema ids, checked: which topics have them, and which mean something else at the target, or nothing.

Bytes may look like a header and be none. A part's ids are taken for such where the source's registry knows one of them,
or where every record begins so, few ids come often, and not all have the size of a long integer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from sparkmirror.cluster.admin import ClusterAdmin
from sparkmirror.cluster.client import ClusterClient
from sparkmirror.config import FlowConfig
from sparkmirror.config.schema_settings import Side
from sparkmirror.schemas.compare import SchemaComparer, SchemaComparison, SchemaVerdict
from sparkmirror.schemas.header import IdKind, SchemaId
from sparkmirror.schemas.registry import Registry
from sparkmirror.schemas.scan import FieldName, Scan, SeenField, TopicField, scan_sample, scan_whole
from sparkmirror.sync.topic_rules import TopicRules, topic_rules

ROLE = "sparkmirror-schemas"
_ASKED_OF_A_DOUBTFUL_PART = 100
"""Ids that the source's registry is asked for, to find one that it knows."""
_MOST_OF_A_PART = 10
"""Ids that one part has, none of which the source's registry knows; what has more of them is something else."""
_EXAMPLES = 3

Tell = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class CheckedId:
    """One id in the keys or values of one topic."""

    id: SchemaId
    records: int
    """That have it, of those looked at."""
    partition: int
    offset: int
    """Where it was seen first."""
    comparison: SchemaComparison

    @property
    def resolves(self) -> bool:
        """Whether it leads to an equal schema, as far as that can be asked."""
        return self.comparison.verdict in (SchemaVerdict.EQUAL, SchemaVerdict.NOT_CHECKED)


@dataclass(frozen=True, slots=True)
class CheckedPart:
    """The keys or the values of one topic."""

    topic: str
    """At the source."""
    target_topic: str
    field: FieldName
    records: int
    """Looked at; without those that have none."""
    with_id: int
    """That begin with a header, or have one beside them."""
    ids: tuple[CheckedId, ...]
    doubt: str = ""
    """Why these may be no schema ids at all."""


@dataclass(frozen=True, slots=True)
class SchemaCheck:
    """What was found out about one flow."""

    flow: str
    topics: int
    """That were looked at."""
    parts: tuple[CheckedPart, ...]
    """Those with records, by topic."""
    unread: dict[str, str]
    """Topics of which something could not be read, and what."""

    @property
    def differs(self) -> bool:
        """Whether an id does not resolve, a topic was not read, or the source's registry is that of somebody else."""
        wrong = any(not one.resolves for part in self.parts if not part.doubt for one in part.ids)
        return wrong or bool(self.unread) or self.strange

    @property
    def strange(self) -> bool:
        """Whether the source's registry knows none of all the ids that it could know."""
        asked = [part for part in self.parts if any(one.id.kind is IdKind.CONFLUENT for one in part.ids)]
        verdicts = {one.comparison.verdict for part in asked for one in part.ids}
        return bool(asked) and verdicts <= {SchemaVerdict.UNKNOWN, SchemaVerdict.NOT_CHECKED}


def check_flow(
    flow: FlowConfig,
    source: Registry,
    target: Registry,
    *,
    chosen: Callable[[str], bool] | None,
    at: Side,
    places: int,
    tell: Tell,
) -> SchemaCheck:
    """Look at the records of the flow's topics, and ask both registries for each id.

    `chosen`: whether a source topic is wanted; None: all of the flow's are. `at`: whose logs are read, the source's or
    the copies'. `places`: how many of each partition's log; 0: whole logs. Raises `ClusterUnreachable`,
    `RegistryUnreachable` and `ConfigError`.
    """
    rules = topic_rules(flow, flow.originals)
    names = _names(flow, rules, chosen)
    cluster = flow.source if at == "source" else flow.target
    logs = {name: name if at == "source" else remote for name, remote in names.items()}
    client = ClusterClient(cluster.for_copying if at == "source" else cluster, ROLE)
    read_committed = flow.fetch.isolation_level == "read_committed"
    try:
        if places:
            scan = scan_sample(client, [*logs.values()], places, read_committed=read_committed, tell=tell)
        else:
            scan = scan_whole(client, [*logs.values()], read_committed=read_committed, tell=tell)
    finally:
        client.hang_up()
    return judged(flow.name, names, logs, scan, SchemaComparer(source, target))


def judged(
    flow: str, names: Mapping[str, str], logs: Mapping[str, str], scan: Scan, comparer: SchemaComparer
) -> SchemaCheck:
    """What was seen, compared; `names` are copies' names and `logs` those that were read, by source topic."""
    parts = [
        _checked(topic, names[topic], part, scan.parts[part], comparer)
        for topic, log in sorted(logs.items())
        for part in (TopicField(log, "key"), TopicField(log, "value"))
        if part in scan.parts and scan.parts[part].records
    ]
    unread = {topic: scan.unread[log] for topic, log in logs.items() if log in scan.unread}
    return SchemaCheck(flow, len(names), tuple(parts), unread)


def _names(flow: FlowConfig, rules: TopicRules, chosen: Callable[[str], bool] | None) -> dict[str, str]:
    """The topics that are copied and what their copies are called; not heartbeats, whose bytes look like headers."""
    with ClusterAdmin.connect(flow.source, ROLE) as admin:
        there = sorted(admin.topics())
    return {
        name: rules.remote_name(name)
        for name in there
        if (chosen is None or chosen(name)) and not rules.policy.is_heartbeats_topic(name) and rules.wanted(name)
    }


def _checked(topic: str, target_topic: str, part: TopicField, seen: SeenField, comparer: SchemaComparer) -> CheckedPart:
    doubt = _doubt(seen, comparer)
    shown = _first(seen, _EXAMPLES) if doubt else seen.ids
    ids = tuple(
        CheckedId(one, seen.ids[one].records, seen.ids[one].partition, seen.ids[one].offset, comparer.compare(one))
        for one in sorted(shown, key=lambda one: (one.kind, len(one.text), one.text))
    )
    return CheckedPart(topic, target_topic, part.field, seen.records, seen.with_id, ids, doubt)


def _doubt(seen: SeenField, comparer: SchemaComparer) -> str:
    """Why what looks like ids may be none; nothing if they are, or there are none."""
    kinds = {one.kind for one in seen.ids}
    if not seen.ids or IdKind.GUID in kinds:
        return ""
    asked = [one for one in _first(seen, _ASKED_OF_A_DOUBTFUL_PART) if one.kind is IdKind.CONFLUENT]
    if any(comparer.compare(one).verdict is not SchemaVerdict.UNKNOWN for one in asked):
        return ""
    few = len(seen.ids) <= min(_MOST_OF_A_PART, max(1, seen.with_id // 2))
    longs = seen.longs == seen.with_id
    if seen.with_id == seen.records and few and not longs:
        return ""
    words = [f"{seen.with_id:,} of {seen.records:,} begin as if with a schema id (different ids: {len(seen.ids):,})"]
    words += [f"the source's registry knows none of the {len(asked):,} that it was asked for"] if asked else []
    words += ["all of these have eight bytes, as long integers have"] if longs else []
    return "; ".join(words)


def _first(seen: SeenField, count: int) -> Iterable[SchemaId]:
    """Those that most records have."""
    return sorted(seen.ids, key=lambda one: -seen.ids[one].records)[:count]
