"""Each rule of the arbitration decides a case, and the case fails where the rule is taken out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.position.claim_cases import ONE, OTHER, a_target, assert_right, claim, dense, incarnations, start

from sparkmirror.exact.durable.claims import Claim
from sparkmirror.exact.position import arbitration_rules as rules
from sparkmirror.exact.position.arbitration import Ruling, arbitrate
from sparkmirror.exact.position.arbitration_rules import RULES, Rule
from sparkmirror.exact.position.matching import MatchedLog, TargetLog

CONFIRMED = claim(ONE, 0, dense, confirmed=True)


def emptied(claims: list[Claim]) -> Ruling:
    """The ruling on claims whose batches retention has deleted."""
    target = a_target(claims, dense, [10, 11], [12])
    target.delete_records(13)
    return target.ruling()


def confirmed_part() -> None:
    """A part of a confirmed claim, confirmed by itself, says nothing new."""
    whole = claim(ONE, 0, dense, [12, 13], confirmed=True)
    assert a_target([whole, whole.part(1, 2, 10, confirmed=True)], dense, [12, 13]).ruling().true == (whole,)


def confirmed_and_rival() -> None:
    settled, rival = claim(ONE, 0, [0, 1, 5], confirmed=True), claim(OTHER, 0, [0, 2, 5])
    target = a_target([settled, rival], [0, 1, 5])
    target.delete_records(3)
    assert target.ruling().true == (settled,)


def two_starts() -> None:
    assert incarnations(a_target([start(ONE, 50), start(OTHER, 40)]).ruling().true) == [OTHER]


def offset_set_by_operator() -> None:
    altered = replace(start(OTHER, 70), sequence=10, altered=True)
    assert a_target([CONFIRMED, altered], dense).ruling().true == (CONFIRMED, altered)


def batch_to_come() -> None:
    coming = claim(ONE + 1, 10, range(12, 15))
    assert incarnations(assert_right(a_target([CONFIRMED, coming], dense)).true) == [ONE]


def rivals_of_equal_marks() -> None:
    """A batch compressed again has the count and the timestamps of both claims."""
    target = a_target([claim(ONE, 0, [10, 12, 14]), claim(OTHER, 0, [10, 13, 14])], [10, 12, 14])
    target.compress(0)
    assert target.ruling().undecided.startswith("rival pumps may have copied different records as sequence 0")


def foreign_records_between() -> None:
    both = claim(ONE, 0, dense, [12, 13])
    first, second = a_target([both], dense, [12, 13]).stored
    seen = MatchedLog((first, second._replace(offset=15)), 17)
    ruling = arbitrate([both], {both.key: seen}, TargetLog(0, 17, 12))
    assert [(part.sequence, part.downstream) for part in ruling.true] == [(0, 0), (10, 15)]


def next_batch() -> None:
    both = claim(ONE, 0, dense, [12, 13])
    assert assert_right(a_target([both], dense, [12, 13])).true == (replace(both, confirmed=True),)


def batch_inside() -> None:
    """Both may have sent these records: the claim before tells where they come from."""
    assert emptied([CONFIRMED, claim(OTHER, 5, range(5, 10))]).true == (CONFIRMED,)


def batch_without_gap() -> None:
    ruling = emptied([CONFIRMED, claim(OTHER, 10, [10, 11])])
    assert [(part.incarnation, part.shared) for part in ruling.true] == [(ONE, False), (OTHER, True)]


def lone_claim_behind_another_pump() -> None:
    """The pump of the claim before may have gone on without a gap, and claimed nothing."""
    assert emptied([CONFIRMED, claim(OTHER, 10, [12, 13])]).undecided


def batch_after_a_gap() -> None:
    ruling = assert_right(a_target([CONFIRMED, claim(OTHER, 10, [12, 13])], dense, [12, 13]))
    assert incarnations(ruling.true) == [ONE, OTHER]


def lost_and_copied_again() -> None:
    """An unclean election took confirmed records, and others were copied in their place."""
    old, new = claim(ONE + 1, 10, [12, 13], confirmed=True), claim(OTHER, 10, [13, 15])
    assert incarnations(assert_right(a_target([CONFIRMED, old, new], dense, [13, 15])).true) == [ONE, OTHER]


CASES: dict[Rule, Callable[[], None]] = {
    rules.is_confirmed_already: confirmed_part,
    rules.is_confirmed: confirmed_and_rival,
    rules.begins_at_start: two_starts,
    rules.begins_where_operator_set: offset_set_by_operator,
    rules.has_no_batch: batch_to_come,
    rules.has_undecidable_rivals: rivals_of_equal_marks,
    rules.goes_on_after_foreign_records: foreign_records_between,
    rules.goes_on: next_batch,
    rules.repeats_records_before: batch_inside,
    rules.may_have_gone_on_without_claim: batch_without_gap,
    rules.may_have_been_replaced: lone_claim_behind_another_pump,
    rules.counts_from_here_on: batch_after_a_gap,
}


def name(rule: Rule) -> str:
    return rule.__name__


@pytest.mark.parametrize("rule", RULES, ids=name)
def test_the_rule_decides_its_case(rule: Rule) -> None:
    CASES[rule]()


@pytest.mark.parametrize("rule", RULES, ids=name)
def test_without_the_rule_its_case_fails(rule: Rule, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "RULES", tuple(kept for kept in RULES if kept is not rule))
    with pytest.raises((AssertionError, StopIteration)):
        CASES[rule]()


def test_the_log_overrules_what_was_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    lost_and_copied_again()
    monkeypatch.setattr(rules, "log_overrules", lambda seam: False)
    with pytest.raises(AssertionError):
        lost_and_copied_again()


def test_the_page_of_the_table_names_each_rule() -> None:
    assert [rule for rule in RULES if f"`{rule.__name__}`" not in str(rules.__doc__)] == []
    assert set(CASES) == set(RULES)
