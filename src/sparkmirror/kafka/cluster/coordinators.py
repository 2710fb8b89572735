"""Requests to groups' coordinators, with many groups in each request (KIP-699).

Blocking. A coordinator that has moved or is loading is looked up again, until no group was answered for `PATIENCE_S`.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from kafka.protocol.metadata import FindCoordinatorRequest

from sparkmirror.chunks import chunks
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.error_names import error_name
from sparkmirror.kafka.wire.error_codes import ErrorCode

GROUPS_PER_REQUEST = 250
PATIENCE_S = 15.0
"""Longest wait for a coordinator's answer, with retries.

Also covers the moment that a new cluster needs for its first group.
"""
PAUSE_S = 0.2

SEVERAL_KEYS = 4
"""First FindCoordinator version that takes several groups."""

PASSING = frozenset(
    {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}
)
"""Error codes from a coordinator that has moved, or is not ready."""
_GROUP_KEY = 0


def group_refusal(code: int) -> str:
    """Describe a coordinator's refusal: Kafka's error, and the right to grant."""
    grant = "; grant sparkmirror's principal DESCRIBE on the group, and READ where its offsets are set"
    return error_name(code) + (grant if code == ErrorCode.GROUP_AUTHORIZATION_FAILED else "")


class Coordinators:
    """Coordinators for one cluster's groups, remembered by group."""

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
        """Ask each group's coordinator by `ask`, which returns the groups to retry.

        `ask` gets a broker and groups, and returns the error code of each group to be retried. Return Kafka's code for
        each group without a coordinator that the principal may ask; these groups are added to `refused`, too.
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
            for broker, coordinated in by_broker.items():
                for chunk in chunks(coordinated, GROUPS_PER_REQUEST):
                    try:
                        failed |= ask(broker, chunk)
                    except ConnectionError:
                        if time.monotonic() > deadline:
                            raise
                        failed |= dict.fromkeys(chunk, ErrorCode.COORDINATOR_NOT_AVAILABLE)
            if not failed:
                return lost
            if len(failed) + len(lost) < len(left):
                deadline = time.monotonic() + PATIENCE_S  # some groups were answered, so patience begins again
            for group in failed:
                self._coordinators.pop(group, None)
            self.pause(next(iter(failed.values())), what, deadline)
            self._client.metadata([])
            left = list(failed)

    def _locate(self, groups: Sequence[str]) -> dict[str, int]:
        """Look up unknown coordinators; return Kafka's code for groups without one."""
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
                failed[group] = ErrorCode.COORDINATOR_NOT_AVAILABLE
            else:
                self._coordinators[group] = node
        return failed

    def _find(self, groups: Sequence[str]) -> list[tuple[str, int, int]]:
        """Ask the first broker that answers for each group's coordinator and error code."""
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
        for chunk in chunks(groups, GROUPS_PER_REQUEST):
            for coordinator in self._client.ask(
                broker, FindCoordinatorRequest(key_type=_GROUP_KEY, coordinator_keys=list(chunk))
            ).coordinators:
                yield coordinator.key, coordinator.node_id, coordinator.error_code

    def version(self, broker: int, kind: Any, newest: int = 1 << 15) -> int:
        supported = 0, min(kind.max_version, newest)
        return self._client.broker(broker).version(kind.API_KEY, supported, kind.name)

    def pause(self, code: int, what: str, deadline: float) -> None:
        """Wait before a retry; raise `ClusterUnreachable` if a retry is vain or late."""
        if code not in PASSING or time.monotonic() + PAUSE_S > deadline:
            raise ClusterUnreachable(f"cluster {self._client.config.alias}: {what} failed: {error_name(code)}")
        time.sleep(PAUSE_S)
