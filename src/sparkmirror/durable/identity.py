"""Who a flow is at its target (invariant 7): a producer id, for ever, or until it is fenced (R16, `engine.fence`).

Proposals lie in partition 0 of the segments topic. Of those that follow the same identity the lowest offset counts.
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
    """Who it was before, the last one last. A proposal names only that one."""
    transactional_id: str = ""
    """What the producer id belongs to, so that it can be fenced; empty: it can't be."""
    agreed_ms: int = 0
    """When it was proposed, in milliseconds since 1970; 0: who was before it had ended in order."""

    @property
    def producer(self) -> Producer:
        """As brokers know it."""
        return Producer(self.producer_id, self.producer_epoch)

    def wrote(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether what bears this is the flow's, of whichever time."""
        producer = producer_id, producer_epoch
        return producer == (self.producer_id, self.producer_epoch) or producer in self.former

    def fenced_with(self, producer_id: int) -> bool:
        """Whether a transaction marker that bears this is ours: fences are all that we begin transactions for."""
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


def transactional_ids(source_alias: str) -> str:
    """How all begin that a flow's fences need (R16); our principal needs WRITE on them."""
    return f"mm2-sparkmirror.{source_alias}."


def identity_value(identity: Identity) -> bytes:
    """A proposal; one that cannot be fenced and follows nobody is written as it always was."""
    plain = not identity.former and not identity.transactional_id
    cluster = identity.cluster_id.encode()
    if plain:
        return _PLAIN.pack(IDENTITY_VERSION, *identity.producer) + cluster
    before = identity.former[-1] if identity.former else Producer(_NOBODY, _NOBODY)
    head = _LINK.pack(IDENTITY_VERSION, *identity.producer, *before, identity.agreed_ms, len(cluster))
    return head + cluster + identity.transactional_id.encode()


def read_plain(value: bytes) -> Identity:
    """Of one that cannot be fenced; raises struct.error and UnicodeDecodeError."""
    _, producer_id, epoch = _PLAIN.unpack_from(value)
    return Identity(value[_PLAIN.size :].decode(), producer_id, epoch)


def read_link(value: bytes) -> Identity:
    """Of one that can be fenced, or follows another; raises as `read_plain`."""
    _, producer_id, epoch, before_id, before_epoch, agreed_ms, length = _LINK.unpack_from(value)
    cluster = value[_LINK.size : _LINK.size + length].decode()
    former = () if before_id == _NOBODY else (Producer(before_id, before_epoch),)
    return Identity(cluster, producer_id, epoch, former, value[_LINK.size + length :].decode(), agreed_ms)
