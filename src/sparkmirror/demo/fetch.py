"""Download the brokers' needs: `python -m sparkmirror.demo.fetch java`.

Prints each thing's path. Things that are in the cache are not fetched again. Progress goes to standard error.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from sparkmirror.demo.jars import BROKER, MIRROR_MAKER, broker_jars, jar_directory
from sparkmirror.demo.java import java_home
from sparkmirror.errors import SetupError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

THINGS: dict[str, Callable[[], Path]] = {
    "java": java_home,
    "broker": lambda: jar_directory(BROKER),
    "broker-2.8.2": lambda: jar_directory(broker_jars("2.8.2")),
    "broker-3.6.2": lambda: jar_directory(broker_jars("3.6.2")),
    "mirror-maker": lambda: jar_directory(MIRROR_MAKER),
}


def main(arguments: Sequence[str]) -> int:
    """Get each thing that `arguments` name; return the exit code."""
    unknown = [name for name in arguments if name not in THINGS]
    if unknown or not arguments:
        print(f"usage: python -m sparkmirror.demo.fetch {{{'|'.join(THINGS)}}} ...", file=sys.stderr)
        return 2
    try:
        for name in arguments:
            print(THINGS[name]())
    except SetupError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
