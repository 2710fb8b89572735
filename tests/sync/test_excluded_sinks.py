"""Groups of sink connectors that `groups.exclude` takes out: named, since a moved sink would begin anew."""

from __future__ import annotations

import pytest

from sparkmirror.cluster.groups import ListedGroup
from sparkmirror.config.model import GroupConfig
from sparkmirror.sync.checkpoints import excluded_sinks

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
