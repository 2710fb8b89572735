"""JAAS lines beside Java: Kafka 4.3.1's own reader and ours make the same of random ones."""

from __future__ import annotations

import base64
import random
import subprocess
from pathlib import Path

import pytest
from test_jaas import BAD, GOOD

from sparkmirror.config.jaas import parse_jaas
from sparkmirror.demo.jars import BROKER, class_path
from sparkmirror.demo.java import java

PIECES = (
    *(
        "m",
        "required",
        "optional",
        " ",
        "\n",
        ";",
        "=",
        '"',
        "'",
        "\\",
        "a",
        "b1",
        "1",
        "-",
        "-a",
        ".",
        "/",
        "//",
        "/*",
        "*/",
    ),
    *("$x", "_", "é", "\u20ac", "#", "!", '\\"', "\\101", "\\n", 'x="y"', "x='y'", "x=y", " required ", ";", "\u00a0"),
)


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def ours(text: str) -> str:
    try:
        entry = parse_jaas(text)
    except ValueError:
        return "refused"
    pairs = [part for name, value in sorted(entry.options.items()) for part in (name, value)]
    return " ".join("=" + encoded(part) for part in (entry.module, *pairs))


@pytest.mark.full
def test_random_lines_mean_what_they_mean_to_java(tmp_path: Path) -> None:
    dice = random.Random(6)
    lines = [*GOOD, *BAD]
    lines += ["m required " + "".join(dice.choices(PIECES, k=dice.randrange(12))) + ";" for _ in range(20_000)]
    lines += ["".join(dice.choices(PIECES, k=dice.randrange(20))) for _ in range(20_000)]
    source = Path(__file__).with_name("JaasOracle.java")
    answer = subprocess.run(
        [java(), "-cp", class_path(BROKER), str(source)],
        input="".join(encoded(line) + "\n" for line in lines),
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    theirs = answer.stdout.splitlines()
    different = [(line, one, ours(line)) for line, one in zip(lines, theirs, strict=True) if one != ours(line)]
    assert different[:20] == []
    assert sum(one != "refused" for one in theirs) > 1000
