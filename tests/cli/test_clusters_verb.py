"""`sparkmirror clusters --accept-source`, over stand-ins for what the clusters say and what is written down."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from sparkmirror.cli import clusters as verb
from sparkmirror.cli.app import app
from sparkmirror.errors import ConfigError
from sparkmirror.exact.durable.source_cluster import SourceCluster
from sparkmirror.mirror.engine.accepted_source import AgreedSource, FlowClusters

FILE = "clusters = A, B\nA.bootstrap.servers = 127.0.0.1:1\nB.bootstrap.servers = 127.0.0.1:1\nA->B.enabled = true\n"
BACK = "B->A.enabled = true\n"


@pytest.fixture
def accepted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The flows whose source was accepted; another cluster answers as the source of each."""
    names: list[str] = []
    look = FlowClusters(AgreedSource(SourceCluster(0, "old"), 3), "new", "target", source_tells_topics_apart=True)
    monkeypatch.setattr(verb, "flow_clusters", lambda _: look)
    monkeypatch.setattr(verb, "accept_source", lambda flow, _: names.append(flow.name))
    return names


@pytest.mark.parametrize(
    ("content", "flow", "now"), [(FILE, (), "A->B"), (FILE + BACK, ("--flow", "B->A"), "B->A")], ids=["only", "named"]
)
def test_the_only_flow_needs_no_name(
    accepted: list[str], tmp_path: Path, content: str, flow: tuple[str, ...], now: str
) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(content)
    done = CliRunner().invoke(app, ["clusters", str(file), "--accept-source", *flow])
    assert (done.exit_code, accepted) == (0, [now]), done.output


def test_of_several_flows_one_must_be_named(accepted: list[str], tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(FILE + BACK)
    done = CliRunner().invoke(app, ["clusters", str(file), "--accept-source"])
    assert isinstance(done.exception, ConfigError)
    assert str(done.exception) == f"--flow: {file} has several flows: A->B, B->A; choose one"
    assert accepted == []
