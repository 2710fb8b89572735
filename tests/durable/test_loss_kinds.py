"""The one table of kinds of losses, and that each place which speaks of losses speaks by it.

A new kind, or a new outcome, fails here until it has a row in the table, in `OUTCOMES` or `SAID`, and in the docs.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple, get_args

import pytest
import yaml
from tests.support.snapshot_samples import NOW_MS, flow, level_group, snapshot

from sparkmirror.exact.durable.acknowledgements import Acknowledgement, LedgerEntry
from sparkmirror.exact.durable.loss_kinds import LOSS_KINDS, Action, LossKind, LossOutcome, outcome_of
from sparkmirror.exact.durable.losses import Loss
from sparkmirror.look.doctor.findings import diagnose
from sparkmirror.look.doctor.flow_status import line
from sparkmirror.look.doctor.losses import LOSSES_BY_OUTCOME
from sparkmirror.look.metrics.collector import MirrorCollector
from sparkmirror.look.page.cut_over import CutOverVerdict, cut_over
from sparkmirror.look.page.sentences import Tone, headline
from sparkmirror.mirror.engine.flow_health import is_healthy
from sparkmirror.snapshot.loss_counts import loss_counts, loss_row, summed_up
from sparkmirror.snapshot.snapshot import Flow

ROOT = Path(__file__).parents[2]
LOSSES_PAGE = (ROOT / "docs" / "losses.md").read_text()
RUNBOOK = (ROOT / "docs" / "runbook.md").read_text()

OUTCOMES: dict[tuple[LossKind, Action], LossOutcome] = {
    (LossKind.EXPIRED, "continued"): LossOutcome.LOST,
    (LossKind.EXPIRED, "halted"): LossOutcome.LOST,
    (LossKind.TRUNCATED, "continued"): LossOutcome.TAKEN_BACK,
    (LossKind.TRUNCATED, "halted"): LossOutcome.TAKEN_BACK,
    (LossKind.RECREATED, "restarted"): LossOutcome.MAY_BE_LOST,
    (LossKind.RECREATED, "halted"): LossOutcome.MAY_BE_LOST,
    (LossKind.SHRUNK, "halted"): LossOutcome.MAY_BE_LOST,
    (LossKind.TARGET_TRUNCATED, "halted"): LossOutcome.MAY_BE_LOST,
    (LossKind.TARGET_TRUNCATED, "healed"): LossOutcome.HEALED,
    (LossKind.TARGET_RECREATED, "restarted"): LossOutcome.LOST,
    (LossKind.TARGET_RECREATED, "healed"): LossOutcome.HEALED,
    (LossKind.FOREIGN, "continued"): LossOutcome.FOREIGN,
    (LossKind.FENCED, "continued"): LossOutcome.EXPECTED,
    (LossKind.COPY_EXPIRED, "continued"): LossOutcome.ONLY_AT_SOURCE,
    (LossKind.ALTERED, "continued"): LossOutcome.SKIPPED,
    (LossKind.ALTERED, "restarted"): LossOutcome.TWICE,
}


class _Said(NamedTuple):
    tone: Tone
    words: str
    """Part of the page's first line; empty if it says nothing."""
    rule: str
    severity: str
    healthy: bool
    ready: bool
    """True if a cut-over is not held up."""
    alert: str = ""
    """Severity of the alert RecordsLost; empty if it does not fire."""


SAID = {
    LossOutcome.LOST: _Said(Tone.BAD, "lost for good", "records-lost", "critical", False, False, "critical"),
    LossOutcome.TAKEN_BACK: _Said(Tone.BAD, "took back", "records-taken-back", "critical", False, False, "critical"),
    LossOutcome.MAY_BE_LOST: _Said(
        Tone.WARNING, "records may be lost", "records-may-be-lost", "warning", False, False, "warning"
    ),
    LossOutcome.ONLY_AT_SOURCE: _Said(Tone.WARNING, "the source had longer", "copy-expired", "warning", True, False),
    LossOutcome.FOREIGN: _Said(Tone.WARNING, "another producer has written", "foreign-writer", "warning", True, True),
    LossOutcome.SKIPPED: _Said(Tone.GOOD, "", "offsets-altered", "notice", True, False),
    LossOutcome.TWICE: _Said(Tone.GOOD, "", "records-twice", "notice", True, False),
    LossOutcome.HEALED: _Said(Tone.GOOD, "", "copy-healed", "notice", True, True),
    LossOutcome.EXPECTED: _Said(Tone.GOOD, "", "", "", True, True),
}

