"""Status of a flow: its health, one line for people, one row for programs."""

from __future__ import annotations

from sparkmirror.exact.durable.loss_kinds import LossOutcome
from sparkmirror.look.doctor.rule import counted
from sparkmirror.mirror.engine.flow_health import first_reason, is_healthy, lost, refused_topics
from sparkmirror.snapshot import snapshot
from sparkmirror.snapshot.loss_counts import acknowledged, totals
from sparkmirror.snapshot.snapshot import FlowState, Partition


def progress(flow: snapshot.Flow) -> float | None:
    """Return the copied share of the source's records, 0 to 1.

    `None` if a lag is not known, or a topic is refused: nobody reads the ends of such a topic. The share follows from
    the partitions' positions, so a restart of the mirror does not change it. Records that came after their writers had
    moved are not copied.
    """
    if flow.lag is None or flow.unknown or refused_topics(flow):
        return None
    copied = sum(_copied(each) for topic in flow.topics for each in topic.partitions)
    whole = copied + flow.lag + sum(topic.late for topic in flow.topics)
    return copied / whole if whole else 1.0


def _copied(partition: Partition) -> int:
    """Return how many of the source's present offsets are copied."""
    if partition.position is None:
        return 0
    if partition.start is not None:
        return max(partition.position - partition.start, 0)
    # The mirror reads a partition's start only while the partition lags; the target has as many offsets as were copied.
    return min(partition.position, partition.position if partition.downstream is None else partition.downstream)


def line(flow: snapshot.Flow, age_s: float) -> str:
    """Return the flow's status in one line, like gh-ost's status line."""
    done, reason = progress(flow), first_reason(flow)
    parts = [
        f"{flow.flow}: {flow.state}" + (f" ({reason})" if reason else ""),
        f"{flow.records:,} records" + ("" if done is None else f", {int(done * 1000) / 10:.1f}% done"),
        f"{flow.records_per_s:,.0f}/s, {flow.bytes_per_s / 1e6:.1f} MB/s",
        "lag not known" if flow.lag is None else f"lag {flow.lag:,}",
    ]
    if flow.lag_s is not None:
        parts[-1] += f" ({flow.lag_s:,.0f} s)"
    if flow.unknown and flow.lag is not None:
        parts[-1] += f", {flow.unknown:,} {'partition' if flow.unknown == 1 else 'partitions'} not known"
    if flow.eta_s is not None:
        parts.append(f"ETA {flow.eta_s:,.0f} s")
    if flow.parked:
        parts.append(f"{len(flow.parked):,} parked")
    if losses := lost(flow):
        parts.append(counted(losses, "loss", "losses"))
    parts += [outcome.words(*size) for outcome, *size in totals(flow.losses) if outcome is LossOutcome.ONLY_AT_SOURCE]
    if known := acknowledged(flow.losses):
        parts.append(f"{counted(known, 'loss', 'losses')} acknowledged")
    if flow.differs:
        parts.append(f"this file has other settings ({'; '.join(flow.differs)})")
    if flow.state is not FlowState.NOTHING:
        parts += [f"nothing matches {each.words}" for each in flow.unmatched if each.key == "topics" and each.hint]
    if flow.no_group:
        parts.append(flow.no_group)
    return "; ".join([*parts, f"{age_s:,.0f} s ago"])


def row(flow: snapshot.Flow, age_s: float) -> dict[str, object]:
    return {
        "flow": flow.flow,
        "age_s": round(age_s, 1),
        "state": flow.state,
        "reason": first_reason(flow),
        "healthy": is_healthy(flow),
        "progress": progress(flow),
        "records": flow.records,
        "records_per_s": flow.records_per_s,
        "bytes_per_s": flow.bytes_per_s,
        "lag": flow.lag,
        "unknown": flow.unknown,
        "lag_s": flow.lag_s,
        "eta_s": flow.eta_s,
        "parked": len(flow.parked),
        "losses": lost(flow),
        "acknowledged": acknowledged(flow.losses),
        "differs": list(flow.differs),
    }
