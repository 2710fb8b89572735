"""Records that are gone before a query has read them (`failOnDataLoss`)."""

from __future__ import annotations

import logging

from sparkmirror.errors import RecordsGone
from sparkmirror.events import Event
from sparkmirror.source.read_options import ReadOptions

log = logging.getLogger(__name__)


def lose(options: ReadOptions, what: str) -> None:
    """Raise `RecordsGone`, or log the loss if the reader shall go on."""
    if options.fail_on_data_loss:
        raise RecordsGone(f"{what}; to go on without these records write failOnDataLoss = false")
    log.warning("records are gone: %s", what, extra=Event.RECORDS_GONE.extra)


def lose_offsets(options: ReadOptions, topic: str, partition: int, first: int, end: int) -> None:
    """Lose the offsets [first, end), which retention deleted."""
    lose(options, f"{topic}-{partition}: offsets {first} to {end - 1} are gone by retention")
