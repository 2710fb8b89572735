"""A journal gives back what was written, also after it was cut off."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.errors import ConfigError
from sparkmirror.frames.journal import Journal
from sparkmirror.frames.ranges import LogPlan, PartitionPlan, RangePlan
from sparkmirror.frames.report import RangeReport, Unmatched
from sparkmirror.frames.verify_options import Options

SPAN = RangePlan(range=0, first_upstream=0, end_upstream=9, first_downstream=1, end_downstream=10)
PLAN = PartitionPlan(
    flow="A->B",
    partition=3,
    source=LogPlan(topic="t", topic_id="00ff", start=0, end=9, compacted=True, tombstones_kept_ms=5),
    target=LogPlan(topic="A.t", topic_id="ff00", start=1, end=10),
    isolation="read_committed",
    timestamps=True,
    bytes_per_offset=12.5,
    ranges=(SPAN,),
    notes=("a note",),
)


def report(number: int) -> RangeReport:
    left = Unmatched("source", 5, 0, 7, 1_700_000_000_000, "ab12", 1 << 55, False)
    return RangeReport(range=number, records=4, bytes=500, whole_batches=1, unmatched=(left,), not_listed=2)


def test_what_is_noted_is_given_back(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal", "scope")
    assert journal.load() is None
    journal.begin([PLAN])
    journal.append([report(0)])
    journal.append([report(1)])
    journal.close()
    assert Journal(tmp_path / "journal", "scope").load() == ([PLAN], [report(0), report(1)])


def test_a_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(path, "scope")
    journal.begin([PLAN])
    journal.append([report(0), report(1)])
    journal.close()
    for cut in range(1, 60):
        path.write_bytes(path.read_bytes()[:-cut])
        again = Journal(path, "scope")
        known = again.load()
        assert known is not None
        again.append([report(2)])
        again.close()
        assert Journal(path, "scope").load() == ([PLAN], [*known[1], report(2)])


def test_half_a_plan_is_none(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(path, "scope")
    journal.begin([PLAN, PLAN])
    journal.close()
    path.write_text("\n".join(path.read_text().splitlines()[:-1]))
    assert Journal(path, "scope").load() is None


@pytest.mark.parametrize("left", ["", "\n", '{"sco', '{"scope": "scope'])
def test_one_that_was_cut_off_at_once_is_begun_again(tmp_path: Path, left: str) -> None:
    (tmp_path / "journal").write_text(left)
    assert Journal(tmp_path / "journal", "scope").load() is None


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(path, "scope")
    journal.begin([PLAN])
    journal.close()
    with pytest.raises(ConfigError, match="something else"):
        Journal(path, "another").load()
    path.write_text("clusters = A, B\ntopics = t\n")
    with pytest.raises(ConfigError, match="line 1 is not of a verification's journal"):
        Journal(path, "scope").load()
    for foreign in (b"one line", b'{"equal": true, "partitions": []}\n', b"\x00\xff\xfe", b"[1]\n\n", b"\n\nnotes\n"):
        path.write_bytes(foreign)
        with pytest.raises(ConfigError, match="line 1 is not of a verification's journal"):
            Journal(path, "scope").load()
    with pytest.raises(ConfigError, match="Is a directory"):
        Journal(tmp_path, "scope").load()


def test_a_single_pattern_is_one() -> None:
    one, listed = Options(topics="orders.*"), Options(topics=("orders.*",))
    assert one.scope().topics("orders-eu")
    assert not one.scope().topics("o")
    assert one.words([]) == listed.words([]), "so that a journal continues"
