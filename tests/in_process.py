"""The program in this process: for what a verb says, where the start of another Python shows nothing more."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from subprocess import CompletedProcess

from sparkmirror.cli import main


def sparkmirror(*arguments: str) -> CompletedProcess[str]:
    """Run a verb to its end. What it raises, other than an exit, is a traceback to users, so it is raised here too."""
    given, sys.argv = sys.argv, ["sparkmirror", *arguments]
    code = 0
    try:
        with redirect_stdout(io.StringIO()) as stdout, redirect_stderr(io.StringIO()) as stderr:
            try:
                main()
            except SystemExit as end:
                code = int(end.code or 0)
    finally:
        sys.argv = given
    return CompletedProcess(arguments, code, stdout.getvalue(), stderr.getvalue())
