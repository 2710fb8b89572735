"""`sparkmirror explain`: why a topic, partition or group is or isn't mirrored."""

from __future__ import annotations

from typing import Annotated

import typer

from sparkmirror.cli.loading import Clusters, File, Flow, Secrets, chosen_flows, load
from sparkmirror.cli.log_lines import plain
from sparkmirror.cli.output import Format, Output, print_json
from sparkmirror.cli.published import Stale
from sparkmirror.look.doctor.explain_facts import explanations
from sparkmirror.look.doctor.explanation import Explanation

NOT_MIRRORED = 1


def explain(
    file: File,
    name: Annotated[
        str,
        typer.Argument(metavar="TOPIC|TOPIC:PARTITION|GROUP", help="At the source: a topic, a partition or a group."),
    ],
    flow: Flow = None,
    stale: Stale = 60.0,
    clusters: Clusters = None,
    secrets: Secrets = None,
    output: Output = Format.TEXT,
) -> None:
    """Explain why a topic, partition or consumer group is or isn't mirrored.

    Prints the checks in the order in which they decide, up to the first that says no, and what to
    change. Changes nothing.

    Exit codes: 0 a flow mirrors the name, 1 no flow does, 2 the file or the command line is wrong.

    Example: sparkmirror explain mm2.properties orders:3
    """
    config = load(file, clusters, secrets=secrets)
    told = [
        explanation
        for chosen in chosen_flows(config, flow)
        for explanation in explanations(chosen, config.flows, name, stale)
    ]
    if output is Format.JSON:
        print_json([row(each) for each in told])
    else:
        typer.echo(plain_lines(told))
    if not any(each.mirrored for each in told):
        raise typer.Exit(NOT_MIRRORED)


def plain_lines(told: list[Explanation]) -> str:
    """Return the explanations as text, a paragraph each."""
    return "\n\n".join("\n".join(map(plain, lines(each))) for each in told)


def lines(told: Explanation) -> list[str]:
    """Return an explanation as lines: a sentence, the checks, and what to change."""
    state = next((step for step in told.steps if step.check == "state"), told.steps[-1])
    if told.mirrored:
        said = f"is mirrored: {state.words}"
    else:
        said = f"is not mirrored{' in full' if told.in_part else ''}: {told.last.words}"
    width = max(len(step.check) for step in told.steps)
    checks = [f"  {step.mark:<4}  {step.check:<{width}}  {step.words}" for step in told.steps]
    return [
        f"{told.flow}: {told.kind} {told.name} {said}",
        *checks,
        *(f"  To change it: {change}" for change in told.changes),
    ]


def row(told: Explanation) -> dict[str, object]:
    return {
        "flow": told.flow,
        "kind": told.kind,
        "name": told.name,
        "mirrored": told.mirrored,
        "checks": [
            {
                "check": step.check,
                "mark": step.mark,
                "reason": step.reason.name.lower() if step.reason else None,
                "words": step.words,
            }
            for step in told.steps
        ],
        "changes": list(told.changes),
    }
