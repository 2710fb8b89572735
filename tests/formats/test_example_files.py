"""The files in `examples/`: filled with values, each is read and has nothing to warn of; the page names each."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sparkmirror.formats import explain, read
from sparkmirror.lint import check

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = sorted(EXAMPLES.glob("mm2/*.properties"))
DIRECTORIES = sorted(path for path in EXAMPLES.glob("connectors/*") if path.is_dir())
VALUES = {
    "TOPICS": "orders.*",
    "GROUPS": ".*",
    "WORKER_GROUP": "mirror",
    "SOURCE_ALIAS": "old",
    "TARGET_ALIAS": "new",
    "SOURCE_USER": "mirror",
    "TARGET_USER": "mirror",
}
PLACEHOLDER = re.compile(r"\$\{(\w+)\}")


def value(name: str) -> str:
    """Of a placeholder."""
    if name.endswith("_BROKERS"):
        return f"{name.lower().replace('_', '-')}.example:9092"
    return f"/etc/kafka/{name.lower()}.p12" if name.endswith("STORE") else VALUES[name]


def filled(path: Path, directory: Path) -> Path:
    target = directory / path.name
    target.write_text(PLACEHOLDER.sub(lambda name: value(name[1]), path.read_text()))
    return target


def wrong_with(path: Path) -> list[str]:
    findings = check(read([str(path)]))
    return [f"{one.rule}: {one.file}: {one.key}: {one.what}" for one in findings if one.severity != "info"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_mm2_properties_file(path: Path, tmp_path: Path) -> None:
    there = filled(path, tmp_path)
    assert wrong_with(there) == []
    config, _ = explain(read([str(there)]))
    assert config.flows
    assert not config.warnings


@pytest.mark.parametrize("path", DIRECTORIES, ids=lambda path: path.name)
def test_three_connectors_and_their_worker(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for side in ("SOURCE", "TARGET"):
        for name in ("PASSWORD", "TRUSTSTORE_PASSWORD", "KEYSTORE_PASSWORD"):
            monkeypatch.setenv(f"{side}_{name}", "hush")
    names = sorted(one.name for one in path.iterdir())
    assert names == ["mm2-checkpoint.json", "mm2-heartbeat.json", "mm2-source.json", "worker.properties"]
    for one in path.iterdir():
        filled(one, tmp_path)
    assert wrong_with(tmp_path) == []
    config, _ = explain(read([str(tmp_path)]))
    assert [flow.name for flow in config.flows] == ["old->new"]
    assert "hush" not in "".join(one.read_text() for one in tmp_path.iterdir())


def test_there_are_all_that_people_ask_for() -> None:
    assert len(FILES) == 8
    assert [path.name for path in DIRECTORIES] == ["iam", "mtls", "no-auth", "scram"]


def test_the_page_names_each() -> None:
    page = (EXAMPLES / "README.md").read_text()
    links = set(re.findall(r"\]\(([^)#]+)\)", page))
    assert {str(path.relative_to(EXAMPLES)) for path in (*FILES, *DIRECTORIES)} <= links
    assert not [link for link in links if not (EXAMPLES / link).exists()]
    names = {name for path in EXAMPLES.glob("connectors/*/*") for name in PLACEHOLDER.findall(path.read_text())}
    assert not [name for name in names if f"`{name}`" not in page]
