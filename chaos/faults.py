"""The kinds of faults: what each does when it begins, and what makes it good when it ends."""

from __future__ import annotations

import random
from collections.abc import Callable

from lab import Broker, KafkaCluster
from lab.proxy import Proxy

from chaos.arena import NoVictim, wait_in_sync
from chaos.cluster_faults import Stranger, Throttle, TimestampLimit
from chaos.full_disk import FullDisk
from chaos.leaders import LeaderMove
from chaos.mirror_faults import MIRROR_FAULTS
from chaos.mute import MutedChannel
from chaos.segments_cut import SegmentsCut
from chaos.stalled_replica import StalledReplica
from chaos.unclean import UncleanElectionAtSource, UncleanElectionAtTarget
from chaos.world import Fault, World

_SLOW_BYTES_PER_S = 20_000
_STOP_TIMEOUT_S = 15.0


# --- brokers and the network before them -------------------------------------------------------------


class BrokerFault:
    """Something that happens to one broker."""

    lasts = True

    def __init__(self, cluster: KafkaCluster, chance: random.Random) -> None:
        self.cluster = cluster
        self.broker: Broker = chance.choice(cluster.brokers)
        self.victim = f"broker {self.broker.node_id}"

    def begin(self) -> None:
        raise NotImplementedError

    def end(self) -> None:
        raise NotImplementedError

    def settle(self) -> None:
        wait_in_sync(self.cluster)


class BrokerKill(BrokerFault):
    def begin(self) -> None:
        self.broker.kill()

    def end(self) -> None:
        self.broker.start()


class BrokerRestart(BrokerKill):
    def begin(self) -> None:
        self.broker.terminate(_STOP_TIMEOUT_S)


class BrokerPause(BrokerFault):
    def begin(self) -> None:
        self.broker.pause()

    def end(self) -> None:
        self.broker.resume()


class MajorityPause:
    """All but one: nobody can be elected, nothing can be acknowledged."""

    lasts = True

    def __init__(self, cluster: KafkaCluster, chance: random.Random) -> None:
        self.cluster = cluster
        self.brokers = chance.sample(cluster.brokers, len(cluster.brokers) - 1)
        self.victim = "brokers " + ", ".join(str(broker.node_id) for broker in self.brokers)

    def begin(self) -> None:
        for broker in self.brokers:
            broker.pause()

    def end(self) -> None:
        for broker in self.brokers:
            broker.resume()

    def settle(self) -> None:
        wait_in_sync(self.cluster)


class NetworkFault(BrokerFault):
    """Something that happens between one broker and its clients."""

    @property
    def proxy(self) -> Proxy:
        if self.broker.proxy is None:
            raise NoVictim("the broker has no proxy")
        return self.broker.proxy

    def end(self) -> None:
        self.proxy.heal()


class Cut(NetworkFault):
    def begin(self) -> None:
        self.proxy.cut()


class Stall(NetworkFault):
    def begin(self) -> None:
        self.proxy.stall()


class Slow(NetworkFault):
    def begin(self) -> None:
        self.proxy.slow(_SLOW_BYTES_PER_S)


class Drop(NetworkFault):
    lasts = False

    def begin(self) -> None:
        self.proxy.drop_connections()


# --- all of them -------------------------------------------------------------------------------------

_BROKER_FAULTS: dict[str, Callable[[KafkaCluster, random.Random], Fault]] = {
    "kill": BrokerKill,
    "pause": BrokerPause,
    "restart": BrokerRestart,
    "majority pause": MajorityPause,
    "cut": Cut,
    "stall": Stall,
    "slow": Slow,
    "drop": Drop,
    "full disk": FullDisk,
    "leader move": LeaderMove,
}
_CLUSTER_FAULTS: dict[str, Callable[[World, random.Random], Fault]] = {
    "source throttle": lambda world, _: Throttle(world.arena.source, "consumer_byte_rate"),
    "target throttle": lambda world, _: Throttle(world.arena.target, "producer_byte_rate"),
    "source unclean election": UncleanElectionAtSource,
    "target muted channel": MutedChannel,
    "target segments cut": SegmentsCut,
    "target stalled replica": StalledReplica,
    "target stranger": Stranger,
    "target timestamp limit": lambda world, _: TimestampLimit(world),
    "target unclean election": UncleanElectionAtTarget,
}
LANES: dict[str, tuple[str, ...]] = {
    "source": (*(f"source {kind}" for kind in _BROKER_FAULTS), "source throttle", "source unclean election"),
    "target": (
        *(f"target {kind}" for kind in _BROKER_FAULTS),
        "target throttle",
        "target muted channel",
        "target segments cut",
        "target stalled replica",
        "target stranger",
        "target timestamp limit",
        "target unclean election",
    ),
    "mirror": tuple(MIRROR_FAULTS),
}
"""All kinds, by what they hurt. In a lane one fault follows the other; the lanes run side by side."""

SLOW_TO_SHOW = {"rival": 12.0, "standby": 10.0}
"""Kinds that hold for longer, in seconds, since a mirror needs that long to start."""


ALONE = frozenset({"lost segments topic", "target segments cut"})
"""Kinds during which nothing else may be broken."""


def make_fault(kind: str, world: World, chance: random.Random) -> Fault:
    """Return a fault of that kind; `chance` picks the victim."""
    if kind in MIRROR_FAULTS:
        return MIRROR_FAULTS[kind](world, chance)
    if kind in _CLUSTER_FAULTS:
        return _CLUSTER_FAULTS[kind](world, chance)
    side, _, what = kind.partition(" ")
    return _BROKER_FAULTS[what](world.arena.source if side == "source" else world.arena.target, chance)
