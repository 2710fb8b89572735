"""Two lines about each flow: events with the cause first, then time and outlook.

The lines name missing figures, and call a flow well only if all figures are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from sparkmirror.exact.durable.loss_kinds import LossOutcome
from sparkmirror.look.doctor.findings import Finding, Severity
from sparkmirror.look.doctor.losses import NEWS_MS
from sparkmirror.look.doctor.parked import cause_words
from sparkmirror.look.page.words import cannot, clock, count, duration, listed, rate, size
from sparkmirror.snapshot.group_standing import GroupState
from sparkmirror.snapshot.loss_counts import totals
from sparkmirror.snapshot.snapshot import ELSEWHERE, Flow, FlowState, PartitionState

OLD_S = 5.0
"""Age above which figures are called old.

This is twice the time that a snapshot may take, or that a change may take to show.
"""

KEEPS_UP_S = 10.0
"""Lag up to which a flow keeps up, if its settings promise no objective.

Records that keep coming cause such a lag.
"""

ON_THE_WAY_S = 3.0
"""Time within which a flow that has caught up copies new records.

A longer lag means that the flow is held up; `FlowState` waits for 5 s.
"""

JUST_NOW_S = 1.0
"""Lag up to which records may be copied already, and not yet reported."""

_REASON_LENGTH = 400
"""Characters of a reason in a line: enough for sparkmirror's own reasons."""

NAMED = 3
"""Number of further facts in the second line; the rest is counted."""

_ALONE = (FlowState.WRONG_CLUSTER, FlowState.STANDING_BY, FlowState.JOINING)
"""States without a word on further facts."""
_FIRST = (*_ALONE, FlowState.UNREACHABLE, FlowState.NOTHING)
"""States without a copy, told before any further fact."""

_PRODUCTS = ("Spark", "MirrorMaker", "Kafka")

STUCK = (PartitionState.PARKED, PartitionState.PAUSED)
"""Partition states that no ETA counts."""


class Tone(StrEnum):
    """A headline's tone, the worst first."""

    BAD = "bad"
    """Data is lost or stuck."""
    WARNING = "warning"
    UNKNOWN = "unknown"
    """Too few figures are known to call the flow well."""
    WORKING = "working"
    GOOD = "good"
    STANDBY = "standby"
    """Figures are known to another process, which works on the flow."""


_WORST_FIRST = list(Tone)

LOSS_TONES = {
    LossOutcome.LOST: Tone.BAD,
    LossOutcome.TAKEN_BACK: Tone.BAD,
    LossOutcome.MAY_BE_LOST: Tone.WARNING,
    LossOutcome.ONLY_AT_SOURCE: Tone.WARNING,
    LossOutcome.FOREIGN: Tone.WARNING,
}
"""Tone for the loss ledger's entries, if the headline names the entries."""


TONES_OF = {Severity.CRITICAL: Tone.BAD, Severity.WARNING: Tone.WARNING}
"""Least tone for a flow with a finding; a notice changes no tone."""


@dataclass(frozen=True, slots=True)
class Headline:
    """Two lines about a flow, with a tone."""

    tone: Tone
    what: str
    """Event, the cause first."""
    then: str
    """Begin, outlook, and further facts."""


class _Head(NamedTuple):
    """A flow's state in words, without further facts."""

    tone: Tone
    what: str
    then: str = ""


class _But(NamedTuple):
    """Fact next to the state; `why` is told for the worst fact only."""

    tone: Tone
    words: str
    why: str = ""


