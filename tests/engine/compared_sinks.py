"""Spark's own Kafka sink next to ours under kills.

`PYTHONPATH=.:src:tests/engine python tests/engine/compared_sinks.py [SEED ...]` writes its table into docs/results.md.
The query, its rows' pace and the random choices of kills are the same for all sinks of a seed; the moments of kills
differ, as each sink takes its own time.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from lab import KafkaCluster
from sink_runs import FILES, LINES, compared, run_killed

from sparkmirror.demo.jars import class_path

CONNECTOR = ("org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",)
"""Spark's own Kafka sink: the newest release that is published whole."""
FACES = {"spark": "Spark's own", "each": "`sm.Sink`", "format": '`format("sparkmirror")`'}
KINDS = ("worker", "driver", "jvm", "broker")
PAGE = Path(__file__).parents[2] / "docs" / "results.md"
HEAD = "| seed | sink | kills: workers, drivers, JVMs, brokers | records | twice | lost |"


def row(seed: int, face: str, cluster: KafkaCluster, place: Path) -> str:
    topic = f"{face}-{seed}"
    settings = {"spark.jars": class_path(CONNECTOR).replace(os.pathsep, ",")} if face == "spark" else {}
    kills: Counter[str] = run_killed(seed, cluster, topic, place / topic, face=face, settings=settings)
    twice, lost = compared(cluster, topic)
    killed = ", ".join(str(kills[kind]) for kind in KINDS)
    return f"| {seed} | {FACES[face]} | {killed} | {FILES * LINES:,} | {twice:,} | {lost:,} |"


def with_table(page: str, rows: Sequence[str]) -> str:
    """The page with other rows below the table's head."""
    before, _, after = page.partition(f"{HEAD}\n")
    rest = after.splitlines()
    end = next((number for number, line in enumerate(rest) if not line.startswith("|")), len(rest))
    return "\n".join([f"{before}{HEAD}", "|---|---|---|---|---|---|", *rows, *rest[end:]]) + "\n"


def main(seeds: Sequence[int]) -> None:
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        properties = {"broker.session.timeout.ms": "3000"}
        with KafkaCluster(place / "three", brokers=3, heap_mb=256, properties=properties) as cluster:
            for seed in seeds:
                for face in FACES:
                    rows.append(row(seed, face, cluster, place))
                    print(rows[-1], flush=True)
    PAGE.write_text(with_table(PAGE.read_text("utf-8"), rows), "utf-8")


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or [40, 41])
