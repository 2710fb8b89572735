"""Groups' next offsets at the target, by partition, and each group's standing.

The same for consumer groups and share groups.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from sparkmirror.sync.group_standing import GroupStanding, standing
from sparkmirror.sync.places import Places, TranslatedOffset
from sparkmirror.translation.map_keeper import NOTHING_YET
from sparkmirror.wire.topic_partition import TopicPartition


class PlacedGroup(NamedTuple):
    """Translated offsets of one group."""

    places: Mapping[TopicPartition, TranslatedOffset]
    """Translations by source partition; partitions without translation are left out."""
    standing: GroupStanding


def place_groups(places: Places, offsets: Mapping[str, Mapping[TopicPartition, int]]) -> dict[str, PlacedGroup]:
    """Translate every group's offsets at the source.

    In a partition without records to copy, a group continues at the target's end. Raises `ConnectionError` and
    `SparkMirrorError`.
    """
    places.refresh({partition for positions in offsets.values() for partition in positions})
    placed: dict[str, dict[TopicPartition, TranslatedOffset]] = {group: {} for group in offsets}
    missing: dict[str, list[str]] = defaultdict(list)
    ahead: dict[str, dict[TopicPartition, str]] = defaultdict(dict)
    for group, positions in offsets.items():
        for partition, offset in positions.items():
            place = places.of(partition, offset)
            if isinstance(place, TranslatedOffset):
                placed[group][partition] = place
                if not place.copied:
                    ahead[group][partition] = f"{partition[0]}-{partition[1]}: at {offset}, the copy is not so far yet"
            elif place is NOTHING_YET:
                ahead[group][partition] = f"{partition[0]}-{partition[1]}: {place.reason}"
            else:
                missing[group].append(f"{partition[0]}-{partition[1]}: {place.reason}")
    nothing_there = places.without_records({partition for lagging in ahead.values() for partition in lagging})
    for group, reasons in ahead.items():
        for partition in reasons.keys() & nothing_there.keys():
            if offsets[group][partition] <= nothing_there[partition].end:
                placed[group][partition] = nothing_there[partition].place
                del reasons[partition]
    return {
        group: PlacedGroup(
            places_of_group,
            standing(group, len(offsets[group]), missing[group], ahead[group].values()),
        )
        for group, places_of_group in placed.items()
    }
