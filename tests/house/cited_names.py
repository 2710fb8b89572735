"""Names of ours that pages cite in backticks: files, what a file defines, tests, modules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.support.links import text_of

_SPAN = re.compile(r"`([^`\n]+)`")
_FILE = re.compile(r"(?<![\w./*-])(?!/)[\w./*-]+\.py\b")
_TEST = re.compile(r"(?:(?<![\w/.])([\w./]+?)(?:\.py)?(?:::|\.))?\b(test_\w+)(?![\w/*.])")
_MODULE = re.compile(r"(?<![\w.])sparkmirror((?:\.\w+)+)")
_IN_FILE = re.compile(r"`([\w./]+\.py)`(?: \(|, )`(\w+)(?:\.(?!py\b)(\w+))?`")
_PLACEHOLDER = re.compile(r"[A-Z]{2,}")


class Names:
    """The names that a repository has: files, tests and modules of its package."""

    def __init__(self, root: Path, package: Path, folders: tuple[str, ...], settings: Path) -> None:
        """Read the code in `folders`; `settings` is the page of all settings, which look like modules."""
        self.files = [file for folder in folders for file in sorted((root / folder).rglob("*.py"))]
        self._homes = (root, package, root / "tests")
        self._package = package
        self._strings = set(re.findall(r"`(sparkmirror\.[\w.]+)`", settings.read_text("utf-8"))).union(
            *(re.findall(r'"(sparkmirror\.[\w.]+)"', text_of_code(file)) for file in package.rglob("*.py"))
        )
        """Settings, and other names that the code has as a string."""
        self._tests = {
            (file.stem, name)
            for file in (root / "tests").rglob("test_*.py")
            for name in re.findall(r"^ *def (test_\w+)", text_of_code(file), re.MULTILINE)
        }

    def unknown(self, page: Path) -> Iterator[str]:
        """Yield each cited name that is not there; names in capitals in a path stand for any name."""
        text = text_of(page)
        for span in _SPAN.findall(text):
            yield from (path for path in _FILE.findall(span) if not self.named(path))
            yield from (test[0] for test in _TEST.finditer(span) if not self._has_test(test[1] or "", test[2]))
            yield from (f"sparkmirror{rest}" for rest in _MODULE.findall(span) if not self._has_module(rest[1:]))
        for path, *names in _IN_FILE.findall(text):
            code = "".join(map(text_of_code, self.named(path)))
            yield from (f"{path}: {name}" for name in names if name and not re.search(rf"\b{name}\b", code))

    def named(self, path: str) -> list[Path]:
        """Return the files that a path, or a file's mere name, stands for."""
        pattern = _PLACEHOLDER.sub("*", path)
        if "/" not in pattern:
            return [file for file in self.files if file.match(pattern)]
        return [file for home in self._homes for file in home.glob(pattern)]

    def _has_test(self, place: str, name: str) -> bool:
        stem = place.rpartition("/")[2].rpartition(".")[2]
        if any(home == name for home, _ in self._tests):
            return True  # the name is a file's
        return any(name == test and stem in ("", home) for home, test in self._tests)

    def _has_module(self, dotted: str) -> bool:
        if f"sparkmirror.{dotted}" in self._strings:
            return True
        names, at = dotted.split("."), self._package
        while names and (at / names[0]).is_dir():
            at /= names.pop(0)
        file = at / f"{names.pop(0)}.py" if names and (at / f"{names[0]}.py").exists() else at / "__init__.py"
        return at != self._package and all(re.search(rf"\b{name}\b", text_of_code(file)) for name in names)


@cache
def text_of_code(file: Path) -> str:
    """A module's text."""
    return file.read_text("utf-8")