each_entry = pytest.mark.parametrize(("kind", "action"), OUTCOMES, ids=lambda value: str(value))


def entry(kind: LossKind, action: Action, *, offsets: int | None = None, acknowledged: bool = False) -> LedgerEntry:
    """One of the ledger; with a range where the kind has one, unless it was healed."""
    row = LOSS_KINDS[kind]
    if offsets is None:
        offsets = 7 if row.counts and not row.healed_but_for_range else 0
    loss = Loss(
        kind=kind,
        source_topic="orders",
        target_topic="A.orders",
        partition=0,
        first=30,
        end=30 + offsets,
        downstream=30,
        target_topic_id="0" * 32,
        action=action,
        words="as it was",
        at_ms=NOW_MS - 5_000,
    )
    word = Acknowledgement(acknowledged=loss.key, first=30, end=loss.end, at_ms=NOW_MS, by="ann@host", why="known")
    return LedgerEntry(loss, word if acknowledged else None)


def of(*entries: LedgerEntry) -> Flow:
    """A flow that has caught up, with these in its ledger."""
    return flow(losses=loss_counts(entries), loss_entries=tuple(map(loss_row, entries)), groups=(level_group(),))


def test_each_kind_and_each_outcome_is_here() -> None:
    assert set(LOSS_KINDS) == set(LossKind)
    assert set(SAID) == set(LossOutcome)
    assert set(LOSSES_BY_OUTCOME) == set(LossOutcome) - {LossOutcome.EXPECTED}
    assert {(kind, action) for kind, row in LOSS_KINDS.items() for action in row.outcomes} == set(OUTCOMES)
    assert {outcome for row in LOSS_KINDS.values() for outcome in row.outcomes.values()} == set(LossOutcome)


@each_entry
def test_what_became_of_the_records(kind: LossKind, action: Action) -> None:
    assert entry(kind, action).loss.outcome is OUTCOMES[kind, action]
    assert outcome_of(kind, "expected", 7) is LossOutcome.EXPECTED


def test_what_a_copy_that_was_made_again_lacks_is_lost() -> None:
    assert entry(LossKind.TARGET_RECREATED, "healed", offsets=20).loss.outcome is LossOutcome.LOST
    assert entry(LossKind.TARGET_TRUNCATED, "healed", offsets=20).loss.outcome is LossOutcome.HEALED


@pytest.mark.parametrize("kind", LossKind)
def test_an_action_that_the_table_does_not_know_is_taken_for_the_worst(kind: LossKind) -> None:
    """A newer release's; a fence is no loss whatever is done about it."""
    known = LOSS_KINDS[kind].outcomes
    unknown = next(action for action in get_args(Action) if action not in (*known, "expected"))
    assert outcome_of(kind, unknown, 7) is min(known.values(), key=list(LossOutcome).index)


@each_entry
def test_the_page_says_it(kind: LossKind, action: Action) -> None:
    wanted = SAID[OUTCOMES[kind, action]]
    said = headline(of(entry(kind, action)), NOW_MS)
    assert said.tone is wanted.tone
    assert wanted.words in said.what.lower()
    if not wanted.words:
        assert said == headline(flow(groups=(level_group(),)), NOW_MS)


@each_entry
def test_the_cut_over_waits_for_it(kind: LossKind, action: Action) -> None:
    board = cut_over(of(entry(kind, action)), NOW_MS)
    wanted = SAID[OUTCOMES[kind, action]]
    assert board.verdict is (CutOverVerdict.READY if wanted.ready else CutOverVerdict.NOT_YET)
    assert ("sparkmirror losses ack" in board.words) is not wanted.ready
    assert "never" not in board.words


@each_entry
def test_the_doctor_says_it(kind: LossKind, action: Action) -> None:
    wanted = SAID[OUTCOMES[kind, action]]
    findings = diagnose(snapshot(of(entry(kind, action))))
    assert [(one.rule, one.severity.value, one.subject) for one in findings] == (
        [(wanted.rule, wanted.severity, kind.value)] if wanted.rule else []
    )
    assert ("never will be" in "".join(one.title for one in findings)) is (OUTCOMES[kind, action] is LossOutcome.LOST)


@each_entry
def test_health_checks_say_it(kind: LossKind, action: Action) -> None:
    now = of(entry(kind, action))
    wanted = SAID[OUTCOMES[kind, action]]
    assert is_healthy(now) is wanted.healthy
    assert ("; 1 loss;" in line(now, 0.0)) is not wanted.healthy
    assert bool(summed_up(now.losses)) is not wanted.healthy, "the line of a run"


