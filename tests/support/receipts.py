"""Receipts of pumps, made up for tests of those who read them."""

from __future__ import annotations

from typing import Any

from sparkmirror.pump.messages.orders import Receipt


def receipt(partition: int = 0, **changes: Any) -> Receipt:
    """Of a partition of orders along A->B, at work; copies of another topic are called so, too."""
    topic = changes.get("source_topic", "orders")
    values = {"flow": "A->B", "source_topic": topic, "target_topic": f"A.{topic}", "state": "running", **changes}
    return Receipt(partition=partition, **values)
