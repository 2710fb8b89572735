"""Writers: a migration changes clusters through these classes alone.

So a dry run is the same code.

`ClusterWriters` writes; `DryWriters` only says what would be written.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from sparkmirror.errors import ClusterUnreachable, SparkMirrorError
from sparkmirror.events import Event
from sparkmirror.kafka.cluster.acl_changes import add, remove
from sparkmirror.kafka.cluster.acls import Acl, AclResource
from sparkmirror.kafka.cluster.error_names import error_name
from sparkmirror.kafka.cluster.groups import Committed, Groups
from sparkmirror.kafka.cluster.own_principals import own_among
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.migrate import hooks
from sparkmirror.migrate.evidence import Evidence
from sparkmirror.migrate.file import Hook
from sparkmirror.migrate.observation import Side
from sparkmirror.migrate.pair import Pair
from sparkmirror.mirror.sync.migration_words import fence_key
from sparkmirror.mirror.sync.turns import NotTurned, drained, start_turn
from sparkmirror.pump.messages.control import Control, DoneTopic

_NAMED = 3
"""Most partitions named that keep a turn from its begin."""

log = logging.getLogger(__name__)


class Writing(Protocol):
    """The ways in which a migration changes something.

    All raise `ClusterUnreachable` and other `ConnectionError`s, and may be repeated.
    """

    def add_acls(self, side: Side, acls: Sequence[Acl]) -> None:
        """Add ACLs."""

    def remove_acls(self, side: Side, acls: Sequence[Acl]) -> None:
        """Remove exactly these ACLs."""

    def find_own(self, side: Side, candidates: frozenset[str]) -> frozenset[str]:
        """Return the mirror's own principal, if it is a candidate.

        By a trial with ACLs on missing groups.
        """

    def note_fence(self, side: Side, resource: AclResource, name: str, acls: Sequence[Acl]) -> None:
        """Write down what this migration denies at `side`; nothing: take the word back."""

    def note_stopped(self, topics: Sequence[str], at: Side | None) -> None:
        """Write down where topics' producers stopped.

        None: a command to stop, or to start, is to be run, and may be cut off.
        """

    def note_started(self, topics: Sequence[str]) -> None:
        """Write down that topics' producers were started."""

    def commit(self, side: Side, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit for a group without members.

        For a group that has members nothing is committed.
        """

    def publish(self, side: Side, topic: str, word: DoneTopic | None) -> None:
        """Publish a topic's ends at `side`; None takes them back."""

    def begin_turn(self, side: Side, topics: Sequence[str]) -> None:
        """Begin the turn of the flow from `side`, after the other flow's ends."""

    def ask(self, hook: Hook, told: Mapping[str, object]) -> None:
        """Run a hook, which may change whatever it likes; raises `HookRefused`."""

    def note(self, told: Mapping[str, object]) -> None:
        """Write a line of evidence. No error: a switch doesn't depend on it."""


class ClusterWriters:
    """Write to the clusters of a pair."""

    def __init__(self, pair: Pair, evidence: Evidence) -> None:
        self._pair = pair
        self._evidence = evidence

    def add_acls(self, side: Side, acls: Sequence[Acl]) -> None:
        add(self._pair.clients[side], acls)

    def remove_acls(self, side: Side, acls: Sequence[Acl]) -> None:
        remove(self._pair.clients[side], acls)

    def find_own(self, side: Side, candidates: frozenset[str]) -> frozenset[str]:
        own = own_among(self._pair.clients[side], candidates)
        for principal in own:
            self._pair.on_acls[side][0].learn_own(principal)
        return own

    def note_fence(self, side: Side, resource: AclResource, name: str, acls: Sequence[Acl]) -> None:
        first, *others = self._pair.on_acls[side]
        first.write(resource, name, acls)
        for words in others if not acls else ():
            if fence_key(resource, name) in words.read():
                words.write(resource, name, ())

    def note_stopped(self, topics: Sequence[str], at: Side | None) -> None:
        self._pair.words[Side.SOURCE].stop(topics, str(at or ""))

    def note_started(self, topics: Sequence[str]) -> None:
        self._pair.words[Side.SOURCE].start(topics)

    def commit(self, side: Side, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        client = self._pair.clients[side]
        codes = Groups(client).commit({group: {copy: Committed(offset) for copy, offset in offsets.items()}})[group]
        refused = {copy: code for copy, code in codes.items() if code}
        if set(refused.values()) - {ErrorCode.UNKNOWN_MEMBER_ID}:
            (topic, partition), code = next(iter(refused.items()))
            raise ClusterUnreachable(
                f"cluster {client.config.alias}: committing for group {group} failed: {topic}-{partition}:"
                f" {error_name(code)}"
            )

    def publish(self, side: Side, topic: str, word: DoneTopic | None) -> None:
        Control(self._pair.controls[side]).done(topic, word)

    def begin_turn(self, side: Side, topics: Sequence[str]) -> None:
        forth = self._pair.flows[side.other]
        told = drained(forth, topics)
        if told.missing:
            more = f" (and {len(told.missing) - _NAMED} more partitions)" if len(told.missing) > _NAMED else ""
            raise NotTurned(f"flow {forth.name}: {'; '.join(list(told.missing.values())[:_NAMED])}{more}")
        start_turn(self._pair.flows[side], told.borders)

    def ask(self, hook: Hook, told: Mapping[str, object]) -> None:
        hooks.ask(hook, told)

    def note(self, told: Mapping[str, object]) -> None:
        try:
            self._evidence.write(told)
        except (ConnectionError, SparkMirrorError) as error:
            log.warning(
                "the evidence topic can't be written, and the migration continues: %s",
                error,
                extra=Event.EVIDENCE_NOT_WRITTEN.extra,
            )


class DryWriters:
    """Say what would be written, and write nothing."""

    def __init__(self, pair: Pair, say: Callable[[str], None]) -> None:
        self._pair = pair
        self._say = say

    def add_acls(self, side: Side, acls: Sequence[Acl]) -> None:
        for acl in acls:
            self._would(side, f"add the ACL `{acl}`")

    def remove_acls(self, side: Side, acls: Sequence[Acl]) -> None:
        for acl in acls:
            self._would(side, f"remove the ACL `{acl}`")

    def find_own(self, side: Side, candidates: frozenset[str]) -> frozenset[str]:
        self._would(side, f"try which of {', '.join(sorted(candidates))} is the mirror's own, and leave it out")
        return frozenset()

    def note_fence(self, side: Side, resource: AclResource, name: str, acls: Sequence[Acl]) -> None:
        at = side.other if side in self._pair.flows else side  # the topic of the flow from there, or of the first
        self._would(at, f"write down {len(acls)} denials on {resource.word} {name}")

    def note_stopped(self, topics: Sequence[str], at: Side | None) -> None:
        what = f"stopped at {self._pair.configs[at].alias}" if at else "get an order"
        self._would(Side.TARGET, f"write down that the producers of {', '.join(topics)} {what}")

    def note_started(self, topics: Sequence[str]) -> None:
        self._would(Side.TARGET, f"write down that the producers of {', '.join(topics)} started")

    def commit(self, side: Side, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        for (topic, partition), offset in sorted(offsets.items()):
            self._would(side, f"commit {offset} for group {group} in {topic}-{partition}")

    def publish(self, side: Side, topic: str, word: DoneTopic | None) -> None:
        if word is None:
            self._would(side.other, f"take the published ends of {topic} back")
        else:
            ends = ", ".join(f"{part}: {end:,}" for part, end in sorted(word.ends.items()))
            self._would(side.other, f"publish the ends of {topic} (partition: offset {ends})")

    def begin_turn(self, side: Side, topics: Sequence[str]) -> None:
        for topic in topics:
            self._would(side.other, f"begin the turn of {self._pair.flows[side].name} in {topic}")

    def ask(self, hook: Hook, told: Mapping[str, object]) -> None:
        self._say(f"would {'post to' if hook.is_url else 'run'} `{hooks.shown(hook)}`")

    def note(self, told: Mapping[str, object]) -> None:
        """Say nothing: evidence is of what was done."""

    def _would(self, side: Side, what: str) -> None:
        self._say(f"{self._pair.configs[side].alias}: would {what}")
