"""The common name for a partition."""

from __future__ import annotations

from typing import TypeAlias

TopicPartition: TypeAlias = tuple[str, int]
"""A topic's name and a partition number."""
