"""The deployed alerts over a mirror that is well for a while, and then in a state that lasts for hours.

Prometheus' own program plays them: the series are those that the collector makes of the state's snapshots.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import yaml
from prometheus_client.parser import text_string_to_metric_families
from tests.support.deployed import PROMETHEUS
from tests.support.prometheus_programs import installed

from sparkmirror.look.metrics.collector import MirrorCollector
from sparkmirror.snapshot.snapshot import ELSEWHERE, Role, Snapshot

WELL_MINUTES, LASTS_MINUTES = 20, 130
"""The longest alert waits for an hour; retention, certificates and standbys are looked at for half an hour and more."""
FIRED = f'group by(alertname) (max_over_time(ALERTS{{alertstate="firing"}}[{WELL_MINUTES + LASTS_MINUTES}m]))'
_COUNTS = ("_total", "_bucket", "_count", "_sum")
_FOUND = re.compile(r"got:.*", re.DOTALL)

Series = dict[tuple[str, str], float]


def fired(directory: Path, well: Snapshot, before: Snapshot, now: Snapshot) -> set[str]:
    """Which alerts fire while the state of `now` lasts; what it counts grows as it did since `before`."""
    processes = [_timeline(well, before, now, "host-1:9404")]
    if any(flow.role is Role.STANDBY and flow.reason == ELSEWHERE for flow in now.flows):
        processes.append(_timeline(well, well, well, "host-2:9404"))  # the process that works
    series = [
        {"series": f"{name}{labels}", "values": values} for process in processes for (name, labels), values in process
    ]
    return _played(directory, series)


def _played(directory: Path, series: list[dict[str, str]]) -> set[str]:
    """Names of the alerts: the program says which samples it did not expect."""
    expected: dict[str, Any] = {"expr": FIRED, "eval_time": f"{WELL_MINUTES + LASTS_MINUTES - 1}m"}
    impossible = [{"labels": '{alertname="none of them"}', "value": 1}]
    test = {"interval": "1m", "input_series": series, "promql_expr_test": [{**expected, "exp_samples": impossible}]}
    rules = str(PROMETHEUS / "alerts.yml")
    file = directory / "played.yml"
    file.write_text(yaml.safe_dump({"rule_files": [rules], "evaluation_interval": "1m", "tests": [test]}))
    done = subprocess.run(
        [installed("promtool"), "test", "rules", str(file)], capture_output=True, text=True, timeout=120, check=False
    )
    told = done.stdout + done.stderr
    got = _FOUND.search(told)
    assert got is not None, told
    return set(re.findall(r'alertname=\\?"(\w+)', got[0]))


def _timeline(well: Snapshot, before: Snapshot, now: Snapshot, instance: str) -> list[tuple[tuple[str, str], str]]:
    """The series of a process, each with its values a minute."""
    first, then, earlier = (_series(one, instance) for one in (well, now, before))
    per_minute = 60_000 / max(now.at_ms - before.at_ms, 1)
    lines = []
    for key in first.keys() | then.keys():
        name, _ = key
        at_first, at_last = first.get(key), then.get(key)
        step = 0.0
        if name.endswith(_COUNTS):
            step = (at_last or 0.0) * per_minute - earlier.get(key, 0.0) * per_minute
            at_last = None if at_last is None else at_last if at_first is None else at_first
        elif name.endswith("_timestamp_seconds"):
            step = 0.0 if "certificate" in name else 60.0  # of the same age all the time
            at_first = None if at_first is None else at_first - well.at_ms / 1000
            at_last = None if at_last is None else at_last - now.at_ms / 1000 + 60 * WELL_MINUTES
        well_step = 60.0 if name.endswith("_timestamp_seconds") else 0.0
        values = [_values(at_first, well_step, WELL_MINUTES - 1), _values(at_last, max(step, 0.0), LASTS_MINUTES - 1)]
        lines.append((key, " ".join(values)))
    return lines


def _values(start: float | None, step: float, times: int) -> str:
    return f"stale _x{times - 1}" if start is None else f"{start:.3f}+{step:.3f}x{times}"


def _series(shown: Snapshot, instance: str) -> Series:
    """What the collector tells of a snapshot, as a Prometheus has it."""
    text = MirrorCollector(lambda: shown).text().decode()
    return {
        (sample.name, _labels({"job": "sparkmirror", "instance": instance, **sample.labels})): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith("sparkmirror_")
    }


def _labels(labels: dict[str, str]) -> str:
    quoted = (f'{name}="{value}"' for name, value in sorted(labels.items()))
    return "{" + ",".join(quoted) + "}"
