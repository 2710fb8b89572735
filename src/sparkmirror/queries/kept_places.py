"""Tell whether a query's rows keep the places of the source's records."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

_PLACE = ("topic", "partition", "offset")
_ONE_TO_ONE = {"Project", "Filter", "SubqueryAlias", "View"}
"""Steps of a plan after which each row is of one row before, and no row of two."""


def keeps_places(records: DataFrame, rows: DataFrame) -> bool:
    """Return True if each row is one record's, at the record's place.

    Spark's analyzed plan tells: it has only steps that select, rename and filter, and the three columns are the very
    attributes of `records`.
    """
    before, after = _plan(records), _plan(rows)
    attributes, kept = _attributes(before), _attributes(after)
    if any(name not in kept or kept[name] != attributes.get(name) for name in _PLACE):
        return False
    steps, at = [], after
    while not at.fastEquals(before):
        if at.children().size() != 1:
            return False
        steps.append(str(at.nodeName()))
        at = at.children().apply(0)
    return set(steps) <= _ONE_TO_ONE


def _plan(frame: DataFrame) -> Any:
    return frame._jdf.queryExecution().analyzed()  # noqa: SLF001 - nothing public tells the plan


def _attributes(plan: Any) -> dict[str, int]:
    """Return the ids of a plan's columns; a name that several have is none's."""
    output = plan.output()
    columns = [output.apply(at) for at in range(output.size())]
    names = [str(column.name()) for column in columns]
    return {
        name: int(column.exprId().id()) for name, column in zip(names, columns, strict=True) if names.count(name) == 1
    }
