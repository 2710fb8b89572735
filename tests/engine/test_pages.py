"""Pages of `docs/` whose commands are run as they stand there, against real brokers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from page_commands import DOCS, Reader, blocks

from sparkmirror.demo import KafkaCluster
from sparkmirror.demo.ports import free_ports

PAGES = ("migrate_consumers_first.md", "migrate_strimzi.md")


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
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Two clusters of the page's own, and a port for a REST interface, by the page's addresses."""
    pair = [KafkaCluster(tmp_path_factory.mktemp(name)) for name in ("page-source", "page-target")]
    try:
        with ThreadPoolExecutor(len(pair)) as pool:
            list(pool.map(KafkaCluster.start, pair))
        yield {
            "localhost:19092": pair[0].bootstrap_servers,
            "localhost:29092": pair[1].bootstrap_servers,
            "localhost:8083": f"127.0.0.1:{free_ports(1)[0]}",
        }
    finally:
        for cluster in pair:
            cluster.cleanup(keep_logs=True)


@pytest.mark.full
@pytest.mark.broker
@pytest.mark.spark
@pytest.mark.parametrize("page", PAGES)
def test_the_page_runs_as_written(page: str, addresses: dict[str, str], tmp_path: Path) -> None:
    with Reader(tmp_path, addresses) as reader:
        reader.follow(page)


LINKED = (*(DOCS / page for page in (*PAGES, "faq.md")), DOCS.parent / "examples" / "README.md")


@pytest.mark.parametrize("path", LINKED, ids=lambda path: path.name)
def test_its_links_lead_somewhere(path: Path) -> None:
    links = re.findall(r"\]\(([^)]+)\)", path.read_text())
    assert links
    for link in links:
        file, _, anchor = link.partition("#")
        there = path.parent / file if file else path
        assert there.exists(), link
        assert not anchor or anchor in anchors(there.read_text()), link


def anchors(text: str) -> set[str]:
    """Of its headings, as they are made for a page."""
    heads = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}
