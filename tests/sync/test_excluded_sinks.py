"""Groups of sink connectors that `groups.exclude` takes out: named, since a moved sink would begin again."""

from __future__ import annotations

import pytest

from sparkmirror.config.model import GroupConfig
from sparkmirror.kafka.cluster.groups import ListedGroup
from sparkmirror.mirror.sync.checkpoints import excluded_sinks, is_looked_after

LISTED = [
    ListedGroup(group="connect-s3", protocol="consumer", state="Empty", type="classic"),
    ListedGroup(group="connect-jdbc", protocol="consumer", state="Stable", type="consumer"),
    ListedGroup(group="connect-cluster", protocol="connect", state="Stable", type="classic"),
    ListedGroup(group="billing", protocol="consumer", state="Stable", type="classic"),
    ListedGroup(group="console-consumer-7", protocol="consumer", state="Empty", type="classic"),
]


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        (GroupConfig(), ("connect-jdbc", "connect-s3")),
        (GroupConfig(groups_exclude=("console-consumer-.*",)), ()),
        (GroupConfig(groups_exclude=("connect-s.*",)), ("connect-s3",)),
        (GroupConfig(groups=("billing",)), ()),
        (GroupConfig(group_filter_class="ours:Filter"), ()),
    ],
)
def test_groups_that_are_excluded_and_not_only_unlisted(settings: GroupConfig, named: tuple[str, ...]) -> None:
    """The workers' own group is no consumer's."""
    assert excluded_sinks(LISTED, settings) == named


@pytest.mark.parametrize(
    ("kind", "protocol", "sync", "looked_after"),
    [
        ("classic", "consumer", False, True),
        ("", "", False, True),
        ("classic", "connect", True, False),
        ("streams", "consumer", True, False),
        ("share", "share", True, True),
        ("share", "share", False, False),
    ],
)
def test_groups_that_a_duty_looks_after(kind: str, protocol: str, sync: bool, looked_after: bool) -> None:
    group = ListedGroup(group="shop", protocol=protocol, state="Empty", type=kind)
    assert is_looked_after(group, GroupConfig(sync_group_offsets_enabled=sync)) is looked_after
