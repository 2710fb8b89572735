"""Topics at the target that other sparkmirror flows copy into.

The other flows may run in this process or in another. A second flow into such a topic would mix both flows' records.
Each flow notes a topic before writing to it (`durable.known_topics`), so a topic belongs to the flow that came first.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import NamedTuple

from sparkmirror.config import FlowConfig
from sparkmirror.exact.durable.known_topics import KnownTopic, TopicMemory
from sparkmirror.exact.durable.losses import losses_topic
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_descriptions import TopicDescription
from sparkmirror.kafka.cluster.topic_log import LogUnavailable, TopicLog
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.topic_ids import same_topic

log = logging.getLogger(__name__)

_START, _END = losses_topic("|").split("|")


class OtherFlows:
    """Target topics that other flows claim, as seen by one flow.

    The caller closes the target's client.
    """

    def __init__(self, client: ClusterClient, flow: FlowConfig) -> None:
        self._client = client
        self._flow = flow

    def copiers(self, copies: Mapping[str, TopicDescription], there: Mapping[str, TopicDescription]) -> dict[str, str]:
        """Map this flow's target topics to the flow that copied into them first.

        `copies` are the target topics that this flow would copy into, `there` all the target's topics. Topics in a
        flow's unreadable notes are left out.
        """
        if not copies or not self._aliases(there):
            return {}
        own = self._known(self._flow.source.alias) if losses_topic(self._flow.source.alias) in there else {}
        new = {name: topic for name, topic in copies.items() if not is_noted(own.get(name), topic)}
        return self._owners(new, there, self._known)

    def noted(self, copies: Mapping[str, TopicDescription], there: Mapping[str, TopicDescription]) -> dict[str, str]:
        """Map target topics to the other flow that has noted the topic.

        Own notes don't matter; the arguments are as in `copiers`. Raises `ConnectionError`s if notes that this flow may
        read can't be read now.
        """
        return self._owners(copies, there, self._readable)

    def _owners(
        self,
        copies: Mapping[str, TopicDescription],
        there: Mapping[str, TopicDescription],
        known: Callable[[str], Mapping[str, KnownTopic]],
    ) -> dict[str, str]:
        owners: dict[str, str] = {}
        for alias in self._aliases(there) if copies else ():
            theirs = known(alias)
            flow = f"{alias}->{self._flow.target.alias}"
            owners |= {
                name: flow for name, topic in copies.items() if name not in owners and is_noted(theirs.get(name), topic)
            }
        return owners

    def _aliases(self, topics: Mapping[str, TopicDescription]) -> list[str]:
        """Return the source aliases of all other flows that write to the target, or did."""
        return [
            name.removeprefix(_START).removesuffix(_END)
            for name in sorted(topics)
            if name.startswith(_START) and name.endswith(_END) and name != losses_topic(self._flow.source.alias)
        ]

    def _read(self, alias: str) -> Mapping[str, KnownTopic]:
        return TopicMemory(TopicLog(self._client, losses_topic(alias))).known

    def _known(self, alias: str) -> Mapping[str, KnownTopic]:
        try:
            return self._read(alias)
        except ConnectionError as error:
            log.debug("flow %s: the topics of flow %s are not known: %s", self._flow.name, alias, error)
            return {}

    def _readable(self, alias: str) -> Mapping[str, KnownTopic]:
        try:
            return self._read(alias)
        except LogUnavailable as error:
            if error.code not in (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                raise
            return {}


def is_noted(known: KnownTopic | None, topic: TopicDescription) -> bool:
    """Tell whether a topic is the noted topic, and not a later topic of the same name."""
    return known is not None and same_topic(bytes.fromhex(known.target_topic_id), topic.topic_id)


class RefusedSecond(NamedTuple):
    """Refusal of a second flow into a topic."""

    reason: str
    remedy: str

    @property
    def line(self) -> str:
        """Reason and remedy."""
        return f"{self.reason}: {self.remedy}"


def refusal_of_second(flow: str, other: str, remote: str) -> RefusedSecond:
    """Return why a flow must not copy into another flow's topic, and the remedy.

    Records that the other flow has copied stay.
    """
    return RefusedSecond(
        f"topic {remote} at the target is a copy that flow {other} keeps, and records of both would mix in it",
        f"take the topic out of {flow}.topics, or use DefaultReplicationPolicy in {flow};"
        f" only where {other} has ended for good and no consumer needs its copy, delete {remote} at the target",
    )
