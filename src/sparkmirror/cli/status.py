"""`sparkmirror status`: a line for each flow of the running mirror.

Reads the status that the mirror publishes at the flow's target.
"""

from __future__ import annotations

import time
from typing import Annotated

import typer

from sparkmirror.cli.control import Flow, chosen_flows
from sparkmirror.cli.log_lines import plain
from sparkmirror.cli.output import Format, Output, print_json, print_line
from sparkmirror.cli.published import fresh
from sparkmirror.cli.run import Clusters, File, Secrets, load
from sparkmirror.doctor.rule import counted
from sparkmirror.engine import snapshot
from sparkmirror.engine.loss_counts import acknowledged
from sparkmirror.engine.snapshot import FlowState, Partition, Topic, UnmatchedPattern
from sparkmirror.engine.status_topic import INTERVAL_S, read_status

UNHEALTHY = {
    FlowState.WRONG_CLUSTER,
    FlowState.HELD_UP,
    FlowState.INCOMPLETE,
    FlowState.JOINING,
    FlowState.UNREACHABLE,
    FlowState.NOTHING,
}
UNHEALTHY_EXIT = 1


def status(
    file: File,
    flow: Flow = None,
    watch: Annotated[bool, typer.Option("--watch", help="Go on until stopped, every 5 s.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="For health checks: exit with 1 if a flow is unhealthy.")
    ] = False,
    stale: Annotated[
        float, typer.Option("--stale", min=1.0, help="Seconds after which a published status is too old.")
    ] = 60,
    clusters: Clusters = None,
    secrets: Secrets = None,
    output: Output = Format.TEXT,
) -> None:
    """Show the state of a running mirror's flows.

    Works wherever the target can be read. With --check a flow is unhealthy if it is held up,
    incomplete, joining (it waits for its lease or a cluster), led to a wrong cluster or unreachable
    (a cluster does not answer), if it has nothing to copy or a pattern of topics that can hardly be
    meant so, if a partition is parked or an open transaction holds it back, or a topic is refused,
    if records came after their writers had moved and are not copied, or if records are lost, or may
    be, and no operator has acknowledged it (`losses ack`).

    Exit codes: 0 shown (--check: healthy), 1 a flow is unhealthy (--check), 2 the file is wrong, 3
    the target can't be reached, or nothing was published for longer than --stale seconds.

    Example: sparkmirror status mm2.properties --check
    """
    flows = chosen_flows(load(file, clusters, secrets=secrets), flow)
    while True:
        shown = [fresh(each, read_status(each), stale) for each in flows]
        if output is Format.TEXT:
            for now, age_s in shown:
                typer.echo(plain(line(now, age_s)))
        else:
            (print_line if watch else print_json)([row(now, age_s) for now, age_s in shown])
        if not watch:
            break
        time.sleep(INTERVAL_S)
    if check and not all(is_healthy(now) for now, _ in shown):
        raise typer.Exit(UNHEALTHY_EXIT)


def is_healthy(flow: snapshot.Flow) -> bool:
    """Return True if a flow is healthy.

    A healthy flow is neither held up nor incomplete nor waiting for its lease; both clusters answer, there is something
    to copy, and no pattern that can hardly be meant so; no partition is parked or held back by an open transaction, no
    topic is refused, no records came after their writers had moved, and the loss ledger has no loss that isn't
    acknowledged.
    """
    return not (
        flow.state in UNHEALTHY
        or flow.parked
        or flow.open_transactions
        or _refused(flow)
        or _late(flow)
        or _slips(flow)
        or lost(flow)
        or flow.source.away
        or flow.target.away
    )


def _refused(flow: snapshot.Flow) -> list[Topic]:
    return [topic for topic in flow.topics if topic.refused]


def _late(flow: snapshot.Flow) -> list[Topic]:
    return [topic for topic in flow.topics if topic.late]


def _slips(flow: snapshot.Flow) -> list[UnmatchedPattern]:
    """Return the patterns of topics that match nothing and can hardly be meant so."""
    return [pattern for pattern in flow.unmatched if pattern.key == "topics" and pattern.fault]


def lost(flow: snapshot.Flow) -> int:
    """Return the number of the ledger's entries whose records are lost, or may be.

    Acknowledged entries don't count.
    """
    return sum(loss.entries for loss in flow.losses if loss.is_open_loss)


def progress(flow: snapshot.Flow) -> float | None:
    """Return the copied share of the source's records, 0 to 1.

    `None` if a lag is not known, or a topic is refused: nobody reads the ends of such a topic. The share follows from
    the partitions' positions, so a restart of the mirror does not change it.
    """
    if flow.lag is None or flow.unknown or _refused(flow):
        return None
    copied = sum(_copied(each) for topic in flow.topics for each in topic.partitions)
    whole = copied + flow.lag
    return copied / whole if whole else 1.0


def _copied(partition: Partition) -> int:
    """Return how many of the source's present offsets are copied."""
    if partition.position is None:
        return 0
    if partition.start is not None:
        return max(partition.position - partition.start, 0)
    # The mirror reads a partition's start only while the partition lags; the target has as many offsets as were copied.
    return min(partition.position, partition.position if partition.downstream is None else partition.downstream)


def first_reason(flow: snapshot.Flow) -> str:
    """Return the reason of the flow's state, in one line."""
    if flow.reason:
        return flow.reason
    if flow.parked:
        topic, partition = flow.parked[0]
        return f"{topic.topic}-{partition.partition} is parked: {partition.reason or partition.cause}"
    if refused := _refused(flow):
        return f"{refused[0].topic} is refused: {refused[0].refused}"
    if late := _late(flow):
        return f"{late[0].topic}: {late[0].late_words}"
    if flow.open_transactions:
        topic, partition = flow.open_transactions[0]
        return f"{topic.topic}-{partition.partition}: {partition.reason}; to end it: {partition.remedy}"
    if flow.unknown and flow.why_unknown:
        return flow.why_unknown
    newest = max((loss for loss in flow.losses if loss.is_open_loss), key=lambda loss: loss.newest_ms, default=None)
    return flow.waiting or (f"{newest.outcome}: {newest.words}" if newest is not None else "")


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
    """Return the flow's status for programs."""
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
