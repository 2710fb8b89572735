"""Areas of tests: those of a package for `make test-full AREA=position`, and the files in tests/README.md.

python tests/areas.py            writes the lists of files of tests/README.md
python tests/areas.py position   runs all tests of a package, long ones too, and of what stands on it by the lists below
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import textwrap
from pathlib import Path

TESTS = Path(__file__).parent
PAGE = TESTS / "README.md"

_ENGINE_AREAS = {
    "plan": "assignment change change_watch cluster_watch driver_control duties flow_duties flow_registry flow_topics"
    " flow_view forecast growth identity lag leadership lease moves_of_a_round report_watch round_job round_runner"
    " sizing slots standby still_look how_often_processes_look task topic_refresh transaction_watch waits",
    "flows": "active_active another_configuration bomb catching_up end_of_migration every_batch fairness late_records"
    " long_lines many_partitions mirror moved_query moved_writers real_checkpoint_connector there_and_back topic_list"
    " offset_syncs_over_gaps",
    "faults": "broker_faults cut_segments_topic expired_state kills known_losses late_requests losses lost_segments"
    " old_records query_elections replicas rival_views seam takeover unclean_elections unreplicated_copies"
    " wrong_cluster",
    "taking over": "internal_topics_left_alone connect_takeover empty_alias_takeover exactly_once_takeover legacy"
    " legacy_process predecessors_looked_for mirror_maker_and_back suspended_mirror_maker",
    "signing in": "certificates kerberos rights_of_a_flow secrets secure_flows sign_in tls_flows",
    "Spark": "installed_spark own_classes scaling scaling_by_lag session signals standalone",
    "verify": "offset_runs public_face receipts_as_rows verify verify_after_takeover verify_continues"
    " verify_of_a_deleted_copy verify_of_moving_logs verify_verdicts",
    "rows": "begun_micro_batches same_as_sparks_kafka_source exactly_once_sink notebooks oldest_spark records_as_rows"
    " sink_by_format sink_kills tables_of_a_mirror transform_queries"
    " transform_kills transforms_on_the_way",
    "what people see": "alerts_of_a_run doctor_of_a_run group_moves history logs_of_a_run loss_watch named_states"
    " observer"
    " other_settings pages planted_on_clusters prometheus publishing remedies_followed remedies_of_damage"
    " remedies_of_duties remedies_of_lag remedies_of_load remedies_of_memory remedies_of_old_brokers"
    " remedies_of_partitions remedies_of_processes remedies_of_spark remedies_of_states snapshot states_of_a_run"
    " status_of_a_cluster status_topic strimzi_examples strimzi_own terminal watched_resource",
}
"""Files of `tests/engine`, as `test_NAME.py`, by the areas that tests/README.md has for them."""

_ENGINE_TESTS = {
    "api": ("public_face", "exactly_once_sink"),
    "queries": ("transform_queries", "transform_kills", "query_elections", "begun_micro_batches"),
    "sink": ("exactly_once_sink", "sink_by_format", "sink_kills"),
    "transforms": ("transforms_on_the_way", "transform_kills"),
    "client": ("real_checkpoint_connector",),
    "cluster": ("broker_faults", "replicas", "wrong_cluster", "sign_in", "secure_flows", "tls_flows"),
    "config": ("secrets", "strimzi_examples", "own_classes"),
    "doctor": (
        "doctor_of_a_run",
        "alerts_of_a_run",
        "group_moves",
        "planted_on_clusters",
        "remedies_followed",
        "remedies_of_processes",
    ),
    "durable": ("cut_segments_topic", "kills", "known_losses", "lost_segments", "losses", "takeover"),
    "formats": ("strimzi_examples", "strimzi_own", "watched_resource"),
    "frames": ("verify", "offset_runs", "receipts_as_rows"),
    "messages": ("kills", "takeover", "standby", "seam", "moves_of_a_round", "change_watch"),
    "metrics": ("prometheus", "alerts_of_a_run"),
    "mm2": (
        "offset_syncs_over_gaps",
        "mirror_maker_and_back",
        "internal_topics_left_alone",
        "real_checkpoint_connector",
    ),
    "page": ("prometheus",),
    "position": (
        "kills",
        "rival_views",
        "old_records",
        "unclean_elections",
        "cut_segments_topic",
        "lost_segments",
        "losses",
    ),
    "pump": (
        "seam",
        "kills",
        "rival_views",
        "old_records",
        "late_requests",
        "unreplicated_copies",
        "broker_faults",
        "fairness",
        "every_batch",
        "bomb",
        "long_lines",
    ),
    "snapshot": ("snapshot", "status_topic", "history"),
    "source": ("records_as_rows", "tables_of_a_mirror", "same_as_sparks_kafka_source", "sink_by_format"),
    "sync": ("offset_syncs_over_gaps", "rights_of_a_flow", "real_checkpoint_connector", "group_moves"),
    "takeover": (
        "mirror_maker_and_back",
        "connect_takeover",
        "exactly_once_takeover",
        "empty_alias_takeover",
        "legacy",
    ),
    "maps": ("offset_runs", "offset_syncs_over_gaps", "losses"),
    "arrow": ("records_as_rows",),
    "wire": ("every_batch", "bomb", "tls_flows"),
}
"""Flow tests that show a package at work, as `tests/engine/test_NAME.py`."""

_BESIDE = {
    "checks": ("migrate",),
    "durable": ("position", "pump", "upgrade"),
    "messages": ("pump", "upgrade"),
    "mm2": ("client",),
    "position": ("durable", "pump", "takeover", "maps"),
    "pump": ("position",),
    "takeover": ("position",),
    "maps": ("sync",),
    "wire": ("pump",),
}
"""Directories of tests of what stands on a package, or close below it."""


def paths(area: str) -> list[Path]:
    """Return files and directories of tests for a package; raises `KeyError` for a name that is none."""
    directories = [TESTS / name for name in (area, *_BESIDE.get(area, ())) if (TESTS / name).is_dir()]
    files = [TESTS / "engine" / f"test_{name}.py" for name in _ENGINE_TESTS.get(area, ())]
    if not directories and not files:
        raise KeyError(area)
    return [*directories, *files]


def files_by_area() -> dict[str, list[Path]]:
    """Return the files with tests of each area of tests/README.md, by its name."""
    areas: dict[str, list[Path]] = {}
    engine = {name: area for area, names in _ENGINE_AREAS.items() for name in names.split()}
    for path in sorted(TESTS.glob("*/**/test_*.py")):
        area = path.relative_to(TESTS).parts[0]
        if area == "engine":
            area = f"engine: {engine[_name(path)]}"
        areas.setdefault(area, []).append(path)
    return areas


def page() -> str:
    """Return tests/README.md with the files that there are."""
    areas = files_by_area()

    def listed(match: re.Match[str]) -> str:
        return f"### {match[1]}\n\n{_list(areas[match[1]])}\n\n" if match[1] in areas else match[0]

    return re.sub(r"^### (.+)\n\n((?:.+\n)+)\n", listed, PAGE.read_text("utf-8"), flags=re.MULTILINE)


def _list(files: list[Path]) -> str:
    names = ", ".join(f"*{_name(path)}*" if _is_full(path) else _name(path) for path in files)
    return textwrap.fill(names, 120, break_long_words=False, break_on_hyphens=False)


def _name(path: Path) -> str:
    return path.stem.removeprefix("test_")


def _is_full(path: Path) -> bool:
    """True if no test of the file is among those of `make test`."""
    text = path.read_text("utf-8")
    if "mark.full" not in text:
        return False
    tree = ast.parse(text)
    marks = [ast.unparse(node.value) for node in tree.body if isinstance(node, ast.Assign) if _is_marks(node)]
    if any("mark.full" in mark for mark in marks):
        return True
    tests = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) if node.name.startswith("test_")]
    return bool(tests) and all("mark.full" in " ".join(map(ast.unparse, test.decorator_list)) for test in tests)


def _is_marks(node: ast.Assign) -> bool:
    return [ast.unparse(target) for target in node.targets] == ["pytestmark"]


def main(arguments: list[str]) -> int:
    """Run a package's tests, or write the page; arguments after the package are pytest's. Returns the exit code."""
    if not arguments:
        PAGE.write_text(page())
        return 0
    try:
        chosen = paths(arguments[0])
    except KeyError:
        print(f"AREA={arguments[0]}: no such package; write one of src/sparkmirror's, as in AREA=position")
        return 2
    return subprocess.call([sys.executable, "-m", "pytest", "--full", *map(str, chosen), *arguments[1:]])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
