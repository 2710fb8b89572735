"""A network of a test's own: what listens in it is heard by nobody else, and nothing in it reaches further."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)
T = TypeVar("T")


class Namespace:
    """One of Linux's network namespaces, with its loopback up."""

    def __init__(self, file: Path) -> None:
        self._file = file

    @property
    def enter(self) -> tuple[str, ...]:
        """The words before a command that is to run in it."""
        return "nsenter", f"--net={self._file}"

    def run(self, *command: str | Path, timeout: float, environment: Mapping[str, str]) -> str:
        """A program in it; returns what it printed, and fails with that."""
        words = [*self.enter, *map(str, command)]
        done = subprocess.run(
            words,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert done.returncode == 0, f"{' '.join(map(str, command))}: {done.stdout[-4000:]}"
        return done.stdout

    def ask(self, question: Callable[[], T]) -> T:
        """Call it in a thread whose sockets are in the namespace, as are those of threads that it starts."""
        with ThreadPoolExecutor(1, initializer=self._enter) as pool:
            return pool.submit(question).result()

    def _enter(self) -> None:
        handle = os.open(self._file, os.O_RDONLY)
        try:
            if _libc.setns(handle, _CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")
        finally:
            os.close(handle)


@contextmanager
def own_namespace(name: str) -> Iterator[Namespace]:
    """Make one, and delete it in the end."""
    subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    subprocess.run(["ip", "netns", "add", name], check=True, timeout=30)
    try:
        subprocess.run(["ip", "-n", name, "link", "set", "lo", "up"], check=True, timeout=30)
        yield Namespace(Path("/run/netns") / name)
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True, timeout=30)
