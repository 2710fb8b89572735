"""The cases of MirrorSourceConnectorTest about which topics are replicated (`tests/conformance.md`)."""

from __future__ import annotations

import pytest
from tests.policy.replicated import replicated

from sparkmirror.policy import (
    DefaultReplicationPolicy,
    DefaultTopicFilter,
    IdentityReplicationPolicy,
    ReplicationPolicy,
    is_cycle,
)

NOTHING, EVERYTHING = DefaultTopicFilter([]), DefaultTopicFilter([".*"])
DEFAULT, UNDERSCORE = DefaultReplicationPolicy(), DefaultReplicationPolicy("_")


@pytest.mark.parametrize(
    ("topic", "policy", "topics", "heartbeats", "expected"),
    [
        ("heartbeats", DEFAULT, EVERYTHING, True, True),
        ("us-west.heartbeats", DEFAULT, EVERYTHING, True, True),
        ("heartbeats", DEFAULT, NOTHING, True, True),
        ("us-west.heartbeats", DEFAULT, NOTHING, True, True),
        ("heartbeats", UNDERSCORE, NOTHING, True, True),
        ("us-west_heartbeats", UNDERSCORE, NOTHING, True, True),
        ("us-west.heartbeats", UNDERSCORE, NOTHING, True, False),
        ("heartbeats", DEFAULT, NOTHING, False, False),
        ("us-west.heartbeats", DEFAULT, NOTHING, False, False),
        ("heartbeats", DEFAULT, EVERYTHING, False, True),
        ("us-west.heartbeats", DEFAULT, EVERYTHING, False, True),
    ],
)
def test_heartbeats(
    topic: str, policy: ReplicationPolicy, topics: DefaultTopicFilter, heartbeats: bool, expected: bool
) -> None:
    assert replicated(topic, policy, topics, heartbeats=heartbeats) is expected


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        ("target.topic1", False),
        ("target.source.topic1", False),
        ("source.target.topic1", False),
        ("target.source.target.topic1", False),
        ("source.target.source.topic1", False),
        ("topic1", True),
        ("source.topic1", True),
        ("other.topic1", True),
    ],
)
def test_no_cycles(topic: str, expected: bool) -> None:
    assert replicated(topic, DEFAULT, EVERYTHING) is expected
    assert replicated(topic, IdentityReplicationPolicy("source"), EVERYTHING)  # which can't tell


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        ("heartbeats", True),
        ("other.heartbeats", True),
        ("target.heartbeats", False),
        ("target.source.heartbeats", False),
        ("source.target.heartbeats", False),
        ("target.source.target.heartbeats", False),
        ("source.target.source.heartbeats", False),
        ("target.my-heartbeats", False),  # the quirk: by its end it is taken for heartbeats, and so for a copy
    ],
)
def test_identity_replication_of_heartbeats(topic: str, expected: bool) -> None:
    assert replicated(topic, IdentityReplicationPolicy("source"), EVERYTHING) is expected


class WithoutUpstream(DefaultReplicationPolicy):
    """A policy that knows where a topic is from, and not its name there."""

    def upstream_topic(self, topic: str) -> str | None:
        return None


@pytest.mark.parametrize("topic", [".b", "x.b", "b"])
def test_is_cycle_with_null_upstream_topic(topic: str) -> None:
    assert not is_cycle(WithoutUpstream(), topic, "target")
