"""`sparkmirror config` prints what counts, or one line that says why the file can't be run."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from sparkmirror.cli.app import app, main

FILE = """\
clusters = A, B, C
bootstrap.servers = 127.0.0.1:1
A->B.enabled = true
A->C.enabled = true
tasks.max = 3
A->C.tasks.max = 4
security.protocol = SSL
ssl.key.password = hunter2
acks = 1
A.consumer.acks = 1
"""


def write(path: Path, lines: str = "") -> str:
    file = path / "mm2.properties"
    file.write_text(FILE + lines)
    return str(file)


def rows(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.splitlines()]


def test_lines_for_a_pipe(tmp_path: Path) -> None:
    file = write(tmp_path)
    result = CliRunner().invoke(app, ["config", file, "--spark", "spark.master=local[7]"])
    assert result.exit_code == 0
    printed = rows(result.stdout)
    assert all(len(row) == 4 for row in printed)
    assert ["A->B", "tasks.max", "3", f"{file}: tasks.max"] in printed
    assert ["A->C", "tasks.max", "4", f"{file}: A->C.tasks.max"] in printed
    assert ["*", "spark.master", "local[7]", "command line: spark.master"] in printed
    assert "hunter2" not in result.output


def test_chosen_targets(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["config", write(tmp_path), "--clusters", "C"])
    assert {row[0] for row in rows(result.stdout) if row[1].endswith("enabled") and row[2] == "true"} >= {"A->C"}
    assert "A->B" not in {row[0] for row in rows(result.stdout)}


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("tasks.max = many\n", "mm2.properties, line 11: tasks.max: 'many' is not allowed"),
        ("topics = a(\n", "sparkmirror: flow A->B: topics"),
        ("A->C.groups.exclude = [\n", "sparkmirror: flow A->C: groups"),
        ("group.filter.class = no.such:Filter\n", "group.filter.class: there is no module no"),
        ("replication.policy.class = pathlib:Path\n", "sparkmirror: flow A->B: replication.policy.class: "),
    ],
)
def test_a_wrong_file_is_one_line_and_exit_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], line: str, says: str
) -> None:
    file = write(tmp_path, line)
    monkeypatch.setattr("sys.argv", ["sparkmirror", "config", file])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert says in printed.err
    assert len(printed.err.splitlines()) == 1
