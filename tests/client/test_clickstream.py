"""The click-stream example: writer and reader as processes, against brokers; the reader finds what is wrong."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewTopic
from lab import KafkaCluster

from clicks import FIRST_USER, NEXT, session
from reader import Seen

EXAMPLE = Path(__file__).parents[2] / "examples" / "clickstream"


def test_a_session_follows_the_pages() -> None:
    for seed in range(50):
        clicks = list(session(FIRST_USER, random.Random(seed)))
        pages = [click["event_type"] for click in clicks]
        assert pages[0] == "home_page"
        assert all(after in NEXT[before] for before, after in pairwise(pages))
        assert "" in NEXT[pages[-1]]
        products = [click["product_type"] for click in clicks if click["event_type"] == "add_to_cart"]
        assert "N/A" not in products


def test_what_was_seen_is_counted_over_readers(tmp_path: Path) -> None:
    first = Seen(tmp_path / "seen.json")
    for user, number in (("a", 1), ("b", 2), ("a", 4)):
        first.see(user, number)
    first.keep()
    assert json.loads((tmp_path / "seen.json").read_text())["read"] == [[1, 2], [4, 4]]
    second = Seen(tmp_path / "seen.json")
    assert (second.last, second.missing) == (4, 1)
    second.see("a", 3)  # after 4
    second.see("b", 2)
    assert (second.missing, second.twice, second.out_of_order) == (0, 1, 1)


def run(program: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(EXAMPLE / f"{program}.py"), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.broker
def test_both_run_and_the_reader_finds_faults(source_cluster: KafkaCluster, topic_name: str, tmp_path: Path) -> None:
    file, bookmark, seen = tmp_path / "client.properties", tmp_path / "bookmark", tmp_path / "seen.json"
    file.write_text(f"bootstrap.servers = {source_cluster.bootstrap_servers}\nno.such.key = 1\n")
    admin = KafkaAdminClient(bootstrap_servers=source_cluster.bootstrap_servers)
    admin.create_topics([NewTopic(topic_name, 4, 1)])
    admin.close()
    common = ("-t", topic_name, "-pfp", str(file))
    for _ in range(2):
        written = run("writer", *common, "-nou", "20", "-nd", "--bookmark", str(bookmark))
        assert written.returncode == 0, written.stderr
        assert f"last globalseq: {bookmark.read_text()}\n" in written.stdout
        assert "no.such.key is no setting of this client" in written.stderr
    read = run("reader", *common, "--seen", str(seen), "--idle", "2")
    assert read.returncode == 0, read.stdout + read.stderr
    assert "missing: 0; twice: 0; out of order: 0\n" in read.stdout
    assert f"last globalseq: {bookmark.read_text()};" in read.stdout

    last = int(bookmark.read_text())
    producer = KafkaProducer(bootstrap_servers=source_cluster.bootstrap_servers)
    for number in (last + 2, last + 2):  # the number between is left out
        click = {"userid": FIRST_USER, "globalseq": number, "eventtimestamp": 0}
        producer.send(topic_name, key=b"1000", value=json.dumps(click).encode())
    producer.close()
    read = run("reader", *common, "--seen", str(seen), "--idle", "2")
    assert read.returncode == 1
    assert "missing: 1; twice: 1; out of order: 0\n" in read.stdout
