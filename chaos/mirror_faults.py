"""What happens to the mirror's processes."""

from __future__ import annotations

import contextlib
import random
import signal
import time
from collections.abc import Callable

import psutil

from chaos.arena import NoVictim
from chaos.bills import DoneInTheMidst
from chaos.lost_segments import LostSegments
from chaos.mirror import MirrorProcess, executors, workers
from chaos.world import Fault, World

_VICTIM_TIMEOUT_S = 180.0
_PROGRESS_TIMEOUT_S = 240.0


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

    def begin(self) -> None:
        self.other: MirrorProcess = self.start()

    def start(self) -> MirrorProcess:
        return self.world.deployment.start_rival()

    def end(self) -> None:
        self.other.kill_all()


class Standby(Rival):
    """A second mirror on the same file, which stands by, and takes over when the first is killed."""

    victim = "the first of two mirrors"

    def start(self) -> MirrorProcess:
        return self.world.deployment.start_another()

    def end(self) -> None:
        self.world.deployment.hand_over_to(self.other)


MIRROR_FAULTS: dict[str, Callable[[World, random.Random], Fault]] = {
    "driver kill": DriverKill,
    "driver pause": DriverPause,
    "everything kill": EverythingKill,
    "worker kill": WorkerKill,
    "worker pause": WorkerPause,
    "executor kill": ExecutorKill,
    "executor pause": ExecutorPause,
    "lost segments topic": LostSegments,
    "rival": Rival,
    "standby": Standby,
    "topics done": DoneInTheMidst,
}
