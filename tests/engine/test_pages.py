"""Pages of `docs/` whose commands are run as they stand there, against real brokers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import KafkaCluster
from page_commands import DOCS, Reader, blocks
from tests.support.links import anchors
from tests.support.started import started

from sparkmirror.demo.ports import free_ports

DRILL = "failover-drill.md"
PAGES = ("migrate.md", "strimzi.md", DRILL)


@pytest.mark.parametrize("page", PAGES)
def test_it_has_commands(page: str) -> None:
    chosen = blocks(page)
    assert len(chosen) >= 5
    assert any(block.expected for block in chosen)


@pytest.mark.parametrize("page", PAGES)
def test_its_files_have_nothing_to_warn_of(page: str, tmp_path: Path) -> None:
    """What needs no broker: the files are written, and lint looks at them."""
    chosen = [block for block in blocks(page) if "sparkmirror lint" in block.commands and ".sh" not in block.commands]
    assert len(chosen) == 1
    with Reader(tmp_path, {}) as reader:
        reader.follow_blocks(page, chosen)


@pytest.fixture
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[KafkaCluster]]:
    """Two clusters of the page's own."""
    pair = [KafkaCluster(tmp_path_factory.mktemp(name)) for name in ("page-source", "page-target")]
    with started(*pair):
        yield pair


@pytest.fixture
def addresses(pair: list[KafkaCluster]) -> dict[str, str]:
    """The clusters, and a port for a REST interface, by the page's addresses."""
    return {
        "localhost:19092": pair[0].bootstrap_servers,
        "localhost:29092": pair[1].bootstrap_servers,
        "localhost:8083": f"127.0.0.1:{free_ports(1)[0]}",
    }


@pytest.mark.full
@pytest.mark.broker
@pytest.mark.spark
@pytest.mark.parametrize("page", PAGES)
def test_the_page_runs_as_written(page: str, addresses: dict[str, str], tmp_path: Path) -> None:
    with Reader(tmp_path, addresses) as reader:
        reader.follow(page)


@pytest.mark.full
@pytest.mark.broker
@pytest.mark.spark
def test_the_drills_answers_without_the_source(tmp_path: Path, pair: list[KafkaCluster]) -> None:
    """The page's last section: the source is killed, and what was published last is still told."""
    source, target = pair
    with Reader(
        tmp_path, {"localhost:19092": source.bootstrap_servers, "localhost:29092": target.bootstrap_servers}
    ) as reader:
        before, _ = (DOCS / DRILL).read_text().split("### 4.")
        reader.follow_blocks(DRILL, [block for block in blocks(DRILL) if block.line <= before.count("\n")])
        for broker in source.brokers:
            broker.kill()
        told = reader.run("sparkmirror groups mm2.properties", 60.0, DRILL)
        assert len(re.findall(r"^drill-reader .* 0 +synced", told, re.MULTILINE)) == 2
        read_on = "kafka-console-consumer.sh --bootstrap-server localhost:29092 --topic primary.drill"
        printed = reader.run(
            f"{read_on} --group drill-reader --max-messages 300 >> read.txt; sort -n read.txt", 60.0, DRILL
        )
        assert printed.split() == [str(number) for number in range(1, 501)]


LINKED = (
    *(DOCS / page for page in (*PAGES, "planning.md", "faq.md")),
    DOCS.parent / "examples" / "README.md",
)


@pytest.mark.parametrize("path", LINKED, ids=lambda path: path.name)
def test_its_links_lead_somewhere(path: Path) -> None:
    links = re.findall(r"\]\(([^)]+)\)", path.read_text())
    assert links
    for link in links:
        file, _, anchor = link.partition("#")
        there = path.parent / file if file else path
        assert there.exists(), link
        assert not anchor or anchor in anchors(there.resolve()), link
