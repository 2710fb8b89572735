"""Creations under a controller's quota for partition mutations (KIP-599).

A controller refuses what is above its quota, `controller_mutation_rate`, and tells how long to wait. Kafka's own admin
client waits, too, and asks again for what was refused.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sparkmirror.kafka.wire.error_codes import ErrorCode

SHORTEST_S = 0.1
"""Shortest wait in seconds: a controller may tell none."""


class MutationAnswers(NamedTuple):
    """A controller's answers about topics."""

    topics: dict[str, tuple[int, str]]
    """Kafka's error code and the broker's words, by topic."""
    throttle_s: float = 0.0
    """Seconds for which the controller asks to wait."""

    @property
    def over_quota(self) -> list[str]:
        """Topics that the quota stops for now."""
        return [name for name, (code, _) in self.topics.items() if code == ErrorCode.THROTTLING_QUOTA_EXCEEDED]


def as_quota_allows(
    ask: Callable[[Sequence[str]], MutationAnswers],
    names: Sequence[str],
    patience_s: float,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> MutationAnswers:
    """Ask for topics, and after the told wait again for topics over the quota.

    Ends when no wait fits into `patience_s` any more; then topics over the quota may be left.
    """
    deadline = clock() + patience_s
    answers, left = MutationAnswers({}), list(names)
    while left:
        newest = ask(left)
        answers = MutationAnswers(answers.topics | newest.topics, newest.throttle_s)
        left = newest.over_quota
        wait_s = max(newest.throttle_s, SHORTEST_S)
        if not left or clock() + wait_s > deadline:
            break
        sleep(wait_s)
    return answers
