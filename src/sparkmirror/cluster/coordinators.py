"""Asking groups' coordinators, many groups a request, each of its own coordinator (KIP-699).

Blocking. A coordinator that has moved or is loading is looked for anew until nothing was answered for `PATIENCE_S`.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from kafka.protocol.metadata import FindCoordinatorRequest

from sparkmirror.cluster.client import ClusterClient
from sparkmirror.cluster.error_codes import error_name
from sparkmirror.errors import ClusterUnreachable

GROUPS_PER_REQUEST = 250
PATIENCE_S = 15.0
"""How long one question is asked again while no coordinator answers; a cluster's first group needs a moment, too."""
PAUSE_S = 0.2

SEVERAL_KEYS = 4
"""Since this version a request may name several groups."""

NOT_AVAILABLE = 15
PASSING = frozenset({14, NOT_AVAILABLE, 16})
"""COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR."""
GROUP_ID_NOT_FOUND = 69
_GROUP_KEY = 0
_NOT_AUTHORIZED = 30


def group_refusal(code: int) -> str:
    """Why a group can't be asked about or set: Kafka's error, and what to grant."""
    grant = "; grant our principal DESCRIBE on the group, and READ where its offsets are set"
    return error_name(code) + (grant if code == _NOT_AUTHORIZED else "")


class Coordinators:
    """The coordinators of one cluster's groups. Where a group's is, is remembered."""

    def __init__(self, client: ClusterClient) -> None:
        self._client = client
        self._coordinators: dict[str, int] = {}

    def ask_each(
        self,
        groups: Iterable[str],
        ask: Callable[[int, Sequence[str]], Mapping[str, int]],
        refused: dict[str, str],
        what: str,
    ) -> dict[str, int]:
        """Ask each group's coordinator; `ask` returns the groups that it must be asked for again, and the error.

        Returns those that have no coordinator that we may ask, by its code; they are in `refused`, too.
        """
        deadline = time.monotonic() + PATIENCE_S
        lost: dict[str, int] = {}
        left = list(dict.fromkeys(groups))
        while True:
            failed = self._locate(left)
            for group, code in list(failed.items()):
                if code not in PASSING:
                    lost[group] = failed.pop(group)
                    refused[group] = group_refusal(code)
            by_broker: dict[int, list[str]] = defaultdict(list)
            for group in left:
                if group in self._coordinators:
                    by_broker[self._coordinators[group]].append(group)
            for broker, some in by_broker.items():
                for start in range(0, len(some), GROUPS_PER_REQUEST):
                    chunk = some[start : start + GROUPS_PER_REQUEST]
                    try:
                        failed |= ask(broker, chunk)
                    except ConnectionError:
                        if time.monotonic() > deadline:
                            raise
                        failed |= dict.fromkeys(chunk, NOT_AVAILABLE)
            if not failed:
                return lost
            if len(failed) + len(lost) < len(left):
                deadline = time.monotonic() + PATIENCE_S  # it goes on
            for group in failed:
                self._coordinators.pop(group, None)
            self.pause(next(iter(failed.values())), what, deadline)
            self._client.metadata([])
            left = list(failed)

    def _locate(self, groups: Sequence[str]) -> dict[str, int]:
        """Find the coordinators that aren't known; returns the groups that have none now, and Kafka's code."""
        unknown = [group for group in groups if group not in self._coordinators]
        if not unknown:
            return {}
        if not self._client.brokers:
            self._client.metadata([])
        failed: dict[str, int] = {}
        for group, node, code in self._find(unknown):
            if code:
                failed[group] = code
            elif node not in self._client.brokers:
                failed[group] = NOT_AVAILABLE
            else:
                self._coordinators[group] = node
        return failed

    def _find(self, groups: Sequence[str]) -> list[tuple[str, int, int]]:
        """As whichever broker answers says: group, coordinator, error."""
        reason: ConnectionError | None = None
        for broker in self._client.brokers:
            try:
                return list(self._found_by(broker, groups))
            except ConnectionError as error:
                reason = error
        raise reason or ClusterUnreachable(f"cluster {self._client.config.alias} names no brokers")

    def _found_by(self, broker: int, groups: Sequence[str]) -> Iterator[tuple[str, int, int]]:
        if self.version(broker, FindCoordinatorRequest) < SEVERAL_KEYS:
            for group in groups:
                answer = self._client.ask(broker, FindCoordinatorRequest(key=group, key_type=_GROUP_KEY))
                yield group, answer.node_id, answer.error_code
            return
        for start in range(0, len(groups), GROUPS_PER_REQUEST):
            keys = list(groups[start : start + GROUPS_PER_REQUEST])
            for one in self._client.ask(
                broker, FindCoordinatorRequest(key_type=_GROUP_KEY, coordinator_keys=keys)
            ).coordinators:
                yield one.key, one.node_id, one.error_code

    def version(self, broker: int, kind: Any, newest: int = 1 << 15) -> int:
        ours = 0, min(kind.max_version, newest)
        return self._client.broker(broker).version(kind.API_KEY, ours, kind.name)

    def pause(self, code: int, what: str, deadline: float) -> None:
        """Wait, or give up: time is up, or waiting doesn't help."""
        if code not in PASSING or time.monotonic() + PAUSE_S > deadline:
            raise ClusterUnreachable(f"cluster {self._client.config.alias}: {what} failed: {error_name(code)}")
        time.sleep(PAUSE_S)
