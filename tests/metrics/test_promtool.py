"""Prometheus' own program reads the configuration, the rules and a scrape; and each alert fires and ends."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from tests.support.deployed import PROMETHEUS, rules
from tests.support.prometheus_programs import installed
from tests.support.snapshot_samples import snapshot

from sparkmirror.look.metrics.collector import MirrorCollector


def promtool(*words: str, given: bytes = b"", directory: Path = PROMETHEUS) -> subprocess.CompletedProcess[bytes]:
    program = installed("promtool")
    return subprocess.run([program, *words], cwd=directory, input=given, capture_output=True, timeout=600, check=False)


@pytest.mark.parametrize(
    "words",
    [
        ("check", "config", "prometheus.yml"),
        ("check", "rules", "alerts.yml", "recording.yml"),
        ("test", "rules", "alerts_test.yml"),
    ],
    ids=" ".join,
)
def test_deployed_files(words: tuple[str, ...]) -> None:
    done = promtool(*words)
    assert done.returncode == 0, (done.stdout + done.stderr).decode()


def test_each_alert_is_made_to_fire_and_to_end() -> None:
    played = [
        (test["alertname"], bool(test["exp_alerts"]))
        for one in yaml.safe_load((PROMETHEUS / "alerts_test.yml").read_text())["tests"]
        for test in one["alert_rule_test"]
    ]
    for rule in rules("alerts.yml"):
        states = [fires for name, fires in played if name == rule["alert"]]
        assert True in states, f"{rule['alert']} never fires"
        assert not states[-1], f"{rule['alert']} never ends"


def test_the_tests_see_a_changed_rule(tmp_path: Path) -> None:
    text = (PROMETHEUS / "alerts.yml").read_text()
    (tmp_path / "alerts.yml").write_text(text.replace("reread_records > 10000", "reread_records > 100000"))
    shutil.copy(PROMETHEUS / "alerts_test.yml", tmp_path)
    done = promtool("test", "rules", "alerts_test.yml", directory=tmp_path)
    assert done.returncode != 0
    assert b"GroupWouldReread" in done.stdout + done.stderr


def test_a_scrape_of_our_names_is_as_prometheus_wants_it() -> None:
    done = promtool("check", "metrics", given=MirrorCollector(snapshot).text())
    assert done.returncode == 0, (done.stdout + done.stderr).decode()
