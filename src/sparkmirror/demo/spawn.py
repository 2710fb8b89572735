"""Children that can't outlive this process, even if SIGKILL kills it.

On Linux the kernel kills the children (PR_SET_PDEATHSIG). The kernel does so at the death of the *thread* that started
them, so a single thread, which lives as long as the process, starts all children. On other systems the children survive
when this process is killed hard.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import Future
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_BOUND_EXEC = Path(__file__).with_name("bound_exec.py")


class _Order:
    """One child to start.

    `outcome` gets the child's Popen, or the error if it could not be started.
    """

    def __init__(self, command: list[str], output: Path, environment: Mapping[str, str] | None) -> None:
        self.command = command
        self.output = output
        self.environment = environment
        self.outcome: Future[subprocess.Popen[bytes]] = Future()

    def carry_out(self) -> None:
        try:
            with self.output.open("ab") as output:
                child = subprocess.Popen(
                    self.command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,  # only this process, not its children, acts on a Ctrl-C at the terminal
                    env=self.environment,
                )
        except OSError as error:
            self.outcome.set_exception(error)
        else:
            self.outcome.set_result(child)


class _Spawner:
    """Thread that starts all children, itself started at the first order."""

    def __init__(self) -> None:
        self._orders: SimpleQueue[_Order] = SimpleQueue()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    def start(self, order: _Order) -> subprocess.Popen[bytes]:
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="spawner", daemon=True)
                self._thread.start()
        self._orders.put(order)
        return order.outcome.result()

    def _run(self) -> None:
        while True:
            self._orders.get().carry_out()


_spawner = _Spawner()


def _forget_thread() -> None:
    global _spawner
    _spawner = _Spawner()


os.register_at_fork(after_in_child=_forget_thread)


def spawn(
    command: Sequence[str], *, output: Path, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start `command` in its own session, bound to this process.

    Standard output and standard error go to `output`. The command has this process's environment, or `environment`
    instead. The process id is the command's own. A command that can't be run says so in `output` and exits with 1.
    Raises OSError if `output` can't be written.
    """
    bound = [sys.executable, "-I", "-S", str(_BOUND_EXEC), str(os.getpid()), *command]
    return _spawner.start(_Order(bound, output, environment))
