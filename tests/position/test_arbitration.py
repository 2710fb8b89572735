"""Which claims happened: single cases, and pumps that do anything in any order, whose logs are altered afterwards."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from tests.position.claim_cases import (
    ONE,
    OTHER,
    a_target,
    assert_right,
    batches,
    claim,
    dense,
    incarnations,
    known,
    start,
)
from tests.position.steps import steps_of
from tests.support.claims_model import Pump, Source, Target

from sparkmirror.exact.durable.claims import Claim
from sparkmirror.exact.position.arbitration import Ruling, arbitrate
from sparkmirror.exact.position.decision import Position
from sparkmirror.exact.position.judged_claims import ONE_PUMP
from sparkmirror.exact.position.matching import Match, MatchedLog, TargetLog, matches
from sparkmirror.exact.position.questioned_claims import questioned, sort_claims
from sparkmirror.kafka.wire.splice import Run

# --- a log that nobody altered ------------------------------------------------------------------------


def test_the_claim_whose_batch_is_there_is_true_and_its_rival_false() -> None:
    true, false = claim(ONE, 0, [0, 1, 5]), claim(OTHER, 0, [0, 2, 5])
    ruling = assert_right(a_target([true, false], [0, 1, 5]))
    assert incarnations(ruling.confirmed) == [ONE]
    assert ruling.confirmed[0] == replace(true, confirmed=True)
    assert ruling.false == (false,)


def test_a_claim_that_the_log_has_not_come_to_is_left_alone() -> None:
    true, coming = claim(ONE, 0, dense), claim(ONE + 1, 10, range(12, 15))
    ruling = assert_right(a_target([true, coming], dense))
    assert incarnations(ruling.true) == [ONE]
    assert ruling.false == ()


def test_a_claim_whose_batch_was_not_sent_tells_nothing_of_the_last_copied_record() -> None:
    """Not even its topic: what was passed over of a topic doesn't count for the topic created again after it."""
    target = a_target([claim(ONE, 0, dense)], dense)
    target.write(replace(claim(ONE + 1, 10, range(30, 35)), source_topic_id=b"n" * 16))
    for deleted in (0, 10):
        target.delete_records(deleted)
        position = target.position()
        assert isinstance(position, Position)
        assert (position.source_topic_id, position.upstream, position.downstream) == (b"s" * 16, 10, 10)


def test_what_is_confirmed_needs_no_evidence() -> None:
    settled, rival = claim(ONE, 0, [0, 1, 5], confirmed=True), claim(OTHER, 0, [0, 2, 5])
    assert questioned([settled, rival]) == [rival]
    target = a_target([settled, rival], [0, 1, 5])
    target.delete_records(3)
    assert arbitrate([settled, rival], {}, TargetLog(3, 3, 3)).undecided
    assert assert_right(target).true == (settled,)


def test_the_shorter_of_two_claims_that_begin_alike_is_false_where_the_log_shows_it() -> None:
    one, other = claim(ONE, 0, dense, [12, 13]), claim(OTHER, 0, dense, [11, 13])
    ruling = assert_right(a_target([one, other], dense, [11, 13]))
    assert incarnations(ruling.confirmed) == [OTHER]
    assert incarnations(ruling.false) == [ONE]


def test_a_claim_is_not_taken_back_while_the_rest_of_it_may_come() -> None:
    """Its pump is alive: it has appended what both announce, and the next batch is on its way."""
    one, other = claim(ONE, 0, dense, [12, 13]), claim(OTHER, 0, dense, [11, 13])
    target = a_target([one, other], dense)
    for _ in range(2):
        ruling = assert_right(target)
        assert (ruling.confirmed, ruling.false) == ((), ())
    assert target.append(*batches(10, [11, 13]))
    assert_right(target)


def test_a_claim_is_true_where_its_batch_is_though_a_rival_took_the_place_of_its_first() -> None:
    """Both batches have as many records: the second, sent behind the first, was in order."""
    first, mixed = claim(ONE, 0, dense), claim(OTHER, 10, [12, 13, 14], [16, 17, 20])
    target = a_target([first, mixed], dense, [10, 11, 12], [16, 17, 20])
    ruling = assert_right(target)
    assert mixed in ruling.false
    target.retract(*ruling.false)
    target.write(*ruling.confirmed)
    assert assert_right(target).confirmed == ()
    assert questioned(target.claims.values()) == []


def test_a_claim_counts_until_the_next_true_one() -> None:
    claims = [claim(ONE, 0, [0, 1, 5]), claim(OTHER, 7, [20, 21]), claim(OTHER + 1, 5, [9, 10])]
    assert_right(a_target(claims, [0, 1, 5], [6, 7, 8, 9], [20, 21], [22]))


