"""`sparkmirror top`: flows, topics, the worst partitions and tasks, full screen."""

from __future__ import annotations

import dataclasses
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from sparkmirror.cli.keys import Keys, pressed_keys
from sparkmirror.cli.loading import Clusters, File, Flow, Secrets, chosen_flows, load
from sparkmirror.cli.log_lines import plain
from sparkmirror.cli.output import Format, Output, print_json
from sparkmirror.cli.published import Stale
from sparkmirror.cli.topic_rows import rows as topic_rows
from sparkmirror.config import FlowConfig
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.look.doctor.flow_status import progress
from sparkmirror.look.doctor.flow_status import row as flow_row
from sparkmirror.mirror.engine.flow_health import first_reason, is_healthy
from sparkmirror.snapshot import snapshot
from sparkmirror.snapshot.snapshot import PartitionState
from sparkmirror.snapshot.status_topic import INTERVAL_S, fresh, read_status

WIDE, TALL = 500, 60
"""Columns and lines of the print without a terminal."""
_LEAST = 3
"""Fewest lines of each table."""

Row = dict[str, object]


class Sort(StrEnum):
    """Column that topics are sorted by."""

    LAG = "lag"
    RATE = "rate"
    STATE = "state"
    NAME = "name"


@dataclass(frozen=True, slots=True)
class Shown:
    """A flow as it was read, or the reason why it was not read."""

    flow: str
    now: snapshot.Flow | None
    age_s: float = 0.0
    trouble: str = ""


@dataclass(slots=True)
class View:
    """The part of the table that is on the screen."""

    sort: Sort = Sort.LAG
    first: int = 0
    """Index of the topic at the top of the screen."""
    ended: bool = False

    def press(self, key: str, topics: int) -> None:
        """Take a key: `q` ends, `s` sorts by the next column, arrows scroll the topics."""
        if key in ("q", "end"):
            self.ended = True
        elif key == "s":
            order = list(Sort)
            self.sort, self.first = order[(order.index(self.sort) + 1) % len(order)], 0
        elif key in ("up", "down", "left", "right"):
            step = {"up": -1, "down": 1, "left": -10, "right": 10}[key]
            self.first = min(max(self.first + step, 0), max(topics - 1, 0))


def top(
    file: File,
    flow: Flow = None,
    stale: Stale = 60.0,
    clusters: Clusters = None,
    secrets: Secrets = None,
    output: Output = Format.TEXT,
) -> None:
    """Watch flows, topics, the worst partitions and tasks, full screen; q ends.

    s sorts topics by the next of lag, rate, state and name; arrows scroll the topics. Without a
    terminal, and with -o json, prints the present state once.

    Exit codes: 0 shown, 2 the file is wrong, 3 a flow's target can't be reached, or nothing was
    published for longer than --stale seconds; the other flows are shown.

    Example: sparkmirror top mm2.properties
    """
    flows = chosen_flows(load(file, clusters, secrets=secrets), flow)
    if output is Format.TEXT and sys.stdin.isatty() and sys.stdout.isatty():
        with pressed_keys() as keys:
            watch(flows, stale, keys)
        return
    shown = [_read(each, stale) for each in flows]
    if output is Format.JSON:
        print_json([as_json(each) for each in shown])
    else:
        Console(width=WIDE).print(drawn(shown, View(), TALL))
    if unread := [each.trouble for each in shown if each.now is None]:
        raise ClusterUnreachable("\n".join(unread))


def watch(flows: Sequence[FlowConfig], stale_s: float, keys: Keys) -> None:
    """Draw until `q` is pressed.

    A flow that can't be read for a while is shown with the reason.
    """
    view, console, due = View(), Console(), 0.0
    shown: list[Shown] = []
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while not view.ended:
            if time.monotonic() >= due:
                shown = [_read(flow, stale_s) for flow in flows]
                due = time.monotonic() + INTERVAL_S
            live.update(drawn(shown, view, console.size.height), refresh=True)
            for key in keys(max(due - time.monotonic(), 0.0)):
                view.press(key, sum(len(each.now.topics) for each in shown if each.now is not None))


def _read(flow: FlowConfig, stale_s: float) -> Shown:
    try:
        return Shown(flow.name, *fresh(flow, read_status(flow), stale_s))
    except ClusterUnreachable as error:
        return Shown(flow.name, None, trouble=str(error))


