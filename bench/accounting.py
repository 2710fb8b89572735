"""What a process tree costs: CPU seconds from a cgroup of its own.

Spark's Python workers outlive the counters of their parents: their CPU time never reaches the process that
was started. A cgroup (v1 `cpuacct` or v2) counts every process ever put into it, and what they start. Where
no cgroup can be made, the tree is walked instead, which misses what ends between two walks; `kind` says so.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import psutil

EMPTYING_TIMEOUT_S = 10.0
QUIET_CORES = 0.3
_NS, _US = 1e9, 1e6
_ENTER = 'echo $$ > "$0" && exec "$@"'


class Account(Protocol):
    """The CPU seconds of some processes and of all that they start."""

    def command(self, arguments: Sequence[str]) -> list[str]:
        """The command that runs `arguments` inside this account from its first instruction on."""

    def adopt(self, pid: int) -> None:
        """Count a running process, all its threads and what it starts, from now on."""

    def pids(self) -> list[int]:
        """The processes that are in it now."""

    def cpu_s(self) -> float:
        """User and system seconds since the account was opened (a tree: since the processes began)."""

    def close(self) -> None:
        """Kill what is still in it, if it was started here; remove the account."""


class CgroupAccount:
    """A cgroup, v1 or v2, and the file in it that counts."""

    def __init__(self, directory: Path, read_cpu_s: Callable[[Path], float]) -> None:
        directory.mkdir()
        self._directory = directory
        self._members = directory / "cgroup.procs"
        self._read_cpu_s = read_cpu_s

    def command(self, arguments: Sequence[str]) -> list[str]:
        return ["/bin/sh", "-c", _ENTER, str(self._members), *arguments]

    def adopt(self, pid: int) -> None:
        self._members.write_text(str(pid))

    def pids(self) -> list[int]:
        return [int(line) for line in self._members.read_text().split()]

    def cpu_s(self) -> float:
        return self._read_cpu_s(self._directory)

    def close(self) -> None:
        deadline = time.monotonic() + EMPTYING_TIMEOUT_S
        while pids := self.pids():
            for pid in pids:
                _kill(pid)
            if time.monotonic() > deadline:
                return
            time.sleep(0.05)
        with suppress(OSError):
            self._directory.rmdir()


class TreeAccount:
    """Walks the process tree whenever it is asked; the memory watch asks once a second."""

    def __init__(self) -> None:
        self._roots: list[psutil.Process] = []
        self._seen: dict[tuple[int, float], float] = {}
        self._walking = threading.Lock()

    def command(self, arguments: Sequence[str]) -> list[str]:
        return list(arguments)

    def adopt(self, pid: int) -> None:
        self._roots.append(psutil.Process(pid))

    def pids(self) -> list[int]:
        return [process.pid for process in self._walk()]

    def cpu_s(self) -> float:
        self._walk()
        return sum(self._seen.values())

    def close(self) -> None:
        for process in self._walk():
            _kill(process.pid)

    def _walk(self) -> list[psutil.Process]:
        alive: list[psutil.Process] = []
        with self._walking:
            for root in self._roots:
                with suppress(psutil.NoSuchProcess):
                    alive += [root, *root.children(recursive=True)]
            for process in alive:
                with suppress(psutil.NoSuchProcess):
                    times = process.cpu_times()
                    self._seen[process.pid, process.create_time()] = times.user + times.system
        return alive


@dataclass(frozen=True, slots=True)
class Accounting:
    """Where accounts are opened on this machine; `kind` is for people."""

    kind: str
    open: Callable[[str], Account]


def find_accounting() -> Accounting:
    """Find a cgroup hierarchy that counts CPU time and that we may write to, or fall back to walking."""
    tried: list[str] = []
    for version, mount, read_cpu_s in _hierarchies():
        for place in (mount / _own_path(version), mount):
            trial = place / f"sparkmirror-bench-{os.getpid()}-trial"
            try:
                trial.mkdir()
                read_cpu_s(trial)
                trial.rmdir()
            except (OSError, ValueError) as error:
                tried.append(f"{place}: {error}")
                with suppress(OSError):
                    trial.rmdir()
                continue
            return Accounting(f"cgroup {version} at {place}", _opener(place, read_cpu_s))
    reason = "; ".join(tried) or "no cgroup file system is mounted"
    return Accounting(
        f"walking the process tree, which misses what ends between two walks (no cgroup: {reason})",
        lambda _: TreeAccount(),
    )


def machine_cpu_s() -> float:
    """CPU seconds that all cores were busy or stolen since the machine came up, whoever used them."""
    times = psutil.cpu_times()
    return float(sum(getattr(times, name, 0.0) for name in ("user", "nice", "system", "irq", "softirq", "steal")))


def wait_until_quiet(timeout_s: float) -> bool:
    """Wait for a second in which no more than `QUIET_CORES` were busy; False if none came."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        before, began = machine_cpu_s(), time.monotonic()
        time.sleep(1.0)
        if machine_cpu_s() - before <= QUIET_CORES * (time.monotonic() - began):
            return True
    return False


def _opener(place: Path, read_cpu_s: Callable[[Path], float]) -> Callable[[str], Account]:
    return lambda name: CgroupAccount(place / f"sparkmirror-bench-{os.getpid()}-{name}", read_cpu_s)


def _hierarchies() -> list[tuple[str, Path, Callable[[Path], float]]]:
    found: list[tuple[str, Path, Callable[[Path], float]]] = []
    with suppress(OSError):
        for line in Path("/proc/mounts").read_text().splitlines():
            _, mount, kind, options, *_ = line.split()
            if kind == "cgroup" and "cpuacct" in options.split(","):
                found.insert(0, ("v1", Path(mount), _read_v1))
            elif kind == "cgroup2":
                found.append(("v2", Path(mount), _read_v2))
    return found


def _own_path(version: str) -> str:
    """The path of this process' own cgroup under the mount."""
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if ("cpuacct" in controllers.split(",")) if version == "v1" else not controllers:
                return path.lstrip("/")
    return ""


def _read_v1(directory: Path) -> float:
    return int((directory / "cpuacct.usage").read_text()) / _NS


def _read_v2(directory: Path) -> float:
    fields = dict(line.split() for line in (directory / "cpu.stat").read_text().splitlines())
    return int(fields["usage_usec"]) / _US


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