def test_a_claim_that_began_inside_anothers_batch_is_false() -> None:
    ruling = assert_right(a_target([claim(ONE, 0, dense), claim(OTHER, 5, [7, 8])], dense))
    assert incarnations(ruling.false) == [OTHER]


def test_a_start_counts_until_something_is_there() -> None:
    """`latest`, looked up by two at once: the earlier one loses nothing."""
    starts = [start(ONE, 50), start(OTHER, 40)]
    assert incarnations(Target().ruling().true) == []
    assert incarnations(a_target(starts).ruling().true) == [OTHER]
    assert_right(a_target([*starts, claim(ONE + 1, 0, [50, 52])], [50, 52]))


def test_a_claim_that_the_target_lost_is_overruled_by_what_was_copied_in_its_place() -> None:
    """An unclean election at the target: what had been confirmed is gone, and the source was compacted since."""
    old = claim(ONE, 10, [12, 13], confirmed=True)
    new = claim(OTHER, 10, [13, 15])
    target = a_target([claim(ONE, 0, dense), old, new], dense, [13, 15])
    ruling = assert_right(target)
    target.retract(*ruling.false)
    target.write(*ruling.confirmed)
    assert_right(target)


def healed(target: Target) -> Ruling:
    """What was confirmed is written again as the log decides, and told right afterwards, too."""
    ruling = assert_right(target)
    target.retract(*ruling.false)
    target.write(*ruling.confirmed)
    assert questioned(target.claims.values()) == []
    return assert_right(target)


def test_what_the_target_lost_is_counted_and_the_next_claim_says_so() -> None:
    whole = claim(ONE, 0, dense, [12, 13], [15, 16, 19], confirmed=True)
    target = a_target([whole], dense)
    found = target.position()
    assert isinstance(found, Position)
    assert (found.sequence, found.upstream, found.lost, found.claim_due) == (10, 10, 5, True)
    target = a_target([claim(ONE, 0, dense, [12, 13], confirmed=True)], dense, [12, 13])
    found = target.position()
    assert isinstance(found, Position)
    assert found.lost == 0


def test_what_was_confirmed_behind_a_healing_claim_is_judged_again() -> None:
    """The source was compacted since: fewer records, so that the old claims lie inside the new batches."""
    whole, behind = claim(ONE, 0, dense, [12, 13], confirmed=True), claim(ONE + 1, 12, [16, 19, 20], confirmed=True)
    foreign = replace(whole.between(13, 14, 13), runs=(Run(19, 0),))
    healing = replace(claim(OTHER, 10, [13, 19, 20]), heals=True)
    target = a_target([whole, behind, foreign, healing], dense)
    assert known(target.ruling(), 10) == list(dense)
    assert not target.ruling().false
    target.append(*batches(10, [13, 19, 20]))
    target.append(*batches(13, [21, 22]))
    ruling = healed(target)
    assert set(target.claims) == {(0, ONE), (10, OTHER)}
    assert ruling.true[0].announced == 10


def test_a_claim_in_doubt_that_announces_no_batch_is_not_sought_in_the_log() -> None:
    whole, healing = claim(ONE, 0, dense, [12, 13], confirmed=True), replace(claim(OTHER, 10, [13, 19]), heals=True)
    claims = [whole, replace(whole.between(13, 14, 13), runs=(Run(19, 0),)), healing]
    target = a_target(claims, dense, [13, 19])
    seen = {each.key: target.seen(each) for each in questioned(claims)}
    by_kind = sort_claims(claims, seen, TargetLog(0, 12, 11))
    assert len(by_kind.doubted) == 2
    assert [judged.claim.batches for judged in by_kind.asked] == [whole.batches[1:], healing.batches]


def test_what_lies_in_the_log_after_all_stays_confirmed() -> None:
    """The same records were copied again; or nothing was lost, and the one who said so was mistaken."""
    claims = [claim(ONE, 0, dense, confirmed=True), claim(ONE + 1, 10, [12, 13], [15], confirmed=True)]
    healing = replace(claim(OTHER, 10, [12, 13]), heals=True)
    target = a_target([*claims, healing], dense, [12, 13], [15])
    healed(target)
    assert any(one.confirmed and one.upstream_of(12) == 15 for one in target.claims.values() if one.sequence <= 12)


