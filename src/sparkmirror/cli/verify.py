"""`sparkmirror verify`: source and target compared, record by record where needed."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from sparkmirror.cli.loading import File, Secrets, load
from sparkmirror.cli.logs import LogFormat, as_json, console, set_up_logging, tell_progress, use_format, warn
from sparkmirror.cli.output import Format, print_line
from sparkmirror.errors import ConfigError
from sparkmirror.mirror.engine.installed_spark import require_spark
from sparkmirror.mirror.sync.topic_rules import topic_rules

if TYPE_CHECKING:
    from collections.abc import Callable

    from sparkmirror.config import MirrorConfig
    from sparkmirror.frames import Options, PartitionResult, Verification
    from sparkmirror.frames import Progress as VerifyProgress
    from sparkmirror.migrate.migration import Migration

_EXIT_DIFFERS = 1
_COLOURS = {
    "equal": "green",
    "equal so far": "yellow",
    "equal, but deleted at the target": "red",
    "different": "red",
}


def verify(
    file: File,
    clusters: Annotated[
        list[str] | None, typer.Option("--clusters", help="Only the flows into these clusters.")
    ] = None,
    topics: Annotated[
        str,
        typer.Option("--topics", metavar="REGEXES", help="Only these source topics, of those that the file copies."),
    ] = "",
    from_offset: Annotated[int | None, typer.Option(min=0, help="Source offset to begin at.")] = None,
    to_offset: Annotated[int | None, typer.Option(min=0, help="Source offset to end before.")] = None,
    from_time: Annotated[
        str | None, typer.Option(metavar="ISO", help="Timestamp to begin at, as 2026-01-31T12:00:00Z.")
    ] = None,
    to_time: Annotated[str | None, typer.Option(metavar="ISO", help="Timestamp to end before.")] = None,
    sample: Annotated[
        float | None, typer.Option(metavar="FRACTION", help="Compare this share of the ranges, chosen at random.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the sample: the same seed chooses the same ranges.")] = 0,
    resume: Annotated[
        Path | None,
        typer.Option(metavar="JOURNAL", help="Note finished ranges in this file, and skip ranges noted before."),
    ] = None,
    limit: Annotated[int, typer.Option(min=0, help="Most differences to list of each partition.")] = 100,
    allow_behind: Annotated[
        int,
        typer.Option(
            min=0, metavar="N", help="Most records that may be not copied yet, of those at the source at the start."
        ),
    ] = 0,
    allow_expired: Annotated[
        bool,
        typer.Option("--allow-expired", help="End with 0 though the target has deleted records that the source keeps."),
    ] = False,
    migration: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the verdict into this migration's evidence, for `migration check`."),
    ] = None,
    output: Annotated[Format, typer.Option("--output", "-o", help="JSON comes as lines.")] = Format.TEXT,
    spark: Annotated[list[str] | None, typer.Option("--spark", metavar="KEY=VALUE", help="A setting of Spark.")] = None,
    secrets: Secrets = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log more.")] = False,
    log_format: LogFormat = None,
) -> None:
    """Compare source and target: every record of FILE's flows once, in order, equal.

    The verdict is "equal", "equal so far" (some records are not copied yet: these are counted, by
    reason), "equal, but deleted at the target" (the source keeps records longer than the target) or
    "different". Records that come to the source after the start need not be copied.

    Exit codes: 0 equal, 1 records differ, are not copied yet, or are deleted at the target, 2 the
    file or the command line is wrong, 3 a cluster can't be reached, or Spark is missing.

    Example: sparkmirror verify mm2.properties --topics orders.*
    """
    set_up_logging(verbose, log_format)
    config = load(file, clusters, spark, secrets=secrets)
    if log_format is None:
        use_format(config.log_format)
    for line in config.warnings:
        warn(line)
    for flow in config.flows:
        topic_rules(flow)  # reports an unusable class before Spark starts
    require_spark()
    from sparkmirror.frames import Options, run_verification
    from sparkmirror.mirror.engine.session import open_session  # Spark is slow to import; errors in the file come first

    options = Options(
        topics=tuple(filter(None, (topic.strip() for topic in topics.split(",")))),
        from_offset=from_offset,
        to_offset=to_offset,
        from_time=_time(from_time, "--from-time"),
        to_time=_time(to_time, "--to-time"),
        sample=sample,
        seed=seed,
        resume=resume,
        limit=limit,
    )
    options.scope()
    with ExitStack() as stack:
        moving = stack.enter_context(_migration(migration, secrets, config, options)) if migration else None
        began_ms = time.time_ns() // 1_000_000
        session = open_session(
            config.spark, tasks=max(sum(flow.tasks_max for flow in config.flows), os.cpu_count() or 1)
        )
        try:
            with _progress_bar() as show:
                verification = run_verification(session, config, options, show)
        finally:
            session.stop()
        if output is Format.JSON:
            _print_json(verification)
        else:
            _print_tables(verification)
        if moving is not None:
            _note(moving, verification, began_ms, allow_expired=allow_expired)
    if _is_bad(verification, allow_expired=allow_expired) or sum(verification.behind.values()) > allow_behind:
        raise typer.Exit(_EXIT_DIFFERS)


def _is_bad(verification: Verification, *, allow_expired: bool) -> bool:
    return verification.differs or bool(verification.deleted and not allow_expired)


def _migration(path: Path, secrets: str | None, config: MirrorConfig, options: Options) -> Migration:
    """Return the migration that the verification is evidence for."""
    from sparkmirror.migrate.migration import Migration

    if not options.is_of_now:
        raise ConfigError(
            "evidence is of all offsets, and of now: leave out --from…, --to… and --resume", origin="--migration"
        )
    moving = Migration.load(path, secrets)
    if not {flow.name for flow in moving.pair.flows.values()} & {flow.name for flow in config.flows}:
        raise ConfigError(f"{config.path} has none of the migration's flows", origin=str(path), key="mirror")
    return moving


def _note(moving: Migration, verification: Verification, began_ms: int, *, allow_expired: bool) -> None:
    """Write a line of evidence for each of the migration's flows."""
    from sparkmirror.migrate.verifications import TopicVerdict, VerifiedFlow

    for flow in moving.pair.flows.values():
        results: defaultdict[str, list[PartitionResult]] = defaultdict(list)
        for result in verification.partitions:
            if result.flow == flow.name:
                results[result.topic].append(result)
        topics = {topic: verification._replace(partitions=tuple(of)) for topic, of in results.items()}
        verdicts = {
            topic: TopicVerdict(words=each.verdict, good=not _is_bad(each, allow_expired=allow_expired))
            for topic, each in topics.items()
        }
        if verdicts:
            moving.note_verified(
                VerifiedFlow(
                    flow=flow.name,
                    began_ms=began_ms,
                    ranges=verification.ranges,
                    all_ranges=verification.all_ranges,
                    topics=verdicts,
                )
            )


