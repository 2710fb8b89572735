"""Halt a query whose rows differ from what an earlier attempt appended."""

from __future__ import annotations

from collections.abc import Container, Sequence, Set

from sparkmirror.errors import RowsChanged, RowsInDoubt
from sparkmirror.exact.durable.losses import Loss
from sparkmirror.exact.position.cause import Cause, cause_of_loss
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.queries.gone_records import GoneRecords
from sparkmirror.queries.source_ranges import Halt


def halt_for_changed_rows(
    error: RowsChanged, lost: Sequence[Loss], gone: Sequence[GoneRecords], copies: Set[str], written: Set[str]
) -> Halt | None:
    """Return why the query halts, with the remedy; None if its own rows have changed.

    The source took back the records (`lost` has the losses), or records of the source are `gone` and the rows don't
    tell their records, or nothing tells which rows the earlier attempt appended. The query writes to the topics
    `copies` and `written`.
    """
    if lost:
        words = "; ".join(loss.words for loss in lost)
        cause, target = cause_of_loss(lost[0].kind), lost[0].target_topic
    elif (expired := doubtful(error.place, gone, copies)) is not None:
        cause, words, target = Cause.EXPIRED, f"{error}; {expired.in_doubt}", expired.target[0]
    elif isinstance(error, RowsInDoubt) and error.place is not None:
        cause, words, target = Cause.TAKEOVER, str(error), error.place[0]
    else:
        return None
    remedy = f"{target} is deleted, which is"
    if not written <= copies:
        names = ", ".join(sorted(written | copies))
        remedy = f"the flow is stopped, {names} are deleted, and it is started again: all of them are"
    return Halt(
        cause,
        f"{words}; an earlier attempt had begun to write the present micro-batch: nothing more is copied until "
        f"{remedy} copied again then",
    )


def blamed(refused: TopicPartition | None, disowned: Sequence[Loss], copies: Container[str]) -> list[Loss]:
    """Return the losses behind a target partition's refused rows, as `doubtful`."""
    if refused is None or refused[0] not in copies:
        return list(disowned)
    return [loss for loss in disowned if (loss.target_topic, loss.partition) == refused]


def doubtful(refused: TopicPartition | None, gone: Sequence[GoneRecords], copies: Container[str]) -> GoneRecords | None:
    """Return the gone records for which rows of a target partition are refused.

    A partition of a copy has its own; rows of any records may be in another topic.
    """
    if refused is not None and refused[0] not in copies:
        return gone[0] if gone else None
    return next((each for each in gone if each.target == refused), None)
