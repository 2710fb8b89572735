"""Many tests in two rows at once, as they mostly wait: for `make test`, and with `--full` for `make test-full`.

The engine's come to the terminal, with those of directories near it: mirrors at work, some under time limits. Beside
them go the other directories', with what these leave of the machine; what they print comes at the end. `--full` has the
long tests too, but for those of versions and of the deployment, and the flow tests once more on a Spark standalone
cluster. Other arguments go to all.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import threading
import time
from pathlib import Path

TESTS = Path(__file__).parent
ENGINE = TESTS / "engine"
CALM = sorted(
    str(ENGINE / f"test_{name}.py")
    for name in ("secrets", "kerberos", "secure_flows", "sign_in", "strimzi_examples", "verify")
)
"""Of the engine's, those that measure no time and are long if all their tests run."""

STANDALONE = ("tests/engine/test_mirror.py", "--standalone")
LOG = Path(".cache/test-others.log")
PYTEST = (sys.executable, "-m", "pytest")
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
    full = "--full" in arguments
    # So the rows are of about one length, and tests with Spark share one.
    first = [ENGINE] if full else [ENGINE, TESTS / "sync", TESTS / "connect"]
    apart = {*first, TESTS / "versions", TESTS / "deploy"} if full else {*first}
    directories = sorted(str(one) for one in {test.parent for test in TESTS.glob("*/test_*.py")} - apart)
    rows = [directories, CALM, list(STANDALONE)] if full else [directories]
    left_out = [f"--ignore={one}" for one in CALM] if full else []
    LOG.parent.mkdir(exist_ok=True)
    others = Beside([[*QUIETLY, *row, *arguments] for row in rows])
    try:
        engine = subprocess.call([*PYTEST, *map(str, first), *left_out, *arguments])
        others.wait()
    finally:
        others.end()
    codes = [engine, *others.codes]
    print(LOG.read_text())
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = f"{(time.monotonic() - began) / 60:.1f} min, {(used.ru_utime + used.ru_stime) / 60:.1f} CPU min"
    print(f"{'failed' if any(codes) else 'all passed'}: {took}")
    return int(any(codes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
