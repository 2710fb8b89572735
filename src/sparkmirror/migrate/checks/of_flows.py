"""Checks on the mirror: flows, rights, lint's findings, the status."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sparkmirror.lint.check import CONNECTED_RULES
from sparkmirror.lint.findings import LintFinding
from sparkmirror.lint.probe import FlowProbe
from sparkmirror.migrate import phase
from sparkmirror.migrate.checks.facts import Facts
from sparkmirror.migrate.checks.precondition import Check, CheckFind, CheckVerdict, blocked, fail, ok, unknown, warn
from sparkmirror.migrate.file import Fence
from sparkmirror.migrate.observation import Side

_RULES = {rule.name: rule for rule in CONNECTED_RULES}
VERIFIED_MIN = 24 * 60
"""Minutes for which a verification is fresh: our choice."""
_OF_CLUSTERS = (
    "unreachable",
    "one-cluster",
    "too-old-brokers",
    "factor-too-high",
    "not-created",
    "copied-by-another",
    "too-few-replicas",
    "own-topics-unsafe",
)


def findings(probe: FlowProbe, *rules: str) -> Iterator[LintFinding]:
    """Yield the findings of some of lint's rules in a flow's survey."""
    for rule in rules:
        yield from _RULES[rule].findings(probe)


def by_lint(verdict: CheckVerdict, *rules: str) -> Callable[[Facts], Iterator[CheckFind]]:
    """Return a look for lint's findings, in both flows."""

    def look(facts: Facts) -> Iterator[CheckFind]:
        for probe in facts.probes.values():
            for finding in findings(probe, *rules):
                yield CheckFind(verdict, f"{probe.flow.name}: {finding.what}", finding.fix)

    return look


def _appends(facts: Facts) -> Iterator[CheckFind]:
    proven = []
    for probe in facts.probes.values():
        alias, appends = probe.target.cluster.alias, probe.target.appends
        if appends is None or appends.untold:
            why = f": {appends.untold}" if appends is not None else ""
            yield unknown(f"whether {alias} checks appended batches is not known{why}")
        elif not appends.holds:
            yield fail(f"{alias} does not check appended batches as Apache Kafka does: {appends.words}")
        else:
            proven.append(alias)
    if proven:
        yield ok(f"{' and '.join(proven)} refuse an append out of place (tried just now)")


def _rights(facts: Facts) -> Iterator[CheckFind]:
    yield from by_lint(CheckVerdict.FAIL, "forbidden-at-source", "forbidden-at-target")(facts)
    yield from by_lint(CheckVerdict.UNKNOWN, "rights-unknown")(facts)
    if facts.file.fence is Fence.ACL:
        for side in Side:
            cluster = facts.probed(side)
            lacking = {"ALTER", "DESCRIBE"} - (cluster.operations or frozenset()) if cluster else set()
            if cluster is not None and cluster.operations is not None and lacking:
                what = f"{', '.join(sorted(lacking))} on the cluster {facts.alias(side)} is missing, to add denials"
                yield fail(
                    what, f"grant it to sparkmirror's principal by kafka-acls.sh --cluster at {facts.alias(side)}"
                )


def _reverse(facts: Facts) -> Iterator[CheckFind]:
    yield from blocked("reverse-flow-ready")(facts)
    for moving in facts.sets:
        to = facts.leaving(moving).other
        back = facts.seen.flows.get(to)
        renamed = [topic for topic in moving.topics if not phase.keeps_names(facts.seen, topic)]
        if renamed and (back is None or not back.at_work):
            here, there = facts.alias(to.other), facts.alias(to)
            yield warn(f"nothing copies from {there} to {here}: what is written at {there} stays there")


def _standby(facts: Facts) -> Iterator[CheckFind]:
    for side in facts.sides:
        flow = facts.seen.flows.get(side)
        if flow is not None and flow.at_work and not flow.standbys:
            yield warn(f"no process stands by for {flow.name}")


