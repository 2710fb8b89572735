"""The mirror under test: `sparkmirror run` as a process that is started again whenever it ends, and its rivals."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self

import psutil

from chaos.arena import Arena
from chaos.records import Isolation
from sparkmirror.demo.ports import free_ports
from sparkmirror.demo.spawn import spawn
from sparkmirror.errors import SetupError

SOURCE, TARGET = "A", "B"
STEADY = (str(Path(sys.executable).with_name("sparkmirror")),)
RESTLESS = (sys.executable, "-m", "chaos.restless")
"""Commands of a mirror: as it is, and with plans that move partitions again and again."""
_MOVED = b"[epoch-changed]"
_STOP_TIMEOUT_S = 30.0
_RESTART_AFTER_S = 1.0
_KILLED_TIMEOUT_S = 30.0
_POLL_S = 0.1


def remote(topic: str) -> str:
    """The topic's name at the target."""
    return f"{SOURCE}.{topic}"


def write_properties(path: Path, arena: Arena, topics: str, isolation: Isolation, spark: Mapping[str, str]) -> Path:
    """Write the mirror's file, for topics that match the expression `topics`."""
    settings = {
        "clusters": f"{SOURCE}, {TARGET}",
        f"{SOURCE}.bootstrap.servers": arena.source.bootstrap_servers,
        f"{TARGET}.bootstrap.servers": arena.target.bootstrap_servers,
        f"{SOURCE}->{TARGET}.enabled": "true",
        f"{SOURCE}->{TARGET}.topics": topics,
        "replication.factor": str(arena.replicas),
        "checkpoints.topic.replication.factor": str(arena.replicas),
        "heartbeats.topic.replication.factor": str(arena.replicas),
        "offset-syncs.topic.replication.factor": str(arena.replicas),
        "offset.storage.replication.factor": str(arena.replicas),
        "tasks.max": "2",
        "refresh.topics.interval.seconds": "5",
        f"{TARGET}.session.timeout.ms": "6000",
        "heartbeats.replication.enabled": "false",
        f"{TARGET}.offset.flush.interval.ms": "1000",
        "emit.checkpoints.interval.seconds": "5",
        "refresh.groups.interval.seconds": "5",
        "sparkmirror.on.truncated": "continue",
        **({f"{SOURCE}->{TARGET}.consumer.isolation.level": isolation} if isolation == "read_committed" else {}),
        **spark,
    }
    path.write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))
    return path


