"""Remedies that last, with the names and values that the mirror knows.

The mirror keeps most properties of a copy equal to the source's (`docs/topics.md`): what an operator sets on the copy
is set back at the next look. So a limit is raised elsewhere.
"""

from __future__ import annotations

import re

from sparkmirror.kafka.cluster.tool_commands import set_broker_default, set_topic_property
from sparkmirror.pump.refused import Obstructed
from sparkmirror.snapshot.snapshot import Cause, Flow, Partition, Topic

_CLAIM = re.compile(r"its claim of (\d+) bytes is larger than topic (\S+) takes")
_ACLS = re.compile(r"`kafka-acls\.sh [^`]+`")
_ALL_RIGHTS = "`sparkmirror lint FILE --connect` lists all rights that are missing"
_NO_LIMIT = 2**63 - 1
"""Kafka's own default of the limits of timestamps before 4.0, which is no limit."""
_BEFORE, _AFTER, _OLD = (f"message.timestamp.{which}.max.ms" for which in ("before", "after", "difference"))


def limit_remedy(flow: Flow, topic: Topic, partition: Partition) -> str:
    """Return how to raise the limit that a parked partition has met.

    Empty if the reason does not tell the limit.
    """
    reason = partition.reason
    claim = _CLAIM.search(reason)
    if claim is not None:
        return f"Raise it: `{set_topic_property(_at_target(flow), claim[2], f'max.message.bytes={claim[1]}')}`."
    told = Obstructed.of(reason)
    if partition.cause is Cause.TIMESTAMP:
        if told.timestamp_ms is None:
            return ""
        name = _BEFORE if told.timestamp_ms < flow.at_ms else _AFTER
        if f"{_OLD}=" in reason:
            name = _OLD
        return _raised(flow, topic, name, str(_NO_LIMIT), at_source=name in told.at_source)
    if told.bytes is None:
        return ""
    name = "segment.bytes" if "segment.bytes" in reason else "max.message.bytes"
    at_source = told.at_source.get(name)
    if at_source is None:  # with a smaller value the source would refuse its producers' batches
        least = f" N is at least {told.bytes}, and not below what the source's topic takes now."
        return _raised(flow, topic, name, "N", at_source=True) + least
    return _raised(flow, topic, name, str(max(told.bytes, at_source)), at_source=True)


def rights_remedy(reason: str) -> str:
    """Return the commands that a reason has for missing rights; empty without any."""
    commands = _ACLS.findall(reason)
    return f"Run {' and '.join(commands)}; {_ALL_RIGHTS}." if commands else ""


def copied_again(flow: Flow | None = None, topic: Topic | None = None) -> str:
    """Return how to have a topic copied again, or general words without one."""
    options = "" if flow is None else f" {_at_target(flow)}"
    name = "COPY" if topic is None else topic.target_topic
    return (
        "If no consumer needs what is at the target, delete the copy, and it is copied again: `kafka-topics.sh"
        f"{options} --delete --topic {name}`. The mirror looks again within five minutes, or at once with `sparkmirror "
        "retry FILE`."
    )


def unreadable_remedy(flow: Flow | None = None, topic: Topic | None = None, partition: Partition | None = None) -> str:
    """Return how to continue after a damaged batch; without one in general words."""
    options = "" if flow is None else f" {flow.source.tools or '--bootstrap-server SOURCE'}"
    name, number = ("TOPIC", "PARTITION") if topic is None or partition is None else (topic.topic, partition.partition)
    entry = f'{{"partitions": [{{"topic": "{name}", "partition": {number}, "offset": NEXT}}]}}'
    return (
        "If another replica has the batch whole, have it lead: restart the leader's broker. Else `kafka-dump-log.sh "
        f"--files DIRECTORY/{name}-{number}/SEGMENT.log`, at the leader's host, shows the batch that the reason names, "
        f"as not valid if it is damaged, and NEXT, the offset of the one after it. Write `{entry}` to the file "
        f"below.json, and `kafka-delete-records.sh{options} --offset-json-file below.json` deletes the records below "
        "it at the source. The copy continues after them with sparkmirror.on.expired = continue, its default; "
        "`sparkmirror losses FILE` has what was lost."
    )


def _raised(flow: Flow, topic: Topic, name: str, value: str, *, at_source: bool) -> str:
    """Return where to give the property a value, so that it stays.

    `at_source`: the source's brokers know the property.
    """
    property_ = f"{name}={value}"
    if name in flow.unsynced or not at_source:
        return f"Raise {name} on the copy: `{set_topic_property(_at_target(flow), topic.target_topic, property_)}`."
    at_topic = set_topic_property(flow.source.tools or "--bootstrap-server SOURCE", topic.topic, property_)
    at_brokers = set_broker_default(_at_target(flow), f"{_of_brokers(name)}={value}")
    return (
        f"Raise {name} at the source's topic, from where the mirror brings it to the copy (on the copy alone it would "
        f"be set back): `{at_topic}`. Or, if the source's topic has no {name} of its own, for all topics of the "
        f"target: `{at_brokers}`. Or write `config.properties.exclude = +{name}`, start the mirror again, and set it "
        f"on the copy {topic.target_topic}."
    )


def _of_brokers(name: str) -> str:
    """Return the brokers' name of a topic's property."""
    return "message.max.bytes" if name == "max.message.bytes" else f"log.{name}"


def _at_target(flow: Flow) -> str:
    return flow.target.tools or "--bootstrap-server TARGET"
