"""`sparkmirror migration` as a command line, killed at will, and the hooks that it asks."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Self

COMMAND = str(Path(sys.executable).with_name("sparkmirror"))
_TIMEOUT_S = 300.0
_OWN_SECONDS = re.compile(r"\((\d+\.\d+) s of this tool\)")

Asked = Callable[[str, str], None]
"""What is done in a hook, by `before` or `after` and the step."""


@dataclass(slots=True)
class ToolRun:
    """One run of the command line."""

    words: str
    code: int | None = None
    """Exit code; below 0 if it was killed."""
    lines: list[tuple[float, str]] = field(default_factory=list)
    """What it printed, and when by the wall clock."""

    @property
    def text(self) -> str:
        """All that it printed."""
        return "\n".join(line for _, line in self.lines)

    @property
    def own_s(self) -> float:
        """Seconds that the tool says it has needed itself; 0: it did not say."""
        return sum(float(found) for found in _OWN_SECONDS.findall(self.text))


class Hooks:
    """A service that a migration's hooks ask; as a context it listens."""

    def __init__(self) -> None:
        self.asked: Asked = lambda when, step: None
        self.seen: list[tuple[str, str]] = []
        """All questions so far, as `before` or `after` and the step."""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                told = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.seen.append((told["when"], told["step"]))
                outer.asked(told["when"], told["step"])
                self.send_response(204)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class Tool:
    """Runs the verbs of one migration.

    Each is a process of its own, forked from one that has imported the program: on a busy machine imports take longer
    than a switch.
    """

    def __init__(self, migration: Path) -> None:
        self._migration = migration
        self._processes = multiprocessing.get_context("forkserver")
        self._processes.set_forkserver_preload(["sparkmirror.cli.app", "chaos.switches.round"])
        self._process: BaseProcess | None = None
        self.runs: list[ToolRun] = []

    def run(self, *verb: str, on_line: Callable[[str], None] = lambda _: None) -> ToolRun:
        """Run a verb to its end, such as `switch` and `all`; `on_line` gets each line as it comes."""
        run = ToolRun(" ".join(verb))
        self.runs.append(run)
        printed, printing = self._processes.Pipe(duplex=False)
        arguments = ["sparkmirror", "migration", *verb, str(self._migration)]
        self._process = self._processes.Process(target=_verb, args=(arguments, printing), daemon=True)
        self._process.start()
        printing.close()
        timer = threading.Timer(_TIMEOUT_S, self._process.kill)
        timer.start()
        try:
            with os.fdopen(os.dup(printed.fileno()), encoding="utf-8") as lines:
                for line in lines:
                    run.lines.append((time.time(), line.rstrip("\n")))
                    on_line(line)
            self._process.join()
            run.code = self._process.exitcode
        finally:
            timer.cancel()
            printed.close()
        return run

    def kill(self, delay_s: float) -> None:
        """SIGKILL to the run after so many seconds."""
        if self._process is not None:
            threading.Timer(delay_s, self._process.kill).start()


def _verb(arguments: list[str], printing: Connection) -> None:
    from sparkmirror.cli import main

    for number in (1, 2):
        os.dup2(printing.fileno(), number)
    printing.close()
    sys.argv = arguments
    main()
