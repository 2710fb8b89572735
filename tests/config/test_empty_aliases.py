"""Empty aliases and separators: MirrorMaker 2's old way to keep topics' names (`config.aliases`)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sparkmirror.config import IDENTITY_POLICY, FlowConfig, MirrorConfig
from sparkmirror.errors import ConfigError
from sparkmirror.mirror.sync.topic_rules import topic_rules

Load = Callable[..., MirrorConfig]
KEEPS = "is MirrorMaker 2's old way to keep topics' names"


def names(flow: FlowConfig) -> tuple[str, str, str]:
    """The copy of `orders`, and MirrorMaker 2's two topics."""
    rules = topic_rules(flow)
    syncs, checkpoints = (
        rules.policy.offset_syncs_topic(flow.mm2_target),
        rules.policy.checkpoints_topic(flow.mm2_source),
    )
    return rules.remote_name("orders"), syncs, checkpoints


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("source.cluster.alias =\n", ("orders", "mm2-offset-syncseuinternal", "checkpointsinternal")),
        ("us->eu.source.cluster.alias =\n", ("orders", "mm2-offset-syncseuinternal", "checkpointsinternal")),
        (
            "source.cluster.alias =\ntarget.cluster.alias =\n",
            ("orders", "mm2-offset-syncsinternal", "checkpointsinternal"),
        ),
        (
            "source.cluster.alias =\nreplication.policy.internal.topic.separator.enabled = false\n",
            ("orders", "mm2-offset-syncs.eu.internal", ".checkpoints.internal"),
        ),
    ],
)
def test_both_empty_keeps_names(load: Load, lines: str, expected: tuple[str, str, str]) -> None:
    """Names as MirrorMaker 2 4.3.1 has them."""
    config = load(lines + "replication.policy.separator =\n")
    flow = config.flows[0]
    assert names(flow) == expected
    assert (flow.name, flow.mm2_source) == ("us->eu", "")
    assert flow.replication_policy_class == IDENTITY_POLICY
    assert KEEPS in config.warnings[0]
    assert len(config.warnings) == 1


def test_the_separator_alone(load: Load) -> None:
    """As the real one: there is nothing between alias and topic."""
    config = load("replication.policy.separator =")
    assert names(config.flows[0]) == ("usorders", "mm2-offset-syncseuinternal", "uscheckpointsinternal")
    assert config.warnings == ()


@pytest.mark.parametrize("more", ["", "replication.policy.separator = -\n"])
@pytest.mark.parametrize("key", ["source.cluster.alias", "us->eu.source.cluster.alias"])
def test_the_alias_alone(load: Load, key: str, more: str) -> None:
    with pytest.raises(ConfigError, match="which it takes for an internal topic: to keep names write") as caught:
        load(f"{key} =\n{more}")
    assert caught.value.key == key
    assert f"for <alias>{'-' if more else '.'}orders write the source's alias here" in str(caught.value)
    assert load("source.cluster.alias = us\n" + more).warnings == (), "the remedy"


def test_with_the_policy_that_keeps_names(load: Load) -> None:
    config = load(f"source.cluster.alias =\nreplication.policy.class = {IDENTITY_POLICY}")
    assert names(config.flows[0]) == ("orders", "mm2-offset-syncs.eu.internal", ".checkpoints.internal")
    assert config.warnings == ()


def test_no_topic_is_a_cycle(load: Load) -> None:
    """With a target of one letter the real one takes every topic with that letter for its own."""
    start = "clusters = A, r\nA.bootstrap.servers = a:1\nr.bootstrap.servers = b:1\nA->r.enabled = true\n"
    lines = "source.cluster.alias =\ntarget.cluster.alias =\nreplication.policy.separator ="
    rules = topic_rules(load(lines, start=start).flows[0])
    assert rules.wanted("orders")
    assert rules.remote_name("r") == "r"


def test_another_alias_is_still_refused(load: Load) -> None:
    with pytest.raises(ConfigError, match="aliases come from the flow's own name"):
        load("source.cluster.alias = other\nreplication.policy.separator =")
