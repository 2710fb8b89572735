"""All tests, for `make test-full`: the parts' own beside the flows', which mostly wait for brokers and leases.

The flows come to the terminal: whole mirrors under kills and load, with time limits. The parts, without Spark, take
what the flows leave of the machine, and are printed at the end. Arguments go to both.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

FLOWS = ("bench", "chaos", "connect", "engine")
STANDALONE = ("tests/engine/test_mirror.py", "--standalone")
LOG = Path(".cache/test-full-parts.log")
PYTEST = (sys.executable, "-m", "pytest", "--full")


def main(arguments: list[str]) -> int:
    """The exit code: 0 if all passed."""
    began = time.monotonic()
    tests = Path(__file__).parent
    parts = sorted(str(one.parent) for one in tests.glob("*/test_*.py") if one.parent.name not in FLOWS)
    LOG.parent.mkdir(exist_ok=True)
    with LOG.open("w") as log:
        beside = subprocess.Popen(
            ["nice", "-n", "10", *PYTEST, "-p", "no:cacheprovider", *dict.fromkeys(parts), *arguments],
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            codes = [subprocess.call([*PYTEST, *(str(tests / one) for one in FLOWS), *arguments])]
            codes.append(subprocess.call([*PYTEST, *STANDALONE, *arguments]))
            codes.append(beside.wait())
        finally:
            beside.terminate()
            beside.wait()
    print(LOG.read_text())
    print(f"{'all passed' if not any(codes) else 'failed'}: {(time.monotonic() - began) / 60:.1f} min")
    return int(any(codes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
