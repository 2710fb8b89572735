"""Where groups go on at the target, partition by partition, and how each group stands by that.

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
    """One group."""

    places: Mapping[TopicPartition, TranslatedOffset]
    """By the source's partitions; those are left out of which nothing can be told."""
    standing: GroupStanding


def place_groups(places: Places, offsets: Mapping[str, Mapping[TopicPartition, int]]) -> dict[str, PlacedGroup]:
    """Translate every group's offsets at the source; where there is nothing to copy a group goes on at the end.

    Raises `ConnectionError` and `SparkMirrorError`.
    """
    places.refresh({where for some in offsets.values() for where in some})
    found: dict[str, dict[TopicPartition, TranslatedOffset]] = {group: {} for group in offsets}
    missing: dict[str, list[str]] = defaultdict(list)
    ahead: dict[str, dict[TopicPartition, str]] = defaultdict(dict)
    for group, some in offsets.items():
        for where, offset in some.items():
            place = places.of(where, offset)
            if isinstance(place, TranslatedOffset):
                found[group][where] = place
                if not place.copied:
                    ahead[group][where] = f"{where[0]}-{where[1]}: at {offset}, the copy is not so far yet"
            elif place is NOTHING_YET:
                ahead[group][where] = f"{where[0]}-{where[1]}: {place.reason}"
            else:
                missing[group].append(f"{where[0]}-{where[1]}: {place.reason}")
    nothing_there = places.without_records({where for some in ahead.values() for where in some})
    for group, reasons in ahead.items():
        for where in reasons.keys() & nothing_there.keys():
            if offsets[group][where] <= nothing_there[where].end:
                found[group][where] = nothing_there[where].place
                del reasons[where]
    return {
        group: PlacedGroup(
            places_of_group,
            standing(group, len(offsets[group]), missing[group], ahead[group].values()),
        )
        for group, places_of_group in found.items()
    }