def test_what_was_copied_behind_a_healing_claim_is_confirmed_though_nobody_has_judged_that_yet() -> None:
    old, later = claim(ONE, 10, [10, 11, 14], confirmed=True), claim(OTHER + 1, 12, [16, 17], confirmed=True)
    healing = replace(claim(OTHER, 10, [12, 14]), heals=True)
    target = a_target([claim(ONE - 1, 0, dense, confirmed=True), old, healing, later], dense, [12, 14], [16, 17])
    healed(target)
    assert (10, ONE) not in target.claims


def test_parts_of_one_claim_that_the_log_had_split_are_judged_each_by_itself() -> None:
    """A rival had taken the place of its third batch; what is left of it bears one incarnation."""
    whole = claim(ONE, 0, range(5), range(5, 10), [12, 13], [15, 16], [18], confirmed=True)
    last, rival = whole.part(3, 5, 12, confirmed=True), claim(OTHER, 10, [11, 12], confirmed=True)
    first = whole.part(0, 2, 0, confirmed=True)
    healing = replace(claim(OTHER + 9, 5, range(5, 10)), heals=True)
    target = a_target([last, rival, first, healing], range(5), range(5, 10), [11, 12], [15, 16], [18])
    healed(target)
    assert {key for key, one in target.claims.items() if one.confirmed} >= {(0, ONE), (10, OTHER), (12, ONE)}


# --- claim due ----------------------------------------------------------------------------------------


def due(target: Target) -> bool:
    found = target.position()
    assert isinstance(found, Position), found
    return found.claim_due


def test_what_comes_is_claimed_where_more_was_announced_than_was_appended() -> None:
    """Unclaimed, a batch of as many records could be taken for the one that was announced."""
    announced = claim(ONE, 0, dense, [12, 13])
    assert due(a_target([announced], dense))
    assert not due(a_target([announced], dense, [12, 13]))
    assert not due(a_target([announced], dense, [10, 11, 12]))
    assert due(a_target([]))
    assert due(a_target([start(ONE, 40)]))


# --- above the high watermark -------------------------------------------------------------------------


def test_what_is_above_the_high_watermark_is_waited_for() -> None:
    one = claim(ONE, 0, dense, [12, 13])
    target = a_target([one], dense, [12, 13])
    seen = MatchedLog(tuple(target.stored[:1]), 10)
    ruling = arbitrate([one], {one.key: seen}, TargetLog(0, 12, 12))
    assert ruling.wait
    assert ruling.undecided
    assert (ruling.confirmed, ruling.false) == ((), ())
    assert not arbitrate([one], {one.key: seen}, TargetLog(0, 10, 10)).undecided
    assert arbitrate([one], {}, TargetLog(0, 12, 12)).wait


def test_a_claim_is_not_taken_back_for_what_is_above_the_high_watermark() -> None:
    """That may still vanish, and the claim's own batch come in its place."""
    ruling = arbitrate([claim(ONE, 0, dense)], {(0, ONE): MatchedLog((), 0)}, TargetLog(0, 5, 5))
    assert ruling.wait
    assert ruling.false == ()


# --- logs that were emptied ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("log_start", "there"),
    [
        (0, [Match.OPEN, Match.OPEN]),
        (1, [Match.POSSIBLE, Match.OPEN]),
        (3, [Match.POSSIBLE, Match.OPEN]),
        (4, [Match.POSSIBLE, Match.POSSIBLE]),
    ],
)
def test_an_emptied_log_has_held_whole_batches_only(log_start: int, there: list[Match]) -> None:
    """Where it ends inside one, somebody else's records are in the count."""
    found = matches(claim(ONE, 0, [10], [11, 12, 13]), MatchedLog((), log_start), TargetLog(log_start, log_start, None))
    assert [match for match, _ in found] == there


# --- batches as brokers alter them --------------------------------------------------------------------


def match_of(alter: Callable[[Target], None], *, others: Iterable[int] = ()) -> Match:
    """Of a claim for the second of three batches, which is there; with `others`: other records are there."""
    announced = [10, 12, 13]
    target = a_target([], dense, list(others) or announced, [20, 21])
    alter(target)
    one = claim(ONE, 10, announced)
    ((found, _),) = matches(one, target.seen(one), TargetLog(target.start, 15, 15))
    return found


def test_a_batch_as_it_was_sent_is_sure() -> None:
    assert match_of(lambda target: None) is Match.SURE
    assert match_of(lambda target: None, others=[10, 11, 13]) is Match.NO


def test_a_stamped_batch_is_as_sure() -> None:
    """The CRC covers what was stamped; without that it is the one that was announced."""
    assert match_of(lambda target: target.stamp(1)) is Match.SURE
    assert match_of(lambda target: target.stamp(1), others=[10, 11, 13]) is Match.NO


