"""Every pair of versions that people have: what is claimed works, what is refused is refused in one line.

Outcomes are kept in `.cache/versions`; `tests/versions/table.py` makes docs/versions.md of them.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from outcomes import Pair
from pairs import BESIDE_MIRROR_MAKER, REFUSED, WORKING
from trial import Trial

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]


def name(pair: Pair) -> str:
    return f"{pair.source} to {pair.target}"


@pytest.mark.parametrize("pair", WORKING, ids=name)
def test_works(pair: Pair, tmp_path: Path) -> None:
    with Trial(pair, tmp_path) as trial:
        trial.lint()
        trial.copy_once()
        trial.kill_twice()
        trial.sync_groups()
        trial.translate()
        trial.verify()
        trial.list_losses()
        if pair in BESIDE_MIRROR_MAKER:
            trial.beside_mirror_maker()
    trial.outcomes.finish()


@pytest.mark.parametrize("pair", REFUSED, ids=name)
def test_refused(pair: Pair, tmp_path: Path) -> None:
    with Trial(pair, tmp_path) as trial:
        trial.refuse()
    trial.outcomes.finish()
