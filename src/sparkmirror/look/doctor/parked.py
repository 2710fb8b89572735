"""Rules on parked partitions: a rule for each cause that parks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sparkmirror.look.doctor.case import Case, name_of
from sparkmirror.look.doctor.finding import Severity
from sparkmirror.look.doctor.losses import LOSSES
from sparkmirror.look.doctor.remedies import copied_again, limit_remedy, rights_remedy, unreadable_remedy
from sparkmirror.look.doctor.rule import LATE, Rule, Sign, counted
from sparkmirror.pump.quiet import GRACE_S
from sparkmirror.snapshot.snapshot import Cause, Flow, Partition, PartitionState, Topic

_LEDGER = "Look at `sparkmirror losses FILE`; {} says whether copying continues."
_ONCE = (
    "Correct what the reason names, and start `sparkmirror run FILE --once` again, which alone parks with this cause."
)
"""Action for causes that park with `--once` alone; else a mirror waits."""
_COMMANDS = " The finding has the commands."
"""Told in general, and not by a finding that has none."""
_ONLY_ONCE = {Cause.POSITION, Cause.BROKER}


class _Words(NamedTuple):
    title: str
    action: str
    severity: Severity = Severity.CRITICAL


_CAUSES = {
    Cause.RIVAL: _Words(
        "Another process writes as this flow",
        "Stop the other process, and start it with the lease if it is meant to stand by. After a process of release "
        "0.1, which has fenced this flow, the target continues to refuse it. " + copied_again(),
    ),
    Cause.NOT_AUTHORIZED: _Words(
        "A right is missing",
        "Run the command that the reason has: it grants the right, or removes the ACL that denies it. "
        "`sparkmirror lint FILE --connect` lists all rights that are missing.",
    ),
    Cause.UNREACHABLE: _Words(
        "A broker can't be reached",
        "Check that its cluster's brokers run, and that bootstrap.servers and advertised.listeners lead to them from "
        "Spark's executors.",
    ),
    Cause.NO_LEADER: _Words(
        "Partitions have no leader",
        "Bring the brokers that hold their replicas back (`kafka-topics.sh --describe --unavailable-partitions`).",
    ),
    Cause.NOT_ENOUGH_REPLICAS: _Words(
        "The target has too few replicas in sync",
        "Bring the target's missing replicas back, or lower min.insync.replicas of the copy.",
    ),
    Cause.NO_TOPIC: _Words("A topic is missing", "Create the topic, or take it out of `topics`."),
    Cause.TOO_LARGE: _Words(
        "A batch is larger than the target takes",
        "Raise max.message.bytes at the source's topic, from where the mirror brings it to the copy (on the copy alone "
        "it would be set back), or message.max.bytes of the target's brokers; or exclude the property and set it on "
        "the copy." + _COMMANDS,
    ),
    Cause.TIMESTAMP: _Words(
        "A record is older or newer than the target takes",
        "Raise message.timestamp.before.max.ms, or .after.max.ms of a record from the future, at the source's topic, "
        "from where the mirror brings it to the copy (on the copy alone it would be set back), or "
        "log.message.timestamp.… of the target's brokers; or exclude the property and set it on the copy "
        "(message.timestamp.difference.max.ms before Kafka 3.6)." + _COMMANDS,
    ),
    Cause.UNREADABLE: _Words(
        "The source's records can't be read",
        unreadable_remedy(),
    ),
    Cause.TRANSFORM: _Words(
        "A record can't be transformed",
        "Keep the transform from records of this kind by a predicate, or write a transform that takes them, and start "
        "the mirror again; the partition continues at the record that the reason names.",
    ),
    Cause.REFUSED: _Words("A cluster refuses the records", "Correct what the reason names at that cluster."),
    Cause.EXPIRED: _Words("The source deleted records that were not copied", _LEDGER.format("sparkmirror.on.expired")),
    Cause.TRUNCATED: _Words("The source's log was cut", _LEDGER.format("sparkmirror.on.truncated")),
    Cause.TARGET_TRUNCATED: _Words(
        "The target lost records that it had acknowledged",
        "The reason names the offsets, and `sparkmirror verify FILE` compares what is left. " + copied_again(),
    ),
    Cause.RECREATED: _Words("A topic was created again", _LEDGER.format("sparkmirror.on.recreated")),
    Cause.FOREIGN: _Words(
        "Another producer writes to the copy",
        "Have the topic's writers moved to the copy? If so: `sparkmirror topics done FILE --topics REGEX`. If not, "
        "stop the other producer.",
    ),
    Cause.CLAIMS_LOST: _Words(
        "The segments topic lost claims",
        "The copied records are this flow's own: delete the target topic to have it copied again, or set the offset to "
        'continue from (docs/losses.md, "A lost segments topic"). Keep the segments topic from losing records: '
        "`sparkmirror lint FILE --connect` names its settings.",
    ),
    Cause.TAKEOVER: _Words(
        "The end of another mirror's copy is not known", "Compare both sides: `sparkmirror verify FILE`."
    ),
    Cause.THROTTLED: _Words(
        "A quota stops partitions",
        "Raise the quota of this flow's principal at that cluster (kafka-configs.sh --alter).",
        Severity.WARNING,
    ),
    Cause.POSITION: _Words("Positions are not known", _ONCE, Severity.WARNING),
    Cause.BROKER: _Words("A broker answers with an error", _ONCE, Severity.WARNING),
    Cause.OTHER: _Words("Partitions can't be copied", "Follow the reason. " + copied_again()),
}
"""Words of every cause that parks partitions."""

WAITS = {
    Cause.PREDECESSOR: f"Wait: the partition continues once its position has not moved for {GRACE_S:.0f} s.",
    Cause.PAUSED: "Resume the partition: `sparkmirror resume FILE`.",
    Cause.OPEN_TRANSACTION: "End the transaction if its producer is gone: the command aborts it at the source.",
    Cause.NONE: "Look at the process's log.",
}
"""Actions for the other causes; a partition with such a cause is never parked."""


_LAST = {Cause.NO_LEADER, Cause.NOT_ENOUGH_REPLICAS, Cause.NO_TOPIC}
"""Causes that a running mirror waits for, and that can last.

