"""The live view: a table on a terminal; elsewhere lines of text or JSON.

A line of text comes now and then.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Self

from rich.live import Live
from rich.markup import escape
from rich.table import Table

from sparkmirror.cli import flow_lines
from sparkmirror.cli.logs import as_json, console, tell_progress
from sparkmirror.cli.output import Format, print_line
from sparkmirror.snapshot.loss_counts import summed_up
from sparkmirror.snapshot.snapshot import Flow, Snapshot

_Moment = tuple[int, Flow]
"""Milliseconds since 1970, and a flow at this time."""

_LINE_S = 10.0
_MOST_PARKED = 5


class ProgressView:
    """View of a mirror's reports, a context manager.

    Text goes to standard error, JSON to standard output.
    """

    def __init__(self, output: Format = Format.TEXT) -> None:
        live = console.is_terminal and output is Format.TEXT and not as_json()
        self._live = Live(console=console, refresh_per_second=2) if live else None
        self._print = _print_json if output is Format.JSON else _print_line
        self._line_at = 0.0
        self._states: dict[str, str] = {}
        self._unsaid: Sequence[_Moment] = ()
        self._heard = True

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()
        self._say(self._unsaid)

    def show(self, snapshot: Snapshot) -> None:
        if self._live is not None:
            self._live.update(_table(snapshot.flows))
            return
        now = [(snapshot.at_ms, flow) for flow in snapshot.flows]
        states = {flow.flow: flow_lines.state(flow) for flow in snapshot.flows}
        if states != self._states or time.monotonic() >= self._line_at:
            self._line_at = time.monotonic() + _LINE_S
            self._states = states
            self._say([*(moment for moment in self._unsaid if moment[1].flow not in states), *now])
        else:
            self._unsaid = now

    def _say(self, moments: Sequence[_Moment]) -> None:
        self._unsaid = ()
        try:
            for moment in moments if self._heard else ():
                self._print(*moment)
        except (OSError, SystemExit):  # rich raises SystemExit: the reader has gone, but copying continues
            self._heard = False


def _print_json(time_ms: int, flow: Flow) -> None:
    print_line({"time_ms": time_ms, **flow_lines.fields(flow)})


def _print_line(_: int, flow: Flow) -> None:
    tell_progress(_line(flow))


def _table(flows: Sequence[Flow]) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in ("flow", "state"):
        table.add_column(column)
    for column in ("records", "records/s", "MB/s", "lag", "ETA", "latency p50/p99", "partitions"):
        table.add_column(column, justify="right")
    for flow in flows:
        parked, forecast, gone = flow_lines.parked(flow), flow_lines.forecast(flow), flow_lines.gone(flow)
        table.add_row(
            escape(flow.flow),
            escape(flow_lines.state(flow)),
            f"{flow.records:,}",
            f"{flow.records_per_s:,.0f}",
            f"{flow.bytes_per_s / 1e6:.1f}",
            "?" if flow.lag is None else f"{flow.lag:,}" + (f" + {flow.unknown:,} ?" if flow.unknown else ""),
            _duration(flow.eta_s),
            _latency(flow.recent_latency_ms),
            f"{flow_lines.partitions(flow):,}" + (f" ({len(parked)} parked)" if parked else ""),
        )
        for line in parked[:_MOST_PARKED]:
            table.add_row("", f"[red]parked[/red] {escape(line)}")
        if losses := summed_up(flow.losses):
            table.add_row("", f"[red]lost[/red] {escape(', '.join(losses))}; see sparkmirror losses")
        if forecast:
            table.add_row("", f"[red]hurry[/red] {escape(forecast)}")
        if gone:
            table.add_row("", f"[yellow]deleted at the source[/yellow] {escape(', '.join(gone[:_MOST_PARKED]))}")
        if released := flow_lines.released(flow):
            table.add_row("", f"[dim]done[/dim] {escape(', '.join(released[:_MOST_PARKED]))}: its writers have moved")
        for line in flow_lines.late(flow)[:_MOST_PARKED]:
            table.add_row("", f"[red]late[/red] {escape(line)}")
        for line in flow_lines.open_transactions(flow)[:_MOST_PARKED]:
            table.add_row("", f"[red]waits[/red] {escape(line)}")
        if groups := flow_lines.groups(flow.groups):
            table.add_row("", f"[dim]groups[/dim] {escape('; '.join(groups))}")
        for line in flow_lines.failing(flow):
            table.add_row("", f"[yellow]fails[/yellow] {escape(line)}")
        if flow.waiting and not parked:
            table.add_row("", f"[yellow]waits[/yellow] {escape(flow.waiting)}")
    return table


def _line(flow: Flow) -> str:
    parts = [
        f"{flow.flow}: {flow_lines.state(flow)}",
        f"{flow.records:,} records",
        f"{flow.records_per_s:,.0f}/s",
        f"{flow.bytes_per_s / 1e6:.1f} MB/s",
        _lag(flow),
    ]
    if flow.eta_s is not None:
        parts.append(f"ETA {_duration(flow.eta_s)}")
    if flow.recent_latency_ms is not None:
        parts.append(f"latency {_latency(flow.recent_latency_ms)}")
    if parked := flow_lines.parked(flow):
        parts.append(f"{len(parked)} parked, first: {parked[0]}")
    elif flow.waiting:
        parts.append(f"waits: {flow.waiting}")
    if held := flow_lines.open_transactions(flow):
        parts.append(f"{len(held)} held back, first: {held[0]}")
    if losses := summed_up(flow.losses):
        parts.append(f"lost: {', '.join(losses)}")
    if forecast := flow_lines.forecast(flow):
        parts.append(forecast)
    if groups := flow_lines.groups(flow.groups):
        parts.append(f"groups: {'; '.join(groups)}")
    if failing := flow_lines.failing(flow):
        parts.append(f"fails: {'; '.join(failing)}")
    if released := flow_lines.released(flow):
        parts.append(f"{len(released)} topics done")
    if late := flow_lines.late(flow):
        parts.append(f"{len(late)} late, first: {late[0]}")
    if gone := flow_lines.gone(flow):
        parts.append(f"{len(gone)} topics deleted at the source, first: {gone[0]}")
    return ", ".join(parts)


def _lag(flow: Flow) -> str:
    partitions = f"{flow.unknown:,} {'partition' if flow.unknown == 1 else 'partitions'}"
    if flow.lag is None:
        return "lag not known" + (f" of {partitions}" if flow.unknown else "")
    return f"lag {flow.lag:,}" + (f", {partitions} not known" if flow.unknown else "")


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return ""
    minutes, rest = divmod(int(seconds + 0.5), 60)
    return f"{minutes}m{rest:02d}s" if minutes else f"{rest}s"


def _latency(latency_ms: tuple[float, float] | None) -> str:
    return f"{latency_ms[0]:.0f}/{latency_ms[1]:.0f} ms" if latency_ms else ""
