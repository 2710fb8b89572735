"""Other flows of ours into the same target, of this process or another: which topics there are their copies.

A second flow into one of them would mix its records with theirs. Each flow notes the topics that it writes to before
it does (`offsets.topic_memory`), so a topic is the first one's that came to it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping

from sparkmirror.cluster.admin import TopicDescription
from sparkmirror.cluster.client import ClusterClient
from sparkmirror.cluster.topic_log import TopicLog
from sparkmirror.config import FlowConfig
from sparkmirror.durable.known_topics import KnownTopic, TopicMemory
from sparkmirror.durable.losses import losses_topic
from sparkmirror.wire.topic_ids import same_topic

log = logging.getLogger(__name__)

_START, _END = losses_topic("|").split("|")


class OtherFlows:
    """As one flow sees them; its target's client is the caller's."""

    def __init__(self, client: ClusterClient, flow: FlowConfig) -> None:
        self._client = client
        self._flow = flow

    def copiers(self, copies: Mapping[str, TopicDescription], there: Mapping[str, TopicDescription]) -> dict[str, str]:
        """Of the target's topics that this flow would copy into, those that another one has first, and which.

        `there`: all of the target's topics. Where another flow's notes can't be read, nothing is said of it.
        """
        aliases = [alias for alias in _aliases(there) if alias != self._flow.source.alias]
        if not aliases or not copies:
            return {}
        own = self._known(self._flow.source.alias) if losses_topic(self._flow.source.alias) in there else {}
        new = {name: topic for name, topic in copies.items() if not _is(own.get(name), topic)}
        found: dict[str, str] = {}
        for alias in aliases if new else ():
            theirs = self._known(alias)
            flow = f"{alias}->{self._flow.target.alias}"
            found |= {name: flow for name, topic in new.items() if name not in found and _is(theirs.get(name), topic)}
        return found

    def _known(self, alias: str) -> Mapping[str, KnownTopic]:
        try:
            return TopicMemory(TopicLog(self._client, losses_topic(alias))).known
        except ConnectionError as error:
            log.debug("flow %s: what flow %s copies is not known: %s", self._flow.name, alias, error)
            return {}


def _aliases(topics: Mapping[str, TopicDescription]) -> Iterator[str]:
    """The sources of all flows that write there, or did."""
    for name in sorted(topics):
        if name.startswith(_START) and name.endswith(_END):
            yield name.removeprefix(_START).removesuffix(_END)


def _is(known: KnownTopic | None, topic: TopicDescription) -> bool:
    """Whether a topic is the one that was noted, and not a later one of its name."""
    return known is not None and same_topic(bytes.fromhex(known.target_topic_id), topic.topic_id)


def refusal_of_second(flow: str, other: str, remote: str) -> str:
    """Why a flow doesn't copy into a topic of another one's, and what to do; what that has copied stays."""
    return (
        f"topic {remote} at the target is a copy that flow {other} keeps, and records of both would mix in it:"
        f" take the topic out of {flow}.topics, or use DefaultReplicationPolicy in {flow};"
        f" only where {other} has ended for good and nobody needs its copy, delete {remote} at the target"
    )
