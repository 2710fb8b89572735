"""`sparkmirror schemas check`: do schema ids mean the same at the target?"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from sparkmirror.cli.loading import Clusters, File, Flow, Secrets, chosen_flows, chosen_topics, load
from sparkmirror.cli.logs import LogFormatAlone, set_up_logging, tell_progress, warn
from sparkmirror.cli.output import Format, Output, print_json
from sparkmirror.config import FlowConfig, MirrorConfig
from sparkmirror.config.model import RegistryConfig, SchemasConfig
from sparkmirror.config.schema_settings import SCHEMAS, Side
from sparkmirror.errors import ConfigError
from sparkmirror.schemas import CheckedId, CheckedPart, Registry, SchemaCheck, SchemaVerdict, check_flow
from sparkmirror.values import HttpUrl

schemas = typer.Typer(no_args_is_help=True, help="Schema ids in records, and schema registries.")

PLACES = 20
WIDE = 500
"""Width in columns without a terminal."""
_EXIT_DIFFERS = 1
_TOLD_EVERY_S = 5.0
_COLOURS = {SchemaVerdict.EQUAL: "green", SchemaVerdict.NOT_CHECKED: "yellow"}


class At(StrEnum):
    """Cluster whose logs are read."""

    SOURCE = "source"
    TARGET = "target"


@schemas.callback()
def verbs() -> None:
    """Keep `check` a verb of its own: further verbs may follow."""


@schemas.command()
def check(
    file: File,
    topics: Annotated[
        str,
        typer.Option("--topics", metavar="REGEXES", help="Only these source topics, of those that the file copies."),
    ] = "",
    source_registry: Annotated[
        str, typer.Option(metavar="URL", help=f"The source's registry; else {SCHEMAS}source.url says it.")
    ] = "",
    target_registry: Annotated[
        str, typer.Option(metavar="URL", help=f"The target's registry; else {SCHEMAS}target.url says it.")
    ] = "",
    sample: Annotated[
        int, typer.Option(min=1, metavar="N", help="Look at N places of each partition's log, spread over it.")
    ] = PLACES,
    whole: Annotated[bool, typer.Option("--whole", help="Look at all records, not at a sample.")] = False,
    at: Annotated[
        At, typer.Option("--at", help="Read the source's topics, or their copies at the target.")
    ] = At.SOURCE,
    flow: Flow = None,
    clusters: Clusters = None,
    secrets: Secrets = None,
    output: Output = Format.TEXT,
    log_format: LogFormatAlone = None,
) -> None:
    """Find schema ids in records without an equal schema at the target's registry.

    Looks at keys and values, and asks both registries by Confluent's API.

    Exit codes: 0 all ids lead to an equal schema, 1 an id does not, 2 the file or the command line is
    wrong, 3 a cluster or a registry can't be reached.

    Example: sparkmirror schemas check mm2.properties --topics orders.*
    """
    set_up_logging(False, log_format)
    config = load(file, clusters, secrets=secrets)
    chosen = chosen_topics(topics) if topics else None
    flows = chosen_flows(config, flow)
    asked = [
        (each, _registry(config, each, "source", source_registry), _registry(config, each, "target", target_registry))
        for each in flows
    ]
    checks = [
        check_flow(
            each, source, target, chosen=chosen, at=at.value, places=0 if whole else sample, tell=_progress(each, whole)
        )
        for each, source, target in asked
    ]
    if chosen is not None and not any(flow_check.topics for flow_check in checks):
        raise ConfigError("no topic that is copied matches", origin="--topics", key=topics)
    if output is Format.JSON:
        print_json([_as_json(flow_check) for flow_check in checks])
    else:
        _print(checks)
    if any(flow_check.differs for flow_check in checks):
        raise typer.Exit(_EXIT_DIFFERS)


def _registry(config: MirrorConfig, flow: FlowConfig, side: Side, url: str) -> Registry:
    """Return the file's registry, at the command line's address if given.

    Raises `ConfigError`.
    """
    registry: RegistryConfig = getattr(config.schemas.get(flow.name, SchemasConfig()), side)
    if url:
        try:
            registry = registry.model_copy(update={"url": HttpUrl().parse(url)})
        except ValueError as error:
            raise ConfigError(str(error), origin=f"--{side}-registry") from None
    if not registry.url:
        key = f"{SCHEMAS}{side}.url"
        reason = f"is missing: write {key} = http://host:8081, or say --{side}-registry"
        raise ConfigError(reason, origin=config.path, key=key)
    return Registry(registry, side)


def _progress(flow: FlowConfig, whole: bool) -> Callable[[int, int], None]:
    """Return a function that prints a line of progress every few seconds."""
    last = time.monotonic()
    what = "offsets" if whole else "places"

    def tell(done: int, of: int) -> None:
        nonlocal last
        if time.monotonic() - last > _TOLD_EVERY_S:
            last = time.monotonic()
            tell_progress(f"{flow.name}: {done:,} of {of:,} {what}")

    return tell


def _as_json(flow_check: SchemaCheck) -> dict[str, object]:
    return {
        "flow": flow_check.flow,
        "resolves": not flow_check.differs,
        "topics": flow_check.topics,
        "unread": flow_check.unread,
        "parts": [
            {
                "topic": part.topic,
                "target_topic": part.target_topic,
                "field": part.field,
                "records": part.records,
                "with_id": part.with_id,
                "doubt": part.doubt,
                "ids": [_id_as_json(each) for each in part.ids],
            }
            for part in flow_check.parts
        ],
    }


def _id_as_json(checked: CheckedId) -> dict[str, object]:
    return {
        "id": checked.id.text,
        "kind": checked.id.kind.value,
        "records": checked.records,
        "partition": checked.partition,
        "offset": checked.offset,
        "verdict": checked.comparison.verdict.value,
        "type": checked.comparison.type,
        "subjects": list(checked.comparison.subjects),
        "detail": checked.comparison.detail,
    }


def _print(checks: list[SchemaCheck]) -> None:
    # Without a terminal a line must stay a line.
    out = Console(width=None if sys.stdout.isatty() else WIDE)
    table = _table(checks)
    if table.row_count:
        out.print(table)
    for flow_check in checks:
        for topic, words in flow_check.unread.items():
            warn(f"flow {flow_check.flow}: {topic}: {words}")
        for part in flow_check.parts:
            if part.doubt:
                words = f"{part.topic}: these may be no schema ids: of its {part.field}s {part.doubt}"
                out.print(f"{flow_check.flow}: {words}", markup=False, highlight=False)
        if flow_check.strange:
            warn(f"flow {flow_check.flow}: the source's registry knows none of the ids: is it the right one?")
        out.print(_summary(flow_check), highlight=False)


def _table(checks: list[SchemaCheck]) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in ("flow", "topic", "field", "id", "records", "of", "subjects", "verdict", "why"):
        table.add_column(column, justify="right" if column in {"records", "of"} else "left", overflow="fold")
    for flow_check in checks:
        for part in flow_check.parts:
            for each in part.ids:
                table.add_row(*_row(flow_check, part, each))
    return table


def _row(flow_check: SchemaCheck, part: CheckedPart, each: CheckedId) -> tuple[str, ...]:
    verdict = each.comparison.verdict
    colour = "yellow" if part.doubt else _COLOURS.get(verdict, "red")
    word = "unsure" if part.doubt else verdict.value
    return (
        escape(flow_check.flow),
        escape(part.topic),
        part.field,
        escape(each.id.text),
        f"{each.records:,}",
        f"{part.records:,}",
        escape(", ".join(each.comparison.subjects)),
        f"[{colour}]{word}[/{colour}]",
        escape(each.comparison.detail),
    )


def _summary(flow_check: SchemaCheck) -> str:
    sure = [part for part in flow_check.parts if part.ids and not part.doubt]
    ids = {each.id: each for part in sure for each in part.ids}
    wrong = sum(not each.resolves for each in ids.values())
    asked = sum(each.comparison.verdict is not SchemaVerdict.NOT_CHECKED for each in ids.values())
    records = sum(part.records for part in flow_check.parts)
    colour = "red" if flow_check.differs else "green"
    words = f"{wrong} of {asked} ids don't lead to an equal schema" if wrong else f"{asked} ids lead to an equal schema"
    unasked = f", {len(ids) - asked} not checked" if len(ids) > asked else ""
    topics = f"{len({part.topic for part in sure})} of {flow_check.topics} topics have ids"
    outcome = f"[{colour}]{words}[/{colour}]{unasked}"
    return f"{escape(flow_check.flow)}: {outcome}; {topics}, {records:,} keys and values were looked at"