Such a wait is as bad as a parked partition.
"""
_WAITED_S = 5.0
"""Shortest wait of a finding, in seconds; most elections are over by then."""


def _waiting(case: Case, cause: Cause) -> list[tuple[Topic, Partition]]:
    """Return the partitions that have waited for a cause since the sample before."""
    before = case.before(_WAITED_S) if cause in _LAST else None
    if before is None:
        return []
    old = before.case.partitions
    return [
        (topic, partition)
        for place, (topic, partition) in case.partitions.items()
        if partition.state is PartitionState.WAITING
        and partition.cause is cause
        and place in old
        and old[place][1].cause is cause
    ]


def _rule(cause: Cause, words: _Words) -> Rule:
    def look(case: Case) -> Iterator[Sign]:
        parked, waiting = case.parked.get(cause, []), _waiting(case, cause)
        hit = parked + waiting
        if hit:
            topic, partition = hit[0]
            name = name_of((topic.topic, partition.partition))
            amounts = [(parked, "parked"), (waiting, "waiting")]
            yield Sign(
                subject=name,
                evidence=", ".join(f"{counted(len(places), 'partition')} {how}" for places, how in amounts if places)
                + (f", first {name}" if len(hit) > 1 else ""),
                cause=partition.reason,
                action=action(case.flow, topic, partition),
            )

    return Rule(
        name=f"parked-{cause}",
        severity=words.severity,
        title=words.title,
        when=f"Partitions are parked with the cause `{cause}`"
        + (f", or have waited for it since a sample at least {_WAITED_S:.0f} s old" * (cause in _LAST))
        + (", as `run --once` does after a minute without progress" * (cause in _ONLY_ONCE))
        + ". One finding, however many they are.",
        cause="The reason names the cause.",
        action=words.action,
        look=look,
        explains=(*LATE, *(rule.name for rule in LOSSES), "group-not-synced"),
    )


def action(flow: Flow, topic: Topic, partition: Partition) -> str:
    """Return the action for a parked or waiting partition.

    Commands have all names and values that are known.
    """
    known = ""
    if partition.cause in (Cause.TOO_LARGE, Cause.TIMESTAMP):
        known = limit_remedy(flow, topic, partition)
    elif partition.cause is Cause.NOT_AUTHORIZED:
        known = rights_remedy(partition.reason)
    elif partition.cause is Cause.UNREADABLE:
        known = unreadable_remedy(flow, topic, partition)
    elif partition.cause in (Cause.RIVAL, Cause.TARGET_TRUNCATED, Cause.OTHER):
        known = general_action(partition.cause).replace(copied_again(), copied_again(flow, topic))
    elif partition.remedy:
        known = f"{general_action(partition.cause)} `{partition.remedy}`"
    return known or general_action(partition.cause).removesuffix(_COMMANDS)


def general_action(cause: Cause) -> str:
    """Return the action for a cause of parked or waiting partitions."""
    return WAITS[cause] if cause in WAITS else _CAUSES[cause].action


def cause_words(cause: Cause) -> str:
    """Return few words on a cause that parks partitions.

    The words are empty for a cause whose reason says more.
    """
    if cause in WAITS or cause is Cause.OTHER:
        return ""
    title = _CAUSES[cause].title
    return f"{title[0].lower()}{title[1:]}"


PARKED = tuple(_rule(cause, words) for cause, words in _CAUSES.items() if cause is not Cause.UNREACHABLE)
"""Rules for the causes that park; unreachable brokers are a cluster's finding."""
