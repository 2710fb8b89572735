"""The sink's control topic is created with the settings that keep its records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import pytest

from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.sink.agreement import CONTROL_TOPIC, create_control_topic


class Cluster:
    """A cluster that notes the settings of its new topics."""

    def __init__(self, replicas: str | None) -> None:
        self._replicas = replicas
        self.wished: dict[str, dict[str, str]] = {}

    def broker_config(self, name: str) -> str | None:
        assert name == "default.replication.factor"
        return self._replicas

    def create_compacted_topic(
        self, name: str, partitions: int, factor: int, *, wished: Mapping[str, str] | None = None
    ) -> None:
        assert (partitions, factor) == (1, -1)
        self.wished[name] = dict(wished or {})


@pytest.mark.parametrize(("replicas", "least"), [("3", "2"), ("2", None), (None, None)])
def test_two_of_three_replicas_have_what_attempts_agree_on(replicas: str | None, least: str | None) -> None:
    """Lost agreements would give the next attempt another producer, and its rows would come twice."""
    cluster = Cluster(replicas)
    create_control_topic(cast("ClusterAdmin", cluster))
    settings = cluster.wished[CONTROL_TOPIC]
    assert settings["unclean.leader.election.enable"] == "false"
    assert settings.get("min.insync.replicas") == least
