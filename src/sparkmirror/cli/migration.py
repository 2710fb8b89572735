"""`sparkmirror migration`: move to another cluster, and back."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer
from rich.console import Console

from sparkmirror.cli.loading import Secrets
from sparkmirror.cli.migration_looks import MigrationPath, SetName, check, new, plan, rehearse, schema
from sparkmirror.cli.output import Format, Output, print_json, print_line
from sparkmirror.cli.tables import lines
from sparkmirror.migrate.bypasses import Bypasses, watch
from sparkmirror.migrate.executor import Code, StepEvent, SwitchOutcome
from sparkmirror.migrate.migration import Migration, SwitchPlan
from sparkmirror.migrate.observation import Observation, Side
from sparkmirror.migrate.phase import GroupPhase, Phase, SetVerdict, group_phase, positions, word
from sparkmirror.migrate.switch_plan import SwitchGoal, Who

migration = typer.Typer(no_args_is_help=True, help="Move topics, producers and consumers to another cluster, and back.")

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Begin without a question.")]
Watch = Annotated[bool, typer.Option("--watch", help="Look afterwards for writes and commits at the side left.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be written, and write nothing.")]
for verb in (new, schema, plan, check, rehearse):
    migration.command()(verb)

COLUMNS = ("SET", "PHASE", "PRODUCERS", "CONSUMERS", "LAG-FORTH", "LAG-BACK", "CAN-SWITCH", "CAN-REVERSE", "BLOCKERS")


@migration.command()
def status(
    file: MigrationPath,
    watch: Annotated[bool, typer.Option("--watch", help="Look again each second until Ctrl-C.")] = False,
    secrets: Secrets = None,
    output: Output = Format.TEXT,
) -> None:
    """Show where each set stands, and what blocks its next switch.

    Exit codes: 0 the status is shown, 2 a file is wrong, 3 a cluster can't be reached.

    Example: sparkmirror migration status migration.yaml
    """
    with Migration.load(file, secrets) as moving:
        while True:
            seen = moving.observe()
            _show(moving, seen, output, clear=watch)
            if not watch:
                return
            time.sleep(1.0)


@migration.command()
def switch(
    who: Annotated[Who, typer.Argument(help="Who moves to the target.")],
    file: MigrationPath,
    name: SetName = None,
    back: Annotated[bool, typer.Option("--back", help="Take a switch back that has not come to its end.")] = False,
    watch: Watch = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    secrets: Secrets = None,
    output: Output = Format.TEXT,
) -> None:
    """Move consumers, producers, or all to the target.

    Says beforehand what will be done, and what clients will see. A step that takes longer than its
    policy undoes the switch. If the program is killed, the same command continues.

    Exit codes: 0 nothing is left to do, 1 a blocker stands in the way, or `--watch` saw a write or a commit, 2 a file
    is wrong, 3 a cluster can't be reached and no further set has moved, 4 time was up or a hook said no, and what the
    run did is undone, 5 the undo stopped half way, and the last line says what is left.

    Example: sparkmirror migration switch consumers migration.yaml --set shop
    """
    goal = SwitchGoal(who, Side.SOURCE if back else Side.TARGET)
    with Migration.load(file, secrets) as moving:
        _switch(moving, goal, name, yes=yes, dry_run=dry_run, watching=watch, output=output)


@migration.command()
def reverse(
    file: MigrationPath,
    who: Annotated[Who, typer.Option("--who", help="Who moves back to the source.")] = Who.ALL,
    name: SetName = None,
    watch: Watch = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    secrets: Secrets = None,
    output: Output = Format.TEXT,
) -> None:
    """Move back to the source, with all that was written at the target.

    The same steps as `switch`, with the clusters exchanged; also days later.

    Exit codes: 0 nothing is left to do, 1 a blocker stands in the way, or `--watch` saw a write or a commit, 2 a file
    is wrong, 3 a cluster can't be reached and no further set has moved, 4 time was up or a hook said no, and what the
    run did is undone, 5 the undo stopped half way, and the last line says what is left.

    Example: sparkmirror migration reverse migration.yaml --set shop
    """
    with Migration.load(file, secrets) as moving:
        _switch(moving, SwitchGoal(who, Side.SOURCE), name, yes=yes, dry_run=dry_run, watching=watch, output=output)


@migration.command()
def complete(
    file: MigrationPath,
    name: SetName = None,
    yes: Yes = False,
    secrets: Secrets = None,
    output: Output = Format.TEXT,
) -> None:
    """Give up the way back of sets whose producers and consumers have moved.

    No topic is deleted, and the source still refuses writes.

    Exit codes: 0 done, 1 a set or a group of it has not moved, 2 a file is wrong, 3 a cluster can't be reached.

    Example: sparkmirror migration complete migration.yaml --set shop
    """
    with Migration.load(file, secrets) as moving:
        sets = moving.file.chosen(name)
        names = ", ".join(each.name for each in sets)
        if not yes and not typer.confirm(f"There is no way back for {names} after this. Continue?", err=True):
            raise typer.Exit(1)
        blockers = moving.complete(sets)
        if output is Format.JSON:
            told = [{"id": each.id, "words": each.words} for each in blockers]
            print_json([{"set": each.name, "complete": not blockers, "blockers": told} for each in sets])
        else:
            for blocker in blockers:
                typer.echo(f"  {blocker}")
        if blockers:
            raise typer.Exit(1)
        if output is Format.JSON:
            return
        back = moving.pair.flows.get(Side.TARGET)
        typer.echo(f"{names}: complete." + (f" Take {back.name} out of {moving.file.mirror} now." if back else ""))


def _switch(
    moving: Migration,
    goal: SwitchGoal,
    name: str | None,
    *,
    yes: bool,
    dry_run: bool,
    watching: bool,
    output: Format,
) -> None:
    told: list[dict[str, Any]] = []
    worst = Code.DONE
    try:
        for planned in moving.plan(goal, name):
            if output is Format.TEXT and (planned.actions or dry_run):
                _announce(planned)
            if dry_run:
                planned.dry_run(lambda line: typer.echo(f"  {line}", err=output is Format.JSON))
                continue
            if planned.actions and not yes and not typer.confirm("Continue?", err=True):
                raise typer.Exit(1)
            outcome = planned.run(_print_event if output is Format.TEXT else lambda _: None)
            told.append(_json(planned, outcome))
            worst = max(worst, outcome.code)
            if output is Format.TEXT:
                _end(planned, outcome)
            if outcome.code is not Code.DONE:
                break
    finally:  # a cluster may be away when a later set's turn comes
        if output is Format.JSON:
            print_json(told)
    if watching and not dry_run and not worst and _watch(moving, goal, [row["set"] for row in told], output):
        worst = Code.BLOCKED
    if worst:
        raise typer.Exit(int(worst))


def _watch(moving: Migration, goal: SwitchGoal, names: list[str], output: Format) -> bool:
    """Tell what goes past the switch, as it comes; return True if anything has."""
    seconds, here = moving.file.policies.watch, moving.pair.configs[goal.at.other].alias
    what = {Who.CONSUMERS: "commits", Who.PRODUCERS: "writes"}.get(goal.who, "writes and commits")
    back = moving.pair.flows.get(goal.at)
    sets_groups = back is not None and back.group.sync_group_offsets_enabled
    watched = [
        (each.name, Bypasses(each, goal, sets_groups=sets_groups)) for each in moving.file.sets if each.name in names
    ]
    if output is Format.TEXT:
        typer.echo(f"looking for {what} at {here} for {seconds:g} s (Ctrl-C ends it)")
    count = 0
    try:
        for name, words in watch(moving.observe, watched, seconds, lambda why: typer.echo(why, err=True)):
            count += 1
            if output is Format.JSON:
                print_line({"set": name, "bypass": words})
            else:
                typer.echo(f"{time.strftime('%H:%M:%S')}  {name}: {words}")
    except KeyboardInterrupt:
        typer.echo("not looked at to the end", err=True)
    if output is Format.TEXT and not count:
        typer.echo(f"no {what} at {here} were seen")
    return bool(count)


def _announce(plan: SwitchPlan) -> None:
    if not plan.actions:
        typer.echo(f"{plan.set.name}: nothing is left to do")
        return
    owner = f" (owner: {plan.set.owner})" if plan.set.owner else ""
    typer.echo(f"{plan.set.name}{owner}:")
    for number, action in enumerate(plan.actions, 1):
        undo = action.undo(plan.seen)
        typer.echo(f"{number:>2}  {action.words(plan.seen)}" + (f"\n      undo: {undo}" if undo else ""))
    clients = dict.fromkeys(filter(None, (action.clients(plan.seen) for action in plan.actions)))
    for line in clients:
        typer.echo(f"    {line}")
    if plan.goal.who is not Who.CONSUMERS:
        policies = plan.migration.file.policies
        typer.echo(
            f"    If ends don't stand still within {policies.fence:g} s, or the copy needs longer than"
            f" {policies.drain:g} s, what the run did is undone."
        )


def _print_event(event: StepEvent) -> None:
    number = f"{event.number:>2}" if event.number else "  "
    match event.kind:
        case "done":
            typer.echo(f"{number}  ok     {event.words}  {event.seconds:.2f} s")
        case "waits":
            typer.echo(f"{number}  …      {event.words}")
        case "undo":
            typer.echo(f"    undo   {event.words}")
        case "blocked":
            typer.echo(f"    FAIL   {event.words}")
        case "hook":
            typer.echo(f"    hook   {event.words}")


def _end(plan: SwitchPlan, outcome: SwitchOutcome) -> None:
    seconds = f" ({outcome.seconds:.2f} s of this tool)" if outcome.code is Code.DONE and outcome.seconds else ""
    typer.echo(f"{outcome.words}{seconds}")
    if outcome.code is not Code.DONE or not plan.actions:
        return
    there = plan.seen.clusters[plan.goal.at]
    if plan.goal.who is not Who.PRODUCERS:
        for group in plan.set.groups:
            topics = ",".join(_topics_of(plan, group))
            typer.echo(f"  start now: bootstrap.servers={there.bootstrap}  group.id={group}  topics={topics}")
    if plan.goal.who is not Who.CONSUMERS:
        typer.echo(f"  start now: producers of {', '.join(plan.set.topics)} with bootstrap.servers={there.bootstrap}")


def _topics_of(plan: SwitchPlan, group: str) -> list[str]:
    """Return what a group reads where it has come to.

    Copies, and where copies are renamed also the topics that producers write to.
    """
    leaving = plan.goal.at.other
    read = {topic for topic, _ in plan.seen.clusters[leaving].groups[group].offsets}
    return sorted({topic for topic, _ in positions(plan.seen, leaving, group)} | read.intersection(plan.set.topics))


def _json(plan: SwitchPlan, outcome: SwitchOutcome) -> dict[str, Any]:
    return {
        "set": plan.set.name,
        "who": str(plan.goal.who),
        "to": plan.seen.clusters[plan.goal.at].alias,
        "outcome": outcome.code.name.lower(),
        "words": outcome.words,
        "seconds": round(outcome.seconds, 3),
        "blockers": [{"id": each.id, "words": each.words} for each in outcome.blockers],
    }


def _show(moving: Migration, seen: Observation, output: Format, *, clear: bool) -> None:
    verdicts = moving.verdicts(seen)
    if output is Format.JSON:
        print_json([_row(seen, verdict) for verdict in verdicts])
        return
    table = [COLUMNS, *(_cells(_row(seen, verdict)) for verdict in verdicts)]
    if clear:
        Console().clear()
    typer.echo(lines(table))
    for verdict in verdicts:
        for blocker in (*verdict.to_target, *verdict.to_source)[1:]:
            typer.echo(f"{verdict.phase.set.name}: {blocker}")
        for each in verdict.phase.mixed:
            typer.echo(f"{verdict.phase.set.name}: {each.topic} is {each.phase} at {seen.clusters[each.live].alias}")


def _row(seen: Observation, verdict: SetVerdict) -> dict[str, Any]:
    phase = verdict.phase
    blockers = (*verdict.to_target, *verdict.to_source)
    return {
        "set": phase.set.name,
        "phase": str(phase.phase),
        "producers": seen.clusters[phase.live].alias,
        "consumers": _consumers(seen, verdict),
        "lagForth": _lag(seen, verdict, Side.SOURCE),
        "lagBack": _lag(seen, verdict, Side.TARGET),
        "canSwitch": verdict.can_switch,
        "canReverse": verdict.can_reverse,
        "blockers": [{"id": each.id, "words": each.words} for each in blockers],
    }


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    def shown(value: object) -> str:
        if isinstance(value, bool):
            return "yes" if value else "no"
        return "-" if value is None else f"{value:,}" if isinstance(value, int) else str(value)

    first = row["blockers"][0] if row["blockers"] else None
    values = [shown(row[key]) for key in row if key != "blockers"]
    return (*values, f"{first['id']}: {first['words']}" if first else "-")


def _consumers(seen: Observation, verdict: SetVerdict) -> str:
    """Return the sides where the set's groups are."""
    sides = set()
    for group in verdict.phase.set.groups:
        now = group_phase(seen, group, Side.SOURCE)
        if now is GroupPhase.ON_BOTH_SIDES:
            sides |= set(Side)
        else:
            sides.add(Side.TARGET if now in (GroupPhase.ARRIVED, GroupPhase.MOVED) else Side.SOURCE)
    return ", ".join(seen.clusters[side].alias for side in Side if side in sides) or "-"


def _lag(seen: Observation, verdict: SetVerdict, side: Side) -> int | None:
    """Return the lag of the flow that copies from `side` now.

    None: it is not its turn, or the lag is not known.
    """
    if verdict.phase.live is not side or verdict.phase.phase is Phase.COMPLETED or side not in seen.flows:
        return None
    lags = [word(seen, side, topic).lag for topic in verdict.phase.set.topics]
    return None if None in lags else sum(lag for lag in lags if lag is not None)
