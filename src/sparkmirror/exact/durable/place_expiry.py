"""Delete queries' places of records that the target's log has deleted.

As with claims (`claim_expiry`), the newest place that begins below the log's start stays.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sparkmirror.chunks import chunks
from sparkmirror.exact.durable.claims import TargetPartition
from sparkmirror.exact.durable.query_places import PlacesKey, read_places
from sparkmirror.kafka.cluster.leader_epochs import EpochStart
from sparkmirror.kafka.cluster.topic_log import TopicLog

_AT_ONCE = 10_000
"""Number of places to delete at a time."""


class _Below(NamedTuple):
    """A place that begins below its log's start."""

    key: PlacesKey
    epochs: tuple[EpochStart, ...]
    covers: bool
    """True if nothing before tells where records are that the log still has."""


def delete_expired(log: TopicLog, log_starts: Mapping[TargetPartition, int]) -> int:
    """Delete places wholly below their log's start; return how many.

    `log_starts` has the starts by target topic id and partition; places of further partitions are left alone. Raises
    `ConnectionError`.
    """
    below: dict[tuple[str, TargetPartition], dict[PlacesKey, _Below]] = defaultdict(dict)
    newest: dict[tuple[str, TargetPartition], tuple[int, ...]] = {}
    at, more = 0, True
    while more:
        entries, at, more = log.read_some(0, at)
        for entry in entries:
            key = PlacesKey.read(entry.key)
            if key is None or log_starts.get(key.target, 0) <= 0:
                continue
            copy = key.query, key.target
            newest[copy] = tuple(sorted({*newest.get(copy, ()), key.batch})[-2:])
            places = read_places(entry.key, entry.value)
            if places is None:
                below[copy].pop(key, None)
            elif places.downstream < log_starts[key.target]:
                below[copy][key] = _Below(key, places.epochs, places.records > 0 or not places.is_known)
    doomed = [key for copy, places in below.items() for key in _doomed(list(places.values()), newest[copy])]
    for chunk in chunks([key.to_json() for key in doomed], _AT_ONCE):
        log.append(0, [(key, None) for key in chunk])
    return len(doomed)


def _doomed(places: Sequence[_Below], newest: Sequence[int]) -> list[PlacesKey]:
    """Return the places to delete.

    The two newest micro-batches' places are kept, since attempts need them, and each leader epoch's last ones: cuts of
    the source's log are found by them.
    """
    is_covered, epochs = False, set[EpochStart]()
    doomed = []
    for each in sorted(places, key=lambda each: (each.key.batch, each.key.part), reverse=True):
        if is_covered and each.key.batch not in newest and epochs.issuperset(each.epochs):
            doomed.append(each.key)
        epochs.update(each.epochs)
        is_covered |= each.covers
    return doomed
