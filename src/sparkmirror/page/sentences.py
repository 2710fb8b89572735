"""Sentence about each flow: its state, its lag, the time left, and every "but".

A sentence names missing figures, and calls a flow well only if all figures are known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from sparkmirror.durable.loss_kinds import LossOutcome
from sparkmirror.engine.loss_counts import totals
from sparkmirror.engine.snapshot import Flow, FlowState, PartitionState, Role
from sparkmirror.page.words import cannot, count, duration, listed, rate, size
from sparkmirror.sync.group_standing import GroupState

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

_REASON_LENGTH = 160

STUCK = (PartitionState.PARKED, PartitionState.PAUSED)
"""States of partitions that no ETA counts."""


class Tone(StrEnum):
    """Tone of a sentence, the worst first."""

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
    LossOutcome.FOREIGN: Tone.WARNING,
}
"""Tone of what the loss ledger says, if the sentence speaks of it."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """Words about a flow, and their tone."""

    tone: Tone
    words: str


@dataclass(frozen=True, slots=True)
class _But:
    """Fact that the headline leaves out."""

    tone: Tone
    words: str


def sentence(flow: Flow, now_ms: int) -> Sentence:
    """Describe the flow in one sentence; `now_ms` is the time of reading."""
    if flow.state is FlowState.WRONG_CLUSTER:
        return Sentence(Tone.BAD, f"Nothing is copied: {flow.reason}{_old(flow, now_ms)}.")
    head = _away(flow) or _headline(flow)
    if flow.role is not Role.LEADER and flow.state in (FlowState.STANDING_BY, FlowState.JOINING):
        return Sentence(head.tone, head.words + _old(flow, now_ms) + ".")
    buts = [*_stuck(flow), *_left_out(flow), *_beside(flow)]
    worst = min((head.tone, *(but.tone for but in buts)), key=_WORST_FIRST.index)
    words = head.words + (", but " + listed([but.words for but in buts]) if buts else "") + _old(flow, now_ms)
    if is_old(flow, now_ms):
        worst = min(worst, Tone.UNKNOWN, key=_WORST_FIRST.index)
    return Sentence(worst, words + ".")


def is_old(flow: Flow, now_ms: int) -> bool:
    """Tell whether the flow's figures are older than `OLD_S`."""
    return now_ms - flow.at_ms > OLD_S * 1000


def unknown_partitions(flow: Flow) -> int:
    """Return the number of partitions with unknown lag.

    This is the larger of the flow's own count and the count of its partitions.
    """
    return max(flow.unknown, sum(partition.lag is None for topic in flow.topics for partition in topic.partitions))


def are_stuck(flow: Flow) -> bool:
    """Tell whether partitions are parked or paused, which no ETA counts."""
    return any(partition.state in STUCK for topic in flow.topics for partition in topic.partitions)


def _old(flow: Flow, now_ms: int) -> str:
    age_s = (now_ms - flow.at_ms) / 1000
    return f" (as of {duration(age_s)} ago)" if age_s > OLD_S else ""


# --- the headline -------------------------------------------------------------------------------


def _away(flow: Flow) -> Sentence | None:
    if flow.state is not FlowState.UNREACHABLE:
        return None
    away = flow.source.away or flow.target.away or flow.reason
    return Sentence(Tone.BAD, f"{away[:1].upper()}{away[1:]}; nothing is copied")


