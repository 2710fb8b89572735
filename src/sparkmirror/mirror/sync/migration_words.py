"""A migration's own words: what it has denied, and which topics are complete.

They lie in the control topic of the flow that copies from the side concerned. `fence:topic:NAME` and `fence:group:NAME`
have the ACLs that were added, and are written before these: so an operator's own denials are never removed, and a run
that was killed in between leaves nothing that nobody knows of. `closed:NAME` says that a topic has no way back,
`stopped:NAME` that a command, or people, were told to stop its producers, with the side where they then stopped;
without a side they may run. These two lie in the first flow's topic. `own:PRINCIPAL` is the mirror's own principal,
where only a trial tells it. Where nothing flows back, words on the target's ACLs are in the first flow's topic, too:
`there:fence:…` and `there:own:…`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from sparkmirror.kafka.cluster.acls import Acl, AclResource
from sparkmirror.kafka.cluster.topic_log import LogEntry, LogUnavailable, TopicLog
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.pump.messages.control import ControlState

_FENCE, _CLOSED, _STOPPED, _OWN = b"fence:", b"closed:", b"stopped:", b"own:"
_THERE = b"there:"


def fence_key(resource: AclResource, name: str) -> str:
    """Return the key of the word on a topic or a group."""
    return f"fence:{resource.word}:{name}"


def _read_on(log: TopicLog, offset: int) -> tuple[Sequence[LogEntry], int]:
    """Read a control topic from an offset on; before the first run there is none."""
    try:
        return log.read(0, offset)
    except LogUnavailable as error:
        if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise
        return (), offset


class MigrationWords:
    """The words in one control topic; for one thread.

    With `there`, only the words on ACLs at the flow's target.
    """

    def __init__(self, log: TopicLog, *, there: bool = False) -> None:
        self._log = log
        self._prefix = _THERE if there else b""
        self._offset = 0
        self.closed: set[str] = set()
        """Topics without a way back, as last read."""
        self.stopped: dict[str, str] = {}
        """Topics whose producers were told to stop, with the side where they did.

        Empty: a command to stop, or to start, may have been cut off, or an older release wrote the word.
        """
        self.own = ""
        """The mirror's own principal, as the last trial found it.

        Empty before any trial.
        """
        self.state = ControlState()
        """The topic's other words, as last read."""
        self._words: dict[str, tuple[Acl, ...]] = {}

    def read(self) -> Mapping[str, tuple[Acl, ...]]:
        """Read on; return the added ACLs by key.

        There are none before the mirror has run. Raises `ConnectionError`s.
        """
        entries, self._offset = _read_on(self._log, self._offset)
        self.state.apply(entries)
        for entry in entries:
            self._take(entry)
        return self._words

    def denials(self) -> set[Acl]:
        """Read on; return the migration's denials at the source.

        At the target they would hold the clients that the migration lets in.
        """
        return {acl for acls in self.read().values() for acl in acls}

    def close(self, topic: str) -> None:
        """Write down that a topic has no way back."""
        self._log.append(0, [(_CLOSED + topic.encode(), b"{}")])

    def stop(self, topics: Sequence[str], side: str) -> None:
        """Write down that topics' producers are told to stop; with a side: that they did."""
        value = json.dumps({"side": side} if side else {}).encode()
        self._log.append(0, [(_STOPPED + topic.encode(), value) for topic in topics])

    def start(self, topics: Sequence[str]) -> None:
        """Write down that topics' producers were started."""
        self._log.append(0, [(_STOPPED + topic.encode(), None) for topic in topics])

    def learn_own(self, principal: str) -> None:
        """Write down the mirror's own principal."""
        self._log.append(0, [(self._prefix + _OWN + principal.encode(), b"{}")])

    def write(self, resource: AclResource, name: str, acls: Sequence[Acl]) -> None:
        """Write down what will be added; nothing takes the word back."""
        key = self._prefix + fence_key(resource, name).encode()
        value = json.dumps({"acls": [asdict(acl) for acl in acls]}).encode() if acls else None
        self._log.append(0, [(key, value)])

    def _take(self, entry: LogEntry) -> None:
        if entry.key is None or not entry.key.startswith(self._prefix):
            return
        word = entry.key.removeprefix(self._prefix)
        if word.startswith(_CLOSED) and entry.value:
            self.closed.add(word.removeprefix(_CLOSED).decode(errors="replace"))
        if word.startswith(_STOPPED):
            topic = word.removeprefix(_STOPPED).decode(errors="replace")
            if entry.value:
                self.stopped[topic] = _side(entry.value)
            else:
                self.stopped.pop(topic, None)
        if word.startswith(_OWN):
            self.own = word.removeprefix(_OWN).decode(errors="replace")
        if not word.startswith(_FENCE):
            return
        key = word.decode(errors="replace")
        try:
            body = json.loads(entry.value) if entry.value else {}
            acls = tuple(Acl(**{**each, "resource": AclResource(each["resource"])}) for each in body.get("acls", ()))
        except (ValueError, TypeError, KeyError, AttributeError):
            return  # not ours: another version's word, or a foreign record
        if acls:
            self._words[key] = acls
        else:
            self._words.pop(key, None)


def _side(value: bytes) -> str:
    """Return the side in a word on stopped producers, empty if it has none."""
    try:
        return str(json.loads(value).get("side", ""))
    except (ValueError, AttributeError):
        return ""
