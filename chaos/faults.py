"""The kinds of faults: what each does when it begins, and what makes it good when it ends."""

from __future__ import annotations

import contextlib
import random
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import psutil

from chaos.arena import Arena, NoVictim, wait_in_sync
from chaos.cluster_faults import Stranger, Throttle
from chaos.meter import Meter
from chaos.mirror import Deployment, MirrorProcess, executors, workers
from sparkmirror.demo import Broker, KafkaCluster
from sparkmirror.demo.proxy import Proxy

_VICTIM_TIMEOUT_S = 180.0
_PROGRESS_TIMEOUT_S = 240.0
_SLOW_BYTES_PER_S = 20_000
_STOP_TIMEOUT_S = 15.0


@dataclass(frozen=True, slots=True)
class World:
    """All that can be broken."""

    arena: Arena
    deployment: Deployment
    meter: Meter
    copied_topic: str
    """At the target, where somebody else may write."""
    partitions: int


class Fault(Protocol):
    """Something that goes wrong."""

    victim: str
    """Whom it hurts; known once it has begun."""
    lasts: bool
    """Whether it goes on until `end`; else there is nothing to end."""

    def begin(self) -> None:
        """Break it. Raises NoVictim."""

    def end(self) -> None:
        """Make it good again. Not called if `begin` failed."""

    def settle(self) -> None:
        """Wait until the next one may come."""


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


# --- the mirror --------------------------------------------------------------------------------------


class MirrorFault:
    """Something that happens to the mirror."""

    victim = "the mirror"
    lasts = False

    def __init__(self, world: World, chance: random.Random) -> None:
        self.world = world
        self.chance = chance

    def begin(self) -> None:
        raise NotImplementedError

    def end(self) -> None:
        raise NotImplementedError

    def settle(self) -> None:
        """A mirror that does not work yet can't be hurt."""
        self.world.meter.wait_for_progress(_PROGRESS_TIMEOUT_S)


class DriverKill(MirrorFault):
    """The driver alone: its JVM and its workers are left behind."""

    victim = "the driver"

    def begin(self) -> None:
        self.world.deployment.kill_driver()


class EverythingKill(MirrorFault):
    victim = "the driver and all it started"

    def begin(self) -> None:
        self.world.deployment.kill_all()


class DriverPause(MirrorFault):
    victim = "the driver"
    lasts = True

    def begin(self) -> None:
        self.world.deployment.send(signal.SIGSTOP)

    def end(self) -> None:
        self.world.deployment.send(signal.SIGCONT)


class ProcessKill(MirrorFault):
    """One of the processes that the mirror works with."""

    find: Callable[[], list[psutil.Process]]
    what: str

    def begin(self) -> None:
        self.process = self._find()
        self.victim = f"{self.what} {self.process.pid}"
        self.hurt()

    def hurt(self) -> None:
        self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        with contextlib.suppress(psutil.NoSuchProcess):
            self.process.send_signal(number)

    def _find(self) -> psutil.Process:
        deadline = time.monotonic() + _VICTIM_TIMEOUT_S
        while True:
            found = sorted(type(self).find(), key=lambda one: one.pid)
            if found:
                return self.chance.choice(found)
            if time.monotonic() > deadline:
                raise NoVictim(f"no {self.what} is running")
            time.sleep(0.3)


class WorkerKill(ProcessKill):
    find = staticmethod(workers)
    what = "worker"


class WorkerPause(WorkerKill):
    lasts = True

    def hurt(self) -> None:
        self._send(signal.SIGSTOP)

    def end(self) -> None:
        self._send(signal.SIGCONT)


class ExecutorKill(ProcessKill):
    find = staticmethod(executors)
    what = "executor"


class ExecutorPause(WorkerPause):
    find = staticmethod(executors)
    what = "executor"


class Rival(MirrorFault):
    """A second mirror that knows of no lease, and appends to the same partitions."""

    victim = "a rival without a lease"
    lasts = True
    arguments: Sequence[str] = ("--no-lease",)

    def begin(self) -> None:
        self.other: MirrorProcess = self.world.deployment.start_another(*self.arguments)

    def end(self) -> None:
        self.other.kill_all()


class Standby(Rival):
    """A second mirror on the same file, which stands by, and takes over when the first is killed."""

    victim = "the first of two mirrors"
    arguments = ()

    def end(self) -> None:
        self.world.deployment.hand_over_to(self.other)


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
}
_MIRROR_FAULTS: dict[str, Callable[[World, random.Random], Fault]] = {
    "driver kill": DriverKill,
    "driver pause": DriverPause,
    "everything kill": EverythingKill,
    "worker kill": WorkerKill,
    "worker pause": WorkerPause,
    "executor kill": ExecutorKill,
    "executor pause": ExecutorPause,
    "rival": Rival,
    "standby": Standby,
}
_CLUSTER_FAULTS: dict[str, Callable[[World, random.Random], Fault]] = {
    "source throttle": lambda world, _: Throttle(world.arena.source, "consumer_byte_rate"),
    "target throttle": lambda world, _: Throttle(world.arena.target, "producer_byte_rate"),
    "target stranger": lambda world, chance: Stranger(world.arena.target, world.copied_topic, world.partitions, chance),
}
LANES: dict[str, tuple[str, ...]] = {
    "source": (*(f"source {kind}" for kind in _BROKER_FAULTS), "source throttle"),
    "target": (*(f"target {kind}" for kind in _BROKER_FAULTS), "target throttle", "target stranger"),
    "mirror": tuple(_MIRROR_FAULTS),
}
"""All kinds, by what they hurt. In a lane one fault follows the other; the lanes go on side by side."""

SLOW_TO_SHOW = {"rival": 12.0, "standby": 10.0}
"""Kinds that hold for longer, in seconds, since a mirror needs that long to start."""


def make_fault(kind: str, world: World, chance: random.Random) -> Fault:
    """Return a fault of that kind; `chance` picks the victim."""
    if kind in _MIRROR_FAULTS:
        return _MIRROR_FAULTS[kind](world, chance)
    if kind in _CLUSTER_FAULTS:
        return _CLUSTER_FAULTS[kind](world, chance)
    side, _, what = kind.partition(" ")
    return _BROKER_FAULTS[what](world.arena.source if side == "source" else world.arena.target, chance)
