"""Work that a partition has for its pump, as one frozen value.

A `PartitionCopy` does no I/O. After each event the pump asks for the partition's `Ready` and begins all the work in it;
the outcomes are further events.
"""

from __future__ import annotations

from typing import NamedTuple

from sparkmirror.exact.durable.claims import Claim
from sparkmirror.kafka.wire.fetch_session import FetchPosition
from sparkmirror.pump.batch import PendingClaim
from sparkmirror.pump.limits import Lane
from sparkmirror.pump.refused import Refused


class Fetch(NamedTuple):
    """Fetch a partition from now on."""

    lane: Lane | None
    """Lane to fetch in; None: the present lane, if any."""
    topic_id: bytes
    position: FetchPosition | None
    """Position to fetch from; None: hold back.

    Enough is here, but soon there will be a position.
    """


HOLD_BACK = Fetch(None, b"", None)


class Question(NamedTuple):
    """Question about the topic's configuration, to be asked in the background.

    The target's topic is asked, and after a refusal the source's, too.
    """

    names: tuple[str, ...]
    """Names of the settings to read."""
    refused: Refused | None
    """Refusal that the answer explains.

    None: the question is whether the target stamps records.
    """


class Ready(NamedTuple):
    """Next steps that one partition can take.

    `confirm` and `question` are handed out once. The rest stands until an event ends it.
    """

    read: bool
    """True if the position should be read now; `PartitionCopy.ask` ends it."""
    look_again_at: float | None
    """Time at which the partition wants another look; None: an event will come."""
    claims: tuple[PendingClaim, ...]
    """Claims to make durable, in this order; `PartitionCopy.claiming` ends it."""
    confirm: tuple[Claim, ...]
    """Claims with all batches acknowledged, to be written again behind the copy."""
    question: Question | None
    send_to: int | None
    """Target broker to send a batch to now; None: no batch may be sent."""
    fetch: Fetch | None
    """Fetching from now on; None: stop fetching the partition."""
    over: bool
    """True if a partition with an end (`until`) is done or parked."""
