"""Groups' next offsets at the target, by partition, and each group's standing.

The same for consumer groups and share groups.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from sparkmirror.sync.group_standing import GroupStanding, standing
from sparkmirror.sync.group_translator import GroupTranslator, TranslatedOffset
from sparkmirror.translation.map_keeper import NOTHING_YET
from sparkmirror.wire.topic_partition import TopicPartition


class TranslatedGroup(NamedTuple):
    """Translated offsets of one group."""

    offsets: Mapping[TopicPartition, TranslatedOffset]
    """Translations by source partition; partitions without translation are left out."""
    standing: GroupStanding


def translate_groups(
    translator: GroupTranslator, offsets: Mapping[str, Mapping[TopicPartition, int]]
) -> dict[str, TranslatedGroup]:
    """Translate every group's offsets at the source.

    In a partition without records to copy, a group continues at the target's end. Raises `ConnectionError` and
    `SparkMirrorError`.
    """
    translator.refresh({partition for positions in offsets.values() for partition in positions})
    translated: dict[str, dict[TopicPartition, TranslatedOffset]] = {group: {} for group in offsets}
    missing: dict[str, list[str]] = defaultdict(list)
    ahead: dict[str, dict[TopicPartition, str]] = defaultdict(dict)
    for group, positions in offsets.items():
        for partition, offset in positions.items():
            result = translator.of(partition, offset)
            if isinstance(result, TranslatedOffset):
                translated[group][partition] = result
                if not result.copied:
                    ahead[group][partition] = f"{partition[0]}-{partition[1]}: at {offset}, the copy is not so far yet"
            elif result is NOTHING_YET:
                ahead[group][partition] = f"{partition[0]}-{partition[1]}: {result.reason}"
            else:
                missing[group].append(f"{partition[0]}-{partition[1]}: {result.reason}")
    nothing_there = translator.without_records({partition for lagging in ahead.values() for partition in lagging})
    for group, reasons in ahead.items():
        for partition in reasons.keys() & nothing_there.keys():
            if offsets[group][partition] <= nothing_there[partition].end:
                translated[group][partition] = nothing_there[partition].at_target
                del reasons[partition]
    return {
        group: TranslatedGroup(
            offsets_of_group,
            standing(group, len(offsets[group]), missing[group], ahead[group].values()),
        )
        for group, offsets_of_group in translated.items()
    }
