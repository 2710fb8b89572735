"""A Java program as a child process that dies with us, with its log kept in a directory."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

from sparkmirror.demo.java import java
from sparkmirror.demo.spawn import spawn

if TYPE_CHECKING:
    from collections.abc import Sequence

_POLL_S = 0.01

# Half the start-up time; the code that runs for long is slower, so measurements pass options of their own.
QUICK_START = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")

_LOGGING = Path(__file__).with_name("log4j2.properties")


class Jvm:
    """One Java program; it can be started again after it ended, and appends to the same log.

    Its log is `directory/server.log`; `directory/output.log` has what it prints itself, such as a JVM's
    last words.
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
        """The process id of the last start; RuntimeError if there was none."""
        return self._started().pid

    @property
    def running(self) -> bool:
        """Whether the process is there, paused or not."""
        return self._child is not None and self._child.poll() is None

    @property
    def exit_code(self) -> int | None:
        """How the last run ended (minus the signal if by one); None if it runs or never ran."""
        return None if self._child is None else self._child.poll()

    def start(self) -> None:
        """Start it; does nothing if it runs. Raises SetupError without Java."""
        if not self.running:
            self._child = spawn((java(), *self._command), output=self._output)

    def terminate(self, timeout_s: float) -> None:
        """Ask it to end (SIGTERM), kill it if it runs on after `timeout_s`; return when it has ended."""
        if not self.running:
            return
        self.send(signal.SIGTERM)
        self.send(signal.SIGCONT)  # a paused process acts on nothing but SIGKILL
        try:
            self._started().wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End it at once (SIGKILL); return when it has ended."""
        if self.running:
            self.send(signal.SIGKILL)
            self._started().wait()

    def send(self, what: signal.Signals) -> None:
        """Send it a signal; nothing happens if it has ended."""
        self._started().send_signal(what)

    def stop(self, timeout_s: float = 5.0) -> None:
        """Stop it in its tracks (SIGSTOP); return when all of its threads stand still, where the system tells."""
        self.send(signal.SIGSTOP)
        threads = Path(f"/proc/{self.pid}/task")
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline and not all(map(_stands_still, threads.glob("*/stat"))):
            time.sleep(_POLL_S)

    def last_lines(self, count: int = 15) -> str:
        """Return the end of its log and of its own output, for a message to a person."""
        lines = [line for file in (self.log, self._output) if file.exists() for line in _tail(file, count)]
        return "\n".join(lines) or "(nothing was logged)"

    def _started(self) -> subprocess.Popen[bytes]:
        if self._child is None:
            raise RuntimeError("it was never started")
        return self._child


def _stands_still(stat: Path) -> bool:
    """Whether a thread is stopped, or gone: the state comes after the name, which is in brackets."""
    try:
        return stat.read_text().rpartition(")")[2].split()[0] in "TtZX"
    except OSError:
        return True


def _tail(file: Path, count: int) -> list[str]:
    return file.read_text(errors="replace").splitlines()[-count:]
