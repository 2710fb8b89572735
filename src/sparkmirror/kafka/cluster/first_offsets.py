"""First offsets of a stream of the format `sparkmirror`, in its checkpoint.

Places are as in checkpoints of Spark's Kafka source: `{"topic":{"0":23}}`. The end of the first micro-batch also says
where it begins, `{"topic":{"0":23},"from topic":{"0":5}}`, since Spark doesn't keep it.
"""

from __future__ import annotations

from collections.abc import Mapping

Places = dict[str, dict[str, int]]

_FROM = "from "
"""No topic's name has a space."""


def with_first(end: Places, first: Places) -> Places:
    """Return a micro-batch's end that says where it begins, too."""
    return end | {_FROM + topic: offsets for topic, offsets in first.items()}


def parted(places: Mapping[str, dict[str, int]]) -> tuple[Places, Places]:
    """Return an end alone, and the micro-batch's begin; it is empty if not kept."""
    first = {topic.removeprefix(_FROM): each for topic, each in places.items() if topic.startswith(_FROM)}
    return {topic: each for topic, each in places.items() if not topic.startswith(_FROM)}, first
