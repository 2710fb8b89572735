"""`sparkmirror size`: what a mirror needs for a rate, with the arithmetic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from sparkmirror.cli.amounts import amount
from sparkmirror.cli.output import Format, Output, print_json
from sparkmirror.errors import ConfigError
from sparkmirror.mirror.engine.sizing import (
    FAR_MB,
    MEASURED,
    PROCESS_CORES,
    PROCESS_MB,
    TASK_MB,
    TASK_PARTITIONS,
    USED_SHARE,
    Batches,
    Executors,
    FarSide,
    Load,
    Machines,
    Sizing,
    cluster_machines,
    executors,
    local_machines,
    sized,
)

TOO_FEW_PARTITIONS_EXIT = 1
_AMOUNT = "write a number above 0 such as 500K, 20M or 6T"


def size(
    rate: Annotated[
        str | None,
        typer.Option("--rate", metavar="BYTES", help="Bytes a second at the source's peak, as its log stores them."),
    ] = None,
    records: Annotated[
        str | None, typer.Option("--records", metavar="NUMBER", help="Instead of --rate: records a second.")
    ] = None,
    record_size: Annotated[
        str | None,
        typer.Option("--record-size", metavar="BYTES", help="With --records: bytes of a record, compressed."),
    ] = None,
    partitions: Annotated[int, typer.Option("--partitions", min=1, help="Partitions of all copied topics.")] = 1,
    history: Annotated[
        str | None, typer.Option("--history", metavar="BYTES", help="Bytes that the source already has.")
    ] = None,
    within: Annotated[
        float, typer.Option("--within", min=0.01, metavar="HOURS", help="Hours in which to copy the history.")
    ] = 48.0,
    batches: Annotated[Batches, typer.Option("--batches", help="How the source's batches are.")] = Batches.WHOLE,
    tls: Annotated[bool, typer.Option("--tls", help="TLS on both sides.")] = False,
    another_codec: Annotated[
        bool, typer.Option("--another-codec", help="The copies get another codec (compression.type).")
    ] = False,
    round_trip: Annotated[
        float,
        typer.Option("--round-trip", min=0.0, max=60_000.0, metavar="MS", help="Milliseconds to the far cluster."),
    ] = 0.0,
    far: Annotated[FarSide, typer.Option("--far", help="With --round-trip: which cluster is far.")] = FarSide.SOURCE,
    executor_cores: Annotated[
        int, typer.Option("--executor-cores", min=1, max=16, help="Cores of each executor on a Spark cluster.")
    ] = 2,
    output: Output = Format.TEXT,
) -> None:
    """Reckon tasks, cores, memory, executors and machines for a rate.

    The figures are the bench's, of a machine with slow cores: docs/planning.md has the formula,
    and says what to measure yourself. No cluster is asked.

    Exit codes: 0 printed, 1 more tasks are needed than there are partitions, 2 the command line is wrong.

    Example: sparkmirror size --rate 120M --partitions 3000 --tls
    """
    load = Load(
        mb_per_s=_bytes_per_s(rate, records, record_size) / 1e6,
        partitions=partitions,
        history_gb=amount(history, "--history", _AMOUNT) / 1e9 if history is not None else 0.0,
        within_hours=within,
        batches=batches,
        tls=tls,
        another_codec=another_codec,
        round_trip_ms=round_trip,
        far=far,
    )
    sizing = sized(load)
    chosen = executors(sizing, executor_cores)
    local = local_machines(sizing)
    machines = (*((local,) if local is not None else ()), *cluster_machines(chosen))
    if output is Format.JSON:
        print_json(_as_json(sizing, chosen, machines))
    else:
        for line in (*_arithmetic(sizing), _executor_line(sizing, chosen), "", *_cost_lines(machines)):
            typer.echo(line)
    if not sizing.partitions_suffice:
        typer.echo(
            f"{sizing.tasks} tasks are needed, but no partition is split: {partitions} partitions keep {partitions}"
            f" tasks busy, which move {partitions * sizing.task_mb_per_s:,.0f} MB/s",
            err=True,
        )
        raise typer.Exit(TOO_FEW_PARTITIONS_EXIT)


def _bytes_per_s(rate: str | None, records: str | None, record_size: str | None) -> float:
    if (rate is None) == (records is None):
        raise ConfigError("give the rate either by --rate or by --records and --record-size", origin="command line")
    if (records is None) != (record_size is None):
        raise ConfigError("--records and --record-size belong together", origin="command line")
    if rate is not None:
        return amount(rate, "--rate", _AMOUNT)
    return amount(records or "", "--records", _AMOUNT) * amount(record_size or "", "--record-size", _AMOUNT)


def _arithmetic(sizing: Sizing) -> list[str]:
    load, tasks = sizing.load, sizing.tasks
    whole = MEASURED[Batches.WHOLE].cpu_s_per_gb
    live = f"{load.mb_per_s:,.1f}"
    if load.history_gb:
        live += f" + {load.history_gb:,.0f} x 1000 / ({load.within_hours:g} x 3600) = {sizing.rate:,.1f}"
    cost = " + ".join((f"{whole:.2f}", *(f"{extra:.2f} ({name})" for name, extra in sizing.extras)))
    if sizing.extras:
        cost += f" = {sizing.cost:.2f}"
    reach = f"{sizing.near:.1f}"
    if load.round_trip_ms:
        far = f"{load.round_trip_ms / 1000:g} / {FAR_MB[load.far]:g}"
        reach = f"1 / (1 / {reach} + {far}) = {sizing.reach:.1f}"
    by_cpu = f"ceil({sizing.cores:.2f} / {USED_SHARE}) = {math.ceil(sizing.cores / USED_SHARE)}"
    by_reach = f"ceil({sizing.rate:,.1f} / {sizing.reach:.1f}) = {math.ceil(sizing.rate / sizing.reach)}"
    by_count = f"ceil({load.partitions:,} / {TASK_PARTITIONS:,}) = {math.ceil(load.partitions / TASK_PARTITIONS)}"
    return [
        f"rate       {live} MB/s",
        f"cost       {cost} CPU s/GB",
        f"cores      {sizing.rate:,.1f} / 1000 x {sizing.cost:.2f} = {sizing.cores:.2f}",
        f"reach      {reach} MB/s a task",
        f"tasks      max(1, {by_cpu}, {by_reach}, {by_count}) = {tasks}",
        f"CPU        ({sizing.cores:.2f} + {PROCESS_CORES}) / {USED_SHARE} = {sizing.cpu:.2f} cores in all",
        f"memory     {PROCESS_MB} + {TASK_MB} x {tasks} = {sizing.memory_mb:,} MB in local mode",
    ]


def _executor_line(sizing: Sizing, chosen: Executors) -> str:
    cores = f"{chosen.cores} cores" if chosen.cores > 1 else "1 core"
    return (
        f"executors  ceil({sizing.tasks} / {chosen.cores}) = {chosen.count} of {cores}, each with"
        f" spark.executor.memory={chosen.heap_mib}m, spark.executor.memoryOverhead={chosen.overhead_mib}m"
    )


def _cost_lines(machines: Sequence[Machines]) -> list[str]:
    width = max((len(each.name) for each in machines), default=0)
    return [
        f"{each.name:{width}}  {each.count:>3} x {each.vcpus:>4g} vCPU, {each.gb:>3g} GB"
        f"  {each.dollars_a_month:>9,.2f} $ a month"
        for each in machines
    ]


def _as_json(sizing: Sizing, chosen: Executors, machines: Sequence[Machines]) -> dict[str, Any]:
    return {
        "rate_mb_s": round(sizing.rate, 3),
        "cost_cpu_s_gb": round(sizing.cost, 3),
        "cores": round(sizing.cores, 3),
        "reach_mb_s": round(sizing.reach, 3),
        "tasks": sizing.tasks,
        "cpu": round(sizing.cpu, 3),
        "memory_mb": sizing.memory_mb,
        "partitions_suffice": sizing.partitions_suffice,
        "executors": {
            "count": chosen.count,
            "cores": chosen.cores,
            "memory_mib": chosen.heap_mib,
            "overhead_mib": chosen.overhead_mib,
        },
        "machines": [
            {
                "name": each.name,
                "count": each.count,
                "vcpus": each.vcpus,
                "gb": each.gb,
                "dollars_a_month": round(each.dollars_a_month, 2),
            }
            for each in machines
        ],
        "arithmetic": [*_arithmetic(sizing), _executor_line(sizing, chosen)],
    }
