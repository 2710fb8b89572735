"""A flow's identity at its target (invariant 7): one producer id, for ever.

Proposals are in the segments topic's partition 0; the one with the lowest offset counts. Release 0.1 had a setting, the
marker fence, by which a takeover made a new identity that follows the former identity. Such fences' records are still
read: the newest agreed identity counts, and the former identities' batches are the flow's, too.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

IDENTITY_VERSION = 1
_PLAIN = struct.Struct(">hqh")
_LINK = struct.Struct(">hqhqhqH")
_NOBODY = -1


class Producer(NamedTuple):
    """Producer id and epoch, which mark who wrote a batch."""

    producer_id: int
    producer_epoch: int


class _Written(Protocol):
    @property
    def producer_id(self) -> int: ...
    @property
    def producer_epoch(self) -> int: ...


WrittenT = TypeVar("WrittenT", bound=_Written)


@dataclass(frozen=True, slots=True)
class Identity:
    """A flow's producer at its target; void for another cluster."""

    cluster_id: str
    producer_id: int
    producer_epoch: int
    former: tuple[Producer, ...] = ()
    """The flow's earlier producers, the newest last.

    A proposal names only the newest earlier producer.
    """

    @property
    def producer(self) -> Producer:
        """Producer id and epoch, as brokers know the flow."""
        return Producer(self.producer_id, self.producer_epoch)

    def wrote(self, producer_id: int, producer_epoch: int) -> bool:
        """Tell whether a producer is the flow's, present or former."""
        producer = producer_id, producer_epoch
        return producer == (self.producer_id, self.producer_epoch) or producer in self.former

    def fenced_with(self, producer_id: int) -> bool:
        """Tell whether a transaction marker with this producer id is a marker fence.

        Only release 0.1 wrote marker fences.
        """
        return any(producer.producer_id == producer_id for producer in self.former)

    def own(self, claims: Iterable[WrittenT]) -> list[WrittenT]:
        """Return the claims that the flow's present and former producers wrote."""
        return [claim for claim in claims if self.wrote(claim.producer_id, claim.producer_epoch)]


def succession(proposals: Sequence[Identity], cluster_id: str) -> list[Identity]:
    """Return the agreed identities at this cluster, in order; the last counts.

    Each identity knows all former producers. `proposals` are sorted by offset.
    """
    first: dict[Producer | None, Identity] = {}
    for proposal in proposals:
        if proposal.cluster_id == cluster_id:
            first.setdefault(proposal.former[-1] if proposal.former else None, proposal)
    agreed: list[Identity] = []
    following = first.get(None)
    while following is not None:
        before = agreed[-1] if agreed else None
        former = (*before.former, before.producer) if before else ()
        agreed.append(dataclasses.replace(following, former=former))
        following = first.get(following.producer)
    return agreed


def identity_value(identity: Identity) -> bytes:
    """Return a proposal's record value, without a predecessor."""
    return _PLAIN.pack(IDENTITY_VERSION, *identity.producer) + identity.cluster_id.encode()


def read_plain(value: bytes) -> Identity:
    """Read a proposal's value, without a predecessor.

    Raises `struct.error` and `UnicodeDecodeError`.
    """
    _, producer_id, epoch = _PLAIN.unpack_from(value)
    return Identity(value[_PLAIN.size :].decode(), producer_id, epoch)


def read_link(value: bytes) -> Identity:
    """Read a release 0.1 proposal that could be fenced, or has a predecessor.

    The proposal's time and transactional id served its fencing; both are dropped. Raises as `read_plain` does.
    """
    _, producer_id, epoch, before_id, before_epoch, _, length = _LINK.unpack_from(value)
    cluster = value[_LINK.size : _LINK.size + length].decode()
    former = () if before_id == _NOBODY else (Producer(before_id, before_epoch),)
    value[_LINK.size + length :].decode()  # the transactional id: raises for a damaged record
    return Identity(cluster, producer_id, epoch, former)
