"""The scoreboard says what was found, and is good only if all is."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from chaos.checker import Anomaly, Findings
from chaos.meter import Stall
from chaos.nemesis import Happened
from chaos.onlookers import Seen
from chaos.planting import PLANTERS, Proof
from chaos.results_page import DOCS, JSON, PAGE, section, with_section
from chaos.round import RoundPlan, RoundResult
from chaos.scoreboard import Scoreboard
from chaos.words import FalseWords

PLAN = RoundPlan(3, 44, "standalone", "read_committed", faults=2, timeout_s=60, kinds=frozenset())


def a_round(
    counts: dict[Anomaly, int] | None = None, drained_s: float | None = 2.5, seen: Seen | None = None
) -> RoundResult:
    return RoundResult(
        plan=PLAN,
        findings=Findings(12_345, Counter(counts or {}), [f"{anomaly}: an example" for anomaly in counts or {}]),
        happened=[Happened("source cut", "broker 2", 10.0, 14.0), Happened("rival", "a rival", 15.0, 16.0)],
        skipped=["executor kill: no executor is running"],
        stalls=[Stall(11.0, 0.2), Stall(12.0, 4.25)],
        recoveries=[1.0, None],
        drained_s=drained_s,
        mirror_starts=2,
        mirror_exits=Counter(),
        moves=7,
        orphans=0,
        strangers=0,
        unguarded=1,
        seen=seen or Seen(scrapes=1_000, updates=900),
        copied_anew=["t: why"],
        silences=[],
        false=FalseWords(),
        troubles=[],
        log_end="",
    )


def a_proof(planted: Anomaly | None, *, caught: bool = True) -> Proof:
    expected = {planted: 1} if planted else {}
    return Proof(expected, Findings(45, Counter(expected if caught else {})))


def a_board(rounds: list[RoundResult], proofs: list[Proof] | None = None) -> Scoreboard:
    return Scoreboard("--seed 42", 3, proofs or [a_proof(planted) for planted in PLANTERS], rounds, minutes=1.5)


def unwrapped(text: str) -> str:
    """The text with each paragraph and item on one line."""
    return re.sub(r"\n(?: {2}|(?=\w))", lambda match: " ", text)


def test_both_files_tell_all(tmp_path: Path) -> None:
    board = a_board([a_round()])
    assert board.good
    board.write(tmp_path)
    page = unwrapped((tmp_path / PAGE).read_text())
    assert (
        "0 lost, 0 duplicate, 0 reordered, 0 aborted read, 0 changed, 0 phantom, 0 false words, 0 silences "
        "of 12,345 records over 2 faults" in page
    )
    assert "7 of 7 planted anomalies caught, nothing found in faithful copies" in page
    assert 'make chaos ARGS="--seed 42"' in page
    row = "| 3 | 44 | standalone | read_committed | steady | 2 | 12,345 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 4.2 "
    assert row + "| 1.0 / 1.0, 1 never |" in page
    assert "| source cut | 1 | 1.0 / 1.0 |" in page
    assert "- Round 3, not done: executor kill: no executor is running." in page
    assert "- Round 3, copied again after a lost segments topic: t." in page
    assert "- Meanwhile metrics were scraped 1,000 times, and the page sent 900 events." in page
    assert "- Round 3: plans moved partitions within a running round 7 times." in page
    assert "took back" not in page
    data = json.loads((tmp_path / JSON).read_text())
    assert data["good"] is True
    assert data["faults"] == {"rival": 1, "source cut": 1}
    assert data["planted"]["aborted read"] == {"aborted read": 1}
    (told,) = data["rounds"]
    assert told["anomalies"]["lost"] == 0
    assert told["faults"][0] == {
        "kind": "source cut",
        "victim": "broker 2",
        "began_s": 0.0,
        "ended_s": 4.0,
        "recovered_in_s": 1.0,
    }
    assert told["stalls"] == [{"began_s": 2.0, "seconds": 4.2}]


@pytest.mark.parametrize("anomaly", [anomaly for anomaly in Anomaly if anomaly is not Anomaly.UNSEEN])
def test_any_anomaly_of_the_mirror_is_bad(anomaly: Anomaly) -> None:
    board = a_board([a_round(), a_round({anomaly: 3})])
    assert not board.good
    assert f"3 {anomaly}" in board.summary()
    assert f"- Round 3: {anomaly}: an example" in unwrapped(board.markdown())


def test_what_onlookers_were_told_wrong_is_bad() -> None:
    board = a_board(
        [a_round(seen=Seen(scrapes=5, updates=5, falls=["records_total fell"], unreadable=["page: no JSON"]))]
    )
    assert not board.good
    assert "- Round 3, told wrong: records_total fell." in unwrapped(board.markdown())
    assert "- Round 3, told wrong: page: no JSON." in unwrapped(board.markdown())
    assert not a_board([a_round(seen=Seen())]).good, "they saw nothing"


def test_a_false_word_is_bad_whoever_heard_it() -> None:
    false = FalseWords()
    false.add("ledger: what never was")
    seen = Seen(scrapes=5, updates=5, judged=40, false=false)
    heard, found = a_board([a_round(seen=seen)]), a_round()
    found.false = false
    for board in (heard, a_board([found])):
        assert not board.good
        assert "1 false words, 0 silences" in board.summary()
        assert "ledger: what never was." in unwrapped(board.markdown())
    assert "- 40 times it was said that all had been copied" in unwrapped(heard.markdown())


def test_what_no_fault_excuses_is_bad() -> None:
    for what, value, words in (
        ("silences", ["nothing was named"], "silence: nothing was named."),
        ("mirror_exits", Counter({1: 3}), "the mirror ended 3 times by itself, with 1."),
        ("orphans", 2, "2 processes of killed drivers lived on to the end."),
        ("troubles", ["ForbiddenEvent: x"], "in the mirror's log: ForbiddenEvent: x."),
    ):
        result = a_round()
        setattr(result, what, value)
        assert not a_board([result]).good, what
        assert f"- Round 3: {words}" in unwrapped(a_board([result]).markdown())


def test_what_the_source_lost_is_told_and_is_not_the_mirrors_fault() -> None:
    board = a_board([a_round({Anomaly.UNSEEN: 2})])
    assert board.good
    assert "- Round 3: unseen: an example" in unwrapped(board.markdown())


def test_what_the_source_took_back_is_counted() -> None:
    one, other = a_round(), a_round()
    one.findings.disowned, one.findings.taken_back, other.findings.disowned = 1_200, 40, 5
    board = a_board([one, other])
    assert board.good
    assert "took back 1,205 records that it had acknowledged. 40 records in the copy" in unwrapped(board.markdown())


def test_a_copy_that_never_ended_a_checker_that_misses_something_and_no_round_at_all_are_bad() -> None:
    assert not a_board([a_round(drained_s=None)]).good
    assert not a_board([]).good
    broken_off = a_board([a_round()])
    broken_off.failures.append("round 4 could not be run to its end: no reason")
    assert not broken_off.good
    assert "- round 4 could not" in unwrapped(broken_off.markdown())
    blind = a_board([a_round()], [a_proof(None), a_proof(Anomaly.LOST, caught=False)])
    assert not blind.good
    assert "0 of 1 planted anomalies caught" in blind.summary()
    suspicious = a_board([a_round()], [Proof({}, Findings(45, Counter({Anomaly.LOST: 1})))])
    assert not suspicious.good
    assert "SOMETHING found in faithful copies" in suspicious.summary()


def test_the_page_is_drawn_from_the_stored_run() -> None:
    page, board = (DOCS / PAGE).read_text("utf-8"), json.loads((DOCS / JSON).read_text("utf-8"))
    assert page == with_section(page, section(board)), "python -m chaos.results_page"
    assert f"{sum(one['records'] for one in board['rounds']):,} records" in page
    assert board["commit"] in page


def test_only_the_section_is_replaced() -> None:
    page = "# Results\n\n## Chaos\n\nold\n\n## Next\n\nkept\n"
    assert with_section(page, "## Chaos\n\nnew\n") == "# Results\n\n## Chaos\n\nnew\n\n## Next\n\nkept\n"
    assert with_section("# Results\n", "## Chaos\n\nnew\n") == "# Results\n\n## Chaos\n\nnew\n"
    assert with_section("", "## Chaos\n") == "## Chaos\n"
