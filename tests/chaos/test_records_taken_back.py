"""What the source took back is right in the copy where the ledger names exactly that, and nowhere else."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

import pytest
from chaos.arena import Arena
from chaos.checker import Anomaly, Findings, TopicLogs, check, check_beginning
from chaos.cuts import Cut, Election, Wrong, without_taken_back
from chaos.history import DRAFT, History, record_id
from chaos.planting import PLANTERS
from chaos.planting_cuts import PLANTS, prove_cuts
from chaos.records import LoggedRecord
from hypothesis import given
from hypothesis import strategies as st


def record(offset: int, number: int) -> LoggedRecord:
    name = record_id(DRAFT, 0, number)
    return LoggedRecord(offset, name, number, 0, None, b"", (("id", name.encode()),))


class Course:
    """A source that grows and is cut, and a mirror that copies it exactly and keeps a ledger."""

    def __init__(self) -> None:
        self.source: list[int] = []
        self.copy: list[int] = []
        self.next_offset = 0
        self.cuts: dict[int, Cut] = {}
        self.elections: list[Election] = []
        self.written = 0

    def write(self, count: int) -> None:
        self.source += range(self.written, self.written + count)
        self.written += count

    def take(self, count: int) -> None:
        new = self.source[self.next_offset : self.next_offset + count]
        self.copy += new
        self.next_offset += len(new)

    def cut(self, count: int) -> None:
        before = self.log(self.source)
        del self.source[max(len(self.source) - count, 0) :]
        first = len(self.source)
        self.elections.append(Election(first, before))
        if first < self.next_offset:
            known = self.cuts.get(len(self.copy))  # nothing was copied since: the same loss, which has grown
            self.cuts[len(self.copy)] = Cut(first, known.end if known else self.next_offset, len(self.copy))
            self.next_offset = first

    def logs(self) -> TopicLogs:
        truth, copy = self.log(self.source), self.log(self.copy)
        cuts = {0: list(self.cuts.values())} if self.cuts else {}
        return TopicLogs("drafts", frozenset({DRAFT}), {0: truth}, {0: truth}, {0: copy}, cuts, {0: self.elections})

    @staticmethod
    def log(numbers: list[int]) -> list[LoggedRecord]:
        return [record(offset, number) for offset, number in enumerate(numbers)]


STEPS = st.lists(st.tuples(st.sampled_from(("write", "take", "cut")), st.integers(1, 9)), max_size=40)


def course(steps: list[tuple[str, int]]) -> Course:
    made = Course()
    for what, count in steps:
        getattr(made, what)(count)
    made.take(len(made.source))
    return made


def found(logs: TopicLogs) -> Mapping[Anomaly, int]:
    return {anomaly: count for anomaly, count in checked(logs).counts.items() if count}


def checked(logs: TopicLogs) -> Findings:
    return check(logs, "read_uncommitted", History())


@given(STEPS)
def test_an_exact_copy_of_any_course_is_clean(steps: list[tuple[str, int]]) -> None:
    made = course(steps)
    findings = checked(made.logs())
    assert findings.examples == []
    assert findings.records == len(made.source)
    assert findings.taken_back == len(made.copy) - len(made.source)


@given(STEPS, st.randoms(use_true_random=False))
def test_a_ledger_that_lacks_an_entry_or_names_too_little_or_too_much_is_found(
    steps: list[tuple[str, int]], chance: random.Random
) -> None:
    made = course(steps)
    if not made.cuts:
        return
    place = chance.choice(list(made.cuts))
    cut = made.cuts[place]
    lacks = dict(made.cuts)
    del lacks[place]
    wrong = [lacks, made.cuts | {place: cut._replace(end=cut.end + 1)}]
    if cut.first:
        wrong.append(made.cuts | {place: cut._replace(first=cut.first - 1)})
    if cut.first + 1 < cut.end:
        wrong.append(made.cuts | {place: cut._replace(first=cut.first + 1)})
    for cuts in wrong:
        assert found(replace(made.logs(), cuts={0: list(cuts.values())})), cuts


@given(STEPS, st.randoms(use_true_random=False))
def test_a_record_that_lacks_or_is_there_twice_is_found(steps: list[tuple[str, int]], chance: random.Random) -> None:
    made = course(steps)
    if not made.copy:
        return
    place = chance.randrange(len(made.copy))
    for copy in (
        made.copy[:place] + made.copy[place + 1 :],
        made.copy[:place] + made.copy[place:][:1] + made.copy[place:],
    ):
        logs = [record(offset, number) for offset, number in enumerate(copy)]
        assert found(replace(made.logs(), copy={0: logs})), place


@given(STEPS, st.integers(1, 5), st.integers(0, 8))
def test_records_copied_twice_under_a_cut_that_is_none_are_found(
    steps: list[tuple[str, int]], again: int, later: int
) -> None:
    """A mirror that takes records for taken back copies them again: its ledger and its copy fit each other."""
    made = course([*steps, ("write", 5)])
    made.take(len(made.source))
    first = max(len(made.source) - again, 0)
    if first in {one.first for one in made.elections}:
        return
    made.cuts[len(made.copy)] = Cut(first, made.next_offset, len(made.copy))
    made.next_offset = first
    made.write(later)
    made.take(len(made.source))
    counts = found(made.logs())
    assert counts[Anomaly.DUPLICATE] == len(made.copy) - len(set(made.copy)), "and what the ledger names is not lost"
    assert counts[Anomaly.LOST] == min(again, len(made.source) - later)


@given(STEPS, st.randoms(use_true_random=False))
def test_damage_in_what_was_taken_back_is_found(steps: list[tuple[str, int]], chance: random.Random) -> None:
    made = course([*steps, ("write", 6), ("take", 1000), ("cut", 4), ("write", 3)])
    cut = made.cuts[max(made.cuts)]
    logs = made.logs()
    copy = list(logs.copy[0])
    place = chance.randrange(cut.downstream - (cut.end - cut.first), cut.downstream)
    twice = copy[(place or 2) - 1]
    for falsified in (record(place, 10_000), copy[place]._replace(value=b"other"), twice._replace(offset=place)):
        assert found(replace(logs, copy={0: [*copy[:place], falsified, *copy[place + 1 :]]})), falsified


def test_what_is_left_out_and_what_is_wrong() -> None:
    copy = [record(offset, offset) for offset in range(8)]
    seen = [Election(2, copy[:4]), Election(3, copy[:6])]
    division = without_taken_back(copy, [Cut(2, 4, 4), Cut(3, 9, 6), Cut(1, 3, 7)], seen)
    assert [one.offset for one in division.rest] == [0, 1, 4, 6, 7]
    assert [len(one.records) for one in division.taken_back] == [2, 1]
    assert division.wrong == [Wrong(Cut(3, 9, 6), 4), Wrong(Cut(1, 3, 7), None)]


def test_a_loss_that_is_named_again_behind_a_marker_is_one() -> None:
    """The place in the copy is in the ledger's key, and a marker of the mirror's own fence moves it."""
    made = course([("write", 9), ("take", 9), ("cut", 3), ("write", 2)])
    (cut,) = made.cuts.values()
    behind = [one._replace(offset=one.offset + 1) if one.offset >= 9 else one for one in made.logs().copy[0]]
    logs = replace(made.logs(), copy={0: behind}, cuts={0: [cut, cut._replace(downstream=10)]})
    assert found(logs) == {}


def test_records_that_came_after_the_nemesis_looked_are_the_producers_next_ones() -> None:
    made = course([("write", 9), ("take", 9), ("cut", 3), ("write", 2)])
    (election,) = made.elections
    logs = replace(made.logs(), elections={0: [Election(6, election.before[:7])]})
    assert found(logs) == {}
    copy = list(logs.copy[0])
    for number in (3, 7):
        falsified = [*copy[:8], record(8, number), *copy[9:]]
        assert found(replace(logs, copy={0: falsified})), number


def test_what_the_source_acknowledged_and_took_back_is_told_apart() -> None:
    made = course([("write", 9)])
    history = History(sent={record_id(DRAFT, 0, 3), record_id(DRAFT, 0, 50), record_id(DRAFT, 1, 51)})
    findings = check(replace(made.logs(), elections={0: [Election(9, ())]}), "read_uncommitted", history)
    assert findings.disowned == 1
    assert findings.counts[Anomaly.UNSEEN] == 1


def test_of_a_beginning_what_is_behind_its_end_is_not_lost() -> None:
    logs = course([("write", 9)]).logs()
    copy = logs.copy[0]

    def begun(copy: list[LoggedRecord]) -> Mapping[Anomaly, int]:
        findings = check_beginning(replace(logs, copy={0: copy}), "read_uncommitted")
        assert findings.records == 0
        return {anomaly: count for anomaly, count in findings.counts.items() if count}

    assert begun([]) == begun([*copy[:4]]) == begun([*copy]) == {}
    assert begun([*copy[:4], copy[3]]) == {Anomaly.DUPLICATE: 1}
    assert begun([*copy[:4], copy[5]]) == {Anomaly.LOST: 1}
    assert begun([*copy[:4], record(4, 77)]) == {Anomaly.PHANTOM: 1}


@pytest.mark.broker
def test_every_planted_cut_is_judged_right_in_real_logs(arena: Arena) -> None:
    proofs = prove_cuts(arena, tuple(PLANTERS))
    assert len(proofs) == len(PLANTS)
    assert [(proof.name, proof.findings.examples) for proof in proofs if not proof.caught] == []
    assert all(proof.findings.records == 30 for proof in proofs)
    assert proofs[0].findings.taken_back == 5
