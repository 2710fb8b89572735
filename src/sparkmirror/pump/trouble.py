"""Troubles that keep a partition from being copied now."""

from __future__ import annotations

from typing import NamedTuple

from sparkmirror.exact.durable.losses import LossKind
from sparkmirror.exact.position.cause import Cause
from sparkmirror.exact.position.route import Refusal


class Trouble(NamedTuple):
    """Trouble that keeps a partition from being copied now."""

    reason: str = ""
    """Reason for people; empty: no trouble."""
    cause: Cause = Cause.POSITION
    loss: LossKind | None = None
    """Loss that halts the PARKED partition, if any."""
    explained: bool = False
    """True if the missing rights were asked for, to name them."""


NO_TROUBLE = Trouble()

UNREPLICATED = Refusal(
    "the target leader's log has records that its replicas have not confirmed yet (R10)",
    transient=True,
    cause=Cause.NOT_ENOUGH_REPLICAS,
)
"""Refusal of a position above the high watermark."""
