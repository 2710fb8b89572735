"""The files in `examples/`: filled as the page says, each is read and has nothing to warn of; the page names each."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sparkmirror.cli.app import app
from sparkmirror.config.formats import model_of, read
from sparkmirror.lint import check

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = sorted(EXAMPLES.glob("mm2/*.properties"))
DIRECTORIES = sorted(path for path in EXAMPLES.glob("connectors/*") if path.is_dir())
PAGE = (EXAMPLES / "README.md").read_text()
VALUES = {
    "TOPIC_PATTERN": "orders.*",
    "GROUP_PATTERN": ".*",
    "WORKER_GROUP": "w1",
    "SOURCE_ALIAS": "old",
    "TARGET_ALIAS": "new",
    "SOURCE_USER": "ann",
    "TARGET_USER": "ann",
}
PLACEHOLDER = re.compile(r"\$\{(\w+)\}")
SECRET = "hush-hush"


def value(name: str) -> str:
    """Of a placeholder."""
    if name.endswith("_BROKERS"):
        return f"{name.lower().replace('_', '-')}.example:9092"
    return f"/etc/kafka/{name.lower()}.p12" if name.endswith("STORE") else VALUES[name]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of somebody who fills in, and of whoever signs in later."""
    for path in EXAMPLES.rglob("*.*"):
        for name in PLACEHOLDER.findall(path.read_text()) if path.suffix in (".json", ".properties") else ():
            monkeypatch.setenv(name, value(name))
    for side in ("SOURCE", "TARGET"):
        for name in ("PASSWORD", "TRUSTSTORE_PASSWORD", "KEYSTORE_PASSWORD"):
            monkeypatch.setenv(f"{side}_{name}", SECRET)


def fill(path: Path, to: str, target: Path) -> None:
    result = CliRunner().invoke(app, ["convert", "--fill", str(path), "--to", to, "--write", str(target)])
    assert result.exit_code == 0, f"{result.output} {result.exception}"


def wrong_with(path: Path) -> list[str]:
    findings = check(read([str(path)]))
    return [f"{each.rule}: {each.file}: {each.key}: {each.what}" for each in findings if each.severity != "info"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_mm2_properties_file(path: Path, tmp_path: Path) -> None:
    there = tmp_path / "mm2.properties"
    fill(path, "properties", there)
    assert not PLACEHOLDER.findall(there.read_text())
    assert wrong_with(there) == []
    config, _ = model_of(read([str(there)]))
    assert config.flows
    assert not config.warnings


@pytest.mark.parametrize("path", DIRECTORIES, ids=lambda path: path.name)
def test_three_connectors_and_their_worker(path: Path, tmp_path: Path) -> None:
    names = sorted(file.name for file in path.iterdir())
    assert names == ["mm2-checkpoint.json", "mm2-heartbeat.json", "mm2-source.json", "worker.properties"]
    fill(path, "connectors", tmp_path)
    (there,) = tmp_path.iterdir()
    text = "".join(file.read_text() for file in there.iterdir())
    assert not PLACEHOLDER.findall(text)
    assert SECRET not in text
    assert wrong_with(there) == []
    config, _ = model_of(read([str(there)]))
    assert [flow.name for flow in config.flows] == ["old->new"]


@pytest.mark.parametrize("path", [*FILES, *DIRECTORIES], ids=lambda path: path.stem)
def test_it_is_named_what_is_not_filled_in(path: Path, tmp_path: Path) -> None:
    assert any(line.startswith("placeholder") for line in wrong_with(path))


def test_there_are_all_that_people_ask_for() -> None:
    assert len(FILES) == 8
    assert [path.name for path in DIRECTORIES] == ["iam", "mtls", "no-auth", "scram"]


def test_the_page_names_each() -> None:
    links = set(re.findall(r"\]\(([^)#]+)\)", PAGE))
    assert {str(path.relative_to(EXAMPLES)) for path in (*FILES, *DIRECTORIES)} <= links
    assert not [link for link in links if not (EXAMPLES / link).exists()]
    names = {name for path in EXAMPLES.glob("connectors/*/*") for name in PLACEHOLDER.findall(path.read_text())}
    assert not [name for name in names if f"`{name}`" not in PAGE]


def test_the_pages_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (commands,) = re.findall(r"^```\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (tmp_path / "mm2").symlink_to(EXAMPLES / "mm2")
    (tmp_path / "connectors").symlink_to(EXAMPLES / "connectors")
    monkeypatch.chdir(tmp_path)
    for line in commands.splitlines():
        result = CliRunner().invoke(app, shlex.split(line)[1:])
        assert result.exit_code == 0, f"{line}: {result.output} {result.exception}"
    assert sorted(os.listdir()) == ["connect", "connectors", "mm2", "mm2.properties"]