def drawn(shown: Sequence[Shown], view: View, height: int) -> Group:
    """Return the whole screen, in at most `height` lines."""
    left = height - len(shown) - 6
    lines = max(left // 2, _LEAST), max(left // 4 - 1, _LEAST), max(left // 4 - 1, _LEAST)
    head = Text(f"sparkmirror top, topics by {view.sort}; q ends, s sorts, arrows move", style="dim")
    return Group(
        head,
        _flows(shown),
        Text(),
        _table(_topics(shown, view)[view.first : view.first + lines[0] - 1], _TOPIC_COLUMNS),
        Text(),
        _table(worst_partitions(shown)[: lines[1] - 1], _PARTITION_COLUMNS),
        Text(),
        _table(tasks(shown)[: lines[2] - 1], _TASK_COLUMNS),
    )


# --- rows -------------------------------------------------------------------------------------------

_TOPIC_COLUMNS = ("flow", "topic", "partitions", "parked", "lag", "records_per_s", "state", "reason")
_PARTITION_COLUMNS = ("flow", "partition", "state", "lag", "lag_s", "records_per_s", "task", "reason")
_TASK_COLUMNS = ("flow", "task", "host", "partitions", "records_per_s", "lag", "share", "in_flight", "fetch_ms")
_WORDS = frozenset({"flow", "topic", "state", "reason", "partition", "host"})


def _topics(shown: Iterable[Shown], view: View) -> list[Row]:
    rows = [row for each in shown if each.now is not None for row in topic_rows(each.now, each.age_s)]
    return sorted(rows, key=lambda row: _rank(row, view.sort))


def _rank(row: Row, sort: Sort) -> tuple[object, ...]:
    name = (str(row["topic"]), str(row["flow"]))
    if sort is Sort.LAG:
        return (-_number(row["lag"]), *name)
    if sort is Sort.RATE:
        return (-_number(row["records_per_s"]), *name)
    if sort is Sort.STATE:
        return (row["state"] == PartitionState.RUNNING, str(row["state"]), *name)
    return name


def _number(value: object) -> float:
    """Return a figure for sorting; unknown figures come first."""
    return float(value) if isinstance(value, int | float) else float("inf")


def worst_partitions(shown: Iterable[Shown]) -> list[Row]:
    """Return the parked partitions, then the partitions with the most lag.

    Leaves out partitions without lag.
    """
    rows: list[Row] = [
        {
            "flow": each.flow,
            "partition": f"{topic.topic}-{partition.partition}",
            "state": partition.state,
            "lag": partition.lag,
            "lag_s": partition.lag_s,
            "records_per_s": round(partition.records_per_s, 1),
            "task": partition.task,
            "reason": partition.reason,
        }
        for each in shown
        if each.now is not None
        for topic in each.now.topics
        for partition in topic.partitions
        if partition.lag != 0 or partition.state is PartitionState.PARKED
    ]
    return sorted(rows, key=lambda row: (row["state"] != PartitionState.PARKED, -_number(row["lag"])))


def tasks(shown: Iterable[Shown]) -> list[Row]:
    """Return the Spark tasks, the busiest first.

    `share` compares a task's records a second with an even spread over the flow's tasks: 1.0 is even.
    """
    rows: list[Row] = []
    for each in shown:
        if each.now is None:
            continue
        rate, lag = defaultdict[int | None, float](float), defaultdict[int | None, int](int)
        for topic in each.now.topics:
            for partition in topic.partitions:
                rate[partition.task] += partition.records_per_s
                lag[partition.task] += partition.lag or 0
        even = sum(rate[pump.task] for pump in each.now.pumps) / max(len(each.now.pumps), 1)
        rows += [
            {
                "flow": each.flow,
                "task": pump.task,
                "host": pump.host,
                "partitions": pump.partitions,
                "records_per_s": round(rate[pump.task], 1),
                "lag": lag[pump.task],
                "share": round(rate[pump.task] / even, 2) if even else None,
                "in_flight": pump.in_flight,
                "fetch_ms": pump.fetch_ms,
                "lines": [dataclasses.asdict(line) for line in pump.lines],
            }
            for pump in each.now.pumps
        ]
    return sorted(rows, key=lambda row: (-_number(row["records_per_s"]), -_number(row["lag"])))


def as_json(shown: Shown) -> Row:
    """Return a flow with its topics, worst partitions and tasks."""
    flow, age_s = shown.now, shown.age_s
    if flow is None:
        return {"flow": shown.flow, "trouble": shown.trouble}
    return {
        **flow_row(flow, age_s),
        "topics": topic_rows(flow, age_s),
        "worst_partitions": worst_partitions([shown]),
        "tasks": tasks([shown]),
    }


# --- tables -----------------------------------------------------------------------------------------


def _flows(shown: Iterable[Shown]) -> Table:
    columns = ("flow", "state", "done", "records_per_s", "mb_per_s", "lag", "lag_s", "eta_s", "age_s", "reason")
    table = _heads(columns)
    for each in shown:
        now = each.now
        if now is None:
            table.add_row(each.flow, Text("not known", style="red"), *([""] * 7), Text(plain(each.trouble)))
            continue
        done = progress(now)
        style = "green" if is_healthy(now) else "red"
        row: Row = {
            "flow": each.flow,
            "done": None if done is None else f"{int(done * 1000) / 10:.1f}%",
            "records_per_s": now.records_per_s,
            "mb_per_s": now.bytes_per_s / 1e6,
            "lag": now.lag,
            "lag_s": now.lag_s,
            "eta_s": now.eta_s,
            "age_s": each.age_s,
            "reason": first_reason(now),
        }
        cells = {name: Text(_cell(name, value)) for name, value in row.items()}
        table.add_row(*(cells.get(name, Text(now.state, style=style)) for name in columns))
    return table


def _table(rows: Iterable[Row], columns: Sequence[str]) -> Table:
    table = _heads(columns)
    for row in rows:
        bad = row.get("state") in (PartitionState.PARKED, "refused")
        table.add_row(*(Text(_cell(name, row[name])) for name in columns), style="red" if bad else None)
    return table


def _heads(columns: Iterable[str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        heading = name.upper().replace("_PER_", "/").replace("_", "-")
        table.add_column(heading, justify="left" if name in _WORDS else "right", no_wrap=True, overflow="ellipsis")
    return table


def _cell(name: str, value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.2f}" if name == "share" else f"{value:,.1f}" if name == "mb_per_s" else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) and name != "task" else plain(str(value))
