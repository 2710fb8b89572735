"""Names at the target, as the real policies give them (`mm2.md` section 2.4)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.policy import DefaultReplicationPolicy, IdentityReplicationPolicy, ReplicationPolicy, policy_for
from sparkmirror.policy.replication import DEFAULT, IDENTITY

NAMES = st.text("abA.-_", max_size=12)
SEPARATORS = st.sampled_from([".", "_", "-", "__", "..", ".a", ""])


@pytest.mark.parametrize(
    ("topic", "source", "upstream", "original"),
    [
        ("topic", None, None, "topic"),
        ("A.topic", "A", "topic", "topic"),
        ("A.B.topic", "A", "B.topic", "topic"),
        (".b", "", "b", "b"),
        ("..b", "", ".b", "b"),
        ("topic.", None, None, "topic."),
        ("A.", None, None, "A."),
        ("A..", None, None, "A.."),
        ("A..b", "A", ".b", "b"),
        ("A.b.", "A", "b.", "b."),
        (".", None, None, "."),
        ("", None, None, ""),
    ],
)
def test_default_takes_names_apart(topic: str, source: str | None, upstream: str | None, original: str) -> None:
    policy = DefaultReplicationPolicy()
    assert policy.topic_source(topic) == source
    assert policy.upstream_topic(topic) == upstream
    assert policy.original_topic(topic) == original


@pytest.mark.parametrize(
    ("separator", "topic", "source", "upstream"),
    [
        ("__", "A__topic", "A", "topic"),
        ("__", "A_topic", None, None),
        ("__", "A___topic", "A", "_topic"),
        ("..", "a...", "a", "."),
        ("_", "A.b", None, None),
        ("", "abc", "a", "bc"),
    ],
)
def test_other_separators(separator: str, topic: str, source: str | None, upstream: str | None) -> None:
    policy = DefaultReplicationPolicy(separator)
    assert policy.topic_source(topic) == source
    assert policy.upstream_topic(topic) == upstream


@pytest.mark.parametrize(
    ("topic", "mm2_internal", "internal"),
    [
        ("foo.internal", False, False),
        ("foo-internal", False, False),
        ("mm2.foo.internal", True, True),
        ("mm2-offset-syncs.B.internal", True, True),
        ("mm2-configs.A.internal", True, True),
        ("mm2-foo-internal", False, False),
        ("A.checkpoints.internal", True, True),
        ("checkpoints.internal", False, False),
        (".b", False, True),
        ("__consumer_offsets", False, True),
        ("A.__consumer_offsets", False, False),
        ("topic", False, False),
        ("heartbeats", False, False),
    ],
)
def test_internal_topics(topic: str, mm2_internal: bool, internal: bool) -> None:
    for policy in (DefaultReplicationPolicy(), IdentityReplicationPolicy("A")):
        assert policy.is_mm2_internal_topic(topic) is mm2_internal
        assert policy.is_internal_topic(topic) is internal


@pytest.mark.parametrize(
    ("separator", "enabled", "syncs", "checkpoints"),
    [
        (".", True, "mm2-offset-syncs.B.internal", "B.checkpoints.internal"),
        ("_", True, "mm2-offset-syncs_B_internal", "B_checkpoints_internal"),
        ("_", False, "mm2-offset-syncs.B.internal", "B.checkpoints.internal"),
    ],
)
def test_internal_names(separator: str, enabled: bool, syncs: str, checkpoints: str) -> None:
    policy = DefaultReplicationPolicy(separator, enabled)
    assert policy.offset_syncs_topic("B") == syncs
    assert policy.checkpoints_topic("B") == checkpoints
    assert policy.is_mm2_internal_topic(syncs)
    assert policy.is_checkpoints_topic(checkpoints)
    assert not policy.is_checkpoints_topic(syncs)
    assert policy.heartbeats_topic() == "heartbeats"


@pytest.mark.parametrize(
    ("topic", "remote", "source", "upstream"),
    [
        ("topic", "topic", "A", "topic"),
        ("B.topic", "B.topic", "A", "B.topic"),
        ("heartbeats", "A.heartbeats", None, None),
        ("B.heartbeats", "A.B.heartbeats", "B", "heartbeats"),
        ("my-heartbeats", "A.my-heartbeats", None, None),
    ],
)
def test_identity(topic: str, remote: str, source: str | None, upstream: str | None) -> None:
    policy = IdentityReplicationPolicy("A")
    assert policy.format_remote_topic("A", topic) == remote
    assert policy.topic_source(topic) == source
    assert policy.upstream_topic(topic) == upstream


@pytest.mark.parametrize(
    ("topic", "expected"),
    [("heartbeats", True), ("A.heartbeats", True), ("A.B.heartbeats", True), ("my-heartbeats", False), ("x", False)],
)
def test_heartbeats(topic: str, expected: bool) -> None:
    for policy in (DefaultReplicationPolicy(), IdentityReplicationPolicy("A")):
        assert policy.is_heartbeats_topic(topic) is expected


@given(SEPARATORS, NAMES)
def test_source_and_upstream_make_the_name_again(separator: str, topic: str) -> None:
    policy = DefaultReplicationPolicy(separator)
    source, upstream = policy.topic_source(topic), policy.upstream_topic(topic)
    assert (source is None) == (upstream is None)
    if source is not None and upstream is not None:
        assert policy.format_remote_topic(source, upstream) == topic


@given(st.text("abA", min_size=1, max_size=4), st.text("abA._-", max_size=8), st.sampled_from(["x", "heart"]))
def test_a_copy_knows_where_it_is_from(alias: str, head: str, tail: str) -> None:
    """True if the name doesn't end in separators, and the alias holds none."""
    policy = DefaultReplicationPolicy()
    remote = policy.format_remote_topic(alias, head + tail)
    assert policy.topic_source(remote) == alias
    assert policy.upstream_topic(remote) == head + tail
    assert policy.original_topic(remote) == policy.original_topic(head + tail)


def test_policy_by_class() -> None:
    default: ReplicationPolicy = policy_for(DEFAULT, source_alias="A", separator="_", internal_separator_enabled=False)
    assert default.format_remote_topic("A", "t") == "A_t"
    assert default.checkpoints_topic("A") == "A.checkpoints.internal"
    identity = policy_for(IDENTITY, source_alias="A", separator="_")
    assert identity.topic_source("t") == "A"
    assert identity.checkpoints_topic("A") == "A_checkpoints_internal"
    with pytest.raises(ValueError, match=r"com\.example\.Mine is not known"):
        policy_for("com.example.Mine", source_alias="A")
