"""Which versions are tried as source and as target of a flow, what is expected of each pair, and which upgrades."""

from __future__ import annotations

from cluster_of import KRAFT, ZOOKEEPER
from outcomes import Pair

NEWEST = "4.3.1"

SOURCES = (*ZOOKEEPER, "3.3.2 IBP 2.7", *KRAFT)
"""To the newest."""

TARGETS = ("2.8.2", "3.3.2", "3.6.2", "3.9.1", "3.3.2 KRaft", "3.6.2 KRaft", "3.9.1 KRaft", "4.4.0")
"""From the newest."""

TOO_OLD_TARGETS = ("1.1.1", "2.1.1", "2.4.1", "2.7.2", "2.8.2 IBP 2.7", "3.3.2 IBP 2.7")
"""Refused by design: no topic ids, or no DescribeProducers."""

WORKING = (
    *(Pair(source, NEWEST) for source in SOURCES),
    *(Pair(NEWEST, target) for target in TARGETS),
    Pair("2.8.2", "2.8.2"),
)
REFUSED = tuple(Pair(NEWEST, target) for target in TOO_OLD_TARGETS)

BESIDE_MIRROR_MAKER = (
    *(Pair(source, NEWEST) for source in ("1.1.1", "2.1.1", "2.4.1", "2.8.2", "3.9.1", "4.4.0")),
    Pair(NEWEST, "2.8.2"),
    Pair(NEWEST, "3.6.2 KRaft"),
)
"""The real one is 4.3.1, whose clients promise brokers from 2.1 on; 1.1.1 works all the same."""

SOURCE_TO_3 = "source 2.7.2 to 2.8.2 to 3.9.1"
SOURCE_WITHOUT_IDS = "source 2.7.2 to 3.9.1"
TARGET_TO_3 = "target 2.8.2 to 3.9.1"
TARGET_BY_KRAFT = "target 3.9.1 KRaft to 4.4.0, three brokers"
SOURCE_OF_TWO = "source 2.7.2 to 2.8.2, three brokers"
TARGET_OF_TWO = "target 2.8.2 to 3.9.1, three brokers"

UPGRADES = (SOURCE_TO_3, SOURCE_WITHOUT_IDS, SOURCE_OF_TWO, TARGET_TO_3, TARGET_OF_TWO, TARGET_BY_KRAFT)
"""In place, under load; by the names of their outcomes."""
