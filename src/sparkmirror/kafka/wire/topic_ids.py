"""Topic ids (KIP-516), and what an unknown id means."""

from __future__ import annotations

NO_ID = bytes(16)
"""A topic's id in a cluster without topic ids.

Such a cluster's `inter.broker.protocol.version` is below 2.8.
"""


def same_topic(one_id: bytes, other_id: bytes) -> bool:
    """True if two 16-byte ids may belong to the same topic.

    An unknown id may be any topic's. A topic gets its id in its cluster's upgrade, and may lose the id in a downgrade;
    the topic stays the same.
    """
    return one_id == other_id or NO_ID in (one_id, other_id)