def _headline(flow: Flow) -> Sentence:
    since = duration(max(flow.at_ms - flow.state_since_ms, 0) / 1000) if flow.state_since_ms else ""
    in_it = f" for {since}" if since else ""
    leader = flow.leader or "another process"
    match flow.state:
        case FlowState.STANDING_BY:
            return Sentence(Tone.STANDBY, f"Stands by{in_it}: {leader} works on it, and knows its figures")
        case FlowState.JOINING:
            why = short(flow.reason or flow.waiting) or "the flow's lease, or a cluster"
            return Sentence(Tone.UNKNOWN, f"Joining{in_it}: nothing is copied here until this comes: {why}")
        case FlowState.ENDING:
            return Sentence(Tone.WORKING, f"Ending{in_it}: {_behind(flow)}")
        case FlowState.TRANSLATING:
            return Sentence(Tone.WORKING, "Translates consumer groups only: its settings have it copy nothing")
        case FlowState.STARTING:
            return Sentence(Tone.UNKNOWN, f"Starting{in_it}: {_reported(flow)}")
        case FlowState.FINDING_OUT:
            return Sentence(Tone.UNKNOWN, f"How far behind it is isn't known yet{in_it}: {_known_and_not(flow)}")
        case FlowState.INCOMPLETE:
            return Sentence(Tone.BAD, f"Ended without having copied everything: {_behind(flow)}")
        case FlowState.NOTHING:
            return Sentence(Tone.BAD, f"Nothing to copy{in_it}: {flow.reason or 'no topic of the source matches'}")
        case FlowState.DONE | FlowState.CAUGHT_UP if flow.lag is None or unknown_partitions(flow):
            return Sentence(Tone.UNKNOWN, f"Seems to have caught up{in_it}, which isn't certain: {_not_known(flow)}")
        case FlowState.DONE if not flow.lag:
            return Sentence(Tone.GOOD, f"Done: all {_partitions(flow)} were copied to their ends")
        case FlowState.CAUGHT_UP if flow.lag == _held_back(flow):
            return Sentence(Tone.GOOD, f"Caught up{in_it}: all that can be read at the source is at the target")
        case FlowState.CAUGHT_UP if _is_on_the_way(flow):
            return Sentence(Tone.GOOD, f"Caught up{in_it}: {_on_the_way(flow)}")
        case FlowState.HELD_UP if flow.lag == 0 and not unknown_partitions(flow):
            return Sentence(Tone.BAD, f"Held up{in_it}: all that can be copied now is copied")
        case FlowState.HELD_UP:
            rest = "" if any(topic.late for topic in flow.topics) else ", and the rest has caught up"
            return Sentence(Tone.BAD, f"Held up{in_it}: {_behind(flow)}{rest}")
        case _:
            return _copying(flow)


def _copying(flow: Flow) -> Sentence:
    if flow.lag is None or unknown_partitions(flow):
        return Sentence(Tone.UNKNOWN, f"Copying {rate(flow.records_per_s, 'records')}: {_known_and_not(flow)}")
    if not flow.lag:
        return Sentence(Tone.WORKING, "Copying: nothing that was seen is left to copy")
    moves = _moves(flow)
    if moves and flow.lag_s is not None and flow.lag_s <= _enough(flow):
        return Sentence(Tone.GOOD, f"Keeps up at {rate(flow.records_per_s, 'records')}: {_on_the_way(flow)}")
    if not moves:
        return Sentence(Tone.WARNING, f"{_behind(flow).capitalize()}, and nothing moves just now")
    until = "when it will have caught up isn't known"
    if flow.eta_s is not None:
        until = f"{'what can be copied is ' if are_stuck(flow) else ''}caught up in about {duration(flow.eta_s)}"
    return Sentence(Tone.WORKING, f"{_behind(flow).capitalize()}; {rate(flow.records_per_s, 'records')}; {until}")


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
    """Return the number of offsets that wait for the end of a transaction."""
    return sum(partition.held_back for topic in flow.topics for partition in topic.partitions)


def _partitions(flow: Flow) -> str:
    return count(sum(len(topic.partitions) for topic in flow.topics), "partition")


def _reported(flow: Flow) -> str:
    rows = [partition for topic in flow.topics for partition in topic.partitions]
    if not rows:
        return "no partition to copy is known yet"
    known = sum(partition.state is not PartitionState.UNKNOWN for partition in rows)
    return f"{known:,} of {count(len(rows), 'partition')} have reported"


def _known_and_not(flow: Flow) -> str:
    known = f"{_behind(flow)} in the others; " if flow.lag is not None and unknown_partitions(flow) else ""
    return known + _not_known(flow)


def _not_known(flow: Flow) -> str:
    unknown = unknown_partitions(flow)
    why = f" ({short(flow.why_unknown)})" if unknown and flow.why_unknown else ""
    return f"the lag of {count(unknown, 'partition')} isn't known{why}" if unknown else "the lag isn't known"


