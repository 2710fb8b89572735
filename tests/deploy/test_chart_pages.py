"""The charts' READMEs and copies are as the files that they are made of, and each value has a row."""

from __future__ import annotations

import pytest
from tests.deploy.chart_pages import CHARTS, HELD, NAMES, described, leaves, page, values

each_chart = pytest.mark.parametrize("chart", NAMES)
WRITE = "python -m tests.deploy.chart_pages"


@each_chart
def test_the_table_of_values(chart: str) -> None:
    assert (CHARTS / chart / "README.md").read_text() == page(chart), WRITE


@each_chart
def test_each_value_is_described(chart: str) -> None:
    told = {value.path for value in described(chart)}
    missing = [
        leaf for leaf in leaves(values(chart)) if not any(leaf == path or leaf.startswith(f"{path}.") for path in told)
    ]
    assert not missing


@pytest.mark.parametrize("place", HELD)
def test_copies(place: str) -> None:
    assert (CHARTS / place).read_text() == HELD[place].read_text(), WRITE
