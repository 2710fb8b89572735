"""When a copy keeps less than its source."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.mirror.sync.retention import keeps_less

DAY, HOUR = 86_400_000, 3_600_000


@pytest.mark.parametrize(
    ("source", "target", "words"),
    [
        ({"retention.ms": str(7 * DAY)}, {"retention.ms": str(8 * HOUR)}, "retention.ms is 8 h (7 d at the source)"),
        ({"retention.ms": "-1"}, {"retention.ms": str(DAY)}, "retention.ms is 1 d (without end at the source)"),
        ({"retention.ms": str(DAY)}, {"retention.ms": "-1"}, ""),
        ({"retention.ms": str(DAY)}, {"retention.ms": str(DAY)}, ""),
        (
            {"retention.bytes": "-1"},
            {"retention.bytes": "5000"},
            "5,000 bytes (without end at the source)",
        ),
        ({"retention.bytes": "9000"}, {"retention.bytes": "5000"}, "5,000 bytes (9,000 bytes at the source)"),
        ({"retention.ms": str(DAY)}, {"cleanup.policy": "compact"}, "cleanup.policy is compact (delete at the source)"),
        (
            {"cleanup.policy": "compact", "retention.ms": str(DAY)},
            {"cleanup.policy": "compact,delete", "retention.ms": str(7 * DAY)},
            "retention.ms is 7 d (without end at the source)",
        ),
        (
            {"cleanup.policy": "compact", "delete.retention.ms": str(DAY)},
            {"cleanup.policy": "compact", "delete.retention.ms": "1500"},
            "delete.retention.ms is 1.5 s (1 d at the source)",
        ),
        ({"retention.ms": str(DAY)}, {}, ""),
        ({}, {"retention.ms": str(DAY)}, ""),
    ],
)
def test_it_is_told_by_the_effective_values(source: dict[str, str], target: dict[str, str], words: str) -> None:
    assert (words in keeps_less(source, target)) if words else keeps_less(source, target) == ""


VALUES = st.fixed_dictionaries(
    {
        "retention.ms": st.sampled_from(["-1", "0", "1000", str(DAY)]),
        "retention.bytes": st.sampled_from(["-1", "1", "1000"]),
        "cleanup.policy": st.sampled_from(["delete", "compact", "compact,delete"]),
        "delete.retention.ms": st.sampled_from(["0", "1000"]),
    }
)


@given(VALUES, VALUES)
def test_no_two_logs_keep_less_than_each_other_by_one_property(here: dict[str, str], there: dict[str, str]) -> None:
    assert keeps_less(here, here) == ""
    names = [
        {part.split(" is ")[0] for part in keeps_less(*pair).split(", ") if part}
        for pair in ((here, there), (there, here))
    ]
    assert not names[0] & names[1] - {"cleanup.policy"}
