"""Remedies of a flow that falls behind, followed on real clusters: the finding above, and then more tasks."""

from __future__ import annotations

import pytest
from remedy_case import APART_S, Case, wait_for_finding, wait_until_gone
from tests.support import mirror_process as mp

from sparkmirror.look.doctor import case as doctors_case
from sparkmirror.look.doctor import lag
from sparkmirror.look.doctor.findings import diagnose
from sparkmirror.mirror.engine.mirror import Mirror

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

LOW, HIGH = 50_000, 1_000_000_000


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is said after a minute is said between two looks."""
    for module in (doctors_case, lag):
        monkeypatch.setattr(module, "STILL_S", APART_S - 2)


def wait_until_explained(mirror: Mirror, rule: str, cause: str) -> None:
    """Both are found between two looks, and the cause says that the other follows from it."""
    before = mirror.observer.snapshot()

    def is_explained() -> bool:
        found = diagnose(mirror.observer.snapshot(), [before])
        return any(one.rule == cause and rule in one.explains for one in found) and rule in {one.rule for one in found}

    mp.wait_for(is_explained, 60, f"{rule} follows from {cause}")


def test_the_finding_above_is_followed(remedy_case: Case) -> None:
    """A quota of the source holds the pumps back; it is raised by the command that is told, and both findings go."""
    mp.create_topic(remedy_case.source.bootstrap_servers, remedy_case.topic, 2)
    remedy_case.write(**{"sparkmirror.objective.seconds": "5"})
    servers = remedy_case.source.bootstrap_servers
    quota = f"kafka-configs.sh --bootstrap-server {servers} --alter --entity-type users --entity-name ANONYMOUS"
    mp.produce(servers, remedy_case.topic, 2, 60_000, codec=None, size=20)
    remedy_case.run(f"{quota} --add-config consumer_byte_rate={LOW}")
    try:
        with remedy_case.running() as mirror:
            with mp.load(servers, remedy_case.topic, 2):
                wait_for_finding(mirror, "lag-growing")
                wait_for_finding(mirror, "lag-over-objective")
                for rule in ("lag-growing", "lag-over-objective"):
                    wait_until_explained(mirror, rule, "throttled-source")
                action = wait_for_finding(mirror, "throttled-source").action
                remedy_case.run(action, PRINCIPAL="ANONYMOUS", N=str(HIGH))
                wait_until_gone(mirror, "lag-growing")
                wait_until_gone(mirror, "lag-over-objective")
            ends = mp.end_offsets(servers, remedy_case.topic, 2)
            mp.wait_for(lambda: remedy_case.copied(partitions=2) == sum(ends), 90, "all is copied")
    finally:
        remedy_case.run(f"{quota} --delete-config consumer_byte_rate")
