"""`sparkmirror rewrite-checkpoint`: a Spark query continues at the other cluster."""

from __future__ import annotations

from typing import Annotated

import typer

from sparkmirror.cli.loading import Clusters, File, Flow, Secrets, load, only_flow
from sparkmirror.cli.output import Format, Output, print_json
from sparkmirror.mirror.engine.installed_spark import require_spark


def rewrite_checkpoint(
    file: File,
    checkpoint: Annotated[str, typer.Argument(metavar="CHECKPOINT", help="Checkpoint of the stopped query.")],
    to: Annotated[str, typer.Argument(metavar="TO", help="New directory; a directory or address that PyArrow knows.")],
    flow: Flow = None,
    clusters: Clusters = None,
    secrets: Secrets = None,
    output: Output = Format.TEXT,
) -> None:
    """Copy a streaming query's checkpoint, so that it continues at the target.

    A Structured Streaming query's Kafka sources get the copies' names and offsets, exactly; batches that were planned
    and not committed run at the target. Change kafka.bootstrap.servers, subscribe and
    checkpointLocation in the query.

    Exit codes: 0 written, 1 an offset has no exact one at the target (each is named, nothing is
    written), 2 the file, the checkpoint or the command line is wrong, 3 the target can't be reached, or
    there is no Spark.

    Example: sparkmirror rewrite-checkpoint mm2.properties /checkpoints/orders /checkpoints/orders-at-b
    """
    only = only_flow(load(file, clusters, secrets=secrets), flow)
    require_spark()
    from sparkmirror.frames.rewrite_checkpoint import rewrite_checkpoint as rewrite  # PyArrow is slow to import

    done = rewrite(checkpoint, to, only)
    if output is Format.JSON:
        offsets = [
            {
                "batch": each.batch,
                "source": each.source,
                "topic": each.stored.topic,
                "partition": each.stored.partition,
                "offset": each.stored.offset,
                "translated_topic": each.translation.topic,
                "translated_offset": each.translation.offset,
            }
            for each in done.offsets
        ]
        print_json({"offsets": offsets, "planned": done.planned, "left": done.left})
        return
    for each in done.offsets:
        at, there = each.stored, each.translation
        typer.echo(
            f"batch {each.batch}: {at.topic}-{at.partition} at {at.offset} -> "
            f"{there.topic}-{there.partition} at {there.offset}"
        )
    for line in done.left:
        typer.echo(f"as it was: {line}")
    for batch in done.planned:
        typer.echo(f"batch {batch} is planned: it runs at the target")
