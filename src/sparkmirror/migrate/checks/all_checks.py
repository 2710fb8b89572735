"""All checks, in the order of `sparkmirror migration check`."""

from __future__ import annotations

from collections.abc import Iterator

from sparkmirror.migrate.checks.facts import Facts
from sparkmirror.migrate.checks.of_consumers import CONSUMER_CHECKS
from sparkmirror.migrate.checks.of_flows import FLOW_CHECKS
from sparkmirror.migrate.checks.of_producers import PRODUCER_CHECKS
from sparkmirror.migrate.checks.of_topics import TOPIC_CHECKS
from sparkmirror.migrate.checks.precondition import Check, CheckResult

CHECKS: tuple[Check, ...] = (*FLOW_CHECKS, *TOPIC_CHECKS, *PRODUCER_CHECKS, *CONSUMER_CHECKS)


def run_checks(facts: Facts) -> Iterator[CheckResult]:
    """Yield each check's result; nothing if no set is left to move."""
    if facts.sets:
        for check in CHECKS:
            yield check.result(facts)
