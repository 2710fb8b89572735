"""Check a flow's schema ids against both registries.

The check tells which topics have schema ids, and which ids mean something else at the target, or nothing. Bytes may
look like a schema id by chance. The ids in a topic's keys or values are taken for real if the source's registry knows
one of them; or if every record begins with an id, the ids are few and each comes often, and not all fields are as large
as a long integer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from sparkmirror.config import FlowConfig
from sparkmirror.config.schema_settings import Side
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.mirror.sync.topic_rules import TopicRules, topic_rules
from sparkmirror.schemas.compare import SchemaComparer, SchemaComparison, SchemaVerdict
from sparkmirror.schemas.header import IdKind, SchemaId
from sparkmirror.schemas.registry import Registry
from sparkmirror.schemas.scan import FieldName, Scan, SeenField, TopicField, scan_sample, scan_whole

ROLE = "sparkmirror-schemas"
_ASKED_OF_A_DOUBTFUL_PART = 100
"""Most ids that the source's registry is asked for, to find a known one."""
_MOST_OF_A_PART = 10
"""Most different ids in keys or values whose ids are all unknown at the source.

Keys or values with more different ids hold something else.
"""
_EXAMPLES = 3

Tell = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedId:
    """An id in a topic's keys or values."""

    id: SchemaId
    records: int
    """Number of examined records with this id."""
    partition: int
    offset: int
    """First partition and offset at which the id was seen."""
    comparison: SchemaComparison

    @property
    def resolves(self) -> bool:
        """True if the id leads to an equal schema, as far as registries can tell."""
        return self.comparison.verdict in (SchemaVerdict.EQUAL, SchemaVerdict.NOT_CHECKED)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedPart:
    """A topic's keys, or its values."""

    topic: str
    """Name at the source."""
    target_topic: str
    field: FieldName
    records: int
    """Records examined, without those whose key or value is null."""
    with_id: int
    """Records that begin with an id, or have an id in a record header."""
    ids: tuple[CheckedId, ...]
    doubt: str = ""
    """Reason to doubt that these are schema ids at all; empty without doubt."""


@dataclass(frozen=True, slots=True)
class SchemaCheck:
    """Result of one flow's check."""

    flow: str
    topics: int
    """Number of topics that were examined."""
    parts: tuple[CheckedPart, ...]
    """Keys and values with records, by topic."""
    unread: dict[str, str]
    """Topic -> reason why part of the topic could not be read."""

    @property
    def differs(self) -> bool:
        """True if an id does not resolve, a topic was not read, or `strange` is true."""
        wrong = any(not checked.resolves for part in self.parts if not part.doubt for checked in part.ids)
        return wrong or bool(self.unread) or self.strange

    @property
    def strange(self) -> bool:
        """True if the source's registry knows no id at all that it could know.

        The registry is then probably the wrong one.
        """
        asked = [part for part in self.parts if any(checked.id.kind is IdKind.CONFLUENT for checked in part.ids)]
        verdicts = {checked.comparison.verdict for part in asked for checked in part.ids}
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
    """Examine the records of the flow's topics, and ask both registries for each id.

    `chosen` tells whether to examine a source topic; None: all the flow's topics. `at` is the side whose logs are read:
    the source's topics, or the copies. `places` is how many places to read in each partition's log; 0: whole logs.
    Raises `ClusterUnreachable`, `RegistryUnreachable` and `ConfigError`.
    """
    rules = topic_rules(flow)
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
    """Compare all ids that the scan has seen.

    By source topic, `names` are the copies' names, and `logs` the names of the logs that were read.
    """
    parts = [
        _checked(topic, names[topic], part, scan.parts[part], comparer)
        for topic, log in sorted(logs.items())
        for part in (TopicField(log, "key"), TopicField(log, "value"))
        if part in scan.parts and scan.parts[part].records
    ]
    unread = {topic: scan.unread[log] for topic, log in logs.items() if log in scan.unread}
    return SchemaCheck(flow, len(names), tuple(parts), unread)


def _names(flow: FlowConfig, rules: TopicRules, chosen: Callable[[str], bool] | None) -> dict[str, str]:
    """Return source topic -> the copy's name, for all topics to examine.

    Heartbeats are left out, because their bytes look like schema ids.
    """
    with ClusterAdmin.connect(flow.source, ROLE) as admin:
        topics = sorted(admin.topics())
    return {
        name: rules.remote_name(name)
        for name in topics
        if (chosen is None or chosen(name)) and not rules.is_heartbeats(name) and rules.wanted(name)
    }


def _checked(topic: str, target_topic: str, part: TopicField, seen: SeenField, comparer: SchemaComparer) -> CheckedPart:
    doubt = _doubt(seen, comparer)
    shown = _first(seen, _EXAMPLES) if doubt else seen.ids
    ids = tuple(
        CheckedId(
            id=schema_id,
            records=seen.ids[schema_id].records,
            partition=seen.ids[schema_id].partition,
            offset=seen.ids[schema_id].offset,
            comparison=comparer.compare(schema_id),
        )
        for schema_id in sorted(shown, key=lambda schema_id: (schema_id.kind, len(schema_id.text), schema_id.text))
    )
    return CheckedPart(
        topic=topic,
        target_topic=target_topic,
        field=part.field,
        records=seen.records,
        with_id=seen.with_id,
        ids=ids,
        doubt=doubt,
    )


def _doubt(seen: SeenField, comparer: SchemaComparer) -> str:
    """Give the reasons why apparent ids may be none; empty for real ids, or none."""
    kinds = {schema_id.kind for schema_id in seen.ids}
    if not seen.ids or IdKind.GUID in kinds:
        return ""
    asked = [schema_id for schema_id in _first(seen, _ASKED_OF_A_DOUBTFUL_PART) if schema_id.kind is IdKind.CONFLUENT]
    if any(comparer.compare(schema_id).verdict is not SchemaVerdict.UNKNOWN for schema_id in asked):
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
    """Return the ids that most records have."""
    return sorted(seen.ids, key=lambda schema_id: -seen.ids[schema_id].records)[:count]
