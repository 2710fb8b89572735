"""Verbs of `sparkmirror migration` at real clusters without a mirror: what they print as JSON, and what blocks them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from lab import KafkaCluster
from tests.migrate.test_checks_on_clusters import commit, write_files
from tests.support import mirror_process as mp
from typer.testing import CliRunner

import sparkmirror as sm
from sparkmirror.cli.app import app
from sparkmirror.migrate.file import MigrationFile, json_schema

pytestmark = [pytest.mark.broker, pytest.mark.full]

Pair = tuple[KafkaCluster, KafkaCluster]
PAGE = Path(__file__).parents[2] / "docs" / "cli.md"


def keys_told(verb: str) -> set[str]:
    """The fields that the page names for a verb."""
    items = re.findall(r"^- \*\*(.+?)\*\*: (.*\n(?: +.*\n)*)", PAGE.read_text(), re.MULTILINE)
    return {name for verbs, text in items if verb in verbs.split(", ") for name in re.findall(r"`(\w+)`", text)}


@pytest.fixture
def file(cluster_pair: Pair, topic_name: str, tmp_path: Path) -> Path:
    """A migration of a topic of ten records, of which its group has read four."""
    source, _ = cluster_pair
    mp.create_topic(source.bootstrap_servers, topic_name, 1)
    mp.produce(source.bootstrap_servers, topic_name, 1, 10)
    commit(source, f"{topic_name}-group", topic_name, 4)
    return write_files(tmp_path, cluster_pair, topic_name, fence="none")


def printed(code: int, *words: str) -> Any:
    """What a verb prints as JSON; it ends with this exit code."""
    result = CliRunner().invoke(app, ["migration", *words, "-o", "json"])
    assert result.exit_code == code, (result.output, result.exception)
    return json.loads(result.stdout)


def test_a_first_file_is_written(file: Path, topic_name: str) -> None:
    mirror = str(file.with_name("mm2.properties"))
    told = printed(0, "new", mirror)
    MigrationFile.model_validate(told)
    assert told["sets"][0]["topics"] == [topic_name]
    assert told["sets"][0]["groups"] == [f"{topic_name}-group"]
    assert told["flow"] == "A->B"
    text = CliRunner().invoke(app, ["migration", "new", mirror]).stdout
    assert yaml.safe_load(text) == told
    assert printed(0, "schema") == json_schema()


def test_the_changes_are_told(file: Path, topic_name: str) -> None:
    told = printed(0, "plan", str(file))
    assert [each["name"] for each in told["created"]] == [topic_name]
    assert told.keys() <= keys_told("migration plan")
    lines = CliRunner().invoke(app, ["migration", "plan", str(file)]).stdout
    assert f"+ topic {topic_name}" in lines


def test_without_a_mirror_nothing_can_be_rehearsed(file: Path, topic_name: str) -> None:
    quick = yaml.safe_load(file.read_text()) | {"policies": {"drain": "1 s"}}
    file.write_text(yaml.safe_dump(quick))
    (row,) = printed(1, "rehearse", str(file))
    assert (row["group"], row["committed"], row["equal"]) == (f"{topic_name}-group", 4, 0)
    assert row["result"] in ("lag", "unknown")
    assert row.keys() <= keys_told("migration rehearse")
    refused = CliRunner().invoke(app, ["migration", "rehearse", str(file), "--group", "stranger"])
    assert "no set has it" in str(refused.exception)


def test_without_a_mirror_nothing_moves(file: Path, topic_name: str) -> None:
    (row,) = printed(0, "status", str(file))
    assert (row["set"], row["phase"], row["producers"], row["canSwitch"]) == ("shop", "copying", "A", False)
    assert row.keys() <= keys_told("migration status")
    for words in (["switch", "consumers"], ["switch", "producers"]):
        (row,) = printed(1, *words, str(file), "--yes")
        assert row["outcome"] == "blocked"
        assert "mirror-down" in {each["id"] for each in row["blockers"]}
        assert row.keys() <= keys_told("migration switch")
    (row,) = printed(0, "reverse", str(file), "--yes")
    assert row["words"] == "shop: nothing is left to do"
    (row,) = printed(1, "complete", str(file), "--yes")
    assert (row["complete"], row["blockers"][0]["id"]) == (False, "not-moved")
    assert row.keys() <= keys_told("migration complete")


def test_the_lines_of_the_python_page(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (block,) = re.findall(r"## A migration\n\n```python\n(.+?)```", (PAGE.parent / "python.md").read_text(), re.DOTALL)
    monkeypatch.chdir(file.parent)
    exec(block, {"sm": sm})  # noqa: S102 - the page's own code
    told = capsys.readouterr().out
    assert "fail mirror-down no mirror works on A->B start it: `sparkmirror run`" in told
    assert "set 1 exact positions at B" in told
    assert "shop: mirror-down: no mirror works on A->B" in told
    assert "[('shop', False, False)]" in told
