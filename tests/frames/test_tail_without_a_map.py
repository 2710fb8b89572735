"""Without a map nothing tells where another mirror's copy ends: what may still come is no difference."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self, cast

import pytest
from record_batches import Record, batches

from sparkmirror.config import load_mm2_properties
from sparkmirror.frames import Options, Verdict, Verification, match_search, verify_task
from sparkmirror.frames import stream_comparison as compare
from sparkmirror.frames.ranges import LogPlan, Window
from sparkmirror.frames.survey import FlowSurvey
from sparkmirror.frames.verify_task import Answer
from sparkmirror.kafka.cluster.log_range import LogBatch
from sparkmirror.kafka.cluster.range_reader import OffsetBounds

verify_module = importlib.import_module("sparkmirror.frames.verify")

Log = list[tuple[int, Record]]


@dataclass
class Read:
    """A side as `RangeReader` gives it."""

    batches: list[LogBatch]
    expired: list[OffsetBounds] = field(default_factory=list)

    def __iter__(self) -> Iterator[LogBatch]:
        return iter(self.batches)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def log(values: Sequence[int]) -> Log:
    return [
        (offset, Record(1_700_000_000_000, b"key-%d" % value, b"value-%d" % value))
        for offset, value in enumerate(values)
    ]


Verify = Callable[..., Verification]


@pytest.fixture
def verified(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Verify:
    """Of a partition with these records on both sides, by tasks in this process; the source ended at `began`."""
    file = tmp_path / "mm2.properties"
    file.write_text(
        "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\nA->B.enabled = true\nA->B.topics = t\n"
    )
    config = load_mm2_properties(str(file))
    session = SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=1))

    def run(source: Sequence[int], target: Sequence[int], began: int, size: int = 7) -> Verification:
        records = {"t": log(source), "A.t": log(target)}
        sides = {name: LogPlan(topic=name, topic_id="", start=0, end=len(part)) for name, part in records.items()}

        def reader(_: object, plan: LogPlan, *__: object) -> Read:
            return Read(list(batches(records[plan.topic], [size])))

        def plan(self: FlowSurvey, first: int) -> list[Any]:
            return [self._partition(0, sides["t"], sides["A.t"], (), None, Window(), began, 100.0, first, [])]

        def tasks(_: object, orders: Sequence[str], body: Callable[[str], str]) -> list[Answer]:
            return [Answer.model_validate_json(body(order)) for order in orders]

        monkeypatch.setattr(verify_task, "_reader", reader)
        monkeypatch.setattr(FlowSurvey, "plan", plan)
        for module in (verify_module, match_search):
            monkeypatch.setattr(module, "run_tasks", tasks)
        monkeypatch.setattr(verify_module, "parked", lambda flow: {})
        monkeypatch.setattr(verify_module, "settings_of", lambda spark: {})
        return cast("Verification", verify_module.run_verification(session, config, Options()))

    return run


def found_in(verification: Verification) -> set[tuple[str, int | None, int | None]]:
    return {(one.kind, one.upstream, one.downstream) for one in verification.differences}


@pytest.mark.parametrize("size", [1, 7])
def test_what_came_after_the_start_need_not_be_copied(verified: Verify, size: int) -> None:
    found = verified(range(50), range(40), began=40, size=size)
    assert (found.verdict, found.differences, found.behind) == (Verdict.EQUAL, (), {})
    assert [one.records for one in found.partitions] == [40]


def test_what_was_there_before_is_not_copied_yet(verified: Verify) -> None:
    found = verified(range(50), range(30), began=40)
    assert (found.verdict, found.differences, found.behind) == (Verdict.SO_FAR, (), {"not copied yet": 10})


def test_what_was_copied_meanwhile_is_compared(verified: Verify) -> None:
    found = verified(range(50), range(45), began=40)
    assert (found.verdict, [one.records for one in found.partitions]) == (Verdict.EQUAL, [45])


def test_a_copy_without_an_equal_record_is_different(verified: Verify) -> None:
    found = verified(range(5), [100, 101], began=5)
    assert (found.verdict, found.behind) == (Verdict.DIFFERENT, {"not copied yet": 3})
    assert {one.kind for one in found.differences} == {"changed"}


def test_what_is_missing_before_others_is_missing(verified: Verify) -> None:
    """Before the tail, of the same window of records."""
    found = verified(range(50), [*range(20), *range(21, 30)], began=40)
    assert (found_in(found), found.behind) == ({("missing", 20, None)}, {"not copied yet": 10})


def test_what_is_in_the_tail_and_elsewhere_at_the_target_is_found(verified: Verify) -> None:
    """The target has the last record too early, a foreign one at its end, and one twice."""
    assert found_in(verified(range(10), [0, 1, 9, *range(2, 9)], began=10)) == {("reordered", 9, 2)}
    found = verified(range(30), [*range(20), 99], began=25)
    assert (found_in(found), found.behind) == ({("changed", 20, 20)}, {"not copied yet": 4})
    found = verified(range(30), [*range(20), 19], began=25)
    assert (found_in(found), found.behind) == ({("duplicate", 19, 20)}, {"not copied yet": 5})


def test_a_tail_that_is_too_long_to_be_listed_is_counted(verified: Verify, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare.Comparer.__init__, "__kwdefaults__", SHORT)
    found = verified(range(500), range(30), began=400)
    assert (found.verdict, found.behind) == (Verdict.SO_FAR, {"not copied yet": 370})
    found = verified(range(500), [*range(10), *range(60, 70)], began=400)
    assert found.verdict is Verdict.DIFFERENT
    assert [one.unjudged for one in found.partitions] == [30]


SHORT = compare.Comparer.__init__.__kwdefaults__ | {"most_unmatched": 20}  # type: ignore[operator]
