"""Cluster that a flow copies from, as all the flow's processes agree (R20).

Proposals are in the segments topic's partition 0, next to those for the flow's identity. The first proposal counts,
until an operator says that the source is another cluster now: proposals have a number, and for each number the one with
the lowest offset counts.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

_VERSION = 1
_VALUE = struct.Struct(">hi")


class SourceCluster(NamedTuple):
    """Cluster id of a flow's source, as proposed for all the flow's processes."""

    number: int
    """Number of times that the source had become another cluster before."""
    cluster_id: str

    @property
    def value(self) -> bytes:
        return _VALUE.pack(_VERSION, self.number) + self.cluster_id.encode()


def read_source_cluster(value: bytes) -> SourceCluster | None:
    """Read the value in a proposal's record.

    Raises `struct.error` and `UnicodeDecodeError`.
    """
    _, number = _VALUE.unpack_from(value)
    cluster_id = value[_VALUE.size :].decode()
    return SourceCluster(number, cluster_id) if number >= 0 and cluster_id else None


def agreed_source(proposals: Iterable[SourceCluster]) -> SourceCluster | None:
    """Return the proposal that counts; None without proposals.

    `proposals` are sorted by offset.
    """
    first: dict[int, SourceCluster] = {}
    for proposal in proposals:
        first.setdefault(proposal.number, proposal)
    number = 0
    while number in first:
        number += 1
    return first.get(number - 1)
