"""A rehearsal's result in lines, and in rows for JSON."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from sparkmirror.look.doctor.rule import counted
from sparkmirror.migrate.rehearsal import PartitionRehearsal, Rehearsal, Rehearsed

_OF_PARTITIONS = ("topic", "partition", "committed", "copy", "position", "equal", "lag", "read_again", "skipped")


def rehearsal_lines(result: Rehearsal, there: str) -> Iterator[str]:
    """Yield a line for each group, and for each partition that is not equal.

    `there` is the other cluster's alias.
    """
    if not (result.partitions or result.refused or result.not_copied):
        yield "no group of the sets has commits in topics that are copied: nothing to rehearse"
    for group, parts in groupby(result.partitions, key=lambda each: each.group):
        its = list(parts)
        exact = sum(each.result is Rehearsed.EQUAL for each in its)
        equal = sum(each.comparison.equal for each in its)
        yield (
            f"{group} would continue at {there} at the exact record in {exact:,} of {counted(len(its), 'partition')}:"
            f" {counted(equal, 'next record')} equal"
        )
        for each in its:
            if each.result is not Rehearsed.EQUAL:
                yield f"  {each.topic}-{each.partition}: {_why(each)}"
    for group, reason in result.refused.items():
        yield f"{group}: its commits can't be read: {reason}"
    for group, topics in result.not_copied.items():
        yield f"{group}: has commits in topics that are not copied: {', '.join(topics)}"


def _why(each: PartitionRehearsal) -> str:
    compared = each.comparison
    if compared.differs is not None:
        told = f"differs: offset {compared.differs.source:,} is not what offset {compared.differs.target:,} is there"
        if compared.read_again:
            return f"{told}; {counted(compared.read_again, 'record')} would be read again"
        return f"{told}; {counted(compared.skipped, 'record')} would be skipped" if compared.skipped else told
    if each.result is Rehearsed.LAG:
        return each.reason or f"the copy lacks {counted(compared.lag, 'record')} still"
    return each.reason


def rehearsal_rows(result: Rehearsal) -> list[dict[str, Any]]:
    """Return rows for groups and partitions, and for groups without a result.

    The latter have null for what partitions have.
    """
    rows: list[dict[str, Any]] = [
        {
            "group": each.group,
            "topic": each.topic,
            "partition": each.partition,
            "committed": each.committed,
            "copy": each.copy,
            "position": each.position,
            "result": str(each.result),
            "equal": each.comparison.equal,
            "lag": each.comparison.lag,
            "read_again": each.comparison.read_again,
            "skipped": each.comparison.skipped,
            "reason": "" if each.result is Rehearsed.EQUAL else _why(each),
        }
        for each in result.partitions
    ]
    left = (
        *result.refused.items(),
        *((group, f"not copied: {', '.join(topics)}") for group, topics in result.not_copied.items()),
    )
    return rows + [
        {"group": group, **dict.fromkeys(_OF_PARTITIONS), "result": str(Rehearsed.UNKNOWN), "reason": reason}
        for group, reason in left
    ]
