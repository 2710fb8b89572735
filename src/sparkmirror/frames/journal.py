"""A verification's journal, which makes it resumable.

The journal has JSON lines for the plan, and then for each finished range.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

from sparkmirror.errors import ConfigError
from sparkmirror.frames.ranges import PartitionPlan
from sparkmirror.frames.report import RangeReport

_BEGINS = '{"scope": '


class Journal:
    """A journal file; a journal with a different `scope` (set of options) is refused."""

    def __init__(self, path: Path, scope: str) -> None:
        self._path = path
        self._scope = scope
        self._file: IO[str] | None = None

    def load(self) -> tuple[list[PartitionPlan], list[RangeReport]] | None:
        """Return the plan and the finished ranges; `None` without a complete plan."""
        try:
            lines = self._path.read_text().splitlines()
        except FileNotFoundError:
            return None
        except UnicodeDecodeError as error:
            raise self._not_one(1) from error
        except OSError as error:
            raise ConfigError(error.strerror or str(error), origin=str(self._path)) from error
        first = lines[0] if lines else ""
        if not (first.startswith(_BEGINS) or (len(lines) == 1 and _BEGINS.startswith(first)) or not any(lines)):
            raise self._not_one(1)
        plans: list[PartitionPlan] = []
        reports: list[RangeReport] = []
        planned = False
        for number, line in enumerate(lines):
            cut_off = number + 1 == len(lines) or not lines[number + 1]
            try:
                if not line:
                    continue
                (kind, value), *_ = json.loads(line).items()
                if kind == "scope":
                    self._check(value)
                elif kind == "plan":
                    plans.append(PartitionPlan.model_validate(value))
                elif kind == "planned":
                    planned = True
                elif kind == "done":
                    reports.append(RangeReport.model_validate(value))
            except (ValueError, AttributeError) as error:
                if not cut_off:
                    raise self._not_one(number + 1) from error
        return (plans, reports) if planned else None

    def begin(self, plans: Iterable[PartitionPlan]) -> None:
        self._file = self._opened("w")
        self._write("scope", self._scope)
        for plan in plans:
            self._write("plan", plan.model_dump())
        self._write("planned", True)
        self._file.flush()

    def append(self, reports: Iterable[RangeReport]) -> None:
        if self._file is None:
            self._file = self._opened("a")
            self._file.write("\n\n")  # an empty line follows a line that may be cut off
        for report in reports:
            self._write("done", report.model_dump())
        self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _opened(self, mode: str) -> IO[str]:
        try:
            return self._path.open(mode)
        except OSError as error:
            raise ConfigError(error.strerror or str(error), origin=str(self._path)) from error

    def _write(self, kind: str, value: Any) -> None:
        if self._file is not None:
            json.dump({kind: value}, self._file)
            self._file.write("\n")

    def _not_one(self, line: int) -> ConfigError:
        return ConfigError(f"line {line} is not of a verification's journal; name another file", origin=str(self._path))

    def _check(self, scope: object) -> None:
        if scope != self._scope:
            raise ConfigError(
                "it is the journal of a verification of something else; name another file", origin=str(self._path)
            )
