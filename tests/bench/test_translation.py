"""Every upstream offset of every kind of topic is translated to where it went, every group put there: none is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.offset_topics import CASES
from bench.translation import Score, markdown, measure_translation
from bench.translators import GROUPS

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

RECORDS = 4000


def test_every_offset_is_exact(tmp_path: Path) -> None:
    results = measure_translation(tmp_path, RECORDS, print)
    print(markdown(results))
    assert [result.case for result in results] == list(CASES)
    for result in results:
        ours = result.ours
        assert ours.asked > RECORDS * result.case.topic.share * 0.6
        assert ours == Score(ours.asked, ours.asked, 0, 0, 0), result.case.title
        groups = result.our_groups
        assert groups == Score(2 * GROUPS, 2 * GROUPS, 0, 0, 0), result.case.title
        for theirs in result.theirs.values():
            assert theirs.asked == GROUPS
            assert not theirs.skipped, "MirrorMaker 2 translates backwards, if not exactly"
    assert sum(theirs.exact for result in results for theirs in result.theirs.values()) > 0
    runs = {result.case.title: result.map.runs for result in results}
    assert runs["dense"] == runs["log starts inside a batch"] == 1
    assert runs["compacted"] > 100
    assert runs["transactional, read_committed"] > 20
