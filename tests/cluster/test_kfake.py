"""A broker of another make: kfake, a Kafka cluster in Go by the makers of franz-go, built from its sources."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from model_cluster import Fault
from test_append_check import CAUGHT, client_of

from sparkmirror.kafka.cluster.append_check import AppendVerdict, check_appends

pytestmark = pytest.mark.full

MODULES = (
    "github.com/twmb/franz-go/pkg/kfake@v0.0.0-20260918054303-01f206a7e32c",
    "github.com/twmb/franz-go@v1.22.3",
)
PROGRAM = """
package main

import (
	"fmt"
	"os"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(3))
	if err != nil {
		panic(err)
	}
	fmt.Println(cluster.ListenAddrs()[0])
	os.Stdin.Read(make([]byte, 1))
	cluster.Close()
}
"""


@pytest.fixture
def kfake(tmp_path: Path) -> Iterator[str]:
    """Address of one of three brokers."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("there is no go here to build kfake with")
    (tmp_path / "main.go").write_text(PROGRAM)
    for command in (("mod", "init", "other"), ("get", *MODULES), ("build", "-o", "kfake", ".")):
        built = subprocess.run([go, *command], cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
        if built.returncode and command[0] == "get":
            pytest.skip(f"kfake's sources can't be had: {built.stderr[-300:]}")
        assert built.returncode == 0, built.stderr
    broker = subprocess.Popen([tmp_path / "kfake"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert broker.stdin is not None
    assert broker.stdout is not None
    try:
        yield broker.stdout.readline().strip()
    finally:
        broker.stdin.close()
        broker.wait(20)


def test_what_kfake_lacks_is_named(kfake: str) -> None:
    """Of its version here: a first batch must begin at 0, and DescribeProducers tells of open transactions only."""
    with client_of(kfake) as client:
        result = check_appends(client)
    for check in result.checks:
        print(f"{check.name}: {check.verdict}: {check.words}")
    verdicts = {check.name: check.verdict for check in result.checks}
    assert {name for name, verdict in verdicts.items() if verdict is AppendVerdict.HOLDS} >= {
        "repeat",
        "older repeats",
        "gap",
        "old epoch",
        "apart",
        "log",
        "topic ids",
    }
    assert {check.name for check in result.failures} == {"first batch", "wrap", "DescribeProducers"}
    assert "a first batch at sequence 1000 is refused: OUT_OF_ORDER" in result.words
    assert CAUGHT[Fault.FORGETS_AT_ONCE][1] in result.words