def _time(text: str | None, option: str) -> datetime | None:
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError) as error:
        raise ConfigError("write a time as 2026-01-31T12:00:00Z", origin=option, key=text) from error


@contextmanager
def _progress_bar() -> Iterator[Callable[[VerifyProgress], None]]:
    """Show a bar on a terminal; else print a line for each report.

    A JSON log has lines, too.
    """
    if not console.is_terminal or as_json():
        yield lambda seen: tell_progress(_line(seen))
        return
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rates]}")
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("planning", total=None, rates="")

        def show(seen: VerifyProgress) -> None:
            progress.update(
                bar,
                description=seen.phase,
                total=seen.total,
                completed=seen.done,
                rates=_rates(seen),
            )

        yield show


def _line(seen: VerifyProgress) -> str:
    return f"{seen.phase}: {seen.done} of {seen.total} ranges, {_rates(seen)}"


def _rates(seen: VerifyProgress) -> str:
    seconds = max(seen.elapsed_s, 0.1)
    parts = [f"{seen.records / seconds:,.0f} records/s", f"{seen.bytes / seconds / 1e6:,.1f} MB/s"]
    if seen.unmatched:
        parts.append(f"{seen.unmatched:,} unmatched")
    if seen.eta_s is not None:
        parts.append(f"ETA {seen.eta_s:.0f}s")
    return ", ".join(parts)


