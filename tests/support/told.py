"""What a fair witness says of each planted fault: the verbs' words and exit codes, the alerts, the page."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.support.healthy import healthy
from tests.support.planted import FAULTS
from tests.support.planted_flows import Fault

from sparkmirror.look.doctor.findings import diagnose
from sparkmirror.look.page.cut_over import CutOverVerdict
from sparkmirror.look.page.sentences import Tone

NO_STATUS = None
"""A process without the lease publishes nothing, so the verbs tell nothing of it: its page and its metrics do."""
LEVEL = "Caught up: all that can be read at the source is at the target."
STANDS_STILL = "and nothing moves just now"


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The words that must be there, and the rest exactly."""

    status: str
    """How the line of `sparkmirror status` begins."""
    check: int | None
    """Exit code of `sparkmirror status --check`."""
    doctor: int
    """Exit code of `sparkmirror doctor`: 0 without a finding, or with notices alone."""
    alerts: frozenset[str]
    """Those that fire while it lasts for hours."""
    tone: Tone
    says: str
    """In the page's two lines."""
    cut_over: CutOverVerdict = CutOverVerdict.NOT_YET


def _parked(says: str, *alerts: str) -> Told:
    return Told(
        status="held up (orders-0 is parked: ",
        check=1,
        doctor=1,
        alerts=frozenset({"PartitionsParked", "LagOverObjective", *alerts}),
        tone=Tone.BAD,
        says=says,
    )


def _slow(*alerts: str, says: str = STANDS_STILL, tone: Tone = Tone.WARNING, doctor: int = 1) -> Told:
    return Told(status="copying;", check=0, doctor=doctor, alerts=frozenset(alerts), tone=tone, says=says)


def _level(*alerts: str, says: str = LEVEL, tone: Tone = Tone.WARNING) -> Told:
    """What it copies is level, and something else is to be mended."""
    return Told(status="caught up;", check=0, doctor=1, alerts=frozenset(alerts), tone=tone, says=says)


def _worth_knowing(*alerts: str, says: str = LEVEL, tone: Tone = Tone.GOOD) -> Told:
    return dataclasses.replace(_level(*alerts, says=says, tone=tone), doctor=0)


def _lost(status: str, says: str, tone: Tone = Tone.BAD) -> Told:
    return Told(status=status, check=1, doctor=1, alerts=frozenset({"RecordsLost"}), tone=tone, says=says)


def _held_up(status: str, says: str, *alerts: str) -> Told:
    return Told(status=status, check=1, doctor=1, alerts=frozenset(alerts), tone=Tone.BAD, says=says)


def _begins(status: str, says: str) -> Told:
    return Told(status=status, check=0, doctor=1, alerts=frozenset({"FlowNoProgress"}), tone=Tone.BAD, says=says)


def _elsewhere(status: str, says: str, tone: Tone, *alerts: str) -> Told:
    """A process without the lease."""
    return Told(
        status=status,
        check=NO_STATUS,
        doctor=1,
        alerts=frozenset(alerts),
        tone=tone,
        says=says,
        cut_over=CutOverVerdict.UNKNOWN,
    )


