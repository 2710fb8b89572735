"""A mirror that does not name what it is refused is silent; one that copies nothing can't be refused anything."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from chaos.arena import NoVictim
from chaos.cluster_faults import TimestampLimit
from chaos.world import Aftermath, World

from chaos import cluster_faults

REFUSED = [{"archive-0": "INVALID_TIMESTAMP: too old"}]


@pytest.fixture
def set_to(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What the copy's limit was set to; the copy grows all the time, and two minutes are a moment."""
    ends, limits = itertools.count(), list[object]()
    monkeypatch.setattr(cluster_faults, "log_ends", lambda *_: next(ends))
    monkeypatch.setattr(cluster_faults, "configure", lambda _, __, settings: limits.extend(settings.values()))
    for name, value in {"_REFUSED_TIMEOUT_S": 0.2, "_LIMIT_EVERY_S": 0.002, "_COPIED_TIMEOUT_S": 0.1}.items():
        monkeypatch.setattr(cluster_faults, name, value)
    return limits


def world(directory: Path, said: list[dict[str, str]], *, copies: bool = True) -> World:
    log = directory / "mirror.log"
    log.touch()
    stub: Any = SimpleNamespace(
        arena=SimpleNamespace(target=None),
        copies=lambda *_: ["A.archive"],
        deployment=SimpleNamespace(log=log, parked_since=lambda _: said),
        meter=SimpleNamespace(wait_for_progress=lambda _: copies),
        partitions=1,
        aftermath=Aftermath(),
    )
    return cast(World, stub)


def test_what_is_named_is_no_silence(tmp_path: Path, set_to: list[object]) -> None:
    here = world(tmp_path, REFUSED)
    fault = TimestampLimit(here)
    fault.begin()
    assert set_to == ["86400000"]
    assert here.aftermath.silences == []


def test_what_is_not_named_while_other_records_are_copied_is_one(tmp_path: Path, set_to: list[object]) -> None:
    here = world(tmp_path, [{"archive-0": "another reason"}])
    with pytest.raises(NoVictim, match="did not name a partition"):
        TimestampLimit(here).begin()
    assert len(here.aftermath.silences) == 1
    assert set_to[-1] is None, "the limit is gone"


def test_a_mirror_that_copies_nothing_is_not_silent(
    tmp_path: Path, set_to: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    here = world(tmp_path, [], copies=False)
    with pytest.raises(NoVictim, match="copied too little"):
        TimestampLimit(here).begin()
    monkeypatch.setattr(cluster_faults, "log_ends", lambda *_: 7)
    with pytest.raises(NoVictim, match="no old records"):
        TimestampLimit(here).begin()
    assert here.aftermath.silences == []
    assert set_to[-1] is None