class MirrorProcess:
    """One `run` with metrics and page, by one of the commands; what it prints is appended to `log`."""

    def __init__(self, command: Sequence[str], properties: Path, log: Path, *arguments: str) -> None:
        (self.port,) = free_ports(1)
        """Of its metrics and its page."""
        listener = ("--metrics-port", str(self.port))
        self._process = spawn([*command, "run", str(properties), "-o", "json", *listener, *arguments], output=log)

    @property
    def running(self) -> bool:
        """Whether the driver is there, paused or not."""
        return self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """How the driver ended; None while it runs."""
        return self._process.poll()

    def family(self) -> list[psutil.Process]:
        """The driver and all it started; nobody when the driver has ended."""
        if not self.running:  # its process id may be another's by now
            return []
        try:
            driver = psutil.Process(self._process.pid)
            return [driver, *driver.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def send(self, number: signal.Signals) -> None:
        """Send the driver, and nobody else, a signal."""
        self._process.send_signal(number)

    def kill_all(self) -> None:
        """SIGKILL to the driver, its JVM and every worker."""
        kill(self.family())
        self._process.wait()

    def stop(self) -> None:
        """Stop it as Ctrl-C does, and by force when that takes too long."""
        family = self.family()
        self.send(signal.SIGTERM)
        self.send(signal.SIGCONT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_STOP_TIMEOUT_S)
        kill(family)
        self._process.wait()


class Deployment:
    """Keeps one mirror running, as a service manager would; as a context, until its end."""

    def __init__(
        self,
        properties: Path,
        log: Path,
        rivals_properties: Path | None = None,
        command: Sequence[str] = STEADY,
    ) -> None:
        self.log = log
        self._command = command
        self.starts = 0
        self.exits: Counter[int] = Counter()
        """Exit codes of mirrors that ended by themselves."""
        self._properties = properties
        self._rivals_properties = rivals_properties or properties
        self._changing = threading.Lock()
        self._closing = threading.Event()
        self._orphans: list[psutil.Process] = []
        self._extra: list[MirrorProcess] = []
        self._keeper = threading.Thread(target=self._keep, name="keeper", daemon=True)

    def __enter__(self) -> Self:
        self._current = self.start_another()
        self._keeper.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._keeper.join()
        self._current.stop()
        for other in self._extra:
            other.kill_all()
        kill(self._orphans)

    def port(self) -> int:
        """Of the metrics and the page of the one that is kept running."""
        return self._current.port

    def start_another(self, *arguments: str) -> MirrorProcess:
        """Start one more process on the same file, which is not kept running."""
        return self._start(self._properties, *arguments)

    def start_rival(self) -> MirrorProcess:
        """Start one that knows of no lease, on the rivals' file."""
        return self._start(self._rivals_properties, "--no-lease")

    def _start(self, properties: Path, *arguments: str) -> MirrorProcess:
        self.starts += 1
        another = MirrorProcess(self._command, properties, self.log, *arguments)
        self._extra.append(another)
        return another

    def send(self, number: signal.Signals) -> None:
        """Send the driver, and nobody else, a signal."""
        with self._changing:
            self._current.send(number)

    def kill_driver(self) -> None:
        """SIGKILL to the driver alone; what it leaves behind must end by itself."""
        with self._changing:
            self._orphans += self._current.family()[1:]
            self._current.send(signal.SIGKILL)

    def kill_all(self) -> None:
        """SIGKILL to the driver and all it started."""
        with self._changing:
            self._current.kill_all()

    @contextlib.contextmanager
    def ended(self) -> Iterator[None]:
        """SIGKILL to every mirror and all that any of them has started; none runs before the end of the `with`."""
        with self._changing:
            family = [*self._current.family()[1:], *self._orphans]
            for executor in executors():  # of a driver that was killed they live on for a while
                with contextlib.suppress(psutil.NoSuchProcess):
                    family += [executor, *executor.children(recursive=True)]
            self._current.kill_all()
            kill(family)
            deadline = time.monotonic() + _KILLED_TIMEOUT_S
            while alive := [one.pid for one in family if _lives(one)]:  # psutil's own wait goes by the bare id
                if time.monotonic() > deadline:
                    raise SetupError(f"processes {alive} live on after SIGKILL")
                time.sleep(_POLL_S)
            yield

    def parked_since(self, position: int) -> list[dict[str, str]]:
        """Return which partitions were called parked, and why, each time that was said behind that place of the log."""
        said = []
        with self.log.open("rb") as log:
            log.seek(position)
            for line in log:
                # Else it isn't for programs, or was cut off
                with contextlib.suppress(ValueError, LookupError, TypeError):
                    parts = (parked.partition(": ") for parked in json.loads(line)["parked"])
                    said.append({partition: reason for partition, _, reason in parts})
        return said

    def moves(self) -> int:
        """Return how often a plan has moved partitions within a round, of all mirrors so far."""
        with self.log.open("rb") as log:
            return sum(_MOVED in line for line in log)

    def hand_over_to(self, heir: MirrorProcess) -> None:
        """Kill the one that is kept running, with all it started, and keep `heir` running from now on."""
        with self._changing:
            former, self._current = self._current, heir
        former.kill_all()

    def orphans(self) -> int:
        """How many processes of drivers that were killed are still there."""
        with self._changing:
            family = set(self._current.family())
            return sum(orphan.is_running() and orphan not in family for orphan in self._orphans)

    def _keep(self) -> None:
        while not self._closing.wait(_RESTART_AFTER_S):
            with self._changing:
                code = self._current.exit_code
                if code is None:
                    continue
                if code >= 0:
                    self.exits[code] += 1
                self._current = self.start_another()


def workers() -> list[psutil.Process]:
    """The Python workers that pump, of all mirrors that this process started (not Spark's daemon, their parent)."""
    daemons = _descendants("pyspark.daemon")
    parents = {one.pid for one in daemons}
    return [one for one in daemons if _parent(one) in parents]


def executors() -> list[psutil.Process]:
    """The executors' JVMs of the Spark cluster that this process started."""
    return _descendants("CoarseGrainedExecutorBackend")


def kill(processes: list[psutil.Process]) -> None:
    """SIGKILL to all of them that are still there."""
    for one in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            one.kill()


def _lives(process: psutil.Process) -> bool:
    """Whether it is there, and not only its number or what its parent has not asked for yet."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _descendants(word: str) -> list[psutil.Process]:
    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if any(word in part for part in process.cmdline()):
                found.append(process)
    return found


def _parent(process: psutil.Process) -> int:
    try:
        return process.ppid()
    except psutil.NoSuchProcess:
        return -1