@each_entry
def test_metrics_count_it(kind: LossKind, action: Action) -> None:
    """Entries as well as offsets, so that a kind without offsets counts."""
    text = MirrorCollector(lambda: snapshot(of(entry(kind, action)))).text().decode()
    found = dict(re.findall(r'^sparkmirror_(losses|lost_records)_total\{flow="A->B",(.*)\} \d+$', text, re.MULTILINE))
    if not SAID[OUTCOMES[kind, action]].alert:
        assert found == {}
        return
    series = f'kind="{kind}",outcome="{OUTCOMES[kind, action]}"'
    assert found == {"losses": series, "lost_records": series}
    assert f'sparkmirror_losses_total{{flow="A->B",{series}}} 1\n' in text


@pytest.mark.parametrize("outcome", LossOutcome)
def test_the_alert_fires_for_it(outcome: LossOutcome) -> None:
    """By its label; `deploy/prometheus/alerts_test.yml` has it fire and end."""
    groups = yaml.safe_load((ROOT / "deploy" / "prometheus" / "alerts.yml").read_text())["groups"]
    rules: list[dict[str, Any]] = [rule for group in groups for rule in group["rules"]]
    fires = set()
    for rule in (rule for rule in rules if rule["alert"] == "RecordsLost"):
        selectors = re.findall(r'sparkmirror_\w+\{outcome=~?"([^"]+)"\}', rule["expr"])
        assert len(selectors) == rule["expr"].count("sparkmirror_")
        if all(outcome in selector.split("|") for selector in selectors):
            fires.add(rule["labels"]["severity"])
    assert fires == ({SAID[outcome].alert} if SAID[outcome].alert else set())


@each_entry
def test_an_acknowledged_loss_makes_nothing_red(kind: LossKind, action: Action) -> None:
    now = of(entry(kind, action, acknowledged=True))
    assert is_healthy(now)
    assert summed_up(now.losses) == ()
    assert diagnose(snapshot(now)) == []
    assert headline(now, NOW_MS).tone is Tone.GOOD
    board = cut_over(now, NOW_MS)
    assert board.verdict is CutOverVerdict.READY
    differs = OUTCOMES[kind, action].differs
    assert ("copied but for 1 acknowledged loss." in board.words) is differs
    assert ("; 1 loss acknowledged;" in line(now, 0.0)) is differs
    (row,) = now.loss_entries
    assert row.acknowledged.endswith(" by ann@host: known")


def _cells(page: str, head: str) -> list[list[str]]:
    table = page.split(head)[1].split("\n\n")[0]
    return [[cell.strip() for cell in row.strip().strip("|").split("|")] for row in table.splitlines()[2:]]


def test_the_docs_say_it() -> None:
    """`docs/losses.md`: a row for each kind with its outcomes, and one for each outcome with what each place says."""
    told = {row[0].strip("`"): set(re.findall(r"`([\w -]+)`", row[2])) for row in _cells(LOSSES_PAGE, "| kind | what")}
    wanted = {kind.value: {outcome.value for outcome in row.outcomes.values()} for kind, row in LOSS_KINDS.items()}
    wanted[LossKind.TARGET_RECREATED].add(LossOutcome.LOST)
    assert told == wanted

    rows = {row[0].strip("`"): row[2:] for row in _cells(LOSSES_PAGE, "| outcome | what")}
    assert rows == {
        outcome.value: [
            {Tone.BAD: "Problem", Tone.WARNING: "Look", Tone.GOOD: "-"}[said.tone],
            f"{said.severity}: `{said.rule}`" if said.rule else "-",
            "0" if said.healthy else "1",
            said.alert or "-",
            "continues" if said.ready else "waits",
        ]
        for outcome, said in SAID.items()
    }


def test_the_runbook_says_what_fires() -> None:
    section = RUNBOOK.split("## RecordsLost")[1].split("\n## ")[0]
    told = dict(re.findall(r"^\| `([\w ]+)` \| (\w+) \|", section, re.MULTILINE))
    assert told == {outcome.value: said.alert for outcome, said in SAID.items() if said.alert}


def test_what_is_said_of_a_loss_is_plain_text() -> None:
    """It travels as JSON to terminals and to the page."""
    for outcome in LossOutcome:
        for entries, offsets in ((1, 0), (1, 1), (3, 1_200)):
            words = outcome.words(entries, offsets)
            assert json.loads(json.dumps(words)) == words
            assert ("1 offsets" in words, "1 entries" in words) == (False, False)
