"""Texts and tables of a notebook's cells: true, escaped, and none for what is not known."""

from __future__ import annotations

from tests.support.snapshot_samples import flow

from sparkmirror.api.html import table
from sparkmirror.api.shown_status import AgedFlow, MirrorStatus
from sparkmirror.api.verification import Verification
from sparkmirror.frames import Difference, PartitionResult, Verdict
from sparkmirror.frames.report import Verification as Findings
from sparkmirror.snapshot.snapshot import FlowState


def test_cells_are_escaped_and_numbers_have_commas() -> None:
    shown = table("<b>", ["a&b"], [["<script>", None], [1_234_567, 0.5]])
    assert "<script>" not in shown
    assert "<caption>&lt;b&gt;</caption>" in shown
    assert "<th>a&amp;b</th>" in shown
    assert "<td>&lt;script&gt;</td><td></td>" in shown
    assert ">1,234,567</td>" in shown


def test_a_status_is_a_mapping_a_text_and_a_table() -> None:
    status = MirrorStatus([AgedFlow(flow(lag=5), 0.0), AgedFlow(flow(flow="B->A", state=FlowState.HELD_UP), 3.0)])
    assert list(status) == ["A->B", "B->A"]
    assert status["B->A"].age_s == 3.0
    first, second = repr(status).splitlines()
    assert first.startswith("A->B: ")
    assert "lag 5" in first
    assert second.startswith("B->A: held up")
    assert not status.is_healthy
    assert MirrorStatus([AgedFlow(flow(), 0.0)]).is_healthy
    assert status._repr_html_().count("<tr>") == 3
    assert repr(MirrorStatus([])) == "no flows"


def result(**more: object) -> PartitionResult:
    return PartitionResult.model_validate(
        {"flow": "A->B", "topic": "orders", "target_topic": "A.orders", "partition": 0, "records": 10, **more}
    )


def verified(*partitions: PartitionResult, differences: tuple[Difference, ...] = ()) -> Verification:
    spark = None
    return Verification(spark, Findings(partitions, differences, 1, 1))  # type: ignore[arg-type]


def test_only_equal_copies_are_true() -> None:
    assert verified(result())
    assert repr(verified(result(), result(partition=1))) == "equal: 20 records are equal"
    for outcome in ({"not_copied_yet": 3}, {"deleted": 2}, {"differences": {"missing": 1}}, {"unjudged": 1}):
        assert not verified(result(**outcome))
    behind = verified(result(not_copied_yet=3, because="it waits"))
    assert (behind.verdict, repr(behind)) == (Verdict.SO_FAR, "equal so far: 10 records are equal, 3 not copied yet")
    assert "1 missing" in repr(verified(result(differences={"missing": 1})))
    assert "<td>orders</td>" in behind._repr_html_()