def _print_json(verification: Verification) -> None:
    for difference in verification.differences:
        print_line({"difference": difference._asdict()})
    for partition in verification.partitions:
        print_line({"partition": partition.model_dump()})
    print_line(
        {
            "verdict": verification.verdict,
            "equal": verification.verdict == "equal",
            "behind": verification.behind,
            "deleted": verification.deleted,
            "not_compared": verification.not_compared,
            "ranges": verification.ranges,
            "all_ranges": verification.all_ranges,
        }
    )


def _print_tables(verification: Verification) -> None:
    out = Console(soft_wrap=True)
    if verification.differences:
        out.print(_difference_table(verification))
    out.print(_partition_table(verification.partitions))
    for line in _by_topic(verification.partitions):
        out.print(line, markup=False, highlight=False)
    if verification.ranges < verification.all_ranges:
        out.print(
            f"A sample: {verification.ranges} of {verification.all_ranges} ranges were compared.", highlight=False
        )
    records = sum(partition.records for partition in verification.partitions)
    colour = _COLOURS[verification.verdict]
    verdict = f"[{colour}]{verification.verdict}[/{colour}]: {records:,} records are the same on both sides"
    if verification.not_compared:
        verdict += f"; {_summed(verification.not_compared, 'target offsets were not compared')}"
    out.print(verdict, highlight=False)
    if verification.deleted:
        out.print(
            f"{verification.deleted:,} offsets that the source keeps are deleted at the target, whose retention is "
            "shorter (docs/topics.md, Retention)",
            highlight=False,
        )
    if verification.behind:
        out.print(_summed(verification.behind, "records are not at the target"), highlight=False)


def _summed(counts: Mapping[str, int], what: str) -> str:
    return f"{sum(counts.values()):,} {what}: {', '.join(f'{count:,} {reason}' for reason, count in counts.items())}"


def _by_topic(partitions: Iterable[PartitionResult]) -> Iterator[str]:
    """Yield the notes on partitions: one line for the same note on several of a topic."""
    numbers: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    counts: defaultdict[tuple[str, str], int] = defaultdict(int)
    for partition in partitions:
        for note in partition.notes:
            numbers[partition.topic, note].append(partition.partition)
        for reason, count in partition.not_compared.items():
            counts[partition.topic, reason] += count
    for (topic, note), named in numbers.items():
        yield f"{topic}-{named[0]}: {note}" if len(named) == 1 else f"{topic} ({len(named):,} partitions): {note}"
    for (topic, reason), count in counts.items():
        yield f"{topic}: {count:,} target offsets are not compared: {reason}"


def _difference_table(verification: Verification) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in ("flow", "topic", "partition", "kind", "upstream", "downstream", "what"):
        table.add_column(column, justify="right" if column in {"partition", "upstream", "downstream"} else "left")
    for difference in verification.differences:
        table.add_row(
            escape(difference.flow),
            escape(difference.topic),
            str(difference.partition),
            difference.kind,
            "" if difference.upstream is None else str(difference.upstream),
            "" if difference.downstream is None else str(difference.downstream),
            escape(difference.what),
        )
    return table


def _partition_table(partitions: tuple[PartitionResult, ...]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("topic")
    counts = ("equal", "differences", "compacted", "not copied yet", "expired", "deleted", "not judged")
    for column in ("partition", *counts):
        table.add_column(column, justify="right")
    for partition in partitions:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in partition.differences.items())
        table.add_row(
            escape(partition.topic),
            str(partition.partition),
            f"{partition.records:,}",
            kinds or "none",
            *(
                f"{count:,}" if count else ""
                for count in (
                    partition.compacted,
                    partition.not_copied_yet,
                    partition.expired,
                    partition.deleted,
                    partition.unjudged,
                )
            ),
        )
    return table
