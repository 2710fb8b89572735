"""Network, mounts and processes of a test's own, which are all gone as soon as the test is, however it ends."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.deploy.namespace import Namespace

_MAKING = ("--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation=private")
_ENTERING = ("--net", "--mount", "--pid")
START_S = 10.0


class Sandbox(Namespace):
    """What is started in it ends with it."""

    def __init__(self, pid: int) -> None:
        super().__init__(Path("/proc") / str(pid) / "ns" / "net")
        self._pid = pid
        self._programs: list[subprocess.Popen[bytes]] = []

    def hide(self, *directories: str) -> None:
        """What programs in it leave there is not this machine's, and gone at the end."""
        entering = ("nsenter", f"--target={self._pid}", "--mount", "--")
        for directory in directories:
            Path(directory).mkdir(parents=True, exist_ok=True)
            mounting = (*entering, "mount", "-t", "tmpfs", "tmpfs", directory)
            subprocess.run(mounting, check=True, timeout=30)

    def start(self, log: Path, *command: str | Path) -> None:
        """A program in the background; what it prints goes to the log."""
        entering = ["nsenter", f"--target={self._pid}", *_ENTERING, "--", *command]
        with log.open("wb") as out:
            self._programs.append(subprocess.Popen(entering, stdin=subprocess.DEVNULL, stdout=out, stderr=out))

    def ended(self) -> Sequence[str]:
        """The commands of programs that run no more."""
        return [str(program.args) for program in self._programs if program.poll() is not None]

    def join(self) -> None:
        """Wait for the programs' ends."""
        for program in self._programs:
            program.wait(60)


@contextmanager
def sandbox() -> Iterator[Sandbox]:
    """Make one. Its first process ends when it can't read from us any more: so it does not outlive a killed test."""
    if os.geteuid() != 0:
        pytest.skip("only root can make namespaces")
    first = subprocess.Popen(["unshare", *_MAKING, "cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    assert first.stdin is not None
    try:
        made = Sandbox(_child(first.pid))
        subprocess.run([*made.enter, "ip", "link", "set", "lo", "up"], check=True, timeout=30)
        yield made
        assert not made.ended()
    finally:
        first.stdin.close()
        first.wait(60)
    made.join()


def _child(pid: int) -> int:
    """The process that runs in the namespaces that another one has made."""
    deadline = time.monotonic() + START_S
    children = Path("/proc") / str(pid) / "task" / str(pid) / "children"
    while not (listed := children.read_text().split()):
        assert time.monotonic() < deadline, "unshare has started nothing"
        time.sleep(0.05)
    return int(listed[0])