def _parked(facts: Facts) -> Iterator[CheckFind]:
    for side, topic in facts.topics():
        flow = facts.status.get(side)
        for known, part in flow.parked if flow is not None else ():
            if known.topic == topic:
                yield fail(f"{topic}-{part.partition} is parked: {part.reason}", part.remedy)
        for known in flow.topics if flow is not None else ():
            if known.topic == topic and known.refused:
                yield fail(f"{topic} can't be copied: {known.refused}")


def _retention_race(facts: Facts) -> Iterator[CheckFind]:
    for side in facts.sides:
        flow = facts.status.get(side)
        if flow is not None and flow.retention_s is not None:
            when = f"in {flow.retention_s:,.0f} s, before they are copied"
            yield fail(f"{facts.alias(side)} deletes records of {flow.retention_of} {when}")


def _clock(facts: Facts) -> Iterator[CheckFind]:
    yield from by_lint(CheckVerdict.WARN, "clock-skew")(facts)
    yield from by_lint(CheckVerdict.UNKNOWN, "clock-unknown")(facts)


def _verify(facts: Facts) -> Iterator[CheckFind]:
    if facts.verified_untold:
        yield unknown(
            f"the migration's evidence can't be read: {facts.verified_untold}", "grant READ on it, or check again"
        )
        return
    for side, topic in facts.topics():
        flow = facts.seen.flows.get(side)
        read = facts.verified.get((flow.name, topic)) if flow is not None else None
        if flow is None or read is None:
            by = f" by {flow.name}" if flow is not None else ""
            yield unknown(f"no verification of {topic}{by} since its producers last moved is written down")
            continue
        minutes = max(facts.seen.at_ms - read.began_ms, 0) / 60_000
        words = f"{topic} by {flow.name} was {read.topics[topic].words} {minutes:,.0f} min ago"
        if read.ranges < read.all_ranges:
            words += f" in {read.ranges:,} of {read.all_ranges:,} ranges"
        if not read.topics[topic].good:
            yield fail(words, "see what `sparkmirror verify` lists (docs/verify.md)")
        elif minutes > VERIFIED_MIN or read.topics[topic].words != "equal":
            yield warn(words)
        else:
            yield ok(words)


FLOW_CHECKS = (
    Check(
        id="mirror-down",
        what="a mirror works on each flow that the next switch needs",
        remedy="start it: `sparkmirror run`",
        look=blocked("mirror-down", "no-flow"),
    ),
    Check(
        id="reverse-flow-ready",
        what="a mirror works on the flow back, and waits for its turn",
        remedy="enable the flow back and sparkmirror.turn in the mirror's file, and run it (docs/migrate.md)",
        look=_reverse,
    ),
    Check(
        id="standby-present",
        what="another process takes over if the mirror's dies",
        remedy="start `sparkmirror run` with the same file on another machine",
        look=_standby,
    ),
    Check(
        id="parked",
        what="no partition of the topics is parked",
        remedy="see `sparkmirror doctor`",
        look=_parked,
    ),
    Check(
        id="append-check",
        what="each target refuses an append out of place",
        remedy="mirror to another cluster or version of its brokers; see append-check in docs/lint.md",
        look=_appends,
    ),
    Check(
        id="rights",
        what="sparkmirror has its rights on both sides, for both flows and for the fence",
        remedy="grant them",
        look=_rights,
    ),
    Check(
        id="clusters",
        what="lint finds no error in the clusters: versions, replicas, topics to be created",
        remedy="see docs/lint.md",
        look=by_lint(CheckVerdict.FAIL, *_OF_CLUSTERS),
    ),
    Check(
        id="clock",
        what="clocks differ by 5 s at most",
        remedy="set the clocks, by NTP",
        look=_clock,
    ),
    Check(
        id="retention-race",
        what="the source keeps its records until they are copied",
        remedy="raise retention.ms of the topic until the flow has caught up",
        look=_retention_race,
    ),
    Check(
        id="verify-fresh",
        what="each topic was verified in the last 24 hours, since its producers last moved, and was equal",
        remedy="run `sparkmirror verify` with the mirror's file and --migration",
        look=_verify,
    ),
)