TOLD: Mapping[str, Told] = {
    # --- the clusters ---
    "the target's brokers are down: all partitions parked, duties fail, groups late": _parked(
        "4 partitions are parked (first orders-0: a broker can't be reached)", "GroupSyncLate"
    ),
    "the source's name leads to another cluster: no connection is used, partitions wait": _held_up(
        "wrong cluster (A leads to another cluster: flow A->B is with cluster x",
        "Nothing is copied: A leads to another cluster",
        "WrongCluster",
        "PartitionsParked",
        "LagOverObjective",
    ),
    "the source's brokers are down: all partitions parked": _parked("first orders-0: a broker can't be reached"),
    "the source is away: what was caught up is not known any more": _held_up(
        "unreachable (cluster A has not answered since then",
        "Source A can't be reached since",
        "ClusterUnreachable",
        "FlowNoProgress",
    ),
    "the source refuses the sign-in: its password is another one now": _held_up(
        "unreachable (cluster A has not answered since then: sign-in by SCRAM-SHA-512 as mirror is refused)",
        "It continues by itself once a broker answers (sign-in by SCRAM-SHA-512 as mirror is refused).",
        "ClusterUnreachable",
        "FlowNoProgress",
    ),
    "the target is away, and this process only stands by": _elsewhere(
        "standing by", "Look below: the target's brokers can't be reached.", Tone.BAD, "ClusterUnreachable"
    ),
    "a transaction hangs at the source: all that comes after it waits": _held_up(
        "held up (orders-0: 500 offsets wait for the end of a transaction of producer 4000; to end it: kafka-trans",
        "An open transaction holds 1 partition back (orders-0: 500 offsets wait",
        "TransactionOpen",
        "FlowNoProgress",
        "GroupSyncLate",
        "LagOverObjective",
    ),
    "a slip in the pattern of topics: only heartbeats are copied": _held_up(
        "nothing to copy (no topic of A matches topics = ordrs (did you mean orders?))",
        "Nothing to copy: no topic of A matches topics = ordrs (did you mean orders?).",
        "NothingToCopy",
    ),
    "a slip in one pattern of several": _worth_knowing(
        says="Nothing matches topics = paymnts (did you mean payments?)", tone=Tone.WARNING
    ),
    "a slip in the pattern of groups": _worth_knowing(),
    "a broker of the target has died: its partitions wait, others continue": _slow(
        "FlowNoProgress", says="Look below: the target's brokers can't be reached.", tone=Tone.BAD
    ),
    "the source's certificate has ended: no client is let in": _parked(
        "3 partitions are parked (first orders-0: a broker can't be reached)", "CertificateExpires"
    ),
    "a certificate ends in five days": _level(
        "CertificateExpires", says="Look below: a certificate ends soon, or has ended."
    ),
    "a quota at the target is so low that nothing moves": _slow(
        "FlowNoProgress",
        "LagOverObjective",
        "TargetThrottles",
        says="Look below: the target's brokers hold the pumps back.",
        tone=Tone.BAD,
    ),
    "a quota at the source slows the catch-up down": _slow("LagOverObjective"),
    # --- the lease ---
    "a MirrorMaker 2 still works in the lease's group": _elsewhere(
        "standing by (a MirrorMaker 2 still runs",
        "which does not have the flow's lease: a MirrorMaker 2 still runs in group A-mm2.",
        Tone.BAD,
        "NobodyWorks",
    ),
    "two processes stand by, and none works": _elsewhere(
        "joining", "Look below: no process works on the flow.", Tone.BAD, "NobodyWorks"
    ),
    "a process joins for ten minutes": _elsewhere(
        "joining (no answer)", "Nothing is copied here yet: no answer.", Tone.BAD, "NobodyWorks"
    ),
    "no other process was started": _worth_knowing("NoStandby"),
    # --- pumps and Spark ---
    "executors die as soon as they begin": _begins(
        "starting;", "Look below: Spark's jobs for this flow fail one after the other."
    ),
    "Spark gives no executors": _begins("starting;", "Look below: the flow has been starting for long."),
    "positions can't be read for long": _begins("finding out;", "the lag of 3 partitions isn't known."),
    "the executors' host hangs: no reports, no progress": _slow(
        "FlowNoProgress", says="Look below: pumps don't report.", tone=Tone.BAD
    ),
    "a pump's memory grows": _level(says="Look below: a pump holds more memory than it should."),
    "a pump hangs: positions stand still": _slow(
        "FlowNoProgress", says="Look below: nothing is copied though records wait.", tone=Tone.BAD
    ),
    "one of two partitions hangs": _slow(),
    # --- how the work is spread; latency ---
    "Spark has two slots for eight tasks, and falls behind": _slow("LagOverObjective"),
    "one key gets most records": _slow("LagOverObjective"),
    "one task has all busy partitions": _slow("LagOverObjective"),
    "ten tasks for twenty idle partitions": _worth_knowing(),
    "tasks.max 32 for one partition": _worth_knowing(),
    "recompression takes all cores": _slow("LagOverObjective"),
    "the source's disks are slow": _slow("LagOverObjective"),
    # --- bandwidth, lag ---
    "an operator left a throttle in place": _slow("LagOverObjective", says="Also: it is capped at 1.0 kB/s."),
    "most of what is fetched belongs to aborted transactions": _slow(),
    "more is written than copied": _slow("LagOverObjective"),
    "the promise is broken by a little": _slow("LagOverObjective"),
    "retention is an hour, the backlog a day": _slow(
        "LagOverObjective", "RetentionWillWin", says="deletes what isn't copied of orders-0 in 8 min", tone=Tone.BAD
    ),
    "a paused topic will be deleted before it is copied": _slow(
        "RetentionWillWin", says="The source deletes what isn't copied of orders-1 in 15 min", tone=Tone.BAD
    ),
    "a topic was paused two hours ago and forgotten": _slow(says="2 partitions are paused by an operator (10,000"),
    # --- topics ---
    "another flow has the topic's copy; its group can't move either": _held_up(
        "held up (bills is refused: flow C->B copies into bills)",
        "1 topic can't be copied at all (bills: flow C->B copies into bills)",
        "TopicsRefused",
    ),
    "writers said to have moved still write": _held_up(
        "held up (orders: 12 offsets came to the source after its writers had moved, and are not copied);"
        " 1,000 records, 98.8% done",
        "Writers that were said to have moved wrote 12 records at the source",
        "LateRecords",
    ),
    "a forgotten writer has created the topic again whose writers have moved": _held_up(
        "held up (orders: created again at the source after its writers had moved: 120 offsets are not copied)",
        "Writers that were said to have moved wrote 120 records at the source",
        "LateRecords",
    ),
    "a writer was stopped a moment after its topic was said to be done": _worth_knowing(),
    "a source topic was deleted": _worth_knowing(),
    # --- parked partitions ---
    "a record is larger than the target takes": _parked("(orders-0: a batch is larger than the target takes)"),
    "records of 2001 and a target that takes none": _parked("a record is older or newer than the target takes"),
    "the right to write was taken away": _parked("(first orders-0: a right is missing)"),
    "partitions of the source have no leader, and the promise is broken": _parked(
        "orders-0: partitions have no leader"
    ),
    "the only broker of a partition has died: it waits, others continue": _begins(
        "finding out (orders-0: A: orders-0 has no leader now)", "Look below: partitions have no leader."
    ),
    "one replica in sync is left, two are wanted": _parked("orders-0: the target has too few replicas in sync"),
    "the source deleted records before they were copied": _parked("900 offsets were lost for good.", "RecordsLost"),
    "a producer has moved to the copy": _parked("(orders-0: another producer writes to the copy)"),
    "a second process without the lease writes the same flow": _parked("orders-0: another process writes as this flow"),
    "a source topic was deleted and created again": _parked("Also: records may be lost (1 entry).", "RecordsLost"),
    "an unclean election at the source cut what was copied": _parked(
        "Also: the source took back 9 offsets that were copied.", "RecordsLost"
    ),
    "an unclean election at the target, and nothing tells where to continue": _parked(
        "(orders-0: the target lost records that it had acknowledged)", "RecordsLost"
    ),
    "an operator deleted the copy, and auto-creation is off": _parked("orders-0: a topic is missing", "GroupSyncLate"),
    "a batch of the source is damaged on disk": _parked("(orders-0: the source's records can't be read)"),
    "a transform wants JSON, and a record has none": _parked("orders-0: a record can't be transformed"),
    "the target knows no zstd": _parked("orders-0: a cluster refuses the records"),
    "the segments topic lost its newest claims": _parked("(orders-0: the segments topic lost claims)"),
    "where MirrorMaker 2's copy ended can't be told": _parked("the end of another mirror's copy is not known"),
    # --- losses ---
    "a loss after which copying continued": _lost(
        "caught up (lost: 20 offsets of ", "20 offsets were lost for good; caught"
    ),
    "the source took back what was copied": _lost(
        "caught up (taken back: 20 offsets of orders-0)", "The source took back 20 offsets that were copied; caught up"
    ),
    "a source topic was created again, and the new one is copied": _lost(
        "caught up (may be lost: ", "Records may be lost (1 entry); caught up", Tone.WARNING
    ),
    "the copy was deleted, and the source has not all of it any more": _lost(
        "caught up (lost: 20 offsets of orders-0)", "20 offsets were lost for good; caught up"
    ),
    "the target lost acknowledged records": _worth_knowing(),
    "a copy keeps less than its source": _worth_knowing(),
    "a copy has lost records that the source still has": _level(
        says="The target deleted 300 offsets that the source had longer; caught up"
    ),
    "a producer writes into the copy": _level(says="Another producer has written 4 offsets to copies; caught up"),
    "a connector's offsets were set forward": _worth_knowing(),
    "a connector's offsets were set back": _worth_knowing(),
    # --- several at once ---
    "a quota and a deletion at once: nothing moves, and the source will delete it": _slow(
        "FlowNoProgress",
        "LagOverObjective",
        "RetentionWillWin",
        "TargetThrottles",
        says="The source deletes what isn't copied of orders-0 in 10 min",
        tone=Tone.BAD,
    ),
    "a throttle of next to nothing: no position moves, retention will win": _slow(
        "FlowNoProgress",
        "LagOverObjective",
        "RetentionWillWin",
        says="Also: it is capped at 10 B/s.",
        tone=Tone.BAD,
    ),
    "the disks of the source are slow, and retention will win": _slow(
        "RetentionWillWin", says="The source deletes what isn't copied of orders-0", tone=Tone.BAD
    ),
    "no leader for two partitions, a group that can't be set, and no process stands by": _parked(
        "Also: the offsets of 1 group can't be set at the target.", "GroupSyncLate", "NoStandby"
    ),
    "a batch is too large, its topic's oldest records will be deleted, and a certificate ends in five days": _parked(
        "Also: the source deletes what isn't copied of orders-0 in 10 min.",
        "RetentionWillWin",
        "CertificateExpires",
        "NoStandby",
    ),
    # --- duties, groups, clocks ---
    "checkpoints may not be written: groups are late": _level(
        "GroupSyncLate", says="Checkpoints and group offsets fail; caught up"
    ),
    "the thread that sets groups' offsets hangs": _level(
        "GroupSyncLate", says="Look below: a duty other than copying is late."
    ),
    "12,000 groups: a turn takes longer than its interval": dataclasses.replace(
        _level("GroupSyncLate", says="Look below: the flow has very many groups."), cut_over=CutOverVerdict.UNKNOWN
    ),
    "topic properties take longer than their interval": _worth_knowing(),
    "a live member at the target: its group can't be set": _level(
        "GroupSyncLate", says="The offsets of 1 group can't be set at the target; caught up"
    ),
    "a group was set back at the source after its offsets had been set at the target": _level(
        "GroupWouldSkip", says="1 group would skip 990 records at a move; caught up"
    ),
    "a group was set to an offset that the source does not have": _level(
        "GroupSyncLate", says="1 group is beyond the source's end; caught up"
    ),
    "a group reads on faster than its offsets are set": _level(
        "GroupWouldReread", says="Look below: a group would read much again if it moved now."
    ),
    "a group was left out of the last turns": _level(
        "GroupSyncLate", says="Look below: a group's offsets are late at the target."
    ),
    "the mirror that beats into the source has stopped": _level(
        says="Look below: no heartbeats come from the source any more."
    ),
    "a producer's clock is ahead": _worth_knowing(),
    "a producer writes seconds for milliseconds": _worth_knowing(),
    "brokers too old to tell of unclean elections": _worth_knowing(),
    "the segments topic allows unclean elections": _level(
        says="Look below: one of sparkmirror's own topics may lose records."
    ),
    "a standby process was started on another file": _elsewhere(
        "standing by", "Look below: the process that works on the flow has other settings.", Tone.WARNING
    ),
    # --- nothing is wrong ---
    "caught up": _worth_knowing(),
    "copying a small backlog": _slow(says="12,000 records behind", doctor=0),
    "starting": dataclasses.replace(
        _begins("starting;", "Starting: 1 of 1 partition has reported."), doctor=0, tone=Tone.UNKNOWN
    ),
    "paused, and nothing to copy": _worth_knowing(says="1 partition is paused by an operator", tone=Tone.WARNING),
    "a round failed once": _worth_knowing(),
    "a group would read a few thousand again": _worth_knowing(),
    "standing by": dataclasses.replace(
        _elsewhere("standing by", "Stands by: host-1:4711 works on it, and knows its figures.", Tone.STANDBY), doctor=0
    ),
}
"""By the words of the fault in `planted.py`, or of the mirror in `healthy.py`."""

AT_ONCE = {fault.words for fault in FAULTS if [one.rule for one in diagnose(fault.snapshots[0])][:1] == [fault.rule]}
"""Faults that one look is enough to find; the others are compared with a minute ago."""

SCENES: Sequence[Fault] = [*FAULTS, *(mirror for words, mirror in healthy() if words in TOLD)]
"""All faults, and the healthy mirrors of which something is told."""
