"""`sparkmirror demo`: two clusters, a flow, and the proof, told step by step.

The story goes to standard error, the proof to standard output.
"""

from __future__ import annotations

import dataclasses
import logging
import signal
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.status import Status
from rich.table import Table

from sparkmirror.cli.logs import console, set_up_logging
from sparkmirror.cli.metrics import metrics_served
from sparkmirror.cli.output import Format, print_json
from sparkmirror.cli.progress import ProgressView
from sparkmirror.errors import ConfigError, SetupError
from sparkmirror.mirror.engine.installed_spark import require_spark

if TYPE_CHECKING:
    from sparkmirror.demo.proof import PartitionProof
    from sparkmirror.demo.show import Ends, Show

LIVE_RECORDS_PER_S = 2_000.0
INTERRUPTED = 130

_WIDTH_ELSEWHERE = 100


def demo(
    records: Annotated[
        int, typer.Option("--records", min=1, help="Events to write before the mirror starts.")
    ] = 300_000,
    brokers: Annotated[int, typer.Option("--brokers", min=1, max=9, help="Brokers of each cluster.")] = 1,
    live: Annotated[
        float, typer.Option("--live", min=0, metavar="SECONDS", help="Seconds to continue once the backlog is copied.")
    ] = 10.0,
    migration: Annotated[
        bool, typer.Option("--migration", help="Move the shop to the other cluster, and back, while a group reads it.")
    ] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Leave everything running until Ctrl-C, to try things.")] = False,
    directory: Annotated[
        Path | None,
        typer.Option(
            "--directory", help="Work here, and leave logs and mm2.properties; new or empty.", show_default=False
        ),
    ] = None,
    output: Annotated[Format, typer.Option("--output", "-o", help="Format of the proof.")] = Format.TEXT,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log more.")] = False,
) -> None:
    """Start two Kafka clusters, mirror one to the other under load, prove the copy.

    Everything runs on this machine.

    Exit codes: 0 every partition is identical, 1 a partition differs, or the group has not read each record
    once, 3 this machine lacks something, 130 interrupted.

    Example: sparkmirror demo --records 100000 --keep
    """
    set_up_logging(verbose)
    if not verbose:
        logging.getLogger("sparkmirror").setLevel(logging.WARNING)
    show_class = _show_class(migration)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    show = show_class(_prepared(directory), brokers=brokers)
    leave = True
    try:
        identical = _play(show, records, live, keep, output)
        leave = keep or directory is not None or not identical
    except KeyboardInterrupt:
        leave = keep or directory is not None
        _say("\nInterrupted.")
        raise typer.Exit(INTERRUPTED) from None
    finally:
        _end(show, leave)
    if not identical:
        raise typer.Exit(1)


def _show_class(migration: bool) -> type[Show]:
    require_spark("demo")
    try:
        from sparkmirror.demo.moving_shop import MovingShow
        from sparkmirror.demo.show import Show
    except ImportError as error:
        raise SetupError(f"{error}; install the demo's packages with: pip install 'sparkmirror[demo]'") from error
    return MovingShow if migration else Show


def _prepared(directory: Path | None) -> Path:
    if directory is None:
        return Path(tempfile.mkdtemp(prefix="sparkmirror-demo-"))
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise ConfigError("it must be new or empty", origin="--directory", key=str(directory))
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def _play(show: Show, records: int, live: float, keep: bool, output: Format) -> bool:
    """Play the whole story; return True if all partitions are identical."""
    show.fetch()
    with _step("Clusters", "starting") as step:
        show.start_clusters()
        step.done(f"shop at {show.source.bootstrap_servers}, backup at {show.target.bootstrap_servers}")
    with _step("Events", "writing") as step:
        backlog = show.fill(records, lambda count: step.now(f"{count:,} of {records:,} written"))
        step.done(
            f"{_amount(*show.written)} in {len({topic for topic, _ in backlog})} topics, {len(backlog)} partitions"
        )
    _tell("Mirror", f"sparkmirror run {show.properties} [dim](Spark starts first)[/dim]")
    config, mirror = show.make_mirror()
    with metrics_served(None, None, config, mirror.observer.snapshot, history=mirror.observer.history):
        return _mirrored(show, backlog, live, keep, output)


def _mirrored(show: Show, backlog: Ends, live: float, keep: bool, output: Format) -> bool:
    """Play the story from the mirror's start on."""
    show.start_mirror()
    show.open_shop(LIVE_RECORDS_PER_S)
    show.wait_until_copying()  # until then the JVM prints its own lines on the terminal
    with _progress(show):
        show.wait_until_copied(backlog)
        show.watch(live)
        show.wait_until_copied(show.close_shop())
    show.on_progress = lambda snapshot: None
    exact = _migrated(show, live)
    if not keep:
        show.stop_mirror()
    with _step("Proof", "comparing") as step:
        proofs = show.prove()
        step.done("each batch of every partition read from both clusters and compared, byte for byte")
    if output is Format.JSON:
        print_json([{**dataclasses.asdict(proof), "identical": proof.identical} for proof in proofs])
    else:
        _print_proofs(proofs)
    if keep:
        _keep_running(show)
    else:
        _say("\nIts live page can be seen while it runs: sparkmirror demo --keep  (make demo ARGS=--keep)")
    return exact and all(proof.identical for proof in proofs)


