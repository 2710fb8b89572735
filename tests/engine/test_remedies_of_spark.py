"""Remedies of a Spark that runs no task, followed with processes of their own: workers that fail, and no executor."""

from __future__ import annotations

import sys

import pytest
from lab.spark_cluster import standalone_cluster
from remedy_case import Case
from tests.support import mirror_process as mp
from tests.support.in_process import sparkmirror

from sparkmirror.look.doctor import states

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

MISSING = "libextra.so.1: cannot open shared object file"


def finds(case: Case, rule: str, wait: str = "6") -> bool:
    """Whether the verb has a finding of the rule; the mirror is a process of its own."""
    return f"[{rule}]" in sparkmirror("doctor", str(case.file), "--wait", wait).stdout


def test_workers_that_lack_a_library(remedy_case: Case) -> None:
    """The process's log has what they print; with the library the mirror continues by itself."""
    library, python = remedy_case.directory / "library", remedy_case.directory / "python"
    python.write_text(
        f'#!/bin/sh\n[ -e {library} ] || {{ echo "{MISSING}" >&2; exit 127; }}\nexec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    mp.create_topic(remedy_case.source.bootstrap_servers, remedy_case.topic, 1)
    mp.produce(remedy_case.source.bootstrap_servers, remedy_case.topic, 1, 10)
    remedy_case.write(**{"spark.pyspark.python": str(python)})
    log = remedy_case.directory / "mirror.log"
    with mp.MirrorProcess(remedy_case.file, log) as mirror:
        mp.wait_for(lambda: log.exists() and "[epoch-failed]" in log.read_text(), 90, "the first round fails")
        mp.wait_for(lambda: finds(remedy_case, "epochs-failing"), 120, "the doctor says that rounds fail")
        before = log.read_text().partition("[epoch-failed]")[0]
        assert any("[spark-output]" in line and MISSING in line for line in before.splitlines()), before
        library.touch()
        mp.wait_for(lambda: remedy_case.copied() == 10, 60, "all is copied")
        mp.wait_for(lambda: not finds(remedy_case, "epochs-failing"), 30, "nothing is left to say")
        assert mirror.terminate() == 0


def test_no_worker_has_the_memory_that_is_asked_for(remedy_case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's line is in the process's log; with less memory there are executors."""
    monkeypatch.setattr(states, "LONG_S", 3.0)
    mp.create_topic(remedy_case.source.bootstrap_servers, remedy_case.topic, 1)
    mp.produce(remedy_case.source.bootstrap_servers, remedy_case.topic, 1, 10)
    log = remedy_case.directory / "mirror.log"
    with standalone_cluster(remedy_case.directory, workers=1) as settings:
        remedy_case.write(**{**settings, "spark.executor.memory": "4g"})
        with mp.MirrorProcess(remedy_case.file, log) as mirror:
            mp.wait_for(lambda: "[epoch-started]" in log.read_text(), 90, "a round begins")
            mp.wait_for(lambda: finds(remedy_case, "long-starting"), 90, "the doctor says that no pump reports")
            mp.wait_for(lambda: "Initial job has not accepted any resources" in log.read_text(), 60, "Spark says why")
            print(log.read_text())
            assert mirror.terminate() == 0
        remedy_case.write(**settings)
        with mp.MirrorProcess(remedy_case.file, log) as mirror:
            mp.wait_for(lambda: remedy_case.copied() == 10, 90, "all is copied")
            mp.wait_for(lambda: not finds(remedy_case, "long-starting"), 30, "nothing is left to say")
            assert mirror.terminate() == 0
