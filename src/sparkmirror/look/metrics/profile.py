"""Profiles: four ways in which exporters name and label Kafka's metrics."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from functools import cache
from typing import NamedTuple

from sparkmirror.look.metrics.connector_states import SOURCE
from sparkmirror.snapshot.snapshot import Flow
from sparkmirror.web.series import Families, labels


class Profile(StrEnum):
    """A way to write MirrorMaker 2's metrics."""

    AWS = "aws"
    STRIMZI = "strimzi"
    STRIMZI_REPORTER = "strimzi-reporter"
    JMX_EXPORTER = "jmx-exporter"


OF_RULES = frozenset({Profile.AWS, Profile.STRIMZI})
"""Profiles whose rules for the JMX exporter shorten the names."""
OF_CONNECTOR_CLASSES = frozenset({Profile.STRIMZI, Profile.STRIMZI_REPORTER, Profile.JMX_EXPORTER})
"""Profiles that name the mirror's own metrics by the connectors' classes."""


class Beans(NamedTuple):
    """A kind of MBeans in Kafka's clients or in Connect.

    The object names are `kafka.<domain>:type=<type>-metrics,…`, here with underscores.
    """

    domain: str
    type: str

    @property
    def short(self) -> str:
        """Start of the names as most rules shorten it."""
        if self.domain == "connect":
            return f"kafka_connect_{self.type.removeprefix('connect_')}"
        return f"kafka_{self.type}"

    @property
    def full(self) -> str:
        """Start of the names without rules."""
        return f"kafka_{self.domain}_{self.type}_metrics"

    @property
    def common(self) -> str:
        """Start of the names by rules that shorten less, as Debezium's examples."""
        return f"{self.short}_metrics" if self.domain == "connect" else self.short


class Labels(NamedTuple):
    """A series' labels: as text under short names, and under all others."""

    short: str = ""
    full: str = ""

    def and_(self, **pairs: str | int) -> Labels:
        more = labels(**pairs)
        return Labels(*(f"{text},{more}" if text else more for text in self))


class _Name(NamedTuple):
    text: str
    kind: str
    is_short: bool


@cache
def _names(profiles: frozenset[Profile], beans: Beans, attribute: str, *, counts: bool) -> tuple[_Name, ...]:
    total, kind = ("_total", "counter") if counts else ("", "gauge")
    names = {}
    if not OF_RULES.isdisjoint(profiles):
        names[f"{beans.short}_{attribute}{total}"] = kind
    if Profile.JMX_EXPORTER in profiles:
        names[f"{beans.common}_{attribute}{total}"] = kind
        names[f"{beans.full}_{attribute}{total}"] = kind
    if Profile.STRIMZI_REPORTER in profiles:
        # The text format has no counters without `_total`, so the reporter's become gauges
        names[f"{beans.full}_{attribute}"] = "gauge"
    short = f"{beans.short}_{attribute}{total}"
    return tuple(_Name(text, kind, text == short) for text, kind in names.items())


class Spelling:
    """A scrape's families, and the names in each profile.

    A name that two profiles share has one series with both profiles' labels, so that no sum counts twice.
    """

    def __init__(self, families: Families, profiles: Collection[Profile]) -> None:
        self.families = families
        self.profiles = frozenset(profiles)

    def add(
        self, beans: Beans, attribute: str, text: str, of: Labels, value: float | None, *, counts: bool = False
    ) -> None:
        """Add a sample under each name; add none for `None`, which means "not known"."""
        for name in _names(self.profiles, beans, attribute, counts=counts):
            self.families.declare(name.text, name.kind, text).add(of.short if name.is_short else of.full, value)

    def connector(self, flow: Flow, kind: str) -> Labels:
        """Return a connector's label.

        Strimzi's rules keep JMX's quotes around a name with `->`.
        """
        name = f"{flow.flow}.{kind}"
        quoted = f'"{name}"' if Profile.STRIMZI in self.profiles else name
        return Labels(labels(connector=quoted), labels(connector=name))

    def client(self, flow: Flow, domain: str) -> Labels:
        """Return the labels for the flow's consumer, producer or admin client."""
        kafka_id = f"{flow.flow}|{flow.flow}.{SOURCE}-0|replication-consumer"
        aws_id = "consumer-mm2-msc-cons-0"
        if domain == "producer":
            kafka_id, aws_id = f"connector-producer-{flow.flow}.{SOURCE}-0", "producer-mm2-msc-0"
        elif domain == "admin_client":
            kafka_id = aws_id = f"{flow.flow}|{flow.flow}.{SOURCE}|replication-source-admin"
        ids = {}
        if Profile.AWS in self.profiles:
            ids["clientId"] = aws_id
        if Profile.STRIMZI in self.profiles:
            ids["clientid"] = f'"{kafka_id}"'
        if Profile.JMX_EXPORTER in self.profiles:
            ids["client_id"] = kafka_id
        return Labels(labels(flow=flow.flow, **ids), labels(flow=flow.flow, client_id=kafka_id))
