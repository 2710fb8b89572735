"""Words on the command line that say nothing, or more than a clock can tell, get one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.cli.control import pause
from sparkmirror.cli.verify import _time
from sparkmirror.errors import ConfigError


@pytest.mark.parametrize("topics", ["", ",", " , "])
def test_to_pause_nothing_is_not_to_resume_everything(tmp_path: Path, topics: str) -> None:
    """As from a shell variable that isn't set."""
    with pytest.raises(ConfigError, match="name the topics to pause"):
        pause(str(tmp_path / "mm2.properties"), topics=topics)


@pytest.mark.parametrize("text", ["yesterday", "9999-12-31T23:59:59-05:00", "0001-01-01T00:00:00+09:00"])
def test_times_that_no_clock_tells(text: str) -> None:
    with pytest.raises(ConfigError, match="write a time as") as refused:
        _time(text, "--to-time")
    assert refused.value.exit_code == 2
