"""What tests of several directories share: real brokers, names for topics, and the choice of the long tests."""

from __future__ import annotations

import functools
import gc
import itertools
import logging
import os
import sys
from typing import TYPE_CHECKING

import pytest
import typer.main
from hypothesis import settings
from lab import Authority, KafkaCluster
from lab.listeners import BrokerListener, mutual_tls, plain, scram, unsecured_tokens
from tests.support.copied_flow import Flow, flow_between
from tests.support.served_api import ServedApi, served_api
from tests.support.started import started

from sparkmirror.demo.java import java_home
from sparkmirror.kafka.cluster.expected_clusters import EXPECTED
from sparkmirror.veil import NAMES_VEIL, VEIL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_topic_numbers = itertools.count(1)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--full` and `--standalone`."""
    parser.addoption("--full", action="store_true", help="run the long tests too (marker `full`)")
    parser.addoption("--standalone", action="store_true", help="run the Spark tests on a real standalone cluster")


def pytest_configure(config: pytest.Config) -> None:
    """Spark looks for Java in the environment; where bootstrap installed one for itself, say where.

    The short run tries the same examples each time, so what it says is about the change; `--full` looks for new ones.
    How long an example takes is the machine's affair.
    """
    os.environ.setdefault("JAVA_HOME", str(java_home()))
    _build_the_command_line_once()
    settings.register_profile("same examples", derandomize=True, deadline=None)
    settings.register_profile("new examples", deadline=None)
    if not config.getoption("--full"):
        settings.load_profile("same examples")
    else:
        settings.load_profile("new examples")


def pytest_collection_finish() -> None:
    """Keep what was collected, thousands of tests, out of each later collection of garbage."""
    gc.collect()
    gc.freeze()


def _build_the_command_line_once() -> None:
    """Keep Typer's commands: it makes all verbs again whenever a test runs one, which takes longer than most verbs."""
    kept = functools.cache(typer.main.get_command)
    for name in ("typer.main.get_command", "typer.testing._get_command"):
        pytest.MonkeyPatch().setattr(name, kept)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the long tests, unless `--full` is given."""
    if config.getoption("--full"):
        return
    long = [item for item in items if item.get_closest_marker("full")]
    if long:
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if not item.get_closest_marker("full")]


@pytest.fixture(autouse=True)
def own_process() -> Iterator[None]:
    """Each test begins as a process does: no value is hidden, and no cluster is expected."""
    yield
    VEIL.__init__(8)  # type: ignore[misc]
    NAMES_VEIL.__init__()  # type: ignore[misc]
    EXPECTED.__init__()  # type: ignore[misc]


@pytest.fixture(autouse=True)
def own_level() -> Iterator[None]:
    """Give our loggers their level back: a verb that a test runs sets it for the process."""
    logger = logging.getLogger("sparkmirror")
    level = logger.level
    yield
    logger.setLevel(level)


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Return who signs the certificates of the pair of brokers."""
    return Authority(tmp_path_factory.mktemp("authority", numbered=False))


def _listeners() -> dict[str, BrokerListener]:
    return {
        "MTLS": mutual_tls(),
        "PLAIN": plain({"mirror": "hunter2-plain"}),
        "SCRAM": scram("SCRAM-SHA-512"),
        "SCRAM256": scram("SCRAM-SHA-256"),
        "TOKENS": unsecured_tokens(),
    }


@pytest.fixture(scope="session")
def cluster_pair(
    tmp_path_factory: pytest.TempPathFactory, authority: Authority
) -> Iterator[tuple[KafkaCluster, KafkaCluster]]:
    """Source and target, one broker each, for the whole run; their logs stay in pytest's directory."""
    # Nobody kills these: a machine that stands still for a moment is not to have them fenced.
    patient = {"broker.session.timeout.ms": "60000"}
    source, target = (
        KafkaCluster(
            tmp_path_factory.mktemp(name, numbered=False), tls=authority, listeners=_listeners(), properties=patient
        )
        for name in ("source", "target")
    )
    with started(source, target):
        yield source, target


@pytest.fixture(scope="session")
def guarded_pair(
    tmp_path_factory: pytest.TempPathFactory, authority: Authority
) -> Iterator[tuple[KafkaCluster, KafkaCluster]]:
    """Source and target that keep ACLs: who comes in clear may do all, who has a certificate what an ACL allows.

    Shared by all tests, so the ACLs of a test name topics of its own.
    """
    patient = {"broker.session.timeout.ms": "60000"}
    pair = tuple(
        KafkaCluster(
            tmp_path_factory.mktemp(f"guarded-{name}", numbered=False), acls=True, tls=authority, properties=patient
        )
        for name in ("source", "target")
    )
    with started(*pair):
        yield pair[0], pair[1]


@pytest.fixture
def guarded(guarded_pair: tuple[KafkaCluster, KafkaCluster]) -> KafkaCluster:
    """Return a cluster that keeps ACLs, where nobody with a certificate may do anything."""
    return guarded_pair[1]


@pytest.fixture(scope="session")
def source_cluster(cluster_pair: tuple[KafkaCluster, KafkaCluster]) -> KafkaCluster:
    """Return the cluster to copy from; shared by all tests, so leave it running."""
    return cluster_pair[0]


@pytest.fixture(scope="session")
def target_cluster(cluster_pair: tuple[KafkaCluster, KafkaCluster]) -> KafkaCluster:
    """Return the cluster to copy to; shared by all tests, so leave it running."""
    return cluster_pair[1]


@pytest.fixture
def flow(source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str) -> Iterator[Flow]:
    """A flow of the test's own, whose logs are written as a pump writes them; in `tests/engine` a `LoadedFlow`."""
    with flow_between(source_cluster, target_cluster, topic_name) as flow:
        yield flow


@pytest.fixture
def served() -> Iterator[ServedApi]:
    """The REST interface over HTTP, with a worker in memory."""
    with served_api() as api:
        yield api


@pytest.fixture
def topic_name(request: pytest.FixtureRequest) -> str:
    """Return a topic name that no other test of the run uses."""
    test = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
    return f"{test[:100]}-{next(_topic_numbers)}"


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Write a module into the current directory, and return its name: as a user's own classes are found."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    name = f"written_{tmp_path.name}".replace("-", "_")

    def written(text: str) -> str:
        (tmp_path / f"{name}.py").write_text(text)
        return name

    return written


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """Return what was logged by our own loggers since the last call, at info or above."""
    caplog.set_level(logging.INFO, "sparkmirror")

    def new() -> list[str]:
        found = [record.getMessage() for record in caplog.records]
        caplog.clear()
        return found

    return new
