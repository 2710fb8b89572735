"""Two aliases of one cluster."""

from __future__ import annotations

from sparkmirror.policy import shared_cluster


def test_each_alias_a_cluster() -> None:
    assert shared_cluster({}) is None
    assert shared_cluster({"A": "1", "B": "2", "C": "3"}) is None


def test_two_aliases_are_named() -> None:
    reason = shared_cluster({"A": "1", "B": "2", "C": "1"})
    assert reason is not None
    assert reason.startswith("A and C are the same cluster (1): ")
    assert "\n" not in reason
