"""Commands of a page in `docs/`, run in its order as a reader would: each `sh` block by a shell of its own.

A `text` block behind one says what must be in its output, a line each; of a line each word, in order.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.kafka_scripts import write_scripts

DOCS = Path(__file__).parents[2] / "docs"


@dataclass(slots=True)
class Block:
    """Commands, and what they must print."""

    line: int
    commands: str
    expected: str = ""


def blocks(page: str) -> list[Block]:
    """The page's, in order."""
    text = (DOCS / page).read_text()
    parts: list[Block] = []
    for match in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        if match[1] == "sh":
            parts.append(Block(text.count("\n", 0, match.start()) + 1, match[2]))
        elif match[1] == "text":
            parts[-1].expected = match[2]
    return parts


class Reader:
    """Somebody who follows a page, in a directory; what was started in the background ends with the context."""

    def __init__(self, directory: Path, addresses: Mapping[str, str]) -> None:
        """`addresses`: what stands in the place of the page's own."""
        self._directory = directory
        self._addresses = addresses
        scripts = write_scripts(directory / "kafka" / "bin")
        ours = Path(sys.executable).parent
        kept = {key: value for key, value in os.environ.items() if key != "PYSPARK_PYTHON"}
        self._environment = kept | {"PATH": f"{scripts}:{ours}:{os.environ['PATH']}"}
        self._groups: list[int] = []

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        for group in self._groups:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)

    def follow(self, page: str, timeout_s: float = 600.0) -> None:
        """Run all that the page says."""
        self.follow_blocks(page, blocks(page), timeout_s)

    def follow_blocks(self, page: str, some: Iterable[Block], timeout_s: float = 600.0) -> None:
        """Run some of what the page says."""
        for block in some:
            printed = self.run(block.commands, timeout_s, f"{page}:{block.line}")
            for line in block.expected.splitlines():
                pattern = r"\s+".join(re.escape(word) for word in line.split())
                assert re.search(pattern, printed), f"{page}:{block.line} does not print {line!r}: {printed}"

    def run(self, commands: str, timeout_s: float, spot: str) -> str:
        """One block; returns what it has printed on standard output."""
        for old, new in self._addresses.items():
            commands = commands.replace(old, new)
        output, errors = self._directory / "block.out", self._directory / "block.err"
        with output.open("wb") as out, errors.open("wb") as err:
            shell = subprocess.Popen(
                ["bash", "-e", "-u", "-o", "pipefail", "-c", commands],
                cwd=self._directory,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
            self._groups.append(shell.pid)
            try:
                code = shell.wait(timeout_s)
            except subprocess.TimeoutExpired:
                code = -1
        printed = output.read_text(errors="replace")
        assert code == 0, f"{spot}: exit code {code}\n{printed}\n{errors.read_text(errors='replace')}\n{self._logs()}"
        return printed

    def _logs(self) -> str:
        return "\n".join(
            f"--- {log.name}\n{log.read_text(errors='replace')[-3000:]}" for log in self._directory.glob("*.log")
        )
