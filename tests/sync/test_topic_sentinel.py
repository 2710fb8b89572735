"""What the sentinel writes of target topics that were created again, with clusters and ledger played."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sparkmirror.exact.durable.claims import Claim, start_claim
from sparkmirror.exact.durable.identity import Identity
from sparkmirror.exact.durable.known_topics import KnownTopic
from sparkmirror.exact.durable.loss_kinds import LossKind, LossOutcome
from sparkmirror.exact.durable.losses import Loss
from sparkmirror.kafka.cluster.topic_descriptions import PartitionDescription, TopicDescription
from sparkmirror.kafka.wire.splice import Run
from sparkmirror.mirror.sync.topic_sentinel import TopicSentinel
from sparkmirror.mirror.sync.topics import MirroredTopic, TopicSync

SOURCE, OLD, NEW = b"s" * 16, b"o" * 16, b"n" * 16
IDENTITY = Identity("cluster", 4000, 0)


class ClaimsOfOld:
    """The claims on the old topic, and those that are written now."""

    homes = 1

    def __init__(self, claims: Sequence[Claim]) -> None:
        self._claims = claims
        self.written: list[Claim] = []

    def history(self, _: int) -> Sequence[Claim]:
        return self._claims

    def refresh(self, _: object) -> None:
        """Nothing is new."""

    def claims(self, *_: object) -> Sequence[Claim]:
        return ()

    def claim(self, claims: Sequence[Claim]) -> None:
        self.written += claims


def noted(source_start: int | None, claims: ClaimsOfOld, *, from_start: bool = True) -> Loss:
    """The entry, if the old target topic had these claims and the source's log starts there now; None: no leader."""
    entries: list[Loss] = []

    def starts(asked: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
        return {} if source_start is None else dict.fromkeys(asked, source_start)

    known = KnownTopic(source_topic="t", target_topic="A.t", target_topic_id=OLD.hex())
    sentinel = TopicSentinel(
        cast("Any", SimpleNamespace(start_offsets=starts)),
        cast("Any", SimpleNamespace()),
        cast("Any", claims),
        cast("Any", SimpleNamespace(record=entries.append)),
        cast("Any", SimpleNamespace(known={"A.t": known}, learn=list)),
        lambda _: True,
        from_start=from_start,
    )
    only = (PartitionDescription(partition=0, leader=1, leader_epoch=0, replicas=(1,), in_sync=(1,)),)
    topic = MirroredTopic(TopicDescription("t", SOURCE, only), TopicDescription("A.t", NEW, only))
    found = TopicSync(mirrored=(topic,), created=(), grown=(), refused={}, at_source=frozenset({"t"}))
    assert sentinel.look(found, IDENTITY) == ()
    (entry,) = entries
    assert entry.kind is LossKind.TARGET_RECREATED
    return entry


def start(upstream: int, downstream: int, sequence: int = 0, *, altered: bool = False) -> Claim:
    return start_claim(
        IDENTITY, (OLD, 0), SOURCE, sequence=sequence, upstream=upstream, downstream=downstream, altered=altered
    )


def copied(sequence: int, upstream: int, downstream: int, incarnation: int = 1) -> Claim:
    return Claim(
        target_topic_id=OLD,
        partition=0,
        sequence=sequence,
        incarnation=incarnation,
        producer_id=4000,
        producer_epoch=0,
        source_topic_id=SOURCE,
        source_leader_epoch=0,
        downstream=downstream,
        runs=(Run(upstream, 10),),
        confirmed=True,
    )


@pytest.mark.parametrize(
    ("claims", "source_start", "offsets"),
    [
        ((start(1_000, 1_000), copied(0, 1_000, 1_000)), 0, None),
        ((start(1_000, 1_000), copied(0, 1_000, 1_000)), 500, (0, 500)),
        ((start(1_000, 1_000), copied(0, 1_000, 1_000)), 1_200, (0, 1_200)),
        ((start(1_000, 0), copied(0, 1_000, 0)), 500, None),  # auto.offset.reset=latest
        ((start(1_000, 0), copied(0, 1_000, 0)), 1_200, (1_000, 1_200)),
        ((copied(0, 0, 0),), 500, (0, 500)),
        ((copied(90, 1_000, 90),), 500, None),  # the target had deleted what came before
        ((start(1_000, 90, 90, altered=True), copied(90, 1_000, 90)), 500, None),
    ],
)
def test_what_the_source_lacks_of_the_old_topics_records(
    claims: tuple[Claim, ...], source_start: int, offsets: tuple[int, int] | None
) -> None:
    """Before the start of a takeover another mirror had copied records."""
    entry = noted(source_start, ClaimsOfOld(claims))
    if offsets is None:
        assert (entry.outcome, entry.offsets) == (LossOutcome.HEALED, 0)
    else:
        assert (entry.outcome, entry.first, entry.end) == (LossOutcome.LOST, *offsets)


@pytest.mark.parametrize(("source_start", "offsets", "begins"), [(500, None, 1_000), (1_200, (1_000, 1_200), 1_200)])
def test_a_copy_that_began_at_the_end_in_a_log_that_was_emptied(
    source_start: int, offsets: tuple[int, int] | None, begins: int
) -> None:
    """The pump's own start: no other mirror had copied what came before."""
    first = start(1_000, 90)
    later = copied(0, 1_000, 90, first.incarnation + 1), copied(10, 1_020, 100, first.incarnation + 2)
    claims = ClaimsOfOld([first, *later])
    entry = noted(source_start, claims, from_start=False)
    assert [claim.upstream for claim in claims.written] == [begins]
    if offsets is None:
        assert (entry.outcome, entry.offsets) == (LossOutcome.HEALED, 0)
    else:
        assert (entry.outcome, entry.first, entry.end) == (LossOutcome.LOST, *offsets)


@pytest.mark.parametrize(
    ("first", "source_start", "begins"),
    [
        (start(1_000, 0), 500, 1_000),
        (start(1_000, 0), 1_200, 1_200),
        (start(1_000, 1_000), 0, 0),  # what another mirror had copied before is gone, too
        (start(1_000, 1_000), 500, 500),
    ],
)
def test_where_a_copy_begins_again_that_would_begin_at_the_end(first: Claim, source_start: int, begins: int) -> None:
    claims = ClaimsOfOld([first])
    noted(source_start, claims, from_start=False)
    assert [(claim.target_topic_id, claim.upstream, claim.downstream) for claim in claims.written] == [(NEW, begins, 0)]


def test_without_a_leader_at_the_source_the_most_that_may_be_lost_is_told_and_all_is_copied_again() -> None:
    claims = ClaimsOfOld([start(1_000, 1_000)])
    entry = noted(None, claims, from_start=False)
    assert (entry.outcome, entry.first, entry.end) == (LossOutcome.LOST, 0, 1_000)
    assert [claim.upstream for claim in claims.written] == [0]
    assert noted(None, ClaimsOfOld([start(1_000, 0)])).outcome is LossOutcome.HEALED
