"""Which versions are tried as source and as target of a flow, and what is expected of each pair."""

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