def headline(flow: Flow, now_ms: int, findings: Iterable[Finding] = (), process: str = "") -> Headline:
    """Describe a flow in two lines.

    `now_ms` is the reading time, `findings` are the flow's findings, and `process` is the telling process as
    `host:pid`, never named as another process. The tone is at least the worst finding's tone; where that is worse than
    the flow's own, the second line names the first finding: the cause, in the doctor's order.
    """
    head = _head(flow, process)
    buts = [] if flow.state in _ALONE else sorted(_buts(flow), key=_by_tone)
    worst = min((head.tone, *(but.tone for but in buts)), key=_WORST_FIRST.index)
    what, then = head.what, [_since(flow, now_ms, head.tone), head.then]
    is_cause = flow.state is FlowState.HELD_UP or (bool(buts) and _by_tone(buts[0]) <= _by_tone(head))
    if buts and flow.state not in _FIRST and is_cause:
        first = buts.pop(0)
        what = f"{first.words} ({first.why})" if first.why else first.words
        what += f"; {_in_line(head.what)}"
    if buts:
        more = [f"{len(buts) - NAMED:,} more"] if len(buts) > NAMED else []
        then.append("also: " + listed([*(but.words for but in buts[:NAMED]), *more]))
    if is_old(flow, now_ms):
        worst = min(worst, Tone.UNKNOWN, key=_WORST_FIRST.index)
    ranked = list(findings)
    tones = (TONES_OF.get(finding.severity, Tone.STANDBY) for finding in ranked)
    finding_tone = min(tones, key=_WORST_FIRST.index, default=worst)
    if _WORST_FIRST.index(finding_tone) < _WORST_FIRST.index(worst):
        worst = finding_tone
        then.append(f"look below: {_in_line(ranked[0].title)}")
    return Headline(worst, _sentences([what]), _sentences(then))


def _sentences(parts: Iterable[str]) -> str:
    return " ".join(f"{part[:1].upper()}{part[1:]}." for part in parts if part)


def _in_line(sentence: str) -> str:
    """Return a sentence as it follows other words: a product's name stays as it is."""
    return sentence if sentence.startswith(_PRODUCTS) else sentence[:1].lower() + sentence[1:]


def _by_tone(said: _Head | _But) -> int:
    return _WORST_FIRST.index(said.tone)


def _since(flow: Flow, now_ms: int, tone: Tone) -> str:
    """Return the begin of the flow's state, and the age of old figures."""
    age_s = (now_ms - flow.at_ms) / 1000
    old = f"as of {duration(age_s)} ago" if age_s > OLD_S else ""
    if not flow.state_since_ms:
        return old
    lasts = duration(max(flow.at_ms - flow.state_since_ms, 0) / 1000)
    if flow.state is FlowState.UNREACHABLE and _is_told_since(flow, now_ms):
        return f"{old}: for {lasts}" if old else f"for {lasts}"
    state = "" if flow.state is FlowState.CAUGHT_UP and tone is not Tone.GOOD else f"{flow.state.value} "
    since = f"{state}since {clock(flow.state_since_ms, now_ms)} ({lasts})"
    return f"{old}: {since}" if old else since


def _is_told_since(flow: Flow, now_ms: int) -> bool:
    """Tell whether the first line has the begin of the flow's state already."""
    away_ms = (flow.source if flow.source.away else flow.target).away_since_ms
    return away_ms is not None and clock(away_ms, now_ms) == clock(flow.state_since_ms, now_ms)


def is_old(flow: Flow, now_ms: int) -> bool:
    """Tell whether the flow's figures are older than `OLD_S`."""
    return now_ms - flow.at_ms > OLD_S * 1000


def unknown_partitions(flow: Flow) -> int:
    """Return the number of partitions with unknown lag.

    This is the flow's own count or its partitions' count, whichever is larger.
    """
    return max(flow.unknown, sum(partition.lag is None for topic in flow.topics for partition in topic.partitions))


def are_stuck(flow: Flow) -> bool:
    """Tell whether partitions are parked or paused, which no ETA counts."""
    return any(partition.state in STUCK for topic in flow.topics for partition in topic.partitions)


# --- the state ----------------------------------------------------------------------------------


