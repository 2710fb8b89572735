"""Bad input gets one line that says what, where and what to do, the right exit code, and no traceback."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.in_process import sparkmirror

COMMAND = str(Path(sys.executable).with_name("sparkmirror"))

GOOD = {
    "clusters": "A, B",
    "A.bootstrap.servers": "127.0.0.1:1",
    "B.bootstrap.servers": "127.0.0.1:1",
    "A->B.enabled": "true",
}


def write(path: Path, **settings: str) -> str:
    path.write_text("".join(f"{key} = {value}\n" for key, value in (GOOD | settings).items()))
    return str(path)


def only_line(result: subprocess.CompletedProcess[str], code: int) -> str:
    assert result.returncode == code, result.stderr
    lines = [line for line in result.stderr.splitlines() if line.startswith("sparkmirror: ")]
    assert len(lines) == 1, result.stderr
    assert "Traceback" not in result.stderr
    return lines[0]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    """In a process of its own, as users run it."""
    command = [COMMAND, "run", str(tmp_path / "none.properties")]
    line = only_line(subprocess.run(command, capture_output=True, text=True, timeout=180, check=False), 2)
    assert "none.properties: there is no such file" in line


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("tasks.max", "many"),
        ("transforms", "route"),
        ("A->B.value.converter", "org.apache.kafka.connect.json.JsonConverter"),
        ("replication.policy.class", "com.example.Ours"),
        ("B.security.protocol", "SASL"),
    ],
)
def test_a_key_that_can_not_be_honoured(tmp_path: Path, key: str, value: str) -> None:
    line = only_line(sparkmirror("run", write(tmp_path / "mm2.properties", **{key: value})), 2)
    assert "mm2.properties" in line
    assert key.rpartition(".")[2] in line


def test_every_mistake_is_a_line(tmp_path: Path) -> None:
    wrong = {"A.bootstrap.servers": "a", "tasks.max": "x", "replication.factor": "0"}
    path = write(tmp_path / "mm2.properties", **wrong)
    result = sparkmirror("run", path)
    assert result.returncode == 2
    lines = result.stderr.splitlines()
    assert [line.split(": ")[:3] for line in lines] == [
        ["sparkmirror", f"{path}, line 2", "A.bootstrap.servers"],
        ["sparkmirror", f"{path}, line 5", "tasks.max"],
        ["sparkmirror", f"{path}, line 6", "replication.factor"],
    ]


def test_a_pattern_that_is_none(tmp_path: Path) -> None:
    line = only_line(sparkmirror("run", write(tmp_path / "mm2.properties", topics="orders[")), 2)
    assert "topics" in line


def test_a_secret_stays_secret(tmp_path: Path) -> None:
    settings = {
        "B.sasl.jaas.config": "password-of-mine",
        "B.sasl.mechanism": "PLAIN",
        "B.security.protocol": "SASL_SSL",
    }
    result = sparkmirror("run", write(tmp_path / "mm2.properties", **settings))
    assert "password-of-mine" not in result.stderr + result.stdout


def test_a_cluster_that_can_not_be_reached(tmp_path: Path) -> None:
    line = only_line(sparkmirror("run", write(tmp_path / "mm2.properties", **{"admin.timeout.ms": "1000"})), 3)
    assert "can't be reached at 127.0.0.1:1" in line


def test_a_ledger_that_can_not_be_read(tmp_path: Path) -> None:
    path = write(tmp_path / "mm2.properties")
    line = only_line(sparkmirror("losses", path), 3)
    assert "no broker of 127.0.0.1:1 answers" in line
    assert line.endswith("; check bootstrap.servers and security.protocol, and that the brokers run")
    assert "no such flow; it has A->B" in only_line(sparkmirror("losses", path, "--flow", "B->A"), 2)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--clusters", "C"), "C"),
        (("--clusters", "B", "C"), "C"),
        (("B",), "clusters go after --clusters"),
        (("--spark", "driver.memory=1g"), "write spark.KEY=VALUE"),
    ],
)
def test_options_that_are_wrong(tmp_path: Path, arguments: tuple[str, ...], says: str) -> None:
    assert says in only_line(sparkmirror("run", write(tmp_path / "mm2.properties"), *arguments), 2)


@pytest.mark.parametrize(("rate", "says"), [("fast", "500K or 20M"), ("0", "500K or 20M")])
def test_a_rate_that_is_none(tmp_path: Path, rate: str, says: str) -> None:
    assert says in only_line(sparkmirror("throttle", write(tmp_path / "mm2.properties"), rate), 2)


def test_a_connect_workers_file_that_is_incomplete(tmp_path: Path) -> None:
    file = tmp_path / "connect-distributed.properties"
    file.write_text("bootstrap.servers = 127.0.0.1:1\ngroup.id = workers\n")
    result = sparkmirror("serve", str(file))
    assert result.returncode == 2
    missing = re.findall(r"connect-distributed.properties: (\S+): is missing", result.stderr)
    assert missing == ["config.storage.topic", "offset.storage.topic", "status.storage.topic"]
    assert len(result.stderr.splitlines()) == len(missing)