def _migrated(show: Show, live: float) -> bool:
    """Move the shop and back, if the show has a migration.

    Return True if its group has read each record once.
    """
    from sparkmirror.demo.moving_shop import MovingShow

    if not isinstance(show, MovingShow):
        return True
    from sparkmirror.cli.demo_migration import Story

    return Story(show, LIVE_RECORDS_PER_S, live / 2).tell()


def _keep_running(show: Show) -> None:
    """Let shop and mirror run until Ctrl-C, which ends the story."""
    from sparkmirror.demo.prometheus import start_prometheus

    file = show.properties
    _say(
        f"\nAll keeps running, and the shop writes {LIVE_RECORDS_PER_S:,.0f} records a second. In another terminal, try"
    )
    for command in (f"throttle {file} 100K", f"throttle {file} off", f"pause {file} --topics orders", f"resume {file}"):
        _say(f"  sparkmirror {command}")
    _say("or Kafka's own tools on")
    _say(f"  shop    {show.source.bootstrap_servers}")
    _say(f"  backup  {show.target.bootstrap_servers}")
    prometheus = start_prometheus(show.directory / "prometheus", show.page.removeprefix("http://"))
    if prometheus is not None:
        _say(f"Prometheus scrapes it: {prometheus[0]}")
    _say(f"The live page: {show.page}")
    _say("Ctrl-C ends it.\n")
    try:
        with _progress(show):
            show.open_shop(LIVE_RECORDS_PER_S)
            while True:
                show.watch(3600.0)
    except KeyboardInterrupt:
        return
    finally:
        if prometheus is not None:
            prometheus[1].terminate()


def _end(show: Show, leave: bool) -> None:
    """End everything that runs, even if an impatient operator types Ctrl-C again."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    with console.status("ending"):
        show.close(keep=leave)
    if leave:
        _say(f"Logs and mm2.properties are in {show.directory}")


# --- output -----------------------------------------------------------------------------------------


class _Step:
    """A step under way: its present action, and in the end its outcome."""

    def __init__(self, status: Status) -> None:
        self._status = status
        self.outcome = ""

    def now(self, what: str) -> None:
        self._status.update(what)

    def done(self, outcome: str) -> None:
        self.outcome = outcome


@contextmanager
def _step(name: str, doing: str) -> Iterator[_Step]:
    started = time.monotonic()
    with console.status(doing) as status:
        step = _Step(status)
        yield step
    _tell(name, f"{step.outcome} [dim]({time.monotonic() - started:.1f} s)[/dim]")


@contextmanager
def _progress(show: Show) -> Iterator[None]:
    with ProgressView() as view:
        show.on_progress = view.show
        yield


def _tell(name: str, what: str) -> None:
    _say(f"[bold cyan]{name:<9}[/bold cyan] {what}")


def _say(line: str) -> None:
    console.print(line, highlight=False)


def _print_proofs(proofs: Sequence[PartitionProof]) -> None:
    out = Console()
    if not out.is_terminal:
        out.width = _WIDTH_ELSEWHERE
    table = Table(box=None, pad_edge=False)
    table.add_column("topic")
    for column in ("partition", "batches", "records", "MB"):
        table.add_column(column, justify="right")
    table.add_column("codec")
    table.add_column("identical")
    for proof in proofs:
        table.add_row(
            f"{proof.source_topic} -> {proof.target_topic}",
            str(proof.partition),
            f"{proof.batches:,}",
            f"{proof.records:,}",
            f"{proof.bytes / 1e6:.1f}",
            ", ".join(proof.codecs),
            "[green]✓[/green]"
            if proof.difference is None
            else f"[red]✗ at offset {proof.difference.offset}: {proof.difference.what}[/red]",
        )
    out.print(table)
    wrong = [proof for proof in proofs if not proof.identical]
    total = _amount(sum(proof.records for proof in proofs), sum(proof.bytes for proof in proofs))
    out.print(
        f"[bold red]{len(wrong)} of {len(proofs)} partitions differ.[/bold red]"
        if wrong
        else f"[bold green]All {len(proofs)} partitions are identical: {total}.[/bold green]",
        highlight=False,
    )


def _amount(records: int, size: int) -> str:
    return f"{records:,} records, {size / 1e6:,.1f} MB"