def _head(flow: Flow, process: str) -> _Head:
    match flow.state:
        case FlowState.WRONG_CLUSTER:
            return _Head(Tone.BAD, f"Nothing is copied: {flow.reason}")
        case FlowState.UNREACHABLE:
            return _away(flow)
        case FlowState.STANDING_BY:
            return _standby(flow, process)
        case FlowState.JOINING:
            why = flow.reason or flow.waiting or "this process waits for the flow's lease, or for a cluster"
            return _Head(Tone.UNKNOWN, f"Nothing is copied here yet: {why}", "it tries again by itself")
        case FlowState.ENDING:
            return _Head(Tone.WORKING, f"Ending: {_behind(flow)}")
        case FlowState.TRANSLATING:
            return _Head(Tone.WORKING, "Translates consumer groups only: its settings have it copy nothing")
        case FlowState.STARTING:
            return _Head(Tone.UNKNOWN, f"Starting: {_reported(flow)}")
        case FlowState.FINDING_OUT:
            return _Head(Tone.UNKNOWN, f"How far behind it is isn't known yet: {_known_and_not(flow)}")
        case FlowState.INCOMPLETE:
            return _Head(Tone.BAD, f"Ended without having copied everything: {_behind(flow)}")
        case FlowState.NOTHING:
            return _Head(Tone.BAD, f"Nothing to copy: {flow.reason or 'no topic of the source matches'}")
        case FlowState.WAITS:
            return _Head(
                Tone.WORKING, f"Waits for its turn: {flow.reason or 'each topic is live in the other direction'}"
            )
        case FlowState.DONE | FlowState.CAUGHT_UP | FlowState.HELD_UP:
            return _level(flow)
        case _:
            return _copying(flow)


def _level(flow: Flow) -> _Head:
    match flow.state:
        case FlowState.DONE | FlowState.CAUGHT_UP if flow.lag is None or unknown_partitions(flow):
            return _Head(Tone.UNKNOWN, f"Seems to have caught up, which isn't certain: {_not_known(flow)}")
        case FlowState.DONE if not flow.lag:
            return _Head(Tone.GOOD, f"Done: all {_partitions(flow)} were copied to their ends")
        case FlowState.CAUGHT_UP if flow.lag == _held_back(flow):
            return _Head(Tone.GOOD, "Caught up: all that can be read at the source is at the target")
        case FlowState.CAUGHT_UP if _is_on_the_way(flow):
            return _Head(Tone.GOOD, f"Caught up: {_on_the_way(flow)}")
        case FlowState.HELD_UP if flow.lag == 0 and not unknown_partitions(flow):
            return _Head(Tone.BAD, "All that can be copied now is copied")
        case FlowState.HELD_UP:
            rest = "" if any(topic.late for topic in flow.topics) else ", and the rest has caught up"
            return _Head(Tone.BAD, f"{_behind(flow)}{rest}")
        case _:
            return _copying(flow)


def _away(flow: Flow) -> _Head:
    """Tell about an absent cluster, since when, and how far the copy is."""
    part, side = ("source", flow.source) if flow.source.away else ("target", flow.target)
    if side.away_since_ms is None:
        return _Head(Tone.BAD, f"{flow.reason or 'a cluster does not answer'}; nothing is copied")
    copied = max((row.copied_ms or 0 for topic in flow.topics for row in topic.partitions), default=0)
    stands = f"; the newest copied record is of {clock(copied, flow.at_ms, seconds=True)}" if copied else ""
    since = clock(side.away_since_ms, flow.at_ms)
    return _Head(
        Tone.BAD,
        f"{part} {side.alias} can't be reached since {since}; nothing is copied{stands}",
        f"it continues by itself once a broker answers ({short(side.away.partition(': ')[2]) or 'none does'})",
    )


def _standby(flow: Flow, process: str) -> _Head:
    """Tell why the process does not work on the flow, and who works if known."""
    if flow.reason not in ("", ELSEWHERE):
        target = flow.target
        is_away = bool(target.away) or target.brokers_up == 0
        cause = f"Target {target.alias} does not answer: nothing" if is_away else "Nothing"
        return _Head(
            Tone.BAD,
            f"{cause} is copied by this process, which does not have the flow's lease: {flow.reason}",
            "it tries again by itself; whether another process works on the flow isn't known here",
        )
    if flow.leader_silent_ms is not None:
        named = f"{flow.leader}, the last that announced itself," if flow.leader not in ("", process) else "it"
        return _Head(
            Tone.WARNING,
            f"Another process has the flow's lease, and {named} has published nothing since "
            f"{clock(flow.leader_silent_ms, flow.at_ms)}",
            "look at that process, and for a MirrorMaker 2 in the lease's group",
        )
    if flow.leader in ("", process):
        return _Head(Tone.STANDBY, "Stands by: another process has the flow's lease", "which one isn't known here yet")
    takes_over = "this process takes over if that one ends"
    return _Head(Tone.STANDBY, f"Stands by: {flow.leader} works on it, and knows its figures", takes_over)


