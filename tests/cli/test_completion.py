"""What shells complete: verbs, options and values; and the script that each shell is given."""

from __future__ import annotations

import re

import pytest
from typer.testing import CliRunner

from sparkmirror.cli.app import app

SHELLS = ("bash", "zsh", "fish")


def said(**variables: str) -> str:
    """What the program prints that a shell asks."""
    return CliRunner().invoke(app, [], prog_name="sparkmirror", env=variables).stdout


def completed(shell: str, line: str) -> list[str]:
    """What the shell's script is told for a line that ends where the cursor is; without the helps."""
    if shell == "bash":
        words = line.split(" ")
        return said(_SPARKMIRROR_COMPLETE="complete_bash", COMP_WORDS=line, COMP_CWORD=str(len(words) - 1)).splitlines()
    found = said(
        _SPARKMIRROR_COMPLETE=f"complete_{shell}", _TYPER_COMPLETE_ARGS=line, _TYPER_COMPLETE_FISH_ACTION="get-args"
    )
    if shell == "fish":
        return [one.partition("\t")[0] for one in found.splitlines()]
    return re.findall(r'^(?:.*\(\()?"([^"]+)"', found, re.MULTILINE)


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("sparkmirror th", ["throttle"]),
        ("sparkmirror sync-groups --cons", ["--consumerGroupID"]),
        ("sparkmirror version -o ", ["text", "json"]),
        ("sparkmirror version --output j", ["json"]),
    ],
    ids=["verb", "option", "value", "value-begun"],
)
def test_verbs_options_and_values_are_completed(shell: str, line: str, expected: list[str]) -> None:
    assert completed(shell, line) == expected


@pytest.mark.parametrize(
    ("shell", "marks"),
    [
        ("bash", ["complete -o default -F _sparkmirror_completion sparkmirror", "=complete_bash"]),
        ("zsh", ["#compdef sparkmirror", "compdef _sparkmirror_completion sparkmirror", "=complete_zsh"]),
        ("fish", ["complete --command sparkmirror", "=complete_fish"]),
    ],
)
def test_each_shell_has_its_script(shell: str, marks: list[str]) -> None:
    script = said(_SPARKMIRROR_COMPLETE=f"source_{shell}")
    assert [mark for mark in marks if mark not in script] == []
    assert "_SPARKMIRROR_COMPLETE" in script
