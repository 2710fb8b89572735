"""Settings that are right each and odd together: where MirrorMaker 2 stops a connector, ours says what it does."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sparkmirror.config import MirrorConfig

Load = Callable[..., MirrorConfig]
SYNCS_OFF = "emit.offset-syncs.enabled = false\n"
CHECKPOINTS_OFF = "emit.checkpoints.enabled = false\n"


def notes(config: MirrorConfig) -> list[str]:
    return [text.split("mm2.properties: ")[1] for text in config.warnings]


ALL_THE_SAME = "emit.offset-syncs.enabled: checkpoints are written all the same, from exact offsets"


def test_checkpoints_continue_without_offset_syncs(load: Load) -> None:
    config = load(SYNCS_OFF)
    (note,) = notes(config)
    assert note.startswith(ALL_THE_SAME)
    (flow,) = config.flows
    assert not flow.offset_sync.emit_offset_syncs_enabled
    assert flow.group.emit_checkpoints_enabled


@pytest.mark.parametrize(
    ("key", "refused"),
    [
        ("offset-syncs.topic.location = source", True),
        ("us->eu.offset-syncs.topic.replication.factor = 1", True),
        ("offset.lag.max = 3", False),
    ],
)
def test_settings_of_offset_syncs_that_are_not_written(load: Load, key: str, refused: bool) -> None:
    first, second = notes(load(SYNCS_OFF + key))
    assert first.startswith(ALL_THE_SAME)
    assert second.startswith(f"{key.split(' ')[0]}: has no effect with emit.offset-syncs.enabled = false")
    assert second.endswith("MirrorMaker 2 refuses") == refused


def test_group_offsets_without_checkpoints(load: Load) -> None:
    assert notes(load(CHECKPOINTS_OFF)) == []
    (note,) = notes(load(CHECKPOINTS_OFF + "sync.group.offsets.enabled = true"))
    assert note.startswith("sync.group.offsets.enabled: has no effect with emit.checkpoints.enabled = false")


def test_without_both_nothing_needs_to_be_said(load: Load) -> None:
    assert notes(load(SYNCS_OFF + CHECKPOINTS_OFF)) == []


def test_the_default_is_no_statement(load: Load) -> None:
    assert notes(load("emit.offset-syncs.enabled = true\nemit.checkpoints.enabled = true\noffset.lag.max = 3")) == []
