"""Claims for starts: source offsets from which a flow copies into foreign logs.

The targets hold other writers' records. A start is durable before any record is sent, so that every pump begins there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sparkmirror.chunks import chunks
from sparkmirror.exact.durable.claim_log import ClaimLog
from sparkmirror.exact.durable.claims import Claim, start_claim
from sparkmirror.exact.durable.identity import Identity
from sparkmirror.exact.position.route import PartitionPair
from sparkmirror.exact.position.target_reading import Unserved
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.mirror.takeover.log_bounds import read_target_ends
from sparkmirror.mirror.takeover.our_records import OurRecords

CLAIMED_AT_ONCE = 500
"""Partitions whose starts are written together: one batch in the segments topic."""


class Start(NamedTuple):
    """A partition's start."""

    begun: OurRecords
    upstream: int
    """The source offset where copying begins."""
    log_end: int
    """The target leader's log end at the time of the decision."""


def claim_starts(
    target: ClusterClient, claim_log: ClaimLog, identity: Identity, starts: Sequence[Start], predecessor: str
) -> dict[PartitionPair, str]:
    """Claim the starts, and retract this flow's earlier claims on the partitions.

    Returns the failed partitions with the reason. `predecessor` is the mirror that probably writes there still.
    """
    failed: dict[PartitionPair, str] = {}
    for chunk in chunks(starts, CLAIMED_AT_ONCE):
        failed |= _claim(target, claim_log, identity, chunk, predecessor)
    return failed


def _claim(
    target: ClusterClient, claim_log: ClaimLog, identity: Identity, starts: Sequence[Start], predecessor: str
) -> dict[PartitionPair, str]:
    target_partitions = [(start.begun.pair.target.topic_id, start.begun.pair.route.partition) for start in starts]
    try:
        whole = claim_log.wholes(
            target_partition for target_partition in target_partitions if claim_log.claims(*target_partition)
        )
        outdated = [claim for claims in whole.values() for claim in identity.own(claims)]
        claim_log.revise([_claim_of(identity, start) for start in starts], outdated)
    except ConnectionError as error:
        return {start.begun.pair.route: str(error) for start in starts}
    failed: dict[PartitionPair, str] = {}
    ends = read_target_ends(target, (start.begun.pair for start in starts))
    for start in starts:
        route = start.begun.pair.route
        end = ends[route]
        if isinstance(end, Unserved):
            failed[route] = str(end)
        elif end != start.log_end:
            still = f"a foreign producer still writes to {route.target_topic} (offset {start.log_end} to {end - 1})"
            failed[route] = f"{still}: stop {predecessor}"
    return failed


def _claim_of(identity: Identity, start: Start) -> Claim:
    pair = start.begun.pair
    return start_claim(
        identity,
        (pair.target.topic_id, pair.route.partition),
        pair.source.topic_id,
        sequence=start.begun.sequence,
        upstream=start.upstream,
        downstream=start.log_end,
    )