def _copying(flow: Flow) -> _Head:
    if flow.lag is None or unknown_partitions(flow):
        return _Head(Tone.UNKNOWN, f"Copying {rate(flow.records_per_s, 'records')}: {_known_and_not(flow)}")
    if not flow.lag:
        return _Head(Tone.WORKING, "Copying: nothing that was seen is left to copy")
    moves = _moves(flow)
    if moves and flow.lag_s is not None and flow.lag_s <= _enough(flow):
        return _Head(Tone.GOOD, f"Keeps up at {rate(flow.records_per_s, 'records')}: {_on_the_way(flow)}")
    if not moves:
        return _Head(Tone.WARNING, f"{_behind(flow)}, and nothing moves just now")
    until = "when it will have caught up isn't known"
    if flow.eta_s is not None:
        until = f"{'what can be copied is ' if are_stuck(flow) else ''}caught up in about {duration(flow.eta_s)}"
    return _Head(Tone.WORKING, f"{_behind(flow)}; {rate(flow.records_per_s, 'records')}", until)


def _is_on_the_way(flow: Flow) -> bool:
    if flow.lag_s is None or flow.lag_s > min(_enough(flow), ON_THE_WAY_S):
        return False
    return flow.lag_s <= JUST_NOW_S or _moves(flow)


def _moves(flow: Flow) -> bool:
    return flow.records_per_s > 0 and any(
        partition.records_per_s > 0 for topic in flow.topics for partition in topic.partitions
    )


def _enough(flow: Flow) -> float:
    return flow.objective_s if flow.objective_s is not None else KEEPS_UP_S


def _on_the_way(flow: Flow) -> str:
    return f"{count(flow.lag or 0, 'record')} on the way, the oldest {duration(flow.lag_s or 0.0)} old"


def _behind(flow: Flow) -> str:
    if flow.lag is None:
        return "how far behind it is isn't known"
    if not flow.lag:
        return "nothing is left to copy"
    age = f"the oldest {duration(flow.lag_s)} old" if flow.lag_s is not None else "how old isn't known"
    return f"{count(flow.lag, 'record')} behind, {age}"


def _held_back(flow: Flow) -> int:
    """Return the number of offsets that wait for a transaction's end."""
    return sum(partition.held_back for topic in flow.topics for partition in topic.partitions)


def _partitions(flow: Flow) -> str:
    return count(sum(len(topic.partitions) for topic in flow.topics), "partition")


def _reported(flow: Flow) -> str:
    rows = [partition for topic in flow.topics for partition in topic.partitions]
    if not rows:
        return "no partition to copy is known yet"
    known = sum(partition.state is not PartitionState.UNKNOWN for partition in rows)
    return f"{known:,} of {count(len(rows), 'partition')} {'has' if known == 1 else 'have'} reported"


def _known_and_not(flow: Flow) -> str:
    known = f"{_behind(flow)} in the others; " if flow.lag is not None and unknown_partitions(flow) else ""
    return known + _not_known(flow)


def _not_known(flow: Flow) -> str:
    unknown = unknown_partitions(flow)
    why = f" ({short(flow.why_unknown)})" if unknown and flow.why_unknown else ""
    return f"the lag of {count(unknown, 'partition')} isn't known{why}" if unknown else "the lag isn't known"


# --- facts next to the state ---------------------------------------------------------------------


def _buts(flow: Flow) -> list[_But]:
    further = [] if flow.state in _FIRST else _further(flow)  # where nothing is copied, that is why the rest fails
    return [*_stuck(flow), *_left_out(flow), *further]


