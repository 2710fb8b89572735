"""The identity of a flow at its target (invariant 7): one producer id, for ever.

Proposals lie in partition 0 of the segments topic; the one with the lowest offset counts. Release 0.1 had a setting,
the marker fence, by which a takeover made a new identity that follows the former one. Those records are still read:
the newest identity that all agree on counts, and batches of the former ones are the flow's, too.
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
    """What marks a batch as somebody's."""

    producer_id: int
    producer_epoch: int


class _Written(Protocol):
    @property
    def producer_id(self) -> int: ...
    @property
    def producer_epoch(self) -> int: ...


Claim = TypeVar("Claim", bound=_Written)


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a flow is at its target: void if the cluster is another one."""

    cluster_id: str
    producer_id: int
    producer_epoch: int
    former: tuple[Producer, ...] = ()
    """Producers of the flow before this one, the last one last; a proposal names only that one."""

    @property
    def producer(self) -> Producer:
        """As brokers know it."""
        return Producer(self.producer_id, self.producer_epoch)

    def wrote(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether what bears this is the flow's, of whichever time."""
        producer = producer_id, producer_epoch
        return producer == (self.producer_id, self.producer_epoch) or producer in self.former

    def fenced_with(self, producer_id: int) -> bool:
        """Tell whether a transaction marker with this producer id is a marker fence of release 0.1."""
        return any(one.producer_id == producer_id for one in self.former)

    def own(self, claims: Iterable[Claim]) -> list[Claim]:
        """Those of the claims that are the flow's."""
        return [claim for claim in claims if self.wrote(claim.producer_id, claim.producer_epoch)]


def succession(proposals: Sequence[Identity], cluster_id: str) -> list[Identity]:
    """The identities that all agree on at this cluster, from the first to the one that counts; each knows all before.

    `proposals` in the order of their offsets.
    """
    first: dict[Producer | None, Identity] = {}
    for one in proposals:
        if one.cluster_id == cluster_id:
            first.setdefault(one.former[-1] if one.former else None, one)
    agreed: list[Identity] = []
    following = first.get(None)
    while following is not None:
        before = agreed[-1] if agreed else None
        former = (*before.former, before.producer) if before else ()
        agreed.append(dataclasses.replace(following, former=former))
        following = first.get(following.producer)
    return agreed


def identity_value(identity: Identity) -> bytes:
    """The record value of a proposal that follows nobody."""
    return _PLAIN.pack(IDENTITY_VERSION, *identity.producer) + identity.cluster_id.encode()


def read_plain(value: bytes) -> Identity:
    """Read the value of a proposal that follows nobody; raises struct.error and UnicodeDecodeError."""
    _, producer_id, epoch = _PLAIN.unpack_from(value)
    return Identity(value[_PLAIN.size :].decode(), producer_id, epoch)


def read_link(value: bytes) -> Identity:
    """Read a proposal of release 0.1 that could be fenced, or follows another; raises as `read_plain`.

    Its time and its transactional id are passed over: they served the fencing of it.
    """
    _, producer_id, epoch, before_id, before_epoch, _, length = _LINK.unpack_from(value)
    cluster = value[_LINK.size : _LINK.size + length].decode()
    former = () if before_id == _NOBODY else (Producer(before_id, before_epoch),)
    value[_LINK.size + length :].decode()
    return Identity(cluster, producer_id, epoch, former)