def test_a_batch_compressed_again_is_known_by_its_timestamps() -> None:
    assert match_of(lambda target: target.compress(1)) is Match.LIKELY
    assert match_of(lambda target: target.compress(1), others=[11, 12, 14]) is Match.NO
    assert match_of(lambda target: target.compress(1), others=[10, 12, 14]) is Match.POSSIBLE


@pytest.mark.parametrize(
    "alter",
    [
        lambda target: target.compress(1, stamped=True),
        lambda target: target.clean(1, 2),
        lambda target: target.clean(1, 0),
        lambda target: target.clean(1, 3),
        lambda target: target.vanish(1),
        lambda target: target.delete_records(13),
    ],
    ids=["compressed and stamped", "cleaned", "emptied", "tombstones", "vanished", "deleted"],
)
def test_what_can_not_be_recognized_is_possible(alter: Callable[[Target], None]) -> None:
    assert match_of(alter) is Match.POSSIBLE
    assert match_of(alter, others=[10, 11, 13]) is Match.POSSIBLE


def test_of_rivals_for_a_batch_that_is_gone_none_is_believed() -> None:
    claims = [claim(ONE, 0, dense, confirmed=True), claim(OTHER, 10, [10, 12]), claim(OTHER + ONE_PUMP, 10, [11, 12])]
    target = a_target(claims, dense, [10, 12], [13])
    target.delete_records(13)
    assert target.ruling().undecided.startswith("rival pumps may have copied different records as sequence 10")


def test_a_lone_claim_for_a_batch_that_is_gone_may_be_of_a_pump_that_lost() -> None:
    """The one that won continued from its claim before, without a gap: it claimed nothing."""
    claims = [claim(ONE, 0, dense, confirmed=True), claim(OTHER, 10, [12, 13])]
    target = a_target(claims, dense, [10, 11], [12])
    target.vanish(1)
    assert target.ruling().undecided
    target.delete_records(13)
    assert target.ruling().undecided


@pytest.mark.parametrize(
    "rival", [claim(OTHER, 10, [11, 13]), claim(OTHER, 5, [5, 6], [8, 9, 10, 11, 12]), claim(OTHER, 8, range(20, 24))]
)
def test_what_was_confirmed_contradicts_a_rivals_batch_that_is_gone(rival: Claim) -> None:
    """It had other records there, or a batch that began in the midst of the rival's."""
    claims = [claim(ONE, 0, dense, confirmed=True), claim(ONE + 1, 10, [12, 13], confirmed=True), rival]
    target = a_target(claims, dense, [12, 13], [14])
    target.delete_records(13)
    assert assert_right(target).false == (rival,)


def test_a_pump_knows_what_it_announced_itself() -> None:
    claims = [claim(ONE, 0, dense, confirmed=True), claim(ONE + 1, 10, [12, 13])]
    target = a_target(claims, dense, [12, 13], [14])
    target.delete_records(13)
    assert_right(target)


def test_a_pump_does_not_know_what_another_did_behind_it() -> None:
    """The second batch may be of either, and whoever sent it may have gone on without a gap and without a claim."""
    claims = [claim(ONE, 0, dense, confirmed=True), claim(OTHER, 10, [10, 11]), claim(ONE + 1, 12, [13, 14])]
    target = a_target(claims, dense, [10, 11], [12, 13])
    target.vanish(1)
    target.clean(1, 1)
    assert target.ruling().undecided


def test_that_two_may_have_sent_a_batch_is_remembered() -> None:
    twins = [claim(ONE, 0, [0, 1, 5]), claim(OTHER, 0, [0, 1, 5])]
    target = a_target(twins, [0, 1, 5], [6, 7], [8])
    ruling = assert_right(target)
    (kept,) = ruling.confirmed
    assert kept.shared
    assert len(ruling.false) == 1
    assert not assert_right(a_target(twins[:1], [0, 1, 5])).confirmed[0].shared
    target.retract(*ruling.false)
    target.write(kept, claim(kept.incarnation + 1, 3, [7, 9]))
    target.vanish(1)
    assert target.ruling().undecided


def test_what_continues_as_before_is_believed_whoever_wrote_it() -> None:
    claims = [claim(ONE, 0, dense, confirmed=True), claim(OTHER, 10, [10, 11])]
    target = a_target(claims, dense, [10, 11], [12])
    target.delete_records(13)
    assert_right(target)


def test_the_rest_of_a_claim_is_believed_where_it_began() -> None:
    """Who comes after it and sends something else must claim that."""
    one = claim(ONE, 0, dense, [12, 13])
    target = a_target([one], dense, [12, 13], [14])
    target.clean(1, 1)
    assert_right(target)
    other = claim(OTHER, 10, [11, 13])
    target = a_target([one, other], dense, [11, 13], [14])
    target.clean(1, 1)
    assert target.ruling().undecided


