"""`sparkmirror status`: a line for each flow, as the running mirror published it at the flow's target."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from sparkmirror.cli.control import Flow, chosen_flows
from sparkmirror.cli.log_lines import plain
from sparkmirror.cli.output import Format, Output, print_json, print_line
from sparkmirror.cli.published import fresh
from sparkmirror.cli.run import Clusters, File, Secrets, load
from sparkmirror.engine import snapshot
from sparkmirror.engine.snapshot import FlowState, Partition
from sparkmirror.engine.status_topic import INTERVAL_S, read_status

UNHEALTHY = {FlowState.HELD_UP, FlowState.INCOMPLETE, FlowState.JOINING}
UNHEALTHY_EXIT = 1


def status(
    file: File,
    flow: Flow = None,
    watch: Annotated[bool, typer.Option("--watch", help="Go on until stopped, every 5 s.")] = False,
    check: Annotated[bool, typer.Option("--check", help="For health checks: the exit code tells.")] = False,
    stale: Annotated[
        float, typer.Option("--stale", min=1.0, help="Seconds after which what is shown is too old.")
    ] = 60,
    clusters: Clusters = None,
    secrets: Secrets = None,
    output: Output = Format.TEXT,
) -> None:
    """Show what the running mirror is at, from anywhere that can read the target.

    --check takes a flow for unhealthy that is held up, incomplete or joining (it waits for its lease or a
    cluster), of which a partition is parked, or of which something was lost since the process took charge.
    Exit codes: 0 shown (--check: healthy), 1 a flow is unhealthy (--check), 2 the file is wrong,
    3 the target can't be reached, or nothing was published for longer than --stale seconds.

    Example: sparkmirror status mm2.properties --check
    """
    flows = chosen_flows(load(file, clusters, secrets=secrets), flow)
    while True:
        shown = [fresh(one, read_status(one), stale) for one in flows]
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
    """Neither held up nor incomplete nor waiting for its lease; nothing is parked, and nothing was lost of late."""
    return flow.state not in UNHEALTHY and not flow.parked and not lost(flow)


def lost(flow: snapshot.Flow) -> int:
    """Losses since the process that works on the flow took charge."""
    return sum(loss.entries for loss in flow.losses if loss.is_loss)


def progress(flow: snapshot.Flow) -> float | None:
    """How much of what is at the source is copied, 0 to 1; None where the lag is not known.

    By the partitions' positions: a restart of the mirror does not change it.
    """
    if flow.lag is None:
        return None
    copied = sum(_copied(each) for topic in flow.topics for each in topic.partitions)
    whole = copied + flow.lag
    return copied / whole if whole else 1.0


def _copied(partition: Partition) -> int:
    """Offsets that are copied of those that are at the source."""
    if partition.position is None:
        return 0
    if partition.start is not None:
        return max(partition.position - partition.start, 0)
    # Its start is looked at only while it lags; at the target there are as many offsets as were copied.
    return min(partition.position, partition.position if partition.downstream is None else partition.downstream)


def first_reason(flow: snapshot.Flow) -> str:
    """Why the flow is at this, in one line."""
    if flow.reason:
        return flow.reason
    if not flow.parked:
        newest = max((loss for loss in flow.losses if loss.is_loss), key=lambda loss: loss.newest_ms, default=None)
        return flow.waiting or (f"lost: {newest.words}" if newest is not None else "")
    topic, partition = flow.parked[0]
    return f"{topic.topic}-{partition.partition} is parked: {partition.reason or partition.cause}"


def line(flow: snapshot.Flow, age_s: float) -> str:
    """One line, as gh-ost has it."""
    done, reason = progress(flow), first_reason(flow)
    parts = [
        f"{flow.flow}: {flow.state}" + (f" ({reason})" if reason else ""),
        f"{flow.records:,} records" + ("" if done is None else f", {int(done * 1000) / 10:.1f}% done"),
        f"{flow.records_per_s:,.0f}/s, {flow.bytes_per_s / 1e6:.1f} MB/s",
        "lag not known" if flow.lag is None else f"lag {flow.lag:,}",
    ]
    if flow.lag_s is not None:
        parts[-1] += f" ({flow.lag_s:,.0f} s)"
    if flow.eta_s is not None:
        parts.append(f"ETA {flow.eta_s:,.0f} s")
    if flow.parked:
        parts.append(f"{len(flow.parked):,} parked")
    if losses := lost(flow):
        parts.append(f"{losses:,} losses")
    return "; ".join([*parts, f"{age_s:,.0f} s ago"])


def row(flow: snapshot.Flow, age_s: float) -> dict[str, object]:
    """The same for programs."""
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
        "lag_s": flow.lag_s,
        "eta_s": flow.eta_s,
        "parked": len(flow.parked),
        "losses": lost(flow),
    }