def _stuck(flow: Flow) -> Iterator[_But]:
    if parked := flow.parked:
        topic, partition = parked[0]
        why = f"{topic.topic}-{partition.partition}: {cause_words(partition.cause) or short(partition.reason)}"
        are = "is" if len(parked) == 1 else "are"
        yield _But(
            Tone.BAD, f"{count(len(parked), 'partition')} {are} parked", why if len(parked) == 1 else f"first {why}"
        )
    if held_back := flow.open_transactions:
        topic, partition = held_back[0]
        first = f"{topic.topic}-{partition.partition}: {short(partition.reason)}"
        yield _But(Tone.BAD, f"an open transaction holds {count(len(held_back), 'partition')} back", first)
    for outcome, entries, offsets in totals(flow.losses):
        if outcome in LOSS_TONES:
            newest_ms = max(loss.newest_ms for loss in flow.losses if loss.outcome is outcome and not loss.acknowledged)
            is_history = flow.at_ms - newest_ms > NEWS_MS
            words = outcome.words(entries, offsets)
            yield _But(Tone.WARNING if is_history else LOSS_TONES[outcome], words, "over a week ago" * is_history)
    if flow.retention_s is not None:
        yield _But(
            Tone.BAD,
            f"the source deletes what isn't copied of {flow.retention_of or 'a partition'} "
            f"in {duration(flow.retention_s)}",
        )


def _left_out(flow: Flow) -> Iterator[_But]:
    if refused := [topic for topic in flow.topics if topic.refused]:
        first = f"{refused[0].topic}: {short(refused[0].refused)}"
        yield _But(Tone.WARNING, f"{count(len(refused), 'topic')} {cannot(refused)}", first)
    stopped = [
        partition for topic in flow.topics for partition in topic.partitions if partition.state is PartitionState.PAUSED
    ]
    if stopped:
        lag = (
            None
            if any(partition.lag is None for partition in stopped)
            else sum(partition.lag or 0 for partition in stopped)
        )
        behind = "their lag isn't known" if lag is None else f"{count(lag, 'record')} behind"
        are = "is" if len(stopped) == 1 else "are"
        yield _But(Tone.WARNING, f"{count(len(stopped), 'partition')} {are} paused by an operator", behind)
    elif flow.paused:
        yield _But(Tone.WARNING, "an operator has paused " + ", ".join(flow.paused[:3]))
    slips = [pattern.words for pattern in flow.unmatched if pattern.key == "topics" and pattern.hint]
    if slips and flow.state is not FlowState.NOTHING:
        yield _But(Tone.WARNING, f"nothing matches {short(slips[0])}")
    if late := sum(topic.late for topic in flow.topics):
        yield _But(Tone.WARNING, f"writers that were said to have moved wrote {count(late, 'record')} at the source")


def _further(flow: Flow) -> Iterator[_But]:
    if stuck := sum(group.state is GroupState.NOT_SYNCED for group in flow.groups):
        yield _But(Tone.WARNING, f"the offsets of {count(stuck, 'group')} can't be set at the target")
    if beyond := sum(group.state is GroupState.BEYOND_END for group in flow.groups):
        yield _But(Tone.WARNING, f"{count(beyond, 'group')} {'is' if beyond == 1 else 'are'} beyond the source's end")
    skipping = [group for group in flow.groups if group.skipped and group.state is not GroupState.NOT_SYNCED]
    if skipping:
        skipped = sum(group.skipped or 0 for group in skipping)
        yield _But(Tone.WARNING, f"{count(len(skipping), 'group')} would skip {count(skipped, 'record')} at a move")
    if failing := [duty.duty for duty in flow.duties if duty.failing]:
        yield _But(Tone.WARNING, f"{listed(failing[:3])} {'fails' if len(failing) == 1 else 'fail'}")
    told = {partition.reason for topic in flow.topics for partition in topic.partitions if partition.state in STUCK}
    if flow.waiting and flow.waiting not in told and flow.state is not FlowState.JOINING:
        yield _But(Tone.WARNING, "pumps wait", short(flow.waiting))
    if flow.bytes_per_s_cap is not None and flow.lag:
        yield _But(Tone.WORKING, f"it is capped at {size(flow.bytes_per_s_cap)}/s")


def short(text: str) -> str:
    """Return a reason in a line, without a full stop.

    A very long reason lacks the middle.
    """
    line = " ".join(text.split()).rstrip(".")
    if len(line) <= _REASON_LENGTH:
        return line
    return f"{line[: _REASON_LENGTH * 2 // 3]} … {line[-_REASON_LENGTH // 3 :]}"