# --- facts beside the headline ------------------------------------------------------------------


def _stuck(flow: Flow) -> Iterator[_But]:
    if parked := flow.parked:
        topic, partition = parked[0]
        why = short(partition.reason or partition.cause.value)
        first = (
            f"{topic.topic}-{partition.partition}: {why}"
            if len(parked) == 1
            else f"first {topic.topic}-{partition.partition}: {why}"
        )
        are = "is" if len(parked) == 1 else "are"
        yield _But(Tone.BAD, f"{count(len(parked), 'partition')} {are} parked ({first})")
    if held_back := flow.open_transactions:
        topic, partition = held_back[0]
        first = f"{topic.topic}-{partition.partition}: {short(partition.reason)}"
        yield _But(Tone.BAD, f"an open transaction holds {count(len(held_back), 'partition')} back ({first})")
    for outcome, entries, offsets in totals(flow.losses):
        if outcome in LOSS_TONES:
            yield _But(LOSS_TONES[outcome], outcome.words(entries, offsets))
    if flow.retention_s is not None:
        yield _But(
            Tone.BAD,
            f"the source deletes what isn't copied of {flow.retention_of or 'a partition'} "
            f"in {duration(flow.retention_s)}",
        )


def _left_out(flow: Flow) -> Iterator[_But]:
    if refused := [topic for topic in flow.topics if topic.refused]:
        first = f"{refused[0].topic}: {short(refused[0].refused)}"
        yield _But(Tone.WARNING, f"{count(len(refused), 'topic')} {cannot(refused)} ({first})")
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
        yield _But(Tone.WARNING, f"{count(len(stopped), 'partition')} {are} paused by an operator ({behind})")
    elif flow.paused:
        yield _But(Tone.WARNING, "an operator has paused " + ", ".join(flow.paused[:3]))
    slips = [pattern.words for pattern in flow.unmatched if pattern.key == "topics" and pattern.hint]
    if slips and flow.state is not FlowState.NOTHING:
        yield _But(Tone.WARNING, f"nothing matches {short(slips[0])}")
    if late := sum(topic.late for topic in flow.topics):
        yield _But(Tone.WARNING, f"writers that were said to have moved wrote {count(late, 'record')} at the source")


def _beside(flow: Flow) -> Iterator[_But]:
    if stuck := sum(group.state is GroupState.NOT_SYNCED for group in flow.groups):
        yield _But(Tone.WARNING, f"the offsets of {count(stuck, 'group')} can't be set at the target")
    if beyond := sum(group.state is GroupState.BEYOND_END for group in flow.groups):
        yield _But(Tone.WARNING, f"{count(beyond, 'group')} {'is' if beyond == 1 else 'are'} beyond the source's end")
    skipping = [group for group in flow.groups if group.skipped and group.state is not GroupState.NOT_SYNCED]
    if skipping:
        skipped = sum(group.skipped or 0 for group in skipping)
        yield _But(Tone.WARNING, f"{count(len(skipping), 'group')} would skip {count(skipped, 'record')} at a move")
    if flow.state is FlowState.UNREACHABLE:
        return  # all else that fails has this reason
    if failing := [duty.duty for duty in flow.duties if duty.failing]:
        yield _But(Tone.WARNING, f"{listed(failing[:3])} {'fails' if len(failing) == 1 else 'fail'}")
    told = {partition.reason for topic in flow.topics for partition in topic.partitions if partition.state in STUCK}
    if flow.waiting and flow.waiting not in told and flow.state is not FlowState.JOINING:
        yield _But(Tone.WARNING, f"pumps wait: {short(flow.waiting)}")
    if flow.bytes_per_s_cap is not None and flow.lag:
        yield _But(Tone.WORKING, f"it is capped at {size(flow.bytes_per_s_cap)}/s")


def short(text: str) -> str:
    """Return the beginning of a reason, without a full stop."""
    line = " ".join(text.split()).rstrip(".")
    return line if len(line) <= _REASON_LENGTH else line[: _REASON_LENGTH - 1] + "…"
