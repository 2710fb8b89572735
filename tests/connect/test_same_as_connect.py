"""A real Connect worker and ours answer the same requests alike, but for what is stated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.connect.compare import compare, not_stated, reasons, recorded, rows

if TYPE_CHECKING:
    from pathlib import Path

    from lab import KafkaCluster

pytestmark = [pytest.mark.broker, pytest.mark.full]


def test_only_what_is_stated_differs(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, tmp_path: Path
) -> None:
    compared = compare(source_cluster, target_cluster, tmp_path)
    wrong = not_stated(compared, reasons())
    assert not wrong, "\n".join(f"{one.case.name}\n  real {one.real}\n  ours {one.ours}" for one in wrong)
    assert rows(compared) == recorded()
