"""A Java program as a child process that dies with this process.

The program's log is kept in a directory.
"""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

from sparkmirror.demo.java import java
from sparkmirror.demo.spawn import spawn
from sparkmirror.errors import SetupError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_POLL_S = 0.01
_READY_POLL_S = 0.05

# These options halve the start-up time. Long-running code is slower with them, so measurements pass other options.
QUICK_START = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")

_LOGGING = Path(__file__).with_name("log4j2.properties")


class Jvm:
    """One Java program, which can be started again after it ended.

    Every run appends to the same log, `directory/server.log`. `directory/output.log` has the process's own output,
    such as a JVM's last words.
    """

    def __init__(
        self,
        directory: Path,
        *,
        main_class: str,
        arguments: Sequence[str],
        class_path: str,
        heap_mb: int,
        options: Sequence[str],
    ) -> None:
        self.log = directory / "server.log"
        self._output = directory / "output.log"
        self._child: subprocess.Popen[bytes] | None = None
        self._command = (
            *(f"-Xms{min(heap_mb, 256)}m", f"-Xmx{heap_mb}m", "-XX:-UsePerfData", *options),
            f"-Dlog4j2.configurationFile={_LOGGING}",
            f"-Dsparkmirror.log={self.log}",
            *("-cp", class_path, main_class, *arguments),
        )

    @property
    def pid(self) -> int:
        """The last start's process id; RuntimeError if the program never started."""
        return self._started().pid

    @property
    def running(self) -> bool:
        """True if the process exists, paused or not."""
        return self._child is not None and self._child.poll() is None

    @property
    def exit_code(self) -> int | None:
        """The last run's exit code: minus the signal's number after a signal.

        None while the program runs, and if it never ran.
        """
        return None if self._child is None else self._child.poll()

    def start(self) -> None:
        """Start the program unless it runs.

        Raises SetupError without Java.
        """
        if not self.running:
            self._child = spawn((java(), *self._command), output=self._output)

    def terminate(self, timeout_s: float) -> None:
        """Ask the program to end (SIGTERM), and kill it after `timeout_s`.

        Returns when the process has ended.
        """
        if not self.running:
            return
        self.send(signal.SIGTERM)
        self.send(signal.SIGCONT)  # a paused process acts on nothing but SIGKILL
        try:
            self._started().wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Kill the program at once (SIGKILL); return when the process has ended."""
        if self.running:
            self.send(signal.SIGKILL)
            self._started().wait()

    def send(self, what: signal.Signals) -> None:
        """Send the program a signal; nothing happens if it has ended."""
        self._started().send_signal(what)

    def stop(self, timeout_s: float = 5.0) -> None:
        """Freeze the program (SIGSTOP); return when all its threads stand still.

        Waits up to `timeout_s`, and only on a system with `/proc`.
        """
        self.send(signal.SIGSTOP)
        threads = Path(f"/proc/{self.pid}/task")
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline and not all(map(_stands_still, threads.glob("*/stat"))):
            time.sleep(_POLL_S)

    def wait_until(self, ready: Callable[[], bool], timeout_s: float, *, program: str, late: str) -> None:
        """Wait until `ready` is true.

        Raises SetupError, with the end of the log, if `program` dies, or is `late` after `timeout_s`.
        """
        deadline = time.monotonic() + timeout_s
        while not ready():
            if not self.running:
                reason = f"died (exit code {self.exit_code})"
            elif time.monotonic() > deadline:
                reason = f"{late} {timeout_s:.0f} s"
            else:
                time.sleep(_READY_POLL_S)
                continue
            raise SetupError(f"{program} {reason}; {self.log} ends with:\n{self.last_lines()}")

    def last_lines(self, count: int = 15) -> str:
        """Return the end of the log and of the program's own output, for a person."""
        lines = [line for file in (self.log, self._output) if file.exists() for line in _tail(file, count)]
        return "\n".join(lines) or "(nothing was logged)"

    def _started(self) -> subprocess.Popen[bytes]:
        if self._child is None:
            raise RuntimeError("it was never started")
        return self._child


def _stands_still(stat: Path) -> bool:
    """True if a thread is stopped or gone.

    The state comes after the name, which is in brackets.
    """
    try:
        return stat.read_text().rpartition(")")[2].split()[0] in "TtZX"
    except OSError:
        return True


def _tail(file: Path, count: int) -> list[str]:
    return file.read_text(errors="replace").splitlines()[-count:]
