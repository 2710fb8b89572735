"""All tests, for `make test-full`: whatever has a directory of its own beside the engine's, which mostly wait.

The engine's come to the terminal: mirrors under kills and load, with time limits. The others take what these leave of
the machine, then the flow tests run once more on a Spark standalone cluster, and all that is printed at the end.
Arguments go to all.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

ENGINE = "engine"
STANDALONE = ("tests/engine/test_mirror.py", "--standalone")
LOG = Path(".cache/test-full-others.log")
PYTEST = (sys.executable, "-m", "pytest", "--full")
QUIETLY = ("nice", "-n", "10", *PYTEST, "-p", "no:cacheprovider")


class Beside:
    """Commands one after the other in the background, into the log."""

    def __init__(self, commands: list[list[str]]) -> None:
        self.codes: list[int] = []
        self._commands = commands
        self._running: subprocess.Popen[bytes] | None = None
        self._ending = False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        with LOG.open("w") as log:
            for command in self._commands:
                if not self._ending:
                    self._running = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
                    self.codes.append(self._running.wait())

    def wait(self) -> None:
        self._thread.join()

    def end(self) -> None:
        """Whatever still runs."""
        self._ending = True
        if self._running is not None:
            self._running.terminate()
        self.wait()


def main(arguments: list[str]) -> int:
    """The exit code: 0 if all passed."""
    began = time.monotonic()
    tests = Path(__file__).parent
    directories = sorted({str(one.parent) for one in tests.glob("*/test_*.py")} - {str(tests / ENGINE)})
    LOG.parent.mkdir(exist_ok=True)
    others = Beside([[*QUIETLY, *directories, *arguments], [*QUIETLY, *STANDALONE, *arguments]])
    try:
        engine = subprocess.call([*PYTEST, str(tests / ENGINE), *arguments])
        others.wait()
    finally:
        others.end()
    codes = [engine, *others.codes]
    print(LOG.read_text())
    print(f"{'failed' if any(codes) else 'all passed'}: {(time.monotonic() - began) / 60:.1f} min")
    return int(any(codes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
