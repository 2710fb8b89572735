"""The program in this process: for what a verb says, where the start of another Python shows nothing more."""

from __future__ import annotations

import io
import logging
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from subprocess import CompletedProcess

from sparkmirror.cli import main


def sparkmirror(*arguments: str) -> CompletedProcess[str]:
    """Run a verb to its end. What it raises, other than an exit, is a traceback to users, so it is raised here too."""
    given, sys.argv = sys.argv, ["sparkmirror", *arguments]
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    code = 0
    try:
        with redirect_stdout(io.StringIO()) as stdout, redirect_stderr(io.StringIO()) as stderr:
            try:
                main()
            except SystemExit as end:
                code = int(end.code or 0)
    finally:
        sys.argv = given
        for number, handler in handlers.items():
            signal.signal(number, handler)
    return CompletedProcess(arguments, code, stdout.getvalue(), stderr.getvalue())


@contextmanager
def own_log() -> Iterator[None]:
    """Let a verb set up the log as in a process of its own: the handlers of this process are away meanwhile."""
    handlers, level = logging.root.handlers[:], logging.root.level
    logging.root.handlers[:] = []
    try:
        yield
    finally:
        logging.root.handlers[:] = handlers
        logging.root.setLevel(level)
