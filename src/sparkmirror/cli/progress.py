"""The live view: a table on a terminal; elsewhere lines of text or JSON.

A line of text comes now and then.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Self

from rich.live import Live
from rich.markup import escape
from rich.table import Table

from sparkmirror.cli.logs import as_json, console, tell_progress
from sparkmirror.cli.output import Format, print_line

if TYPE_CHECKING:
    from sparkmirror.engine.progress import FlowProgress

_Moment = tuple[int, "FlowProgress"]
"""Milliseconds since 1970, and a flow's progress at this time."""

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

    def show(self, flows: Sequence[FlowProgress]) -> None:
        """Take the newest progress of all flows."""
        if self._live is not None:
            self._live.update(_table(flows))
            return
        now = [(int(time.time() * 1000), flow) for flow in flows]
        states = {flow.flow: flow.state for flow in flows}
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
        except (OSError, SystemExit):  # rich raises SystemExit: the reader has gone, but copying goes on
            self._heard = False


def _print_json(time_ms: int, flow: FlowProgress) -> None:
    print_line({"time_ms": time_ms, **asdict(flow)})


def _print_line(_: int, flow: FlowProgress) -> None:
    tell_progress(_line(flow))


def _table(flows: Sequence[FlowProgress]) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in ("flow", "state"):
        table.add_column(column)
    for column in ("records", "records/s", "MB/s", "lag", "ETA", "latency p50/p99", "partitions"):
        table.add_column(column, justify="right")
    for flow in flows:
        table.add_row(
            escape(flow.flow),
            escape(flow.state),
            f"{flow.records:,}",
            f"{flow.records_per_s:,.0f}",
            f"{flow.bytes_per_s / 1e6:.1f}",
            "?" if flow.lag is None else f"{flow.lag:,}" + (f" + {flow.unknown:,} ?" if flow.unknown else ""),
            _duration(flow.eta_s),
            _latency(flow.latency_ms),
            f"{flow.partitions:,}" + (f" ({len(flow.parked)} parked)" if flow.parked else ""),
        )
        for line in flow.parked[:_MOST_PARKED]:
            table.add_row("", f"[red]parked[/red] {escape(line)}")
        if flow.losses:
            table.add_row("", f"[red]lost[/red] {escape(', '.join(flow.losses))}; see sparkmirror losses")
        if flow.forecast:
            table.add_row("", f"[red]hurry[/red] {escape(flow.forecast)}")
        if flow.gone:
            table.add_row("", f"[yellow]deleted at the source[/yellow] {escape(', '.join(flow.gone[:_MOST_PARKED]))}")
        if flow.released:
            table.add_row(
                "", f"[dim]done[/dim] {escape(', '.join(flow.released[:_MOST_PARKED]))}: its writers have moved"
            )
        for line in flow.late[:_MOST_PARKED]:
            table.add_row("", f"[red]late[/red] {escape(line)}")
        for line in flow.open_transactions[:_MOST_PARKED]:
            table.add_row("", f"[red]waits[/red] {escape(line)}")
        if flow.groups:
            table.add_row("", f"[dim]groups[/dim] {escape('; '.join(flow.groups))}")
        for line in flow.failing:
            table.add_row("", f"[yellow]fails[/yellow] {escape(line)}")
        if flow.waiting and not flow.parked:
            table.add_row("", f"[yellow]waits[/yellow] {escape(flow.waiting)}")
    return table


def _line(flow: FlowProgress) -> str:
    parts = [
        f"{flow.flow}: {flow.state}",
        f"{flow.records:,} records",
        f"{flow.records_per_s:,.0f}/s",
        f"{flow.bytes_per_s / 1e6:.1f} MB/s",
        _lag(flow),
    ]
    if flow.eta_s is not None:
        parts.append(f"ETA {_duration(flow.eta_s)}")
    if flow.latency_ms is not None:
        parts.append(f"latency {_latency(flow.latency_ms)}")
    if flow.parked:
        parts.append(f"{len(flow.parked)} parked, first: {flow.parked[0]}")
    elif flow.waiting:
        parts.append(f"waits: {flow.waiting}")
    if flow.open_transactions:
        parts.append(f"{len(flow.open_transactions)} held back, first: {flow.open_transactions[0]}")
    if flow.losses:
        parts.append(f"lost: {', '.join(flow.losses)}")
    if flow.forecast:
        parts.append(flow.forecast)
    if flow.groups:
        parts.append(f"groups: {'; '.join(flow.groups)}")
    if flow.failing:
        parts.append(f"fails: {'; '.join(flow.failing)}")
    if flow.released:
        parts.append(f"{len(flow.released)} topics done")
    if flow.late:
        parts.append(f"{len(flow.late)} late, first: {flow.late[0]}")
    if flow.gone:
        parts.append(f"{len(flow.gone)} topics deleted at the source, first: {flow.gone[0]}")
    return ", ".join(parts)


def _lag(flow: FlowProgress) -> str:
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
