"""Writing down how far each partition was copied, for the loss sentinel of a process to come (`offsets.standing`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

from sparkmirror.cluster.client import ClusterClient
from sparkmirror.cluster.topic_log import TopicLog
from sparkmirror.config import FlowConfig
from sparkmirror.durable.losses import losses_topic
from sparkmirror.durable.progress import StandingLog, Stood, TopicStanding
from sparkmirror.messages.orders import Receipt


class ProgressNotes:
    """The duty, for one flow. `receipts` gives the newest of each partition."""

    def __init__(self, flow: FlowConfig, receipts: Callable[[], Iterable[Receipt]]) -> None:
        self._receipts = receipts
        self._client = ClusterClient(flow.target, f"{flow.name}|sparkmirror-standing")
        self._log = StandingLog(TopicLog(self._client, losses_topic(flow.source.alias)))

    def run(self) -> None:
        """Write what has changed; raises `ConnectionError`."""
        self._log.learn(standings(self._receipts()))

    def close(self) -> None:
        """Hang up."""
        self._client.close()


def standings(receipts: Iterable[Receipt]) -> list[TopicStanding]:
    """What receipts say, by target topic; those of partitions whose target is not known tell nothing."""
    found: dict[tuple[str, str], dict[int, Stood]] = defaultdict(dict)
    for one in receipts:
        if one.target_topic_id and one.upstream >= 0:
            found[one.target_topic, one.target_topic_id][one.partition] = Stood(
                one.upstream, one.downstream, one.appended
            )
    return [
        TopicStanding(target_topic=topic, standing_of=topic_id, partitions=partitions)
        for (topic, topic_id), partitions in found.items()
    ]
