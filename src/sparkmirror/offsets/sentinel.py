"""The loss sentinel: what a partition's two sides show to be lost, and where the copy goes on (a pure function)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from sparkmirror.config import LossPolicy
from sparkmirror.offsets.foreign import ForeignRecords
from sparkmirror.offsets.losses import Action, Loss, LossKind
from sparkmirror.offsets.position import Position
from sparkmirror.offsets.route import Route


class Found(NamedTuple):
    """Losses, and the upstream offset to go on from; None: nothing was ever copied."""

    losses: tuple[Loss, ...]
    resume_at: int | None


def look_for_losses(
    route: Route,
    position: Position,
    foreign: Sequence[ForeignRecords],
    source_topic_id: bytes,
    source_start: int,
    policy: LossPolicy,
) -> Found:
    """What was lost between what was copied last and what the source still has."""
    losses = [_foreign(route, stretch) for stretch in foreign]
    resume_at = position.upstream
    if position.source_topic_id is not None and position.source_topic_id != source_topic_id:
        losses.append(_recreated(route, position.upstream or 0, policy))
        resume_at = source_start
    elif position.upstream is not None and position.upstream < source_start:
        losses.append(_expired(route, position.upstream, source_start, policy))
        resume_at = source_start
    return Found(tuple(losses), resume_at)


def truncated(route: Route, first: int, end: int, policy: LossPolicy) -> Loss:
    """The source's log was cut at `first`, and everything below `end` was copied."""
    halts = policy.truncated == "halt"
    words = (
        f"the log of source {route.source_topic}-{route.partition} was cut at offset {first} by an unclean leader "
        f"election, after offsets {first} to {end - 1} were copied: the target has records that the source disowns"
    )
    words += (
        "; set sparkmirror.on.truncated=continue to copy what the source has there now, behind them"
        if halts
        else "; what the source has there now is copied behind them"
    )
    return _loss(LossKind.TRUNCATED, route, first, end, "halted" if halts else "continued", words)


def target_truncated(route: Route, first: int, end: int) -> Loss:
    """The target acknowledged everything below `end`, and now its log ends at `first`."""
    words = (
        f"target {route.target_topic}-{route.partition} lost offsets {first} to {end - 1}, which it had acknowledged "
        "(an unclean leader election?): they are copied again from the source"
    )
    return _loss(LossKind.TARGET_TRUNCATED, route, first, end, "healed", words)


def _expired(route: Route, first: int, end: int, policy: LossPolicy) -> Loss:
    halts = policy.expired == "halt"
    words = (
        f"offsets {first} to {end - 1} of source {route.source_topic}-{route.partition} are gone: "
        "they expired before they were copied"
    )
    words += "; set sparkmirror.on.expired=continue to go on behind them" if halts else "; the copy goes on behind them"
    return _loss(LossKind.EXPIRED, route, first, end, "halted" if halts else "continued", words)


def _recreated(route: Route, upstream: int, policy: LossPolicy) -> Loss:
    halts = policy.recreated == "halt"
    words = (
        f"source topic {route.source_topic} was deleted and created again; partition {route.partition} of the old one "
        f"was copied up to offset {upstream}, and what came after that is not known"
    )
    words += (
        "; set sparkmirror.on.recreated=restart to copy the new one behind it"
        if halts
        else "; the new one is copied behind it, from its start"
    )
    return _loss(LossKind.RECREATED, route, upstream, upstream, "halted" if halts else "restarted", words)


def _foreign(route: Route, stretch: ForeignRecords) -> Loss:
    words = (
        f"somebody else wrote offsets {stretch.first} to {stretch.end - 1} of target {route.target_topic}-"
        f"{route.partition}: they are stepped over, and offsets still translate exactly; let nobody else write to it"
    )
    return _loss(LossKind.FOREIGN, route, stretch.first, stretch.end, "continued", words)


def _loss(kind: LossKind, route: Route, first: int, end: int, action: Action, words: str) -> Loss:
    return Loss(
        kind=kind,
        source_topic=route.source_topic,
        target_topic=route.target_topic,
        partition=route.partition,
        first=first,
        end=end,
        action=action,
        words=words,
        at_ms=time.time_ns() // 1_000_000,
    )
