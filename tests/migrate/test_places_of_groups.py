"""A group's place where no record tells: at a copy's end, and behind published ends."""

from __future__ import annotations

import pytest

from sparkmirror.exact.maps.offset_map import Copied
from sparkmirror.migrate.observe import _at_end
from sparkmirror.mirror.sync.application_translator import Stored, Translation

PLACE = ("orders", 0)
UNKNOWN = Translation("A.orders", 0, None, "not copied yet")


@pytest.mark.parametrize(
    ("committed", "copied_to", "published", "place"),
    [
        (92, 92, None, 500),
        (93, 92, None, None),
        (93, 92, 92, 500),
        (95, 92, 92, 500),
        (93, 90, 92, None),
        (91, 90, 92, None),
        (90, 90, 92, 500),
    ],
)
def test_a_place_behind_all_that_is_copied(
    committed: int, copied_to: int, published: int | None, place: int | None
) -> None:
    """Behind a published end there are stragglers alone: who has read them continues at the copy's end."""
    ends = {} if published is None else {PLACE: published}
    copied = {PLACE: Copied(upstream=copied_to, downstream=500, records=copied_to)}
    assert _at_end(Stored(*PLACE, committed), UNKNOWN, copied, ends).offset == place


def test_a_place_that_the_map_tells_is_kept() -> None:
    told = UNKNOWN._replace(offset=7, reason="")
    copied = {PLACE: Copied(upstream=92, downstream=500, records=92)}
    assert _at_end(Stored(*PLACE, 93), told, copied, {PLACE: 92}) == told
