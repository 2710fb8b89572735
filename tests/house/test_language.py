"""Docstrings, attribute notes and names of variables keep to CONTRIBUTING.md's rules 4 to 6, without an exception."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.house.language import MOST_OF, MOST_PRONOUNS, faults, of_share, pronoun_share, python_files, read

import sparkmirror

SOURCE = Path(sparkmirror.__file__).parent
PACKAGES = sorted({file.parent for place in (SOURCE, SOURCE.parents[1] / "lab") for file in python_files(place)})


def files_of(package: Path) -> list[Path]:
    """The package's own modules."""
    return sorted(package.glob("*.py"))


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_sentences_and_names(package: Path) -> None:
    assert [fault for file in files_of(package) for fault in faults(file)] == []


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_nouns_instead_of_pronouns(package: Path) -> None:
    assert pronoun_share(note.text for file in files_of(package) for note in read(file).notes) <= MOST_PRONOUNS


def test_verbs_instead_of_genitives() -> None:
    assert (
        of_share(note.text for package in PACKAGES for file in files_of(package) for note in read(file).notes)
        <= MOST_OF
    )


def test_faults_would_be_seen(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text(
        '"""What comes first."""\n'
        "class Claim:\n"
        '    """A claim."""\n'
        "    size: int\n"
        f'    """{"Long " * 20}."""\n'
        "    where: str\n"
        "def look(where: str) -> None:\n"
        "    for one in where:\n"
        "        pass\n"
        "class Account:\n"
        '    """Account of a run that goes on beside it, `anew`."""\n'
    )
    assert [fault.removeprefix(f"{file}:") for fault in faults(file)] == [
        "1 begins with 'what'",
        "5 the first line has 101 characters",
        "11 begins with 'Account of': a verb says it",
        "11 says 'beside'",
        "11 says 'goes on'",
        "7 where is no variable's name",
        "8 one is no variable's name",
    ]
    assert pronoun_share(["It is what they see."]) == 0.6
