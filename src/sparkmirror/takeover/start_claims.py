"""Starts claimed: from which source offset on a flow copies partitions whose targets hold what others wrote.

Durable before anything is sent, so that every pump begins there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sparkmirror.cluster.client import ClusterClient
from sparkmirror.durable.claim_log import SegmentLog
from sparkmirror.durable.claims import Segment, start_claim
from sparkmirror.durable.identity import Identity
from sparkmirror.position.route import PartitionPair
from sparkmirror.position.target_reading import Unserved
from sparkmirror.takeover.log_bounds import read_target_ends
from sparkmirror.takeover.our_progress import SoFar

CLAIMED_AT_ONCE = 500
"""Partitions whose starts are written together: what one batch of the segments topic holds."""


class Start(NamedTuple):
    """Where a partition is to begin."""

    begun: SoFar
    upstream: int
    """The source offset that is copied first."""
    log_end: int
    """The target leader's own, when that was decided."""


def claim_starts(
    target: ClusterClient, segments: SegmentLog, identity: Identity, starts: Sequence[Start], predecessor: str
) -> dict[PartitionPair, str]:
    """Claim them; what we claimed before for these partitions is retracted. Returns those that failed, and why.

    `predecessor`: who else is likely to write there.
    """
    failed: dict[PartitionPair, str] = {}
    for first in range(0, len(starts), CLAIMED_AT_ONCE):
        failed |= _claim(target, segments, identity, starts[first : first + CLAIMED_AT_ONCE], predecessor)
    return failed


def _claim(
    target: ClusterClient, segments: SegmentLog, identity: Identity, starts: Sequence[Start], predecessor: str
) -> dict[PartitionPair, str]:
    where = [(one.begun.both.target.topic_id, one.begun.both.route.partition) for one in starts]
    try:
        whole = segments.wholes(one for one in where if segments.claims(*one))
        outdated = [claim for claims in whole.values() for claim in identity.own(claims)]
        segments.settle([_segment(identity, one) for one in starts], outdated)
    except ConnectionError as error:
        return {one.begun.both.route: str(error) for one in starts}
    failed: dict[PartitionPair, str] = {}
    ends = read_target_ends(target, (one.begun.both for one in starts))
    for one in starts:
        route = one.begun.both.route
        end = ends[route]
        if isinstance(end, Unserved):
            failed[route] = str(end)
        elif end != one.log_end:
            still = f"somebody writes to {route.target_topic} still (offset {one.log_end} to {end - 1})"
            failed[route] = f"{still}: stop {predecessor}"
    return failed


def _segment(identity: Identity, start: Start) -> Segment:
    both = start.begun.both
    return start_claim(
        identity,
        (both.target.topic_id, both.route.partition),
        both.source.topic_id,
        sequence=start.begun.sequence,
        upstream=start.upstream,
        downstream=start.log_end,
    )
