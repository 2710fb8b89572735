"""Partitions that can't be copied now: one finding a cause, with what to do about that cause."""

from __future__ import annotations

from collections.abc import Iterator

from sparkmirror.engine.snapshot import Cause, Flow

_ACTIONS = {
    Cause.PREDECESSOR: "Nothing to do at first: it goes on when the predecessor's session has ended.",
    Cause.RIVAL: "Stop the other process that writes as this flow.",
    Cause.THROTTLED: "Raise the quota of this flow's principal at that cluster (kafka-configs.sh --alter).",
    Cause.UNREACHABLE: "Check that the cluster's brokers run, and that bootstrap.servers and advertised.listeners lead "
    "to them.",
    Cause.NO_LEADER: "Bring the brokers that hold the partition's replicas back.",
    Cause.NOT_ENOUGH_REPLICAS: "Bring the target's missing replicas back, or lower min.insync.replicas of the copy.",
    Cause.NOT_AUTHORIZED: "Grant this flow's principal the right that the reason names.",
    Cause.NO_TOPIC: "Create the topic, or take it out of `topics`.",
    Cause.TOO_LARGE: "Raise max.message.bytes of the topic at the target.",
    Cause.TIMESTAMP: "Raise message.timestamp.before.max.ms and message.timestamp.after.max.ms of the copy.",
    Cause.UNREADABLE: "Look at the batch that the reason names with kafka-dump-log.sh at the source.",
    Cause.REFUSED: "Change what the reason names at the cluster that refuses it.",
    Cause.EXPIRED: "Look at `sparkmirror losses FILE`; sparkmirror.on.expired says whether copying goes on.",
    Cause.TRUNCATED: "Look at `sparkmirror losses FILE`; sparkmirror.on.truncated says whether copying goes on.",
    Cause.TARGET_TRUNCATED: "Look at `sparkmirror losses FILE`, then compare both sides: `sparkmirror verify FILE`.",
    Cause.RECREATED: "Look at `sparkmirror losses FILE`; sparkmirror.on.recreated says whether copying goes on.",
    Cause.FOREIGN: "Have the topic's writers moved to the copy? If so: `sparkmirror topics done FILE --topics REGEX`. "
    "If not, stop the other producer.",
    Cause.TAKEOVER: "Compare both sides: `sparkmirror verify FILE`.",
}
_OTHERS = "Follow the reason; it is looked at again by itself."


def causes(flow: Flow) -> Iterator[tuple[Cause, str, str, int, str]]:
    """Yield cause, first partition, its reason, how many there are and what to do, for each cause."""
    by_cause: dict[Cause, list[tuple[str, str]]] = {}
    for topic, one in flow.parked:
        by_cause.setdefault(one.cause, []).append((f"{topic.topic}-{one.partition}", one.reason))
    for cause, some in by_cause.items():
        subject, reason = some[0]
        yield cause, subject, reason, len(some), _ACTIONS.get(cause, _OTHERS)


def action(cause: Cause) -> str:
    """What to do about one cause."""
    return _ACTIONS.get(cause, _OTHERS)
