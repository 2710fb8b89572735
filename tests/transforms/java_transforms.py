"""Connect's own transforms, asked through a small Java program next to this file."""

from __future__ import annotations

import base64
import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparkmirror.demo.jars import MIRROR_MAKER, class_path
from sparkmirror.demo.java import java
from sparkmirror.transforms import Record

PACKAGE = "org.apache.kafka.connect.transforms."
PREDICATES = PACKAGE + "predicates."
_SHORTEST_DIGITS = 19
"""Java's first version that writes floating-point numbers with the shortest digits (JDK-4511638)."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A predicate of a stage."""

    type: str
    options: Mapping[str, str]
    negate: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A transform, and the converters around it; `after` is the key's behind it, if it is another."""

    type: str
    options: Mapping[str, str]
    key: str = "bytes"
    value: str = "bytes"
    after: str = ""
    condition: Condition | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What Java says: a record, none, or an error."""

    record: Record | None
    taken: tuple[bool, ...] = ()
    """Whether MirrorMaker 2's own converter takes each header."""
    error: str = ""
    """When there was an error: `config` or `record`; else empty."""
    words: str = ""


def newest_java() -> str:
    """An installed Java that writes floating-point numbers as the code does; else the one for all tests."""
    for candidate in (java(), *sorted(map(str, Path("/usr/lib/jvm").glob("*/bin/java")))):
        told = subprocess.run([candidate, "-version"], capture_output=True, text=True, timeout=60, check=False).stderr
        version = re.search(r'version "(\d+)', told)
        if version is not None and int(version[1]) >= _SHORTEST_DIGITS:
            return candidate
    return java()


class JavaTransforms:
    """One JVM that is asked again and again."""

    def __init__(self) -> None:
        source = Path(__file__).with_name("TransformOracle.java")
        self._process = subprocess.Popen(
            [newest_java(), "-XX:TieredStopAtLevel=1", "-cp", class_path(MIRROR_MAKER), str(source)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
        )
        self.version = int(self._line())
        self.writes_shortest = self.version >= _SHORTEST_DIGITS

    def ask(self, record: Record, stages: Sequence[Stage]) -> Answer:
        assert self._process.stdin is not None
        question = {"record": _given(record), "stages": [_stage(stage) for stage in stages]}
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._line())
        if "error" in answer:
            return Answer(None, error=answer["error"], words=f"{answer['class']}: {answer['message']}")
        made = answer["record"]
        if made is None:
            return Answer(None)
        return Answer(
            Record(
                topic=made["topic"],
                partition=made["partition"],
                timestamp=made["timestamp"],
                key=_bytes(made["key"]),
                value=_bytes(made["value"]),
                headers=tuple((name, _bytes(content)) for name, content, _ in made["headers"]),
            ),
            tuple(taken == "bytes" for _, _, taken in made["headers"]),
        )

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "Java ended"
        return line


def _given(record: Record) -> dict[str, Any]:
    return {
        "topic": record.topic,
        "partition": record.partition,
        "timestamp": record.timestamp,
        "key": _text(record.key),
        "value": _text(record.value),
        "headers": [[name, _text(content)] for name, content in record.headers],
    }


def _stage(stage: Stage) -> dict[str, Any]:
    made = {
        "type": PACKAGE + stage.type,
        "options": dict(stage.options),
        "key": stage.key,
        "value": stage.value,
        "keyAfter": stage.after or stage.key,
    }
    condition = stage.condition
    if condition is None:
        return made
    return {
        **made,
        "predicate": {"type": PREDICATES + condition.type, "options": dict(condition.options)},
        "negate": condition.negate,
    }


def _text(content: bytes | None) -> str | None:
    return None if content is None else base64.b64encode(content).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
