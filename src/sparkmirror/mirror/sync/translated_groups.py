"""Groups' next offsets at the target, by partition, and each group's standing.

The same for consumer groups and share groups.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from sparkmirror.exact.maps.partition_map import NOTHING_YET
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.mirror.sync.group_maps import GroupMaps, OtherTurn, TranslatedOffset
from sparkmirror.mirror.sync.group_moments import GroupMoments
from sparkmirror.snapshot.group_standing import GroupStanding, standing


class TranslatedGroup(NamedTuple):
    """One group's translated offsets."""

    offsets: Mapping[TopicPartition, TranslatedOffset]
    """Translations by source partition; partitions without translation are left out."""
    standing: GroupStanding


def translate_groups(
    maps: GroupMaps, moments: GroupMoments, offsets: Mapping[str, Mapping[TopicPartition, int]]
) -> dict[str, TranslatedGroup]:
    """Translate every group's offsets at the source.

    In a partition without records to copy, a group continues at the target's end. An offset beyond the source's log end
    is not translated: the group waits for no record there, and its consumers would begin by `auto.offset.reset`. Raises
    `ConnectionError` and `SparkMirrorError`.
    """
    partitions = {partition for positions in offsets.values() for partition in positions}
    maps.refresh(partitions)
    translated: dict[str, dict[TopicPartition, TranslatedOffset]] = {group: {} for group in offsets}
    missing: dict[str, list[str]] = defaultdict(list)
    moved: dict[str, list[str]] = defaultdict(list)
    ahead: dict[str, dict[TopicPartition, str]] = defaultdict(dict)
    for group, positions in offsets.items():
        for partition, offset in positions.items():
            result = maps.of(partition, offset)
            if isinstance(result, TranslatedOffset):
                translated[group][partition] = result
                if not result.copied:
                    ahead[group][partition] = f"{partition[0]}-{partition[1]}: at {offset}, the copy is not so far yet"
            elif isinstance(result, OtherTurn):
                moved[group].append(f"{partition[0]}-{partition[1]}: {result.reason}")
            elif result is NOTHING_YET:
                ahead[group][partition] = f"{partition[0]}-{partition[1]}: {result.reason}"
            else:
                missing[group].append(f"{partition[0]}-{partition[1]}: {result.reason}")
    nothing_there = maps.without_records({partition for lagging in ahead.values() for partition in lagging})
    for group, reasons in ahead.items():
        for partition in reasons.keys() & nothing_there.keys():
            if offsets[group][partition] <= nothing_there[partition].end:
                translated[group][partition] = nothing_there[partition].at_target
                del reasons[partition]
    beyond = _beyond_the_end(maps, offsets, ahead)
    for group, reasons in beyond.items():
        for partition in reasons:
            translated[group].pop(partition, None)
            del ahead[group][partition]
    copied_to = {partition: maps.copied_to(partition) for partition in partitions}
    synced_ms = moments.turn(offsets, {partition: to for partition, to in copied_to.items() if to is not None})
    return {
        group: TranslatedGroup(
            offsets_of_group,
            standing(
                group,
                len(offsets[group]),
                missing=missing[group],
                beyond=beyond.get(group, {}).values(),
                ahead=ahead[group].values(),
                moved=moved[group],
                synced_ms=synced_ms.get(group),
            ),
        )
        for group, offsets_of_group in translated.items()
    }


def _beyond_the_end(
    maps: GroupMaps,
    offsets: Mapping[str, Mapping[TopicPartition, int]],
    ahead: Mapping[str, Mapping[TopicPartition, str]],
) -> dict[str, dict[TopicPartition, str]]:
    """Return the reasons for partitions in which a group is beyond the source's end."""
    ends = maps.source_ends({partition for lagging in ahead.values() for partition in lagging})
    beyond: dict[str, dict[TopicPartition, str]] = defaultdict(dict)
    for group, lagging in ahead.items():
        for partition in lagging:
            offset, end = offsets[group][partition], ends.get(partition)
            if end is not None and offset > end:
                beyond[group][partition] = f"{partition[0]}-{partition[1]}: at {offset}, and the source ends at {end}"
    return beyond
