"""Missing rights are asked for once, however many partitions are refused at once."""

from __future__ import annotations

from typing import Any

import pytest

from sparkmirror.config import ClusterConfig
from sparkmirror.exact.position.route import PartitionPair
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.pump import rights_reader
from sparkmirror.pump.rights_reader import KEPT_S, RightsReader

ALLOWED = {"orders": frozenset({"READ"}), "us.orders": frozenset({"READ"})}
LINE = (
    "User:ANONYMOUS lacks WRITE on topic us.orders of eu: run `kafka-acls.sh --bootstrap-server eu:9092 --add"
    " --allow-principal User:ANONYMOUS --operation Write --topic us.orders --resource-pattern-type literal`"
)


def test_one_answer_for_all_partitions_and_half_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def operations(client: Any, topics: list[str]) -> dict[str, frozenset[str]]:
        asked.append(f"{client.config.alias}: {topics[0]}")
        return {topic: ALLOWED[topic] for topic in topics}

    def acls(client: Any) -> set[Any]:
        asked.append(f"{client.config.alias}: ACLs")
        return set()

    monkeypatch.setattr(rights_reader, "topic_operations", operations)
    monkeypatch.setattr(rights_reader, "topic_acls", acls)
    us, eu = (
        ClusterClient(ClusterConfig(alias=alias, bootstrap_servers=(f"{alias}:9092",)), "test")
        for alias in ("us", "eu")
    )
    now = [100.0]
    reader = RightsReader(us, eu, lambda: now[0])
    for partition in range(3):
        assert reader.of(PartitionPair("orders", "us.orders", partition)) == [LINE]
    assert asked == ["us: orders", "eu: us.orders", "eu: ACLs"], "nothing is missing at the source"
    now[0] += KEPT_S + 1
    monkeypatch.setitem(ALLOWED, "us.orders", frozenset({"READ", "WRITE"}))
    assert reader.of(PartitionPair("orders", "us.orders", 0)) == []