# --- anything in any order ----------------------------------------------------------------------------

PUMPS = 3
SIZE = 60
ACTS = {
    "look": 4,
    "fetch": 8,
    "claim": 12,
    "send": 14,
    "arrive": 14,
    "confirm": 2,
    "step": 6,
    "die": 1,
    "compact": 2,
    "lose": 1,
}
"""How often each comes."""


def play(source: Source, target: Target, chance: random.Random) -> None:
    """Let pumps do anything; one that died has an heir, who starts uncleanly."""
    numbers = itertools.count(1)

    def another() -> Pump:
        return Pump(source, target, next(numbers) << 40, unclean=True)

    pumps = [another() for _ in range(PUMPS)]
    for act in chance.choices(list(ACTS), list(ACTS.values()), k=chance.randint(20, 120)):
        nth = chance.randrange(PUMPS)
        pump = pumps[nth]
        sizes = [chance.randint(1, 4) for _ in range(chance.randint(1, 3))]
        if act == "compact":
            source.compact(chance.randint(0, SIZE), chance.randint(2, 5))
        elif act == "lose":
            target.lose(chance.randint(1, 12))
            for one in pumps:
                one.disconnect()
        elif act == "die":
            pump.dead = True
        elif act == "fetch":
            pump.fetch(sizes)
        elif act == "step":
            pump.step(sizes)
        else:
            getattr(pump, act)()
        assert not pump.stopped, pump.stopped
        if pump.dead and pump.on_its_way is None:
            pumps[nth] = another()


def alter(target: Target, chance: random.Random) -> None:
    """What brokers do to a log in time."""
    for _ in range(chance.randint(1, 8)):
        nth = chance.randrange(max(len(target.stored), 1))
        what = chance.choice(["stamp", "compress", "clean", "vanish", "delete_records"] if target.stored else ["-"])
        if what == "stamp":
            target.stamp(nth)
        elif what == "compress":
            target.compress(nth, stamped=chance.random() < 0.5)
        elif what == "clean":
            target.clean(nth, chance.randint(0, 4))
        elif what == "vanish":
            target.vanish(nth)
        elif what == "delete_records":
            target.delete_records(chance.randint(0, SIZE))


@settings(max_examples=1000, deadline=None)
@given(st.integers(0, 2**32))
def test_whatever_pumps_do_the_claims_tell_the_truth_and_of_altered_logs_the_truth_or_nothing(seed: int) -> None:
    """By seeds: what comes of a seed is far more various than what a strategy draws, though it does not shrink."""
    chance = random.Random(seed)
    source, target = Source(SIZE), Target()
    play(source, target, chance)
    ruling = assert_right(target)
    event(f"{min(len(ruling.true), 5)} true, {min(len(ruling.false), 2)} false")
    assert target.log == sorted(set(target.log))
    assert {one for one in source.offsets if target.log and one <= target.log[-1]} <= set(target.log)
    alter(target, chance)
    ruling = target.ruling()
    event("undecided" if ruling.undecided else "decided")
    if not ruling.undecided:
        assert_right(target)


# --- how long it takes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("deleted", [False, True])
@pytest.mark.parametrize("confirmed", [False, True])
def test_a_claim_on_thousands_of_batches_takes_as_many_steps_and_not_their_square(
    deleted: bool, confirmed: bool
) -> None:
    """A backlog of small transactions: a fetch answer's batches are one claim, a marker between any two of them."""

    def steps(count: int) -> int:
        offsets = [range(3 * index, 3 * index + 2) for index in range(count)]
        rivals = [claim(ONE, 0, *offsets, confirmed=confirmed), claim(OTHER, 0, *offsets)]
        target = a_target(rivals, *offsets)
        seen = {one.key: target.seen(one) for one in rivals}
        log = TargetLog(2 * count if deleted else 0, 2 * count, 2 * count)
        return steps_of(lambda: arbitrate(rivals, {} if deleted else seen, log))

    assert steps(800) < 3 * steps(400)


def test_what_was_confirmed_within_a_large_claim_takes_no_square_of_steps() -> None:
    def steps(count: int) -> int:
        offsets = [range(3 * index, 3 * index + 2) for index in range(count)]
        large = claim(ONE, 0, *offsets, confirmed=True)
        small = [claim(ONE + index, 2 * index, offsets[index], confirmed=True) for index in range(1, count)]
        return steps_of(lambda: arbitrate([large, *small], {}, TargetLog(0, 2 * count, 2 * count)))

    assert steps(400) < 3 * steps(200)
