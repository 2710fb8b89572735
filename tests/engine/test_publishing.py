"""A mirror's status that can't be published is told once for each reason, and its end is noticed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from sparkmirror.errors import ClusterTrouble
from sparkmirror.mirror.engine.publishing import Publishing


def test_a_status_that_can_not_be_published_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """Else `status` would only say that nobody works, while the mirror works well."""
    answers: list[Exception | None] = [
        ClusterTrouble("no right"),
        ClusterTrouble("no right"),
        ClusterTrouble("away"),
        ClusterTrouble("no right"),
        None,
        ClusterTrouble("away"),
    ]

    def turn(_: object) -> None:
        if (error := answers.pop(0)) is not None:
            raise error

    publishing: Any = Publishing(lambda: SimpleNamespace(flows=[SimpleNamespace(flow="a->b")]))  # type: ignore[arg-type, return-value]
    while answers:
        publishing._turn(SimpleNamespace(turn=turn), "a->b")  # noqa: SLF001 - a test's way in
    told = [record.getMessage().rpartition(": ")[2] for record in caplog.records if record.levelname == "WARNING"]
    assert told == ["no right", "away", "away"]
