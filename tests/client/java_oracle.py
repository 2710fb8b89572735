"""MirrorMaker 2's own classes, asked through a small Java program next to this file."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from sparkmirror.demo.jars import MIRROR_MAKER, class_path
from sparkmirror.demo.java import java

SOURCE = Path(__file__).with_name("Oracle.java")
COMPILER = ("org.eclipse.jdt:ecj:3.38.0",)
"""A Java compiler that needs no JDK."""


class JavaOracle:
    """The program, compiled and running for the length of a `with`; `settings` are the client's."""

    def __init__(self, directory: Path, settings: Mapping[str, str]) -> None:
        self._directory = directory
        self._settings = settings
        self._class_path = class_path(MIRROR_MAKER)

    def __enter__(self) -> Self:
        subprocess.run(
            [
                *(java(), "-cp", class_path(COMPILER), "org.eclipse.jdt.internal.compiler.batch.Main"),
                *("-17", "-proc:none", "-nowarn", "-cp", self._class_path, "-d", str(self._directory), str(SOURCE)),
            ],
            check=True,
        )
        self._log = (self._directory / "oracle.log").open("wb")
        self._process = subprocess.Popen(
            [
                *(java(), "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", f"{self._directory}:{self._class_path}"),
                *("Oracle", *(f"{key}={value}" for key, value in self._settings.items())),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            encoding="utf-8",
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()
        self._log.close()

    def ask(self, *question: object) -> list[str]:
        """The answer's items; what Java throws fails the test."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write("\t".join(map(str, question)) + "\n")
        stdin.flush()
        items: list[str] = []
        for line in stdout:
            text = line.rstrip("\n")
            if text == ".":
                assert not any(item.startswith("failed: ") for item in items), f"{question}: {items}"
                return items
            if text.startswith("> "):
                items.append(text[2:])
        raise AssertionError(f"Java ended: {(self._directory / 'oracle.log').read_text()[-2000:]}")
