"""The long tests of one package and of what stands on it: for `make test-full AREA=position`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent

_ENGINE_TESTS = {
    "client": ("real_checkpoint_connector",),
    "cluster": ("broker_faults", "replicas", "sign_in", "secure_flows", "tls_flows"),
    "config": ("secrets", "strimzi_examples", "own_classes"),
    "doctor": ("diagnosed", "alerts_of_a_run"),
    "durable": ("kills", "lost_segments", "losses", "takeover"),
    "formats": ("strimzi_examples", "strimzi_own", "watched_resource"),
    "frames": ("verify", "offset_runs", "receipts_as_rows"),
    "messages": ("kills", "takeover", "standby"),
    "metrics": ("prometheus", "alerts_of_a_run"),
    "mm2": ("true_syncs", "mirror_maker_and_back", "beside_mirror_maker", "real_checkpoint_connector"),
    "page": ("prometheus",),
    "position": ("kills", "rival_views", "old_records", "unclean_elections", "lost_segments", "losses"),
    "pump": ("kills", "rival_views", "old_records", "broker_faults", "fairness", "every_batch", "bomb"),
    "sync": ("true_syncs", "rights_of_a_flow", "real_checkpoint_connector"),
    "takeover": (
        "mirror_maker_and_back",
        "connect_takeover",
        "exactly_once_takeover",
        "empty_alias_takeover",
        "legacy",
    ),
    "translation": ("offset_runs", "true_syncs", "losses"),
    "wire": ("every_batch", "bomb", "tls_flows"),
}
"""Flow tests that show a package at work, as `tests/engine/test_NAME.py`."""

_BESIDE = {
    "durable": ("position", "pump", "upgrade"),
    "messages": ("pump", "upgrade"),
    "mm2": ("client",),
    "position": ("durable", "pump"),
    "pump": ("position",),
    "takeover": ("position",),
    "translation": ("sync",),
    "wire": ("pump",),
}
"""Directories of tests of what stands on a package."""


def paths(area: str) -> list[Path]:
    """Return files and directories of tests for a package; raises `KeyError` for a name that is none."""
    directories = [TESTS / name for name in (area, *_BESIDE.get(area, ())) if (TESTS / name).is_dir()]
    files = [TESTS / "engine" / f"test_{name}.py" for name in _ENGINE_TESTS.get(area, ())]
    if not directories and not files:
        raise KeyError(area)
    return [*directories, *files]


def main(arguments: list[str]) -> int:
    """Run them; the first argument is the package, the others are pytest's. Returns pytest's exit code."""
    try:
        chosen = paths(arguments[0])
    except KeyError:
        print(f"AREA={arguments[0]}: no such package; write one of src/sparkmirror's, as in AREA=position")
        return 2
    return subprocess.call([sys.executable, "-m", "pytest", "--full", *map(str, chosen), *arguments[1:]])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
