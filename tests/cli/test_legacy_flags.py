"""The flags of kafka-mirror-maker.sh: accepted, or refused in one line that says what to do."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sparkmirror import __version__
from sparkmirror.cli.app import app
from sparkmirror.errors import ClusterUnreachable, ConfigError


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    for name, more in (("c", "group.id=mirror\n"), ("p", "")):
        (tmp_path / f"{name}.properties").write_text("bootstrap.servers=127.0.0.1:1\n" + more)
    return [str(tmp_path / "c.properties"), str(tmp_path / "p.properties")]


def legacy(files: list[str], *flags: str, long: bool = True) -> tuple[BaseException | None, int]:
    end = ".config" if long else ""
    result = CliRunner().invoke(app, ["legacy", f"--consumer{end}", files[0], f"--producer{end}", files[1], *flags])
    return result.exception, result.exit_code


@pytest.mark.parametrize(
    "flags",
    [
        ("--include", "a|b", "--num.streams", "4", "--abort.on.send.failure", "true"),
        ("--whitelist", "a,b", "--new.consumer", "--offset.commit.interval.ms=1000"),
        ("--include=a", "--whitelist=b(", "--abort.on.send.failure=FALSE"),
        ("--include", "a", "--message.handler.args", "x", "--rebalance.listener.args", "y"),
    ],
)
@pytest.mark.parametrize("long", [True, False])
def test_what_it_accepts(files: list[str], flags: tuple[str, ...], long: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """All is well but the cluster, which is not there."""
    monkeypatch.setattr(sys.modules["sparkmirror.cli.legacy"], "CONNECT_TIMEOUT_S", 0.3)
    error, _ = legacy(files, *flags, long=long)
    assert isinstance(error, ClusterUnreachable), error
    assert "source can't be reached at 127.0.0.1:1" in str(error)


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ((), "--include: is missing: write --include '.*' for all topics, or --include 'orders|bills' for some"),
        (("--num.streams", "4"), "MirrorMaker 1 stops without one, too"),
        (("--whitelist", ""), "--include: is missing: write --include '.*'"),
        (("--include", " "), "--include: is missing"),
        (("--include", "a("), "--include: "),
        (("--whitelist", "a("), "--whitelist: "),
        (("--include", "a", "--message.handler", "a.B"), "--message.handler: Java classes can't be loaded"),
        (("--include", "a", "--message.handler", "a.B"), "replication.policy.class"),
        (("--include", "a", "--consumer.rebalance.listener", "a.B"), "--consumer.rebalance.listener: Java classes"),
        (("--include", "a", "--abort.on.send.failure", "maybe"), "--abort.on.send.failure: 'maybe' is not allowed"),
    ],
)
def test_what_it_refuses(files: list[str], flags: tuple[str, ...], says: str) -> None:
    error, _ = legacy(files, *flags)
    assert isinstance(error, ConfigError), error
    assert str(error).startswith("command line: ")
    assert says in str(error)


@pytest.mark.parametrize("flags", [("--num.streams", "0"), ("--offset.commit.interval.ms", "x"), ("--no.such.flag",)])
def test_flags_that_are_wrong(files: list[str], flags: tuple[str, ...]) -> None:
    assert legacy(files, "--include", "a", *flags)[1] == 2


def test_its_version() -> None:
    result = CliRunner().invoke(app, ["legacy", "--version"])
    assert (result.exit_code, result.stdout.strip()) == (0, __version__)
