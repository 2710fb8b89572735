"""Topic ids (KIP-516), and what it means that one is not known."""

from __future__ import annotations

NO_ID = bytes(16)
"""Of a topic in a cluster without topic ids: `inter.broker.protocol.version` is below 2.8."""


def same_topic(one_id: bytes, other_id: bytes) -> bool:
    """Whether two ids of 16 bytes may be one topic's: one that is not known may be any.

    A topic gets its id when its cluster is upgraded, and may lose it by a downgrade; it stays the topic that it was.
    """
    return one_id == other_id or NO_ID in (one_id, other_id)
